// A whole reply as a `chat.completion` object, and the parts of it that chunks share.

import type { Usage } from '../../../kernel/usage.ts'
import { totalInputTokens } from '../../../kernel/usage.ts'
import { joinText, type Reply, type Stop, type ToolCall } from '../reply.ts'
import type { Stamp } from '../wire.ts'

export function renderReply(reply: Reply, stamp: Stamp): string {
  const text = joinText(reply, 'text')
  const reasoning = joinText(reply, 'think')
  const calls = reply.steps.flatMap((step) => (step.kind === 'call' ? [step.call] : []))
  const message = {
    role: 'assistant',
    content: calls.length > 0 && text === '' ? null : text,
    refusal: null,
    annotations: [],
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((call, index) => renderCall(call, callId(stamp, index))) }),
  }
  return JSON.stringify({
    ...replyHead(stamp, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(reply.stop) }],
    usage: renderUsage(reply.usage),
  })
}

export function replyHead({ digest, createdSeconds, model }: Stamp, object: string) {
  return {
    id: `chatcmpl-sandbox-${digest.slice(0, 24)}`,
    object,
    created: createdSeconds,
    model,
    service_tier: 'default',
    system_fingerprint: null,
  }
}

/** OpenAI refuses ids of more than 40 characters when they come back. */
export function callId({ digest }: Stamp, index: number): string {
  return `call_${digest.slice(0, 24)}${index}`
}

function renderCall({ name, takes, argumentsText }: ToolCall, id: string) {
  return takes === 'text'
    ? { id, type: 'custom', custom: { name, input: argumentsText } }
    : { id, type: 'function', function: { name, arguments: argumentsText } }
}

export function finishReason({ reason }: Stop): string {
  switch (reason) {
    case 'end':
    case 'stop-sequence':
      return 'stop'
    case 'length':
      return 'length'
    case 'tool-calls':
      return 'tool_calls'
  }
}

/** Here the prompt includes what was cached, and the completion what was thought. */
export function renderUsage(usage: Usage) {
  const promptTokens = totalInputTokens(usage)
  return {
    prompt_tokens: promptTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: promptTokens + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      cache_write_tokens: usage.cacheWriteTokens + usage.cacheWriteLongTokens,
    },
    ...(usage.reasoningTokens === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: usage.reasoningTokens } }),
  }
}
