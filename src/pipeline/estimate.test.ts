import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { conversation, user } from '../../test/parts/translation.ts'
import { createPrice, priceUsage } from '../catalog/price.ts'
import { anthropicMessages } from '../dialects/anthropic-messages/index.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import {
  audioTokens,
  boundedInputTokens,
  countTokens,
  countTokensInChunks,
  expectedInputTokens,
  hasCacheMark,
  InputRatios,
  maxReportedInput,
  mayHaveAudio,
  mayNameRegion,
} from './estimate.ts'
import { affordableCap, type HoldFacts, holdAmount, requiredFree, smallestCap } from './hold.ts'

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
  boundedInputTokens(body, conversation, unknownContext)

/** Forty thousand characters that begin like a picture. */
const base64 = `iVBORw0KGgo${'A'.repeat(39_989)}`
const url = 'https://pictures.test/a'
const image = (source: object) => ({ type: 'image', source })
const inlineImage = image({ type: 'base64', media_type: 'image/png', data: base64 })
const textThatImitates = `data:image/png;base64,${base64}`

function toolResultBody(content: unknown, input: object = {}) {
  const messages = [
    { role: 'user', content: 'look' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] },
  ]
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  return parsed(anthropicMessages, { model: 'a/b', max_tokens: 9, messages, tools })
}

interface Counted {
  /** Characters of the body that are not counted as text. */
  readonly media: number
  readonly expected: number
  readonly bound: number
  /** The most that a provider may report; undefined = what fits into any context window. */
  readonly reported: number | undefined
}
const asText: Counted = { media: 0, expected: 0, bound: 0, reported: 0 }
const asImage: Counted = { media: 0, expected: 5000, bound: 5000, reported: 40_000 }
const asDocument: Counted = { media: 0, expected: 300_000, bound: 300_000, reported: undefined }
const inline = { ...asImage, media: base64.length }

test.each<[what: string, asked: ReturnType<typeof chatBody>, counted: Counted]>([
  ['text', chatBody('hi'), asText],
  ['an image in chat', chatBody([{ type: 'image_url', image_url: { url: textThatImitates } }]), inline],
  ['an image in messages', messagesBody([inlineImage]), inline],
  ['an image in a tool result', toolResultBody([inlineImage]), inline],
  ['an image behind a URL in chat', chatBody([{ type: 'image_url', image_url: { url } }]), asImage],
  ['an image behind a URL in messages', messagesBody([image({ type: 'url', url })]), asImage],
  ['a document behind a URL', messagesBody([{ type: 'document', source: { type: 'url', url } }]), asDocument],
  ['text that imitates an image in chat', chatBody(textThatImitates), asText],
  ['text that imitates an image', messagesBody([{ type: 'text', text: textThatImitates }]), asText],
  ['two texts that imitate one', messagesBody(['base64', base64].map((text) => ({ type: 'text', text }))), asText],
  ['JSON in a text', messagesBody([{ type: 'text', text: `"type":"base64","data":"${base64}"` }]), asText],
  ['the input of a tool', toolResultBody('ok', { type: 'base64', data: textThatImitates }), asText],
])('%s is counted at four bytes a token, bounded at one, and media by their kind', (_, asked, counted) => {
  const bytes = asked.body.length - counted.media
  expect(rough(asked)).toBe(Math.ceil(bytes / 4) + counted.expected)
  expect(strict(asked)).toBe(bytes + 1024 + counted.bound)
  const most = counted.reported === undefined ? 1_048_576 : bytes + 4096 + counted.reported
  expect(maxReportedInput(asked.body, () => asked.conversation, unknownContext)).toBe(most)
})

const rough = ({ body, conversation }: { body: Uint8Array; conversation: Conversation }): number =>
  expectedInputTokens(body, 1, () => conversation, unknownContext)

