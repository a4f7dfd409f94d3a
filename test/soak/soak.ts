// `npm run soak`: mixed traffic with leaving clients and a faulty provider
// for an hour; a line every ten seconds, a summary, soak.json and soak.svg in the folder, and exit code 1 on a violation.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { letIn } from './counts.ts'
import { type SoakRun, slopesOf, violationsOf } from './judge.ts'
import { renderPlot } from './plot.ts'
import { runSoak } from './run-soak.ts'
import type { Line } from './slope.ts'

const usage = `npm run soak -- [options]
  --minutes N   how long the traffic lasts (60)
  --rate N      calls begun per second (70)
  --warm-up N   minutes that memory is not judged by (a third)
  --interpreted the gateway without its compiler, to tell what compiled code takes from what is leaked
  --results F   a folder for soak.json and soak.svg`

const values = scriptOptions(usage, {
  minutes: { type: 'string', default: '60' },
  rate: { type: 'string', default: '70' },
  'warm-up': { type: 'string' },
  interpreted: { type: 'boolean', default: false },
  results: { type: 'string' },
})
const minutes = Number(values.minutes)
const callsPerSecond = Number(values.rate)
/** A third: heap, pools and page caches have found their size. */
const warmUpMinutes = Number(values['warm-up'] ?? minutes / 3)
if (!(minutes > 0 && callsPerSecond > 0 && warmUpMinutes >= 0 && warmUpMinutes < minutes)) {
  refuseOptions('--minutes, --rate and --warm-up take numbers above 0; the warm-up is shorter than the whole', usage)
}

const mebibytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
const perHour = (line: Line | undefined) => (line ? `${(line.perHour / 1e6).toFixed(2)} MB an hour` : 'unknown')
const clock = (second: number) => `${Math.floor(second / 60)}:${String(Math.floor(second % 60)).padStart(2, '0')}`

function summaryOf(run: SoakRun): string {
  const { traffic, provider, baseline, quiet } = run
  const ends = Object.entries(traffic.ends).sort(([, a], [, b]) => b - a)
  const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`
  const { rss, heap, rssUnderTraffic } = slopesOf(run)
  return [
    `${traffic.asked} calls in ${run.minutes} minutes, ${traffic.skipped} not sent`,
    `  ${ends.map(([end, count]) => `${end} ${count}`).join(', ')}`,
    `  of the ${letIn(traffic)} that were not turned away ${share(traffic.ends.left ?? 0, letIn(traffic))} left; ${provider.calls} calls of the provider, faults in ${share(provider.faults, provider.calls)}`,
    `after ${clock(run.warmUpSeconds)}, at rest: resident memory ${perHour(rss)}, heap ${perHour(heap)}; under traffic ${perHour(rssUnderTraffic)}`,
    `before → after, ${run.quietSeconds.toFixed(0)} s quiet: descriptors ${baseline.descriptors} → ${quiet.descriptors}, timers ${baseline.probe.timers} → ${quiet.probe.timers}, listeners ${baseline.probe.listeners} → ${quiet.probe.listeners}, holds ${baseline.openHolds} → ${quiet.openHolds}, heap ${mebibytes(baseline.probe.heapBytes)} → ${mebibytes(quiet.probe.heapBytes)}`,
    run.books.text,
  ].join('\n')
}

// So that the processes of the run go too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

let shownSecond = 0
const run = await runSoak({
  minutes,
  callsPerSecond,
  warmUpSeconds: warmUpMinutes * 60,
  isInterpreted: values.interpreted,
  sampleSeconds: 2,
  // Eight of them are judged.
  restEverySeconds: ((minutes - warmUpMinutes) * 60) / 8,
  quietSecondsMax: 60,
  onSample(sample, { asked, running, ends }, { faults }) {
    const { second, rssBytes, descriptors, openHolds, probe } = sample
    if (second < shownSecond + 10) return
    shownSecond = second
    console.log(
      `${clock(second).padStart(6)}  ${asked} calls  ${running} running  ${ends.left ?? 0} left  ${faults} faults  ${mebibytes(rssBytes)}  heap ${mebibytes(probe.heapBytes)}  ${descriptors} descriptors  ${probe.timers} timers  ${openHolds} holds`,
    )
  },
})
const violations = violationsOf(run, { slope: 'judged' })
console.log(`\n${summaryOf(run)}`)
for (const odd of run.traffic.odd) console.log(odd)
for (const violation of violations) console.log(`VIOLATION: ${violation}`)
if (violations.length === 0) console.log('nothing grew, nothing was left')
if (values.results !== undefined) {
  mkdirSync(values.results, { recursive: true })
  const { rss } = slopesOf(run)
  writeFileSync(join(values.results, 'soak.json'), `${JSON.stringify({ ...run, slopes: slopesOf(run), violations })}\n`)
  const title = `${run.traffic.asked} calls in ${minutes} minutes: at rest resident memory ${perHour(rss)} after the warm-up`
  const points = (of: (sample: SoakRun['samples'][number]) => number) =>
    run.samples.map((sample) => ({ second: sample.second, value: of(sample) }))
  const plot = renderPlot({
    title,
    rss: points(({ rssBytes }) => rssBytes),
    heap: points(({ probe }) => probe.heapBytes),
    warmUpSeconds: run.warmUpSeconds,
    line: rss,
  })
  writeFileSync(join(values.results, 'soak.svg'), plot)
}
process.exit(violations.length === 0 ? 0 : 1)
