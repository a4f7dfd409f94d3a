// Borders between tenants that hold because something is not believed or not offered: records, addresses, fields.

import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { ask as askGateway, post } from '../parts/ask.ts'
import { adminToken } from '../parts/manage.ts'
import { allSurfaces, inWordsOf, type TestSurface } from '../parts/surfaces.ts'
import { failureOf, replyOf, startTenancy, type Tenancy } from './tenancy.ts'

const tenancy = await startTenancy()

afterAll(() => tenancy[Symbol.asyncDispose]())

/** The rows of the log that are there once this many requests are. */
async function logged(query: string, count: number): Promise<readonly { readonly id: string; workspace_id: string }[]> {
  for (let tries = 0; ; tries++) {
    const { data } = await tenancy.must('GET', `/api/requests?${query}`)
    if (data.length >= count || tries === 100) return data
    await Bun.sleep(20)
  }
}

test('T7: request records are read by workspace, and by no API key, not even the one that made them', async () => {
  const [one, two] = [await tenancy.tenant({ credit: '5.00' }), await tenancy.tenant({ credit: '5.00' })]
  for (const { key } of [one, two, two]) {
    for (const surface of allSurfaces) expect((await tenancy.generate(surface, key, 'sandbox/echo')).status).toBe(200)
  }
  const ofOne = await logged(`workspace_id=${one.workspaceId}`, 4)
  expect(ofOne.map((row) => row.workspace_id)).toEqual(allSurfaces.map(() => one.workspaceId))
  expect(await logged(`workspace_id=${two.workspaceId}`, 8)).toHaveLength(8)
  // A key of the one beside the workspace of the other: both conditions hold, so there is nothing.
  expect(await logged(`workspace_id=${one.workspaceId}&key_id=${two.keyId}`, 0)).toEqual([])
  for (const { key } of [one, two]) {
    for (const path of [
      '/api/requests',
      `/api/requests/${ofOne[0]?.id}`,
      '/api/requests/export',
      '/api/requests/events',
    ]) {
      for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }]) {
        const reply = await tenancy.api('GET', path, undefined, headers as Record<string, string>)
        expect([path, reply.status]).toEqual([path, 401])
        expect(reply.text).not.toContain(one.workspaceId)
      }
    }
  }
})

/** Every header that proxies write the client's address into. */
const forwarded = (address: string): Record<string, string> => ({
  'x-forwarded-for': address,
  forwarded: `for=${address}`,
  'x-real-ip': address,
  'x-client-ip': address,
  'true-client-ip': address,
  'cf-connecting-ip': address,
  'x-cluster-client-ip': address,
  'fastly-client-ip': address,
})

async function ask({ gateway }: Tenancy, key: string, surface: TestSurface, headers: Record<string, string>) {
  const members = { model: 'sandbox/echo', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }
  return await replyOf(await askGateway({ ...gateway, key }, surface, inWordsOf(surface, members), headers))
}

test('R4: the address of a client is that of its socket, whatever the headers say', async () => {
  const { projectId } = await tenancy.tenant({ credit: '5.00' })
  const elsewhere = await tenancy.key(projectId, { sources: ['203.0.113.7'] })
  const here = await tenancy.key(projectId, { sources: ['127.0.0.1'] })
  for (const surface of allSurfaces) {
    const plain = await ask(tenancy, elsewhere.secret, surface, {})
    const claimed = await ask(tenancy, elsewhere.secret, surface, forwarded('203.0.113.7'))
    expect(plain.status).toBe(403)
    expect([claimed.status, failureOf(surface, claimed)[0]]).toEqual([plain.status, failureOf(surface, plain)[0]])
    expect((await ask(tenancy, here.secret, surface, forwarded('203.0.113.7'))).status).toBe(200)
  }
})

