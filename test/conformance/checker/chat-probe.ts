// Chat Completions, for the checks.

import { checkChatReply, checkChatStream } from './grammar-chat.ts'
import type { Probe, ProbeTool, ProbeTurn, Question } from './probe.ts'
import { readChatReply, readChatStream } from './read-chat.ts'
import { isMembers, listOf, membersOf } from './violation.ts'

export const chatProbe: Probe = {
  name: 'chat',
  title: 'OpenAI Chat Completions',
  urlOf: (baseUrl, what) => `${withVersion(baseUrl)}${what === 'models' ? '/models' : '/chat/completions'}`,
  headers: (apiKey) => (apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
  body,
  olderCap,
  lacking: (model) => ({ model }),
  checkWhole: (reply) => checkChatReply(reply, 'dialect'),
  checkStream: (events) => checkChatStream(events, { wantsUsage: true, level: 'dialect' }),
  readWhole: readChatReply,
  readStream: readChatStream,
  // OpenAI says stop when the caller demanded the call.
  stops: { end: 'stop', length: 'length', calls: ['tool_calls', 'stop'] },
  errorFaults,
  modelsFaults,
}

/** Users write the `/v1`, or a path of their host's; only a bare host lacks it. */
function withVersion(baseUrl: string): string {
  return new URL(baseUrl).pathname === '/' ? `${baseUrl}/v1` : baseUrl
}

function body({ model, turns, tools, mustCall, cap, stream }: Question): object {
  return {
    model,
    messages: turns.flatMap(messagesOf),
    ...(tools && { tools: tools.map(toolOf) }),
    ...(mustCall && { tool_choice: 'required' }),
    ...(cap !== undefined && { max_completion_tokens: cap }),
    ...(stream && { stream, stream_options: { include_usage: true } }),
  }
}

function olderCap(asked: object): object | undefined {
  const { max_completion_tokens: cap, ...rest } = membersOf(asked)
  return cap === undefined ? undefined : { ...rest, max_tokens: cap }
}

function toolOf({ name, description, argument }: ProbeTool): object {
  const properties = { [argument]: { type: 'string' } }
  return {
    type: 'function',
    function: { name, description, parameters: { type: 'object', properties, required: [argument] } },
  }
}

function messagesOf(turn: ProbeTurn): object[] {
  if ('said' in turn) return [{ role: 'user', content: turn.said }]
  const { answer, results } = turn
  const calls = answer.calls.map(({ id, name, arguments: json }) => {
    return { id, type: 'function', function: { name, arguments: json } }
  })
  return [
    {
      role: 'assistant',
      content: answer.text === '' ? null : answer.text,
      // Hosts that show their reasoning want it back with the calls it led to.
      ...(answer.reasoning !== '' && { reasoning_content: answer.reasoning }),
      ...(answer.proof.length > 0 && { reasoning_details: answer.proof }),
      tool_calls: calls,
    },
    ...answer.calls.map(({ id }, at) => ({ role: 'tool', tool_call_id: id, content: results[at] ?? '' })),
  ]
}

function errorFaults(value: unknown): string[] {
  const { error } = membersOf(value)
  if (!isMembers(error)) return ['the body has no `error` object, which clients read']
  const faults = typeof error.message === 'string' && error.message !== '' ? [] : ['`error.message` is no text']
  if (typeof error.type !== 'string') faults.push('`error.type` is no text')
  for (const name of ['param', 'code']) {
    if (!(name in error)) faults.push(`\`error.${name}\` is missing (null would do)`)
  }
  return faults
}

function modelsFaults(value: unknown): string[] {
  const { object, data } = membersOf(value)
  const faults = object === 'list' ? [] : ['`object` is not "list"']
  if (!Array.isArray(data)) return [...faults, '`data` is no list']
  for (const [at, model] of listOf(data).entries()) {
    const { id, object: kind, owned_by: owner } = membersOf(model)
    if (typeof id === 'string' && id !== '' && kind === 'model' && typeof owner === 'string') continue
    return [...faults, `\`data[${at}]\` lacks one of id, object "model", owned_by`]
  }
  return faults
}
