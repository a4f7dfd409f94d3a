import { expect, test } from 'bun:test'
import { SignJWT } from 'jose'
import { forEachEngine, type TestEngine, testWith } from '../../test/parts/engines.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import { createId, type KeyId, type PersonId, type SessionId, type SignInId } from '../kernel/ids.ts'
import type { Role } from '../kernel/roles.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { createAccessTokens } from './access-tokens.ts'
import { listAudit } from './audit.ts'
import { createAuthenticator } from './authenticate.ts'
import type { Caller } from './caller.ts'
import {
  approveGrant,
  createUserCodes,
  denyGrant,
  openGrant,
  pollGrant,
  readUserCode,
  shownUserCode,
  startGrant,
} from './device-grants.ts'
import { getKey, listKeys, revokeKey, rotateKey } from './keys.ts'
import { putLimits } from './limits.ts'
import { addMember, changeRole, endAccess, insertPerson, listMembers, removeMember, setPassword } from './people.ts'
import {
  createRefreshTokens,
  createSignIn,
  endSignIn,
  endSignInsOf,
  listSignIns,
  type Renewal,
  renewSignIn,
} from './sign-ins.ts'
import { deleteProject, eraseWorkspace, insertProject, insertWorkspace } from './workspaces.ts'

const noon = Date.UTC(2026, 10, 18, 12)
const [minute, day] = [60_000, 86_400_000]
const bytes = (fill: number) => new Uint8Array(32).fill(fill)
const accessTokens = createAccessTokens({ current: bytes(1) })
const refreshTokens = createRefreshTokens({ current: bytes(2) })
const userCodes = createUserCodes({ current: bytes(3) })
const page = { limit: 10 }
const signInAdvice = 'Sign in: run `tollgate login` (in Claude Code, `/login`).'
const unknown = `Tollgate does not accept this access token: it has expired, was changed, or was not issued by this installation. ${signInAdvice}`

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  let nowMs = noon
  const clock: Clock = { now: () => nowMs, monotonicMs: () => nowMs }
  let queries = 0
  const database: Database = {
    ...store.database,
    sql: ((first: TemplateStringsArray, ...values: []) => {
      queries++
      return store.database.sql(first, ...values)
    }) as Sql,
  }
  const act = (actor = 'test') => ({ actor, at: nowMs })
  const write = store.database.transaction
  const [workspaceId, projectId] = await write(async (sql) => {
    const id = await insertWorkspace(sql, { name: 'acme', createdAt: noon })
    return [id, await insertProject(sql, { workspaceId: id, name: 'web', createdAt: noon })] as const
  })
  const used: (KeyId | SignInId)[] = []
  const authenticator = createAuthenticator({
    ...{ database, pepper: bytes(9), clock, accessTokens },
    noteUse: (id) => used.push(id),
  })
  const person = (label: string, role: Role | 'none' = 'member') =>
    write(async (sql) => {
      const id = await insertPerson(sql, { email: `${label}@example.com`, name: label }, nowMs)
      const place = role === 'operator' ? undefined : workspaceId
      if (role !== 'none') await addMember(sql, id, { role, workspaceId: place }, 'invitation', nowMs)
      return id
    })
  const signIn = (personId: PersonId, project = projectId) =>
    write((sql) => createSignIn(sql, { personId, projectId: project, client: 'claude_code', device: 'laptop' }, nowMs))
  const tokenOf = ({ subject }: Renewal) => accessTokens.issue(subject, nowMs)
  const ask = async (token: string) =>
    await authenticator.authenticate(new Headers({ authorization: `Bearer ${token}` }))
  return {
    ...{
      database: store.database,
      write,
      workspaceId,
      projectId,
      used,
      authenticator,
      act,
      person,
      signIn,
      tokenOf,
      ask,
    },
    queries: () => queries,
    advance(ms: number): void {
      nowMs += ms
    },
    now: () => nowMs,
    refresh: (token: string) =>
      write(async (sql) => {
        const read = refreshTokens.read(token)
        return read ? await renewSignIn(sql, read, nowMs) : { refused: 'unknown' as const }
      }),
    actions: async () => (await listAudit(store.database.sql, page)).items.map(({ action }) => action).reverse(),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

type Bench = Awaited<ReturnType<typeof createBench>>

function messageOf(verdict: Caller | Failure): string {
  return verdict instanceof Failure ? `${verdict.status} ${verdict.message}` : `accepted ${verdict.keyName}`
}

const refreshTokenOf = ({ secret, generation }: Renewal) => refreshTokens.render(secret, generation)

function renewed(outcome: Awaited<ReturnType<Bench['refresh']>>): Renewal {
  if ('refused' in outcome) throw new Error(`refused: ${outcome.refused}`)
  return outcome
}

test('an access token is valid for 15 minutes, by a clock that is off by half a minute too', async () => {
  const subject = { signInId: createId('sgn'), personId: createId('per'), email: 'ada@example.com', groups: ['dev'] }
  const token = await accessTokens.issue(subject, noon)
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  expect(claims).toEqual({
    ...{ iss: 'tollgate', aud: 'tollgate', sub: subject.personId, sid: subject.signInId },
    ...{ email: 'ada@example.com', groups: ['dev'], iat: noon / 1000, exp: noon / 1000 + 900 },
  })
  // Issued by a replica whose clock is ahead.
  expect(await accessTokens.read(token, noon - 5 * minute)).toMatchObject({ signInId: subject.signInId })
  expect(await accessTokens.read(token, noon + 15 * minute + 29_000)).toBeDefined()
  expect(await accessTokens.read(token, noon + 15 * minute + 30_000)).toBeUndefined()
})

test('an access token of another secret, audience or issuer, unsigned or altered, is not accepted', async () => {
  const subject = { signInId: createId('sgn'), personId: createId('per'), email: 'ada@example.com', groups: [] }
  const token = await accessTokens.issue(subject, noon)
  const [head = '', body = '', signature = ''] = token.split('.')
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  const signed = (changes: object, alg = 'HS256', key = bytes(1)) =>
    new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg }).sign(key)
  const { exp: _, ...timeless } = claims
  const refused = [
    await createAccessTokens({ current: bytes(4) }).issue(subject, noon),
    `${head}.${encoded({ ...claims, sub: createId('per') })}.${signature}`,
    `${encoded({ alg: 'none', typ: 'JWT' })}.${body}.`,
    `${encoded({ alg: 'none', typ: 'JWT' })}.${body}.${signature}`,
    `${head}.${body}.${signature.slice(0, -2)}AA`,
    await signed({ aud: 'another' }),
    await signed({ iss: 'https://another.example' }),
    await signed({}, 'HS512', new Uint8Array(64).fill(1)),
    await signed({ sid: 7 }),
    await signed({ sub: 'per_x' }),
    await new SignJWT(timeless).setProtectedHeader({ alg: 'HS256' }).sign(bytes(1)),
  ]
  for (const each of refused) expect([each, await accessTokens.read(each, noon)]).toEqual([each, undefined])
  // The same signing as above, unchanged.
  expect(await accessTokens.read(await signed({}), noon)).toBeDefined()
})