test('R4: a trusted proxy names the client address, and changes of the list apply at once', async () => {
  const trusting = (list: string) => `server: { trusted_proxies: [${list}] }\n`
  await using proxied = await startTenancy({ config: trusting('127.0.0.0/8, 10.0.0.0/8') })
  const { projectId } = await proxied.tenant({ credit: '5.00' })
  const { secret: key } = await proxied.key(projectId, { sources: ['203.0.113.7'] })
  const statuses = async (headers: Record<string, string>) => {
    const generations = await Promise.all(allSurfaces.map((surface) => ask(proxied, key, surface, headers)))
    const models = await proxied.api('GET', '/v1/models', undefined, { authorization: `Bearer ${key}`, ...headers })
    return [...generations, models].map(({ status }) => status)
  }
  const good = [200, 200, 200, 200, 200]
  const refused = [403, 403, 403, 403, 403]
  expect(await statuses({ 'x-forwarded-for': '192.0.2.1, 203.0.113.7, 10.1.2.3' })).toEqual(good)
  expect(await statuses({ 'x-forwarded-for': '203.0.113.7, 192.0.2.1' })).toEqual(refused)
  expect(await statuses({ 'x-forwarded-for': '203.0.113.7, unknown' })).toEqual(refused)
  expect(await statuses({ ...forwarded('203.0.113.7'), 'x-forwarded-for': '' })).toEqual(refused)
  writeFileSync(proxied.gateway.configPath, trusting('10.0.0.0/8'))
  while (!proxied.gateway.logged().some(({ message }) => message === 'applied')) await Bun.sleep(5)
  expect(await statuses({ 'x-forwarded-for': '203.0.113.7' })).toEqual(refused)
})

test('R4: X-Forwarded-Proto makes a session cookie secure only if a trusted proxy sends it', async () => {
  const cookie = async ({ gateway }: Pick<Tenancy, 'gateway'>): Promise<string | null> => {
    const headers = { 'sec-fetch-site': 'same-origin', 'x-forwarded-proto': 'https' }
    const body = { token: adminToken(gateway.dataFolder) }
    return (await post(gateway, '/console/session', body, headers)).headers.get('set-cookie')
  }
  expect(await cookie(tenancy)).toMatch(/^tollgate-\d+=[^;]+(?!.*Secure)/)
  await using proxied = await startTenancy({ env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' } })
  expect(await cookie(proxied)).toMatch(/^__Host-tollgate=.*; Secure$/)
})

test('A10, H2: guessing the management token from one address does not slow down others, on any endpoint', async () => {
  await using proxied = await startTenancy({ env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' } })
  const doors = ['/api/workspaces', '/metrics', '/console/session']
  const guess = async (door: string, from: string): Promise<number> => {
    const json = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    const headers = { 'x-forwarded-for': from, authorization: 'Bearer wrong', ...json }
    const sent = door === '/console/session' ? { method: 'POST', body: '{"token":"wrong"}' } : {}
    return (await fetch(proxied.gateway.url + door, { headers, ...sent })).status
  }
  for (const door of doors) {
    // Ten are answered at once, the next one a second later.
    for (let wrong = 1; wrong <= 10; wrong++) expect([door, await guess(door, '192.0.2.1')]).toEqual([door, 401])
    const answered: string[] = []
    const note = async (from: string) => {
      await guess(door, from)
      answered.push(from)
    }
    await Promise.all([note('192.0.2.1'), note('203.0.113.7')])
    expect([door, ...answered]).toEqual([door, '203.0.113.7', '192.0.2.1'])
  }
})

test('S7: no management API call sets a part of an address, except base URLs and those of webhooks, which are checked', async () => {
  const document = JSON.stringify((await tenancy.must('GET', '/api/openapi.json')).paths)
  const bodies = [...document.matchAll(/"requestBody":(\{.*?\})\s*,"responses"/gs)].map(([, body = '']) => body).join()
  const names = new Set([...bodies.matchAll(/"([a-z0-9_]+)":\{/g)].map(([, name]) => name))
  expect(names.has('base_url')).toBe(true)
  const parts = [...names].filter((name) => /region|resource|host|origin|endpoint|domain|url|location/.test(name ?? ''))
  expect(parts.sort()).toEqual(['base_url', 'url'])
})
