// Medians and percentiles of small samples.

export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** Nearest rank: the smallest value that at least `rank` percent of the sample do not exceed; NaN of nothing. */
export function percentile(values: readonly number[], rank: number): number {
  const sorted = [...values].sort((left, right) => left - right)
  const index = Math.max(0, Math.ceil((rank / 100) * sorted.length) - 1)
  return sorted[index] ?? Number.NaN
}
