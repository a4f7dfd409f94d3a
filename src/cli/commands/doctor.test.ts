import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runHere } from '../../../test/parts/command-line.ts'
import { createThrowAwayFolder, forEachEngine, type Place } from '../../../test/parts/engines.ts'
import { freePort } from '../../../test/parts/free-port.ts'
import { gatewayCommand } from '../../../test/parts/program.ts'
import type { Config } from '../../config/config.ts'
import { Secret } from '../../kernel/secret.ts'
import { confirmSecret } from '../../tenancy/secrets.ts'
import { checkClock, checkDatabase, checkDataFolder, checkProxy, type Finding } from './doctor.ts'

const folders: string[] = []
const children = new Set<Bun.Subprocess>()
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function createFolder(file?: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-doctor-'))
  folders.push(folder)
  if (file !== undefined) writeFileSync(join(folder, 'tollgate.yaml'), file)
  return folder
}

const environment = (folder: string, env: Record<string, string>) => ({
  HOME: folder,
  TOLLGATE_LOCAL_MODELS: 'off',
  ...env,
})

function startGateway(folder: string) {
  const child = Bun.spawn([...gatewayCommand()], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', ...environment(folder, { TOLLGATE_LOG: 'json' }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  return child
}

const doctor = (folder: string, env: Record<string, string> = {}, args: readonly string[] = []) =>
  runHere(['doctor', ...args], { env: environment(folder, env), cwd: folder })

async function findings(folder: string, env: Record<string, string> = {}) {
  const { exit, out } = await doctor(folder, env, ['--json'])
  const { ok, findings: found } = JSON.parse(out) as { ok: boolean; findings: readonly Finding[] }
  expect(ok).toBe(exit === 0)
  for (const { verdict, advice } of found) expect(advice === undefined).toBe(verdict === 'ok')
  const of = (area: string) => found.filter((finding) => finding.area === area)
  return { exit, of, wrong: found.filter(({ verdict }) => verdict === 'wrong'), out }
}

/** A provider that knows one key, and repeats a wrong one in its error as some do. */
function startProvider() {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const key = request.headers.get('authorization') ?? request.headers.get('x-goog-api-key') ?? ''
      if (pathname.startsWith('/missing')) return new Response('nothing here', { status: 404 })
      if (pathname.startsWith('/poor')) {
        return Response.json({ error: { message: 'no', code: 'insufficient_quota' } }, { status: 429 })
      }
      const isGood = key.includes('good')
      if (pathname.startsWith('/v1beta') && !isGood) {
        const error = {
          code: 400,
          message: 'API key not valid. Please pass a valid API key.',
          status: 'INVALID_ARGUMENT',
        }
        return Response.json({ error }, { status: 400 })
      }
      if (!isGood) return Response.json({ error: { message: `wrong key ${key}` } }, { status: 401 })
      expect(await request.text()).toBe('{}')
      return Response.json({ error: { message: 'you must provide a model parameter' } }, { status: 400 })
    },
  })
}

test('reports no problem before the first start, and creates nothing', async () => {
  const folder = createFolder()
  const { exit, of } = await findings(folder, { TOLLGATE_PORT: String(freePort()) })
  expect(exit).toBe(0)
  expect(of('data folder')).toMatchObject([{ verdict: 'note', advice: expect.stringContaining('tollgate serve') }])
  expect(of('database')).toMatchObject([{ verdict: 'note' }])
  expect(of('port')).toMatchObject([{ verdict: 'note', what: expect.stringContaining('is free') }])
  expect(readFileSync.bind(undefined, join(folder, 'data', 'secret'))).toThrow()
})

test('reports errors of the file by line and field, and still checks the rest', async () => {
  const folder = createFolder(
    'server:\n  prot: 1\nmodels:\n  - { id: acme/m, routes: [{ provider: nobody, model: m }] }\n',
  )
  const { exit, of } = await findings(folder)
  expect(exit).toBe(1)
  const faults = of('configuration').map(({ what }) => what)
  expect(faults[0]).toStartWith('tollgate.yaml:2:3  server.prot  unknown key "prot"; did you mean "port"?')
  expect(faults[1]).toStartWith('tollgate.yaml:4:')
  expect(of('data folder')).toHaveLength(1)
  expect(of('clock')).toHaveLength(1)
})

