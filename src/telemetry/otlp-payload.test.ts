import { expect, test } from 'bun:test'
import { answeredRequest, refusedRequest, usageOf } from '../../test/observe/observed-records.ts'
import { metricsPayload, requestSpans, type Span, tracesPayload } from './otlp-payload.ts'

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

test('metrics without points and numbers that JSON lacks are left out', () => {
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

const trace = {
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '1111111111111111',
  parentSpanId: '00f067aa0ba902b7',
  sampled: true,
}
const randomBytes = (count: number) => new Uint8Array(count).fill(0xab)
const attributesOf = (span: Span | undefined) =>
  Object.fromEntries(span?.attributes.map(({ key, value }) => [key, value]) ?? [])

test('a request is one span below its caller, with the names of the conventions and integers as strings', () => {
  const usage = {
    ...usageOf(10, 5),
    cacheReadTokens: 1000,
    cacheWriteTokens: 7,
    cacheWriteLongTokens: 3,
    reasoningTokens: 4,
  }
  const [span] = requestSpans({ record: answeredRequest({ usage }), trace }, randomBytes)
  expect(span).toEqual({
    traceId: trace.traceId,
    spanId: trace.spanId,
    parentSpanId: trace.parentSpanId,
    name: 'chat acme/large',
    // SPAN_KIND_SERVER
    kind: 2,
    startTimeUnixNano: '1700000000000000000',
    endTimeUnixNano: '1700000001250000000',
    attributes: expect.anything(),
    status: {},
  })
  const expected = {
    'gen_ai.operation.name': { stringValue: 'chat' },
    'gen_ai.provider.name': { stringValue: 'acme' },
    'gen_ai.request.model': { stringValue: 'acme/large' },
    'gen_ai.response.model': { stringValue: 'acme-large-v1' },
    'gen_ai.request.stream': { boolValue: true },
    'gen_ai.response.time_to_first_chunk': { doubleValue: 0.24 },
    'url.path': { stringValue: '/v1/chat/completions' },
    'http.response.status_code': { intValue: '200' },
    'tollgate.request_id': { stringValue: 'req_00000000000000000000000001' },
    'tollgate.workspace_id': { stringValue: 'ws_1' },
    'tollgate.project_id': { stringValue: 'prj_1' },
    'tollgate.lane': { stringValue: 'bytes' },
    'tollgate.attempts': { intValue: '1' },
    'tollgate.cost_usd': { doubleValue: 0.00045 },
    // 10 + 1000 + 7 + 3
    'gen_ai.usage.input_tokens': { intValue: '1020' },
    'gen_ai.usage.output_tokens': { intValue: '5' },
    'gen_ai.usage.cache_read.input_tokens': { intValue: '1000' },
    'gen_ai.usage.cache_creation.input_tokens': { intValue: '10' },
    'gen_ai.usage.reasoning.output_tokens': { intValue: '4' },
    'tollgate.usage.source': { stringValue: 'reported' },
  }
  expect<unknown>(span?.attributes).toEqual(Object.entries(expected).map(([key, value]) => ({ key, value })))
})

test('every attempt has a span; that of the answer lasts to the end', () => {
  const record = answeredRequest({
    attempts: [
      { provider: 'acme', upstreamModel: 'large-v1', outcome: '503', ms: 30 },
      { provider: 'acme-eu', upstreamModel: 'large-v2', outcome: 'ok', ms: 200 },
    ],
    firstEventMs: 240,
  })
  const [, failed, answered] = requestSpans({ record, trace }, randomBytes)
  const shared = { traceId: trace.traceId, spanId: 'abababababababab', parentSpanId: trace.spanId, kind: 3 }
  expect(failed).toEqual({
    ...shared,
    name: 'attempt acme',
    // 240 − 200 − 30 = 10 ms, and 30 ms later
    startTimeUnixNano: '1700000000010000000',
    endTimeUnixNano: '1700000000040000000',
    attributes: [
      { key: 'gen_ai.provider.name', value: { stringValue: 'acme' } },
      { key: 'gen_ai.request.model', value: { stringValue: 'large-v1' } },
      { key: 'tollgate.attempt.outcome', value: { stringValue: '503' } },
      { key: 'error.type', value: { stringValue: '503' } },
    ],
    status: { code: 2 },
  })
  expect(answered).toMatchObject({
    ...shared,
    name: 'attempt acme-eu',
    startTimeUnixNano: '1700000000040000000',
    endTimeUnixNano: '1700000001250000000',
    status: {},
  })
})

test('an attempt that says when it began is placed there', () => {
  const attempt = { provider: 'acme', upstreamModel: 'm', outcome: 'timed out', ms: 100, startMs: 1.5 }
  const record = refusedRequest({ attempts: [attempt], totalMs: 900 })
  const [, span] = requestSpans({ record, trace }, randomBytes)
  expect(span?.startTimeUnixNano).toBe('1700000000001500000')
  expect(span?.endTimeUnixNano).toBe('1700000000101500000')
})

test('a rejection is no server error; a defect and an interrupted answer are', () => {
  const statusOf = (facts: Parameters<typeof answeredRequest>[0]) =>
    requestSpans({ record: answeredRequest(facts), trace }, randomBytes)[0]?.status
  expect(statusOf({ status: 401, code: 'UNAUTHORIZED' })).toEqual({})
  expect(statusOf({ status: 429, code: 'LIMIT_EXCEEDED' })).toEqual({})
  expect(statusOf({ status: 499 })).toEqual({})
  expect(statusOf({ status: 500, code: 'INTERNAL' })).toEqual({ code: 2 })
  expect(statusOf({ status: 200, code: 'STREAM_INTERRUPTED' })).toEqual({ code: 2 })
})

test('counts that were not reported are left out, not 0', () => {
  const unreported = { ...usageOf(10, 5), cacheReported: 'none' as const }
  const [span] = requestSpans({ record: answeredRequest({ usage: unreported }), trace }, randomBytes)
  expect(Object.keys(attributesOf(span)).filter((key) => key.includes('cache'))).toEqual([])
})

test('texts, client names and keys are never sent', () => {
  const record = answeredRequest({
    code: 'INVALID_REQUEST',
    status: 400,
    reason: 'canary: the prompt said hello',
    client: 'canary-client/1',
    notes: ['canary note'],
    warnings: ['name_dropped /messages/0/canary'],
  })
  const payload = JSON.stringify(
    tracesPayload([{ record, trace }], { serviceName: 's', version: '1', instanceId: 'i' }, randomBytes),
  )
  expect(payload).not.toContain('canary')
  expect(payload).not.toContain('key_1')
})
