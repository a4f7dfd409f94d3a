import { describe, expect, test } from 'bun:test'
import { received } from '../../test/parts/http.ts'
import { createPrice, freePrice, type Price } from '../catalog/price.ts'
import { Failure } from '../kernel/failure.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import type { HoldOutcome, HoldRequest, Ledger } from '../ledger/ledger.ts'
import { createTicker } from './deadline.ts'
import { InputRatios } from './estimate.ts'
import type { Hold } from './hold.ts'
import { PreviousTurns, UsualOutputs } from './learned.ts'
import { placeHold } from './place-hold.ts'
import { Rooms } from './rooms.ts'
import { type Admitted, Refusal } from './stages.ts'

// The hold requests to the ledger. What callers see of them is in test/money.

/** One nano-dollar in, ten out. */
const price = createPrice({ input: 1000n as Pico, output: 10_000n as Pico })

interface Asked {
  readonly bodyBytes?: number
  readonly stream?: boolean
  readonly outputCap?: number
  readonly price?: Price
  readonly tags?: readonly string[]
  /** Timeouts of each route. */
  readonly totalMs?: readonly (number | undefined)[]
  /** Whether it asks for a spoken answer. */
  readonly wantsAudio?: boolean
  /** What earlier requests have told. */
  readonly learn?: (learned: { readonly turns: PreviousTurns; readonly outputs: UsualOutputs }) => void
  /** The ledger's answers, in turn; the last one repeats. */
  readonly outcomes?: readonly HoldOutcome[]
}

async function ask(asked: Asked): Promise<{ outcome: Hold | Failure; requests: HoldRequest[] }> {
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
  const caller = { workspaceId: 'ws_1', keyId: 'key_1', projectId: 'prj_1', workspaceName: 'acme', limits: [] }
  const ordered = totalMs.map((total) => ({ isOwn: false, route: { timeouts: { totalMs: total } } }))
  const model = { id: 'a/b', price: asked.price ?? price, priceVersion: 'v1', tags, contextTokens: 100_000 }
  const http = received(new Request('http://gateway.test', { headers: { 'x-stainless-timeout': '0.001' } }))
  const client = { clientGone: { aborted: false }, connection: { keepOpen() {} } }
  const admitted = {
    ...{ caller, model, models: [model], plan: { ordered }, session: { id: 's', isNamed: true } },
    envelope: { stream, outputCap, choices: 1 },
    content: {
      body: new Uint8Array(bodyBytes),
      conversation: () => ({ turns: [], unsupported }),
      sentConversation: () => ({ turns: [], unsupported }),
      ...{ bodyBytes, promptBytes: bodyBytes, recalledBytes: 0, mayHaveMoreThanText: false },
    },
    exchange: { record: { id: 'req_1', startedAt: 0, waitedMs: 0 }, http, ...client },
  } as unknown as Admitted
  const clock = { now: () => 0, monotonicMs: () => 0 }
  const learned = { ratios: new InputRatios(), turns: new PreviousTurns(clock), outputs: new UsualOutputs() }
  asked.learn?.(learned)
  // Whoever waits is impatient, so it tries once more at the first tick.
  const ticker = createTicker({ ...clock, monotonicMs: () => performance.now() }, () => {})
  const deps = { ledger, ...learned, rooms: new Rooms(ticker), clock, authenticate: () => admitted.caller }
  const placed = await placeHold(deps, admitted)
  ticker.close()
  return { outcome: placed instanceof Refusal ? placed.failure : placed.hold, requests }
}

/** 400 bytes: a hundred tokens and half as many again. */
const input = 150n

