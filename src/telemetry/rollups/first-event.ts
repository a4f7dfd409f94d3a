// How long first events took, as counts between fixed bounds: such counts can be added up over hours, keys and replicas,
// which quantiles cannot. A quantile read from them is an estimate between two bounds.

/** Upper bounds in milliseconds; what took longer is counted after the last. The columns of the table are named so. */
export const firstEventBounds = [25, 50, 100, 200, 350, 500, 750, 1000, 1500, 2500, 5000, 10_000, 30_000] as const

export const firstEventColumns: readonly string[] = [
  ...firstEventBounds.map((bound) => `first_${bound}`),
  'first_later',
]

export function firstEventPlace(milliseconds: number): number {
  const place = firstEventBounds.findIndex((bound) => milliseconds <= bound)
  return place < 0 ? firstEventBounds.length : place
}

export interface FirstEvents {
  /** How many were measured. */
  readonly count: number
  /** Milliseconds, estimated. */
  readonly p50: number
  readonly p95: number
}

/** null where nothing was measured. */
export function firstEventsOf(counts: readonly bigint[]): FirstEvents | null {
  // Counts of requests: far from where numbers become inexact.
  const numbers = counts.map(Number)
  const count = numbers.reduce((sum, each) => sum + each, 0)
  return count === 0 ? null : { count, p50: quantile(numbers, count, 0.5), p95: quantile(numbers, count, 0.95) }
}

/** Beyond the last bound that bound is all that is known. */
function quantile(counts: readonly number[], total: number, share: number): number {
  const wanted = share * total
  let before = 0
  for (let place = 0; place < counts.length; place++) {
    const count = counts[place] ?? 0
    if (count > 0 && before + count >= wanted) {
      const low = firstEventBounds[place - 1] ?? 0
      const high = firstEventBounds[place] ?? low
      return Math.round(low + ((high - low) * (wanted - before)) / count)
    }
    before += count
  }
  return firstEventBounds[firstEventBounds.length - 1] ?? 0
}
