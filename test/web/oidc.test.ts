// Sign-in with a real identity provider in process: the whole way through the gateway's pages, without a browser.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Failure } from '../../src/kernel/failure.ts'
import { createId, isId, type KeyId, type PersonId, type WorkspaceId } from '../../src/kernel/ids.ts'
import { createVerifier } from '../../src/tenancy/api-key.ts'
import { listAuditOf } from '../../src/tenancy/audit.ts'
import type { ClaimRules } from '../../src/tenancy/claims.ts'
import { createConsoleSessions, sessionAgesAt } from '../../src/tenancy/console-sessions.ts'
import { createKey } from '../../src/tenancy/keys.ts'
import { createToken } from '../../src/tenancy/management-tokens.ts'
import { createInvitation, findPerson, setPassword } from '../../src/tenancy/people.ts'
import { principalOfPerson } from '../../src/tenancy/principal.ts'
import { createProject, createWorkspace } from '../../src/tenancy/workspaces.ts'
import { createOidc, type Oidc, type OidcProvider } from '../../src/web/oidc.ts'
import { browserTest, openBrowser, openPage } from '../parts/browser.ts'
import { forEachEngine, type TestEngine } from '../parts/engines.ts'
import { startGateway, stopAll } from '../parts/gateway.ts'
import { followToCallback, type IdentityProvider, startIdentityProvider } from '../parts/identity-provider.ts'
import { createTestClock } from '../parts/ledger.ts'
import { manage } from '../parts/manage.ts'

const redirectUri = 'http://gate.test/console/oidc/callback'
let [first, second, foreign]: IdentityProvider[] = []

beforeAll(async () => {
  const start = () => startIdentityProvider(redirectUri)
  ;[first, second, foreign] = [await start(), await start(), await start()]
})

afterAll(async () => {
  for (const each of [first, second, foreign]) await each?.stop()
})

const byInvitation: ClaimRules = {
  mode: 'invite',
  allowedDomains: [],
  requiredGroup: undefined,
  groupClaim: 'groups',
  roles: [],
}

async function setUp(engine: TestEngine, provider: OidcProvider) {
  const store = await engine.openStore()
  const { database } = store
  // The ID tokens are issued now, whatever the test's clock says: only the library's own clock counts for them.
  const clock = createTestClock()
  const ended: KeyId[] = []
  const state = { rules: byInvitation, refused: 0, signedUp: [] as unknown[] }
  const oidc = createOidc({
    database,
    clock,
    provider,
    rules: () => state.rules,
    scopes: () => ['openid', 'email', 'profile'],
    onSignUp: async ({ workspaceId }) => void state.signedUp.push(workspaceId),
    onRefused: () => void state.refused++,
    onAccessChange(id) {
      if (isId('key', id)) ended.push(id)
    },
    onFault: () => {},
  })
  const act = { actor: 'test', at: clock.now() }
  const workspace = await database.transaction((sql) => createWorkspace(sql, { name: 'acme' }, act))
  const project = await database.transaction((sql) =>
    createProject(sql, { workspaceId: workspace.id, name: 'web' }, act),
  )
  const invite = (email: string, role: 'admin' | 'member') =>
    database.transaction((sql) => createInvitation(sql, { email, role, workspaceId: workspace.id }, act))
  const grants = async (person: string) => (await principalOfPerson(database.sql, person as never)).grants
  /** What the audit log says about an object, oldest first. */
  const audited = async (object: string) =>
    (await listAuditOf(database.sql, object)).map(({ action, details }) => [action, details])
  /** A session, a token and a key of the person in the workspace. Returns the key's id. */
  const give = async (personId: PersonId) => {
    const now = clock.now()
    const session = { id: createId('ses'), client: '', openedAt: now, usedAt: now, fingerprint: '', personId }
    await createConsoleSessions(database).open(`hash of ${personId}`, undefined, session, sessionAgesAt(now))
    return await database.transaction(async (sql) => {
      const token = { personId, role: 'member' as const, workspaceId: workspace.id, name: 'script', days: 1 }
      await createToken(sql, token, act)
      const key = { projectId: project.id, name: 'own', ownerId: personId }
      return (await createKey(sql, key, act, createVerifier(new Uint8Array(32)))).key.id
    })
  }
  /** How many of them the person has. */
  const left = async (personId: PersonId) => {
    const { sql } = database
    const sessions = await sql`SELECT id FROM console_sessions WHERE person_id = ${personId}`
    const tokens = await sql`SELECT id FROM management_tokens WHERE person_id = ${personId}`
    const keys = await sql`SELECT id FROM api_keys WHERE owner_id = ${personId} AND revoked_at IS NULL`
    return { sessions: sessions.length, tokens: tokens.length, keys: keys.length }
  }
  return {
    ...store,
    oidc,
    state,
    invite,
    grants,
    audited,
    ended,
    give,
    left,
    workspaceId: workspace.id as WorkspaceId,
    clock,
  }
}

