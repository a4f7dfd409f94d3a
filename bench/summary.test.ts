import { expect, test } from 'bun:test'
import type { Cell } from './cells.ts'
import type { LoadResult } from './load.ts'
import { type Measurement, ratioBetween, summarize } from './summary.ts'

const JSON_CELL: Cell = {
  id: 'chat',
  twin: 'chat',
  surface: 'chat',
  provider: 'chat',
  events: 0,
  paceMs: 1,
  waitMs: 0,
  connections: 32,
  promptBytes: 1000,
  arrivalsPerSecond: 0,
  byDefault: true,
}
const STREAM_CELL: Cell = { ...JSON_CELL, id: 'stream', twin: 'stream', events: 100 }

function measured(contender: string, round: number, result: Partial<LoadResult>, cell = 'chat'): Measurement {
  return {
    cell,
    contender,
    round,
    result: {
      seconds: 2,
      requests: 1000,
      events: 0,
      reads: 1000,
      cpuMicros: 100_000,
      rssBytes: 50_000_000,
      p50Ms: 1,
      p99Ms: 2,
      unanswered: 0,
      errors: 0,
      firstError: null,
      ...result,
    },
  }
}

test('takes ratios within a round before their median', () => {
  // Rounds of 100, 200 and 400 µs per request for the base; the other needs 2, 3 and 1.5 times that in the same round.
  // The ratio of the medians would be 600 / 200 = 3.
  const measurements = [100, 200, 400].flatMap((base, round) => [
    measured('bare', round, { cpuMicros: base * 1000 }),
    measured('tollgate', round, { cpuMicros: base * 1000 * ([2, 3, 1.5][round] ?? 0) }),
  ])
  expect(ratioBetween(measurements, JSON_CELL, 'cpuMicrosPerRequest', { of: 'tollgate', to: 'bare' })).toBe(2)
})

test('measures added latency against the upstream of the same round', () => {
  const rows = summarize(
    [
      measured('direct', 1, { p50Ms: 0.5, p99Ms: 1 }),
      measured('bare', 1, { p50Ms: 0.75, p99Ms: 2 }),
      measured('tollgate', 1, { p50Ms: 1, p99Ms: 5 }),
    ],
    [JSON_CELL],
  )
  expect(rows.map((row) => row.contender)).toEqual(['direct', 'bare', 'tollgate'])
  expect(rows[0]?.figures.addedP50Ms.value).toBeNaN()
  expect(rows[2]?.figures.addedP50Ms).toEqual({ value: 0.5, ratio: 2 })
  expect(rows[2]?.figures.addedP99Ms).toEqual({ value: 4, ratio: 4 })
})

test('counts CPU per event in streams and per request elsewhere', () => {
  const rows = summarize(
    [measured('bare', 1, {}), measured('bare', 1, { events: 20_000, reads: 10_000, cpuMicros: 240_000 }, 'stream')],
    [JSON_CELL, STREAM_CELL],
  )
  expect(rows[0]?.figures.cpuMicrosPerRequest.value).toBe(100)
  expect(rows[0]?.figures.cpuMicrosPerEvent.value).toBeNaN()
  expect(rows[1]?.figures.cpuMicrosPerRequest.value).toBeNaN()
  expect(rows[1]?.figures.cpuMicrosPerEvent.value).toBe(12)
  expect(rows[1]?.figures.eventsPerRead.value).toBe(2)
})

test('has no ratio where the base did not run', () => {
  const [row] = summarize([measured('tollgate', 1, {})], [JSON_CELL])
  expect(row?.figures.cpuMicrosPerRequest).toEqual({ value: 100, ratio: Number.NaN })
})

test('keeps the first error and the sum of errors of a row', () => {
  const [row] = summarize(
    [measured('bare', 1, { errors: 2, firstError: 'status 500' }), measured('bare', 2, { errors: 1, firstError: 'x' })],
    [JSON_CELL],
  )
  expect(row?.errors).toBe(3)
  expect(row?.firstError).toBe('status 500')
})

test('compares a translated cell with the bare proxy and the upstream of its twin', () => {
  const translated: Cell = { ...JSON_CELL, id: 'chat-to-messages', provider: 'messages' }
  const rows = summarize(
    [
      measured('direct', 1, { p50Ms: 1 }),
      measured('bare', 1, { cpuMicros: 100_000 }),
      measured('tollgate', 1, { cpuMicros: 300_000, p50Ms: 4 }, 'chat-to-messages'),
    ],
    [translated],
  )
  expect(rows[0]?.figures.cpuMicrosPerRequest).toEqual({ value: 300, ratio: 3 })
  expect(rows[0]?.figures.addedP50Ms.value).toBe(3)
})
