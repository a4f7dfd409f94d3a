import { describe, expect, test } from 'bun:test'
import { createPrice, sharePrice } from '../catalog/price.ts'
import type { Fee } from '../catalog/price-versions.ts'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { ExtendOutcome, Ledger, Settlement, SettleOutcome } from '../ledger/ledger.ts'
import type { Candidate, OfferedModel } from '../routing/plan.ts'
import type { RequestRow } from '../store/request-rows.ts'
import { Content } from './content.ts'
import { Exchange } from './exchange.ts'
import { Hold, type HoldFacts, holdAmount } from './hold.ts'
import { Meter } from './meter.ts'
import type { Held } from './stages.ts'
import { growthFailure } from './stream.ts'
import type { MeasuredReply } from './usage.ts'

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
  const envelope = openaiChat.readEnvelope(body, new Headers())
  if (envelope instanceof Failure) throw new Error(envelope.message)
  const exchange = new Exchange(stoppedClock, new Request('http://gateway.test'), openaiChat, '/', connection)
  const noTags = { tag: () => '', isValid: () => false }
  const content = new WatchedContent(envelope, openaiChat, [], noTags)
  const offered = { contextTokens: 1000, maxOutputTokens: undefined, price, ...model } as unknown as OfferedModel
  const hold = { loweredCap, quote() {} }
  const held = { exchange, hold, admitted: { content, storing: {} } } as unknown as Held
  const meter = new Meter(held, { rules, model: offered } as Candidate)
  return { content, meter, notes: exchange.record.notes }
}

