import { describe, expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { Failure } from '../kernel/failure.ts'
import { createSessions } from './session.ts'

const hour = 3600

function setUp(publicUrl?: string) {
  const clock = createJumpClock()
  const token = { text: 'the management token' }
  const sessions = createSessions({
    clock,
    adminToken: () => ({ fingerprint: `of ${token.text}`, matches: (text) => text === token.text }),
    publicUrl: () => publicUrl,
  })
  return { clock, token, sessions }
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

describe('a one-time link', () => {
  test('opens a session once, and never again', () => {
    const { sessions } = setUp()
    const link = sessions.createLink()
    const cookie = cookieOf(sessions.openByLink(request(), link))
    expect(sessions.sessionOf(request({ cookie }))).toEqual({ name: 'console session' })
    expect(sessions.openByLink(request(), link)).toMatchObject({ code: 'UNAUTHORIZED' })
  })

  test('is dead after fifteen minutes', () => {
    const { clock, sessions } = setUp()
    const [early, late] = [sessions.createLink(), sessions.createLink()]
    clock.jump(15 * 60 - 1)
    expect(typeof sessions.openByLink(request(), early)).toBe('string')
    clock.jump(1)
    expect(sessions.openByLink(request(), late)).toMatchObject({ code: 'UNAUTHORIZED' })
  })

  test('is dead when the management token has changed', () => {
    const { token, sessions } = setUp()
    const link = sessions.createLink()
    token.text = 'another'
    expect(sessions.openByLink(request(), link)).toBeInstanceOf(Failure)
  })
})

describe('a session', () => {
  test('is opened by the management token and by no other', () => {
    const { token, sessions } = setUp()
    expect(sessions.openByToken(request(), 'a guess')).toMatchObject({ code: 'UNAUTHORIZED' })
    const cookie = cookieOf(sessions.openByToken(request(), token.text))
    expect(sessions.sessionOf(request({ cookie }))).toEqual({ name: 'console session' })
  })

  test('ends twelve hours after it was last used', () => {
    const { clock, token, sessions } = setUp()
    const cookie = cookieOf(sessions.openByToken(request(), token.text))
    clock.jump(12 * hour - 1)
    expect(sessions.sessionOf(request({ cookie }))).toBeDefined()
    clock.jump(12 * hour)
    expect(sessions.sessionOf(request({ cookie }))).toBeUndefined()
  })

  test('ends after seven days, however much it is used', () => {
    const { clock, token, sessions } = setUp()
    const cookie = cookieOf(sessions.openByToken(request(), token.text))
    for (let hours = 0; hours < 7 * 24 - 6; hours += 6) {
      clock.jump(6 * hour)
      expect(sessions.sessionOf(request({ cookie }))).toBeDefined()
    }
    clock.jump(6 * hour)
    expect(sessions.sessionOf(request({ cookie }))).toBeUndefined()
  })

  test('ends when the management token changes, and stays ended when it changes back', () => {
    const { token, sessions } = setUp()
    const cookie = cookieOf(sessions.openByToken(request(), token.text))
    token.text = 'another'
    expect(sessions.sessionOf(request({ cookie }))).toBeUndefined()
    token.text = 'the management token'
    expect(sessions.sessionOf(request({ cookie }))).toBeUndefined()
  })

  test('ends when its browser signs in anew or signs out', () => {
    const { token, sessions } = setUp()
    const first = cookieOf(sessions.openByToken(request(), token.text))
    const second = cookieOf(sessions.openByToken(request({ cookie: first }), token.text))
    expect(second).not.toBe(first)
    expect(sessions.sessionOf(request({ cookie: first }))).toBeUndefined()
    expect(sessions.end(request({ cookie: second }))).toContain('Max-Age=0')
    expect(sessions.sessionOf(request({ cookie: second }))).toBeUndefined()
  })
})

describe('the cookie', () => {
  test('is closed to scripts and to other sites', () => {
    const { token, sessions } = setUp()
    const line = sessions.openByToken(request(), token.text)
    expect(line).toMatch(/^tollgate-8080=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/)
  })

  test('is bound to the host and to encryption behind https', () => {
    const pattern = /^__Host-tollgate=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure$/
    const { token, sessions } = setUp('https://gate.example')
    const stated = request({ headers: { host: 'gate.example' } })
    expect(sessions.openByToken(stated, token.text)).toMatch(pattern)
    const proxied = request({ headers: { host: 'other.example', 'x-forwarded-proto': 'https' } })
    expect(sessions.openByToken(proxied, token.text)).toMatch(pattern)
  })

  test('of a session cannot be made from what the gateway keeps of it', () => {
    const { token, sessions } = setUp()
    const cookie = cookieOf(sessions.openByToken(request(), token.text))
    const [name, secret = ''] = cookie.split('=')
    const kept = new Bun.CryptoHasher('sha256').update(secret).digest('base64')
    expect(sessions.sessionOf(request({ cookie: `${name}=${kept}` }))).toBeUndefined()
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
    test(`${name} is ${code === undefined ? 'taken' : `refused as ${code}`}`, () => {
      const { token, sessions } = setUp()
      const cookie = cookieOf(sessions.openByToken(request(), token.text))
      const found = sessions.sessionOf(request({ method: 'POST', cookie, headers }))
      if (code === undefined) expect(found).toEqual({ name: 'console session' })
      else expect(found).toMatchObject({ code })
    })
  }

  test('of somebody without one is nobody’s, and not refused here', () => {
    const { sessions } = setUp()
    expect(sessions.sessionOf(request({ method: 'POST', headers: json }))).toBeUndefined()
  })
})

describe('signing out everywhere', () => {
  test('ends every session and every link that nobody has used, and says how many', () => {
    const { sessions } = setUp()
    const [here, there] = [1, 2].map(() => cookieOf(sessions.openByLink(request(), sessions.createLink())))
    const unused = sessions.createLink()
    const { cookie, ended } = sessions.endAll(request({ cookie: here ?? '' }))
    expect(ended).toBe(2)
    expect(cookie).toContain('Max-Age=0')
    for (const old of [here, there]) expect(sessions.sessionOf(request({ cookie: old ?? '' }))).toBeUndefined()
    expect(sessions.openByLink(request(), unused)).toBeInstanceOf(Failure)
    expect(typeof sessions.openByToken(request(), 'the management token')).toBe('string')
  })

  test('as another replica wants it ends what was there at that moment, and nothing that came later', () => {
    const { sessions, clock } = setUp()
    const old = cookieOf(sessions.openByLink(request(), sessions.createLink()))
    const oldLink = sessions.createLink()
    const moment = clock.now()
    clock.jump(1)
    const young = cookieOf(sessions.openByLink(request(), sessions.createLink()))
    const youngLink = sessions.createLink()
    sessions.endUntil(moment)
    expect(sessions.sessionOf(request({ cookie: old }))).toBeUndefined()
    expect(sessions.sessionOf(request({ cookie: young }))).toEqual({ name: 'console session' })
    expect(sessions.openByLink(request(), oldLink)).toBeInstanceOf(Failure)
    expect(typeof sessions.openByLink(request(), youngLink)).toBe('string')
  })
})
