// Medians and percentiles of samples, and how far a figure can be trusted.

export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** Nearest rank: the smallest value that at least `rank` percent of the sample do not exceed; NaN of nothing. */
export function percentile(values: readonly number[], rank: number): number {
  const sorted = [...values].sort((left, right) => left - right)
  const index = Math.max(0, Math.ceil((rank / 100) * sorted.length) - 1)
  return sorted[index] ?? Number.NaN
}

/**
 * Between which values a figure of rounds lies in nine of ten cases, were other rounds of the same kind measured: rounds
 * are drawn anew from those there are, again and again. The same rounds give the same answer.
 */
export function likelyRange<Round>(
  rounds: readonly Round[],
  figure: (drawn: readonly Round[]) => number,
  draws = 400,
): readonly [number, number] {
  let state = 1
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * bound)
  }
  const figures = Array.from({ length: draws }, () =>
    figure(rounds.flatMap(() => rounds[below(rounds.length)] as Round)),
  )
  return [percentile(figures, 5), percentile(figures, 95)]
}
