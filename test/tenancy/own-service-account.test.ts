// A workspace's own service account: stored as Google's key file, shown by the end of its key id, exchanged for tokens at
// the operator's token endpoint, and never sent to a provider.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { forEachEngine } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import { serviceAccount, writeServiceAccount } from '../parts/service-account.ts'
import { allSurfaces } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { startTenancy, type Tenancy } from './tenancy.ts'

const config = `
models:
  - { id: own/gemini, price: { input: "3.00", output: "15.00" }, max_output_tokens: 1000, routes: [{ provider: google-vertex, model: gemini-x }] }
own_keys: { base_urls: true, plain_http: true, allow_hosts: ["127.0.0.1"] }
`

let upstream: Upstream
let trap: Upstream
let tenancy: Tenancy
let operators: ReturnType<typeof writeServiceAccount>

const partOf = (jwt: string, at: number) => JSON.parse(Buffer.from(jwt.split('.')[at] ?? '', 'base64url').toString())

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream((call, reply) =>
      call.path === '/token'
        ? reply.json(200, { access_token: 'ya29.of-the-tenant', expires_in: 3600 })
        : reply.send(
            200,
            { 'content-type': call.path.includes('stream') ? 'text/event-stream' : 'application/json' },
            call.path.includes('stream') ? wordsFor(call).says('hello') + wordsFor(call).ending : wordsFor(call).whole,
          ),
    )
    trap = startUpstream((_, reply) => reply.json(200, { access_token: 'theirs', expires_in: 3600 }))
    operators = writeServiceAccount('operator', `${upstream.url}/token`)
    const env = {
      GOOGLE_APPLICATION_CREDENTIALS: operators.path,
      GOOGLE_CLOUD_PROJECT: 'operator-project',
    }
    tenancy = await startTenancy({ engine, env, config })
  })
  afterAll(() => stopAll(tenancy, operators, upstream, trap))

  test('is stored whole, never shown, and serves every surface with one token', async () => {
    const { workspaceId, key } = await tenancy.tenant()
    const path = `/api/workspaces/${workspaceId}/credentials/google-vertex`
    const account = serviceAccount('tenant', `${trap.url}/token`)
    const place = `${upstream.url}/v1/projects/tenant-project/locations/global/publishers/google`
    const put = { api_key: JSON.stringify(account, undefined, 2), base_url: place }
    const stored = await tenancy.api('PUT', path, put)
    expect([stored.status, stored.body.last4]).toEqual([200, 'ab12'])
    const audit = await tenancy.api('GET', '/api/audit')
    for (const { text } of [stored, await tenancy.api('GET', path), audit]) {
      expect(text).not.toContain('PRIVATE KEY')
      expect(text).not.toContain(account.client_email)
    }
    expect(await tenancy.must('POST', `${path}/test`)).toMatchObject({ verdict: 'ok' })
    for (const surface of allSurfaces) {
      expect((await tenancy.generate(surface, key, 'own/gemini')).status).toBe(200)
    }
    const asked = upstream.calls.filter(({ path }) => path === '/token')
    expect(asked).toHaveLength(1)
    const claim = partOf(new URLSearchParams(Buffer.from(asked[0]?.body ?? []).toString()).get('assertion') ?? '', 1)
    expect(claim).toMatchObject({ iss: account.client_email, aud: `${upstream.url}/token` })
    const sent = upstream.calls.filter(({ path }) => path !== '/token')
    expect(sent.length).toBeGreaterThanOrEqual(2)
    expect(new Set(sent.map(({ headers }) => headers.get('authorization')))).toEqual(
      new Set(['Bearer ya29.of-the-tenant']),
    )
    expect(trap.calls).toEqual([])
  })

  test('another file is refused with a reason, without its content', async () => {
    const { workspaceId } = await tenancy.tenant()
    const path = `/api/workspaces/${workspaceId}/credentials/google-vertex`
    const api_key = JSON.stringify({ ...serviceAccount('tenant'), private_key: 'shh-not-a-key' }, undefined, 2)
    const { status, body, text } = await tenancy.api('PUT', path, { api_key })
    expect([status, body.error.param]).toEqual([400, 'api_key'])
    expect(body.error.message).toBe(
      '`api_key` must hold a private key: in this key file `private_key` is no RSA key in PEM form of up to 4096 bits.',
    )
    expect(text).not.toContain('shh')
  })
})