test('asks each policy about a harmless request', async () => {
  await using endpoint = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => Response.json({ decision: url.endsWith('/allow') ? 'allow' : 'block' }),
  })
  const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`
  const policy = (id: string, url: string) => `  - { id: ${id}, url: "${url}", secret: ${secret} }\n`
  const at = `http://127.0.0.1:${endpoint.port}`
  const entries = [policy('good', `${at}/allow`), policy('strict', `${at}/`), policy('down', 'http://127.0.0.1:1/')]
  const { of, out } = await findings(createFolder(`policies:\n${entries.join('')}`), {
    TOLLGATE_PORT: String(freePort()),
  })
  expect(of('policy').map(({ what, verdict }) => `${verdict}: ${what}`)).toEqual([
    'ok: good (tollgate.yaml:2, enforce, fails closed) answers',
    'note: strict (tollgate.yaml:3, enforce, fails closed) blocks even a harmless request',
    'wrong: down (tollgate.yaml:4, enforce, fails closed) gives no verdict: its connection failed',
  ])
  expect(out).not.toContain(secret)
})

test('tests each provider key, finds wrong ones and shows none', async () => {
  await using provider = startProvider()
  const at = (id: string, path: string, key: string, dialect = 'openai-chat') =>
    `  - { id: ${id}, dialect: ${dialect}, base_url: "http://127.0.0.1:${provider.port}${path}", api_key: ${key} }\n`
  const folder = createFolder(
    `providers:\n${[
      at('right', '/v1', 'canary-good'),
      at('wrong', '/v1', 'canary-bad'),
      at('wrong-gemini', '/v1beta', 'canary-bad', 'gemini'),
      at('right-gemini', '/v1beta', 'canary-good', 'gemini'),
      at('lost', '/missing', 'canary-good'),
      at('poor', '/poor', 'canary-good'),
      at('by-variable', '/v1', JSON.stringify('$' + '{A_KEY}')),
      '  - { id: closed, dialect: anthropic-messages, base_url: "http://127.0.0.1:1", api_key: canary-good }\n',
    ].join('')}`,
  )
  const env = { A_KEY: 'canary-good', TOLLGATE_PORT: String(freePort()) }
  const { exit, of, out } = await findings(folder, env)
  expect(exit).toBe(1)
  const verdicts = of('provider').map(({ what, verdict }) => `${what.split(' ')[0]} ${verdict}`)
  expect(verdicts.slice(0, 9)).toEqual([
    'sandbox ok',
    'right ok',
    'wrong wrong',
    'wrong-gemini wrong',
    'right-gemini ok',
    'lost wrong',
    'poor wrong',
    'by-variable ok',
    'closed wrong',
  ])
  expect(of('provider')[2]?.what).toBe('wrong (tollgate.yaml:3) refuses the key (401)')
  expect(of('provider')[2]?.advice).toBe('replace it; tollgate.yaml:3 names it')
  expect(of('clock')[0]?.what).toEndWith("agrees with a provider's")
  expect(out).not.toContain('canary')
  const text = await doctor(folder, env)
  expect(text.out).not.toContain('canary')
  for (const line of text.out.trimEnd().split('\n').slice(0, -2)) expect(line).toMatch(/ {2}(ok|→ \S.*)$/)
})

