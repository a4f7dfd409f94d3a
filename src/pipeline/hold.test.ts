import { afterAll, describe, expect, test } from 'bun:test'
import { createPrice } from '../catalog/price.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { ExtendOutcome, Ledger, Settlement, SettleOutcome } from '../ledger/ledger.ts'
import type { OfferedModel } from '../routing/plan.ts'
import type { RequestRow } from '../store/request-rows.ts'
import { createTicker } from './deadline.ts'
import { Hold, type HoldFacts, holdAmount } from './hold.ts'
import { type Place, Rooms } from './rooms.ts'
import { growthFailure } from './stream.ts'

// Holds, over a ledger that answers what the test wants.

/** One nano-dollar in, ten out. */
const price = createPrice({ input: 1000n as Pico, output: 10_000n as Pico })
const usualFacts: HoldFacts = {
  price,
  cap: 20_000,
  choices: 1,
  holdsWholeCap: false,
  without: [],
  minCap: 0,
}

const ticker = createTicker(systemClock, () => {})
afterAll(() => ticker.close())
const rooms = new Rooms(ticker)
const place = { workspaceId: 'ws_1' } as const

interface Asked {
  readonly hold: Hold
  readonly extended: bigint[]
  readonly settled: Settlement[]
  released: number
  /** The wallet's balance for extensions. */
  free: bigint
  refusesWith: ExtendOutcome['kind'] | undefined
}

function openHold(more: Partial<HoldFacts> = {}, { isShared = false }: { isShared?: boolean } = {}): Asked {
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
  const hold = new Hold('req_1', ledger, facts, holdAmount(facts, 100, facts.cap), undefined, rooms, place)
  const asked: Asked = { hold, extended, settled, released: 0, free: 1_000_000n, refusesWith: undefined }
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
    expect(hold.reserveQuote(price, used)).toMatchObject({ cost: 400n, quoted: 400n, quotedUsd: '0.0000004' })
  })

  test('above the hold is quoted as far as the wallet can pay; the cost is settled too', async () => {
    const asked = openHold({ cap: 10 })
    asked.free = 100n
    const used = usage(30)
    const quote = asked.hold.reserveQuote(price, used)
    expect(quote.quoted).toBe(300n as Nano)
    await asked.hold.settle(quote, row)
    expect(asked.settled).toMatchObject([{ quoted: 300n, cost: 400n }])
  })

  test('never exceeds the hold if it is an estimate', () => {
    const { hold } = openHold({ cap: 10 })
    expect(hold.reserveQuote(price, usage(9, 'estimated')).quoted).toBe(190n as Nano)
    expect(hold.reserveQuote(price, usage(30, 'estimated')).quoted).toBe(200n as Nano)
  })

  test('covers a reported input, also if the output is an estimate', async () => {
    const asked = openHold({ cap: 10 })
    asked.free = 250n
    // 200 were held, for 100 in and 10 out. 400 in and 9 out cost 490.
    const left: Usage = { ...usage(9, 'estimated'), inputTokens: 400, inputReported: true }
    const quote = asked.hold.reserveQuote(price, left)
    expect(quote.quoted).toBe(450n as Nano)
    await asked.hold.settle(quote, row)
    expect(asked.settled).toMatchObject([{ quoted: 450n, cost: 490n, estimated: true }])
  })

  test('has no more estimated output than was held for, whatever its input', () => {
    const { hold } = openHold({ cap: 10 })
    const left: Usage = { ...usage(30, 'estimated'), inputReported: true }
    expect(hold.reserveQuote(price, left).quoted).toBe(200n as Nano)
    // 400 in, and the 10 out that were held for
    expect(hold.reserveQuote(price, { ...left, inputTokens: 400 }).quoted).toBe(500n as Nano)
  })

  test('stays as quoted when the hold grows afterwards', async () => {
    const { hold, settled } = openHold()
    const quote = hold.reserveQuote(price, usage(5000, 'estimated'))
    expect(quote.quoted).toBe(41_060n as Nano)
    hold.grow(9_216)
    await hold.settle(quote, row)
    expect(settled).toMatchObject([{ cost: 41_060n, estimated: true }])
  })
})

