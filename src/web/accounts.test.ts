// Local accounts over a real database, the management API and sessions: invitations, roles, removal, passwords and tokens.

import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import { received } from '../../test/parts/http.ts'
import { openManagement } from '../../test/parts/management.ts'
import { Failure } from '../kernel/failure.ts'
import { createId, type PersonId } from '../kernel/ids.ts'
import { createVerifier } from '../tenancy/api-key.ts'
import { signInByClaims } from '../tenancy/claims.ts'
import { createConsoleSessions } from '../tenancy/console-sessions.ts'
import { createGuessLimits } from '../tenancy/guess-limits.ts'
import { createKey, getKey } from '../tenancy/keys.ts'
import { createPasswords } from '../tenancy/people.ts'
import { principalOfPerson } from '../tenancy/principal.ts'
import { listProjects } from '../tenancy/workspaces.ts'
import { createAccounts } from './accounts.ts'
import { createSessions, readVisit, type Sessions, viewAsCookie } from './session.ts'

const password = 'correct horse battery'
const secretOf = (url: string) => new URL(url).searchParams.get('i') ?? ''
const post = (headers: Record<string, string> = {}) =>
  received(
    new Request('http://gate.test/console/session', { method: 'POST', headers: { host: 'gate.test', ...headers } }),
  )

