import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ranOf, runHere } from '../../test/parts/command-line.ts'
import { createThrowAwayFolder } from '../../test/parts/engines.ts'
import { gatewayCommand } from '../../test/parts/program.ts'
import { startSignInServer } from '../../test/parts/sign-in-server.ts'
import { systemClock } from '../kernel/clock.ts'
import { isExposed, readGatewayUrl, untilApproved } from './sign-in.ts'
import { openSignIns } from './stored-sign-ins.ts'

/** A home folder, and commands run in it: in this process, or as the program. */
function openHome() {
  const folder = createThrowAwayFolder()
  const env = { HOME: folder.path, XDG_CONFIG_HOME: join(folder.path, 'config') }
  const entryOf = (url: string) =>
    join(env.XDG_CONFIG_HOME, 'tollgate/sign-ins', `http-${new URL(url).host.replace(':', '_')}.json`)
  return {
    path: folder.path,
    env,
    entryOf,
    run: (...args: string[]) => runHere(args, { env, cwd: folder.path }),
    spawn: (...args: string[]) =>
      Bun.spawn([...gatewayCommand(), ...args], { cwd: folder.path, env, stdio: ['ignore', 'pipe', 'pipe'] }),
    /** Makes the stored access token expire so soon that it is refreshed at the next use. */
    age(url: string, left: number) {
      const file = entryOf(url)
      const entry = JSON.parse(readFileSync(file, 'utf8'))
      const at = new Date(Date.now() + left).toISOString()
      writeFileSync(file, JSON.stringify({ ...entry, access_expires_at: at }))
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

test('login shows address and code, waits for the approval, and keeps the tokens for this user only', async () => {
  await using server = startSignInServer()
  using home = openHome()
  server.pollErrors.push('authorization_pending', 'authorization_pending')
  const { exit, out, err } = await home.run('login', server.url)
  expect([exit, out]).toEqual([0, `Signed in to ${server.url} as ada@example.com.\n`])
  expect(err).toContain(`\n  ${server.url}/device?code=BCDF-GHJK\n`)
  expect(err).toContain('\n  BCDF-GHJK\n')
  expect(err).toContain('for up to 10 minutes')
  expect(server.forms.map(([path]) => path)).toEqual(['/oauth/device_authorization', ...Array(3).fill('/oauth/token')])
  expect(server.forms[1]?.[1]).toEqual({
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: 'device-1',
  })
  expect(out + err).not.toMatch(/access-|refresh-|device-1/)
  expect(statSync(home.entryOf(server.url)).mode & 0o777).toBe(0o600)
  expect(statSync(join(home.env.XDG_CONFIG_HOME, 'tollgate/sign-ins')).mode & 0o777).toBe(0o700)

  const token = await home.run('token')
  expect(token).toEqual({ exit: 0, out: 'access-1\n', err: '' })
  const who = await home.run('whoami')
  for (const fact of ['ada@example.com', 'acme', 'web', server.url]) expect(who.out).toContain(fact)
  expect(who.out).not.toContain('access-1')
})

test('a second login replaces the first one and revokes it', async () => {
  await using server = startSignInServer()
  using home = openHome()
  await home.run('login', server.url)
  expect((await home.run('login', server.url)).exit).toBe(0)
  expect([...server.revoked]).toEqual(['access-1', 'refresh-1'])
  expect((await home.run('token')).out).toBe('access-2\n')
})

for (const [error, words] of [
  ['access_denied', 'the sign-in was denied in the browser.'],
  ['expired_token', 'nobody approved the sign-in in time.'],
  ['invalid_grant', 'the sign-in failed: It is invalid_grant.'],
] as const) {
  test(`login ends with one sentence at ${error}, and stores nothing`, async () => {
    await using server = startSignInServer()
    using home = openHome()
    server.pollErrors.push('authorization_pending', error)
    const { exit, out, err } = await home.run('login', server.url)
    expect([exit, out, existsSync(home.entryOf(server.url))]).toEqual([1, '', false])
    expect(err).toEndWith(`tollgate: ${words}\nTry: tollgate login again\n`)
  })
}

test('polls at the interval, five seconds slower after each slow_down, through network trouble, until the code expires', async () => {
  const answers = [
    { error: 'authorization_pending', description: undefined },
    { error: 'slow_down', description: undefined },
    { trouble: 'it does not answer' },
    { error: 'slow_down', description: undefined },
  ]
  const waits: number[] = []
  let now = 0
  const grant = { device_code: 'd', user_code: 'u', verification_uri: 'v', expires_in: 60, interval: 5 }
  const result = untilApproved(grant, {
    ask: async () => answers.shift() ?? { error: 'authorization_pending', description: undefined },
    wait: async (milliseconds) => {
      waits.push(milliseconds)
      now += milliseconds
    },
    now: () => now,
  })
  await expect(result).rejects.toThrow('nobody approved the sign-in in time.')
  // 5 + 5 + 10 + 10 + 15 = 45 s; the next one ends at 60 s.
  expect(waits).toEqual([5000, 5000, 10_000, 10_000, 15_000, 15_000])
})

test('login refuses an unencrypted address of another machine before it sends anything', async () => {
  using home = openHome()
  const { exit, err } = await home.run('login', 'http://gate.example.com')
  expect([exit, err]).toEqual([
    2,
    'tollgate: http://gate.example.com is not encrypted: everyone on the way could read your tokens.\n' +
      'Try: tollgate login https://gate.example.com, or --allow-http in a network you trust\n',
  ])
  expect(['http://127.0.0.1:1', 'http://localhost', 'http://[::1]:2', 'https://a.b'].map(isExposed)).toEqual(
    Array(4).fill(false),
  )
  expect(['http://127.0.0.1.evil.example', 'http://10.0.0.1'].map(isExposed)).toEqual([true, true])
  expect(['gate.example.com/', 'https://gate.example.com/v1', 'HTTPS://Gate.example.com'].map(readGatewayUrl)).toEqual(
    Array(3).fill('https://gate.example.com'),
  )
})

test('login says so where nothing offers sign-in', async () => {
  await using server = startSignInServer()
  using home = openHome()
  const { exit, err } = await home.run('login', `${server.url}/elsewhere`)
  expect([exit, err]).toEqual([1, expect.stringContaining('it answered 404, but not as a Tollgate does')])
  await server[Symbol.asyncDispose]()
  expect((await home.run('login', server.url)).err).toContain(
    `you cannot sign in to ${server.url}: it does not answer.`,
  )
})

test('token refreshes when less than five minutes are left, and not before', async () => {
  await using server = startSignInServer()
  using home = openHome()
  await home.run('login', server.url)
  home.age(server.url, 301_000 + 60_000)
  expect((await home.run('token', server.url)).out).toBe('access-1\n')
  home.age(server.url, 299_000)
  expect((await home.run('token', server.url)).out).toBe('access-2\n')
  expect((await home.run('token', server.url)).out).toBe('access-2\n')
  expect(server.forms.filter(([, form]) => form.grant_type === 'refresh_token')).toEqual([
    ['/oauth/token', { grant_type: 'refresh_token', refresh_token: 'refresh-1' }],
  ])
})

test('token says in one line that you are signed out: never signed in, signed out, ended at the gateway', async () => {
  await using server = startSignInServer()
  using home = openHome()
  const line = (why: string) => ({
    exit: 1,
    out: '',
    err: `tollgate: ${why} of ${server.url}. Run: tollgate login ${server.url}\n`,
  })
  expect(await home.run('token', server.url)).toEqual(line('you are signed out'))
  await home.run('login', server.url)
  server.tokenFault = () =>
    Response.json({ error: 'invalid_grant', error_description: 'It was revoked.' }, { status: 400 })
  home.age(server.url, 1000)
  expect(await home.run('token', server.url)).toEqual(
    line('your sign-in has expired or was ended (It was revoked); you are signed out'),
  )
  expect(existsSync(home.entryOf(server.url))).toBe(false)
})

test('token prints the old token while it is valid and the gateway fails, and keeps the sign-in after that', async () => {
  await using server = startSignInServer()
  using home = openHome()
  await home.run('login', server.url)
  server.tokenFault = () => new Response('overloaded', { status: 503 })
  home.age(server.url, 60_000)
  expect((await home.run('token', server.url)).out).toBe('access-1\n')
  home.age(server.url, -1000)
  const { exit, out, err } = await home.run('token', server.url)
  expect([exit, out, err.split('\n').length]).toEqual([1, '', 2])
  expect(err).toContain(`${server.url} does not renew it`)
  server.tokenFault = undefined
  expect((await home.run('token', server.url)).out).toBe('access-2\n')
})

test('with several gateways the command has to name one', async () => {
  await using first = startSignInServer()
  await using second = startSignInServer()
  using home = openHome()
  await home.run('login', first.url)
  await home.run('login', second.url)
  const { exit, err } = await home.run('token')
  expect([exit, err]).toEqual([2, expect.stringContaining('say which')])
  expect((await home.run('token', second.url)).exit).toBe(0)
})

test('a refresh waits for one that is running, and takes its result', async () => {
  await using server = startSignInServer()
  using home = openHome()
  await home.run('login', server.url)
  home.age(server.url, 1000)
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const configFolder = home.env.XDG_CONFIG_HOME
  const first = openSignIns({ configFolder, clock: systemClock })
  const waiting = Promise.withResolvers<void>()
  let readings = 0
  const monotonicMs = () => {
    // The third one is the first look at a lock that is taken; without a lock, the request is about to be sent.
    if (++readings === 3) waiting.resolve()
    return systemClock.monotonicMs()
  }
  const second = openSignIns({ configFolder, clock: { ...systemClock, monotonicMs } })
  server.beforeToken = async () => {
    asked.resolve()
    await answered.promise
  }
  const refreshed = first.fresh(server.url)
  await asked.promise
  const adopted = second.fresh(server.url)
  await waiting.promise
  answered.resolve()
  const tokens = await Promise.all([refreshed, adopted])
  expect(tokens.map(({ access_token }) => access_token)).toEqual(['access-2', 'access-2'])
  expect(server.isReused).toBe(false)
})

test('ten processes that need a new token at the same moment send the refresh token once', async () => {
  await using server = startSignInServer()
  using home = openHome()
  await home.run('login', server.url)
  // The old token is still valid for those that a busy machine keeps from waiting for the lock.
  home.age(server.url, 250_000)
  const ran = await Promise.all(Array.from({ length: 10 }, () => ranOf(home.spawn('token', server.url))))
  const printed = expect.stringMatching(/^access-[12]\n$/)
  expect(ran).toEqual(Array(10).fill({ exit: 0, out: printed, err: '' }))
  expect(server.forms.filter(([, form]) => form.grant_type === 'refresh_token')).toHaveLength(1)
  expect((await home.run('token', server.url)).out).toBe('access-2\n')
})

test('a process that is killed in mid-refresh does not keep the others from refreshing', async () => {
  await using server = startSignInServer()
  using home = openHome()
  await home.run('login', server.url)
  home.age(server.url, 1000)
  const asked = Promise.withResolvers<void>()
  server.beforeToken = () => {
    asked.resolve()
    return new Promise(() => {})
  }
  const child = home.spawn('token', server.url)
  await asked.promise
  child.kill('SIGKILL')
  await child.exited
  server.beforeToken = undefined
  expect(await home.run('token', server.url)).toEqual({ exit: 0, out: 'access-2\n', err: '' })
})

test('token takes nothing from the folder in which an agent runs it', async () => {
  await using server = startSignInServer()
  using home = openHome()
  await home.run('login', server.url)
  writeFileSync(join(home.path, '.env'), 'TOLLGATE_URL=https://evil.example\nXDG_CONFIG_HOME=/nowhere\n')
  writeFileSync(join(home.path, 'bunfig.toml'), 'preload = ["./preload.ts"]\n')
  writeFileSync(join(home.path, 'preload.ts'), 'console.log("loaded"); process.exit(7)')
  writeFileSync(join(home.path, 'tollgate.yaml'), 'server: { port: wrong }\n')
  const launcher = join(import.meta.dir, '../../bin/tollgate')
  const { XDG_CONFIG_HOME } = home.env
  const env = { PATH: process.env.PATH ?? '', XDG_CONFIG_HOME }
  const child = Bun.spawn([launcher, 'token'], { cwd: home.path, env, stdio: ['ignore', 'pipe', 'pipe'] })
  expect(await ranOf(child)).toEqual({ exit: 0, out: 'access-1\n', err: '' })
})

test('logout revokes both tokens and deletes them, also when the gateway does not answer', async () => {
  await using server = startSignInServer()
  using home = openHome()
  await home.run('login', server.url)
  const { exit, out, err } = await home.run('logout')
  expect([exit, err, [...server.revoked]]).toEqual([0, '', ['access-1', 'refresh-1']])
  expect(out).toContain(`Signed out of ${server.url}.`)
  expect((await home.run('logout', server.url)).exit).toBe(1)

  await home.run('login', server.url)
  await server[Symbol.asyncDispose]()
  const offline = await home.run('logout')
  expect([offline.exit, offline.err]).toEqual([
    0,
    `${server.url} did not revoke them: it does not answer. To end the sign-in there: ${server.url}/console, Account.\n`,
  ])
  expect(existsSync(home.entryOf(server.url))).toBe(false)
})

test('a damaged file counts as signed out', async () => {
  using home = openHome()
  const url = 'http://127.0.0.1:1'
  mkdirSync(join(home.env.XDG_CONFIG_HOME, 'tollgate/sign-ins'), { recursive: true })
  writeFileSync(home.entryOf(url), '{"gateway": "http://127.0.0.1:1", "access_')
  const store = openSignIns({ configFolder: home.env.XDG_CONFIG_HOME, clock: systemClock })
  expect([store.list(), store.find(url)]).toEqual([[], undefined])
})
