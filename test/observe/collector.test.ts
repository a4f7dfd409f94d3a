// The exporter against a collector on this machine: what really goes over the wire.

import { expect, test } from 'bun:test'
import { Secret } from '../../src/kernel/secret.ts'
import { createOtlpExporter, readOtlpSettings } from '../../src/telemetry/otlp.ts'
import { post } from '../parts/ask.ts'
import { startGateway } from '../parts/gateway.ts'
import { openGatewayMetrics } from './gateway-page.ts'
import { answeredRequest, refusedRequest } from './observed-records.ts'

interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
}

interface ReceivedPoints {
  readonly dataPoints: readonly { readonly sum?: number }[]
}

interface ReceivedMetric {
  readonly name: string
  readonly sum?: ReceivedPoints
  readonly histogram?: ReceivedPoints
}

interface Received {
  readonly path: string
  readonly method: string
  readonly headers: Headers
  readonly body: {
    readonly resourceSpans?: readonly {
      readonly resource: { readonly attributes: readonly unknown[] }
      readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[]
    }[]
    readonly resourceMetrics?: readonly {
      readonly scopeMetrics: readonly { readonly metrics: readonly ReceivedMetric[] }[]
    }[]
  }
}

function startCollector(status = 200) {
  const received: Received[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname: path } = new URL(request.url)
      received.push({
        path,
        method: request.method,
        headers: request.headers,
        body: (await request.json()) as Received['body'],
      })
      return Response.json({}, { status, headers: { location: 'http://127.0.0.1:1/' } })
    },
  })
  return { received, url: `http://127.0.0.1:${server.port}/otlp/`, [Symbol.dispose]: () => void server.stop(true) }
}

function openExporter(url: string) {
  const { settings } = readOtlpSettings({
    endpoint: url,
    headers: new Secret('authorization=Bearer%20canary-token'),
    serviceName: 'gate-eu',
  })
  if (!settings) throw new Error('the settings are wrong')
  const metrics = openGatewayMetrics()
  const lines: string[] = []
  const exporter = createOtlpExporter({
    settings,
    clock: { now: () => 1_700_000_060_000, monotonicMs: () => 0 },
    version: '0.1.0',
    instanceId: 'rep_1',
    readMetrics: () => metrics.registry.read(),
    report: (line) => lines.push(line),
    every: () => () => {},
  })
  const observe = (record: ReturnType<typeof answeredRequest>) => {
    metrics.observeRequest(record)
    exporter.observeRequest(record)
  }
  return { exporter, observe, lines }
}

test('spans and metrics arrive as JSON at the usual paths, with the headers of the operator', async () => {
  using collector = startCollector()
  const { exporter, observe, lines } = openExporter(collector.url)
  const trace = exporter.beginTrace('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01')
  observe(answeredRequest({ trace }))
  observe(refusedRequest())
  await exporter.close()

  const byPath = Object.fromEntries(collector.received.map((each) => [each.path, each]))
  expect(Object.keys(byPath).sort()).toEqual(['/otlp/v1/metrics', '/otlp/v1/traces'])
  for (const { method, headers } of collector.received) {
    expect(method).toBe('POST')
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('authorization')).toBe('Bearer canary-token')
  }
  const [resource] = byPath['/otlp/v1/traces']?.body.resourceSpans ?? []
  expect(resource?.resource.attributes[0]).toEqual({ key: 'service.name', value: { stringValue: 'gate-eu' } })
  const spans = resource?.scopeSpans[0]?.spans ?? []
  expect(spans.map(({ name }) => name)).toEqual(['chat acme/large', 'attempt acme', 'chat'])
  const [request, attempt, refused] = spans
  expect(request?.traceId).toBe('4bf92f3577b34da6a3ce929d0e0e4736')
  expect(request?.parentSpanId).toBe('00f067aa0ba902b7')
  expect(attempt?.parentSpanId).toBe(request?.spanId ?? '')
  expect(refused?.parentSpanId).toBeUndefined()
  expect(refused?.traceId).toMatch(/^[0-9a-f]{32}$/)
  for (const { spanId } of spans) expect(spanId).toMatch(/^[0-9a-f]{16}$/)

  const metrics = byPath['/otlp/v1/metrics']?.body.resourceMetrics?.[0]?.scopeMetrics[0]?.metrics ?? []
  const named = (name: string) => metrics.find((metric) => metric.name === name)
  expect(named('tollgate_requests_total')?.sum?.dataPoints.length).toBe(2)
  expect(named('gen_ai.client.operation.duration')?.histogram?.dataPoints as unknown).toEqual([
    {
      attributes: [
        { key: 'gen_ai.operation.name', value: { stringValue: 'chat' } },
        { key: 'gen_ai.provider.name', value: { stringValue: 'acme' } },
        { key: 'gen_ai.request.model', value: { stringValue: 'acme/large' } },
      ],
      startTimeUnixNano: '1700000060000000000',
      timeUnixNano: '1700000060000000000',
      count: '1',
      sum: 1.25,
      // 1.25 s: above 0.64, not above 1.28, which is the eighth bound.
      bucketCounts: ['0', '0', '0', '0', '0', '0', '0', '1', '0', '0', '0', '0', '0', '0', '0'],
      explicitBounds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
    },
  ])
  const tokens = named('gen_ai.client.token.usage')?.histogram?.dataPoints ?? []
  expect(tokens.map(({ sum }) => sum)).toEqual([100, 20])
  expect(lines).toEqual([])
  expect(exporter.dropped().every(({ value }) => value === 0)).toBe(true)
})

test('a redirect of the collector is not followed, and no header is sent there', async () => {
  using collector = startCollector(307)
  const { exporter, observe, lines } = openExporter(collector.url)
  observe(answeredRequest())
  await exporter.close()
  expect(collector.received.length).toBe(2)
  expect(Object.fromEntries(exporter.dropped().map(({ values, value }) => [values[0], value]))).toEqual({
    traces: 1,
    metrics: 1,
    clients: 0,
  })
  expect(lines.length).toBe(1)
  expect(lines[0]).toContain('status 307')
  expect(lines.join()).not.toContain('canary')
})

test('an unreachable collector fails no request', async () => {
  const collector = startCollector()
  collector[Symbol.dispose]()
  const { exporter, observe, lines } = openExporter(collector.url)
  observe(answeredRequest())
  await exporter.close()
  expect(exporter.dropped().map(({ value }) => value)).toEqual([1, 1, 0])
  expect(lines.length).toBe(1)
})

test("the spans of a gateway belong to the caller's trace", async () => {
  using collector = startCollector()
  const gateway = await startGateway({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } })
  const answer = await post(
    gateway,
    '/v1/chat/completions',
    { model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }] },
    { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
  )
  expect(answer.status).toBe(200)
  await answer.arrayBuffer()
  await gateway.stop()
  const sent = collector.received.filter(({ path }) => path.endsWith('/v1/traces'))
  const spans = sent.flatMap(({ body }) => body.resourceSpans?.[0]?.scopeSpans[0]?.spans ?? [])
  expect(spans.map(({ name }) => name)).toEqual(['chat sandbox/echo', 'attempt sandbox'])
  expect(spans.map(({ traceId }) => traceId)).toEqual(Array(2).fill('4bf92f3577b34da6a3ce929d0e0e4736'))
  expect(spans[0]?.parentSpanId).toBe('00f067aa0ba902b7')
})
