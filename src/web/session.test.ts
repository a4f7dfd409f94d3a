import { describe, expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import { received } from '../../test/parts/http.ts'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import type { Database } from '../store/database.ts'
import { createConsoleSessions } from '../tenancy/console-sessions.ts'
import { principalOfPerson } from '../tenancy/principal.ts'
import { createSessions, readVisit, type VisitClues } from './session.ts'

const hour = 3600

interface Token {
  text: string
}

/** As one process has them. */
function sessionsOn(database: Database, clock: Clock, token: Token, clues: Partial<VisitClues> = {}) {
  return createSessions({
    clock,
    rows: createConsoleSessions(database),
    adminToken: () => ({ fingerprint: `of ${token.text}`, matches: (text) => text === token.text }),
    visitOf: (request) => readVisit(request, { publicUrl: undefined, forwardedProto: undefined, ...clues }),
    principalOf: (personId) => principalOfPerson(database.sql, personId),
  })
}

async function setUp(engine: TestEngine, clues: Partial<VisitClues> = {}) {
  const store = await engine.openStore()
  const clock = createJumpClock()
  const token: Token = { text: 'the management token' }
  return { ...store, clock, token, sessions: sessionsOn(store.database, clock, token, clues) }
}

interface Asked {
  readonly method?: string
  readonly cookie?: string
  readonly headers?: Record<string, string>
}

function request({ method = 'GET', cookie, headers = {} }: Asked = {}): ClientRequest {
  const all = { host: '127.0.0.1:8080', ...(cookie !== undefined && { cookie }), ...headers }
  return received(new Request('http://127.0.0.1:8080/api/keys', { method, headers: all }))
}

/** The Cookie header that the browser sends back for a Set-Cookie line. */
function cookieOf(line: string | Failure): string {
  if (line instanceof Failure) throw new Error(line.message)
  return line.slice(0, line.indexOf(';'))
}

forEachEngine((engine) => {
  const sessionTest = (name: string, run: (world: Awaited<ReturnType<typeof setUp>>) => Promise<void>) =>
    test(name, async () => {
      await using world = await setUp(engine)
      await run(world)
    })

  describe('a one-time link', () => {
    sessionTest('opens a session only once', async ({ sessions }) => {
      const link = await sessions.createLink()
      const cookie = cookieOf(await sessions.openByLink(request(), link))
      expect(await sessions.sessionOf(request({ cookie }))).toMatchObject({ name: 'console session', isOperator: true })
      expect(await sessions.openByLink(request(), link)).toMatchObject({ code: 'UNAUTHORIZED' })
    })

    sessionTest('opens one session when it is used several times at once', async ({ sessions }) => {
      const link = await sessions.createLink()
      const opened = await Promise.all([1, 2, 3].map(() => sessions.openByLink(request(), link)))
      expect(opened.filter((line) => typeof line === 'string')).toHaveLength(1)
    })

    sessionTest('expires after fifteen minutes', async ({ clock, sessions }) => {
      const [early, late] = [await sessions.createLink(), await sessions.createLink()]
      clock.jump(15 * 60 - 1)
      expect(typeof (await sessions.openByLink(request(), early))).toBe('string')
      clock.jump(1)
      expect(await sessions.openByLink(request(), late)).toMatchObject({ code: 'UNAUTHORIZED' })
    })

    sessionTest('is void after the management token has changed', async ({ token, sessions }) => {
      const link = await sessions.createLink()
      token.text = 'another'
      expect(await sessions.openByLink(request(), link)).toBeInstanceOf(Failure)
    })
  })

  describe('a session', () => {
    sessionTest('is opened by the management token and by no other', async ({ token, sessions }) => {
      expect(await sessions.openByToken(request(), 'a guess')).toMatchObject({ code: 'UNAUTHORIZED' })
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      expect(await sessions.sessionOf(request({ cookie }))).toMatchObject({ name: 'console session', isOperator: true })
    })

    sessionTest('ends twelve hours after it was last used', async ({ clock, token, sessions }) => {
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      clock.jump(12 * hour - 1)
      expect(await sessions.sessionOf(request({ cookie }))).toBeDefined()
      clock.jump(12 * hour)
      expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined()
    })

    sessionTest('ends after seven days, however much it is used', async ({ clock, token, sessions }) => {
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      for (let hours = 0; hours < 7 * 24 - 6; hours += 6) {
        clock.jump(6 * hour)
        expect(await sessions.sessionOf(request({ cookie }))).toBeDefined()
      }
      clock.jump(6 * hour)
      expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined()
    })

    sessionTest(
      'ends when the management token changes, and stays ended when it changes back',
      async ({ token, sessions }) => {
        const cookie = cookieOf(await sessions.openByToken(request(), token.text))
        token.text = 'another'
        expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined()
        token.text = 'the management token'
        expect(await sessions.sessionOf(request({ cookie }))).toBeUndefined()
      },
    )

    sessionTest('outlives the process that opened it', async ({ database, clock, token, sessions }) => {
      const cookie = cookieOf(await sessions.openByToken(request(), token.text))
      const next = sessionsOn(database, clock, token)
      expect(await next.sessionOf(request({ cookie }))).toMatchObject({ name: 'console session', isOperator: true })
    })

    sessionTest('ends when it is the oldest of more than a thousand', async ({ database, clock, token, sessions }) => {
      const first = cookieOf(await sessions.openByToken(request(), token.text))
      clock.jump(1)
      const second = cookieOf(await sessions.openByToken(request(), token.text))
      clock.jump(1)
      const at = BigInt(clock.now())
      const others = Array.from({ length: 998 }, (_, n) => ({
        hash: `${n}`,
        id: `ses_${n}`,
        client: '',
        opened_at: at,
        used_at: at,
        fingerprint: '',
      }))
      await database.transaction((sql) => sql`INSERT INTO console_sessions ${sql(others)}`)
      expect(await sessions.sessionOf(request({ cookie: first }))).toBeDefined()
      await sessions.openByToken(request(), token.text)
      expect(await sessions.sessionOf(request({ cookie: first }))).toBeUndefined()
      expect(await sessions.sessionOf(request({ cookie: second }))).toBeDefined()
    })

    sessionTest('ends when its browser signs in again or signs out', async ({ token, sessions }) => {
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
    sessionTest('is hidden from scripts and other sites', async ({ token, sessions }) => {
      const line = await sessions.openByToken(request(), token.text)
      expect(line).toMatch(/^tollgate-8080=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/)
    })

    test('is bound to the host and to encryption behind https', async () => {
      const pattern = /^__Host-tollgate=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure$/
      await using stated = await setUp(engine, { publicUrl: 'https://gate.example' })
      const atHost = request({ headers: { host: 'gate.example' } })
      expect(await stated.sessions.openByToken(atHost, stated.token.text)).toMatch(pattern)
      await using proxied = await setUp(engine, { forwardedProto: 'https' })
      expect(await proxied.sessions.openByToken(request(), proxied.token.text)).toMatch(pattern)
    })

    sessionTest('cannot be made from the stored hash', async ({ token, sessions }) => {
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
      ['from another origin of the same site', { ...json, 'sec-fetch-site': 'same-site' }, 'FORBIDDEN'],
      ['from another site', { ...json, 'sec-fetch-site': 'cross-site', origin: 'http://127.0.0.1:8080' }, 'FORBIDDEN'],
      ['from another port', { ...json, origin: 'http://127.0.0.1:9090' }, 'FORBIDDEN'],
      ['from a page without an origin', { ...json, origin: 'null' }, 'FORBIDDEN'],
      ['without an origin', json, 'FORBIDDEN'],
      [
        'as plain text, which a form can send',
        { 'content-type': 'text/plain', 'sec-fetch-site': 'same-origin' },
        'UNSUPPORTED_MEDIA_TYPE',
      ],
      [
        'with a body of unknown type',
        { 'content-length': '2', 'sec-fetch-site': 'same-origin' },
        'UNSUPPORTED_MEDIA_TYPE',
      ],
    ]
    for (const [name, headers, code] of cases) {
      sessionTest(
        `${name} is ${code === undefined ? 'accepted' : `refused as ${code}`}`,
        async ({ token, sessions }) => {
          const cookie = cookieOf(await sessions.openByToken(request(), token.text))
          const found = await sessions.sessionOf(request({ method: 'POST', cookie, headers }))
          if (code === undefined) expect(found).toMatchObject({ name: 'console session', isOperator: true })
          else expect(found).toMatchObject({ code })
        },
      )
    }

    sessionTest('without a session is anonymous and not refused here', async ({ sessions }) => {
      expect(await sessions.sessionOf(request({ method: 'POST', headers: json }))).toBeUndefined()
    })
  })

  describe('signing out everywhere', () => {
    sessionTest(
      'ends every session and every unused link, and returns the number of sessions',
      async ({ sessions }) => {
        const signIn = async () => cookieOf(await sessions.openByLink(request(), await sessions.createLink()))
        const [here, there] = [await signIn(), await signIn()]
        const unused = await sessions.createLink()
        const { cookie, ended } = await sessions.endAll(request({ cookie: here }))
        expect(ended).toBe(2)
        expect(cookie).toContain('Max-Age=0')
        for (const old of [here, there]) expect(await sessions.sessionOf(request({ cookie: old }))).toBeUndefined()
        expect(await sessions.openByLink(request(), unused)).toBeInstanceOf(Failure)
        expect(typeof (await sessions.openByToken(request(), 'the management token'))).toBe('string')
      },
    )
  })
})
