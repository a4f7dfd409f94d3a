import { describe, expect, test } from 'bun:test'
import { createPrice, sharePrice } from '../catalog/price.ts'
import type { Fee } from '../catalog/price-versions.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { ExtendOutcome, Ledger, SettleEnd, Settlement, SettleOutcome } from '../ledger/ledger.ts'
import type { OfferedModel } from '../routing/offer.ts'
import { Bill, cutShort, type UnconfirmedCharge } from './bill.ts'
import { type SliceFacts, sliceOf } from './slice.ts'

// The bill of one request over a ledger that says what the test wants.

/** One nano-dollar in, ten out. */
const price = createPrice({ input: 1000n as Pico, output: 10_000n as Pico })
const model = { id: 'a/b', price, priceVersion: 'v1' } as OfferedModel

const noRows = () => []

interface Asked {
  readonly bill: Bill
  readonly extended: bigint[]
  readonly settled: Settlement[]
  released: number
  /** What the wallet has left for extensions. */
  free: bigint
  refusesWith: ExtendOutcome['kind'] | undefined
}

function open(
  more: Partial<SliceFacts> = {},
  { isShared = false, fee }: { isShared?: boolean; fee?: Fee } = {},
): Asked {
  const facts: SliceFacts = {
    price,
    cap: 20_000,
    choices: 1,
    holdsWholeCap: false,
    webSearches: 0,
    capLeast: 0,
    ...more,
  }
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
    cover(_: unknown, more: Nano) {
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
  const bill = new Bill('req_1', ledger, { ...model, fee }, facts, sliceOf(facts, 100, facts.cap))
  const asked: Asked = { bill, extended, settled, released: 0, free: 1_000_000n, refusesWith: undefined }
  return asked
}

function usage(outputTokens: number, source: Usage['source'] = 'reported'): Usage {
  return { inputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens, source }
}

describe('a charge', () => {
  test('is the price of what was reported, also beyond the hold', () => {
    const { bill } = open({ cap: 10 })
    expect(bill.held).toBe(200n as Nano)
    expect(bill.chargeOf(usage(30))).toBe(400n as Nano)
  })

  test('beyond the hold is told and paid as far as the wallet can, and the rest is known as lost', async () => {
    const asked = open({ cap: 10 })
    asked.free = 100n
    const used = usage(30)
    expect(asked.bill.chargeOf(used)).toBe(300n as Nano)
    await asked.bill.settle(used, noRows)
    expect(asked.settled).toMatchObject([{ told: 300n, charge: 400n }])
  })

  test('never exceeds the hold where it is an estimate', () => {
    const { bill } = open({ cap: 10 })
    expect(bill.chargeOf(usage(9, 'estimated'))).toBe(190n as Nano)
    expect(bill.chargeOf(usage(30, 'estimated'))).toBe(200n as Nano)
  })

  test('covers an input that the provider counted, also where the output is an estimate', async () => {
    const asked = open({ cap: 10 })
    asked.free = 250n
    // 200 were held, for 100 in and 10 out. 400 in and 9 out come to 490.
    const left: Usage = { ...usage(9, 'estimated'), inputTokens: 400, inputReported: true }
    expect(asked.bill.chargeOf(left)).toBe(450n as Nano)
    await asked.bill.settle(left, noRows)
    expect(asked.settled).toMatchObject([{ told: 450n, charge: 490n, estimated: true }])
  })

  test('has no more of an estimated output than was held for, whatever its input', () => {
    const { bill } = open({ cap: 10 })
    const left: Usage = { ...usage(30, 'estimated'), inputReported: true }
    expect(bill.chargeOf(left)).toBe(200n as Nano)
    // 400 in and the 10 out that were held for
    expect(bill.chargeOf({ ...left, inputTokens: 400 })).toBe(500n as Nano)
  })

  test('stays what was told, though the hold has grown since', async () => {
    const { bill, settled } = open()
    const told = usage(5000, 'estimated')
    expect(bill.chargeOf(told)).toBe(41_060n as Nano)
    bill.grow(9_216)
    await bill.settle(told, noRows)
    expect(settled).toMatchObject([{ charge: 41_060n, estimated: true, priceVersion: 'v1' }])
  })
})

describe('a hold grows', () => {
  test('by a slice when three quarters of it are used', () => {
    const { bill, extended } = open()
    // 4,096 tokens of at least three bytes each
    expect(bill.growAtBytes).toBe(9_216)
    expect(bill.grow(9_216)).toBe('enough')
    expect(extended).toEqual([40_960n])
    expect(bill.held).toBe(82_020n as Nano)
    expect(bill.growAtBytes).toBe(18_432)
  })

  test('up to the cap, and then no more', () => {
    const { bill, extended } = open({ cap: 5000 })
    bill.grow(9_216)
    expect(extended).toEqual([9_040n])
    expect(bill.growAtBytes).toBe(Number.POSITIVE_INFINITY)
  })

  test('never, where the whole cap was held', () => {
    expect(open({ holdsWholeCap: true }).bill.growAtBytes).toBe(Number.POSITIVE_INFINITY)
  })

  test('for all choices together', () => {
    const { bill, extended } = open({ choices: 2 })
    expect(bill.growAtBytes).toBe(18_432)
    bill.grow(18_432)
    expect(extended).toEqual([81_920n])
  })

  test('by less where a slice is not to be had', () => {
    const asked = open()
    asked.free = 5_200n
    expect(asked.bill.grow(9_216)).toBe('enough')
    expect(asked.extended).toEqual([40_960n, 20_480n, 10_240n, 5_120n])
    expect(asked.bill.held).toBe(46_180n as Nano)
  })

  test('no more: the answer goes on until what is held is used up', () => {
    const asked = open()
    asked.free = 0n
    expect(asked.bill.grow(9_216)).toBe('enough')
    expect(asked.extended).toHaveLength(5)
    expect(asked.bill.growAtBytes).toBe(12_288)
    expect(asked.bill.grow(12_288)).toBe('out of money')
  })

  test.each([
    ['insufficient', 'out of money', 'INSUFFICIENT_BALANCE'],
    ['over budget', 'over limit', 'LIMIT_EXCEEDED'],
    ['unavailable', 'no ledger', 'OVERLOADED'],
  ] as const)('no more for want of room: %s', (kind, growth, code) => {
    const asked = open()
    asked.refusesWith = kind
    asked.bill.grow(9_216)
    expect(asked.bill.grow(12_288)).toBe(growth)
    expect(cutShort(growth, 'req_1')).toMatchObject({ code })
  })

  test('after all, if there is money again when it is used up', () => {
    const asked = open()
    asked.free = 0n
    asked.bill.grow(9_216)
    asked.free = 1_000_000n
    expect(asked.bill.grow(12_288)).toBe('enough')
    expect(asked.bill.growAtBytes).toBe(18_432)
  })
})

describe('a hold that is asked for over the network', () => {
  test('lets the answer flow while there is something left, and is asked for once', async () => {
    const { bill, extended } = open({}, { isShared: true })
    expect(bill.grow(9_216)).toBe('enough')
    expect(bill.grow(9_300)).toBe('enough')
    await Bun.sleep(0)
    expect(extended).toEqual([40_960n])
    expect(bill.growAtBytes).toBe(18_432)
  })

  test('is waited for when all is used up', async () => {
    const asked = open({}, { isShared: true })
    asked.free = 0n
    expect(await asked.bill.grow(12_288)).toBe('out of money')
    const lucky = open({}, { isShared: true })
    expect(await lucky.bill.grow(12_288)).toBe('enough')
  })
})

describe('an answer that cost more than was held', () => {
  /** 100 in and 41,000 ahead of the 4,096 that were held: 41,060 held, 410,100 to pay. */
  const large = usage(41_000)

  test('is paid as far as the wallet goes, and told so', () => {
    const rich = open()
    expect(rich.bill.chargeOf(large)).toBe(410_100n as Nano)
    const poor = open()
    poor.free = 5n
    expect(poor.bill.chargeOf(large)).toBe(41_065n as Nano)
  })

  test('was held for with less, whatever was added when its cost was known', () => {
    const { bill } = open()
    bill.chargeOf(large)
    expect(bill.held).toBe(41_060n as Nano)
  })

  test('is told in full where others share the wallet: the settlement takes what there is', () => {
    const { bill, extended } = open({}, { isShared: true })
    expect(bill.chargeOf(large)).toBe(410_100n as Nano)
    expect(extended).toEqual([])
  })

  test('by the count of a provider that counts on the way, still grows with what comes', () => {
    const { bill, extended } = open({ cap: 100_000 })
    expect(bill.chargeOf(large)).toBe(410_100n as Nano)
    // The next slice is bounded by less than is held by now; nothing negative is asked for.
    expect(bill.grow(9_216)).toBe('enough')
    expect(extended).toEqual([0n])
    expect(bill.chargeOf(usage(41_001))).toBe(410_110n as Nano)
  })

  test('is priced again when another route answers', () => {
    const { bill } = open()
    const seen = usage(10)
    expect(bill.chargeOf(seen)).toBe(200n as Nano)
    bill.serveBy({ isOwn: true })
    expect([bill.chargeOf(seen), bill.priceVersion]).toEqual([0n as Nano, undefined])
    bill.serveBy({ isOwn: false })
    expect([bill.chargeOf(seen), bill.priceVersion]).toEqual([200n as Nano, 'v1'])
  })

  test("is the fee, by its own version, on the workspace's credential", () => {
    const fee = { price: sharePrice(price, 500n), version: 'v1-own' }
    const { bill } = open({}, { fee })
    bill.serveBy({ isOwn: true })
    expect([bill.chargeOf(usage(10)), bill.priceVersion]).toEqual([10n as Nano, 'v1-own'])
  })
})

test('a charge that could not be recorded is a failure that says so', async () => {
  const { bill } = open()
  const ledger = (bill as unknown as { ledger: { settle: () => Promise<SettleOutcome> } }).ledger
  ledger.settle = () => Promise.resolve({ kind: 'unavailable', retryAfterMs: 1234 })
  const failure = await bill.settle(usage(1), noRows)
  expect(failure).toMatchObject({ code: 'OVERLOADED', facts: { retryAfterMs: 1234 } })
  expect(failure).toMatchObject({ message: expect.stringContaining('Nothing was charged') })
})

test.each([
  [{ kind: 'settled', posted: 7n } as SettleEnd, true],
  [{ kind: 'unavailable', retryAfterMs: 1 } as const, false],
  [{ kind: 'gone' } as const, false],
  [undefined, undefined],
])(
  'a charge whose outcome is unknown is no failure yet, and tells later whether it was made (%p)',
  async (end, isCharged) => {
    const { bill } = open()
    const ledger = (bill as unknown as { ledger: { settle: () => Promise<SettleOutcome> } }).ledger
    ledger.settle = () => Promise.resolve({ kind: 'unknown', retryAfterMs: 1, end: Promise.resolve(end) })
    const unconfirmed = (await bill.settle(usage(1), noRows)) as UnconfirmedCharge
    expect(await unconfirmed.isCharged).toBe(isCharged)
  },
)

test('what is not answered is released', () => {
  const asked = open()
  asked.bill.release(() => {})
  expect(asked.released).toBe(1)
})

describe('a shared ledger that fails', () => {
  const failing = {
    extend: () => Promise.reject(new Error('lost')),
    release: () => Promise.reject(new Error('lost')),
  } as unknown as Ledger
  const facts: SliceFacts = {
    price,
    cap: 20_000,
    choices: 1,
    webSearches: 0,
    holdsWholeCap: false,
    capLeast: 0,
  }
  const bill = () => new Bill('req_1', failing, model, facts, sliceOf(facts, 100, facts.cap))

  test('to extend has granted nothing: the answer goes on to what is held, and no further', async () => {
    const failed = bill()
    expect(failed.grow(9_216)).toBe('enough')
    await Bun.sleep(0)
    expect(await failed.grow(12_288)).toBe('no ledger')
  })

  test('to release says so, and leaves no rejection behind', async () => {
    const told = Promise.withResolvers<unknown>()
    bill().release(told.resolve)
    expect(await told.promise).toEqual(new Error('lost'))
  })
})
