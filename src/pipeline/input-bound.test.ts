import { describe, expect, test } from 'bun:test'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure } from '../kernel/failure.ts'
import {
  hasCacheMark,
  inputTokensMost,
  mayHaveSound,
  mayNamePlace,
  roughInputTokens,
  strictInputTokens,
} from './input-bound.ts'

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

const rough = ({ body, conversation }: { body: Uint8Array; conversation: Conversation }): number =>
  roughInputTokens(body, 1, () => conversation, unknownContext)

describe('roughly', () => {
  const unread = (): never => {
    throw new Error('nobody should read it')
  }

  test('four bytes are a token, times what the model makes of it; nothing is read for that', () => {
    const plain = { ...chatBody('hi'), body: new Uint8Array(1001) }
    expect(roughInputTokens(new Uint8Array(1000), 1, unread, unknownContext)).toBe(250)
    expect(roughInputTokens(plain.body, 1.5, unread, unknownContext)).toBe(376)
    expect(roughInputTokens(plain.body, 1.5, unread, { contextTokens: 300 })).toBe(300)
  })

  test('tools with a parameter that is called url are no reason to read it', () => {
    const schema = { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] }
    const { body } = messagesBody('hi', { tools: [{ name: 'fetch', input_schema: schema }] })
    expect(roughInputTokens(body, 1, unread, unknownContext)).toBe(Math.ceil(body.length / 4))
  })

  test.each(Object.entries(pictures))('%s counts as one, whatever its size', (_, make) => {
    const asked = make()
    expect(rough(asked)).toBe(Math.ceil((asked.body.length - base64.length) / 4) + 5000)
  })

  test('a document counts by its size', () => {
    const source = { type: 'base64', media_type: 'application/pdf', data: base64 }
    const asked = messagesBody([{ type: 'document', source }])
    expect(rough(asked)).toBe(Math.ceil((asked.body.length - base64.length) / 4) + 4000)
  })

  test('sound counts by its length, with room for models that hear more in it', () => {
    const sound = `UklGR${'A'.repeat(1_999_995)}`
    const asked = chatBody([{ type: 'input_audio', input_audio: { data: sound, format: 'wav' } }])
    // A token for about a thousand bytes, which are four thirds as many characters: 1,500 of two million, times four.
    expect(rough(asked)).toBe(Math.ceil((asked.body.length - sound.length) / 4) + 4 * 1500)
  })

  test('something may be heard in sound, in films and in what nobody knows, and in nothing else', () => {
    const data = (media_type: string) => ({ type: 'document', source: { type: 'base64', media_type, data: base64 } })
    const heard = (asked: { conversation: Conversation }) => mayHaveSound(asked.conversation)
    expect(heard(chatBody([{ type: 'input_audio', input_audio: { data: 'UklGRAAA', format: 'wav' } }]))).toBe(true)
    const url = 'https://documents.test/1'
    expect(heard(messagesBody([{ type: 'document', source: { type: 'url', url } }]))).toBe(true)
    expect(mayHaveSound(undefined)).toBe(true)
    expect(heard(messagesBody([data('application/pdf')]))).toBe(false)
    expect(heard(messagesBody([{ type: 'image', source: { type: 'url', url } }]))).toBe(true)
    expect(heard(messagesBody('hi'))).toBe(false)
    const film = { kind: 'document', source: { kind: 'data', mediaType: 'video/mp4', base64 } }
    const turns = [{ role: 'user', blocks: [film] }]
    expect(mayHaveSound({ ...messagesBody('hi').conversation, turns } as unknown as Conversation)).toBe(true)
  })

  test('a picture and a document by address count as the most they may be', () => {
    const url = 'https://pictures.test/a'
    const picture = messagesBody([{ type: 'image', source: { type: 'url', url } }])
    expect(rough(picture)).toBe(Math.ceil(picture.body.length / 4) + 5000)
    const chat = chatBody([{ type: 'image_url', image_url: { url } }])
    expect(rough(chat)).toBe(Math.ceil(chat.body.length / 4) + 5000)
    const document = messagesBody([{ type: 'document', source: { type: 'url', url } }])
    expect(rough(document)).toBe(Math.ceil(document.body.length / 4) + 300_000)
  })

  test('text that looks like a picture is text', () => {
    const prose = `data:image/png;base64,${'all about the case '.repeat(2000)}`
    for (const asked of [chatBody(prose), messagesBody([{ type: 'text', text: prose }])]) {
      expect(rough(asked)).toBe(Math.ceil(asked.body.length / 4))
    }
    const call = { type: 'tool_use', id: 't', name: 'n', input: { type: 'base64', data: prose } }
    const turns = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [call] },
    ]
    const results = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'ok' }] }
    const asked = parsed(anthropicMessages, { model: 'a/b', max_tokens: 9, messages: [...turns, results] })
    expect(rough(asked)).toBe(Math.ceil(asked.body.length / 4))
  })

  test('a name that is written with escapes hides nothing', () => {
    const asked = messagesBody([{ type: 'document', source: { type: 'url', url: 'https://papers.test/a' } }])
    const text = new TextDecoder().decode(asked.body).replace('"type":"url"', '"type":"u\\u0072l"')
    const hidden = new TextEncoder().encode(text)
    expect(roughInputTokens(hidden, 1, () => asked.conversation, unknownContext)).toBe(
      Math.ceil(hidden.length / 4) + 300_000,
    )
    // Letters beyond ASCII are often written so, and are no reason to read it.
    const accents = new TextEncoder().encode('{"content":"caf\\u00e9 \\u001b"}')
    expect(roughInputTokens(accents, 1, unread, unknownContext)).toBe(Math.ceil(accents.length / 4))
  })

  test('what other dialects cannot carry adds nothing to the input by that', () => {
    const asked = parsed(openaiChat, {
      model: 'a/b',
      logprobs: true,
      n: 2,
      messages: [{ role: 'user', content: 'what is base64 in report_2024.csv?' }],
    })
    expect(roughInputTokens(asked.body, 1, () => asked.conversation, { contextTokens: 200_000 })).toBe(
      Math.ceil(asked.body.length / 4),
    )
  })

  test('a body that would take long to read counts as all that fits, unread', () => {
    const body = Buffer.concat([Buffer.from('"base64"'), Buffer.alloc(9_000_000, 'a')])
    expect(roughInputTokens(body, 1, unread, { contextTokens: 200_000 })).toBe(200_000)
  })

  test('what only the provider can read counts as all that fits', () => {
    const search = messagesBody('hi', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] })
    expect(roughInputTokens(search.body, 1, () => search.conversation, { contextTokens: 200_000 })).toBe(200_000)
    expect(roughInputTokens(search.body, 1, () => undefined, unknownContext)).toBe(search.body.length + 1024)
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
  // As no writer of JSON spells it, and as one that is careful with HTML spells what is text.
  expect(hasCacheMark(new TextEncoder().encode('{"cache\\u005fcontrol":{}}'))).toBe(true)
  expect(hasCacheMark(new TextEncoder().encode('{"\\u0063ache_control":{}}'))).toBe(true)
  expect(hasCacheMark(new TextEncoder().encode('{"system":"\\u003cb\\u003e \\u0026 \\u00e4"}'))).toBe(false)
  expect(hasCacheMark(encode({ system: 'x' }))).toBe(false)
})