async function begin(oidc: Oidc) {
  const started = await oidc.start(redirectUri)
  if (!('url' in started)) throw started
  const { searchParams } = await followToCallback(started.url, redirectUri)
  return { memory: started.memory, callback: searchParams }
}

async function signIn(oidc: Oidc): Promise<string | Failure> {
  const { callback, memory } = await begin(oidc)
  return await oidc.finish(callback, memory, redirectUri)
}

/** As a browser does it that has no session. */
async function signInAt(gatewayUrl: string) {
  const started = await fetch(`${gatewayUrl}/console/oidc`, { redirect: 'manual' })
  const memory = started.headers.get('set-cookie')?.split(';')[0] ?? ''
  const callback = `${gatewayUrl}/console/oidc/callback`
  const answer = await followToCallback(started.headers.get('location') ?? '', callback)
  const response = await fetch(answer, { headers: { cookie: memory }, redirect: 'manual' })
  const [cookie = ''] = response.headers.getSetCookie()[0]?.split(';') ?? []
  return { status: response.status, text: await response.text(), cookie }
}

const messageOf = (outcome: unknown) => (outcome as Failure).message

forEachEngine((engine) => {
  test('N9: an invited person signs in by their verified address, and again by their subject when it changes', async () => {
    const provider = first as IdentityProvider
    const { oidc, invite, grants, state, workspaceId, ...store } = await setUp(engine, provider)
    await using _ = store
    provider.account = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' }
    expect(messageOf(await signIn(oidc))).toContain('You have no account here')
    await invite('ada@example.com', 'admin')
    provider.account = { ...provider.account, email_verified: false }
    expect(messageOf(await signIn(oidc))).toContain('not verified')
    provider.account = { ...provider.account, email_verified: true }
    const person = await signIn(oidc)
    expect(await grants(person as string)).toEqual([{ workspaceId, role: 'admin' }])
    provider.account = { ...provider.account, email: 'ada.lovelace@example.com' }
    expect(await signIn(oidc)).toBe(person)
    // Someone else at the provider who has the address now is not that person.
    provider.account = { sub: 'mallory', email: 'ada@example.com', email_verified: true }
    expect(messageOf(await signIn(oidc))).toContain('another account')
    expect(state.refused).toBe(3)
  })

  test('N10: wrong state, nonce, verifier or issuer, a replayed code and a stranger’s callback do not sign in', async () => {
    const provider = first as IdentityProvider
    const { oidc, invite, state, database, clock, ...store } = await setUp(engine, provider)
    await using _ = store
    provider.account = { sub: 'bob', email: 'bob@example.com', email_verified: true }
    await invite('bob@example.com', 'member')
    const changed = (memory: string, at: number) =>
      memory
        .split('.')
        .map((part, place) => (place === at ? `${part.slice(0, -1)}${part.endsWith('A') ? 'B' : 'A'}` : part))
        .join('.')
    for (const part of [0, 1, 2]) {
      const { callback, memory } = await begin(oidc)
      expect(messageOf(await oidc.finish(callback, changed(memory, part), redirectUri))).toContain('not valid')
    }
    const { callback, memory } = await begin(oidc)
    expect(messageOf(await oidc.finish(callback, undefined, redirectUri))).toContain('not valid')
    // The same answer under another provider's name.
    const other = createOidc({
      database,
      clock,
      provider: foreign as IdentityProvider,
      rules: () => byInvitation,
      scopes: () => ['openid'],
      onSignUp: async () => {},
      onRefused: () => void state.refused++,
      onAccessChange: () => {},
      onFault: () => {},
    })
    expect(messageOf(await other.finish(callback, memory, redirectUri))).toContain('not valid')
    expect(await oidc.finish(callback, memory, redirectUri)).toStartWith('per_')
    expect(messageOf(await oidc.finish(callback, memory, redirectUri))).toContain('not valid')
    const denied = new URLSearchParams({ error: 'access_denied', state: memory.split('.')[0] ?? '' })
    expect(messageOf(await oidc.finish(denied, memory, redirectUri))).toContain('not valid')
    expect(state.refused).toBe(7)
  })

  test('N11: a provider that rotated its keys signs in, and one that is away is named', async () => {
    const provider = second as IdentityProvider
    const { oidc, invite, ...store } = await setUp(engine, provider)
    await using _ = store
    provider.account = { sub: 'eve', email: 'eve@example.com', email_verified: true }
    await invite('eve@example.com', 'member')
    const person = await signIn(oidc)
    expect(person).toStartWith('per_')
    await provider.rotate()
    expect(await signIn(oidc)).toBe(person)
    const away = createOidcAway(store.database)
    expect(messageOf(await away.start(redirectUri))).toContain('does not answer')
  })

  test('N11: a provider whose clock is off signs in as long as its tokens are not expired here', async () => {
    const provider = second as IdentityProvider
    const { oidc, invite, state, ...store } = await setUp(engine, provider)
    await using _ = store
    provider.account = { sub: 'zoe', email: 'zoe@example.com', email_verified: true }
    await invite('zoe@example.com', 'member')
    const minuteMs = 60_000
    // An ID token of this provider is valid for ten minutes; one more is tolerated.
    for (const [aheadMs, isIn] of [
      [5 * minuteMs, true],
      [-5 * minuteMs, true],
      [-12 * minuteMs, false],
      [0, true],
    ] as const) {
      provider.aheadMs = aheadMs
      const outcome = await signIn(oidc)
      provider.aheadMs = 0
      expect([aheadMs, typeof outcome === 'string']).toEqual([aheadMs, isIn])
      if (!isIn) expect(messageOf(outcome)).toContain('not valid')
    }
    expect(state.refused).toBe(1)
  })

  test('N12: domains, a required group and mapped roles decide, and a changed claim takes a role away', async () => {
    const provider = first as IdentityProvider
    const { oidc, state, grants, give, ended, workspaceId, ...store } = await setUp(engine, provider)
    await using _ = store
    const roles = [
      { group: 'devs', role: 'member' as const, workspaceId },
      { group: 'leads', role: 'admin' as const, workspaceId },
    ]
    state.rules = { ...byInvitation, allowedDomains: ['acme.test'], requiredGroup: 'staff', roles }
    provider.account = { sub: 'kim', email: 'kim@example.com', email_verified: true, groups: ['staff', 'devs'] }
    expect(messageOf(await signIn(oidc))).toContain('example.com may not sign in')
    // In an allowed domain the provider's word is enough: some never say that an address is verified.
    provider.account = { sub: 'kim', email: 'kim@acme.test', groups: ['devs'] }
    expect(messageOf(await signIn(oidc))).toContain('not in the group staff')
    provider.account = { ...provider.account, groups: ['staff', 'devs'] }
    const person = (await signIn(oidc)) as string
    expect(await grants(person)).toEqual([{ workspaceId, role: 'member' }])
    provider.account = { ...provider.account, groups: ['staff', 'leads'] }
    expect(await signIn(oidc)).toBe(person)
    expect(await grants(person)).toEqual([{ workspaceId, role: 'admin' }])
    const key = await give(person as PersonId)
    provider.account = { ...provider.account, groups: ['staff'] }
    expect(messageOf(await signIn(oidc))).toContain('no role here any more')
    expect(await grants(person)).toEqual([])
    expect(ended).toEqual([key])
  })

  test('N12: of several groups with a role in one workspace the highest role counts, from the first sign-in on', async () => {
    const provider = first as IdentityProvider
    const { oidc, state, grants, audited, workspaceId, ...store } = await setUp(engine, provider)
    await using _ = store
    const role = (group: string, role: 'admin' | 'member' | 'viewer') => ({ group, role, workspaceId })
    const roles = [role('guests', 'viewer'), role('leads', 'admin'), role('devs', 'member')]
    for (const [order, rows] of [roles, roles.toReversed()].entries()) {
      state.rules = { ...byInvitation, roles: rows }
      const sub = `sam-${order}`
      provider.account = { sub, email: `${sub}@example.com`, email_verified: true, groups: ['devs', 'leads', 'guests'] }
      const person = (await signIn(oidc)) as string
      expect(await grants(person)).toEqual([{ workspaceId, role: 'admin' }])
      expect(await signIn(oidc)).toBe(person)
      expect(await grants(person)).toEqual([{ workspaceId, role: 'admin' }])
      provider.account = { ...provider.account, groups: ['guests', 'devs'] }
      expect(await signIn(oidc)).toBe(person)
      expect(await grants(person)).toEqual([{ workspaceId, role: 'member' }])
      expect(await audited(person)).toEqual([
        ['member.claim', { workspace: workspaceId, role: 'admin' }],
        ['member.claim', { workspace: workspaceId, role: 'member' }],
      ])
    }
  })

  test('N12: groups that are not in the ID token are asked for, and no role is lost if there is no answer', async () => {
    const provider = foreign as IdentityProvider
    const { oidc, state, grants, workspaceId, ...store } = await setUp(engine, provider)
    await using _ = store
    state.rules = { ...byInvitation, roles: [{ group: 'devs', role: 'member', workspaceId }] }
    const account = { sub: 'uma', email: 'uma@example.com', email_verified: true }
    provider.account = { ...account, groups: ['devs'] }
    provider.inIdToken = ['email', 'email_verified']
    const person = (await signIn(oidc)) as string
    expect(await grants(person)).toEqual([{ workspaceId, role: 'member' }])
    provider.hasUserinfo = false
    expect(messageOf(await signIn(oidc))).toContain('does not answer when asked')
    expect(await grants(person)).toEqual([{ workspaceId, role: 'member' }])
    // Groups in the ID token are enough.
    provider.inIdToken = ['email', 'email_verified', 'groups']
    expect(await signIn(oidc)).toBe(person)
    provider.hasUserinfo = true
    // What userinfo says about its address says nothing about the one in the ID token.
    provider.inIdToken = ['email']
    expect(messageOf(await signIn(oidc))).toContain('not verified')
    provider.inIdToken = []
    provider.account = account
    expect(messageOf(await signIn(oidc))).toContain('no role here any more')
  })

  test('a name from the provider is shortened and written in one line, and never keeps anyone out', async () => {
    const provider = first as IdentityProvider
    const { oidc, state, database, ...store } = await setUp(engine, provider)
    await using _ = store
    state.rules = { ...byInvitation, mode: 'oidc' }
    const long = `${'n'.repeat(110)}@example.com`
    for (const [at, [name, shown, email]] of (
      [
        ['Ada\r\nLovelace', 'Ada Lovelace'],
        ['\u0007 \u2028', 'person-1@example.com'],
        // The limit is in the middle of the last character.
        [`${'a'.repeat(99)}😀`, 'a'.repeat(99)],
        ['', 'n'.repeat(100), long],
      ] as const
    ).entries()) {
      const sub = `person-${at}`
      provider.account = { sub, email: email ?? `${sub}@example.com`, email_verified: true, name }
      const person = await findPerson(database.sql, { id: (await signIn(oidc)) as string })
      expect(person?.name).toBe(shown)
    }
  })

  test('N19: someone who left the required group is refused, and their session, token and key end', async () => {
    using place = await engine.createPlace()
    const provider = await startIdentityProvider()
    const gateway = await startGateway({
      env: { ...provider.env, ...(place.url !== undefined && { DATABASE_URL: place.url }) },
      config: 'sign_in: { required_group: staff, roles: [{ group: ops, role: operator }] }',
    })
    await provider.serve(gateway.url)
    provider.account = { sub: 'pat', email: 'pat@example.com', email_verified: true, groups: ['staff', 'ops'] }
    const entered = await signInAt(gateway.url)
    expect(entered.status).toBe(200)
    const session = { cookie: entered.cookie, 'sec-fetch-site': 'same-origin' }
    const ask = async (headers: Record<string, string>, path: string, body?: object) => {
      const method = body ? 'POST' : 'GET'
      const json = body && { body: JSON.stringify(body), headers: { ...headers, 'content-type': 'application/json' } }
      const response = await fetch(gateway.url + path, { method, headers, ...json })
      return { status: response.status, body: (await response.json()) as { id: string; secret: string; data: never[] } }
    }
    const me = await ask(session, '/api/me')
    expect(me.body).toMatchObject({ is_operator: true })
    const token = await ask(session, '/api/tokens', { name: 'script', role: 'operator' })
    const [workspace] = (await ask(session, '/api/workspaces')).body.data as { id: string }[]
    const [project] = (await ask(session, `/api/workspaces/${workspace?.id}/projects`)).body.data as { id: string }[]
    const key = await ask(session, `/api/projects/${project?.id}/keys`, { name: 'own' })
    const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })
    const statuses = async () => [
      (await ask(session, '/api/me')).status,
      (await ask(bearer(token.body.secret), '/api/me')).status,
      (await ask(bearer(key.body.secret), '/v1/models')).status,
    ]
    expect(await statuses()).toEqual([200, 200, 200])
    provider.account = { ...provider.account, groups: ['ops'] }
    const refused = await signInAt(gateway.url)
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('not in the group staff')])
    expect(await statuses()).toEqual([401, 401, 401])
    const { data } = await manage(gateway, 'GET', '/api/audit?limit=200')
    const ended = data.filter(({ action }: { action: string }) => action === 'person.end_access')
    expect(ended).toMatchObject([
      { actor: 'identity provider', details: { reason: 'group', sessions: 1, tokens: 1, keys: 1, roles: 1 } },
    ])
    await stopAll(gateway, provider)
  })

  test('N19: a refusal ends access if it shows that the person may not sign in any more, and only then', async () => {
    const provider = foreign as IdentityProvider
    const { oidc, state, invite, grants, audited, ended, give, left, workspaceId, ...store } = await setUp(
      engine,
      provider,
    )
    await using _ = store
    const good = { email: 'x@acme.test', email_verified: true, groups: ['staff'] }
    const [none, all] = [
      { sessions: 0, tokens: 0, keys: 0 },
      { sessions: 1, tokens: 1, keys: 1 },
    ]
    for (const [place, [account, domains, reason]] of (
      [
        [{ ...good, groups: ['devs'] }, [], 'group'],
        // Providers leave an empty list out.
        [{ ...good, groups: undefined }, [], 'group'],
        [{ ...good, email: undefined, groups: [] }, [], 'group'],
        [{ ...good, email: 'x@else.test' }, ['acme.test'], 'domain'],
        [{ ...good, email_verified: false }, [], 'unverified address'],
        // The provider does not say.
        [{ ...good, email_verified: undefined }, [], undefined],
        [{ ...good, email: undefined }, [], undefined],
        // Too many groups for a token: they are elsewhere.
        [{ ...good, groups: undefined, _claim_names: { groups: 'src1' } }, [], undefined],
      ] as const
    ).entries()) {
      const sub = `person-${place}`
      state.rules = { ...byInvitation, requiredGroup: 'staff' }
      provider.account = { sub, ...good, email: `${sub}@acme.test` }
      await invite(`${sub}@acme.test`, 'admin')
      const person = (await signIn(oidc)) as PersonId
      const key = await give(person)
      state.rules = { ...state.rules, allowedDomains: domains }
      provider.account = { sub, ...account }
      const before = ended.length
      for (const _again of [1, 2]) expect(await signIn(oidc)).toBeInstanceOf(Failure)
      expect([place, await left(person)]).toEqual([place, reason === undefined ? all : none])
      expect(ended.slice(before)).toEqual(reason === undefined ? [] : [key])
      expect(await audited(person)).toEqual(
        reason === undefined ? [] : [['person.end_access', { reason, ...all, devices: 0, roles: 0 }]],
      )
      // The role is from an invitation, and waits for the person to be let in again.
      expect(await grants(person)).toEqual([{ workspaceId, role: 'admin' }])
      provider.account = { sub, ...good, email: `${sub}@acme.test` }
      expect(await signIn(oidc)).toBe(person)
    }
    expect(state.refused).toBe(16)
  })

  test('N19: someone with a password keeps what an invitation gave them, and loses roles from groups', async () => {
    const provider = foreign as IdentityProvider
    const { oidc, state, invite, grants, give, left, workspaceId, database, ...store } = await setUp(engine, provider)
    await using _ = store
    state.rules = {
      ...byInvitation,
      requiredGroup: 'staff',
      roles: [{ group: 'ops', role: 'operator', workspaceId: undefined }],
    }
    await invite('liv@example.com', 'member')
    provider.account = { sub: 'liv', email: 'liv@example.com', email_verified: true, groups: ['staff', 'ops'] }
    const person = (await signIn(oidc)) as PersonId
    await database.transaction((sql) => setPassword(sql, person, 'a hash', Date.now()))
    await give(person)
    expect(await left(person)).toEqual({ sessions: 1, tokens: 1, keys: 1 })
    provider.account = { ...provider.account, groups: ['ops'] }
    expect(messageOf(await signIn(oidc))).toContain('not in the group staff')
    expect(await left(person)).toEqual({ sessions: 0, tokens: 1, keys: 1 })
    expect(await grants(person)).toEqual([{ workspaceId, role: 'member' }])
  })

  test('N13: with sign-up by the provider a new person gets a new workspace, once', async () => {
    const provider = first as IdentityProvider
    const { oidc, state, grants, workspaceId, ...store } = await setUp(engine, provider)
    await using _ = store
    state.rules = { ...byInvitation, mode: 'oidc' }
    provider.account = { sub: 'lee', email: 'lee@example.com', email_verified: true, name: 'Lee' }
    const person = (await signIn(oidc)) as string
    const own = await grants(person)
    expect(own).toMatchObject([{ role: 'admin' }])
    expect(own[0]?.workspaceId).not.toBe(workspaceId)
    expect(await signIn(oidc)).toBe(person)
    expect(state.signedUp).toEqual([own[0]?.workspaceId])
  })
})

