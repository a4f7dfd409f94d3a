import { expect, test } from 'bun:test'
import { parseExposition, sampleValue } from '../../test/observe/exposition-parser.ts'
import { received, responseOf } from '../../test/parts/http.ts'
import { Secret } from '../kernel/secret.ts'
import type { DataFolder } from '../store/data-folder.ts'
import { createRegistry } from '../telemetry/metrics.ts'
import { loadAdminToken } from '../tenancy/secrets.ts'
import { createMetricsRoute } from './metrics.ts'

const token = 'a-token-of-an-operator-1234'

function openRoute() {
  const registry = createRegistry()
  registry.counter({ name: 'calls_total', help: 'Calls.' }).find().add(2)
  const route = createMetricsRoute({
    registry,
    adminToken: loadAdminToken(new Secret(token), {} as DataFolder),
    clock: { now: () => 0, monotonicMs: () => 0 },
    addressOf: () => '127.0.0.1',
    pause: async () => {},
  })
  return async (headers: Record<string, string> = {}, method = 'GET') =>
    responseOf(await route(received(new Request('http://127.0.0.1/metrics', { method, headers }))))
}

const bearer = { authorization: `Bearer ${token}` }

test('serves the page in the text format with the management token', async () => {
  const response = await openRoute()(bearer)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(sampleValue(parseExposition(await response.text()), 'calls_total')).toBe(2)
})

test('serves OpenMetrics on request', async () => {
  const response = await openRoute()({ ...bearer, accept: 'application/openmetrics-text; version=1.0.0' })
  expect(response.headers.get('content-type')).toStartWith('application/openmetrics-text; version=1.0.0')
  expect(await response.text()).toEndWith('calls_total 2\n# EOF\n')
})

test('refuses a missing token, a wrong one, an API key, and the token in another place', async () => {
  const ask = openRoute()
  const wrong: readonly Record<string, string>[] = [
    {},
    { authorization: `Bearer ${token}x` },
    { authorization: 'Bearer sk-tg-0123456789' },
    { authorization: `Basic ${btoa(`x:${token}`)}` },
    { 'x-api-key': token },
  ]
  for (const headers of wrong) {
    const response = await ask(headers)
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
    const body = await response.text()
    expect(body).not.toContain('calls_total')
    expect(body).not.toContain(token)
  }
})

test('serves only reading, and only with the token', async () => {
  const ask = openRoute()
  const posted = await ask(bearer, 'POST')
  expect(posted.status).toBe(405)
  expect(posted.headers.get('allow')).toBe('GET')
  expect((await ask({}, 'POST')).status).toBe(401)
  // The server leaves out the body of a HEAD response.
  expect((await ask(bearer, 'HEAD')).status).toBe(200)
})
