import { expect, test } from 'bun:test'
import { answeredRequest, refusedRequest, usageOf } from '../../../test/observe/observed-records.ts'
import { requestSpans, type Span, tracesPayload } from './request-spans.ts'

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
  expect(attributesOf(span)).toEqual({
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
  })
})

test('every attempt is a span of its own; the one that answered lasts to the end', () => {
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

test('a refusal is no error of the server, a defect and an answer that broke off are', () => {
  const statusOf = (facts: Parameters<typeof answeredRequest>[0]) =>
    requestSpans({ record: answeredRequest(facts), trace }, randomBytes)[0]?.status
  expect(statusOf({ status: 401, code: 'UNAUTHORIZED' })).toEqual({})
  expect(statusOf({ status: 429, code: 'LIMIT_EXCEEDED' })).toEqual({})
  expect(statusOf({ status: 499 })).toEqual({})
  expect(statusOf({ status: 500, code: 'INTERNAL' })).toEqual({ code: 2 })
  expect(statusOf({ status: 200, code: 'STREAM_INTERRUPTED' })).toEqual({ code: 2 })
})

test('what was not reported is not told as nothing', () => {
  const unreported = { ...usageOf(10, 5), cacheReported: 'none' as const }
  const [span] = requestSpans({ record: answeredRequest({ usage: unreported }), trace }, randomBytes)
  expect(Object.keys(attributesOf(span)).filter((key) => key.includes('cache'))).toEqual([])
})

test('texts, names of clients and keys never leave', () => {
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
