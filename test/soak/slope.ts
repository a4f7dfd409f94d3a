// The straight line that lies nearest to a series of measurements, by least squares.

export interface Point {
  readonly second: number
  readonly value: number
}

export interface Line {
  /** At second 0. */
  readonly start: number
  readonly perHour: number
}

/** undefined = fewer than two moments, which lie on any line. */
export function fitLine(points: readonly Point[]): Line | undefined {
  const count = points.length
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / count
  const meanSecond = mean(({ second }) => second)
  const meanValue = mean(({ value }) => value)
  const spread = points.reduce((sum, { second }) => sum + (second - meanSecond) ** 2, 0)
  if (count < 2 || spread === 0) return undefined
  const together = points.reduce((sum, { second, value }) => sum + (second - meanSecond) * (value - meanValue), 0)
  const perSecond = together / spread
  return { start: meanValue - perSecond * meanSecond, perHour: perSecond * 3600 }
}
