// The fake upstream's replies as ready bytes, in the shapes and sizes that real providers send: a JSON reply of about
// 1 KB and stream events of about 250 bytes. Built once; serving must not cost more than a write.

import type { Surface } from './cells.ts'

/** How every piece of text in a stream begins; what comes before the first is form, which a gateway may keep back. */
export const TOKEN = ' word'

/** The fake upstream's name for its model; contenders put their own name in its place. */
export const UPSTREAM_MODEL = 'fake-large-2026-01-15'

const TEXT =
  'A gateway stands between many clients and many providers. It reads what it must, changes what it has to, and hands on everything else untouched. ' +
  'What it adds to a request should be small enough to be lost in the noise of the network; what it adds to a bill should be exact to the last digit. '

/** A prompt with this word is refused as the caller's fault. */
export const REFUSED = '[refused]'

export function refusal(): Buffer {
  const body = JSON.stringify({ error: { message: 'No.', type: 'invalid_request_error', param: null, code: null } })
  const head = `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  return Buffer.from(`${head}\r\n\r\n${body}`)
}

export function jsonReply(surface: Surface): Buffer {
  const body = JSON.stringify(REPLIES[surface]())
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

/** The writes of one stream, each to be sent on its own; the head travels with the first event. */
export function streamReply(surface: Surface, events: number, eventBytes = 0): Buffer[] {
  const word = (index: number) => (eventBytes > 0 ? 'x'.repeat(eventBytes) : `${TOKEN}${index}`)
  const texts = STREAMS[surface](events, word)
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
  return texts.map((text, index) => {
    const chunk = `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
    const last = index === texts.length - 1 ? '0\r\n\r\n' : ''
    return Buffer.from((index === 0 ? head : '') + chunk + last)
  })
}

function chatReply(): object {
  return {
    id: 'chatcmpl-BxQ2mZ7vKcT4eYw9LrUj3nPaSdFgH',
    object: 'chat.completion',
    created: 1_768_435_200,
    model: UPSTREAM_MODEL,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: TEXT + TEXT, refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: CHAT_USAGE,
    service_tier: 'default',
    system_fingerprint: 'fp_b376dfbbd5',
  }
}

const CHAT_USAGE = {
  prompt_tokens: 220,
  completion_tokens: 100,
  total_tokens: 320,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
}

/** Content chunks, the finish, the usage and `[DONE]`: `count` events in all. */
function chatStream(count: number, word: (index: number) => string): string[] {
  const chunk = (choices: object[], usage: object | null) =>
    `data: ${JSON.stringify({
      id: 'chatcmpl-BxQ2mZ7vKcT4eYw9LrUj3nPaSdFgH',
      object: 'chat.completion.chunk',
      created: 1_768_435_200,
      model: UPSTREAM_MODEL,
      system_fingerprint: 'fp_b376dfbbd5',
      choices,
      usage,
    })}\n\n`
  const events: string[] = []
  for (let index = 0; index < count - 3; index++) {
    const delta = index === 0 ? { role: 'assistant', content: '' } : { content: word(index) }
    events.push(chunk([{ index: 0, delta, logprobs: null, finish_reason: null }], null))
  }
  events.push(chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }], null))
  events.push(chunk([], CHAT_USAGE))
  events.push('data: [DONE]\n\n')
  return events
}

function messagesReply(): object {
  return {
    id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
    type: 'message',
    role: 'assistant',
    model: UPSTREAM_MODEL,
    content: [{ type: 'text', text: TEXT + TEXT }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 220, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 100 },
  }
}

function messagesStream(count: number, word: (index: number) => string): string[] {
  const event = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  const opening = { ...messagesReply(), content: [], stop_reason: null }
  const events = [
    event('message_start', { message: opening }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  ]
  for (let index = 0; index < count - 5; index++) {
    const delta = { type: 'text_delta', text: word(index) }
    events.push(event('content_block_delta', { index: 0, delta }))
  }
  events.push(event('content_block_stop', { index: 0 }))
  events.push(
    event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 100 } }),
  )
  events.push(event('message_stop', {}))
  return events
}

const RESPONSES_ID = 'resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b'
const RESPONSES_ITEM = 'msg_67ccd2bf17f0819081ff3bb2cf6508e60bb6a6b452d3795b'

function responsesReply(text = TEXT + TEXT): object {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
  return {
    id: RESPONSES_ID,
    object: 'response',
    created_at: 1_768_435_200,
    status: 'completed',
    error: null,
    incomplete_details: null,
    instructions: null,
    model: UPSTREAM_MODEL,
    output: [{ type: 'message', id: RESPONSES_ITEM, status: 'completed', role: 'assistant', content }],
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    usage: {
      input_tokens: 220,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 100,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 320,
    },
  }
}

/** Four events before the text and four behind it: `count` in all. */
function responsesStream(count: number, word: (index: number) => string): string[] {
  const events: string[] = []
  const add = (type: string, fields: object): void => {
    events.push(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: events.length, ...fields })}\n\n`)
  }
  const place = { item_id: RESPONSES_ITEM, output_index: 0, content_index: 0 }
  const words = Array.from({ length: count - 8 }, (_, index) => word(index))
  const text = words.join('')
  const begun = { ...responsesReply(), status: 'in_progress', output: [], usage: null }
  const item = { type: 'message', id: RESPONSES_ITEM, role: 'assistant' }
  const part = { type: 'output_text', annotations: [], logprobs: [] }
  add('response.created', { response: begun })
  add('response.in_progress', { response: begun })
  add('response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress', content: [] } })
  add('response.content_part.added', { ...place, part: { ...part, text: '' } })
  for (const delta of words) add('response.output_text.delta', { ...place, delta, logprobs: [] })
  add('response.output_text.done', { ...place, text, logprobs: [] })
  add('response.content_part.done', { ...place, part: { ...part, text } })
  const done = { ...item, status: 'completed', content: [{ ...part, text }] }
  add('response.output_item.done', { output_index: 0, item: done })
  add('response.completed', { response: responsesReply(text) })
  return events
}

const REPLIES: Record<Surface, () => object> = {
  chat: chatReply,
  messages: messagesReply,
  responses: () => responsesReply(),
}
const STREAMS: Record<Surface, (count: number, word: (index: number) => string) => string[]> = {
  chat: chatStream,
  messages: messagesStream,
  responses: responsesStream,
}