describe('expectedInputTokens', () => {
  const unread = (): never => {
    throw new Error('must not be parsed')
  }

  test('counts four bytes as a token, times the model’s ratio, without parsing', () => {
    const plain = { ...chatBody('hi'), body: new Uint8Array(1001) }
    expect(expectedInputTokens(new Uint8Array(1000), 1, unread, unknownContext)).toBe(250)
    expect(expectedInputTokens(plain.body, 1.5, unread, unknownContext)).toBe(376)
    expect(expectedInputTokens(plain.body, 1.5, unread, { contextTokens: 300 })).toBe(300)
  })

  test('does not parse a body because a tool has a parameter named url', () => {
    const schema = { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] }
    const { body } = messagesBody('hi', { tools: [{ name: 'fetch', input_schema: schema }] })
    expect(expectedInputTokens(body, 1, unread, unknownContext)).toBe(Math.ceil(body.length / 4))
  })

  test('counts a document by its size', () => {
    const source = { type: 'base64', media_type: 'application/pdf', data: base64 }
    const asked = messagesBody([{ type: 'document', source }])
    expect(rough(asked)).toBe(Math.ceil((asked.body.length - base64.length) / 4) + 4000)
  })

  test('counts audio by its length, times four for models that count more', () => {
    const sound = `UklGR${'A'.repeat(1_999_995)}`
    const asked = chatBody([{ type: 'input_audio', input_audio: { data: sound, format: 'wav' } }])
    // A token for about a thousand bytes, which are four thirds as many characters: 1,500 of two million, times four.
    expect(rough(asked)).toBe(Math.ceil((asked.body.length - sound.length) / 4) + 4 * 1500)
  })

  test('mayHaveAudio is true for audio, video and unknown content only', () => {
    const data = (media_type: string) => ({ type: 'document', source: { type: 'base64', media_type, data: base64 } })
    const hasAudio = (asked: { conversation: Conversation }) => mayHaveAudio(asked.conversation)
    expect(hasAudio(chatBody([{ type: 'input_audio', input_audio: { data: 'UklGRAAA', format: 'wav' } }]))).toBe(true)
    expect(hasAudio(messagesBody([{ type: 'document', source: { type: 'url', url } }]))).toBe(true)
    expect(mayHaveAudio(undefined)).toBe(true)
    expect(hasAudio(messagesBody([data('application/pdf')]))).toBe(false)
    expect(hasAudio(messagesBody([{ type: 'image', source: { type: 'url', url } }]))).toBe(true)
    expect(hasAudio(messagesBody('hi'))).toBe(false)
    const film = { kind: 'document', source: { kind: 'data', mediaType: 'video/mp4', base64 } }
    const turns = [{ role: 'user', blocks: [film] }]
    expect(mayHaveAudio({ ...messagesBody('hi').conversation, turns } as unknown as Conversation)).toBe(true)
  })

  test('finds names that are written with escapes', () => {
    const asked = messagesBody([{ type: 'document', source: { type: 'url', url: 'https://papers.test/a' } }])
    const text = new TextDecoder().decode(asked.body).replace('"type":"url"', '"type":"u\\u0072l"')
    const hidden = new TextEncoder().encode(text)
    expect(expectedInputTokens(hidden, 1, () => asked.conversation, unknownContext)).toBe(
      Math.ceil(hidden.length / 4) + 300_000,
    )
    // Letters beyond ASCII are often written so, and are no reason to read it.
    const accents = new TextEncoder().encode('{"content":"caf\\u00e9 \\u001b"}')
    expect(expectedInputTokens(accents, 1, unread, unknownContext)).toBe(Math.ceil(accents.length / 4))
  })

  test('adds nothing for fields that other dialects do not support', () => {
    const asked = parsed(openaiChat, {
      model: 'a/b',
      logprobs: true,
      n: 2,
      messages: [{ role: 'user', content: 'what is base64 in report_2024.csv?' }],
    })
    expect(expectedInputTokens(asked.body, 1, () => asked.conversation, { contextTokens: 200_000 })).toBe(
      Math.ceil(asked.body.length / 4),
    )
  })

  test('counts a body that is too large to parse as a full context window', () => {
    const body = Buffer.concat([Buffer.from('"base64"'), Buffer.alloc(9_000_000, 'a')])
    expect(expectedInputTokens(body, 1, unread, { contextTokens: 200_000 })).toBe(200_000)
  })

  test('counts content that only the provider reads as a full context window', () => {
    const search = messagesBody('hi', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] })
    expect(expectedInputTokens(search.body, 1, () => search.conversation, { contextTokens: 200_000 })).toBe(200_000)
    expect(expectedInputTokens(search.body, 1, () => undefined, unknownContext)).toBe(search.body.length + 1024)
  })
})