function createOidcAway(database: Parameters<typeof createOidc>[0]['database']): Oidc {
  return createOidc({
    database,
    clock: createTestClock(),
    provider: { issuer: 'http://127.0.0.1:1', clientId: 'gate', clientSecret: undefined },
    rules: () => byInvitation,
    scopes: () => ['openid'],
    onSignUp: async () => {},
    onRefused: () => {},
    onAccessChange: () => {},
    onFault: () => {},
  })
}

test('groups behind a scope of their own decide when that scope is requested', async () => {
  const provider = await startIdentityProvider()
  const signIn = 'mode: oidc, group_claim: teams, roles: [{ group: ops, role: operator }]'
  const gateway = await startGateway({
    env: provider.env,
    config: `sign_in: { ${signIn}, scopes: [openid, email, profile, teams] }`,
  })
  await provider.serve(gateway.url)
  provider.account = { sub: 'ole', email: 'ole@example.com', email_verified: true, name: 'Ole', teams: ['ops'] }
  const { status, cookie } = await signInAt(gateway.url)
  expect(status).toBe(200)
  const me = await fetch(`${gateway.url}/api/me`, { headers: { cookie } })
  expect(await me.json()).toMatchObject({ is_operator: true })
  const { data } = await manage(gateway, 'GET', '/api/workspaces')
  expect(data.map(({ name }: { name: string }) => name)).not.toContain('Ole')
  await stopAll(gateway, provider)
})

