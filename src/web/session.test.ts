import { describe, expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { Database } from '../store/database.ts'
import { createConsoleSessions } from '../tenancy/console-sessions.ts'
import { createSessions, readVisit, type VisitClues } from './session.ts'

const hour = 3600

interface Token {
  text: string
}

/** As one process has them. */
function sessionsOn(
  database: Database,
  clock: Clock,
  token: Token,
  { publicUrl, forwardedProto }: Partial<VisitClues> = {},
) {
  const sessions = createSessions({
    clock,
    rows: createConsoleSessions(database),
    adminToken: () => ({ fingerprint: `of ${token.text}`, matches: (text) => text === token.text }),
    visitOf: (request) => readVisit(request, { publicUrl, forwardedProto }),
  })
  return { sessions }
}

async function setUp(engine: TestEngine, clues: Partial<VisitClues> = {}) {
  const store = await engine.openStore()
  const clock = createJumpClock()
  const token: Token = { text: 'the management token' }
  return { ...store, clock, token, ...sessionsOn(store.database, clock, token, clues) }
}

interface Asked {
  readonly method?: string
  readonly cookie?: string
  readonly headers?: Record<string, string>
}

function request({ method = 'GET', cookie, headers = {} }: Asked = {}): Request {
  const all = { host: '127.0.0.1:8080', ...(cookie !== undefined && { cookie }), ...headers }
  return new Request('http://127.0.0.1:8080/api/keys', { method, headers: all })
}

/** What the browser sends back of a Set-Cookie line. */
function cookieOf(line: string | Failure): string {
  if (line instanceof Failure) throw new Error(line.message)
  return line.slice(0, line.indexOf(';'))
}

forEachEngine((engine) => {
  describe('a one-time link', () => {
    test('opens a session once, and never again', async () => {
      await using desk = await setUp(engine)
      const { sessions } = desk
      const link = await sessions.createLink()
      const cookie = cookieOf(await sessions.openByLink(request(), link))
      expect(await sessions.sessionOf(request({ cookie }))).toEqual({ name: 'console session' })
      expect(await sessions.openByLink(request(), link)).toMatchObject({ code: 'UNAUTHORIZED' })
    })

    test('opens one session for two who use it at once', async () => {
      await using desk = await setUp(engine)
      const { sessions } = desk
      const link = await sessions.createLink()
      const opened = await Promise.all([1, 2, 3].map(() => sessions.openByLink(request(), link)))
      expect(opened.filter((line) => typeof line === 'string')).toHaveLength(1)
    })

    test('is dead after fifteen minutes', async () => {
      await using desk = await setUp(engine)
      const { clock, sessions } = desk
      const [early, late] = [await sessions.createLink(), await sessions.createLink()]
      clock.jump(15 * 60 - 1)
      expect(typeof (await sessions.openByLink(request(), early))).toBe('string')
      clock.jump(1)
      expect(await sessions.openByLink(request(), late)).toMatchObject({ code: 'UNAUTHORIZED' })
    })

    test('is dead when the management token has changed', async () => {
      await using desk = await setUp(engine)
      const { token, sessions } = desk
      const link = await sessions.createLink()
      token.text = 'another'
      expect(await sessions.openByLink(request(), link)).toBeInstanceOf(Failure)
    })
  })

  describe('a session', () => {
    test('is opened by the management token and by no other', async () => {
      await using desk = await setUp(engine)
      const { token, sessions } = desk
      expect(await sessions.openByToken(request(), 'a guess')).toMatchObject({ code: 'UNAUTHORIZED' })
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      expect(await sessions.sessionOf(request({ cookie }))).toEqual({ name: 'console session' })
    })

    test('ends twelve hours after it was last used', async () => {
      await using desk = await setUp(engine)
      const { clock, token, sessions } = desk
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      clock.jump(12 * hour - 1)
      expect(await sessions.sessionOf(request({ cookie }))).toBeDefined()
      clock.jump(12 * hour)
      expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined()
    })

    test('ends after seven days, however much it is used', async () => {
      await using desk = await setUp(engine)
      const { clock, token, sessions } = desk
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      for (let hours = 0; hours < 7 * 24 - 6; hours += 6) {
        clock.jump(6 * hour)
        expect(await sessions.sessionOf(request({ cookie }))).toBeDefined()
      }
      clock.jump(6 * hour)
      expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined()
    })

    test('ends when the management token changes, and stays ended when it changes back', async () => {
      await using desk = await setUp(engine)
      const { token, sessions } = desk
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      token.text = 'another'
      expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined()
      token.text = 'the management token'
      expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined()
    })

    test('outlives the process that opened it', async () => {
      await using desk = await setUp(engine)
      const cookie = cookieOf(await desk.sessions.openByToken(request(), desk.token.text))
      const { sessions: next } = sessionsOn(desk.database, desk.clock, desk.token)
      expect(await next.sessionOf(request({ cookie }))).toEqual({ name: 'console session' })
    })

    test('of a thousand others makes the oldest go', async () => {
      await using desk = await setUp(engine)
      const { clock, token, sessions } = desk
      const first = cookieOf(await sessions.openByToken(request(), token.text))
      clock.jump(1)
      const second = cookieOf(await sessions.openByToken(request(), token.text))
      clock.jump(1)
      const at = BigInt(clock.now())
      const others = Array.from({ length: 998 }, (_, n) => ({
        hash: `${n}`,
        opened_at: at,
        used_at: at,
        fingerprint: '',
      }))
      await desk.database.transaction((sql) => sql`INSERT INTO console_sessions ${sql(others)}`)
      expect(await sessions.sessionOf(request({ cookie: first }))).toBeDefined()
      await sessions.openByToken(request(), token.text)
      expect(await sessions.sessionOf(request({ cookie: first }))).toBeUndefined()
      expect(await sessions.sessionOf(request({ cookie: second }))).toBeDefined()
    })

    test('ends when its browser signs in anew or signs out', async () => {
      await using desk = await setUp(engine)
      const { token, sessions } = desk
      const first = cookieOf(await sessions.openByToken(request(), token.text))
      const second = cookieOf(await sessions.openByToken(request({ cookie: first }), token.text))
      expect(second).not.toBe(first)
      expect(await sessions.sessionOf(request({ cookie: first }))).toBeUndefined()
      expect(await sessions.end(request({ cookie: second }))).toEqual({
        cookie: expect.stringContaining('Max-Age=0'),
        ended: 1,
      })
      expect(await sessions.end(request({ cookie: second }))).toMatchObject({ ended: 0 })
      expect(await sessions.end(request({}))).toMatchObject({ ended: 0 })
      expect(await sessions.sessionOf(request({ cookie: second }))).toBeUndefined()
    })
  })

  describe('the cookie', () => {
    test('is closed to scripts and to other sites', async () => {
      await using desk = await setUp(engine)
      const { token, sessions } = desk
      const line = await sessions.openByToken(request(), token.text)
      expect(line).toMatch(/^tollgate-8080=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/)
    })

    test('is bound to the host and to encryption behind https', async () => {
      const pattern = /^__Host-tollgate=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure$/
      await using desk = await setUp(engine, { publicUrl: 'https://gate.example' })
      const stated = request({ headers: { host: 'gate.example' } })
      expect(await desk.sessions.openByToken(stated, desk.token.text)).toMatch(pattern)
      await using proxied = await setUp(engine, { forwardedProto: 'https' })
      expect(await proxied.sessions.openByToken(request(), proxied.token.text)).toMatch(pattern)
    })

    test('of a session cannot be made from what the gateway keeps of it', async () => {
      await using desk = await setUp(engine)
      const { token, sessions } = desk
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      const [name, secret = ''] = cookie.split('=')
      const kept = new Bun.CryptoHasher('sha256').update(secret).digest('base64')
      expect(await sessions.sessionOf(request({ cookie: `${name}=${kept}` }))).toBeUndefined()
    })
  })

  describe('a change through a session', () => {
    const json = { 'content-type': 'application/json' }
    const cases: readonly (readonly [string, Record<string, string>, string | undefined])[] = [
      ['with a same-origin Sec-Fetch-Site', { ...json, 'sec-fetch-site': 'same-origin' }, undefined],
      ['with our own Origin', { ...json, origin: 'http://127.0.0.1:8080' }, undefined],
      ['from a neighbour on the same site', { ...json, 'sec-fetch-site': 'same-site' }, 'FORBIDDEN'],
      ['from another site', { ...json, 'sec-fetch-site': 'cross-site', origin: 'http://127.0.0.1:8080' }, 'FORBIDDEN'],
      ['from another port', { ...json, origin: 'http://127.0.0.1:9090' }, 'FORBIDDEN'],
      ['from a page without an origin', { ...json, origin: 'null' }, 'FORBIDDEN'],
      ['that does not say where it comes from', json, 'FORBIDDEN'],
      [
        'that a form could have sent',
        { 'content-type': 'text/plain', 'sec-fetch-site': 'same-origin' },
        'UNSUPPORTED_MEDIA_TYPE',
      ],
      [
        'that a body without a type came with',
        { 'content-length': '2', 'sec-fetch-site': 'same-origin' },
        'UNSUPPORTED_MEDIA_TYPE',
      ],
    ]
    for (const [name, headers, code] of cases) {
      test(`${name} is ${code === undefined ? 'taken' : `refused as ${code}`}`, async () => {
        await using desk = await setUp(engine)
        const { token, sessions } = desk
        const cookie = cookieOf(await sessions.openByToken(request(), token.text))
        const found = await sessions.sessionOf(request({ method: 'POST', cookie, headers }))
        if (code === undefined) expect(found).toEqual({ name: 'console session' })
        else expect(found).toMatchObject({ code })
      })
    }

    test('of somebody without one is nobody’s, and not refused here', async () => {
      await using desk = await setUp(engine)
      const { sessions } = desk
      expect(await sessions.sessionOf(request({ method: 'POST', headers: json }))).toBeUndefined()
    })
  })

  describe('signing out everywhere', () => {
    test('ends every session and every link that nobody has used, and says how many', async () => {
      await using desk = await setUp(engine)
      const { sessions } = desk
      const signIn = async () => cookieOf(await sessions.openByLink(request(), await sessions.createLink()))
      const [here, there] = [await signIn(), await signIn()]
      const unused = await sessions.createLink()
      const { cookie, ended } = await sessions.endAll(request({ cookie: here }))
      expect(ended).toBe(2)
      expect(cookie).toContain('Max-Age=0')
      for (const old of [here, there]) expect(await sessions.sessionOf(request({ cookie: old }))).toBeUndefined()
      expect(await sessions.openByLink(request(), unused)).toBeInstanceOf(Failure)
      expect(typeof (await sessions.openByToken(request(), 'the management token'))).toBe('string')
    })
  })
})