describe('boundedInputTokens', () => {
  test('does not exceed the context window', () => {
    const { body, conversation } = chatBody('x'.repeat(5000))
    expect(boundedInputTokens(body, conversation, { contextTokens: 2000 })).toBe(2000)
  })

  test('counts content that only the provider reads as a full context window', () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    const { body, conversation } = messagesBody('hi', { tools })
    expect(boundedInputTokens(body, conversation, { contextTokens: 200_000 })).toBe(200_000)
    expect(boundedInputTokens(body, undefined, { contextTokens: 200_000 })).toBe(200_000)
    expect(boundedInputTokens(body, undefined, unknownContext)).toBe(body.length + 1024)
  })
})

test('hasCacheMark finds a cache mark anywhere', () => {
  expect(hasCacheMark(encode({ system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] }))).toBe(
    true,
  )
  // OpenAI's names, which become marks for an hour on a model with marks.
  expect(hasCacheMark(encode({ content: [{ prompt_cache_breakpoint: { ttl: '30m' } }] }))).toBe(true)
  expect(hasCacheMark(encode({ prompt_cache_options: { ttl: '30m' } }))).toBe(true)
  expect(hasCacheMark(encode({ prompt_cache_key: 'k' }))).toBe(false)
  // As no writer of JSON spells it, and as one that is careful with HTML spells what is text.
  expect(hasCacheMark(new TextEncoder().encode('{"cache\\u005fcontrol":{}}'))).toBe(true)
  expect(hasCacheMark(new TextEncoder().encode('{"\\u0063ache_control":{}}'))).toBe(true)
  expect(hasCacheMark(new TextEncoder().encode('{"system":"\\u003cb\\u003e \\u0026 \\u00e4"}'))).toBe(false)
  expect(hasCacheMark(encode({ system: 'x' }))).toBe(false)
})

test('mayNameRegion finds a region, also with escapes', () => {
  expect(mayNameRegion(encode({ inference_geo: 'us' }))).toBe(true)
  expect(mayNameRegion(new TextEncoder().encode('{"inference\\u005fgeo":"us"}'))).toBe(true)
  expect(mayNameRegion(encode({ system: 'x' }))).toBe(false)
})

describe('maxReportedInput', () => {
  type Parsed = { readonly body: Uint8Array; readonly conversation: Conversation }
  const most = ({ body, conversation }: Parsed, contextTokens?: number): number =>
    maxReportedInput(body, () => conversation, { contextTokens })
  const added = 4_096

  test('is within the context window', () => {
    expect(most(chatBody('hi'), 1000)).toBe(1000)
  })

  test('is 300,000 tokens for a small document, and the context window for one behind a URL', () => {
    const source = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0x' }
    const small = messagesBody([{ type: 'document', source }])
    expect(most(small)).toBe(small.body.length - 8 + 300_000 + added)
    const distant = messagesBody([{ type: 'document', source: { type: 'url', url: 'https://docs.test/a.pdf' } }])
    expect(most(distant, 200_000)).toBe(200_000)
  })

  test('is the context window if a hosted tool reads', () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    expect(most(messagesBody('hi', { tools }), 200_000)).toBe(200_000)
  })
})

/** A thousand tokens at four bytes each. */
const bodyBytes = 4000

function usage(inputTokens: number, source: Usage['source'] = 'reported'): Usage {
  return { inputTokens, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens: 1, source }
}

test('starts with a ratio of 1.5', () => {
  expect(new InputRatios().of('a/b')).toBe(1.5)
})

test('adopts a higher ratio at once, for this model only', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, usage(2000))
  expect(ratios.of('a/b')).toBe(2)
  expect(ratios.of('a/c')).toBe(1.5)
})

