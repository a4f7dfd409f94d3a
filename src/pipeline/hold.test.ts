import { describe, expect, test } from 'bun:test'
import { createPrice, freePrice, type Price } from '../catalog/price.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { HoldOutcome, HoldRequest, Ledger } from '../ledger/ledger.ts'
import type { Admitted } from './admit.ts'
import type { Bill } from './bill.ts'
import type { Call } from './call.ts'
import { hold } from './hold.ts'
import { InputRatios } from './input-ratio.ts'

// What is asked of the ledger before anything is sent. What callers see of it is in test/money.

/** One nano-dollar in, ten out. */
const price = createPrice({ input: 1000n as Pico, output: 10_000n as Pico })

interface Asked {
  readonly bodyBytes?: number
  readonly stream?: boolean
  readonly outputCap?: number
  readonly price?: Price
  readonly tags?: readonly string[]
  /** Of each route. */
  readonly totalMs?: readonly (number | undefined)[]
  /** Whether it asks for a spoken answer. */
  readonly wantsAudio?: boolean
  /** What the ledger says, in turn; the last one from then on. */
  readonly outcomes?: readonly HoldOutcome[]
}

async function ask(asked: Asked): Promise<{ outcome: Bill | Failure; requests: HoldRequest[] }> {
  const { bodyBytes = 400, stream = true, outputCap, tags = [], totalMs = [undefined] } = asked
  const unsupported = asked.wantsAudio ? [{ wantsAudio: true }] : []
  const outcomes = [...(asked.outcomes ?? [{ kind: 'held' } as const])]
  const requests: HoldRequest[] = []
  const ledger = {
    hold(request: HoldRequest) {
      requests.push(request)
      return outcomes.length > 1 ? outcomes.shift() : outcomes[0]
    },
  } as unknown as Ledger
  const call = {
    envelope: { body: new Uint8Array(bodyBytes), stream, outputCap, choices: 1 },
    model: { id: 'a/b', price: asked.price ?? price, priceVersion: 'v1', tags, contextTokens: 100_000 },
    story: { record: { id: 'req_1', startedAt: 0 } },
    request: new Request('http://gateway.test'),
    conversation: () => ({ conversation: { turns: [], unsupported }, warnings: [] }),
  } as unknown as Call
  const caller = { workspaceId: 'ws_1', keyId: 'key_1', projectId: 'prj_1', workspaceName: 'acme', limits: [] }
  const ordered = totalMs.map((total) => ({ isOwn: false, route: { timeouts: { totalMs: total } } }))
  const deps = { ledger, ratios: new InputRatios(), clock: { now: () => 0, monotonicMs: () => 0 } }
  const outcome = await hold(deps, call, { caller, plan: { ordered } } as unknown as Admitted)
  return { outcome, requests }
}

/** 400 bytes: a hundred tokens and half as many again. */
const input = 150n

describe('the first thing asked for', () => {
  test('is a slice of a stream, with room for twice as much', async () => {
    const { requests } = await ask({ outputCap: 4096 })
    expect(requests).toMatchObject([{ amount: input + 40_960n, roomLeast: 2n * (input + 40_960n) }])
  })

  test('has room for the whole answer where that is more', async () => {
    const { requests } = await ask({ outputCap: 20_000 })
    expect(requests).toMatchObject([{ amount: input + 40_960n, roomLeast: input + 200_000n }])
  })

  test.each([
    { stream: false, tags: [] },
    { stream: true, tags: ['reasoning'] },
  ])('is the whole cap where part of the answer is not seen to grow (%j)', async (how) => {
    const { requests } = await ask({ outputCap: 20_000, ...how })
    expect(requests).toMatchObject([{ amount: input + 200_000n }])
  })

  test('is nothing for a free model', async () => {
    const { requests } = await ask({ price: freePrice })
    expect(requests).toMatchObject([{ amount: 0n, roomLeast: 0n }])
  })

  test('is the whole cap of an answer that is spoken, at the price of sound', async () => {
    const sound = createPrice({ input: 1000n as Pico, output: 10_000n as Pico, audio_output: 80_000n as Pico })
    const spoken = await ask({ outputCap: 20_000, price: sound, wantsAudio: true })
    expect(spoken.requests).toMatchObject([{ amount: input + 20_000n * 80n }])
    const written = await ask({ outputCap: 20_000, price: sound })
    expect(written.requests).toMatchObject([{ amount: input + 40_960n }])
  })

  test('outlives every route that may be tried', async () => {
    const { requests } = await ask({ totalMs: [1_800_000, undefined] })
    // Twice half an hour, and five minutes.
    expect(requests[0]?.lifetimeMs).toBe(3_900_000)
    // A route that is left after a minute must not end the hold of the next one, which has its quarter of an hour.
    const short = await ask({ totalMs: [60_000, undefined] })
    expect(short.requests[0]?.lifetimeMs).toBe(2_100_000)
    // Nor is any hold shorter than the ledger's own.
    const both = await ask({ totalMs: [60_000, 60_000] })
    expect(both.requests[0]?.lifetimeMs).toBe(1_200_000)
  })
})

