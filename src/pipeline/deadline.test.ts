import { afterEach, expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import type { RouteTimeouts } from '../catalog/model.ts'
import { attemptFault } from '../routing/faults.ts'
import type { Candidate } from '../routing/plan.ts'
import type { AttemptRecord } from '../telemetry/request-record.ts'
import {
  type AttemptTimes,
  attemptTimes,
  createTicker,
  earlyHeadersMs,
  explainTimeout,
  firstReplyMs,
  type Ticker,
  type Watched,
} from './deadline.ts'

let ticker: Ticker | undefined
afterEach(() => ticker?.close())

function unexpected(error: unknown): never {
  throw error
}

interface Seen extends Watched {
  readonly ticks: number[]
}

function watcher(): Seen {
  const ticks: number[] = []
  return { tickerIndex: -1, ticks, tick: (nowMs) => void ticks.push(nowMs) }
}

test('watch updates the time between two ticks', () => {
  const clock = createJumpClock()
  ticker = createTicker(clock, unexpected)
  clock.jump(50)
  ticker.watch(watcher())
  expect(ticker.nowMs).toBe(50_000)
})

test('skips one tick after a pause of the process, so that waiting data is read first', async () => {
  const clock = createJumpClock()
  let looks = 0
  ticker = createTicker(
    {
      now: clock.now,
      monotonicMs() {
        looks++
        return clock.monotonicMs()
      },
    },
    unexpected,
  )
  const judgedAtLook: number[] = []
  ticker.watch({ tickerIndex: -1, tick: () => void judgedAtLook.push(looks) })
  while (judgedAtLook.length === 0) await Bun.sleep(5)
  judgedAtLook.length = 0
  looks = 0
  clock.jump(61)
  while (judgedAtLook.length === 0) await Bun.sleep(5)
  // The first tick only updates the time: bytes that arrived in the pause are read after it.
  expect(judgedAtLook[0]).toBe(2)
})

test('a process that is paused repeatedly still ticks', async () => {
  const clock = createJumpClock()
  ticker = createTicker(clock, unexpected)
  const seen = watcher()
  ticker.watch(seen)
  while (seen.ticks.length < 3) {
    clock.jump(2)
    await Bun.sleep(20)
  }
  expect(seen.ticks.every((ms) => ms >= 2000)).toBe(true)
})

test('unwatching during a tick skips no other watcher', async () => {
  ticker = createTicker(createJumpClock(), unexpected)
  const all = [watcher(), watcher(), watcher()] as const
  const leaver: Watched = { tickerIndex: -1, tick: () => ticker?.unwatch(leaver) }
  for (const watched of [all[0], leaver, all[1], all[2]]) ticker.watch(watched)
  while (leaver.tickerIndex !== -1) await Bun.sleep(5)
  const counts = all.map(({ ticks }) => ticks.length)
  expect(Math.min(...counts)).toBeGreaterThan(0)
  expect(Math.max(...counts)).toBe(Math.min(...counts))
})

test('an error in one tick is reported and does not stop the others', async () => {
  const errors: unknown[] = []
  ticker = createTicker(createJumpClock(), (error) => void errors.push(error))
  const seen = watcher()
  const broken: Watched = {
    tickerIndex: -1,
    tick() {
      ticker?.unwatch(broken)
      throw new Error('closed already')
    },
  }
  for (const watched of [seen, broken]) ticker.watch(watched)
  while (seen.ticks.length === 0) await Bun.sleep(5)
  expect(errors).toEqual([new Error('closed already')])
})

interface Asked {
  readonly stream?: boolean
  /** When each attempt before began and how long it took, in seconds. */
  readonly before?: readonly (readonly [start: number, took: number])[]
  readonly timeouts?: Partial<RouteTimeouts>
  readonly isLast?: boolean
}

function timesOf({ stream = false, before = [], timeouts = {}, isLast = false }: Asked): AttemptTimes {
  const attempts: AttemptRecord[] = before.map(([start, took]) => {
    return { provider: 'acme', upstreamModel: 'm', outcome: '503', startMs: start * 1000, ms: took * 1000 }
  })
  const candidate = { model: { tags: [] }, route: { timeouts }, key: {} } as unknown as Candidate
  const health = { firstEventLimitMs: () => 60_000 }
  return attemptTimes(candidate, health, { isStreamed: stream, isLast, earlier: attempts })
}

const secondsFor = (asked: Asked, isStreamed = false) =>
  firstReplyMs(timesOf(asked), isStreamed ? 0 : Number.POSITIVE_INFINITY) / 1000

test('the first attempt has the time of its route', () => {
  expect(secondsFor({})).toBe(600)
  expect(secondsFor({ stream: true }, true)).toBe(60)
  expect(firstReplyMs(timesOf({}), 40_000)).toBe(100_000)
  expect(firstReplyMs(timesOf({}), 590_000)).toBe(600_000)
  expect(secondsFor({ timeouts: { totalMs: 5_000 } }, true)).toBe(5)
  // More than is usual, for the request as well.
  expect(secondsFor({ timeouts: { totalMs: 1_800_000 } })).toBe(1800)
})

test('a later attempt has the time of its route, within the request’s deadline', () => {
  expect(secondsFor({ before: [[2, 100]], timeouts: { totalMs: 50_000 } })).toBe(50)
  expect(secondsFor({ before: [[2, 100]] })).toBe(500)
  expect(secondsFor({ before: [[2, 580]], timeouts: { totalMs: 50_000 } })).toBe(20)
  expect(secondsFor({ stream: true, before: [[2, 880]] }, true)).toBe(20)
  expect(timesOf({ before: [[2, 100]] }).leftMs).toBe(500_000)
})

test('the last route has ten minutes for its first event, whatever its latency was', () => {
  expect(secondsFor({ stream: true, isLast: true }, true)).toBe(600)
  expect(secondsFor({ isLast: true }, true)).toBe(600)
  // Within a configured limit and the request's deadline.
  expect(secondsFor({ stream: true, isLast: true, timeouts: { firstEventMs: 20_000 } }, true)).toBe(20)
  expect(secondsFor({ stream: true, isLast: true, before: [[2, 500]] }, true)).toBe(400)
})

test('silence in mid-answer may last five minutes on any route', () => {
  for (const isLast of [true, false]) {
    expect(timesOf({ isLast }).timeouts).toMatchObject({ idleMs: 300_000, contentIdleMs: 300_000 })
  }
  const timeouts = { idleMs: 1_000, contentIdleMs: 2_000 }
  expect(timesOf({ timeouts }).timeouts).toMatchObject(timeouts)
})

test('parallel attempts count once', () => {
  // From 2 s to 62 s.
  const before = [
    [32, 30],
    [2, 60],
  ] as const
  expect(secondsFor({ before })).toBe(540)
})

test('a timeout by the request’s deadline is not the route’s fault, one by its own limit is', () => {
  const timedOut = attemptFault('timed out')
  const late = timesOf({ before: [[2, 580]] })
  expect(explainTimeout(timedOut, 20_000, late).class).toBe('had too little time')
  // Ended before the deadline, for another reason.
  expect(explainTimeout(timedOut, 19_000, late)).toBe(timedOut)
  const broken = attemptFault('broken')
  expect(explainTimeout(broken, 20_000, late)).toBe(broken)
  expect(explainTimeout(timedOut, 600_000, timesOf({}))).toBe(timedOut)
})

test.each([
  [undefined, 10_000],
  // The usual ten minutes of the official clients.
  ['600', 10_000],
  ['12.5', 10_000],
  ['5', 4_000],
  ['0.5', 400],
  ['0', 10_000],
  ['-3', 10_000],
  ['', 10_000],
  ['soon', 10_000],
])('a client with a timeout of %p seconds gets headers within %p ms', (seconds, expected) => {
  const headers = new Headers(seconds === undefined ? {} : { 'x-stainless-timeout': seconds })
  expect(earlyHeadersMs(headers)).toBe(expected)
})

test.each([
  [{ 'x-stainless-read-timeout': '5' }, 4_000],
  [{ 'x-stainless-read-timeout': '2.5', 'x-stainless-timeout': 'NOT_GIVEN' }, 2_000],
  [{ 'x-stainless-read-timeout': '5', 'x-stainless-timeout': '600' }, 4_000],
  [{ 'x-stainless-read-timeout': '600', 'x-stainless-timeout': '5' }, 4_000],
  [{ 'x-stainless-read-timeout': 'inf' }, 10_000],
  [{ 'x-server-timeout': '5' }, 4_000],
])('the shorter of two timeouts counts: %p is %p ms', (said, expected) => {
  expect(earlyHeadersMs(new Headers(said))).toBe(expected)
})

test.each([
  [undefined, 25_000],
  ['600', 25_000],
  // The retries end at 80 %, so their result still has a status.
  ['20', 18_000],
  ['1', 900],
])('a client with a timeout of %p seconds whose routes fail gets headers within %p ms', (seconds, expected) => {
  const headers = new Headers(seconds === undefined ? {} : { 'x-stainless-timeout': seconds })
  expect(earlyHeadersMs(headers, { areRoutesFailing: true })).toBe(expected)
})