describe('the usual hold', () => {
  test('is one step for a stream, and needs twice as much free', async () => {
    const { requests } = await ask({ outputCap: 4096 })
    expect(requests).toMatchObject([{ amount: input + 40_960n, requiredFree: 2n * (input + 40_960n) }])
  })

  test('needs the whole answer free if that is more', async () => {
    const { requests } = await ask({ outputCap: 20_000 })
    expect(requests).toMatchObject([{ amount: input + 40_960n, requiredFree: input + 200_000n }])
  })

  test.each([
    { stream: false, tags: [] },
    { stream: true, tags: ['reasoning'] },
  ])('is the whole cap if the output is not fully visible while it grows (%j)', async (how) => {
    const { requests } = await ask({ outputCap: 20_000, ...how })
    expect(requests).toMatchObject([{ amount: input + 200_000n }])
  })

  test('is zero for a free model', async () => {
    const { requests } = await ask({ price: freePrice })
    expect(requests).toMatchObject([{ amount: 0n, requiredFree: 0n }])
  })

  test('is the whole cap at the audio price for an audio answer', async () => {
    const sound = createPrice({ input: 1000n as Pico, output: 10_000n as Pico, audio_output: 80_000n as Pico })
    const spoken = await ask({ outputCap: 20_000, price: sound, wantsAudio: true })
    expect(spoken.requests).toMatchObject([{ amount: input + 20_000n * 80n }])
    const written = await ask({ outputCap: 20_000, price: sound })
    expect(written.requests).toMatchObject([{ amount: input + 40_960n }])
  })

  test('outlives every route that may be tried', async () => {
    const { requests } = await ask({ totalMs: [1_800_000, undefined] })
    // Two routes of half an hour, and five minutes.
    expect(requests[0]?.lifetimeMs).toBe(3_900_000)
    // Two routes of the default quarter of an hour, and five minutes.
    const short = await ask({ totalMs: [60_000, undefined] })
    expect(short.requests[0]?.lifetimeMs).toBe(2_100_000)
    // Never shorter than the ledger's default.
    const both = await ask({ totalMs: [60_000, 60_000] })
    expect(both.requests[0]?.lifetimeMs).toBe(1_200_000)
  })
})

