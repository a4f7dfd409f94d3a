// Messages, for the checks.

import { checkMessagesReply, checkMessagesStream } from './grammar-messages.ts'
import type { Probe, ProbeTool, ProbeTurn, Question } from './probe.ts'
import { readMessagesReply, readMessagesStream } from './read-messages.ts'
import { isMembers, listOf, membersOf, parseJson } from './violation.ts'

/** The version that every host knows. */
const version = '2023-06-01'
/** The dialect has no default. */
const capDefault = 1024

export const messagesProbe: Probe = {
  name: 'messages',
  title: 'Anthropic Messages',
  urlOf: (baseUrl, what) => `${withoutVersion(baseUrl)}/v1/${what === 'models' ? 'models' : 'messages'}`,
  headers: (apiKey) => ({ 'anthropic-version': version, ...(apiKey !== undefined && { 'x-api-key': apiKey }) }),
  body,
  olderCap: () => undefined,
  lacking: (model) => ({ model, max_tokens: capDefault }),
  checkWhole: (reply) => checkMessagesReply(reply, 'dialect'),
  checkStream: (events) => checkMessagesStream(events, 'dialect'),
  readWhole: readMessagesReply,
  readStream: readMessagesStream,
  stops: { end: 'end_turn', length: 'max_tokens', calls: ['tool_use'] },
  errorFaults,
  modelsFaults,
}

/** Users of this dialect leave the `/v1` to the client; those who come from the other one write it. */
function withoutVersion(baseUrl: string): string {
  return baseUrl.replace(/\/v1$/, '')
}

function body({ model, turns, tools, mustCall, cap = capDefault, stream }: Question): object {
  return {
    model,
    max_tokens: cap,
    messages: turns.flatMap(messagesOf),
    ...(tools && { tools: tools.map(toolOf) }),
    ...(mustCall && { tool_choice: { type: 'any' } }),
    ...(stream && { stream }),
  }
}

function toolOf({ name, description, argument }: ProbeTool): object {
  const properties = { [argument]: { type: 'string' } }
  return { name, description, input_schema: { type: 'object', properties, required: [argument] } }
}

function messagesOf(turn: ProbeTurn): object[] {
  if ('said' in turn) return [{ role: 'user', content: turn.said }]
  const { answer, results } = turn
  const content = [
    ...answer.proof,
    ...(answer.text === '' ? [] : [{ type: 'text', text: answer.text }]),
    ...answer.calls.map(({ id, name, arguments: json }) => {
      return { type: 'tool_use', id, name, input: parseJson(json) ?? {} }
    }),
  ]
  const answers = answer.calls.map(({ id }, at) => {
    return { type: 'tool_result', tool_use_id: id, content: results[at] ?? '' }
  })
  return [
    { role: 'assistant', content },
    { role: 'user', content: answers },
  ]
}

function errorFaults(value: unknown): string[] {
  const { type, error } = membersOf(value)
  const faults = type === 'error' ? [] : ['`type` is not "error"']
  if (!isMembers(error)) return [...faults, 'the body has no `error` object, which clients read']
  if (typeof error.type !== 'string') faults.push('`error.type` is no text')
  if (typeof error.message !== 'string' || error.message === '') faults.push('`error.message` is no text')
  return faults
}

function modelsFaults(value: unknown): string[] {
  const { data, has_more: hasMore } = membersOf(value)
  const faults = typeof hasMore === 'boolean' ? [] : ['`has_more` is missing, so that clients cannot page']
  if (!Array.isArray(data)) return [...faults, '`data` is no list']
  for (const [at, model] of listOf(data).entries()) {
    const { id, type, display_name: name, created_at: created } = membersOf(model)
    const isNamed = typeof id === 'string' && id !== '' && typeof name === 'string'
    if (isNamed && type === 'model' && typeof created === 'string') continue
    return [...faults, `\`data[${at}]\` lacks one of id, type "model", display_name, created_at`]
  }
  return faults
}