test('lowers the ratio slowly, and never below 1', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, usage(500))
  // 1.5 × 0.999 + 0.5 × 0.001
  expect(ratios.of('a/b')).toBeCloseTo(1.499, 6)
  for (let i = 0; i < 20_000; i++) ratios.learn('a/b', bodyBytes, usage(500))
  expect(ratios.of('a/b')).toBe(1)
})

test('counts cache reads as input', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, { ...usage(500), cacheReadTokens: 1500 })
  expect(ratios.of('a/b')).toBe(2)
})

test('learns nothing from estimates, small bodies or media, and caps the ratio', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, usage(3000, 'estimated'))
  ratios.learn('a/b', 1000, usage(3000))
  const hasMedia = true
  ratios.learn('a/b', bodyBytes, usage(3000), hasMedia)
  expect(ratios.of('a/b')).toBe(1.5)
  ratios.learn('a/b', bodyBytes, usage(900_000))
  expect(ratios.of('a/b')).toBe(4)
})

test('learns from a reported input, also if the answer ended early', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, { ...usage(2000, 'estimated'), inputReported: true })
  expect(ratios.of('a/b')).toBe(2)
})

test('learns nothing from a report of zero', () => {
  const ratios = new InputRatios()
  ratios.learn('a/b', bodyBytes, usage(0))
  expect(ratios.of('a/b')).toBe(1.5)
})

/** Ten seconds, at this many bytes each. */
const tenSeconds = (bytesPerSecond: number) => Math.ceil((bytesPerSecond * 10 * 4) / 3)

test.each([
  ['audio/wav', 32_000],
  ['audio/aiff', 32_000],
  ['audio/mp3', 16_000],
  ['audio/mpeg', 16_000],
  ['audio/ogg', 4_000],
  ['audio/of-tomorrow', 4_000],
])('ten seconds of %s are about 320 tokens', (mediaType, bytesPerSecond) => {
  const tokens = audioTokens(mediaType, tenSeconds(bytesPerSecond))
  expect(Math.abs(tokens - 320)).toBeLessThanOrEqual(1)
})

test('counts audio as audio and a document as a document', () => {
  const counted = (mediaType: string) => {
    // 30,000 bytes.
    const source = { kind: 'data', mediaType, base64: 'A'.repeat(40_000) } as const
    return countTokens(conversation({ turns: [user({ kind: 'document', source })] }))
  }
  const bare = countTokens(conversation({ turns: [user()] }))
  expect(counted('audio/wav') - bare).toBe(30)
  expect(counted('audio/mp3') - bare).toBe(60)
  expect(counted('application/pdf') - bare).toBe(1200)
})

test('countTokensInChunks gives the same count and yields in between', async () => {
  const text = 'one two three four '.repeat(60_000)
  const schema = JSON.stringify({ type: 'object', description: text })
  const large = conversation({
    system: [{ kind: 'text', text: 'short' }],
    turns: [user({ kind: 'text', text }, { kind: 'text', text: 'five' })],
    tools: [{ kind: 'function', name: 'f', description: 'g', schema, strict: undefined }],
  })
  let turns = 0
  let isCounting = true
  const next = (): void => {
    turns++
    if (isCounting) setImmediate(next)
  }
  setImmediate(next)
  const tokens = await countTokensInChunks(large)
  isCounting = false
  // A word may be cut at each of eight borders.
  expect(Math.abs(tokens - countTokens(large))).toBeLessThanOrEqual(8)
  expect(turns).toBeGreaterThanOrEqual(8)
})

/** One nano-dollar in, ten out. */
const price = createPrice({ input: 1000n as Pico, output: 10_000n as Pico })
const facts: HoldFacts = {
  price,
  cap: 20_000,
  choices: 1,
  without: [],
  holdsWholeCap: false,
  minCap: 0,
}
const whole: HoldFacts = { ...facts, holdsWholeCap: true }

