import { expect, test } from 'bun:test'
import { metricsPayload } from './metrics-payload.ts'

const sender = { serviceName: 'gate', version: '0.1.0', instanceId: 'rep_1' }
const times = { startedAt: 1_700_000_000_000, now: 1_700_000_060_000 }
const since = { startTimeUnixNano: '1700000000000000000', timeUnixNano: '1700000060000000000' }

test('counters, gauges and histograms have the shape of the protocol', () => {
  const payload = metricsPayload(
    [
      {
        type: 'counter',
        name: 'tollgate_cost_usd_total',
        help: 'Cost.',
        labels: ['model'],
        points: [{ values: ['acme/large'], value: 0.5 }],
      },
      { type: 'gauge', name: 'tollgate_open_holds', help: 'Holds.', labels: [], points: [{ values: [], value: 2 }] },
      {
        type: 'histogram',
        name: 'tollgate_overhead_seconds',
        help: 'Overhead.',
        labels: [],
        bounds: [0.001, 0.01],
        points: [{ values: [], counts: [3, 0, 1], sum: 0.25 }],
      },
    ],
    times,
    sender,
  )
  expect(payload).toEqual({
    resourceMetrics: [
      {
        resource: {
          attributes: [
            { key: 'service.name', value: { stringValue: 'gate' } },
            { key: 'service.version', value: { stringValue: '0.1.0' } },
            { key: 'service.instance.id', value: { stringValue: 'rep_1' } },
          ],
        },
        scopeMetrics: [
          {
            scope: { name: 'tollgate', version: '0.1.0' },
            schemaUrl: 'https://opentelemetry.io/schemas/gen-ai/1.42.0',
            metrics: [
              {
                name: 'tollgate_cost_usd_total',
                description: 'Cost.',
                unit: '{USD}',
                sum: {
                  // AGGREGATION_TEMPORALITY_CUMULATIVE
                  aggregationTemporality: 2,
                  isMonotonic: true,
                  dataPoints: [
                    {
                      attributes: [{ key: 'model', value: { stringValue: 'acme/large' } }],
                      ...since,
                      asDouble: 0.5,
                    },
                  ],
                },
              },
              {
                name: 'tollgate_open_holds',
                description: 'Holds.',
                unit: '1',
                gauge: { dataPoints: [{ attributes: [], timeUnixNano: since.timeUnixNano, asDouble: 2 }] },
              },
              {
                name: 'tollgate_overhead_seconds',
                description: 'Overhead.',
                unit: 's',
                histogram: {
                  aggregationTemporality: 2,
                  dataPoints: [
                    {
                      attributes: [],
                      ...since,
                      count: '4',
                      sum: 0.25,
                      bucketCounts: ['3', '0', '1'],
                      explicitBounds: [0.001, 0.01],
                    },
                  ],
                },
              },
            ],
          },
        ],
      },
    ],
  })
})

test('a metric that has nothing to say is left out, and so is a number that JSON does not have', () => {
  const gauge = { type: 'gauge', help: '', labels: [] } as const
  const payload = metricsPayload(
    [
      { ...gauge, name: 'empty', points: [] },
      {
        ...gauge,
        name: 'odd',
        points: [
          { values: [], value: Number.NaN },
          { values: [], value: 1 },
        ],
      },
    ],
    times,
    sender,
  )
  const [odd, ...more] = payload.resourceMetrics[0]?.scopeMetrics[0]?.metrics ?? []
  expect(more).toEqual([])
  expect(odd).toMatchObject({ name: 'odd', gauge: { dataPoints: [{ asDouble: 1 }] } })
})
