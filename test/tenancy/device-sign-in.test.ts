// Signing in devices over a whole gateway: on the embedded database, and on two replicas with PostgreSQL, where each step of a
// journey goes to the other replica.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  acceptInvitation,
  cookiesOf,
  fromAnywhere,
  fromPage,
  pollDevice,
  postForm,
  refresh,
  signInDevice,
  startDevice,
} from '../parts/device-sign-in.ts'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { followToCallback, type IdentityProvider, startIdentityProvider } from '../parts/identity-provider.ts'
import type { Reply } from '../parts/manage.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { createStepClock } from './step-clock.ts'
import { replyOf, until } from './tenancy.ts'

const adminToken = 'token-of-the-operator-0123456789'
const origin = 'http://gate.test:8080'
type Headers = Readonly<Record<string, string>>

interface World {
  readonly gateways: readonly Gateway[]
  /** The replicas; twice the same one on the embedded database. */
  readonly here: string
  readonly there: string
  /** Lets time pass for grants and sign-ins. */
  age(milliseconds: number): Promise<void>
}

async function embedded(provider: IdentityProvider): Promise<World> {
  const clock = createStepClock('2027-01-15T08:00:00Z')
  const env = { ...provider.env, TOLLGATE_ADMIN_TOKEN: adminToken, TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' }
  const gateway = await startGateway({ clock, env })
  return { gateways: [gateway], here: gateway.url, there: gateway.url, age: async (ms) => clock.pass(ms) }
}

async function replicated(provider: IdentityProvider): Promise<World> {
  const url = await (await sharedPostgres()).createDatabase()
  const env = {
    ...provider.env,
    DATABASE_URL: url,
    TOLLGATE_SECRET: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64'),
    TOLLGATE_ADMIN_TOKEN: adminToken,
    TOLLGATE_TRUSTED_PROXIES: '127.0.0.1',
  }
  const [one, two] = [await startGateway({ env }), await startGateway({ env })]
  return {
    gateways: [one, two],
    here: one.url,
    there: two.url,
    // They use the clock of the database.
    async age(milliseconds) {
      const sql = new Bun.SQL(url)
      await sql`UPDATE device_grants SET expires_at = expires_at - ${milliseconds}, polled_at = polled_at - ${milliseconds}`
      await sql`UPDATE sign_ins SET refreshed_at = refreshed_at - ${milliseconds}`
      await sql.close()
    },
  }
}

function journeys(open: (provider: IdentityProvider) => Promise<World>): void {
  let world: World
  let provider: IdentityProvider
  let project: string
  let workspace: string
  let invited = 0
  const manage = async (
    method: string,
    path: string,
    body?: object,
    headers: Headers = { authorization: `Bearer ${adminToken}` },
  ) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    return replyOf(await fetch(world.here + path, { method, headers: { ...json, ...headers }, ...sent }))
  }
  const must = async (...call: Parameters<typeof manage>) => {
    const reply = await manage(...call)
    expect(`${reply.status} ${reply.text}`).toMatch(/^2/)
    return reply.body
  }
  const person = async (role = 'member') => {
    const email = `person${++invited}@example.com`
    const { url } = await must('POST', '/api/invitations', { email, role, workspace_id: workspace })
    return { email, session: await acceptInvitation(world.there, url) }
  }
  const call = async (url: string, token: string, headers: Headers = { authorization: `Bearer ${token}` }) =>
    replyOf(await fetch(`${url}/v1/models`, { headers: { ...headers, ...fromAnywhere() } }))
  const decide = (what: 'open' | 'approve' | 'deny', session: Headers, code: string) =>
    manage(
      'POST',
      `/api/me/device-grants/${what}`,
      { code, ...(what === 'approve' && { project_id: project }) },
      session,
    )
  const actions = async () => {
    const { data } = await must('GET', '/api/audit?limit=200')
    return (data as { action: string; details: { by?: string } }[]).map(({ action, details }) =>
      details.by === undefined ? action : `${action} ${details.by}`,
    )
  }
  const errorOf = ({ status, body }: Reply) => `${status} ${body.error}`
  const refusedEverywhere = async (token: string) => {
    for (const url of [world.here, world.there]) await until(async () => (await call(url, token)).status === 401)
  }

  beforeAll(async () => {
    provider = await startIdentityProvider(`${origin}/console/oidc/callback`)
    world = await open(provider)
    workspace = (await must('POST', '/api/workspaces', { name: 'acme' })).id
    project = (await must('POST', `/api/workspaces/${workspace}/projects`, { name: 'web' })).id
    await must('POST', `/api/workspaces/${workspace}/topups`, { amount: '5.00' })
  })
  afterAll(async () => {
    for (const gateway of world.gateways) await gateway.stop()
    await provider.stop()
  })

  test('the metadata names addresses at the origin that was asked', async () => {
    const response = await fetch(`${world.here}/.well-known/oauth-authorization-server`, { headers: fromPage })
    expect(await response.json()).toMatchObject({
      issuer: origin,
      device_authorization_endpoint: `${origin}/oauth/device_authorization`,
      token_endpoint: `${origin}/oauth/token`,
      revocation_endpoint: `${origin}/oauth/revoke`,
    })
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('a device is signed in after its person has approved it, and calls models as that person', async () => {
    const { email, session } = await person()
    const started = await postForm(world.here, '/oauth/device_authorization', {
      surface: 'claude_code',
      device_name: 'laptop',
    })
    const { device_code: deviceCode, user_code: code } = started.body
    expect(started.body).toEqual({
      device_code: expect.stringMatching(/^tg-dc-[\w-]{43}$/),
      user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-Z]{4}-[B-DF-HJ-NP-TV-Z]{4}$/),
      verification_uri: `${origin}/device`,
      verification_uri_complete: `${origin}/device?code=${code}`,
      expires_in: 600,
      interval: 5,
    })
    expect(started.headers.get('cache-control')).toBe('no-store')
    const page = await fetch(`${world.here}/device?code=${code.toLowerCase()}`, { redirect: 'manual' })
    expect([page.status, page.headers.get('location')]).toEqual([303, `/console/device?code=${code}`])

    expect(errorOf(await pollDevice(world.there, deviceCode))).toBe('400 authorization_pending')
    expect(errorOf(await pollDevice(world.here, deviceCode))).toBe('400 slow_down')
    expect((await decide('open', session, code.toLowerCase())).body).toMatchObject({
      ...{ client: 'claude_code', device: 'laptop', address: expect.stringMatching(/^10\./) },
    })
    expect((await decide('approve', session, code)).status).toBe(204)
    const { status, headers, body: tokens } = await pollDevice(world.there, deviceCode)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(tokens).toEqual({
      access_token: expect.stringMatching(/^eyJ/),
      token_type: 'Bearer',
      expires_in: 900,
      refresh_token: expect.stringMatching(/^tg-rt-/),
      ...{ email, workspace: 'acme', project: 'web' },
    })
    expect(errorOf(await pollDevice(world.here, deviceCode))).toBe('400 invalid_grant')

    const token = tokens.access_token
    for (const url of [world.here, world.there]) {
      for (const sent of [
        { authorization: `Bearer ${token}` },
        { 'x-api-key': token },
        { 'x-goog-api-key': token },
      ] as Headers[]) {
        expect((await call(url, token, sent)).status).toBe(200)
      }
      const body = { model: 'sandbox/echo', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
      const reply = await fetch(`${url}/v1/messages`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'anthropic-version': '2023-06-01',
        },
        body: JSON.stringify(body),
      })
      expect(`${reply.status} ${await reply.text()}`).toStartWith('200')
    }
    const mine = (await must('GET', '/api/me/sign-ins', undefined, session)).data
    expect(mine).toMatchObject([{ email, client: 'claude_code', device: 'laptop', project_id: project }])
    // Requests and usage are under the person's key.
    const requests = `/api/requests?key_id=${mine[0].key_id}`
    await until(async () => (await must('GET', requests)).data.length === 2)
    const key = await must('GET', `/api/keys/${mine[0].key_id}`)
    expect(key).toMatchObject({ kind: 'person', name: `${email} (signs in)`, owner_id: mine[0].person_id })
    expect((await must('GET', '/api/requests', undefined, session)).data).toHaveLength(2)
  })

  test('a person who signs in with the identity provider approves a device, and denies another', async () => {
    const email = `person${++invited}@example.com`
    await must('POST', '/api/invitations', { email, role: 'member', workspace_id: workspace })
    provider.account = { sub: email, email, email_verified: true, name: 'Ada' }
    const begun = await fetch(`${world.here}/console/oidc`, { headers: fromPage, redirect: 'manual' })
    const callback = await followToCallback(begun.headers.get('location') ?? '', `${origin}/console/oidc/callback`)
    const opened = await fetch(world.there + callback.pathname + callback.search, {
      headers: { ...fromPage, cookie: cookiesOf(begun) },
      redirect: 'manual',
    })
    expect(`${opened.status} ${await opened.text()}`).toStartWith('200')
    const session = { ...fromPage, cookie: cookiesOf(opened) }
    const tokens = await signInDevice(world.here, session, project)
    expect(tokens.email).toBe(email)
    for (const url of [world.here, world.there]) expect((await call(url, tokens.access_token)).status).toBe(200)
    const renewed = await refresh(world.there, tokens.refresh_token)
    expect((await call(world.here, renewed.body.access_token)).status).toBe(200)
    const denied = await startDevice(world.there)
    expect((await decide('deny', session, denied.user_code)).status).toBe(204)
    expect(errorOf(await pollDevice(world.there, denied.device_code))).toBe('400 access_denied')
  })

  test('a denied, expired, used or invented code signs nobody in, and is recorded', async () => {
    const { session } = await person()
    const denied = await startDevice(world.here)
    expect((await decide('deny', session, denied.user_code)).status).toBe(204)
    expect(errorOf(await pollDevice(world.there, denied.device_code))).toBe('400 access_denied')
    expect((await decide('approve', session, denied.user_code)).status).toBe(400)
    const late = await startDevice(world.here)
    await world.age(600_000)
    expect(errorOf(await pollDevice(world.there, late.device_code))).toBe('400 expired_token')
    expect((await decide('approve', session, late.user_code)).status).toBe(404)
    expect((await decide('open', session, 'BCDF-GHJK')).status).toBe(404)
    expect((await decide('open', session, "'; --")).status).toBe(404)
    expect(errorOf(await pollDevice(world.there, `tg-dc-${'A'.repeat(43)}`))).toBe('400 invalid_grant')
    expect(errorOf(await refresh(world.there, `tg-rt-${'A'.repeat(43)}.1.${'A'.repeat(43)}`))).toBe('400 invalid_grant')
    expect((await must('GET', '/api/me/sign-ins', undefined, session)).data).toEqual([])
    await until(async () => {
      const seen = await actions()
      const wanted = [
        'sign_in.start',
        'sign_in.deny',
        ...['device code', 'refresh token', 'user code'].map((by) => `session.refused ${by}`),
      ]
      return wanted.every((action) => seen.includes(action))
    })
  })

  test('only the session that opened a code first approves it, from the console’s own pages', async () => {
    const [{ session: ada }, { session: eve }] = [await person(), await person()]
    const { device_code: deviceCode, user_code: code } = await startDevice(world.here)
    const token = await must('POST', '/api/tokens', { name: 'script', role: 'member', workspace_id: workspace }, ada)
    expect((await decide('open', ada, code)).status).toBe(200)
    const statuses = {
      'another person': await decide('approve', eve, code),
      'another person denies': await decide('deny', eve, code),
      'a personal token': await decide('approve', { authorization: `Bearer ${token.secret}` }, code),
      'the management token': await decide('approve', { authorization: `Bearer ${adminToken}` }, code),
      'another site': await decide('approve', { ...ada, 'sec-fetch-site': 'cross-site' }, code),
      'a form': await manage(
        'POST',
        '/api/me/device-grants/approve',
        { code },
        { ...ada, 'content-type': 'text/plain' },
      ),
      nobody: await decide('approve', {}, code),
    }
    expect(Object.fromEntries(Object.entries(statuses).map(([who, { status }]) => [who, status]))).toEqual({
      ...{ 'another person': 403, 'another person denies': 403, 'a personal token': 400, 'the management token': 400 },
      ...{ 'another site': 403, 'a form': 415, nobody: 401 },
    })
    await until(async () => {
      const seen = await actions()
      return ['user code', 'cross-site request'].every((by) => seen.includes(`session.refused ${by}`))
    })
    await world.age(10_000)
    expect(errorOf(await pollDevice(world.there, deviceCode))).toBe('400 authorization_pending')
    expect((await decide('approve', ada, code)).status).toBe(204)
    expect((await pollDevice(world.there, deviceCode)).status).toBe(200)
  })

  test('a viewer signs no device in, and someone who becomes one is refused with what to do', async () => {
    const viewer = await person('viewer')
    const { user_code: code } = await startDevice(world.here)
    expect((await decide('approve', viewer.session, code)).status).toBe(403)
    const member = await person()
    const tokens = await signInDevice(world.here, member.session, project)
    expect((await call(world.there, tokens.access_token)).status).toBe(200)
    const { data } = await must('GET', `/api/members?workspace_id=${workspace}&limit=200`)
    const { id } = (data as { id: string; email: string }[]).find(({ email }) => email === member.email) ?? {}
    await must('PATCH', `/api/members/${id}`, { role: 'viewer' })
    for (const url of [world.here, world.there])
      await until(async () => (await call(url, tokens.access_token)).status === 403)
    expect((await call(world.there, tokens.access_token)).text).toContain(
      'Ask an admin of the workspace for the role member',
    )
    // The device stays signed in, for when the role comes back.
    expect((await refresh(world.there, tokens.refresh_token)).status).toBe(200)
  })

  test('of two renewals at once, 50 times, nobody is signed out', async () => {
    let tokens = await signInDevice(world.here, (await person()).session, project)
    for (let round = 0; round < 50; round++) {
      const both = await Promise.all([world.here, world.there].map((url) => refresh(url, tokens.refresh_token)))
      expect(both.map(({ status }) => status)).toEqual([200, 200])
      expect(both[0]?.body.refresh_token).toBe(both[1]?.body.refresh_token)
      tokens = both[round % 2]?.body
    }
    expect((await call(world.there, tokens.access_token)).status).toBe(200)
  })

  test('a refresh token that is used again after a minute ends the sign-in everywhere', async () => {
    const first = await signInDevice(world.here, (await person()).session, project)
    const { body: second } = await refresh(world.there, first.refresh_token)
    for (const url of [world.here, world.there]) expect((await call(url, second.access_token)).status).toBe(200)
    await world.age(61_000)
    expect(errorOf(await refresh(world.here, first.refresh_token))).toBe('400 invalid_grant')
    expect(errorOf(await refresh(world.here, second.refresh_token))).toBe('400 invalid_grant')
    await refusedEverywhere(second.access_token)
    expect(await actions()).toContain('sign_in.reuse')
  })

  test('a revoked token, an ended device and a removed person are refused on every replica', async () => {
    const { session, email } = await person()
    const devices = []
    for (let count = 0; count < 4; count++) devices.push(await signInDevice(world.here, session, project))
    const [byAccess, byRefresh, byPerson, byRemoval] = devices as [
      (typeof devices)[0],
      (typeof devices)[0],
      (typeof devices)[0],
      (typeof devices)[0],
    ]
    for (const { access_token: token } of devices) {
      for (const url of [world.here, world.there]) expect((await call(url, token)).status).toBe(200)
    }
    expect((await postForm(world.here, '/oauth/revoke', { token: byAccess.access_token })).status).toBe(200)
    await refusedEverywhere(byAccess.access_token)
    const hint = { token: byRefresh.refresh_token, token_type_hint: 'refresh_token' }
    expect((await postForm(world.there, '/oauth/revoke', hint)).status).toBe(200)
    await refusedEverywhere(byRefresh.access_token)
    expect(errorOf(await refresh(world.here, byRefresh.refresh_token))).toBe('400 invalid_grant')
    // Of a token that ended nothing is said.
    expect((await postForm(world.there, '/oauth/revoke', hint)).status).toBe(200)
    expect((await postForm(world.there, '/oauth/revoke', { token: 'x' })).status).toBe(200)

    const left = (await must('GET', '/api/me/sign-ins', undefined, session)).data
    expect(left).toHaveLength(2)
    expect((await manage('DELETE', `/api/sign-ins/${left[0].id}`, undefined, session)).status).toBe(204)
    await refusedEverywhere(byPerson.access_token)
    expect((await call(world.there, byRemoval.access_token)).status).toBe(200)
    const { data } = await must('GET', `/api/members?workspace_id=${workspace}&limit=200`)
    const { id } = (data as { id: string; email: string }[]).find((member) => member.email === email) ?? {}
    expect((await manage('DELETE', `/api/members/${id}`)).status).toBe(204)
    await refusedEverywhere(byRemoval.access_token)
    expect(errorOf(await refresh(world.here, byRemoval.refresh_token))).toBe('400 invalid_grant')
  })

  test('everyone ends their own devices, all at once too', async () => {
    const { session } = await person()
    const tokens = await signInDevice(world.here, session, project)
    expect(await must('POST', '/api/me/sign-ins/end', {}, session)).toEqual({ ended: 1 })
    await refusedEverywhere(tokens.access_token)
    expect(await must('POST', '/api/me/sign-ins/end', {}, session)).toEqual({ ended: 0 })
    // A device that was approved and has not fetched its tokens yet gets none.
    for (const [path, who] of [
      ['/api/me/sign-ins/end', session],
      [`/api/workspaces/${workspace}/end-sign-ins`, undefined],
    ] as const) {
      const { device_code: deviceCode, user_code: code } = await startDevice(world.here)
      expect((await decide('approve', session, code)).status).toBe(204)
      expect(await must('POST', path, {}, who)).toMatchObject({ ended: expect.any(Number) })
      expect([path, errorOf(await pollDevice(world.there, deviceCode))]).toEqual([path, '400 access_denied'])
    }
  })

  test('a token of which only meaningless bits are altered is refused', async () => {
    const { access_token: access, refresh_token: token } = await signInDevice(
      world.here,
      (await person()).session,
      project,
    )
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const altered = (text: string) => text.slice(0, -1) + letters[letters.indexOf(text.slice(-1)) + 1]
    expect((await call(world.here, altered(access))).status).toBe(401)
    expect(errorOf(await refresh(world.here, altered(token)))).toBe('400 invalid_grant')
    expect((await call(world.there, access)).status).toBe(200)
    expect((await refresh(world.there, token)).status).toBe(200)
  })

  test('an admin ends all devices of the workspace, and none of another one', async () => {
    const [admin, member, outsider] = [await person('admin'), await person(), await person()]
    const other = (await must('POST', '/api/workspaces', { name: 'other' })).id
    const elsewhere = (await must('POST', `/api/workspaces/${other}/projects`, { name: 'web' })).id
    const { url } = await must('POST', '/api/invitations', {
      email: outsider.email,
      role: 'member',
      workspace_id: other,
    })
    const both = await acceptInvitation(world.here, url)
    const [one, two, kept] = [
      await signInDevice(world.here, member.session, project),
      await signInDevice(world.here, admin.session, project),
      await signInDevice(world.here, both, elsewhere),
    ]
    const end = `/api/workspaces/${workspace}/end-sign-ins`
    expect((await manage('POST', end, {}, member.session)).status).toBe(403)
    const { ended } = await must('POST', end, {}, admin.session)
    expect(ended).toBeGreaterThanOrEqual(2)
    for (const { access_token: token } of [one, two]) await refusedEverywhere(token)
    expect((await call(world.there, kept.access_token)).status).toBe(200)
    expect(errorOf(await refresh(world.there, two.refresh_token))).toBe('400 invalid_grant')
    expect((await must('GET', `/api/sign-ins?workspace_id=${workspace}`)).data).toEqual([])
    expect(await must('POST', end, {}, admin.session)).toEqual({ ended: 0 })
  })

  test('every step is in the audit log with who made it', async () => {
    const { session } = await person()
    const tokens = await signInDevice(world.here, session, project)
    const { person: me } = await must('GET', '/api/me', undefined, session)
    const [{ id }] = (await must('GET', '/api/me/sign-ins', undefined, session)).data
    expect((await manage('DELETE', `/api/sign-ins/${id}`)).status).toBe(204)
    await must('POST', '/api/me/sign-ins/end', {}, session)
    const denied = await startDevice(world.here, { client_id: 'tollgate' })
    expect((await decide('deny', session, denied.user_code)).status).toBe(204)
    await must('PUT', '/api/managed-settings', { rules: [{ settings: { env: { TOKEN: 'secret-of-the-operator' } } }] })
    await must('PUT', '/api/managed-settings', { rules: [] })
    const { data, text } = await (async () => {
      const reply = await manage('GET', '/api/audit?limit=200')
      return {
        data: reply.body.data as { actor: string; action: string; object: string; details: object }[],
        text: reply.text,
      }
    })()
    const of = (actor: string, action: string) => data.filter((row) => row.actor === actor && row.action === action)
    const client = 'claude_code'
    const [approval] = of(me.id, 'sign_in.approve')
    expect(approval).toMatchObject({ object: expect.stringMatching(/^dgr_/), details: { project, client } })
    expect(of(me.id, 'sign_in.create')).toMatchObject([
      { object: id, details: { grant: approval?.object, person: me.id, project, client } },
    ])
    expect(data).toContainEqual(expect.objectContaining({ action: 'sign_in.start', object: approval?.object }))
    expect(of('management token', 'sign_in.end')).toContainEqual(
      expect.objectContaining({ object: id, details: expect.objectContaining({ person: me.id, client }) }),
    )
    expect(of(me.id, 'sign_in.end_all')).toMatchObject([{ object: me.id, details: { ended: 0 } }])
    expect(of(me.id, 'sign_in.deny')).toMatchObject([{ details: { client: 'tollgate' } }])
    expect(of('management token', 'managed_settings.put').map(({ details }) => details)).toContainEqual({
      rules: 1,
      checksum: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    })
    for (const secret of ['secret-of-the-operator', tokens.refresh_token, denied.user_code]) {
      expect(text.includes(secret)).toBe(false)
    }
  })

  test('Claude Code reads models, limits and their use for the person', async () => {
    const { session } = await person()
    const { access_token: token } = await signInDevice(world.here, session, project)
    const [{ key_id: keyId }] = (await must('GET', '/api/me/sign-ins', undefined, session)).data
    const headers = { authorization: `Bearer ${token}`, 'anthropic-version': '2023-06-01' }
    const list = await replyOf(await fetch(`${world.there}/v1/models?limit=1000`, { headers }))
    const echo = (list.body.data as { id: string }[]).find(({ id }) => id === 'sandbox/echo')
    expect(echo).toMatchObject({ type: 'model', display_name: 'Sandbox Echo' })
    const use = async () => (await replyOf(await fetch(`${world.there}/api/oauth/usage`, { headers }))).body
    const ask = async () => {
      const body = { model: 'sandbox/echo', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
      const sent = { ...headers, 'content-type': 'application/json' }
      return replyOf(
        await fetch(`${world.there}/v1/messages`, { method: 'POST', headers: sent, body: JSON.stringify(body) }),
      )
    }
    expect(await use()).toEqual({ limits: [] })
    await must('PUT', `/api/keys/${keyId}/limits`, { spend_per_month: '2.00' })
    await until(async () => (await use()).extra_usage?.monthly_limit === 200)
    const allowed = await ask()
    expect([allowed.status, allowed.headers.get('anthropic-ratelimit-unified-status')]).toEqual([200, 'allowed'])
    await must('PUT', `/api/keys/${keyId}/limits`, { spend_per_month: '0.000000001' })
    await until(async () => (await ask()).status === 429)
    const refused = await ask()
    expect([refused.body.error.type, refused.headers.get('x-should-retry')]).toEqual(['billing_error', 'false'])
    expect(refused.headers.get('anthropic-ratelimit-unified-status')).toBe('rejected')
    expect(refused.headers.get('anthropic-ratelimit-unified-representative-claim')).toBeNull()
  })

  test('a stream that runs while its person is removed is finished and charged, and the next request is refused', async () => {
    const { session, email } = await person()
    const { access_token: token } = await signInDevice(world.here, session, project)
    const [{ key_id: keyId }] = (await must('GET', '/api/me/sign-ins', undefined, session)).data
    const content = 'one two three four five six seven eight nine ten eleven twelve'
    const body = { model: 'sandbox/slow', max_tokens: 100, stream: true, messages: [{ role: 'user', content }] }
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    }
    const reply = await fetch(`${world.there}/v1/messages`, { method: 'POST', headers, body: JSON.stringify(body) })
    const reader = (reply.body as ReadableStream<Uint8Array>).getReader()
    let text = new TextDecoder().decode((await reader.read()).value)
    const { data } = await must('GET', `/api/members?workspace_id=${workspace}&limit=200`)
    const { id } = (data as { id: string; email: string }[]).find((member) => member.email === email) ?? {}
    expect((await manage('DELETE', `/api/members/${id}`)).status).toBe(204)
    await refusedEverywhere(token)
    const wasRunning = !text.includes('message_stop')
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      text += new TextDecoder().decode(next.value)
    }
    expect({ wasRunning, end: text.includes('event: message_stop'), words: text.includes('twelve') }).toEqual({
      ...{ wasRunning: true, end: true, words: true },
    })
    const requests = `/api/requests?key_id=${keyId}`
    await until(async () => (await must('GET', requests)).data.length === 1)
    const [request] = (await must('GET', requests)).data
    expect([request.status, request.code]).toEqual([200, null])
    expect(Number(request.cost)).toBeGreaterThan(0)
  })

  test('a refused token says how to sign in, and that a retry is of no use', async () => {
    const { status, headers, body } = await call(world.here, 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.AAAA')
    expect([status, headers.get('x-should-retry')]).toEqual([401, 'false'])
    expect(body.error.message).toContain('run `tollgate login` (in Claude Code, `/login`)')
    expect((await call(world.here, '', {})).body.error.message).toContain('run `tollgate login`')
  })

  test('Claude Code gets the settings of its person, and no more than it needs', async () => {
    const [member, admin] = [await person(), await person('admin')]
    const { access_token: token } = await signInDevice(world.here, member.session, project)
    const { access_token: ofAdmin } = await signInDevice(world.here, admin.session, project)
    const ask = async (bearer: string, headers: Headers = {}) =>
      replyOf(
        await fetch(`${world.there}/managed/settings`, { headers: { authorization: `Bearer ${bearer}`, ...headers } }),
      )
    expect((await ask(token)).status).toBe(404)
    const rules = [
      { settings: { permissions: { deny: ['WebFetch'] }, cleanupPeriodDays: 7 } },
      { role: 'admin', settings: { cleanupPeriodDays: 30 } },
    ]
    await must('PUT', '/api/managed-settings', { rules })
    const { status, body, headers } = await ask(token)
    const text = '{"cleanupPeriodDays":7,"permissions":{"deny":["WebFetch"]}}'
    const checksum = `sha256:${new Bun.CryptoHasher('sha256').update(text).digest('hex')}`
    expect([status, body]).toEqual([
      200,
      {
        uuid: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
        checksum,
        settings: rules[0]?.settings as object,
      },
    ])
    expect(headers.get('etag')).toBe(`"${checksum}"`)
    const again = await ask(token, { 'if-none-match': `"${checksum}"` })
    expect([again.status, again.text]).toEqual([304, ''])
    expect((await ask(ofAdmin, { 'if-none-match': `"${checksum}"` })).body.settings).toMatchObject({
      cleanupPeriodDays: 30,
    })
    const preview = await must('POST', '/api/managed-settings/preview', { role: 'admin' })
    expect(preview.checksum).toBe((await ask(ofAdmin)).body.checksum)
    expect((await must('POST', '/api/managed-settings/preview', { rules: [] })).settings).toBeNull()
    for (const wrong of [{ rules: [{ role: 'boss', settings: {} }] }, { rules: [{ settings: [] }] }, { rules: [{}] }]) {
      expect((await manage('PUT', '/api/managed-settings', wrong)).status).toBe(400)
    }
    expect((await ask(`${token}x`)).status).toBe(401)
    await must('PUT', '/api/managed-settings', { rules: [] })
    expect((await ask(token)).status).toBe(404)
  })

  test('each path of a signed-in device × role: what Claude Code asks for, on every replica', async () => {
    const paths = [
      ['GET', '/v1/models'],
      ['POST', '/v1/messages'],
      ['POST', '/v1/messages/count_tokens'],
      ['GET', '/managed/settings'],
      ['GET', '/api/oauth/usage'],
      ['POST', '/v1/metrics'],
      ['POST', '/v1/logs'],
      ['POST', '/v1/traces'],
    ] as const
    await must('PUT', '/api/managed-settings', { rules: [{ settings: { cleanupPeriodDays: 7 } }] })
    const statuses = async (url: string, token: string | undefined) => {
      const headers: Headers = {
        ...{ 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...fromAnywhere() },
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      }
      const ask = async ([method, path]: (typeof paths)[number]) => {
        const message = { model: 'sandbox/echo', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
        const body = method === 'POST' ? { body: JSON.stringify(path.startsWith('/v1/messages') ? message : {}) } : {}
        const response = await fetch(url + path, { method, headers, ...body })
        await response.arrayBuffer()
        return response.status
      }
      return [...new Set(await Promise.all(paths.map(ask)))]
    }
    const memberOf = async (email: string) =>
      (
        (await must('GET', `/api/members?workspace_id=${workspace}&limit=200`)).data as { id: string; email: string }[]
      ).find((member) => member.email === email)?.id
    const [member, admin, viewer, removed, ended] = [
      await person(),
      await person('admin'),
      await person(),
      await person(),
      await person(),
    ]
    const tokenOf = async ({ session }: typeof member) =>
      (await signInDevice(world.here, session, project)).access_token
    const tokens = {
      member: await tokenOf(member),
      admin: await tokenOf(admin),
      viewer: await tokenOf(viewer),
      removed: await tokenOf(removed),
      ended: await tokenOf(ended),
    }
    await must('PATCH', `/api/members/${await memberOf(viewer.email)}`, { role: 'viewer' })
    expect((await manage('DELETE', `/api/members/${await memberOf(removed.email)}`)).status).toBe(204)
    await must('POST', '/api/me/sign-ins/end', {}, ended.session)
    for (const token of [tokens.removed, tokens.ended]) await refusedEverywhere(token)
    for (const url of [world.here, world.there]) {
      await until(async () => (await call(url, tokens.viewer)).status === 403)
      expect({
        nobody: await statuses(url, undefined),
        member: await statuses(url, tokens.member),
        admin: await statuses(url, tokens.admin),
        viewer: await statuses(url, tokens.viewer),
        removed: await statuses(url, tokens.removed),
        ended: await statuses(url, tokens.ended),
        'the management token': await statuses(url, adminToken),
      }).toEqual({
        ...{ nobody: [401], member: [200], admin: [200], viewer: [403], removed: [401], ended: [401] },
        'the management token': [401],
      })
    }
    await must('PUT', '/api/managed-settings', { rules: [] })
  })

  test('a new password ends the devices of a person on every replica, and one that waits', async () => {
    const { session, email } = await person()
    const tokens = await signInDevice(world.here, session, project)
    for (const url of [world.here, world.there]) expect((await call(url, tokens.access_token)).status).toBe(200)
    const { device_code: deviceCode, user_code: code } = await startDevice(world.here)
    expect((await decide('approve', session, code)).status).toBe(204)
    const { data } = await must('GET', `/api/members?workspace_id=${workspace}&limit=200`)
    const { id } = (data as { id: string; email: string }[]).find((member) => member.email === email) ?? {}
    const { url: link } = await must('POST', `/api/members/${id}/reset-link`, {})
    expect((await call(world.there, tokens.access_token)).status).toBe(200)
    const after = await acceptInvitation(world.there, link)
    await refusedEverywhere(tokens.access_token)
    expect(errorOf(await refresh(world.here, tokens.refresh_token))).toBe('400 invalid_grant')
    expect(errorOf(await pollDevice(world.there, deviceCode))).toBe('400 access_denied')
    // So does one's own change.
    const next = await signInDevice(world.here, after, project)
    expect((await call(world.there, next.access_token)).status).toBe(200)
    const change = { current: 'correct horse battery', password: 'staple correct horse' }
    expect((await manage('POST', '/api/me/password', change, after)).status).toBe(204)
    await refusedEverywhere(next.access_token)
  })

  test('the protocol of Claude Code’s own gateway: parameters, conditions and errors it names', async () => {
    const { session } = await person()
    // Unknown parameters are ignored (RFC 6749, section 3.2), and neither `client_id` nor `surface` is required.
    const bare = await postForm(world.here, '/oauth/device_authorization', { newest: '1', scope: 'openid' })
    expect(bare.status).toBe(200)
    expect((await decide('approve', session, bare.body.user_code)).status).toBe(204)
    const { status, body: tokens } = await postForm(world.there, '/oauth/token', {
      ...{ grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: bare.body.device_code },
      newest: '1',
    })
    expect([status, tokens.token_type]).toEqual([200, 'Bearer'])
    const headers = { authorization: `Bearer ${tokens.access_token}` }
    // A question without an answer that it could have: as if it were not sent.
    const asked = () =>
      fetch(`${world.there}/managed/settings`, { headers: { ...headers, 'if-none-match': '*' } }).then(
        (response) => response.status,
      )
    expect(await asked()).toBe(404)
    await must('PUT', '/api/managed-settings', { rules: [{ settings: {} }] })
    expect(await asked()).toBe(200)
    await must('PUT', '/api/managed-settings', { rules: [] })
    const [error, ...rest] = await Promise.all(
      [tokens.access_token.slice(0, -1), 'x'].map((token) => call(world.here, token)),
    )
    for (const reply of [error, ...rest]) {
      expect([reply?.status, reply?.headers.get('x-should-retry')]).toEqual([401, 'false'])
    }
    const hint = { token: tokens.refresh_token, token_type_hint: 'unheard_of' }
    expect((await postForm(world.there, '/oauth/revoke', hint)).status).toBe(200)
    await refusedEverywhere(tokens.access_token)
  })

  test('bad forms get the protocol’s error', async () => {
    const wrong = async (path: string, form: Headers, headers: Headers = {}) =>
      errorOf(await postForm(world.here, path, form, headers))
    expect(await wrong('/oauth/token', {})).toBe('400 invalid_request')
    expect(await wrong('/oauth/token', { grant_type: 'password' })).toBe('400 unsupported_grant_type')
    expect(await wrong('/oauth/token', { grant_type: 'refresh_token' })).toBe('400 invalid_request')
    expect(await wrong('/oauth/token', { grant_type: 'refresh_token', refresh_token: 'x\0' })).toBe('400 invalid_grant')
    expect(await wrong('/oauth/revoke', {})).toBe('400 invalid_request')
    expect(await wrong('/oauth/token', {}, { 'content-type': 'application/json' })).toBe('400 invalid_request')
    expect(await wrong('/oauth/token', { grant_type: 'x'.repeat(17_000) })).toBe('400 invalid_request')
    const twice = await fetch(`${world.here}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=refresh_token&grant_type=refresh_token',
    })
    expect([twice.status, ((await twice.json()) as { error: string }).error]).toEqual([400, 'invalid_request'])
    const read = await fetch(`${world.here}/oauth/token`)
    expect([read.status, read.headers.get('allow')]).toEqual([405, 'POST'])
    await read.text()
    const odd = await postForm(world.here, '/oauth/device_authorization', {
      client_id: '<script>',
      device_name: 'a\u0007\nb',
    })
    expect(odd.status).toBe(200)
    const { session } = await person()
    expect((await decide('open', session, odd.body.user_code)).body).toMatchObject({ client: 'unknown', device: 'a b' })
  })

  test('the name of a device holds no token and cannot turn the text around it, nor does an error repeat a token', async () => {
    const { session } = await person()
    const { refresh_token: token } = await signInDevice(world.here, session, project)
    const [secret = ''] = token.slice(6).split('.')
    const shownOf = async (form: Headers, headers: Headers = {}) => {
      const { body } = await postForm(world.here, '/oauth/device_authorization', form, headers)
      return (await decide('open', session, body.user_code)).body.device
    }
    expect(await shownOf({ device_name: `lap\u202etop ${token}` })).toBe('lap top tg-rt-…')
    expect(await shownOf({ device_name: 'x'.repeat(500) })).toHaveLength(100)
    expect(await shownOf({}, { 'user-agent': `agent/1 ${token}` })).toBe('agent/1 tg-rt-…')
    for (const path of [`/oauth/${token}`, `/api/${token}`, `/api/sign-ins/${token}`]) {
      const reply = await manage('GET', path)
      expect([path.slice(0, 8), reply.status === 200, reply.text.includes(secret)]).toEqual([
        path.slice(0, 8),
        false,
        false,
      ])
    }
  })

  test('one address that starts too many sign-ins at once is told to slow down, and another one is not', async () => {
    const from = { 'x-forwarded-for': '192.0.2.7' }
    const start = (headers: Headers) => postForm(world.here, '/oauth/device_authorization', { surface: 'x' }, headers)
    // The first ten are answered at once, and 32 more wait for a second.
    const started = await Promise.all(Array.from({ length: 50 }, () => start(from)))
    const limited = started.filter(({ status }) => status !== 200)
    expect(limited.length).toBeGreaterThan(0)
    for (const reply of limited)
      expect([errorOf(reply), reply.headers.get('retry-after')]).toEqual(['429 slow_down', '1'])
    expect((await start({})).status).toBe(200)
  })

  test('no code and no token is in a log, the audit log, the metrics or a list', async () => {
    const { session } = await person()
    const { device_code: deviceCode, user_code: code } = await startDevice(world.here)
    await decide('approve', session, code)
    const { body: tokens } = await pollDevice(world.here, deviceCode)
    await call(world.here, tokens.access_token)
    await call(world.here, `${tokens.access_token}x`)
    // In the place of a model.
    const named = await fetch(`${world.here}/v1beta/models/${tokens.access_token}:generateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': tokens.access_token, 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ parts: [{ text: 'hi' }] }] }),
    })
    const metrics = await fetch(`${world.here}/metrics`, { headers: { authorization: `Bearer ${adminToken}` } })
    const shown = [
      await named.text(),
      await metrics.text(),
      JSON.stringify(world.gateways.map((gateway) => gateway.logged())),
      ...(await Promise.all(
        ['/api/audit?limit=200', '/api/sign-ins', '/api/keys', '/api/requests'].map(
          async (path) => (await manage('GET', path)).text,
        ),
      )),
    ]
    expect(shown[1]).toMatch(/tollgate_sign_ins_total\{event="signed_in"\} [1-9]/)
    const signature = tokens.access_token.split('.')[2]
    for (const secret of [deviceCode, code, tokens.refresh_token, tokens.refresh_token.slice(6, 49), signature]) {
      expect(shown.map((text) => text.includes(secret))).toEqual(shown.map(() => false))
    }
  })
}

describe('on the embedded database', () => journeys(embedded))
describe.skipIf(findPostgresPrograms() === undefined)('on two replicas', () => journeys(replicated))