describe('holdAmount', () => {
  test('covers 4,096 output tokens of a stream, or the cap', () => {
    expect(holdAmount(facts, 100, 20_000)).toMatchObject({ amount: 100n + 40_960n, outputTokens: 4096, cap: 20_000 })
    expect(holdAmount(facts, 100, 7)).toMatchObject({ amount: 170n, outputTokens: 7 })
  })

  test('covers the whole cap of an unstreamed answer', () => {
    expect(holdAmount(whole, 100, 20_000).amount).toBe(200_100n as Nano)
  })

  test('has the output of all choices and the input once', () => {
    expect(holdAmount({ ...whole, choices: 3 }, 100, 7)).toMatchObject({ amount: 310n, outputTokens: 21, cap: 7 })
  })
})

describe('requiredFree', () => {
  test('is twice the hold, in case the estimate is wrong', () => {
    expect(requiredFree(holdAmount(facts, 100, 5000))).toBe(82_120n as Nano)
  })

  test('is the price of the whole answer if that is more', () => {
    expect(requiredFree(holdAmount(facts, 100, 20_000))).toBe(200_100n as Nano)
  })
})

describe('a cap on a low balance', () => {
  test('is what the balance pays for, to the last nano-dollar', () => {
    expect(affordableCap(whole, 100, 3_100n as Nano)).toBe(300)
    expect(affordableCap(whole, 100, 3_099n as Nano)).toBe(299)
    expect(affordableCap({ ...whole, choices: 2 }, 100, 6_119n as Nano)).toBe(300)
    expect(affordableCap({ ...whole, cap: 200 }, 100, 3_100n as Nano)).toBe(200)
  })

  test('is -1 if the balance does not pay for the prompt', () => {
    expect(affordableCap(whole, 100, 100n as Nano)).toBe(0)
    expect(affordableCap(whole, 100, 99n as Nano)).toBe(-1)
  })

  test('is at least 256 tokens, or as many as requested, and what must not be lowered', () => {
    expect(smallestCap(whole)).toBe(256)
    expect(smallestCap({ ...whole, cap: 7 })).toBe(7)
    expect(smallestCap({ ...whole, minCap: 1025 })).toBe(1025)
    expect(smallestCap({ ...whole, minCap: Number.POSITIVE_INFINITY })).toBe(20_000)
  })

  test('costs less where a part of the prompt is cached', () => {
    const cheap = createPrice({ input: 1000n as Pico, output: 10_000n as Pico, cache_read: 100n as Pico })
    // 40 tokens at the price of input, 60 at a tenth of it, and 10 out
    expect(holdAmount({ ...whole, price: cheap, cachedTokens: 60 }, 100, 10).amount).toBe(146n as Nano)
    expect(holdAmount({ ...whole, price: cheap, cachedTokens: 600 }, 100, 10).amount).toBe(110n as Nano)
  })
})

test('no usage within bound and cap costs more than the hold', () => {
  const pico = fc.bigInt(0n, 20_000_000n).map((value) => value as Pico)
  const row = fc.record({ input: pico, output: pico, cache_read: pico, cache_write: pico, cache_write_1h: pico })
  const anyPrice = fc.record({ base: row, tier: row, over: fc.integer({ min: 1, max: 2000 }) })
  const share = fc.array(fc.nat(1000), { minLength: 4, maxLength: 4 })
  fc.assert(
    fc.property(
      anyPrice,
      share,
      fc.nat(5000),
      fc.nat(500),
      fc.boolean(),
      ({ base, tier, over }, shares, bound, cap, isMarked) => {
        const dear = createPrice(base, { [over]: tier })
        const [input = 0, read = 0, write = 0, long = 0] = withinBound(shares, bound)
        const usage = {
          inputTokens: input + (isMarked ? 0 : long),
          cacheReadTokens: read,
          cacheWriteTokens: write,
          cacheWriteLongTokens: isMarked ? long : 0,
          outputTokens: cap,
          source: 'reported',
        } as const
        const hold = holdAmount({ ...whole, price: dear, without: isMarked ? [] : ['cache_write_1h'] }, bound, cap)
        expect(priceUsage(dear, usage)).toBeLessThanOrEqual(hold.amount)
      },
    ),
  )
})

/** Counts that come to no more than the bound together. */
function withinBound(counts: readonly number[], bound: number): number[] {
  let left = bound
  return counts.map((count) => {
    const taken = Math.min(count, left)
    left -= taken
    return taken
  })
}