test('an invitation leads someone of the identity provider there, and is accepted by the sign-in', async () => {
  const provider = await startIdentityProvider()
  const config = 'sign_in: { mode: oidc, provider_name: Example ID }'
  const gateway = await startGateway({ env: provider.env, config })
  await provider.serve(gateway.url)
  provider.account = { sub: 'ann', email: 'ann@example.com', email_verified: true, name: 'Ann' }
  const signIn = async () => {
    const started = await fetch(`${gateway.url}/console/oidc`, { redirect: 'manual' })
    const cookie = started.headers.get('set-cookie')?.split(';')[0] ?? ''
    const callback = await followToCallback(
      started.headers.get('location') ?? '',
      `${gateway.url}/console/oidc/callback`,
    )
    return (await fetch(callback, { headers: { cookie } })).status
  }
  expect(await signIn()).toBe(200)
  const workspace = await manage(gateway, 'POST', '/api/workspaces', { name: 'acme' })
  const invite = async (email: string) => {
    const body = { email, role: 'member', workspace_id: workspace.id }
    const { url } = await manage(gateway, 'POST', '/api/invitations', body)
    return await (await fetch(gateway.url + new URL(url).pathname + new URL(url).search)).text()
  }
  const page = await invite('ann@example.com')
  expect(page).toContain('Sign in with Example ID')
  expect(page).not.toContain('type="password"')
  // A new person may choose.
  const other = await invite('new@example.com')
  expect(other).toContain('Sign in with Example ID')
  expect(other).toContain('Choose a password')
  expect(await signIn()).toBe(200)
  const members = await manage(gateway, 'GET', `/api/members?workspace_id=${workspace.id}`)
  expect(members.data).toMatchObject([{ email: 'ann@example.com', role: 'member' }])
  await stopAll(gateway, provider)
})

