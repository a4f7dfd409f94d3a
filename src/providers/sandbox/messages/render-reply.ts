// A whole reply as a Message with every key that the current clients' types declare, and the parts streams share.

import type { Usage } from '../../../kernel/usage.ts'
import type { Reply, Stop } from '../reply.ts'
import type { Stamp } from '../wire.ts'

/** A content block, whole. The stream takes the same blocks apart, so both accumulate to the same message. */
export type Block =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'text'; readonly text: string; readonly citations: null }
  | {
      readonly type: 'tool_use'
      readonly id: string
      readonly name: string
      readonly input: unknown
      readonly caller: { readonly type: 'direct' }
    }

export function renderReply(reply: Reply, stamp: Stamp): string {
  return JSON.stringify({
    ...messageHead(stamp),
    content: renderBlocks(reply, stamp),
    ...renderStop(reply.stop),
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: renderUsage(reply.usage),
  })
}

export function messageHead({ digest, model }: Stamp) {
  return { id: `msg_sandbox_${digest.slice(0, 24)}`, type: 'message', role: 'assistant', model }
}

export function toolUseId({ digest }: Stamp, index: number): string {
  return `toolu_${digest.slice(0, 24)}${index}`
}

function renderBlocks(reply: Reply, stamp: Stamp): Block[] {
  const blocks: Block[] = []
  let thinking = ''
  let text = ''
  let calls = 0
  for (const step of reply.steps) {
    if (step.kind === 'think') thinking += step.text
    if (step.kind === 'seal') blocks.push({ type: 'thinking', thinking, signature: step.signature })
    if (step.kind === 'text') text += step.text
  }
  if (text !== '') blocks.push({ type: 'text', text, citations: null })
  for (const step of reply.steps) {
    if (step.kind !== 'call') continue
    const input: unknown = JSON.parse(step.call.argumentsText)
    blocks.push({ ...toolUse(stamp, calls, step.call.name), input })
    calls += 1
  }
  return blocks
}

export function toolUse(stamp: Stamp, index: number, name: string) {
  return {
    type: 'tool_use',
    id: toolUseId(stamp, index),
    name,
    input: {} as unknown,
    caller: { type: 'direct' },
  } as const
}

export function renderStop(stop: Stop): { stop_reason: string; stop_sequence: string | null } {
  switch (stop.reason) {
    case 'end':
      return { stop_reason: 'end_turn', stop_sequence: null }
    case 'stop-sequence':
      return { stop_reason: 'stop_sequence', stop_sequence: stop.sequence }
    case 'length':
      return { stop_reason: 'max_tokens', stop_sequence: null }
    case 'tool-calls':
      return { stop_reason: 'tool_use', stop_sequence: null }
  }
}

/** Here the input excludes what was cached; the output includes what was thought. */
export function renderUsage(usage: Usage) {
  return {
    ...inputCounts(usage),
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWriteTokens,
      ephemeral_1h_input_tokens: usage.cacheWriteLongTokens,
    },
    ...outputCounts(usage),
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: null,
    speed: 'standard',
  }
}

/** What the last `message_delta` repeats: totals so far, without the split of the cache. */
export function renderDeltaUsage(usage: Usage) {
  return { ...inputCounts(usage), ...outputCounts(usage), server_tool_use: null }
}

function inputCounts(usage: Usage) {
  return {
    input_tokens: usage.inputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens + usage.cacheWriteLongTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
  }
}

function outputCounts({ outputTokens, reasoningTokens }: Usage) {
  return {
    output_tokens: outputTokens,
    output_tokens_details: reasoningTokens === undefined ? null : { thinking_tokens: reasoningTokens },
  }
}