test('a place for the work is found, however it is written', () => {
  expect(mayNamePlace(encode({ inference_geo: 'us' }))).toBe(true)
  expect(mayNamePlace(new TextEncoder().encode('{"inference\\u005fgeo":"us"}'))).toBe(true)
  expect(mayNamePlace(encode({ system: 'x' }))).toBe(false)
})

describe('the most that a provider can report', () => {
  type Parsed = { readonly body: Uint8Array; readonly conversation: Conversation }
  const most = ({ body, conversation }: Parsed, contextTokens?: number): number =>
    inputTokensMost(body, () => conversation, { contextTokens })
  const added = 4_096

  test('is one token for each byte and what providers add, within the context window', () => {
    const plain = chatBody('hi')
    expect(most(plain)).toBe(plain.body.length + added)
    expect(most(plain, 1000)).toBe(1000)
  })

  test.each(Object.entries(pictures))('is 40,000 tokens and not its bytes for %s', (_, make) => {
    const picture = make()
    expect(most(picture)).toBe(picture.body.length - base64.length + 40_000 + added)
  })

  test('is 40,000 tokens for a picture at an address', () => {
    const picture = chatBody([{ type: 'image_url', image_url: { url: 'https://pictures.test/a.png' } }])
    expect(most(picture)).toBe(picture.body.length + 40_000 + added)
  })

  test('is 300,000 tokens for a small document, and the context window for one at an address', () => {
    const source = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0x' }
    const small = messagesBody([{ type: 'document', source }])
    expect(most(small)).toBe(small.body.length - 8 + 300_000 + added)
    const distant = messagesBody([{ type: 'document', source: { type: 'url', url: 'https://docs.test/a.pdf' } }])
    expect(most(distant, 200_000)).toBe(200_000)
    expect(most(distant)).toBe(1_048_576)
  })

  test('is the context window where a tool of the provider reads', () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    expect(most(messagesBody('hi', { tools }), 200_000)).toBe(200_000)
  })
})