test('a sign-in that was overtaken in another tab or denied says so, and the other tab goes on', async () => {
  const provider = await startIdentityProvider()
  const gateway = await startGateway({ env: provider.env, config: 'sign_in: { mode: oidc }' })
  await provider.serve(gateway.url)
  provider.account = { sub: 'tia', email: 'tia@example.com', email_verified: true, name: 'Tia' }
  const callback = `${gateway.url}/console/oidc/callback`
  const start = async () => {
    const started = await fetch(`${gateway.url}/console/oidc`, { redirect: 'manual' })
    const url = started.headers.get('location') ?? ''
    return { url, cookie: started.headers.get('set-cookie')?.split(';')[0] ?? '' }
  }
  const finish = async (answer: string | URL, cookie: string) => {
    const response = await fetch(answer, { headers: { cookie }, redirect: 'manual' })
    const isForgotten = response.headers.getSetCookie().some((set) => set.includes('-oidc=;'))
    return { status: response.status, text: await response.text(), isForgotten }
  }
  const [early, late] = [await start(), await start()]
  // A browser has only the cookie that was set last.
  const overtaken = await finish(await followToCallback(early.url, callback), late.cookie)
  expect(overtaken).toMatchObject({ status: 401, isForgotten: false })
  expect(overtaken.text).toContain('another one was started later, perhaps in another tab')
  const other = await finish(await followToCallback(late.url, callback), late.cookie)
  expect(other).toMatchObject({ status: 200, isForgotten: true })

  const answered = async (error: string) => {
    const { url, cookie } = await start()
    const state = new URL(url).searchParams.get('state') ?? ''
    return await finish(`${callback}?${new URLSearchParams({ error, state, iss: provider.issuer })}`, cookie)
  }
  const denied = await answered('access_denied')
  expect(denied).toMatchObject({ status: 403, isForgotten: true })
  expect(denied.text).toContain('was cancelled, or the identity provider does not let you in here')
  const wrong = await answered('invalid_scope')
  expect([wrong.status, wrong.text]).toEqual([403, expect.stringContaining('refused the sign-in (invalid_scope)')])
  // Only a name of an error is repeated.
  expect((await answered('Call +1 555 0100')).text).not.toContain('555')
  await stopAll(gateway, provider)
})

