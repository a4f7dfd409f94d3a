import { expect, test } from 'bun:test'
import type { RouteTimeouts } from '../catalog/model.ts'
import type { Candidate } from '../routing/candidate.ts'
import { attemptFault } from '../routing/fault.ts'
import type { AttemptRecord } from '../telemetry/request-record.ts'
import { AttemptTime } from './attempt-time.ts'
import type { Call } from './call.ts'

interface Asked {
  readonly stream?: boolean
  /** When each attempt before began and how long it took, in seconds. */
  readonly before?: readonly (readonly [start: number, took: number])[]
  readonly timeouts?: Partial<RouteTimeouts>
  readonly isLast?: boolean
}

function timeOf({ stream = false, before = [], timeouts = {}, isLast = false }: Asked): AttemptTime {
  const attempts: AttemptRecord[] = before.map(([start, took]) => {
    return { provider: 'acme', upstreamModel: 'm', outcome: '503', startMs: start * 1000, ms: took * 1000 }
  })
  const call = { envelope: { stream }, model: { tags: [] }, story: { record: { attempts } } } as unknown as Call
  const candidate = { route: { timeouts }, key: {} } as unknown as Candidate
  return new AttemptTime(call, candidate, { firstEventLimitMs: () => 60_000 }, { isLast })
}

const secondsFor = (asked: Asked, streamsUpstream = false) => timeOf(asked).firstAnswerMs({ streamsUpstream }) / 1000

test('the first attempt has all of its route’s time', () => {
  expect(secondsFor({})).toBe(600)
  expect(secondsFor({ stream: true }, true)).toBe(60)
  expect(secondsFor({ timeouts: { totalMs: 5_000 } }, true)).toBe(5)
  // More than is usual, for the request as well.
  expect(secondsFor({ timeouts: { totalMs: 1_800_000 } })).toBe(1800)
})

test('a later one too, but for what is left of the request’s deadline', () => {
  expect(secondsFor({ before: [[2, 100]], timeouts: { totalMs: 50_000 } })).toBe(50)
  expect(secondsFor({ before: [[2, 100]] })).toBe(500)
  expect(secondsFor({ before: [[2, 580]], timeouts: { totalMs: 50_000 } })).toBe(20)
  expect(secondsFor({ stream: true, before: [[2, 880]] }, true)).toBe(20)
  expect(timeOf({ before: [[2, 100]] }).whileCollecting).toEqual({ idleMs: 300_000, totalMs: 500_000 })
})

test('the last route has ten minutes for its first event, whatever was learned of it', () => {
  expect(secondsFor({ stream: true, isLast: true }, true)).toBe(600)
  expect(secondsFor({ isLast: true }, true)).toBe(600)
  // But for a limit in the file, and for what is left of the request.
  expect(secondsFor({ stream: true, isLast: true, timeouts: { firstEventMs: 20_000 } }, true)).toBe(20)
  expect(secondsFor({ stream: true, isLast: true, before: [[2, 500]] }, true)).toBe(400)
})

test('silence in mid-answer may last five minutes, on any route', () => {
  for (const isLast of [true, false]) {
    expect(timeOf({ isLast }).timeouts).toMatchObject({ idleMs: 300_000, contentIdleMs: 300_000 })
  }
  const timeouts = { idleMs: 1_000, contentIdleMs: 2_000 }
  expect(timeOf({ timeouts }).timeouts).toMatchObject(timeouts)
})

test('two that were asked side by side took no longer than both together', () => {
  // From 2 s to 62 s.
  const before = [
    [32, 30],
    [2, 60],
  ] as const
  expect(secondsFor({ before })).toBe(540)
})

test('an end by the request’s deadline is no fault of the route, an end by its own clock is', () => {
  const timedOut = attemptFault('timed out')
  const late = timeOf({ before: [[2, 580]] })
  expect(late.explain(timedOut, 20_000).class).toBe('had too little time')
  // Thirty silent seconds, or whatever else came before the deadline.
  expect(late.explain(timedOut, 19_000)).toBe(timedOut)
  const broken = attemptFault('broken')
  expect(late.explain(broken, 20_000)).toBe(broken)
  expect(timeOf({}).explain(timedOut, 600_000)).toBe(timedOut)
})
