// Latency and speed of a route from its recent answers: enough to notice a slow route, to choose a fast one, and to know
// when to stop waiting. Every figure has the number of samples and the time span behind it. The browser
// loads it with the catalog, so it imports nothing.

const samplesMax = 128
/** Older samples no longer describe the provider. */
export const sampleAgeMaxMs = 3_600_000

/** With fewer samples, nothing is decided. */
export const samplesMin = 20

/** Quantiles are recomputed after this many samples or this long; sorting for every request would cost too much. */
const lagSamples = 8
const lagMs = 1_000

export interface Quantiles {
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly samples: number
  /** Since the oldest sample. */
  readonly windowMs: number
}

export class SampleRing {
  // Allocated with the first sample: most routes of most workspaces never have one.
  #values: Float64Array | undefined
  #times: Float64Array | undefined
  #added = 0
  #read: Quantiles | undefined
  #readMs = Number.NEGATIVE_INFINITY
  #readAdded = 0

  add(value: number, nowMs: number): void {
    this.#values ??= new Float64Array(samplesMax)
    this.#times ??= new Float64Array(samplesMax)
    const slot = this.#added % samplesMax
    this.#values[slot] = value
    this.#times[slot] = nowMs
    this.#added++
  }

  /** undefined = no recent sample. */
  quantiles(nowMs: number): Quantiles | undefined {
    const isFresh = this.#added - this.#readAdded < lagSamples && nowMs - this.#readMs < lagMs
    if (isFresh && this.#read !== undefined) return this.#read
    this.#read = this.#compute(nowMs)
    this.#readMs = nowMs
    this.#readAdded = this.#added
    return this.#read
  }

  /** undefined = too few samples to decide anything. */
  reliable(nowMs: number): Quantiles | undefined {
    if (this.#added < samplesMin) return undefined
    const read = this.quantiles(nowMs)
    return read !== undefined && read.samples >= samplesMin ? read : undefined
  }

  #compute(nowMs: number): Quantiles | undefined {
    const { oldestMs, young } = this.#young(nowMs)
    if (young.length === 0) return undefined
    young.sort()
    return {
      p50: nearestRank(young, 0.5),
      p95: nearestRank(young, 0.95),
      p99: nearestRank(young, 0.99),
      samples: young.length,
      windowMs: nowMs - oldestMs,
    }
  }

  #young(nowMs: number): { oldestMs: number; young: Float64Array } {
    const young = new Float64Array(Math.min(this.#added, samplesMax))
    let count = 0
    let oldestMs = nowMs
    for (let slot = 0; slot < young.length; slot++) {
      const addedMs = this.#times?.[slot] ?? 0
      if (nowMs - addedMs > sampleAgeMaxMs) continue
      oldestMs = Math.min(oldestMs, addedMs)
      young[count++] = this.#values?.[slot] ?? 0
    }
    return { oldestMs, young: young.subarray(0, count) }
  }
}

function nearestRank(sorted: Float64Array, share: number): number {
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0
}

export class Latency {
  /** From sending to the first meaningful event, in milliseconds. */
  readonly firstEventMs = new SampleRing()
  readonly tokensPerSecond = new SampleRing()
}

const firstEventLimitMinMs = 15_000
const firstEventLimitMaxMs = 60_000
/** A reasoning model may be silent for minutes before its first event. */
const firstEventLimitReasoningMs = 180_000
const firstEventLimitTimes = 3

/** How long to wait for a first event before another route is tried. */
export function firstEventLimitMs(firstEvent: Quantiles | undefined, kind: 'reasoning' | 'ordinary'): number {
  if (kind === 'reasoning') return firstEventLimitReasoningMs
  if (firstEvent === undefined) return firstEventLimitMaxMs
  const limitMs = firstEventLimitTimes * firstEvent.p99
  return Math.min(firstEventLimitMaxMs, Math.max(firstEventLimitMinMs, limitMs))
}

const outlierTimes = 3

/**
 * The p95 above which a route is an outlier. Based on the lower median: of two routes the faster one is the measure, so at
 * least one route is never an outlier.
 */
export function outlierLimitMs(p95s: readonly number[]): number {
  const sorted = [...p95s].sort((a, b) => a - b)
  return outlierTimes * (sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.POSITIVE_INFINITY)
}