browserTest(
  'a person signs in with the identity provider in a browser, and the session survives the way back',
  async () => {
    const provider = first as IdentityProvider
    const browser = await openBrowser()
    const gateway = await startGateway({
      env: provider.env,
      config: 'sign_in: { mode: oidc, opening_credit: "3.00", provider_name: Example ID }',
    })
    await provider.serve(gateway.url)
    provider.account = { sub: 'ida', email: 'ida@example.com', email_verified: true, name: 'Ida' }
    const { page, close } = await openPage(browser, `${gateway.url}/console`)
    await page.click('text=Sign in with Example ID')
    await page.waitForSelector('.console')
    expect(page.url()).toMatch(/\/console\/ws_\w+\/usage$/)
    await page.waitForSelector('text=ida@example.com')
    await page.waitForSelector('text=$3.00')
    await provider.stop()
    // The provider is away: the session goes on, and signing in says so.
    await page.reload()
    await page.waitForSelector('text=ida@example.com')
    const other = await openPage(browser, `${gateway.url}/console/oidc`)
    await other.page.waitForSelector('[role=alert]:has-text("does not answer")')
    // The way back leads only to pages of the console.
    for (const [to, kept] of [
      ['/console/keys?from=x&i=secret', '/console/keys?from=x'],
      ['https://evil.test/console/keys', '/console/keys'],
      ['//evil.test/', '/console'],
      ['/console/../docs', '/console'],
      ['/console/oidc/callback?code=x', '/console'],
    ] as const) {
      const shown = await (await fetch(`${gateway.url}/console/oidc?to=${encodeURIComponent(to)}`)).text()
      expect(shown).toContain(`href="/console/oidc?to=${encodeURIComponent(kept)}"`)
    }
    await close()
    await other.close()
    await browser?.close()
    await gateway.stop()
  },
)
