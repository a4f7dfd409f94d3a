// The page that Prometheus scrapes: text format 0.0.4, or OpenMetrics 1.0 on request. Both are described at
// https://prometheus.io/docs/instrumenting/exposition_formats/; `forms` lists the differences.

import type { HistogramReading, MetricReading, NumberReading } from './metrics.ts'

export type ExpositionFormat = 'text' | 'openmetrics'

export const contentTypes: Readonly<Record<ExpositionFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

interface Form {
  /** The name in the lines `# HELP` and `# TYPE`. */
  familyName(reading: MetricReading): string
  escapeHelp(text: string): string
  /** The upper bound of a bucket as text. */
  bound(value: number): string
  readonly end: string
}

const forms: Readonly<Record<ExpositionFormat, Form>> = {
  text: {
    familyName: ({ name }) => name,
    escapeHelp: (text) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n'),
    bound: number,
    end: '',
  },
  openmetrics: {
    // The family of a counter has no suffix; its samples do.
    familyName: ({ name, type }) => (type === 'counter' ? name.replace(/_total$/, '') : name),
    escapeHelp: escaped,
    // Bounds are compared as text, so whole numbers are written with a decimal point.
    bound: (value) => (Number.isInteger(value) ? `${value}.0` : number(value)),
    end: '# EOF\n',
  },
}

export function renderExposition(readings: readonly MetricReading[], format: ExpositionFormat): string {
  const form = forms[format]
  let page = ''
  for (const reading of readings) {
    const family = form.familyName(reading)
    page += `# HELP ${family} ${form.escapeHelp(reading.help)}\n# TYPE ${family} ${reading.type}\n`
    page += reading.type === 'histogram' ? renderHistogram(reading, form) : renderNumbers(reading)
  }
  return page + form.end
}

/** OpenMetrics only if `Accept` names it and does not prefer text; everything else gets the text format. */
export function chooseFormat(accept: string | null): ExpositionFormat {
  let text = 0
  let openmetrics = 0
  for (const range of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const written = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
    const quality = written === undefined ? 1 : Number(written)
    if (type === 'application/openmetrics-text') openmetrics = Math.max(openmetrics, quality || 0)
    if (type === 'text/plain') text = Math.max(text, quality || 0)
  }
  return openmetrics > 0 && openmetrics >= text ? 'openmetrics' : 'text'
}

function renderNumbers({ name, labels, points }: NumberReading): string {
  let lines = ''
  for (const { values, value } of points) lines += `${name}${braces(pairs(labels, values))} ${number(value)}\n`
  return lines
}

/** Buckets are cumulative: each counts all values up to its bound. */
function renderHistogram({ name, labels, bounds, points }: HistogramReading, form: Form): string {
  const bucketEnds = [...bounds.map(form.bound), '+Inf']
  let lines = ''
  for (const { values, counts, sum } of points) {
    const own = pairs(labels, values)
    const comma = own === '' ? '' : ','
    let count = 0
    for (const [at, end] of bucketEnds.entries()) {
      count += counts[at] ?? 0
      lines += `${name}_bucket{${own}${comma}le="${end}"} ${count}\n`
    }
    lines += `${name}_sum${braces(own)} ${number(sum)}\n${name}_count${braces(own)} ${count}\n`
  }
  return lines
}

function pairs(labels: readonly string[], values: readonly string[]): string {
  return labels.map((label, at) => `${label}="${escaped(values[at] ?? '')}"`).join(',')
}

function braces(text: string): string {
  return text === '' ? '' : `{${text}}`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function number(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}
