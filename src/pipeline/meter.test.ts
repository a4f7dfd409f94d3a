import { describe, expect, test } from 'bun:test'
import { received } from '../../test/parts/http.ts'
import { createPrice, sharePrice } from '../catalog/price.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Candidate, OfferedModel } from '../routing/plan.ts'
import { Content } from './content.ts'
import { Exchange } from './exchange.ts'
import { Hold, holdAmount } from './hold.ts'
import { Meter } from './meter.ts'
import type { Held } from './stages.ts'
import { type MeasuredReply, nothingMeasured } from './usage.ts'

/** One nano-dollar in, ten out. */
const price = createPrice({ input: 1000n as Pico, output: 10_000n as Pico })

/** Counts how often the prompt was parsed or read. */
class WatchedContent extends Content {
  reads = 0

  override parsed(): ReturnType<Content['parsed']> {
    this.reads += 1
    return super.parsed()
  }
}

interface Opened {
  readonly text?: string
  /** More members of the body, as JSON. */
  readonly members?: string
  readonly model?: object
  readonly rules?: object
  /** The cap that the wallet pays for. */
  readonly loweredCap?: number
}

const connection = { keepOpen() {}, rearm() {}, drop() {}, address: () => undefined }
const stoppedClock = { now: () => 0, monotonicMs: () => 0 }

function openRequest({ text = 'hi', members = '', model = {}, rules = {}, loweredCap }: Opened = {}) {
  const body = new TextEncoder().encode(
    `{"model":"a/b","messages":[{"role":"user","content":"${text}"}]${members === '' ? '' : `,${members}`}}`,
  )
  const sent = openaiChat.readEnvelope(body, new Headers())
  if (sent instanceof Failure) throw new Error(sent.message)
  const exchange = new Exchange(stoppedClock, received(new Request('http://gateway.test')), openaiChat, '/', connection)
  const noTags = { tag: () => '', isValid: () => false }
  const content = new WatchedContent(sent, openaiChat, [], noTags)
  const offered = { contextTokens: 1000, maxOutputTokens: undefined, price, ...model } as unknown as OfferedModel
  const hold = { loweredCap, reserveQuote: (_: unknown, usage: Usage) => ({ usage }) }
  const held = { exchange, hold, admitted: { envelope: sent.envelope, content, storing: {} } } as unknown as Held
  const meter = new Meter(held, { rules, model: offered } as Candidate)
  return { content, meter, notes: exchange.record.notes }
}

const reported = (inputTokens: number, outputTokens: number): Usage => ({
  ...{ inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0 },
  source: 'reported',
})
const measured = (more: Partial<MeasuredReply>): MeasuredReply => ({
  ...nothingMeasured,
  outputBytes: 100,
  ...more,
})