describe('after a refusal', () => {
  const insufficient = (posted: bigint, held = 0n): HoldOutcome => ({
    kind: 'insufficient',
    posted: posted as Nano,
    held: held as Nano,
  })

  test('holds the strict bound and needs no more than that free', async () => {
    const { outcome, requests } = await ask({ outputCap: 300, outcomes: [insufficient(10_000n), { kind: 'held' }] })
    // 400 bytes and 1,024 tokens around them
    expect(requests.at(-1)).toMatchObject({ amount: 1_424n + 3_000n, requiredFree: 1_424n + 3_000n })
    expect(outcome).toMatchObject({ loweredCap: undefined })
  })

  test('lowers the cap to what the balance pays for', async () => {
    const { outcome, requests } = await ask({ outputCap: 900, outcomes: [insufficient(5_430n), { kind: 'held' }] })
    expect(requests.at(-1)).toMatchObject({ amount: 5_424n })
    expect(outcome).toMatchObject({ loweredCap: 400, heldBeforeCost: 5_424n })
  })

  test('fails with the amount needed if the balance is too low', async () => {
    const { outcome, requests } = await ask({ outcomes: [insufficient(3_983n)] })
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

    test('lowers the cap to what the limit has room for', async () => {
      const { outcome, requests } = await ask({ outputCap: 900, outcomes: [over(6_000n, 570n), { kind: 'held' }] })
      expect(requests.at(-1)).toMatchObject({ amount: 5_424n })
      expect(outcome).toMatchObject({ loweredCap: 400, initial: { within: 'limit' } })
    })

    test('fits the tightest of wallet and limits, whichever refuses first', async () => {
      const outcomes = [insufficient(9_000n), over(8_000n, 0n), over(7_000n, 1_570n), { kind: 'held' }] as const
      const { outcome, requests } = await ask({ outputCap: 900, stream: false, outcomes })
      expect(requests.map(({ amount }) => amount)).toEqual([9_150n, 8_994n, 7_994n, 5_424n] as Nano[])
      expect(outcome).toMatchObject({ loweredCap: 400, initial: { within: 'limit' } })
    })

    test('fails until the end of the day if nothing fits', async () => {
      const { outcome, requests } = await ask({ outcomes: [over(5_000n, 1_017n)] })
      expect(requests).toHaveLength(1)
      expect(outcome).toMatchObject({
        code: 'LIMIT_EXCEEDED',
        facts: { shouldRetry: false, retryAfterMs: 86_400_000 },
      })
    })

    test('fails with a short retry if running requests take the room', async () => {
      const { outcome } = await ask({ outputCap: 300, outcomes: [over(5_000n, 500n, 4_000n)] })
      expect(outcome).toMatchObject({ code: 'LIMIT_EXCEEDED', facts: { shouldRetry: true, retryAfterMs: 5000 } })
    })
  })

  test('fails with a short retry if running requests hold the money', async () => {
    const { outcome, requests } = await ask({ outputCap: 5000, outcomes: [insufficient(1_000_000n, 999_000n)] })
    // The usual hold, and once more when its patience is over.
    expect(requests.map(({ amount }) => amount)).toEqual([41_110n, 41_110n] as Nano[])
    expect(outcome).toMatchObject({
      code: 'INSUFFICIENT_BALANCE',
      facts: { shouldRetry: true, retryAfterMs: 5000, metadata: { reason: 'in_flight', needed: '0.000003984' } },
    })
  })

  describe('beside running requests', () => {
    // Half of the 101,424 that are free: (50,712 − 1,424) ÷ 10 tokens would be less than what is usual.
    test('leaves half of the room to others', async () => {
      const outcomes = [insufficient(300_000n, 98_576n), { kind: 'held' }] as const
      const { outcome, requests } = await ask({ outputCap: 30_000, outcomes })
      // 20,000 tokens are affordable.
      expect(requests.at(-1)).toMatchObject({ amount: 1_424n + 100_000n, requiredFree: 101_424n })
      expect(outcome).toMatchObject({ loweredCap: 10_000, growAtBytes: Number.POSITIVE_INFINITY })
    })

    test('takes a step, if that is more than half', async () => {
      const outcomes = [insufficient(100_000n, 88_576n), { kind: 'held' }] as const
      const learn: Asked['learn'] = ({ outputs }) => outputs.learn('key_1', 'a/b', 500)
      const { outcome } = await ask({ outputCap: 30_000, outcomes, learn })
      // 1,000 tokens are affordable, which is less than a step; 500 and half as many again are usual, so it need not wait.
      expect(outcome).toMatchObject({ loweredCap: 1_000 })
    })

    test('waits for what the caller usually needs, and takes less when its patience is over', async () => {
      const blocked = insufficient(100_000n, 93_576n)
      const { outcome, requests } = await ask({ outputCap: 30_000, outcomes: [blocked, blocked, { kind: 'held' }] })
      expect(requests).toHaveLength(3)
      expect(outcome).toMatchObject({ loweredCap: 500 })
    })
  })

  describe('with a previous turn', () => {
    const cheap = createPrice({ input: 1000n as Pico, output: 10_000n as Pico, cache_read: 100n as Pico })
    const usage = { inputTokens: 50, cacheReadTokens: 200, cacheWriteTokens: 250, cacheWriteLongTokens: 0 }
    const learn: Asked['learn'] = ({ turns }) =>
      turns.learn('ws_1 a/b s', 2_000, { ...usage, outputTokens: 9, source: 'reported' })

    test('holds what it reported, its cached part at its price, and what was added', async () => {
      const outcomes = [insufficient(9_000n), { kind: 'held' }] as const
      const { requests } = await ask({ bodyBytes: 2_400, outputCap: 300, price: cheap, outcomes, learn })
      // 500 tokens, 98 % of 450 cached, 400 bytes of 1.5 tokens for four, and 300 out: 209 + 44.1 + 3,000
      expect(requests.at(-1)).toMatchObject({ amount: 3_254n })
    })

    test('holds by size what is shorter than it', async () => {
      const outcomes = [insufficient(9_000n), { kind: 'held' }] as const
      const { requests } = await ask({ bodyBytes: 1_600, outputCap: 300, price: cheap, outcomes, learn })
      // 1,600 bytes of 1.5 tokens for four
      expect(requests.at(-1)).toMatchObject({ amount: 3_600n })
    })
  })

  test.each([0, 1])('fails as overloaded if the ledger is unavailable (%i refusals before)', async (before) => {
    const outcomes: HoldOutcome[] = [insufficient(1_000_000n), { kind: 'unavailable', retryAfterMs: 700 }]
    const { outcome } = await ask({ outcomes: outcomes.slice(1 - before) })
    expect(outcome).toBeInstanceOf(Failure)
    expect(outcome).toMatchObject({ code: 'OVERLOADED', facts: { retryAfterMs: 700 } })
  })
})