async function setUp(engine: TestEngine) {
  let sessions: Sessions | undefined
  const management = await openManagement(engine, {
    pause: async () => {},
    sessionOf: async (request) => await sessions?.sessionOf(request),
  })
  const { database, clock } = management
  sessions = createSessions({
    clock,
    rows: createConsoleSessions(database),
    adminToken: () => ({ fingerprint: 'x', matches: () => false }),
    visitOf: (request) => readVisit(request, { publicUrl: undefined, forwardedProto: undefined }),
    principalOf: (personId) => principalOfPerson(database.sql, personId),
  })
  const refused: string[] = []
  const signUps = { isOpen: false }
  const credited: unknown[] = []
  const invalidated: unknown[] = []
  const slowed: string[] = []
  const accounts = createAccounts({
    database,
    clock,
    passwords: createPasswords(),
    async slowGuess(_, name) {
      slowed.push(name ?? 'address')
      return undefined
    },
    invalidate: (id) => void invalidated.push(id),
    guesses: createGuessLimits(clock),
    networkOf: (request) => request.headers.get('x-network') ?? 'home',
    onRefused: (by) => void refused.push(by),
    isOpen: () => signUps.isOpen,
    onSignUp: async ({ workspaceId }) => void credited.push(workspaceId),
  })
  const open = sessions
  const { id: workspaceId } = await management.make('/api/workspaces', { name: 'acme' })
  const { id: otherId } = await management.make('/api/workspaces', { name: 'other' })
  const invite = async (email: string, role: string, workspace_id?: string) =>
    (await management.make('/api/invitations', { email, role, ...(workspace_id && { workspace_id }) })) as {
      id: string
      url: string
    }
  const accept = (url: string, name = 'Ada', words = password) =>
    accounts.useLink(post(), { link: secretOf(url), name, password: words })
  const personOf = async (email: string, role: string, workspace = workspaceId): Promise<PersonId> =>
    (await accept((await invite(email, role, workspace)).url)) as PersonId
  /** Calls the management API with a console session of the person. */
  const as = async (personId: PersonId, more = '') => {
    const cookie = `${(await open.openFor(post(), personId)).split(';')[0]}${more}`.replace(
      'tollgate=',
      `${cookieName()}=`,
    )
    return (method: string, path: string, body?: unknown) =>
      management.ask(method, path, {
        token: null,
        headers: { cookie, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      })
  }
  const cookieName = () => `tollgate-${new URL(management.url).port}`
  const memberId = async (personId: PersonId): Promise<string> => {
    const [row] = await database.sql<{ id: string }>`SELECT id FROM members WHERE person_id = ${personId}`
    return row?.id ?? ''
  }
  return {
    signUps,
    credited,
    invalidated,
    management,
    accounts,
    refused,
    slowed,
    invite,
    accept,
    personOf,
    as,
    memberId,
    workspaceId,
    otherId,
    sessions: open,
  }
}

const statusOf = (outcome: unknown) => (outcome instanceof Failure ? outcome.code : 'signed in')

forEachEngine((engine) => {
  test('N1: an invitation works once, for its address, for seven days, and not after it was withdrawn or replaced', async () => {
    const { management, invite, accept, accounts, refused, workspaceId } = await setUp(engine)
    await using _ = management
    const first = await invite('Ada@Example.com', 'admin', workspaceId)
    expect(await accounts.lookAt(secretOf(first.url))).toMatchObject({
      ...{ email: 'ada@example.com', account: 'none', as: 'admin of acme' },
    })
    expect(statusOf(await accept(first.url, 'Ada', 'short'))).toBe('INVALID_REQUEST')
    // Two at the same time: one succeeds.
    const both = await Promise.all([accept(first.url), accept(first.url)])
    expect(both.map(statusOf).sort()).toEqual(['UNAUTHORIZED', 'signed in'])
    expect(statusOf(await accept(first.url))).toBe('UNAUTHORIZED')
    expect(refused).toContain('link')
    const replaced = await invite('bob@example.com', 'viewer', workspaceId)
    const current = await invite('bob@example.com', 'member', workspaceId)
    expect(statusOf(await accept(replaced.url))).toBe('UNAUTHORIZED')
    expect((await management.ask('DELETE', `/api/invitations/${current.id}`)).status).toBe(204)
    expect(statusOf(await accept(current.url))).toBe('UNAUTHORIZED')
    const late = await invite('eve@example.com', 'member', workspaceId)
    management.clock.advance(7 * 24 * 3_600_000)
    expect(statusOf(await accept(late.url))).toBe('UNAUTHORIZED')
    const [stored] = await management.database.sql<{ hash: string }>`SELECT hash FROM invitations LIMIT 1`
    expect(stored?.hash).not.toBe(secretOf(late.url))
  })

  test('N1: an address with an account accepts an invitation with its own password only', async () => {
    const { management, invite, accept, accounts, personOf, workspaceId, otherId } = await setUp(engine)
    await using _ = management
    const ada = await personOf('ada@example.com', 'member')
    const second = await invite('ada@example.com', 'viewer', otherId)
    expect(await accounts.lookAt(secretOf(second.url))).toMatchObject({ account: 'with password' })
    expect(statusOf(await accept(second.url, 'Mallory', 'another password'))).toBe('UNAUTHORIZED')
    expect(await accept(second.url)).toBe(ada)
    const { body } = await management.ask('GET', `/api/members?workspace_id=${otherId}`)
    expect(body.data).toMatchObject([{ email: 'ada@example.com', name: 'Ada', role: 'viewer', person_id: ada }])
    const again = await management.ask('POST', '/api/invitations', {
      body: { email: 'ada@example.com', role: 'admin', workspace_id: workspaceId },
    })
    expect([again.status, again.body.error.message]).toEqual([
      400,
      'This person is a member already. Change their role instead.',
    ])
  })

  test('N1: an account without a password is not asked for one, and the attempt is no wrong password', async () => {
    const { management, invite, accept, accounts, personOf, refused, slowed, otherId } = await setUp(engine)
    await using _ = management
    const ada = await personOf('ada@example.com', 'member')
    // As someone who only ever signed in with the identity provider.
    await management.database.transaction((sql) => sql`UPDATE people SET password_hash = NULL WHERE id = ${ada}`)
    const { url } = await invite('ada@example.com', 'viewer', otherId)
    expect(await accounts.lookAt(secretOf(url))).toMatchObject({ account: 'without password' })
    const outcome = await accept(url)
    expect(statusOf(outcome)).toBe('FORBIDDEN')
    expect(outcome).toMatchObject({ message: expect.stringContaining('Sign in with the identity provider') })
    expect([refused, slowed]).toEqual([[], []])
    // The link still works, for example after a reset link gave the account a password.
    expect(await accounts.lookAt(secretOf(url))).toMatchObject({ account: 'without password' })
  })

  test('N2: a password is stored as an Argon2id hash, and a wrong one is refused alike with and without an account', async () => {
    const { management, accounts, refused, slowed, personOf } = await setUp(engine)
    await using _ = management
    const ada = await personOf('ada@example.com', 'admin')
    const [row] = await management.database.sql<{ password_hash: string }>`SELECT password_hash FROM people`
    expect(row?.password_hash).toStartWith('$argon2id$')
    expect(await accounts.signIn(post(), { email: ' ADA@example.com ', password })).toBe(ada)
    expect(slowed).toEqual([])
    const wrong = await accounts.signIn(post(), { email: 'ada@example.com', password: 'guess guess guess' })
    const unknown = await accounts.signIn(post(), { email: 'nobody@example.com', password: 'guess guess guess' })
    expect([statusOf(wrong), (wrong as Failure).message]).toEqual([statusOf(unknown), (unknown as Failure).message])
    expect(refused).toEqual(['password', 'password'])
    expect(slowed).toEqual(['address', 'account ada@example.com', 'address', 'account nobody@example.com'])
  })

  test('N2: someone who guesses passwords from one network gets ten, also all at once, and the person signs in from another', async () => {
    const { management, accounts, refused, personOf } = await setUp(engine)
    await using _ = management
    const ada = await personOf('ada@example.com', 'admin')
    const guess = (words: string, network = 'far') =>
      accounts.signIn(post({ 'x-network': network }), { email: 'ada@example.com', password: words })
    const outcomes: unknown[] = []
    for (let round = 0; round < 3; round++) {
      outcomes.push(...(await Promise.all(Array.from({ length: 5 }, () => guess('guess guess guess')))))
    }
    expect(outcomes.map(statusOf)).toEqual([...Array(10).fill('UNAUTHORIZED'), ...Array(5).fill('LIMIT_EXCEEDED')])
    expect(refused).toHaveLength(15)
    // The right one is not compared either.
    expect(statusOf(await guess(password))).toBe('LIMIT_EXCEEDED')
    expect(await guess(password, 'home')).toBe(ada)
    management.clock.advance(10 * 60_000)
    expect(await guess(password)).toBe(ada)
  })

  test('N2: passwords of one network wait for their turn eight at a time, and others come between', async () => {
    const { management, accounts, personOf } = await setUp(engine)
    await using _ = management
    const ada = await personOf('ada@example.com', 'admin')
    const flood = Array.from({ length: 60 }, async (_, at) => {
      const account = { email: `nobody${at}@example.com`, password }
      try {
        return await accounts.signIn(post({ 'x-network': 'far' }), account)
      } catch (thrown) {
        return thrown
      }
    })
    const signedIn = accounts.signIn(post({ 'x-network': 'home' }), { email: 'ada@example.com', password })
    expect(await signedIn).toBe(ada)
    const codes = (await Promise.all(flood)).map(statusOf)
    expect(codes.filter((code) => code === 'UNAUTHORIZED')).toHaveLength(8)
    expect(codes.filter((code) => code === 'LIMIT_EXCEEDED')).toHaveLength(52)
  })

  test('N3: a changed role applies to a session that is open, and a removed person is out at once with tokens and own keys', async () => {
    const { management, personOf, as, memberId, workspaceId } = await setUp(engine)
    await using _ = management
    const project = await management.make(`/api/workspaces/${workspaceId}/projects`, { name: 'web' })
    const ada = await personOf('ada@example.com', 'admin')
    const bob = await personOf('bob@example.com', 'member')
    const [asAda, asBob] = [await as(ada), await as(bob)]
    const key = (await asBob('POST', `/api/projects/${project.id}/keys`, { name: 'mine' })).body
    expect(key.owner_id).toBe(bob)
    const input = { name: 'script', role: 'member', workspace_id: workspaceId }
    const token = (await asBob('POST', '/api/tokens', input)).body.secret
    expect((await management.ask('GET', '/api/keys', { token })).body.data).toMatchObject([{ id: key.id }])
    expect((await asBob('POST', '/api/tokens', { ...input, role: 'admin' })).status).toBe(400)
    expect((await asBob('POST', '/api/tokens', { ...input, role: 'viewer' })).status).toBe(400)

    expect((await asBob('GET', `/api/workspaces/${workspaceId}/wallet`)).status).toBe(403)
    const bobs = await memberId(bob)
    expect((await asAda('PATCH', `/api/members/${bobs}`, { role: 'viewer' })).status).toBe(200)
    expect((await asBob('GET', `/api/workspaces/${workspaceId}/wallet`)).status).toBe(200)
    expect((await asBob('POST', `/api/projects/${project.id}/keys`, { name: 'more' })).status).toBe(403)
    // The token's role is no longer included in the person's.
    expect((await management.ask('GET', '/api/keys', { token })).status).toBe(401)
    expect((await asAda('PATCH', `/api/members/${bobs}`, { role: 'member' })).status).toBe(200)
    expect((await management.ask('GET', '/api/keys', { token })).status).toBe(200)

    const headers = new Headers({ 'x-api-key': key.secret })
    expect(await management.authenticator.authenticate(headers)).not.toBeInstanceOf(Failure)
    expect((await asAda('DELETE', `/api/members/${bobs}`)).status).toBe(204)
    expect((await asBob('GET', '/api/me')).status).toBe(401)
    expect((await management.ask('GET', '/api/keys', { token })).status).toBe(401)
    expect(await management.authenticator.authenticate(headers)).toBeInstanceOf(Failure)
    const { body: audit } = await management.ask('GET', '/api/audit')
    expect(audit.data[0]).toMatchObject({ actor: ada, action: 'member.remove', details: { person: bob, keys: 1 } })
    // The addresses of actors are looked up for the reader; what is recorded has ids.
    const recorded = audit.data.map(({ actor_email: _, ...row }: { actor_email?: string }) => row)
    expect(JSON.stringify(recorded)).not.toContain('example.com')
  })

  test('N4: the last admin and the last operator stay, also when two remove each other at the same time', async () => {
    const { management, personOf, accept, invite, as, memberId, workspaceId } = await setUp(engine)
    await using _ = management
    const [ada, bob] = [await personOf('ada@example.com', 'admin'), await personOf('bob@example.com', 'admin')]
    const [asAda, asBob] = [await as(ada), await as(bob)]
    const [adas, bobs] = [await memberId(ada), await memberId(bob)]
    const outcomes = await Promise.all([
      asAda('DELETE', `/api/members/${bobs}`),
      asBob('DELETE', `/api/members/${adas}`),
    ])
    // The loser is refused as the one who would remove the last admin, or is out already.
    expect(outcomes.filter(({ status }) => status === 204)).toHaveLength(1)
    const left = (await management.ask('GET', `/api/members?workspace_id=${workspaceId}`)).body.data
    expect(left).toMatchObject([{ role: 'admin' }])
    const [last] = left
    const asLast = last.person_id === ada ? asAda : asBob
    expect((await asLast('DELETE', `/api/members/${last.id}`)).status).toBe(400)
    expect((await asLast('PATCH', `/api/members/${last.id}`, { role: 'viewer' })).status).toBe(400)
    const operator = (await accept((await invite('root@example.com', 'operator')).url)) as PersonId
    const asOperator = await as(operator)
    expect((await asOperator('DELETE', `/api/members/${await memberId(operator)}`)).status).toBe(400)
    expect((await asOperator('DELETE', `/api/members/${last.id}`)).status).toBe(204)
    expect((await management.ask('DELETE', `/api/members/${await memberId(operator)}`)).status).toBe(204)
  })

  test('N5: a reset link sets the password once and ends sessions, and an admin gets none for a person with a role elsewhere', async () => {
    const { management, accounts, personOf, accept, invite, as, memberId, otherId, invalidated } = await setUp(engine)
    await using _ = management
    const [ada, bob] = [await personOf('ada@example.com', 'admin'), await personOf('bob@example.com', 'member')]
    const [asAda, asBob] = [await as(ada), await as(bob)]
    const { body } = await asAda('POST', `/api/members/${await memberId(bob)}/reset-link`, {})
    expect(await accounts.lookAt(secretOf(body.url))).toMatchObject({ kind: 'reset', email: 'bob@example.com' })
    expect(await accept(body.url, '', 'a new password of bob')).toBe(bob)
    // The cached tokens of their devices.
    expect(invalidated).toEqual([bob])
    expect(statusOf(await accept(body.url, '', 'another password'))).toBe('UNAUTHORIZED')
    expect((await asBob('GET', '/api/me')).status).toBe(401)
    expect(await accounts.signIn(post(), { email: 'bob@example.com', password: 'a new password of bob' })).toBe(bob)
    expect(statusOf(await accounts.signIn(post(), { email: 'bob@example.com', password }))).toBe('UNAUTHORIZED')
    await accept((await invite('bob@example.com', 'admin', otherId)).url, '', 'a new password of bob')
    const [first] = await management.database.sql<{
      id: string
    }>`SELECT id FROM members WHERE person_id = ${bob} ORDER BY id`
    expect((await asAda('POST', `/api/members/${first?.id}/reset-link`, {})).status).toBe(403)
    expect((await management.ask('POST', `/api/members/${first?.id}/reset-link`, { body: {} })).status).toBe(201)
  })

  test('N5: an invitation and a reset link that are a moment too old set no password and open no session', async () => {
    const { management, accounts, personOf, accept, invite, as, memberId, refused, workspaceId } = await setUp(engine)
    await using _ = management
    const [ada, bob] = [await personOf('ada@example.com', 'admin'), await personOf('bob@example.com', 'member')]
    const dayMs = 24 * 3_600_000
    const reset = async () => (await (await as(ada))('POST', `/api/members/${await memberId(bob)}/reset-link`, {})).body
    const late = await reset()
    management.clock.advance(dayMs)
    expect(await accounts.lookAt(secretOf(late.url))).toBeUndefined()
    expect(statusOf(await accept(late.url, '', 'a new password of bob'))).toBe('UNAUTHORIZED')
    expect(await accounts.signIn(post(), { email: 'bob@example.com', password })).toBe(bob)
    const inTime = await reset()
    management.clock.advance(dayMs - 1)
    expect(await accept(inTime.url, '', 'a new password of bob')).toBe(bob)
    const invitation = await invite('eve@example.com', 'member', workspaceId)
    management.clock.advance(7 * dayMs)
    expect(await accounts.lookAt(secretOf(invitation.url))).toBeUndefined()
    expect(statusOf(await accept(invitation.url))).toBe('UNAUTHORIZED')
    expect(refused).toEqual(['link', 'link'])
    expect(await management.database.sql`SELECT id FROM people WHERE email = 'eve@example.com'`).toEqual([])
  })

  test('N1: another address cannot use an invitation, nor can its person after they were removed', async () => {
    const { management, personOf, accept, invite, as, memberId, workspaceId, otherId } = await setUp(engine)
    await using _ = management
    const mallory = await personOf('mallory@example.com', 'viewer')
    const link = await invite('ada@example.com', 'admin', workspaceId)
    // The link decides about the address: the one who opens it becomes that account and gains nothing for another one.
    const ada = (await accept(link.url, 'Mallory')) as PersonId
    expect(ada).not.toBe(mallory)
    const { body } = await (await as(mallory))('GET', '/api/me')
    expect(body.workspaces).toMatchObject([{ id: workspaceId, role: 'viewer' }])
    // At the identity provider, another verified address than the invited one has no account.
    const other = await invite('bob@example.com', 'admin', otherId)
    const rules = {
      mode: 'invite' as const,
      allowedDomains: [],
      requiredGroup: undefined,
      groupClaim: 'groups',
      roles: [],
    }
    const claims = { iss: 'https://id.example', sub: 'eve', email: 'eve@example.com', email_verified: true }
    const { outcome } = await signInByClaims(management.database, claims, rules, management.clock.now())
    expect(statusOf(outcome)).toBe('FORBIDDEN')
    // Removed: a link that was sent to them before is gone with them.
    const adas = await memberId(ada)
    const reset = await management.ask('POST', `/api/members/${adas}/reset-link`, { body: {} })
    expect((await management.ask('DELETE', `/api/members/${adas}`)).status).toBe(204)
    for (const { url } of [link, reset.body]) expect(statusOf(await accept(url))).toBe('UNAUTHORIZED')
    expect(statusOf(await accept(other.url, 'Bob'))).toBe('signed in')
  })

  test('N17: a person sees their sessions and signs each of them out, and no other person’s', async () => {
    const { management, personOf, as, sessions } = await setUp(engine)
    await using _ = management
    const [ada, bob] = [await personOf('ada@example.com', 'admin'), await personOf('bob@example.com', 'member')]
    const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
    await sessions.openFor(post({ 'user-agent': firefox }), ada)
    management.clock.advance(60_000)
    const asAda = await as(ada)
    const asBob = await as(bob)
    const { body } = await asAda('GET', '/api/me/sessions')
    expect(body.data).toMatchObject([
      { client: '', is_current: true },
      { client: firefox, is_current: false },
    ])
    const [here, there] = body.data
    expect(Date.parse(here.opened_at) - Date.parse(there.opened_at)).toBe(60_000)
    expect((await asBob('GET', '/api/me/sessions')).body.data).toHaveLength(1)
    expect((await asBob('DELETE', `/api/me/sessions/${there.id}`)).status).toBe(404)
    expect((await asAda('DELETE', `/api/me/sessions/${there.id}`)).status).toBe(204)
    expect((await asAda('DELETE', `/api/me/sessions/${there.id}`)).status).toBe(404)
    expect((await asAda('GET', '/api/me/sessions')).body.data).toMatchObject([{ id: here.id }])
    expect((await asAda('DELETE', `/api/me/sessions/${here.id}`)).status).toBe(204)
    expect((await asAda('GET', '/api/me')).status).toBe(401)
    const { body: audit } = await management.ask('GET', '/api/audit')
    expect(audit.data[0]).toMatchObject({ actor: ada, action: 'session.end', object: here.id })
    // A session that is over is not listed.
    management.clock.advance(13 * 3_600_000)
    expect((await (await as(bob))('GET', '/api/me/sessions')).body.data).toHaveLength(1)
  })

  test('N18: corrections, refunds and erasure need a sign-in of the last 15 minutes in the console, not with a token', async () => {
    const { management, accept, invite, as, workspaceId } = await setUp(engine)
    await using _ = management
    const operator = (await accept((await invite('root@example.com', 'operator')).url)) as PersonId
    const asOperator = await as(operator)
    const correct = { amount: '1.00', direction: 'add', reason: 'test' }
    const wallet = `/api/workspaces/${workspaceId}/corrections`
    expect((await asOperator('POST', wallet, correct)).status).toBe(201)
    const token = (await asOperator('POST', '/api/tokens', { name: 't', role: 'operator' })).body.secret
    management.clock.advance(15 * 60_000 - 1)
    expect((await asOperator('POST', wallet, correct)).status).toBe(201)
    management.clock.advance(1)
    for (const [method, path, body] of [
      ['POST', wallet, correct],
      ['POST', `/api/payments/${createId('pay')}/refunds`, { reason: 'test' }],
      ['POST', `/api/workspaces/${workspaceId}/erase`, { confirm: 'erase' }],
    ] as const) {
      const reply = await asOperator(method, path, body)
      const { message, metadata } = reply.body.error
      const expected = [path, 403, expect.stringContaining('within the last 15 minutes'), { reason: 'sign_in_too_old' }]
      expect([path, reply.status, message, metadata]).toEqual(expected)
    }
    expect((await asOperator('GET', `/api/workspaces/${workspaceId}/wallet`)).body.balance).toBe('2.00')
    expect((await management.ask('POST', wallet, { token, body: correct })).status).toBe(201)
    expect((await (await as(operator))('POST', wallet, correct)).status).toBe(201)
  })

  test('N6: one’s own password needs the current one, and sessions end everywhere', async () => {
    const { management, accounts, personOf, as } = await setUp(engine)
    await using _ = management
    const ada = await personOf('ada@example.com', 'viewer')
    const [here, there] = [await as(ada), await as(ada)]
    expect((await here('POST', '/api/me/password', { current: 'wrong', password: 'the next password' })).status).toBe(
      403,
    )
    expect((await here('POST', '/api/me/password', { current: password, password: 'the next password' })).status).toBe(
      204,
    )
    expect([(await here('GET', '/api/me')).status, (await there('GET', '/api/me')).status]).toEqual([401, 401])
    expect(await accounts.signIn(post(), { email: 'ada@example.com', password: 'the next password' })).toBe(ada)
    const [one, two] = [await as(ada), await as(ada)]
    expect((await one('POST', '/api/me/sign-out', {})).body).toEqual({ ended: 2 })
    expect((await two('GET', '/api/me')).status).toBe(401)
  })

  test('N7: viewing as someone only narrows: an operator loses rights, and a viewer gains none', async () => {
    const { management, personOf, accept, invite, as, workspaceId, otherId } = await setUp(engine)
    await using _ = management
    const operator = (await accept((await invite('root@example.com', 'operator')).url)) as PersonId
    const viewer = await personOf('eve@example.com', 'viewer')
    const view = (role: string, id: string) => `; ${viewAsCookie}=${id}.${role}`
    const asViewer = await as(operator, view('viewer', workspaceId))
    expect((await asViewer('GET', '/api/me')).body).toMatchObject({
      is_operator: false,
      workspaces: [{ role: 'viewer' }],
    })
    expect((await asViewer('GET', `/api/workspaces/${otherId}`)).status).toBe(404)
    expect((await asViewer('GET', '/api/providers')).status).toBe(403)
    const asAdmin = await as(viewer, view('admin', otherId))
    expect((await asAdmin('GET', '/api/me')).body).toMatchObject({ workspaces: [{ id: workspaceId, role: 'viewer' }] })
  })

  test('N8: the answer to an idempotency key is never given to another person, and only operators apply files', async () => {
    const { management, personOf, as, workspaceId } = await setUp(engine)
    await using _ = management
    const project = await management.make(`/api/workspaces/${workspaceId}/projects`, { name: 'web' })
    const [ada, bob] = [await personOf('ada@example.com', 'admin'), await personOf('bob@example.com', 'admin')]
    const tokenOf = async (personId: PersonId) =>
      (await (await as(personId))('POST', '/api/tokens', { name: 't', role: 'admin', workspace_id: workspaceId })).body
        .secret
    const headers = { 'idempotency-key': 'same' }
    const path = `/api/projects/${project.id}/keys`
    const [adas, bobs] = [await tokenOf(ada), await tokenOf(bob)]
    const ask = (token: string) => management.ask('POST', path, { token, headers, body: { name: 'ci' } })
    const [first, second, again] = [await ask(adas), await ask(bobs), await ask(adas)]
    expect(second.body.id).not.toBe(first.body.id)
    expect(again.body).toEqual(first.body)
    const file = { 'x-tollgate-managed-by': 'file' }
    expect((await management.ask('POST', path, { token: adas, headers: file, body: { name: 'x' } })).status).toBe(403)
  })

  test('N15: open sign-up gives a workspace of one’s own, and its password and keys end when the owner of the address comes', async () => {
    const { management, accounts, signUps, credited } = await setUp(engine)
    await using _ = management
    const account = { email: 'ada@example.com', name: 'Mallory', password }
    expect(statusOf(await accounts.signUp(post(), account))).toBe('FORBIDDEN')
    signUps.isOpen = true
    const squatter = (await accounts.signUp(post(), account)) as PersonId
    const [own] = (await principalOfPerson(management.database.sql, squatter)).grants
    expect(own?.role).toBe('admin')
    expect(credited).toEqual([own?.workspaceId])
    expect(statusOf(await accounts.signUp(post(), account))).toBe('INVALID_REQUEST')
    const rules = {
      mode: 'oidc' as const,
      allowedDomains: [],
      requiredGroup: undefined,
      groupClaim: 'groups',
      roles: [],
    }
    const { database, clock } = management
    const [project] = (await listProjects(database.sql, own?.workspaceId ?? 'ws_', { limit: 1 })).items
    const input = { projectId: project?.id ?? '', name: 'left behind', ownerId: squatter }
    const act = { actor: squatter, at: clock.now() }
    const verifier = createVerifier(new Uint8Array(32))
    const { key } = await database.transaction((sql) => createKey(sql, input, act, verifier))
    const claims = { iss: 'https://id.example', sub: 'ada', email: 'ada@example.com', email_verified: true }
    const entered = await signInByClaims(database, claims, rules, clock.now())
    expect(entered).toMatchObject({ outcome: { personId: squatter }, revokedKeys: [key.id] })
    expect((await getKey(database.sql, key.id)).revokedAt).toBe(clock.now())
    expect(statusOf(await accounts.signIn(post(), { email: 'ada@example.com', password }))).toBe('UNAUTHORIZED')
  })
})
