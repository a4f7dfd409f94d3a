// Judges a soak. Pure: the run is over, and its figures are looked at.

import type { ProviderCounts, TrafficCounts } from './counts.ts'
import type { Sample } from './sample.ts'
import { fitLine, type Line } from './slope.ts'

export interface SoakRun {
  readonly minutes: number
  readonly callsPerSecond: number
  /** Samples before this second are warm-up, and not judged. */
  readonly warmUpSeconds: number
  /** Before the traffic. */
  readonly baseline: Sample
  readonly samples: readonly Sample[]
  /** While the traffic paused: nothing ran, and garbage had been collected. */
  readonly rests: readonly Sample[]
  /** After the traffic, when all was back or the quiet was over. */
  readonly quiet: Sample
  readonly quietSeconds: number
  readonly traffic: TrafficCounts
  readonly provider: ProviderCounts
  readonly isAlive: boolean
  /** Log lines of level error. */
  readonly errorLines: readonly string[]
  /** The output of `ledger verify`, and how it ended. */
  readonly books: { readonly exit: number; readonly text: string }
}

/**
 * By what is kept at rest. Under traffic, garbage and calls that run lie on top of it, and of both there is more when the
 * machine is short of time, which is no growth, or less, which hides one.
 */
export interface Slopes {
  readonly rss: Line | undefined
  readonly heap: Line | undefined
  /** By all samples under traffic; not judged. */
  readonly rssUnderTraffic: Line | undefined
}

const mebibyte = 1024 * 1024
/** From the tasks of this house: less than 2 MB an hour after the warm-up. */
export const slopeBytesMax = 2_000_000
/** Descriptors, timers and listeners come and go a little: a pooled connection, a timer that was just set. */
const slack = 5

export function slopesOf({ rests, samples, warmUpSeconds }: SoakRun): Slopes {
  const line = (of: readonly Sample[], read: (sample: Sample) => number) => {
    const judged = of.filter(({ second }) => second >= warmUpSeconds)
    return fitLine(judged.map((sample) => ({ second: sample.second, value: read(sample) })))
  }
  const rss = ({ rssBytes }: Sample) => rssBytes
  return {
    rss: line(rests, rss),
    heap: line(rests, ({ probe }) => probe.heapBytes),
    rssUnderTraffic: line(samples, rss),
  }
}

/** Whether everything that a request takes for its time has been given back. */
export function isBack(baseline: Sample, now: Sample): boolean {
  return whatIsLeft(baseline, now).length === 0
}

function whatIsLeft(baseline: Sample, now: Sample): string[] {
  const counted: readonly (readonly [name: string, before: number, after: number])[] = [
    ['descriptors', baseline.descriptors, now.descriptors],
    ['timers', baseline.probe.timers, now.probe.timers],
    ['listeners', baseline.probe.listeners, now.probe.listeners],
  ]
  const left = counted
    .filter(([, before, after]) => !(after <= before + slack))
    .map(([name, before, after]) => `${name}: ${before} before the traffic, ${after} after it`)
  if (now.openHolds !== 0) left.push(`${now.openHolds} holds are still open`)
  if (now.activeStreams !== 0) left.push(`${now.activeStreams} streams are still counted as running`)
  return left
}

/** `slope`: a short run has warm-up alone, and shows no slope. */
export function violationsOf(run: SoakRun, { slope }: { readonly slope: 'judged' | 'not judged' }): string[] {
  const { traffic, books } = run
  const violations = [...whatIsLeft(run.baseline, run.quiet)]
  if (!run.isAlive) violations.push('the gateway died')
  if (books.exit !== 0) violations.push(`ledger verify ended with ${books.exit}: ${books.text}`)
  for (const end of ['cut', 'no answer', 'status 500']) {
    if (traffic.ends[end] !== undefined) violations.push(`${traffic.ends[end]} calls ended with: ${end}`)
  }
  if (traffic.running > 0) violations.push(`${traffic.running} calls were never answered`)
  if (run.errorLines.length > 0) violations.push(`${run.errorLines.length} errors in the log: ${run.errorLines[0]}`)
  const { rss } = slopesOf(run)
  if (slope === 'judged' && !rss) violations.push('memory was looked at fewer than twice while nothing ran')
  if (slope === 'judged' && rss && !(rss.perHour < slopeBytesMax)) {
    violations.push(`memory grew by ${(rss.perHour / mebibyte).toFixed(2)} MiB an hour`)
  }
  return violations
}