describe('what a hold may still grow by', () => {
  const room = { workspaceId: 'ws_2' } as const
  const promisedTo = (asked: Place): bigint => rooms.promisedIn(asked)?.get(asked.workspaceId) ?? 0n
  const grower = (cap: number) => {
    const facts = { ...usualFacts, cap }
    const ledger = { extend: () => ({ kind: 'held' }), release: () => ({ kind: 'released' }) } as unknown as Ledger
    const amount = holdAmount(facts, 100, cap)
    rooms.promise(room, amount.growth)
    return new Hold('req_2', ledger, facts, amount, undefined, rooms, room)
  }

  test('does not rise when another model answers that may say more', async () => {
    const other = { id: 'test/other' } as OfferedModel
    const facts = { ...usualFacts, cap: 5_000 }
    const amount = holdAmount(facts, 100, facts.cap)
    rooms.promise(room, amount.growth)
    const ledger = { release: () => ({ kind: 'released' }) } as unknown as Ledger
    const factsByModel = new Map([[other, { ...usualFacts, cap: 64_000 }]])
    const hold = new Hold('req_3', ledger, facts, amount, factsByModel, rooms, room)
    hold.growFor(other)
    // 5,000 tokens less the first 4,096: what was free when it was held.
    expect(promisedTo(room)).toBe(9_040n)
    await hold.release(() => {})
    expect(promisedTo(room)).toBe(0n)
  })

  test('is promised to it until it has it or ends, and nothing is if it holds its cap', async () => {
    grower(4096)
    expect(promisedTo(room)).toBe(0n)
    // 20,000 tokens less the first 4,096, and less another 4,096
    const hold = grower(20_000)
    expect(promisedTo(room)).toBe(159_040n)
    hold.grow(9_216)
    expect(promisedTo(room)).toBe(118_080n)
    expect(promisedTo(place)).not.toBe(118_080n)
    const other = grower(5_000)
    expect(promisedTo(room)).toBe(127_120n)
    await other.release(() => {})
    await hold.release(() => {})
    expect(promisedTo(room)).toBe(0n)
    // An extension that was under way when it ended.
    hold.grow(18_432)
    expect(promisedTo(room)).toBe(0n)
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
    expect(openHold().hold.reserveQuote(price, large).quoted).toBe(410_100n as Nano)
    const poor = openHold()
    poor.free = 5n
    expect(poor.hold.reserveQuote(price, large).quoted).toBe(41_065n as Nano)
  })

  test('does not change what counts as held', () => {
    const { hold } = openHold()
    hold.reserveQuote(price, large)
    expect(hold.heldBeforeCost).toBe(41_060n as Nano)
  })

  test('is quoted in full on a shared wallet: the settlement takes what there is', () => {
    const { hold, extended } = openHold({}, { isShared: true })
    expect(hold.reserveQuote(price, large).quoted).toBe(410_100n as Nano)
    expect(extended).toEqual([])
  })

  test('in mid-stream does not stop the hold from growing', () => {
    const { hold, extended } = openHold({ cap: 100_000 })
    expect(hold.reserveQuote(price, large).quoted).toBe(410_100n as Nano)
    // The bound of the next step is below what is held by now; the extension is never negative.
    expect(hold.grow(9_216)).toBe('enough')
    expect(extended).toEqual([0n])
    expect(hold.reserveQuote(price, usage(41_001)).quoted).toBe(410_110n as Nano)
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
  const failingHold = () =>
    new Hold('req_1', failing, usualFacts, holdAmount(usualFacts, 100, usualFacts.cap), undefined, rooms, place)

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
