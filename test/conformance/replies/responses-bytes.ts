// Replies as OpenAI sends them on Responses: every item is opened, sent in deltas, sent whole, and repeated at the end.

import type { ProviderBytes } from './reply-fixture.ts'

export interface Item {
  /** As it begins, and as it ends. */
  readonly begun: Readonly<Record<string, unknown>>
  readonly whole: object
  /** The events in between. */
  readonly deltas: readonly (readonly [type: string, members: object])[]
}

export interface ResponsesReplyParts {
  readonly items: readonly Item[]
  readonly status?: object
  readonly usage?: object
  /** Places of items whose pieces come in turn, instead of one item after the other. */
  readonly isMixed?: boolean
  /** An empty event between the items and the end. */
  readonly hasKeepAlive?: boolean
}

export const responsesUsage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 5,
  total_tokens: 15,
}

/** The members beside the reply itself; OpenAI's servers send all of them. */
const echo = {
  background: false,
  completed_at: null,
  error: null,
  frequency_penalty: 0,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: 'default',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
}

export function responsesBytes(reply: ResponsesReplyParts): ProviderBytes {
  const { items, status = { status: 'completed' }, usage = responsesUsage, isMixed = false, hasKeepAlive } = reply
  const output = items.map(({ whole }) => whole)
  const base = { id: 'resp_Up1', object: 'response', created_at: 1_794_700_000, model: 'up-model', ...echo }
  const whole = { ...base, ...status, output, usage }
  let sequence_number = 0
  const event = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...members })}\n\n`
  const begin = ({ begun }: Item, output_index: number) =>
    event('response.output_item.added', { output_index, item: begun })
  const tell = ({ begun, deltas }: Item, output_index: number) =>
    deltas.map(([type, members]) => event(type, { item_id: begun.id, output_index, ...members }))
  const end = ({ whole: item }: Item, output_index: number) =>
    event('response.output_item.done', { output_index, item })
  const open = [
    event('response.created', { response: { ...base, status: 'in_progress', output: [], usage: null } }),
    event('response.in_progress', { response: { ...base, status: 'in_progress', output: [], usage: null } }),
  ]
  const events = isMixed
    ? [...items.map(begin), ...inTurn(items.map(tell)), ...items.map(end)]
    : items.flatMap((item, at) => [begin(item, at), ...tell(item, at), end(item, at)])
  const last = 'incomplete_details' in status ? 'response.incomplete' : 'response.completed'
  return {
    stream: [...open, ...events, hasKeepAlive ? event('keepalive', {}) : '', event(last, { response: whole })].join(''),
    whole: JSON.stringify(whole, null, 2),
  }
}

function inTurn(lists: readonly (readonly string[])[]): string[] {
  const most = Math.max(...lists.map(({ length }) => length))
  return Array.from({ length: most }, (_, at) => lists.flatMap((list) => list[at] ?? [])).flat()
}

/** The events of a part: opened, sent in deltas, and sent whole twice. */
function partDeltas(
  names: { readonly part: string; readonly text: string },
  at: object,
  part: object,
  pieces: string[],
) {
  const text = pieces.join('')
  const empty = Object.fromEntries(Object.entries(part).map(([name, value]) => [name, value === text ? '' : value]))
  const [done] = Object.entries(part).filter(([name]) => name !== 'type')
  return [
    [`response.${names.part}.added`, { ...at, part: empty }],
    ...pieces.map((delta) => [`response.${names.text}.delta`, { ...at, delta }] as const),
    [`response.${names.text}.done`, { ...at, [done?.[0] ?? '']: text }],
    [`response.${names.part}.done`, { ...at, part }],
  ] as const
}

const message = (at: number, part: object, text: string, pieces: string[]): Item => {
  const base = { type: 'message', id: `msg_${at}`, role: 'assistant' }
  return {
    begun: { ...base, status: 'in_progress', content: [] },
    whole: { ...base, status: 'completed', content: [part] },
    deltas: partDeltas({ part: 'content_part', text }, { content_index: 0 }, part, pieces),
  }
}

/** A message of one part. */
export const messageItem = (at: number, ...pieces: string[]): Item => {
  const part = { type: 'output_text', text: pieces.join(''), annotations: [], logprobs: [] }
  return message(at, part, 'output_text', pieces)
}

export const refusalItem = (at: number, ...pieces: string[]): Item =>
  message(at, { type: 'refusal', refusal: pieces.join('') }, 'refusal', pieces)

export const reasoningItem = (at: number, sealed: string, ...pieces: string[]): Item => {
  const part = { type: 'summary_text', text: pieces.join('') }
  const names = { part: 'reasoning_summary_part', text: 'reasoning_summary_text' }
  const isEmpty = pieces.length === 0
  return {
    begun: { type: 'reasoning', id: `rs_${at}`, summary: [] },
    whole: { type: 'reasoning', id: `rs_${at}`, summary: isEmpty ? [] : [part], encrypted_content: sealed },
    deltas: isEmpty ? [] : partDeltas(names, { summary_index: 0 }, part, pieces),
  }
}

export const callItem = (at: number, call_id: string, name: string, ...pieces: string[]): Item => {
  const call = { type: 'function_call', id: `fc_${at}`, call_id, name }
  const text = pieces.join('')
  return {
    begun: { ...call, status: 'in_progress', arguments: '' },
    whole: { ...call, status: 'completed', arguments: text },
    deltas: [
      ...pieces.map((delta) => ['response.function_call_arguments.delta', { delta }] as const),
      ['response.function_call_arguments.done', { name, arguments: text }],
    ],
  }
}

export const customItem = (at: number, call_id: string, name: string, ...pieces: string[]): Item => {
  const call = { type: 'custom_tool_call', id: `ctc_${at}`, call_id, name }
  const input = pieces.join('')
  return {
    begun: { ...call, status: 'in_progress', input: '' },
    whole: { ...call, status: 'completed', input },
    deltas: [
      ...pieces.map((delta) => ['response.custom_tool_call_input.delta', { delta }] as const),
      ['response.custom_tool_call_input.done', { input }],
    ],
  }
}