describe('usage', () => {
  test('is estimated from one count of the prompt and noted once if every chunk reports zero', () => {
    const { content, meter, notes } = openRequest()
    const estimates = [4, 8, 12].map((bytes) => meter.quoteUsage(reported(0, 0), undefined, () => bytes))
    expect(estimates).toMatchObject([1, 2, 3].map((outputTokens) => ({ inputTokens: 8, outputTokens })))
    expect(content.reads).toBe(1)
    expect(notes).toEqual([
      'implausible usage: the provider reported no input or no output tokens, although the answer has content; an estimate was charged instead',
    ])
  })

  test('is estimated from the report at the start, and from nothing of the last one, if that is implausible', () => {
    const { meter, notes } = openRequest()
    const final = { ...reported(190_000, 7), audioInputTokens: 3, audioOutputTokens: 2 }
    const estimate = { ...reported(3, 2), inputReported: true, source: 'estimated' } as const
    expect(meter.quoteUsage(final, reported(3, 1), () => 8)).toEqual(estimate)
    expect(notes).toHaveLength(1)
  })

  test('takes the input at the start, with its parts, if the last report counts none', () => {
    const { meter } = openRequest()
    const atStart = { ...reported(3, 1), audioInputTokens: 2 }
    const estimate = { ...atStart, outputTokens: 7, inputReported: true, source: 'estimated' } as const
    expect(meter.quoteUsage(reported(0, 7), atStart, () => 4)).toEqual(estimate)
  })

  test('is not noted as implausible if the last report is plausible', () => {
    const { meter, notes } = openRequest()
    notes.push('another note')
    meter.quoteUsage(reported(190_000, 7), undefined, () => 4)
    expect(notes).toHaveLength(2)
    expect(meter.quoteUsage(reported(3, 7), undefined, () => 4)).toEqual(reported(3, 7))
    expect(notes).toEqual(['another note'])
  })

  test.each<[name: string, more: Partial<MeasuredReply>, counts: Partial<Usage>]>([
    ['estimated if nothing was reported', {}, { inputTokens: 8, outputTokens: 25 }],
    [
      'the input at the start',
      { usageSoFar: reported(3, 1) },
      { inputTokens: 3, outputTokens: 25, inputReported: true },
    ],
    [
      'a count of everything relayed, unchanged',
      { usageSoFar: reported(3, 7), bytesAtReport: 100 },
      { inputTokens: 3, outputTokens: 7, source: 'reported' },
    ],
    [
      'a count plus an estimate of what was relayed since',
      { usageSoFar: reported(3, 7), bytesAtReport: 60 },
      { inputTokens: 3, outputTokens: 17, inputReported: true, source: 'estimated' },
    ],
    [
      'only the input of a count without output, if there was output',
      { usageSoFar: reported(3, 0), bytesAtReport: 60 },
      { inputTokens: 3, outputTokens: 25, inputReported: true },
    ],
    ['not a count of zeros before any output', { usage: reported(0, 0), bytesAtReport: 0 }, { inputTokens: 8 }],
    [
      'the input of a count before any output',
      { usage: reported(3, 0), bytesAtReport: 0 },
      { inputTokens: 3, outputTokens: 25, inputReported: true },
    ],
    [
      'not an implausible count',
      { usageSoFar: reported(9_999, 7), bytesAtReport: 100 },
      { inputTokens: 8, outputTokens: 25 },
    ],
  ])('of an answer that ended early is %s', (_, more, counts) => {
    expect(openRequest().meter.usageOfPart(measured(more))).toMatchObject(counts)
  })

  test('is the quoted one for an answer that ended early, if there is one', () => {
    const usage = reported(3, 7)
    const more = { usage, usageSoFar: reported(2, 2), bytesAtReport: 100 }
    expect(openRequest().meter.usageOfPart(measured(more))).toBe(usage)
  })

  const capped = '"max_tokens":100'
  test.each<[name: string, opened: Opened, max: number]>([
    ['the cap and its tolerance', { members: capped }, 116],
    ['the cap for each of three choices', { members: `${capped},"n":3` }, 348],
    ['the cap that the wallet pays for', { members: capped, loweredCap: 50 }, 66],
    ["the model's maximum, if lower", { members: capped, model: { maxOutputTokens: 40 } }, 56],
    ["the model's default", { model: { defaultMaxTokens: 400, maxOutputTokens: 8000 } }, 420],
    [
      "the model's maximum, if reasoning is not part of the cap",
      { members: capped, model: { maxOutputTokens: 8000 }, rules: { capExcludesReasoning: true } },
      8400,
    ],
    ['32,768 and 5 % without any cap', {}, 34_407],
  ])('accepts as output at most %s', (_, opened, max) => {
    const { meter } = openRequest(opened)
    const judged = (output: number) => meter.quoteUsage(reported(3, output), undefined, () => 4)
    expect(judged(max)).toEqual(reported(3, max))
    // The prompt is eight tokens, and four bytes are one.
    expect(judged(max + 1)).toMatchObject({ inputTokens: 8, outputTokens: 1, source: 'estimated' })
  })

  test('accepts as many output tokens as bytes if no cap was sent', () => {
    const { meter } = openRequest()
    expect(meter.quoteUsage(reported(3, 50_000), undefined, () => 50_000).source).toBe('reported')
    expect(meter.quoteUsage(reported(3, 50_001), undefined, () => 50_000).source).toBe('estimated')
  })
})