test('tokens of the previous master secret are accepted during a rotation, and no others', async () => {
  const subject = { signInId: createId('sgn'), personId: createId('per'), email: 'ada@example.com', groups: [] }
  const rotated = createAccessTokens({ current: bytes(5), previous: bytes(1) })
  expect(await rotated.read(await accessTokens.issue(subject, noon), noon)).toBeDefined()
  expect(await accessTokens.read(await rotated.issue(subject, noon), noon)).toBeUndefined()
  const secret = 'x'.repeat(43)
  const old = refreshTokens.render(secret, 3)
  expect(createRefreshTokens({ current: bytes(5), previous: bytes(2) }).read(old)).toEqual({ secret, generation: 3 })
  expect(createRefreshTokens({ current: bytes(5) }).read(old)).toBeUndefined()
  // No other generation can be made from it.
  expect(refreshTokens.read(old.replace('.3.', '.4.'))).toBeUndefined()
  expect(refreshTokens.read(old.replace('.3.', '.03.'))).toBeUndefined()
})

test('a code that people type has eight letters that cannot be confused, in any spelling', () => {
  expect(shownUserCode('WDJBMJHT')).toBe('WDJB-MJHT')
  expect(readUserCode(' wdjb mjht ')).toBe('WDJBMJHT')
  for (const typed of ['', 'WDJB-MJH', 'WDJB-MJHTT', 'WDJB-MJH1', 'ADJB-MJHT', 'WDJB-MJHÉ']) {
    expect([typed, readUserCode(typed)]).toEqual([typed, undefined])
  }
})