test('checks a running gateway as its clients see it; finds readable folders, wrong keys and wrong secrets', async () => {
  const port = freePort()
  const folder = createFolder(`server: { port: ${port} }\n`)
  const gateway = startGateway(folder)
  const listening = Promise.withResolvers<void>()
  void (async () => {
    let text = ''
    for await (const chunk of gateway.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk
      if (text.includes('"url"')) listening.resolve()
    }
    listening.reject(new Error(`the gateway ended: ${text} ${await new Response(gateway.stderr).text()}`))
  })()
  listening.promise.catch(() => {})
  await listening.promise
  const fine = await findings(folder)
  expect(fine.wrong).toEqual([])
  expect(fine.of('gateway')).toMatchObject([{ verdict: 'ok' }])
  expect(fine.of('management')).toMatchObject([{ verdict: 'ok' }])
  expect(fine.of('models').map(({ verdict, what }) => `${verdict} ${what.replace(/\d+/, 'N')}`)).toEqual([
    "ok the first key sees N models in OpenAI's format",
    "ok the first key sees N models in Anthropic's format",
  ])
  expect(fine.of('secret')).toMatchObject([{ verdict: 'ok' }])
  expect(fine.of('database')[0]?.what).toMatch(/^SQLite, (\d+) of \1 migrations$/)

  chmodSync(join(folder, 'data'), 0o755)
  const other = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')
  const env = { TOLLGATE_SECRET: other, TOLLGATE_ADMIN_TOKEN: 'not-the-token-0123456789', TOLLGATE_KEY: 'sk-tg-wrong' }
  const bad = await findings(folder, env)
  expect(bad.exit).toBe(1)
  expect(bad.wrong.map(({ area, advice }) => [area, advice?.split(' ')[0]])).toEqual([
    ['data folder', 'chmod'],
    ['secret', 'restore'],
    ['management', 'TOLLGATE_ADMIN_TOKEN=…'],
  ])
  expect(bad.of('models')[0]).toMatchObject({ verdict: 'note', what: expect.stringContaining('is not accepted') })
  expect(bad.out).not.toContain(other)

  gateway.kill('SIGTERM')
  await gateway.exited
  const squatter = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('no', { status: 404 }) })
  expect((await findings(folder)).of('port')).toMatchObject([
    { verdict: 'wrong', what: `another program answers at http://127.0.0.1:${port}` },
  ])
  await squatter.stop(true)
})

const noon = Date.UTC(2026, 10, 8, 12)

test('compares the clock with the Date header of a provider, with a minute of tolerance', () => {
  const at = (skewMs: number) => checkClock({ now: noon, dated: { at: noon, receivedAt: noon + skewMs } })
  expect(at(60_000)).toMatchObject({ verdict: 'ok' })
  expect(at(-60_000)).toMatchObject({ verdict: 'ok' })
  expect(at(61_000)).toMatchObject({ verdict: 'wrong', what: expect.stringContaining("61 s ahead of a provider's") })
  expect(at(-300_000)).toMatchObject({ verdict: 'wrong', what: expect.stringContaining("300 s behind a provider's") })
})

test('without a provider, the clock must not be behind the database or the first release', () => {
  expect(checkClock({ now: noon })).toMatchObject({ verdict: 'ok', what: '2026-11-08 12:00:00 UTC' })
  expect(checkClock({ now: noon, newestRow: noon + 30_000 })).toMatchObject({ verdict: 'ok' })
  expect(checkClock({ now: noon, newestRow: noon + 90_000 })).toMatchObject({ verdict: 'wrong' })
  expect(checkClock({ now: 0 })).toMatchObject({ verdict: 'wrong' })
})

test('names a proxy without its password, and advises to exempt this machine', () => {
  expect(checkProxy({})).toEqual([expect.objectContaining({ verdict: 'ok' })])
  const set = { HTTP_PROXY: 'http://user:canary@proxy.example:3128' }
  const [first, second] = checkProxy(set)
  expect(first).toMatchObject({ verdict: 'ok', what: 'HTTP_PROXY sends calls through proxy.example:3128' })
  expect(second).toMatchObject({ verdict: 'note', advice: 'NO_PROXY=127.0.0.1,localhost' })
  expect(checkProxy({ ...set, NO_PROXY: 'localhost, 127.0.0.1' })).toHaveLength(1)
  // Only https calls use this one, and no call to this machine is https.
  expect(checkProxy({ HTTPS_PROXY: 'http://proxy.example:3128' })).toHaveLength(1)
  expect(checkProxy({ HTTPS_PROXY: 'proxy' })[0]).toMatchObject({ verdict: 'wrong' })
})

