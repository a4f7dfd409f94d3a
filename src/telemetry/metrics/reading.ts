// What a registry says of its metrics at one moment; the common ground of every form they are shown or sent in.

export interface MetricName {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
}

export interface NumberPoint {
  /** In the order of the label names. */
  readonly values: readonly string[]
  readonly value: number
}

export interface HistogramPoint {
  readonly values: readonly string[]
  /** One more than there are bounds; each bucket by itself, not added up. */
  readonly counts: readonly number[]
  readonly sum: number
}

export interface NumberReading extends MetricName {
  readonly type: 'counter' | 'gauge'
  readonly points: readonly NumberPoint[]
}

export interface HistogramReading extends MetricName {
  readonly type: 'histogram'
  readonly bounds: readonly number[]
  readonly points: readonly HistogramPoint[]
}

export type MetricReading = NumberReading | HistogramReading
