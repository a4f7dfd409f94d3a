// Replies as OpenAI sends them on Responses: every item begun, told in pieces, told whole, and once more at the end.

import type { ProviderBytes } from './reply-fixture.ts'

export interface Item {
  /** As it begins, and as it ends. */
  readonly begun: object
  readonly whole: object
  /** What comes between, by event. */
  readonly deltas: readonly (readonly [type: string, members: object])[]
}

export interface ResponsesReplyParts {
  readonly items: readonly Item[]
  readonly status?: object
  readonly usage?: object
  /** Places of items whose pieces come in turn, instead of one item after the other. */
  readonly isMixed?: boolean
  /** Records between the items and the end. */
  readonly between?: string
}

export const responsesUsage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 5,
  total_tokens: 15,
}

export function responsesBytes(reply: ResponsesReplyParts): ProviderBytes {
  const { items, status = { status: 'completed' }, usage = responsesUsage, isMixed = false, between = '' } = reply
  const output = items.map(({ whole }) => whole)
  const base = { id: 'resp_Up1', object: 'response', created_at: 1_794_700_000, model: 'up-model' }
  const whole = { ...base, ...status, error: null, output, usage }
  let sequence_number = 0
  const event = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...members })}\n\n`
  const begin = ({ begun }: Item, output_index: number) =>
    event('response.output_item.added', { output_index, item: begun })
  const tell = ({ deltas }: Item, output_index: number) =>
    deltas.map(([type, members]) => event(type, { item_id: `item_${output_index}`, output_index, ...members }))
  const end = ({ whole: item }: Item, output_index: number) =>
    event('response.output_item.done', { output_index, item })
  const open = [
    event('response.created', { response: { ...base, status: 'in_progress', output: [], usage: null } }),
    event('response.in_progress', { response: { ...base, status: 'in_progress', output: [], usage: null } }),
  ]
  const told = isMixed
    ? [...items.map(begin), ...inTurn(items.map(tell)), ...items.map(end)]
    : items.flatMap((item, at) => [begin(item, at), ...tell(item, at), end(item, at)])
  const last = 'incomplete_details' in status ? 'response.incomplete' : 'response.completed'
  return {
    stream: [...open, ...told, between, event(last, { response: whole })].join(''),
    whole: JSON.stringify(whole, null, 2),
  }
}

function inTurn(lists: readonly (readonly string[])[]): string[] {
  const most = Math.max(...lists.map(({ length }) => length))
  return Array.from({ length: most }, (_, at) => lists.flatMap((list) => list[at] ?? [])).flat()
}

/** A message of one part. */
export const messageItem = (at: number, ...pieces: string[]): Item => ({
  begun: { type: 'message', id: `item_${at}`, status: 'in_progress', role: 'assistant', content: [] },
  whole: {
    type: 'message',
    id: `item_${at}`,
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text: pieces.join(''), annotations: [], logprobs: [] }],
  },
  deltas: pieces.map((delta) => ['response.output_text.delta', { content_index: 0, delta }]),
})

export const refusalItem = (at: number, ...pieces: string[]): Item => ({
  begun: { type: 'message', id: `item_${at}`, status: 'in_progress', role: 'assistant', content: [] },
  whole: {
    type: 'message',
    id: `item_${at}`,
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'refusal', refusal: pieces.join('') }],
  },
  deltas: pieces.map((delta) => ['response.refusal.delta', { content_index: 0, delta }]),
})

export const reasoningItem = (at: number, sealed: string, ...pieces: string[]): Item => ({
  begun: { type: 'reasoning', id: `item_${at}`, summary: [] },
  whole: {
    type: 'reasoning',
    id: `item_${at}`,
    summary: pieces.length === 0 ? [] : [{ type: 'summary_text', text: pieces.join('') }],
    encrypted_content: sealed,
  },
  deltas: pieces.map((delta) => ['response.reasoning_summary_text.delta', { summary_index: 0, delta }]),
})

export const callItem = (at: number, call_id: string, name: string, ...pieces: string[]): Item => {
  const call = { type: 'function_call', id: `item_${at}`, call_id, name }
  return {
    begun: { ...call, status: 'in_progress', arguments: '' },
    whole: { ...call, status: 'completed', arguments: pieces.join('') },
    deltas: pieces.map((delta) => ['response.function_call_arguments.delta', { delta }]),
  }
}

export const customItem = (at: number, call_id: string, name: string, ...pieces: string[]): Item => {
  const call = { type: 'custom_tool_call', id: `item_${at}`, call_id, name }
  return {
    begun: { ...call, status: 'in_progress', input: '' },
    whole: { ...call, status: 'completed', input: pieces.join('') },
    deltas: pieces.map((delta) => ['response.custom_tool_call_input.delta', { delta }]),
  }
}
