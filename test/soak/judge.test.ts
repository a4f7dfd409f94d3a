import { expect, test } from 'bun:test'
import { type SoakRun, slopesOf, violationsOf } from './judge.ts'
import { renderPlot } from './plot.ts'
import type { Sample } from './sample.ts'
import { fitLine } from './slope.ts'

const probe = { heapBytes: 1000, objects: 10, timers: 3, listeners: 2, types: undefined }
const calm: Sample = {
  second: 0,
  rssBytes: 100_000_000,
  anonymousBytes: 90_000_000,
  descriptors: 20,
  threads: 5,
  openHolds: 0,
  activeStreams: 0,
  probe,
}

/** An hour in samples of a minute, at rest every fifth; `bytesPerHour` on top of a heap that goes up and down. */
function soaked(bytesPerHour: number, change: Partial<SoakRun> = {}): SoakRun {
  const samples = Array.from({ length: 61 }, (_, minute) => ({
    ...calm,
    second: minute * 60,
    rssBytes: 100_000_000 + (minute % 2) * 3_000_000 + (bytesPerHour * minute) / 60,
  }))
  const rests = samples.filter((_, minute) => minute % 5 === 0)
  return {
    minutes: 60,
    callsPerSecond: 1,
    warmUpSeconds: 1200,
    baseline: calm,
    samples,
    rests,
    quiet: calm,
    quietSeconds: 0,
    traffic: { asked: 3600, running: 0, skipped: 0, ends: { complete: 3600 }, odd: [] },
    provider: { calls: 3600, faults: 180 },
    isAlive: true,
    errorLines: [],
    books: { exit: 0, text: 'The books are right' },
    ...change,
  }
}

const judged = (run: SoakRun) => violationsOf(run, { slope: 'judged' })

test('points on a line give the line, and one moment gives none', () => {
  const points = [0, 1800, 3600].map((second) => ({ second, value: 5 + second / 900 }))
  const line = fitLine(points)
  expect(line?.start).toBeCloseTo(5, 9)
  expect(line?.perHour).toBeCloseTo(4, 9)
  expect(fitLine([{ second: 3, value: 1 }])).toBeUndefined()
})

test('least squares: (0,1) (1,3) (2,2) lie nearest to 1.5 + x/2', () => {
  const line = fitLine([
    { second: 0, value: 1 },
    { second: 1, value: 3 },
    { second: 2, value: 2 },
  ])
  expect(line?.start).toBeCloseTo(1.5, 9)
  expect(line?.perHour).toBeCloseTo(1800, 9)
})

test('a heap that goes up and down is no leak, three megabytes an hour are', () => {
  expect(judged(soaked(0))).toEqual([])
  expect(judged(soaked(3_000_000))).toEqual([expect.stringContaining('memory grew by')])
  expect(violationsOf(soaked(3_000_000), { slope: 'not judged' })).toEqual([])
})

/** The same hour with garbage on top of what is kept, which is gone at rest. */
function littered(bytesPerHour: number, garbageAt: (minute: number) => number): SoakRun {
  const run = soaked(bytesPerHour)
  const samples = run.samples.map((each, minute) => ({ ...each, rssBytes: each.rssBytes + garbageAt(minute) }))
  return { ...run, samples }
}

test('collections that come later and later are no growth of what is kept', () => {
  expect(judged(littered(0, (minute) => minute * 500_000))).toEqual([])
})

test('detects growing memory below a shrinking amount of garbage', () => {
  const run = littered(5_000_000, (minute) => (60 - minute) * 300_000)
  expect(judged(run)).toEqual([expect.stringContaining('memory grew by')])
})

test('a run that was never at rest shows no slope, and that is said', () => {
  expect(judged(soaked(0, { rests: [] }))).toEqual([expect.stringContaining('fewer than twice')])
})

test('growth during the warm-up is not counted', () => {
  const run = soaked(0)
  const rests = run.rests.map((each) => (each.second < 1200 ? { ...each, rssBytes: each.rssBytes / 2 } : each))
  expect(judged({ ...run, rests })).toEqual([])
})

test('names descriptors, holds, streams, timers and listeners that are left', () => {
  const left = {
    ...calm,
    descriptors: 26,
    openHolds: 1,
    activeStreams: 2,
    probe: { ...probe, timers: 9, listeners: 8 },
  }
  expect(judged(soaked(0, { quiet: left }))).toEqual([
    'descriptors: 20 before the traffic, 26 after it',
    'timers: 3 before the traffic, 9 after it',
    'listeners: 2 before the traffic, 8 after it',
    '1 holds are still open',
    '2 streams are still counted as running',
  ])
  expect(judged(soaked(0, { quiet: { ...calm, descriptors: 25 } }))).toEqual([])
  expect(judged(soaked(0, { quiet: { ...calm, openHolds: Number.NaN } }))).toHaveLength(1)
})

test('a death, wrong books, a silent cut, a defect and an error in the log are violations', () => {
  const traffic = { asked: 9, running: 1, skipped: 0, ends: { cut: 2, 'no answer': 1, 'status 500': 3 }, odd: [] }
  const books = { exit: 1, text: 'wrong' }
  const violations = judged(soaked(0, { isAlive: false, books, traffic, errorLines: ['oh no'] }))
  expect(violations).toEqual([
    'the gateway died',
    'ledger verify ended with 1: wrong',
    '2 calls ended with: cut',
    '1 calls ended with: no answer',
    '3 calls ended with: status 500',
    '1 calls were never answered',
    '1 errors in the log: oh no',
  ])
})

test('the picture has a place for every sample and escapes what it says', () => {
  const run = soaked(0)
  const rss = run.samples.map(({ second, rssBytes }) => ({ second, value: rssBytes }))
  const svg = renderPlot({ title: 'a < b', rss, heap: [], warmUpSeconds: 1200, line: slopesOf(run).rss })
  expect(svg).toContain('a &lt; b')
  expect(/<polyline points="([^"]*)"/.exec(svg)?.[1]?.split(' ')).toHaveLength(61)
  expect(svg).not.toContain('NaN')
})
