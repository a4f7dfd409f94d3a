// Readings of a registry in the form of the protocol. Everything is cumulative since the start, so that one that gets
// lost is made good by the next.

import type { MetricReading } from '../metrics/reading.ts'
import { genAiSchemaUrl } from './gen-ai-names.ts'
import { Attributes, type KeyValue, resourceOf, type Sender, scopeOf, unixNanos } from './json-mapping.ts'

const cumulative = 2

export interface MetricTimes {
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly now: number
}

export function metricsPayload(readings: readonly MetricReading[], times: MetricTimes, sender: Sender) {
  const metrics = readings.filter(({ points }) => points.length > 0).map((reading) => metricOf(reading, times))
  const scopeMetrics = [{ scope: scopeOf(sender), metrics, schemaUrl: genAiSchemaUrl }]
  return { resourceMetrics: [{ resource: resourceOf(sender), scopeMetrics }] }
}

function metricOf(reading: MetricReading, { startedAt, now }: MetricTimes) {
  const { name, help: description, labels } = reading
  const since = { startTimeUnixNano: unixNanos(startedAt), timeUnixNano: unixNanos(now) }
  if (reading.type === 'histogram') {
    const dataPoints = reading.points.map(({ values, counts, sum }) => ({
      attributes: attributesOf(labels, values),
      ...since,
      count: String(counts.reduce((total, count) => total + count, 0)),
      sum,
      bucketCounts: counts.map(String),
      explicitBounds: reading.bounds,
    }))
    return { name, description, unit: unitOf(name), histogram: { aggregationTemporality: cumulative, dataPoints } }
  }
  const points = reading.points.filter(({ value }) => Number.isFinite(value))
  if (reading.type === 'gauge') {
    const dataPoints = points.map(({ values, value }) => ({
      attributes: attributesOf(labels, values),
      timeUnixNano: since.timeUnixNano,
      asDouble: value,
    }))
    return { name, description, unit: unitOf(name), gauge: { dataPoints } }
  }
  const dataPoints = points.map(({ values, value }) => ({
    attributes: attributesOf(labels, values),
    ...since,
    asDouble: value,
  }))
  const sum = { aggregationTemporality: cumulative, isMonotonic: true, dataPoints }
  return { name, description, unit: unitOf(name), sum }
}

function attributesOf(labels: readonly string[], values: readonly string[]): readonly KeyValue[] {
  const attributes = new Attributes()
  for (const [at, label] of labels.entries()) attributes.text(label, values[at])
  return attributes.list
}

/** In the notation of UCUM; our own names say the unit as their suffix. */
function unitOf(name: string): string {
  if (/(_seconds(_total)?|\.duration)$/.test(name)) return 's'
  if (/_bytes$/.test(name)) return 'By'
  if (/_usd(_total)?$/.test(name)) return '{USD}'
  return /(\.token\.usage|_tokens_total)$/.test(name) ? '{token}' : '1'
}