describe('releaseBody', () => {
  const long = 'a word or two '.repeat(6_000)
  const start = measured({ usageSoFar: reported(900, 1), outputBytes: 4 })

  test('drops a long body whose tokens are known, and keeps the numbers derived from it', () => {
    const { content, meter } = openRequest({ text: long })
    const { bodyBytes, mayHaveMoreThanText } = content
    meter.releaseBody(start, 'bytes')
    expect([content.body.length, content.bodyBytes, content.mayHaveMoreThanText]).toEqual([
      0,
      bodyBytes,
      mayHaveMoreThanText,
    ])
    expect(meter.usageOfPart(measured({}))).toMatchObject({ inputTokens: 900, outputTokens: 25, source: 'estimated' })
    expect(meter.quoteUsage(reported(0, 0), undefined, () => 4)).toMatchObject({
      inputTokens: 900,
      outputTokens: 1,
    })
    expect(content.reads).toBe(0)
  })

  test('keeps the bounds of plausible usage', () => {
    const { content, meter } = openRequest({ text: long, model: { contextTokens: undefined } })
    const max = content.bodyBytes + 4_096
    meter.releaseBody(start, 'bytes')
    expect(meter.quoteUsage(reported(max, 1), undefined, () => 4).source).toBe('reported')
    expect(meter.quoteUsage(reported(max + 1, 1), undefined, () => 4).source).toBe('estimated')
  })

  test('counts the prompt of a translated request first', () => {
    const { content, meter } = openRequest({ text: long })
    meter.releaseBody(measured({ outputBytes: 4 }), 'translation')
    expect([content.body.length, content.reads]).toEqual([0, 1])
  })

  test.each([
    ['a short body', 'hi', reported(900, 1)],
    ['a body whose tokens are not known yet', long, undefined],
    ['a body with an implausible count', long, reported(9_999_999, 1)],
  ])('keeps %s', (_, text, usageSoFar) => {
    const { content, meter } = openRequest({ text })
    meter.releaseBody(measured({ usageSoFar, outputBytes: 4 }), 'bytes')
    expect(content.body.length).toBe(content.bodyBytes)
  })
})

describe('a charge', () => {
  const facts = {
    ...{ price, cap: 100, choices: 1, holdsWholeCap: true, minCap: 0 },
    ...{ isUsOnly: false, units: undefined, without: [] },
  }
  const hold = new Hold(
    'req_1',
    {} as never,
    facts,
    holdAmount(facts, 100, facts.cap),
    undefined,
    {} as never,
    {} as never,
  )
  const exchange = { record: {} }
  const held = { exchange, hold, admitted: { content: {}, storing: {} } } as unknown as Held
  const seen = reported(100, 10)
  const model = { id: 'a/b', price, priceVersion: 'v1' } as OfferedModel
  const own = { price: sharePrice(price, 500n), version: 'v1-own' }

  test.each<[name: string, candidate: Pick<Candidate, 'model' | 'isOwn'>, quoted: bigint, version: string | undefined]>(
    [
      ['is the price of the model', { model, isOwn: false }, 200n, 'v1'],
      ["is nothing on the workspace's own credential", { model, isOwn: true }, 0n, undefined],
      ['is the fee there, with its own price version', { model: { ...model, fee: own }, isOwn: true }, 10n, 'v1-own'],
    ],
  )('%s', (_, candidate, quoted, version) => {
    const meter = new Meter(held, candidate as Candidate)
    expect(meter.quote(seen).quoted).toBe(quoted as Nano)
    expect(meter.priceVersion).toBe(version)
  })

  test('is decided once for a usage', () => {
    const meter = new Meter(held, { model, isOwn: false } as Candidate)
    expect(meter.quote(seen)).toBe(meter.quote(seen))
    expect(meter.quotedUsd(seen)).toBe('0.0000002')
    expect(() => meter.quotedUsd(reported(100, 10))).toThrow('decided before it is shown')
  })
})
