// Providers where the operator has no account at all: a workspace's own credential opens them, and says what the
// operator's settings would have said.

import { afterAll, expect, test } from 'bun:test'
import { builtInProviders } from '../../src/providers/data/built-in.ts'
import { stopAll } from '../parts/gateway.ts'
import { serviceAccount } from '../parts/service-account.ts'
import { allSurfaces } from '../parts/surfaces.ts'
import { startUpstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { startTenancy } from './tenancy.ts'

const config = `
providers:
  - { id: in-the-cellar, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: k }
models:
  - { id: own/deployed, price: { input: "3.00", output: "15.00" }, max_output_tokens: 1000, routes: [{ provider: azure, model: d }] }
  - { id: own/gemini, price: { input: "3.00", output: "15.00" }, max_output_tokens: 1000, routes: [{ provider: google-vertex, model: gemini-x }] }
own_keys: { base_urls: true, plain_http: true, allow_hosts: ["127.0.0.1"] }
`

const upstream = startUpstream((call, reply) =>
  reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole),
)
const tenancy = await startTenancy({ config })
afterAll(() => stopAll(tenancy, upstream))

test('a workspace’s Azure resource serves every surface, for that workspace only', async () => {
  const { workspaceId, key } = await tenancy.tenant()
  const credential = `/api/workspaces/${workspaceId}/credentials/azure`
  const unplaced = await tenancy.api('PUT', credential, { api_key: 'key-of-the-tenant' })
  expect([unplaced.status, unplaced.body.error.message]).toEqual([
    400,
    'This gateway knows no address of azure. Send one as `base_url`.',
  ])
  await tenancy.must('PUT', credential, { api_key: 'key-of-the-tenant', base_url: `${upstream.url}/openai/v1` })
  for (const surface of allSurfaces) {
    expect((await tenancy.generate(surface, key, 'own/deployed')).status).toBe(200)
  }
  expect(upstream.calls.map(({ path, headers }) => [path, headers.get('api-key')])).toEqual(
    allSurfaces.map(() => ['/openai/v1/chat/completions', 'key-of-the-tenant']),
  )
  const { key: other } = await tenancy.tenant({ credit: '1' })
  expect(await tenancy.models(other)).not.toContain('own/deployed')
})

test('a service account serves the models of its project, bound to their host', async () => {
  const { workspaceId, key } = await tenancy.tenant()
  const api_key = JSON.stringify(serviceAccount('tenant'))
  await tenancy.must('PUT', `/api/workspaces/${workspaceId}/credentials/google-vertex`, { api_key })
  expect(await tenancy.models(key)).toContain('own/gemini')
  const { data } = await tenancy.must('GET', '/api/audit')
  const [entry] = (data as { action: string; object: string; details: object }[]).filter(
    ({ action, object }) => action === 'credential.put' && object === workspaceId,
  )
  expect(entry?.details).toMatchObject({ provider: 'google-vertex', origin: 'https://aiplatform.googleapis.com' })
  const { key: other } = await tenancy.tenant({ credit: '1' })
  expect(await tenancy.models(other)).not.toContain('own/gemini')
})

test('the list of providers that accept a key has the built-in ones and none of the operator’s', async () => {
  const { providers } = await tenancy.must('GET', '/catalog/providers')
  expect(providers).toEqual(builtInProviders.map(({ id }) => id).sort())
})