describe('a refused one', () => {
  const thin = (posted: bigint, held = 0n): HoldOutcome => ({
    kind: 'insufficient',
    posted: posted as Nano,
    held: held as Nano,
  })

  test('is asked for strictly, without more room than it takes', async () => {
    const { outcome, requests } = await ask({ outputCap: 300, outcomes: [thin(10_000n), { kind: 'held' }] })
    // 400 bytes and 1,024 tokens around them
    expect(requests.at(-1)).toMatchObject({ amount: 1_424n + 3_000n, roomLeast: 1_424n + 3_000n })
    expect(outcome).toMatchObject({ loweredCap: undefined })
  })

  test('comes with the cap that the balance pays for', async () => {
    const { outcome, requests } = await ask({ outputCap: 900, outcomes: [thin(5_430n), { kind: 'held' }] })
    expect(requests.at(-1)).toMatchObject({ amount: 5_424n })
    expect(outcome).toMatchObject({ loweredCap: 400, held: 5_424n })
  })

  test('is empty where the balance could not pay, with what is needed', async () => {
    const { outcome, requests } = await ask({ outcomes: [thin(3_983n)] })
    expect(requests).toHaveLength(1)
    // 1,424 and 256 × 10
    expect(outcome).toMatchObject({
      code: 'INSUFFICIENT_BALANCE',
      facts: { shouldRetry: false, metadata: { reason: 'empty', needed: '0.000003984' } },
    })
  })

  describe('by a spend limit', () => {
    const over = (cap: bigint, spent: bigint, held = 0n): HoldOutcome => ({
      kind: 'over budget',
      scopeId: 'key_1',
      window: 'day:1970-01-01',
      cap: cap as Nano,
      spent: spent as Nano,
      held: held as Nano,
    })

    test('comes with the cap that the limit has room for, and says so', async () => {
      const { outcome, requests } = await ask({ outputCap: 900, outcomes: [over(6_000n, 570n), { kind: 'held' }] })
      expect(requests.at(-1)).toMatchObject({ amount: 5_424n })
      expect(outcome).toMatchObject({ loweredCap: 400, slice: { within: 'limit' } })
    })

    test('is fitted to the tightest of wallet and limits, whoever refuses first', async () => {
      const outcomes = [thin(9_000n), over(8_000n, 0n), over(7_000n, 1_570n), { kind: 'held' }] as const
      const { outcome, requests } = await ask({ outputCap: 900, stream: false, outcomes })
      expect(requests.map(({ amount }) => amount)).toEqual([9_150n, 8_994n, 7_994n, 5_424n] as Nano[])
      expect(outcome).toMatchObject({ loweredCap: 400, slice: { within: 'limit' } })
    })

    test('is for the rest of the day where nothing fits, and is not tried again', async () => {
      const { outcome, requests } = await ask({ outcomes: [over(5_000n, 1_017n)] })
      expect(requests).toHaveLength(1)
      expect(outcome).toMatchObject({
        code: 'LIMIT_EXCEEDED',
        facts: { shouldRetry: false, retryAfterMs: 86_400_000 },
      })
    })

    test('is for a moment where running requests take the room', async () => {
      const { outcome } = await ask({ outputCap: 300, outcomes: [over(5_000n, 500n, 4_000n)] })
      expect(outcome).toMatchObject({ code: 'LIMIT_EXCEEDED', facts: { shouldRetry: true, retryAfterMs: 5000 } })
    })
  })

  test('is in flight where others hold the money, with a time to come back', async () => {
    const { outcome, requests } = await ask({ outputCap: 5000, outcomes: [thin(1_000_000n, 999_000n)] })
    expect(requests.slice(1).map(({ amount }) => amount - 1_424n)).toEqual([
      40_960n,
      20_480n,
      10_240n,
      5_120n,
      2_560n,
    ] as Nano[])
    expect(outcome).toMatchObject({
      code: 'INSUFFICIENT_BALANCE',
      facts: { shouldRetry: true, retryAfterMs: 5000, metadata: { reason: 'in_flight', needed: '0.000003984' } },
    })
  })

  test.each([0, 1])('is no answer about the wallet where the ledger cannot say (%i asked before)', async (before) => {
    const outcomes: HoldOutcome[] = [thin(1_000_000n), { kind: 'unavailable', retryAfterMs: 700 }]
    const { outcome } = await ask({ outcomes: outcomes.slice(1 - before) })
    expect(outcome).toBeInstanceOf(Failure)
    expect(outcome).toMatchObject({ code: 'OVERLOADED', facts: { retryAfterMs: 700 } })
  })
})
