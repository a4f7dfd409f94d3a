// A workspace's own key that cannot be used: the error names the key and what to do, the operator's key is used only if
// the workspace allows it, and other workspaces are not affected.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import { serviceAccount, writeServiceAccount } from '../parts/service-account.ts'
import { allSurfaces, chat, messages } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { failureOf, startTenancy, type Tenancy, until } from './tenancy.ts'

let upstream: Upstream
let place: Place
let tenancy: Tenancy
let operators: ReturnType<typeof writeServiceAccount>

const config = (url: string) => `
providers:
  - { id: acme, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
  - { id: other, dialect: openai-chat, base_url: "${url}/v1", api_key: key-of-the-operator }
models:
  - { id: acme/large, price: { input: "3.00", output: "15.00" }, max_output_tokens: 1000, routes: [{ provider: acme, model: l }] }
  - { id: acme/claude, price: { input: "3.00", output: "15.00" }, routes: [{ provider: google-vertex, model: claude-x }] }
`
/** 3 tokens in at $3.00 and 2 out at $15.00 a million: $0.000009 + $0.00003 = $0.000039. */
const cost = '0.000039'

async function ownTenant(provider: string, apiKey: string) {
  const tenant = await tenancy.tenant({ credit: '1' })
  const credentials = `/api/workspaces/${tenant.workspaceId}/credentials`
  await tenancy.must('PUT', `${credentials}/${provider}`, { api_key: apiKey })
  return { ...tenant, credentials }
}

/** As if it had been encrypted under a master secret that is gone. */
async function loseSecretOf(workspaceId: string, credentials: string): Promise<void> {
  const set = "UPDATE credentials SET key_version = 'gone' WHERE workspace_id = "
  if (place.url === undefined) {
    using database = new Database(join(tenancy.gateway.dataFolder, 'tollgate.db'))
    database.run(`${set} ?`, [workspaceId])
  } else {
    await using sql = new SQL({ url: place.url, max: 1 })
    await sql.unsafe(`${set} $1`, [workspaceId])
  }
  // Whatever changes, the gateway reads the workspace's credentials again.
  await tenancy.must('PUT', `${credentials}/other`, { api_key: 'another-key' })
}

const keysSent = () => upstream.calls.map(({ headers }) => headers.get('authorization'))

forEachEngine((engine) => {
  beforeAll(async () => {
    upstream = startUpstream((call, reply) =>
      call.path === '/token'
        ? reply.json(400, { error: 'invalid_grant' })
        : reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole),
    )
    place = await engine.createPlace()
    operators = writeServiceAccount('operator', `${upstream.url}/token`)
    const env = {
      GOOGLE_APPLICATION_CREDENTIALS: operators.path,
      GOOGLE_CLOUD_PROJECT: 'p',
      GOOGLE_CLOUD_LOCATION: 'europe-west1',
      ...(place.url !== undefined && { DATABASE_URL: place.url }),
    }
    tenancy = await startTenancy({ env, config: config(upstream.url) })
  })
  beforeEach(() => {
    upstream.calls.length = 0
  })
  afterAll(() => stopAll(tenancy, operators, place, upstream))

  test('a key that cannot be decrypted fails the request, and the operator’s is not used', async () => {
    const { workspaceId, key, credentials } = await ownTenant('acme', 'key-of-the-tenant')
    await loseSecretOf(workspaceId, credentials)
    for (const surface of allSurfaces) {
      const reply = await tenancy.generate(surface, key, 'acme/large')
      const [code, message] = failureOf(surface, reply)
      expect([reply.status, code]).toEqual([404, 'NOT_FOUND'])
      expect(message).toBe(
        "The workspace's own key for acme was encrypted under a master secret that this gateway was not given, and no other key is used in its place. Store the key again, or delete it.",
      )
    }
    expect(keysSent()).toEqual([])
    expect(await tenancy.must('GET', `/api/workspaces/${workspaceId}/wallet`)).toMatchObject({ balance: '1.00' })
    await tenancy.must('PUT', `${credentials}/acme`, { api_key: 'key-stored-again' })
    expect((await tenancy.generate(chat, key, 'acme/large')).status).toBe(200)
    expect(keysSent()).toEqual(['Bearer key-stored-again'])
  })

  test('with shared routes the operator’s key is tried next, at the usual price', async () => {
    const { workspaceId, key, credentials } = await ownTenant('acme', 'key-of-the-tenant')
    await loseSecretOf(workspaceId, credentials)
    await tenancy.must('PATCH', `/api/workspaces/${workspaceId}`, { shares_routes: true })
    const reply = await tenancy.generate(chat, key, 'acme/large')
    expect([reply.status, reply.headers.get('x-tollgate-cost')]).toEqual([200, cost])
    expect(keysSent()).toEqual(['Bearer key-of-the-operator'])
  })

  test('a key that was stored for another address fails the request until the provider has that address again', async () => {
    const { key, credentials } = await ownTenant('acme', 'key-of-the-tenant')
    const { configPath } = tenancy.gateway
    const before = readFileSync(configPath, 'utf8')
    // The same server under another name is another origin.
    writeFileSync(configPath, before.replaceAll('127.0.0.1', 'localhost'))
    await until(async () => (await tenancy.generate(chat, key, 'acme/large')).status === 404)
    upstream.calls.length = 0
    const [, message] = failureOf(chat, await tenancy.generate(chat, key, 'acme/large'))
    expect(message).toStartWith("The workspace's own key for acme was stored for another address than the provider has")
    const tried = await tenancy.api('POST', `${credentials}/acme/test`)
    expect(tried.body.error.message).toContain('was stored for another address')
    expect(keysSent()).toEqual([])
    writeFileSync(configPath, before)
    await until(async () => (await tenancy.generate(chat, key, 'acme/large')).status === 200)
    expect(new Set(keysSent())).toEqual(new Set(['Bearer key-of-the-tenant']))
  })

  test('a key without a valid token is put in cooldown by itself, not the model for all', async () => {
    const { key, credentials } = await ownTenant('google-vertex', JSON.stringify(serviceAccount('tenant')))
    expect(await tenancy.must('POST', `${credentials}/google-vertex/test`)).toMatchObject({ verdict: 'refused' })
    // Five faults in a row would eject the model.
    for (let n = 0; n < 6; n++) {
      const reply = await tenancy.generate(messages, key, 'acme/claude')
      expect(reply.status).toBe(404)
      expect(failureOf(messages, reply)[1]).toContain("google-vertex rejected the workspace's own credential")
    }
    const { data } = await tenancy.must('GET', '/api/catalog')
    const model = (data as { id: string; routes: { health: string }[] }[]).find(({ id }) => id === 'acme/claude')
    expect(model?.routes).toMatchObject([{ provider: 'google-vertex', health: 'healthy' }])
  })
})