const reported = (inputTokens: number, outputTokens: number): Usage => ({
  ...{ inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0 },
  source: 'reported',
})
const measured = (more: Partial<MeasuredReply>): MeasuredReply => ({
  ...{ usage: undefined, usageSoFar: undefined, outputBytes: 100, bytesAtReport: undefined },
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

  test('falls back to the input at the start, with its parts, if the final input is implausible', () => {
    const { meter, notes } = openRequest()
    const final = { ...reported(190_000, 7), audioInputTokens: 3, audioOutputTokens: 2 }
    const usage = meter.quoteUsage(final, reported(3, 1), () => 4)
    expect(usage).toMatchObject({ inputTokens: 3, outputTokens: 7, audioOutputTokens: 2, source: 'estimated' })
    expect(usage.audioInputTokens).toBeUndefined()
    expect(notes).toHaveLength(1)
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
    const estimate = { inputTokens: 3, outputTokens: 1, inputReported: true, source: 'estimated' } as const
    expect(judged(max + 1)).toMatchObject(estimate)
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
    expect([content.envelope.body.length, content.bodyBytes, content.mayHaveMoreThanText]).toEqual([
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
    expect([content.envelope.body.length, content.reads]).toEqual([0, 1])
  })

  test.each([
    ['a short body', 'hi', reported(900, 1)],
    ['a body whose tokens are not known yet', long, undefined],
    ['a body with an implausible count', long, reported(9_999_999, 1)],
  ])('keeps %s', (_, text, usageSoFar) => {
    const { content, meter } = openRequest({ text })
    meter.releaseBody(measured({ usageSoFar, outputBytes: 4 }), 'bytes')
    expect(content.envelope.body.length).toBe(content.bodyBytes)
  })
})

describe('attempts', () => {
  const candidate = (id: string) => ({ provider: { id }, route: { upstreamModel: 'up' } }) as Candidate

  /** A request that started at 100 ms. */
  function start() {
    let nowMs = 100
    const clock = { now: () => 0, monotonicMs: () => nowMs }
    const exchange = new Exchange(clock, new Request('http://gateway.test'), openaiChat, '/', connection)
    const wait = (milliseconds: number) => {
      nowMs += milliseconds
    }
    const recorded = () => exchange.record.attempts.map((each) => [each.provider, each.outcome, each.startMs, each.ms])
    return {
      attempts: exchange.attempts,
      record: exchange.record,
      wait,
      recorded,
      begin: (id: string) => exchange.attempts.begin(candidate(id)),
    }
  }

  test('are recorded from their start', () => {
    const { attempts, record, begin, wait, recorded } = start()
    wait(5)
    const attempt = begin('acme')
    expect(recorded()).toEqual([['acme', '', 5, 0]])
    wait(20)
    attempts.end(attempt, '503')
    expect(recorded()).toEqual([['acme', '503', 5, 20]])
    expect(record.waitedMs).toBe(20)
  })

  test('that are still open end with their request, and only once', () => {
    const { attempts, record, begin, wait, recorded } = start()
    attempts.end(begin('acme'), '503')
    wait(10)
    const open = begin('other')
    wait(30)
    attempts.endOpen('client left')
    const ended = [
      ['acme', '503', 0, 0],
      ['other', 'client left', 10, 30],
    ]
    expect(recorded()).toEqual(ended)
    attempts.end(open, 'broken')
    expect(recorded()).toEqual(ended)
    expect(record.waitedMs).toBe(30)
  })

  test('that sent nothing are removed', () => {
    const { attempts, begin, recorded } = start()
    const attempt = begin('acme')
    begin('other')
    attempts.remove(attempt)
    expect(recorded()).toEqual([['other', '', 0, 0]])
  })

  test('end with the one that answered, even if it began before others', () => {
    const { attempts, begin, recorded } = start()
    attempts.end(begin('acme'), 'broken')
    const first = begin('acme')
    const second = begin('other')
    attempts.end(first, 'ok')
    attempts.answered(candidate('acme'))
    attempts.end(second, 'superseded')
    expect(recorded().map(([provider, outcome]) => `${provider} ${outcome}`)).toEqual([
      'acme broken',
      'other superseded',
      'acme ok',
    ])
  })
})

// Holds, over a ledger that answers what the test wants.

/** One nano-dollar in, ten out. */
const price = createPrice({ input: 1000n as Pico, output: 10_000n as Pico })
const model = { id: 'a/b', price, priceVersion: 'v1' } as OfferedModel
const usualFacts: HoldFacts = {
  price,
  cap: 20_000,
  choices: 1,
  holdsWholeCap: false,
  without: [],
  minCap: 0,
}

interface Asked {
  readonly model: OfferedModel
  readonly hold: Hold
  readonly extended: bigint[]
  readonly settled: Settlement[]
  released: number
  /** The wallet's balance for extensions. */
  free: bigint
  refusesWith: ExtendOutcome['kind'] | undefined
}

function openHold(
  more: Partial<HoldFacts> = {},
  { isShared = false, fee }: { isShared?: boolean; fee?: Fee } = {},
): Asked {
  const facts: HoldFacts = { ...usualFacts, ...more }
  const extended: bigint[] = []
  const settled: Settlement[] = []
  const extend = (_: unknown, amount: Nano): ExtendOutcome => {
    extended.push(amount)
    if (asked.refusesWith) return { kind: asked.refusesWith } as ExtendOutcome
    if (amount > asked.free) return { kind: 'insufficient', posted: asked.free as Nano, held: 0n as Nano }
    asked.free -= amount
    return { kind: 'held' }
  }
  const ledger = {
    coverOverrun(_: unknown, more: Nano) {
      if (isShared) return undefined
      const covered = more < asked.free ? more : asked.free
      asked.free -= covered
      return covered as Nano
    },
    extend: (id: unknown, amount: Nano) => (isShared ? Promise.resolve(extend(id, amount)) : extend(id, amount)),
    settle: (settlement: Settlement) => {
      settled.push(settlement)
      return Promise.resolve({ kind: 'settled' } as SettleOutcome)
    },
    release() {
      asked.released += 1
      return { kind: 'released' }
    },
  } as unknown as Ledger
  const held = { ...model, fee }
  const hold = new Hold('req_1', ledger, held, facts, holdAmount(facts, 100, facts.cap))
  const asked: Asked = { model: held, hold, extended, settled, released: 0, free: 1_000_000n, refusesWith: undefined }
  return asked
}

function usage(outputTokens: number, source: Usage['source'] = 'reported'): Usage {
  return { inputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens, source }
}

const row = () => ({}) as RequestRow

describe('a charge', () => {
  test('is the price of the reported usage, also above the hold', () => {
    const { hold } = openHold({ cap: 10 })
    expect(hold.heldBeforeCost).toBe(200n as Nano)
    const used = usage(30)
    expect(hold.quote(used)).toBe(400n as Nano)
    expect(hold.quotedUsd(used)).toBe('0.0000004')
  })

  test('above the hold is quoted as far as the wallet can pay; the cost is settled too', async () => {
    const asked = openHold({ cap: 10 })
    asked.free = 100n
    const used = usage(30)
    expect(asked.hold.quote(used)).toBe(300n as Nano)
    await asked.hold.settle(used, row)
    expect(asked.settled).toMatchObject([{ quoted: 300n, cost: 400n }])
  })

  test('never exceeds the hold if it is an estimate', () => {
    const { hold } = openHold({ cap: 10 })
    expect(hold.quote(usage(9, 'estimated'))).toBe(190n as Nano)
    expect(hold.quote(usage(30, 'estimated'))).toBe(200n as Nano)
  })

  test('covers a reported input, also if the output is an estimate', async () => {
    const asked = openHold({ cap: 10 })
    asked.free = 250n
    // 200 were held, for 100 in and 10 out. 400 in and 9 out cost 490.
    const left: Usage = { ...usage(9, 'estimated'), inputTokens: 400, inputReported: true }
    expect(asked.hold.quote(left)).toBe(450n as Nano)
    await asked.hold.settle(left, row)
    expect(asked.settled).toMatchObject([{ quoted: 450n, cost: 490n, estimated: true }])
  })

  test('has no more estimated output than was held for, whatever its input', () => {
    const { hold } = openHold({ cap: 10 })
    const left: Usage = { ...usage(30, 'estimated'), inputReported: true }
    expect(hold.quote(left)).toBe(200n as Nano)
    // 400 in, and the 10 out that were held for
    expect(hold.quote({ ...left, inputTokens: 400 })).toBe(500n as Nano)
  })

  test('stays as quoted when the hold grows afterwards', async () => {
    const { hold, settled } = openHold()
    const quoted = usage(5000, 'estimated')
    expect(hold.quote(quoted)).toBe(41_060n as Nano)
    hold.grow(9_216)
    await hold.settle(quoted, row)
    expect(settled).toMatchObject([{ cost: 41_060n, estimated: true }])
  })

  test('is decided again when another route answers', () => {
    const { hold, model } = openHold()
    const seen = usage(10)
    expect(hold.quote(seen)).toBe(200n as Nano)
    hold.serveBy({ isOwn: true, model })
    expect([hold.quote(seen), hold.priceVersion]).toEqual([0n as Nano, undefined])
    hold.serveBy({ isOwn: false, model })
    expect([hold.quote(seen), hold.priceVersion]).toEqual([200n as Nano, 'v1'])
  })

  test("on the workspace's own credential is the fee, with its own price version", () => {
    const fee = { price: sharePrice(price, 500n), version: 'v1-own' }
    const { hold, model } = openHold({}, { fee })
    hold.serveBy({ isOwn: true, model })
    expect([hold.quote(usage(10)), hold.priceVersion]).toEqual([10n as Nano, 'v1-own'])
  })
})

describe('a hold grows', () => {
  test('by a step when three quarters of it are used', () => {
    const { hold, extended } = openHold()
    // 4,096 tokens of at least three bytes each
    expect(hold.growAtBytes).toBe(9_216)
    expect(hold.grow(9_216)).toBe('enough')
    expect(extended).toEqual([40_960n])
    expect(hold.heldBeforeCost).toBe(82_020n as Nano)
    expect(hold.growAtBytes).toBe(18_432)
  })

  test('up to the cap', () => {
    const { hold, extended } = openHold({ cap: 5000 })
    hold.grow(9_216)
    expect(extended).toEqual([9_040n])
    expect(hold.growAtBytes).toBe(Number.POSITIVE_INFINITY)
  })

  test('never, if the whole cap was held', () => {
    expect(openHold({ holdsWholeCap: true }).hold.growAtBytes).toBe(Number.POSITIVE_INFINITY)
  })

  test('for all choices together', () => {
    const { hold, extended } = openHold({ choices: 2 })
    expect(hold.growAtBytes).toBe(18_432)
    hold.grow(18_432)
    expect(extended).toEqual([81_920n])
  })

  test('by less if a whole step is refused', () => {
    const asked = openHold()
    asked.free = 5_200n
    expect(asked.hold.grow(9_216)).toBe('enough')
    expect(asked.extended).toEqual([40_960n, 20_480n, 10_240n, 5_120n])
    expect(asked.hold.heldBeforeCost).toBe(46_180n as Nano)
  })

  test('not at all without money: the answer continues until the hold is used up', () => {
    const asked = openHold()
    asked.free = 0n
    expect(asked.hold.grow(9_216)).toBe('enough')
    expect(asked.extended).toHaveLength(5)
    expect(asked.hold.growAtBytes).toBe(12_288)
    expect(asked.hold.grow(12_288)).toBe('out of money')
  })

  test.each([
    ['insufficient', 'out of money', 'INSUFFICIENT_BALANCE'],
    ['over budget', 'over limit', 'LIMIT_EXCEEDED'],
    ['unavailable', 'no ledger', 'OVERLOADED'],
  ] as const)('not at all if the ledger answers %s', (kind, growth, code) => {
    const asked = openHold()
    asked.refusesWith = kind
    asked.hold.grow(9_216)
    expect(asked.hold.grow(12_288)).toBe(growth)
    expect(growthFailure(growth, 'req_1')).toMatchObject({ code })
  })

  test('after a refusal, if there is money when the hold is used up', () => {
    const asked = openHold()
    asked.free = 0n
    asked.hold.grow(9_216)
    asked.free = 1_000_000n
    expect(asked.hold.grow(12_288)).toBe('enough')
    expect(asked.hold.growAtBytes).toBe(18_432)
  })

  test('on a shared ledger while the answer continues, with one extension at a time', async () => {
    const { hold, extended } = openHold({}, { isShared: true })
    expect(hold.grow(9_216)).toBe('enough')
    expect(hold.grow(9_300)).toBe('enough')
    await Bun.sleep(0)
    expect(extended).toEqual([40_960n])
    expect(hold.growAtBytes).toBe(18_432)
  })

  test('on a shared ledger before the answer continues, if the hold is used up', async () => {
    const poor = openHold({}, { isShared: true })
    poor.free = 0n
    expect(await poor.hold.grow(12_288)).toBe('out of money')
    expect(await openHold({}, { isShared: true }).hold.grow(12_288)).toBe('enough')
  })
})

describe('a reported cost far above the hold', () => {
  /** 100 in and 41,000 out; 4,096 out were held for: 41,060 held, 410,100 to pay. */
  const large = usage(41_000)

  test('is paid as far as the wallet goes', () => {
    expect(openHold().hold.quote(large)).toBe(410_100n as Nano)
    const poor = openHold()
    poor.free = 5n
    expect(poor.hold.quote(large)).toBe(41_065n as Nano)
  })

  test('does not change what counts as held', () => {
    const { hold } = openHold()
    hold.quote(large)
    expect(hold.heldBeforeCost).toBe(41_060n as Nano)
  })

  test('is quoted in full on a shared wallet: the settlement takes what there is', () => {
    const { hold, extended } = openHold({}, { isShared: true })
    expect(hold.quote(large)).toBe(410_100n as Nano)
    expect(extended).toEqual([])
  })

  test('in mid-stream does not stop the hold from growing', () => {
    const { hold, extended } = openHold({ cap: 100_000 })
    expect(hold.quote(large)).toBe(410_100n as Nano)
    // The bound of the next step is below what is held by now; the extension is never negative.
    expect(hold.grow(9_216)).toBe('enough')
    expect(extended).toEqual([0n])
    expect(hold.quote(usage(41_001))).toBe(410_110n as Nano)
  })
})

test('releases the hold of an unanswered request', () => {
  const asked = openHold()
  void asked.hold.release(() => {})
  expect(asked.released).toBe(1)
})

describe('a shared ledger that fails', () => {
  const failing = {
    extend: () => Promise.reject(new Error('lost')),
    release: () => Promise.reject(new Error('lost')),
  } as unknown as Ledger
  const failingHold = () => new Hold('req_1', failing, model, usualFacts, holdAmount(usualFacts, 100, usualFacts.cap))

  test('extends nothing: the answer continues until the hold is used up', async () => {
    const hold = failingHold()
    expect(hold.grow(9_216)).toBe('enough')
    await Bun.sleep(0)
    expect(await hold.grow(12_288)).toBe('no ledger')
  })

  test('reports a failed release and leaves no unhandled rejection', async () => {
    const fault = Promise.withResolvers<unknown>()
    void failingHold().release(fault.resolve)
    expect(await fault.promise).toEqual(new Error('lost'))
  })
})
