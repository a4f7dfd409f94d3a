import { describe, expect, test } from 'bun:test'
import { parseExposition, sampleValue } from '../../test/observe/exposition-parser.ts'
import { chooseFormat, renderExposition } from './exposition.ts'
import type { MetricReading } from './metrics.ts'

const counter: MetricReading = {
  type: 'counter',
  name: 'calls_total',
  help: 'Calls.',
  labels: ['model'],
  points: [{ values: ['acme/large'], value: 3 }],
}
const histogram: MetricReading = {
  type: 'histogram',
  name: 'wait_seconds',
  help: 'Waits.',
  labels: ['provider'],
  bounds: [0.5, 1],
  points: [{ values: ['acme'], counts: [2, 0, 1], sum: 12.25 }],
}

test('a counter is two comments and a line for each series', () => {
  expect(renderExposition([counter], 'text')).toBe(
    '# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{model="acme/large"} 3\n',
  )
})

test('buckets of a histogram are cumulative, and the last one is the count', () => {
  expect(renderExposition([histogram], 'text')).toBe(
    [
      '# HELP wait_seconds Waits.',
      '# TYPE wait_seconds histogram',
      'wait_seconds_bucket{provider="acme",le="0.5"} 2',
      'wait_seconds_bucket{provider="acme",le="1"} 2',
      'wait_seconds_bucket{provider="acme",le="+Inf"} 3',
      'wait_seconds_sum{provider="acme"} 12.25',
      'wait_seconds_count{provider="acme"} 3',
      '',
    ].join('\n'),
  )
})

test('OpenMetrics drops the suffix from the family, writes bounds as fractions and ends with EOF', () => {
  expect(
    renderExposition(
      [counter, { ...histogram, labels: [], points: [{ values: [], counts: [1, 0, 0], sum: 0.1 }] }],
      'openmetrics',
    ),
  ).toBe(
    [
      '# HELP calls Calls.',
      '# TYPE calls counter',
      'calls_total{model="acme/large"} 3',
      '# HELP wait_seconds Waits.',
      '# TYPE wait_seconds histogram',
      'wait_seconds_bucket{le="0.5"} 1',
      'wait_seconds_bucket{le="1.0"} 1',
      'wait_seconds_bucket{le="+Inf"} 1',
      'wait_seconds_sum 0.1',
      'wait_seconds_count 1',
      '# EOF',
      '',
    ].join('\n'),
  )
})

test('quotes, backslashes and line ends in a label survive a round trip', () => {
  for (const value of ['a"b', 'a\\b', 'a\nb', '\\', '\\n', '"', 'Ä {x="y"},', '']) {
    const page = renderExposition([{ ...counter, points: [{ values: [value], value: 7 }] }], 'text')
    expect(page.split('\n').length).toBe(4)
    expect(sampleValue(parseExposition(page), 'calls_total', { model: value })).toBe(7)
  }
  const escaped = renderExposition([{ ...counter, points: [{ values: ['a\\"\n'], value: 1 }] }], 'text')
  expect(escaped).toContain('calls_total{model="a\\\\\\"\\n"} 1')
})

test('line ends in the help are escaped, and quotes where OpenMetrics requires it', () => {
  const reading = { ...counter, help: 'one\n"two" \\' }
  expect(renderExposition([reading], 'text')).toStartWith('# HELP calls_total one\\n"two" \\\\\n')
  expect(renderExposition([reading], 'openmetrics')).toStartWith('# HELP calls one\\n\\"two\\" \\\\\n')
})

test('infinite numbers and NaN are written as the format requires', () => {
  const gauge: MetricReading = {
    type: 'gauge',
    name: 'g',
    help: 'G.',
    labels: ['k'],
    points: [
      { values: ['a'], value: Number.POSITIVE_INFINITY },
      { values: ['b'], value: Number.NEGATIVE_INFINITY },
      { values: ['c'], value: Number.NaN },
      { values: ['d'], value: 1e-7 },
    ],
  }
  const values = renderExposition([gauge], 'text').trim().split('\n').slice(2)
  expect(values).toEqual(['g{k="a"} +Inf', 'g{k="b"} -Inf', 'g{k="c"} NaN', 'g{k="d"} 1e-7'])
})

describe('the format is', () => {
  const prometheus =
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.2'
  const cases: readonly (readonly [string | null, string])[] = [
    [null, 'text'],
    ['', 'text'],
    ['*/*', 'text'],
    ['text/plain', 'text'],
    ['application/openmetrics-text', 'openmetrics'],
    ['Application/OpenMetrics-Text; version=1.0.0', 'openmetrics'],
    [prometheus, 'openmetrics'],
    ['application/openmetrics-text;q=0.3,text/plain;q=0.5', 'text'],
    ['application/openmetrics-text;q=0', 'text'],
    ['application/openmetrics-text;q=x', 'text'],
  ]
  for (const [accept, format] of cases)
    test(`${format} for ${accept}`, () => expect(chooseFormat(accept)).toBe(format as never))
})
