import { describe, expect, test } from 'bun:test'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure } from '../kernel/failure.ts'
import { hasCacheMark, roughInputTokens, strictInputTokens } from './input-bound.ts'

const encode = (value: unknown): Uint8Array<ArrayBuffer> => new TextEncoder().encode(JSON.stringify(value))

/** A chat body with this content, and what is read of it. */
function chatBody(content: unknown) {
  return parsed(openaiChat, { model: 'a/b', messages: [{ role: 'user', content }] })
}

function messagesBody(content: unknown, more: object = {}) {
  return parsed(anthropicMessages, { model: 'a/b', max_tokens: 9, messages: [{ role: 'user', content }], ...more })
}

function parsed(dialect: typeof openaiChat, value: object): { body: Uint8Array; conversation: Conversation } {
  const body = encode(value)
  const envelope = dialect.readEnvelope(body, new Headers({ 'anthropic-version': '2023-06-01' }))
  if (envelope instanceof Failure) throw new Error(envelope.message)
  const request = dialect.translation.parseRequest(envelope)
  if (request instanceof Failure) throw new Error(request.message)
  return { body, conversation: request.conversation }
}

const unknownContext = { contextTokens: undefined }
const strict = ({ body, conversation }: { body: Uint8Array; conversation: Conversation }): number =>
  strictInputTokens(body, conversation, unknownContext)

/** Forty thousand characters that begin like a picture. */
const base64 = `iVBORw0KGgo${'A'.repeat(39_989)}`
const pictures = {
  'a picture on the chat surface': () =>
    chatBody([{ type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }]),
  'a picture on the message surface': () =>
    messagesBody([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } }]),
}

describe('roughly', () => {
  test('four bytes are a token, times what the model makes of it', () => {
    expect(roughInputTokens(new Uint8Array(1000), 1)).toBe(250)
    expect(roughInputTokens(new Uint8Array(1001), 1.5)).toBe(376)
  })

  test.each(Object.entries(pictures))('%s counts as one, whatever its size', (_, make) => {
    const { body } = make()
    expect(roughInputTokens(body, 1)).toBe(Math.ceil((body.length - base64.length) / 4) + 5000)
  })

  test('a document counts by its size', () => {
    const source = { type: 'base64', media_type: 'application/pdf', data: base64 }
    const { body } = messagesBody([{ type: 'document', source }])
    expect(roughInputTokens(body, 1)).toBe(Math.ceil((body.length - base64.length) / 4) + 4000)
  })

  test('text that only speaks of base64 is text', () => {
    const { body } = chatBody('the word base64, and "data" behind it')
    expect(roughInputTokens(body, 1)).toBe(Math.ceil(body.length / 4))
  })
})

describe('strictly', () => {
  test('a byte is a token, and there is something around it', () => {
    const asked = chatBody('hi')
    expect(strict(asked)).toBe(asked.body.length + 1024)
  })

  test.each(Object.entries(pictures))('%s counts as one', (_, make) => {
    const asked = make()
    expect(strict(asked)).toBe(asked.body.length - base64.length + 1024 + 5000)
  })

  test('a picture inside a tool result counts as one', () => {
    const content = [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } }]
    const asked = parsed(anthropicMessages, {
      model: 'a/b',
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'look' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] },
      ],
      tools: [{ name: 'look', input_schema: { type: 'object' } }],
    })
    expect(strict(asked)).toBe(asked.body.length - base64.length + 1024 + 5000)
  })

  test('a picture at an address counts like any other', () => {
    const asked = chatBody([{ type: 'image_url', image_url: { url: 'https://pictures.test/1.png' } }])
    expect(strict(asked)).toBe(asked.body.length + 1024 + 5000)
  })

  test('a document at an address may be the largest there is', () => {
    const asked = messagesBody([{ type: 'document', source: { type: 'url', url: 'https://documents.test/1.pdf' } }])
    expect(strict(asked)).toBe(asked.body.length + 1024 + 300_000)
  })

  test('text in the guise of a picture is text', () => {
    const guises = [
      chatBody(`data:image/png;base64,${base64}`),
      messagesBody([
        { type: 'text', text: 'base64' },
        { type: 'text', text: base64 },
      ]),
      messagesBody([{ type: 'text', text: `"type":"base64","data":"${base64}"` }]),
    ]
    for (const asked of guises) expect(strict(asked)).toBe(asked.body.length + 1024)
  })

  test('no prompt is larger than what the model takes', () => {
    const { body, conversation } = chatBody('x'.repeat(5000))
    expect(strictInputTokens(body, conversation, { contextTokens: 2000 })).toBe(2000)
  })

  test('what only its provider can read may be anything that fits', () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    const { body, conversation } = messagesBody('hi', { tools })
    expect(strictInputTokens(body, conversation, { contextTokens: 200_000 })).toBe(200_000)
    expect(strictInputTokens(body, undefined, { contextTokens: 200_000 })).toBe(200_000)
    expect(strictInputTokens(body, undefined, unknownContext)).toBe(body.length + 1024)
  })
})

test('a cache mark is seen wherever it stands', () => {
  expect(hasCacheMark(encode({ system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] }))).toBe(
    true,
  )
  expect(hasCacheMark(encode({ system: 'x' }))).toBe(false)
})
