// Traces in protobuf, read by OpenTelemetry's own Python package: it must find what the JSON form of the same payload says.

import { expect, test } from 'bun:test'
import { attributes, type Span, schemaUrl } from '../../src/telemetry/otlp-payload.ts'
import { encodeTraces } from '../../src/telemetry/otlp-protobuf.ts'
import { fetchPython } from '../recipes/python.ts'

const { python, missing } = await fetchPython('opentelemetry-proto', '1.45.1')

const script = `
import json, sys
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
request = ExportTraceServiceRequest.FromString(sys.stdin.buffer.read())
print(json.dumps(MessageToDict(request, use_integers_for_enums=True)))
`

async function readByLibrary(bytes: Uint8Array): Promise<unknown> {
  const child = Bun.spawn([python, '-c', script], { stdin: bytes, stdout: 'pipe', stderr: 'pipe' })
  const [text, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(errors).toBe('')
  return JSON.parse(text)
}

/** Its JSON has bytes in base64; that of OTLP has ids in hexadecimal. */
const base64 = (id: string) => Buffer.from(id, 'hex').toString('base64')

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const named = (name: string, values: Parameters<typeof attributes>[0], more: object = {}) => ({
  ...{ traceId, spanId: '00f067aa0ba902b7', name, kind: 3, attributes: attributes(values) },
  ...{ startTimeUnixNano: '1763625600000000001', endTimeUnixNano: '1763625601234567891', status: {} },
  ...more,
})

const spans = [
  named('chat acme/large', {
    'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"Grüße, 世界 🌍"}]}]',
    'gen_ai.usage.input_tokens': 127,
    'gen_ai.usage.output_tokens': 128,
    'gen_ai.usage.cost': { doubleValue: 0.0002 },
    'a zero': 0,
    'a double that is whole': { doubleValue: 3 },
    'a large count': Number.MAX_SAFE_INTEGER,
    'gen_ai.request.stream': true,
    'a false': false,
    // Lengths of one, two and three bytes.
    'a long text': 'x'.repeat(20_000),
  }),
  named('chat b', {}, { parentSpanId: '53995c3f42cd8ad8', status: { code: 2 } }),
]

const payload = {
  resourceSpans: [
    {
      resource: { attributes: attributes({ 'service.name': 'tollgate' }) },
      scopeSpans: [
        { scope: { name: 'tollgate', version: '0.1.0' }, spans: spans as unknown as readonly Span[], schemaUrl },
      ],
    },
  ],
}

const run = missing === undefined ? test : test.skip
run(`opentelemetry-proto reads what was encoded${missing === undefined ? '' : `: ${missing}`}`, async () => {
  const expected = spans.map(({ attributes: list, ...span }) => ({
    ...span,
    ...{ traceId: base64(span.traceId), spanId: base64(span.spanId) },
    ...('parentSpanId' in span && { parentSpanId: base64(String(span.parentSpanId)) }),
    ...(list.length > 0 && { attributes: list }),
  }))
  const [resourceSpan] = payload.resourceSpans
  expect(await readByLibrary(encodeTraces(payload))).toEqual({
    resourceSpans: [{ ...resourceSpan, scopeSpans: [{ ...resourceSpan?.scopeSpans[0], spans: expected }] }],
  })
})
