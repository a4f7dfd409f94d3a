// Telemetry of Claude Code, sent to a gateway whose operator has a collector, has none, or does not want it.

import { expect, test } from 'bun:test'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { manage } from '../parts/manage.ts'
import { until } from '../tenancy/tenancy.ts'

/** A group whose resource has the attribute `a=b`. */
const sent = Buffer.from('0a0c0a0a0a080a016112030a0162', 'hex')
/** The attribute alone. */
const sentAttribute = sent.subarray(4).toString('latin1')

/** An attribute as a resource has it: its name, its value and the lengths of both. */
function attribute(name: string, value: string): string {
  const [ofName, text] = [Buffer.of(0x0a, name.length), Buffer.of(0x12, value.length + 2, 0x0a, value.length)]
  return `${ofName.toString('latin1')}${name}${text.toString('latin1')}${value}`
}

function startCollector() {
  const received: { path: string; headers: Headers; text: string }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const text = Buffer.from(await request.arrayBuffer()).toString('latin1')
      received.push({ path: new URL(request.url).pathname, headers: request.headers, text })
      return new Response()
    },
  })
  return { received, url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) }
}

const report = async (
  { url, key }: Gateway,
  signal: string,
  more: { body?: Uint8Array; headers?: Record<string, string> } = {},
) => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/x-protobuf', ...more.headers }
  const response = await fetch(`${url}/v1/${signal}`, {
    method: 'POST',
    headers,
    body: Buffer.from(more.body ?? sent),
  })
  return { status: response.status, text: await response.text() }
}
const ours = ({ headers }: { headers: Headers }) => headers.get('content-type') === 'application/x-protobuf'

test('is passed on with whose it is, and nothing of it is logged', async () => {
  using collector = startCollector()
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=acme' }
  const gateway = await startGateway({ env })
  try {
    for (const signal of ['metrics', 'logs', 'traces'])
      expect(await report(gateway, signal)).toEqual({ status: 200, text: '' })
    await until(() => Promise.resolve(collector.received.filter(ours).length === 3))
    const passed = collector.received.filter(ours)
    expect(passed.map(({ path }) => path).sort()).toEqual(['/v1/logs', '/v1/metrics', '/v1/traces'])
    for (const { headers, text } of passed) {
      expect(headers.get('x-tenant')).toBe('acme')
      expect(headers.has('authorization')).toBe(false)
      expect(text).toContain(sentAttribute)
      const [key] = (await manage(gateway, 'GET', '/api/keys')).data
      expect(text).toContain(attribute('tollgate.workspace.id', key.workspace_id))
      expect(text).toContain(attribute('tollgate.project.id', key.project_id))
      expect(text).toContain(attribute('tollgate.key.id', key.id))
      // The key is the installation's.
      expect(text).not.toContain('tollgate.person')
    }
    expect((await report(gateway, 'logs', { headers: { authorization: 'Bearer sk-tg-wrong' } })).status).toBe(401)
    expect((await report(gateway, 'logs', { body: Buffer.from('{"a": 1}') })).status).toBe(400)
    expect((await report(gateway, 'logs', { headers: { 'content-type': 'text/plain' } })).status).toBe(415)
    expect((await report(gateway, 'logs', { headers: { 'content-encoding': 'br' } })).status).toBe(415)
    expect((await report(gateway, 'logs', { headers: { 'content-type': 'application/json' } })).status).toBe(400)
    expect((await report(gateway, 'logs', { headers: { 'content-encoding': 'gzip' } })).status).toBe(400)
    const bomb = { body: Bun.gzipSync(new Uint8Array(4 * 1024 * 1024 + 1)), headers: { 'content-encoding': 'gzip' } }
    expect((await report(gateway, 'logs', bomb)).status).toBe(413)
    expect((await report(gateway, 'logs', { body: Buffer.alloc(4 * 1024 * 1024 + 1) })).status).toBe(413)
    expect(JSON.stringify(gateway.logged())).not.toContain('x-protobuf')
  } finally {
    await gateway.stop()
  }
  expect(collector.received.filter(ours)).toHaveLength(3)
})

test('is passed on in JSON as JSON, and unpacked', async () => {
  using collector = startCollector()
  const gateway = await startGateway({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } })
  try {
    const json = { 'content-type': 'application/json; charset=utf-8' }
    const body = Buffer.from('{"resourceLogs":[{"scopeLogs":[{"schemaUrl":"of-the-client"}]}]}')
    expect(await report(gateway, 'logs', { body, headers: json })).toEqual({ status: 200, text: '{}' })
    const packed = { body: Bun.gzipSync(sent), headers: { 'content-encoding': 'gzip' } }
    expect(await report(gateway, 'metrics', packed)).toEqual({ status: 200, text: '' })
    const passed = () =>
      collector.received.filter((each) => ours(each) || each.text.includes('of-the-client')).map(({ text }) => text)
    await until(() => Promise.resolve(passed().length === 2))
    const [key] = (await manage(gateway, 'GET', '/api/keys')).data
    const texts = passed()
    const asJson = texts.find((text) => text.startsWith('{')) ?? ''
    expect(asJson).toContain(`{"key":"tollgate.key.id","value":{"stringValue":"${key.id}"}}`)
    const asProtobuf = texts.find((text) => !text.startsWith('{')) ?? ''
    expect(asProtobuf).toContain(sentAttribute)
    expect(asProtobuf).toContain(attribute('tollgate.key.id', key.id))
  } finally {
    await gateway.stop()
  }
})

test('is accepted and dropped where there is no collector, and where the operator does not want it', async () => {
  using collector = startCollector()
  const off = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, TOLLGATE_CLIENT_TELEMETRY: 'off' }
  for (const env of [{}, off]) {
    const gateway = await startGateway({ env })
    expect(await report(gateway, 'metrics')).toEqual({ status: 200, text: '' })
    await gateway.stop()
  }
  expect(collector.received.filter(ours)).toEqual([])
})
