// Borders between tenants that hold because something is not believed or not offered: records, addresses, fields.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { bothSurfaces } from '../parts/surfaces.ts'
import { failureOf, startTenancy, type Tenancy } from './tenancy.ts'

let tenancy: Tenancy

beforeAll(async () => {
  tenancy = await startTenancy()
})

afterAll(() => tenancy[Symbol.asyncDispose]())

/** The rows of the log that are there once this many requests are. */
async function logged(query: string, count: number): Promise<readonly { readonly id: string; workspace_id: string }[]> {
  for (let tries = 0; ; tries++) {
    const { data } = await tenancy.must('GET', `/api/requests?${query}`)
    if (data.length >= count || tries === 100) return data
    await Bun.sleep(20)
  }
}

test('T7: records of requests are read by workspace, and by no API key, not even the one that made them', async () => {
  const [one, two] = [await tenancy.tenant({ credit: '5.00' }), await tenancy.tenant({ credit: '5.00' })]
  for (const { key } of [one, two, two]) {
    for (const surface of bothSurfaces) expect((await tenancy.generate(surface, key, 'sandbox/echo')).status).toBe(200)
  }
  const ofOne = await logged(`workspace_id=${one.workspaceId}`, 2)
  expect(ofOne.map((row) => row.workspace_id)).toEqual([one.workspaceId, one.workspaceId])
  expect(await logged(`workspace_id=${two.workspaceId}`, 4)).toHaveLength(4)
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

test('R4: the address of a client is its socket’s, whatever the headers say', async () => {
  const { projectId } = await tenancy.tenant({ credit: '5.00' })
  const elsewhere = await tenancy.key(projectId, { sources: ['203.0.113.7'] })
  const here = await tenancy.key(projectId, { sources: ['127.0.0.1'] })
  const ask = async (key: string, surface: (typeof bothSurfaces)[number], headers: Record<string, string>) => {
    const body = { model: 'sandbox/echo', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }
    const all = { authorization: `Bearer ${key}`, ...surface.headers, ...headers }
    return await tenancy.api('POST', surface.path, body, all)
  }
  for (const surface of bothSurfaces) {
    const plain = await ask(elsewhere.secret, surface, {})
    const claimed = await ask(elsewhere.secret, surface, forwarded('203.0.113.7'))
    expect(plain.status).toBe(403)
    expect([claimed.status, failureOf(surface, claimed)[0]]).toEqual([plain.status, failureOf(surface, plain)[0]])
    expect((await ask(here.secret, surface, forwarded('203.0.113.7'))).status).toBe(200)
  }
})

test('S7: no call of the management API fills in a part of an address, but for the base URL that is checked', async () => {
  const document = JSON.stringify((await tenancy.must('GET', '/api/openapi.json')).paths)
  const bodies = [...document.matchAll(/"requestBody":(\{.*?\})\s*,"responses"/gs)].map(([, body = '']) => body).join()
  const names = new Set([...bodies.matchAll(/"([a-z0-9_]+)":\{/g)].map(([, name]) => name))
  expect(names.has('base_url')).toBe(true)
  const parts = [...names].filter((name) => /region|resource|host|origin|endpoint|domain|url|location/.test(name ?? ''))
  expect(parts).toEqual(['base_url'])
})
