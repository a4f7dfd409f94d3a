import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { type Gateway, startGateway, stopAll, upstreamConfig } from '../parts/gateway.ts'
import { createJumpClock, type JumpClock } from '../parts/jump-clock.ts'
import {
  type ClientName,
  chatClientNames,
  isChatClient,
  messageClientNames,
  readError,
} from '../parts/official-clients.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { createTalk } from './talk.ts'

// How the clients' own retries read our headers. Their waits are written down and cut short, so that nothing here
// depends on how long anything takes.

let gateway: Gateway
let upstream: Upstream
let clock: JumpClock
/** So many settlements are answered as unknown; each is then made. */
let unknownCharges = 0
function wrapLedger(real: Ledger): Ledger {
  return {
    ...real,
    async settle(settlement) {
      const settling = real.settle(settlement)
      if (unknownCharges-- <= 0) return await settling
      const end = settling.then((outcome) => (outcome.kind === 'unknown' ? undefined : outcome))
      return { kind: 'unknown', retryAfterMs: 1000, end }
    },
  }
}

// A gateway for each test: what one test's provider did wrong must not be held against the next one's.
beforeEach(async () => {
  clock = createJumpClock()
  upstream = startUpstream(() => {})
  unknownCharges = 0
  gateway = await startGateway({ config: upstreamConfig(upstream.url), clock, wrapLedger })
})
afterEach(() => stopAll(gateway, upstream))

/** The gateway's own limit on the claim of an idempotency key, which no client asks for. */
const claimLimitMs = 5000
/** Every wait that was asked for, in milliseconds. */
let waits: number[] = []
const setTimer = globalThis.setTimeout
const timers = spyOn(globalThis, 'setTimeout')
beforeEach(() => {
  waits = []
  const shortened = (run: () => void, ms = 0) => {
    if (ms === claimLimitMs) return setTimer(run, ms)
    waits.push(ms)
    // For the gateway the time passes all the same: it leaves a throttled provider alone until then.
    if (ms >= 1000 && ms < 60_000) clock.jump(ms / 1000)
    // A client's own limits are minutes; they are left alone.
    return setTimer(run, ms >= 60_000 ? ms : 0)
  }
  timers.mockImplementation(shortened as typeof setTimeout)
})
afterEach(() => {
  timers.mockReset()
  timers.mockImplementation(setTimer)
})
afterAll(() => timers.mockRestore())

/** One call with retries allowed; answers with the text. */
async function say(name: ClientName, model: string, maxRetries: number, defaultHeaders = {}): Promise<string> {
  const talk = createTalk(name, gateway, { maxRetries, defaultHeaders })
  return (await talk({ model, turns: ['hi'] }, 'whole')).text
}

const answer = answerWith({ input: 5, output: 1 }, ['there'])

/** How often the gateway was asked for the model since the count began. */
function requestCounter(model: string): () => number {
  const count = () => gateway.logged().filter((line) => line.model === model).length
  const before = count()
  return () => count() - before
}

for (const name of [...chatClientNames, ...messageClientNames]) {
  describe(name, () => {
    const model = isChatClient(name) ? 'test/chat' : 'test/messages'

    test('does not send a request again by itself whose charge is unknown and that has no idempotency key', async () => {
      upstream.handle(answer)
      unknownCharges = 1
      const error = await readError(name, say(name, model, 2))
      expect(error).toMatchObject({ status: 503, code: 'OVERLOADED' })
      expect(upstream.calls).toHaveLength(1)
    })

    test('sends one whose charge is unknown again under its idempotency key, and gets the first answer unpaid', async () => {
      upstream.handle(answer)
      unknownCharges = 1
      expect(await say(name, model, 5, { 'idempotency-key': 'k' })).toBe('there')
      expect(upstream.calls).toHaveLength(1)
    })

    test('waits as long as Retry-After says between its tries', async () => {
      const requests = requestCounter('sandbox/throttled')
      const error = await readError(name, say(name, 'sandbox/throttled', 2))
      expect(error).toMatchObject({ exception: 'RateLimitError', code: 'LIMIT_EXCEEDED' })
      expect(requests()).toBe(3)
      expect(waits.filter((ms) => ms === 12_000)).toHaveLength(2)
    })

    test('comes back after the wait and gets its answer', async () => {
      let calls = 0
      upstream.handle((call, reply) => {
        calls += 1
        if (calls > 1) return answer(call, reply)
        return reply.json(429, { error: { message: 'slow down' } }, { 'retry-after': '7' })
      })
      expect(await say(name, model, 1)).toBe('there')
      expect(calls).toBe(2)
      expect(waits).toContain(7_000)
    })

    test('gets x-should-retry: false if the wait is longer than clients accept', async () => {
      upstream.handle((_, reply) => reply.json(429, { error: { message: 'slow down' } }, { 'retry-after': '3600' }))
      const requests = requestCounter(model)
      const error = await readError(name, say(name, model, 2))
      expect(error).toMatchObject({ exception: 'RateLimitError', code: 'LIMIT_EXCEEDED' })
      expect(error.headers?.get('retry-after')).toBe('3600')
      expect(error.headers?.get('x-should-retry')).toBe('false')
      expect(requests()).toBe(1)
    })

    test('comes back to a provider that keeps failing, after Retry-After, and then says so', async () => {
      const requests = requestCounter('sandbox/down')
      const error = await readError(name, say(name, 'sandbox/down', 2))
      expect(error).toMatchObject({ exception: 'NotFoundError', code: 'NOT_FOUND' })
      expect(String(error.text)).toContain('its provider sandbox is failing')
      expect(requests()).toBe(3)
      expect(waits.filter((ms) => ms === 4_000)).toHaveLength(2)
    })

    test('does not come back where only the operator can help', async () => {
      upstream.handle((_, reply) => reply.json(401, { error: { message: 'bad key' } }))
      const requests = requestCounter(model)
      const error = await readError(name, say(name, model, 2))
      expect(error).toMatchObject({ exception: 'NotFoundError', code: 'NOT_FOUND' })
      expect(String(error.text)).toContain("rejected the gateway's credential")
      expect(requests()).toBe(1)
    })
  })
}