forEachEngine((engine) => {
  const benchTest = testWith(() => createBench(engine))

  benchTest('a token is accepted in every header, and is the key of its person in the project', async (bench) => {
    const ada = await bench.person('ada')
    const renewal = await bench.signIn(ada)
    const token = await bench.tokenOf(renewal)
    for (const name of ['x-api-key', 'x-goog-api-key']) {
      const caller = (await bench.authenticator.authenticate(new Headers({ [name]: token }))) as Caller
      expect(caller).toMatchObject({ keyId: renewal.keyId, keyName: 'ada@example.com (signs in)', projectName: 'web' })
    }
    const both = new Headers({ authorization: `Bearer ${token}`, 'x-api-key': token })
    expect(await bench.authenticator.authenticate(both)).toMatchObject({ keyId: renewal.keyId })
    expect(new Set(bench.used)).toEqual(new Set([renewal.keyId, renewal.subject.signInId]))
    // A second device has the same key; another person has their own.
    expect((await bench.signIn(ada)).keyId).toBe(renewal.keyId)
    expect((await bench.signIn(await bench.person('bob'))).keyId).not.toBe(renewal.keyId)
    const listed = await listKeys(bench.database.sql, { projectId: bench.projectId, page })
    expect(listed.items.map(({ kind, name, last4, ownerId }) => ({ kind, name, last4, ownerId }))[0]).toEqual({
      ...{ kind: 'person', name: 'ada@example.com (signs in)', last4: '', ownerId: ada },
    })
  })

  benchTest('a cached token needs no promise and no query', async (bench) => {
    const token = await bench.tokenOf(await bench.signIn(await bench.person('ada')))
    const headers = new Headers({ authorization: `Bearer ${token}` })
    expect(bench.authenticator.authenticate(headers)).toBeInstanceOf(Promise)
    await bench.ask(token)
    const before = bench.queries()
    expect(bench.authenticator.authenticate(headers)).not.toBeInstanceOf(Promise)
    expect(bench.queries()).toBe(before)
  })

  benchTest('a token that was not signed here is refused without a query', async (bench) => {
    const { subject } = await bench.signIn(await bench.person('ada'))
    const foreign = await createAccessTokens({ current: bytes(4) }).issue(subject, bench.now())
    const before = bench.queries()
    for (const token of [
      foreign,
      'eyJ',
      'eyJhbGciOiJub25lIn0.e30.',
      `eyJ${'A'.repeat(9000)}.eyJ.x`,
      `eyJ${'x'.repeat(37)}`,
    ]) {
      expect(messageOf(await bench.ask(token))).toBe(`401 ${unknown}`)
    }
    expect(bench.queries()).toBe(before)
  })

  benchTest('a token ends with its time, its sign-in, its key or its person', async (bench) => {
    const [ada, bob, eve] = [await bench.person('ada'), await bench.person('bob'), await bench.person('eve')]
    const renewal = await bench.signIn(ada)
    const token = await bench.tokenOf(renewal)
    expect(messageOf(await bench.ask(token))).toBe('accepted ada@example.com (signs in)')
    bench.advance(15 * minute + 30_000)
    // From the cache too.
    expect(messageOf(await bench.ask(token))).toBe(`401 ${unknown}`)

    const ended = await bench.tokenOf(renewal)
    await bench.write((sql) => endSignIn(sql, renewal.subject.signInId, bench.act()))
    bench.authenticator.invalidate(renewal.keyId)
    const over = `401 Tollgate does not accept this access token: its sign-in ended 2026-11-18. ${signInAdvice}`
    expect(messageOf(await bench.ask(ended))).toBe(over)

    const ofBob = await bench.signIn(bob)
    const bobs = await bench.tokenOf(ofBob)
    await bench.write((sql) => revokeKey(sql, ofBob.keyId, bench.act()))
    expect(messageOf(await bench.ask(bobs))).toBe(over)

    const eves = await bench.tokenOf(await bench.signIn(eve))
    expect(messageOf(await bench.ask(eves))).toStartWith('accepted')
    const members = await listMembers(bench.database.sql, bench.workspaceId, page)
    const member = members.items.find(({ personId }) => personId === eve)
    const removed = await bench.write((sql) => removeMember(sql, member?.id ?? '', bench.act(), { mayLeave: true }))
    for (const id of removed.keys) bench.authenticator.invalidate(id)
    expect(messageOf(await bench.ask(eves))).toBe(`401 ${unknown}`)
    // Nothing of the person is left but the id.
    expect((await getKey(bench.database.sql, removed.keys[0] ?? '')).name).toBe(eve)
  })

  benchTest(
    'the role decides at each request: viewers and people without a role are told what to do',
    async (bench) => {
      const ada = await bench.person('ada')
      const token = await bench.tokenOf(await bench.signIn(ada))
      expect(messageOf(await bench.ask(token))).toStartWith('accepted')
      const [member] = (await listMembers(bench.database.sql, bench.workspaceId, page)).items
      await bench.write((sql) => changeRole(sql, member?.id ?? '', 'viewer', bench.act(), { mayLeave: true }))
      bench.authenticator.invalidate(ada)
      const advice =
        'in the workspace "acme". Ask an admin of the workspace for the role member, or sign in to another workspace.'
      expect(messageOf(await bench.ask(token))).toBe(
        `403 The account ada@example.com has the role viewer, which does not include model calls, ${advice}`,
      )
      await bench.write((sql) => changeRole(sql, member?.id ?? '', 'admin', bench.act(), { mayLeave: true }))
      bench.authenticator.invalidate(ada)
      expect(messageOf(await bench.ask(token))).toStartWith('accepted')
      const stranger = await bench.tokenOf(await bench.signIn(await bench.person('bob', 'none')))
      expect(messageOf(await bench.ask(stranger))).toBe(`403 The account bob@example.com has no role ${advice}`)
      const operator = await bench.tokenOf(await bench.signIn(await bench.person('root', 'operator')))
      expect(messageOf(await bench.ask(operator))).toStartWith('accepted')
    },
  )

  benchTest('a refresh token is renewed at each use, and a repeated renewal gets the same successor', async (bench) => {
    const first = await bench.signIn(await bench.person('ada'))
    const second = renewed(await bench.refresh(refreshTokenOf(first)))
    expect(refreshTokenOf(second)).not.toBe(refreshTokenOf(first))
    bench.advance(59_000)
    expect(refreshTokenOf(renewed(await bench.refresh(refreshTokenOf(first))))).toBe(refreshTokenOf(second))
    const third = renewed(await bench.refresh(refreshTokenOf(second)))
    expect(third).toMatchObject({ subject: first.subject, generation: 3 })
    expect(await bench.actions()).toEqual([])
  })

  benchTest('of renewals at the same moment nobody is signed out', async (bench) => {
    let current = await bench.signIn(await bench.person('ada'))
    for (let round = 0; round < 20; round++) {
      const both = await Promise.all([1, 2].map(() => bench.refresh(refreshTokenOf(current))))
      const [one, two] = both.map((outcome) => refreshTokenOf(renewed(outcome)))
      expect(one).toBe(two as string)
      current = renewed(both[0] as Renewal)
    }
    expect(current.generation).toBe(21)
  })

  benchTest('a refresh token that is used again after a minute ends the sign-in', async (bench) => {
    const first = await bench.signIn(await bench.person('ada'))
    const second = renewed(await bench.refresh(refreshTokenOf(first)))
    bench.advance(minute)
    expect(await bench.refresh(refreshTokenOf(first))).toEqual({ refused: 'reused', keyId: first.keyId })
    // The newest one is void too, and so are the access tokens.
    expect(await bench.refresh(refreshTokenOf(second))).toEqual({ refused: 'ended' })
    expect(messageOf(await bench.ask(await bench.tokenOf(second)))).toContain('its sign-in ended')
    expect(await bench.actions()).toEqual(['sign_in.reuse'])
  })

  benchTest('an older refresh token ends the sign-in within the minute too', async (bench) => {
    const first = await bench.signIn(await bench.person('ada'))
    const second = renewed(await bench.refresh(refreshTokenOf(first)))
    renewed(await bench.refresh(refreshTokenOf(second)))
    expect(await bench.refresh(refreshTokenOf(first))).toMatchObject({ refused: 'reused' })
  })

  benchTest('a device that is not used for 30 days signs in again, and every device after 90', async (bench) => {
    const ada = await bench.person('ada')
    const idle = refreshTokenOf(await bench.signIn(ada))
    let busy = await bench.signIn(ada)
    bench.advance(30 * day)
    expect(await bench.refresh(idle)).toEqual({ refused: 'expired' })
    bench.advance(-day)
    for (let days = 29; days < 87; days += 29) {
      busy = renewed(await bench.refresh(refreshTokenOf(busy)))
      bench.advance(29 * day)
    }
    busy = renewed(await bench.refresh(refreshTokenOf(busy)))
    bench.advance(3 * day - 1)
    busy = renewed(await bench.refresh(refreshTokenOf(busy)))
    bench.advance(1)
    expect(await bench.refresh(refreshTokenOf(busy))).toEqual({ refused: 'expired' })
  })

  benchTest('people see their devices and end one or all of them', async (bench) => {
    const [ada, bob] = [await bench.person('ada'), await bench.person('bob')]
    const [one, two, bobs] = [await bench.signIn(ada), await bench.signIn(ada), await bench.signIn(bob)]
    const list = async (more: object) =>
      (await listSignIns(bench.database.sql, { page, now: bench.now(), ...more })).items.map(({ id }) => id)
    const ids = [one, two, bobs].map(({ subject }) => subject.signInId)
    expect(await list({ workspaceId: bench.workspaceId })).toEqual(ids)
    expect(await list({ personId: ada })).toEqual(ids.slice(0, 2))
    await bench.write((sql) => endSignIn(sql, ids[0] ?? '', bench.act(ada)))
    // Again without an effect, and without a second line in the audit log.
    await bench.write((sql) => endSignIn(sql, ids[0] ?? '', bench.act(ada)))
    expect(await list({ personId: ada })).toEqual(ids.slice(1, 2))
    expect(await bench.refresh(refreshTokenOf(two))).toMatchObject({ generation: 2 })
    expect(await bench.write((sql) => endSignInsOf(sql, ada, bench.act(ada)))).toBe(1)
    expect(await bench.refresh(refreshTokenOf(two))).toEqual({ refused: 'ended' })
    expect(await list({})).toEqual(ids.slice(2))
    expect(await bench.actions()).toEqual(['sign_in.end', 'sign_in.end_all'])
    expect(
      await bench.write((sql) => endSignIn(sql, createId('sgn'), bench.act()).catch((thrown) => thrown.code)),
    ).toBe('NOT_FOUND')
  })

  benchTest(
    'a person’s key keeps its limits when it is ended and made anew, and has no secret to rotate',
    async (bench) => {
      const ada = await bench.person('ada')
      const { keyId } = await bench.signIn(ada)
      await bench.write((sql) => putLimits(sql, { kind: 'key', id: keyId }, { requestsPerMinute: 7 }, bench.act()))
      const rotation = bench.write((sql) => rotateKey(sql, keyId, {}, bench.act(), {} as never))
      expect(await rotation.catch((thrown) => thrown.message)).toStartWith('This key has no secret')
      await bench.write((sql) => revokeKey(sql, keyId, bench.act()))
      const next = await bench.signIn(ada)
      expect(next.keyId).not.toBe(keyId)
      expect((await getKey(bench.database.sql, next.keyId)).limits).toEqual({ requestsPerMinute: 7 })
    },
  )

  benchTest('a deleted project and an erased workspace end their sign-ins', async (bench) => {
    const ada = await bench.person('ada')
    const other = await bench.write((sql) =>
      insertProject(sql, { workspaceId: bench.workspaceId, name: 'old', createdAt: noon }),
    )
    const old = await bench.signIn(ada, other)
    await bench.write((sql) => deleteProject(sql, other, bench.act()))
    expect(await bench.refresh(refreshTokenOf(old))).toEqual({ refused: 'unknown' })
    const current = await bench.signIn(ada)
    expect(await bench.write((sql) => eraseWorkspace(sql, bench.workspaceId, bench.act()))).toMatchObject({ keys: 1 })
    expect(await bench.refresh(refreshTokenOf(current))).toEqual({ refused: 'unknown' })
    expect((await getKey(bench.database.sql, current.keyId)).name).toBe('erased')
    expect(await bench.write((sql) => eraseWorkspace(sql, bench.workspaceId, bench.act()))).toMatchObject({ keys: 0 })
  })

  const start = (bench: Bench) =>
    bench.write(async (sql) => {
      const facts = { client: 'claude_code', device: 'laptop', address: '192.0.2.7' }
      const started = await startGrant(sql, facts, userCodes, bench.now())
      if ('fullForMs' in started) throw new Error('not started')
      return { ...started, hashes: userCodes.hashes(started.userCode) }
    })
  const poll = async (bench: Bench, code: string) =>
    (await bench.write((sql) => pollGrant(sql, code, bench.now()))).kind
  const failureOf = (work: Promise<unknown>) =>
    work.then(
      () => 'done',
      (thrown) => (thrown instanceof Failure ? `${thrown.status} ${thrown.message}` : String(thrown)),
    )
  const sessionOf = async (bench: Bench, personId: PersonId) => {
    const sessionId: SessionId = createId('ses')
    await bench.write(
      (sql) => sql`INSERT INTO console_sessions (hash, id, opened_at, used_at, fingerprint, person_id, client)
        VALUES (${sessionId}, ${sessionId}, 0, 0, '', ${personId}, 'a browser')`,
    )
    return { personId, sessionId }
  }

  benchTest('a device polls until its person approves, and is signed in once', async (bench) => {
    const ada = await bench.person('ada')
    const { deviceCode, hashes } = await start(bench)
    expect(await poll(bench, deviceCode)).toBe('pending')
    bench.advance(4_000)
    expect(await poll(bench, deviceCode)).toBe('pending')
    bench.advance(2_000)
    expect(await poll(bench, deviceCode)).toBe('slow_down')
    // Five seconds longer now.
    bench.advance(5_000)
    expect(await poll(bench, deviceCode)).toBe('slow_down')
    bench.advance(14_000)
    expect(await poll(bench, deviceCode)).toBe('pending')
    const approver = await sessionOf(bench, ada)
    const approve = (more: object = {}) =>
      failureOf(
        bench.write((sql) =>
          approveGrant(sql, hashes, { approver, projectId: bench.projectId, ...more }, bench.act(ada)),
        ),
      )
    expect(await bench.write((sql) => openGrant(sql, hashes, approver, bench.now()))).toMatchObject({
      ...{ client: 'claude_code', device: 'laptop', address: '192.0.2.7', state: 'pending' },
    })
    expect(await approve({ approver: await sessionOf(bench, ada) })).toContain(
      '403 This code was opened in another browser',
    )
    const eve = await sessionOf(bench, await bench.person('eve'))
    expect(await approve({ approver: eve })).toContain('403 This code was opened in')
    // It ended after the page was opened.
    const gone = { personId: ada, sessionId: createId('ses') }
    expect(await approve({ approver: gone })).toContain('401 Your session has ended')
    expect(await approve()).toBe('done')
    expect(await approve()).toContain('400 This code was already approved')
    const polls = await Promise.all([1, 2].map(() => poll(bench, deviceCode)))
    expect(polls.sort()).toEqual(['issued', 'used'])
    expect(await bench.actions()).toEqual(['sign_in.approve', 'sign_in.create'])
    const [listed] = (await listSignIns(bench.database.sql, { page, now: bench.now() })).items
    expect(listed).toMatchObject({ personId: ada, client: 'claude_code', device: 'laptop', projectId: bench.projectId })
  })

  benchTest('a denied, expired or invented code signs nobody in', async (bench) => {
    const ada = await bench.person('ada')
    const [denied, late] = [await start(bench), await start(bench)]
    const session = await sessionOf(bench, ada)
    await bench.write((sql) => denyGrant(sql, denied.hashes, session, bench.act(ada)))
    expect(await poll(bench, denied.deviceCode)).toBe('denied')
    expect(await poll(bench, `${late.deviceCode.slice(0, -1)}!`)).toBe('unknown')
    const open = (hashes: readonly string[]) =>
      failureOf(bench.write((sql) => openGrant(sql, hashes, session, bench.now())))
    expect(await open(userCodes.hashes('BCDFGHJK'))).toStartWith('404 No device waits with this code')
    // The stored hash is no code.
    expect(await open([denied.userCode])).toStartWith('404')
    bench.advance(10 * minute)
    expect(await poll(bench, late.deviceCode)).toBe('expired')
    expect(await open(late.hashes)).toStartWith('404 No device waits with this code')
    bench.advance(10 * minute)
    await start(bench)
    expect(await bench.database.sql`SELECT id FROM device_grants`).toHaveLength(1)
    expect((await listSignIns(bench.database.sql, { page, now: bench.now() })).items).toEqual([])
    expect(await bench.actions()).toEqual(['sign_in.deny'])
  })

  benchTest(
    'what ends the access of a person signs out their devices, and those that were approved and not polled',
    async (bench) => {
      const { write, act, projectId, workspaceId } = bench
      const sql = bench.database.sql
      const memberOf = async (id: PersonId) =>
        (await listMembers(sql, workspaceId, { limit: 50 })).items.find(({ personId }) => personId === id)?.id ?? ''
      const endings: Readonly<Record<string, (id: PersonId, keyId: KeyId) => Promise<unknown>>> = {
        'a new password': (id) => write((sql) => setPassword(sql, id, 'a hash', bench.now())),
        'the end of the key': (_, keyId) => write((sql) => revokeKey(sql, keyId, act())),
        'the end of the role, and a new one': async (id) => {
          const member = await memberOf(id)
          // A role elsewhere keeps the person.
          const elsewhere = await write((sql) => insertWorkspace(sql, { name: `of ${id}`, createdAt: noon }))
          await write((sql) => addMember(sql, id, { role: 'member', workspaceId: elsewhere }, 'invitation', noon))
          await write((sql) => removeMember(sql, member, act(), { mayLeave: true }))
          await write((sql) => addMember(sql, id, { role: 'member', workspaceId }, 'invitation', noon))
        },
        'the identity provider, without a password': (id) =>
          write((sql) => endAccess(sql, { id, email: '', name: '', hasPassword: false }, 'group', act())),
        'the identity provider, with a password': (id) =>
          write((sql) => endAccess(sql, { id, email: '', name: '', hasPassword: true }, 'group', act())),
      }
      for (const [place, [what, end]] of Object.entries(endings).entries()) {
        const [person, other] = [await bench.person(`one${place}`), await bench.person(`two${place}`)]
        const approved = async (id: PersonId) => {
          const { deviceCode, hashes } = await start(bench)
          const choice = { approver: await sessionOf(bench, id), projectId }
          await write((sql) => approveGrant(sql, hashes, choice, act(id)))
          return deviceCode
        }
        const [waiting, ofOther] = [await approved(person), await approved(other)]
        const device = await bench.signIn(person)
        const token = await bench.tokenOf(device)
        expect(messageOf(await bench.ask(token))).toStartWith('accepted')
        await end(person, device.keyId)
        for (const id of [person, device.keyId]) bench.authenticator.invalidate(id)
        expect([what, await poll(bench, waiting)]).toEqual([what, 'denied'])
        expect([what, messageOf(await bench.ask(token))]).toEqual([what, expect.stringMatching(/^401 /)])
        expect([what, await bench.refresh(refreshTokenOf(device))]).toEqual([what, { refused: 'ended' }])
        expect([what, await poll(bench, ofOther)]).toEqual([what, 'issued'])
        // The person may sign in again, if they still have a role.
        expect([what, await poll(bench, await approved(person))]).toEqual([what, 'issued'])
      }
    },
  )

  benchTest('an erased workspace signs in no device that an operator approved before', async (bench) => {
    const root = await bench.person('root', 'operator')
    const { deviceCode, hashes } = await start(bench)
    const choice = { approver: await sessionOf(bench, root), projectId: bench.projectId }
    await bench.write((sql) => approveGrant(sql, hashes, choice, bench.act(root)))
    await bench.write((sql) => eraseWorkspace(sql, bench.workspaceId, bench.act()))
    expect(await poll(bench, deviceCode)).toBe('denied')
  })

  benchTest('approval needs a role that may call models, at the approval and at the sign-in', async (bench) => {
    const [viewer, stranger, ada] = [
      await bench.person('eve', 'viewer'),
      await bench.person('bob', 'none'),
      await bench.person('ada'),
    ]
    const approve = async (personId: PersonId, projectId: string = bench.projectId) => {
      const { deviceCode, hashes } = await start(bench)
      const choice = { approver: await sessionOf(bench, personId), projectId }
      const outcome = await failureOf(bench.write((sql) => approveGrant(sql, hashes, choice, bench.act(personId))))
      return { outcome, deviceCode }
    }
    expect((await approve(viewer)).outcome).toStartWith('403 Your role in this workspace is viewer')
    expect((await approve(stranger)).outcome).toBe(`404 There is no project ${bench.projectId}.`)
    const missing = createId('prj')
    expect((await approve(ada, missing)).outcome).toBe(`404 There is no project ${missing}.`)
    const approved = await approve(ada)
    expect(approved.outcome).toBe('done')
    const members = await listMembers(bench.database.sql, bench.workspaceId, page)
    const member = members.items.find(({ personId }) => personId === ada)
    await bench.write((sql) => changeRole(sql, member?.id ?? '', 'viewer', bench.act(), { mayLeave: true }))
    expect(await poll(bench, approved.deviceCode)).toBe('denied')
    const removed = await approve(await bench.person('zoe'))
    await bench.write((sql) => sql`DELETE FROM members WHERE person_id NOT IN (${viewer}, ${ada})`)
    await bench.write((sql) => sql`DELETE FROM console_sessions WHERE person_id NOT IN (${viewer}, ${ada})`)
    await bench.write((sql) => sql`DELETE FROM people WHERE email = 'zoe@example.com'`)
    expect(await poll(bench, removed.deviceCode)).toBe('unknown')
  })

  benchTest('no code and no token is in the database', async (bench) => {
    const { deviceCode, userCode } = await start(bench)
    const renewal = await bench.signIn(await bench.person('ada'))
    const rows = [
      ...(await bench.database.sql`SELECT * FROM device_grants`),
      ...(await bench.database.sql`SELECT * FROM sign_ins`),
    ]
    const stored = JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    for (const secret of [deviceCode, deviceCode.slice(6), userCode, renewal.secret])
      expect(stored).not.toContain(secret)
  })
})