const secretOf = (first: number) => ({
  bytes: Uint8Array.from({ length: 32 }, (_, at) => first + at),
  source: 'TOLLGATE_SECRET',
})

/** Only what the checks read. */
function configOf({ url, dataFolder }: Pick<Place, 'url' | 'dataFolder'>): Config {
  return { databaseUrl: url === undefined ? undefined : new Secret(url), dataFolder } as Config
}

function secrets(current: number, previous?: number) {
  const config = {} as Config
  return { config, current: secretOf(current), previous: previous === undefined ? undefined : secretOf(previous) }
}

forEachEngine((engine, storeTest) => {
  storeTest('checks the tables and the secret that belongs to them', async ({ database, place }) => {
    await database.transaction((sql) => confirmSecret(sql, secretOf(1)))
    const verdicts = async (current: number, previous?: number) => {
      const { findings } = await checkDatabase(configOf(place), secrets(current, previous), noon)
      return findings.map(({ area, verdict, what }) => [area, verdict, what] as const)
    }
    const name = engine.name === 'sqlite' ? 'SQLite' : 'PostgreSQL'
    expect(await verdicts(1)).toEqual([
      ['database', 'ok', expect.stringMatching(new RegExp(`^${name}, (\\d+) of \\1 migrations$`))],
      ['secret', 'ok', 'TOLLGATE_SECRET belongs to this database'],
    ])
    expect((await verdicts(2))[1]?.[1]).toBe('wrong')
    expect((await verdicts(2, 1))[1]).toEqual(['secret', 'note', 'TOLLGATE_SECRET is new to this database'])
    expect((await verdicts(1, 2))[1]?.[2]).toBe('a rotation is in progress; 0 keys still depend on the previous secret')
  })

  storeTest('notes an older database and rejects a newer one', async ({ database, place }) => {
    const look = async () => (await checkDatabase(configOf(place), secrets(1), noon)).findings[0]
    await database.transaction(async (sql) => {
      await sql`DELETE FROM schema_migrations WHERE name <> '0001-schema'`
      // As the version of 0001 has it, which this version cannot read.
      await sql`ALTER TABLE projects DROP COLUMN exports_content`
    })
    expect(await look()).toMatchObject({ verdict: 'note', advice: 'the next start applies the rest' })
    const row = { name: '9999-later', checksum: 'x', applied_at: 1n }
    await database.transaction((sql) => sql`INSERT INTO schema_migrations ${sql([row])}`)
    expect(await look()).toMatchObject({
      verdict: 'wrong',
      what: expect.stringContaining('newer Tollgate: its migration 9999-later'),
    })
  })
})

test('reports an unreachable database without its password', async () => {
  using folder = createThrowAwayFolder()
  const url = 'postgres://me:canary@127.0.0.1:1/x'
  const { findings } = await checkDatabase(configOf({ url, dataFolder: folder.path }), secrets(1), noon)
  expect(findings).toMatchObject([{ area: 'database', verdict: 'wrong' }])
  expect(JSON.stringify(findings)).not.toContain('canary')
})

test('names folders and files that others may read, with the command to fix it', () => {
  using folder = createThrowAwayFolder()
  const file = join(folder.path, 'secret')
  chmodSync(folder.path, 0o700)
  writeFileSync(file, 'x', { mode: 0o600 })
  expect(checkDataFolder(folder.path)).toMatchObject([{ verdict: 'ok' }])
  chmodSync(file, 0o640)
  expect(checkDataFolder(folder.path)).toMatchObject([{ verdict: 'wrong', advice: `chmod go= ${file}` }])
  chmodSync(folder.path, 0o755)
  expect(checkDataFolder(folder.path)).toHaveLength(2)
  expect(checkDataFolder(file)).toMatchObject([{ verdict: 'wrong', what: `${file} is not a folder` }])
  expect(checkDataFolder(join(folder.path, 'none'))).toMatchObject([{ verdict: 'note' }])
})
