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

/** Milliseconds; undefined where nothing was measured. Beyond the last bound that bound is all that is known. */
export function quantile(counts: readonly bigint[], share: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0n)
  if (total === 0n) return undefined
  const wanted = share * Number(total)
  let before = 0
  for (const [place, each] of counts.entries()) {
    const count = Number(each)
    if (count > 0 && before + count >= wanted) {
      const low = firstEventBounds[place - 1] ?? 0
      const high = firstEventBounds[place] ?? low
      return Math.round(low + ((high - low) * (wanted - before)) / count)
    }
    before += count
  }
  return firstEventBounds.at(-1)
}
