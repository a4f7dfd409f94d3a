import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatewayCommand } from '../../../test/parts/program.ts'
import type { Finding } from './finding.ts'

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

function spawn(folder: string, args: string[], env: Record<string, string>) {
  const child = Bun.spawn([...gatewayCommand(), ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: folder, TOLLGATE_LOCAL_MODELS: 'off', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  children.add(child)
  return child
}

async function doctor(folder: string, env: Record<string, string> = {}, args: string[] = []) {
  const child = spawn(folder, ['doctor', ...args], env)
  const [exit, out] = await Promise.all([child.exited, new Response(child.stdout).text()])
  return { exit, out }
}

async function findings(folder: string, env: Record<string, string> = {}) {
  const { exit, out } = await doctor(folder, env, ['--json'])
  const { ok, findings: found } = JSON.parse(out) as { ok: boolean; findings: readonly Finding[] }
  expect(ok).toBe(exit === 0)
  for (const { verdict, advice } of found) expect(advice === undefined).toBe(verdict === 'ok')
  const of = (area: string) => found.filter((finding) => finding.area === area)
  return { exit, of, wrong: found.filter(({ verdict }) => verdict === 'wrong'), out }
}

/** A provider that knows one key, and quotes a wrong one as some do. */
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

async function freePort(): Promise<number> {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port } = server
  await server.stop(true)
  return port ?? 0
}

test('before the first start nothing is wrong, and nothing is made', async () => {
  const folder = createFolder()
  const { exit, of } = await findings(folder, { TOLLGATE_PORT: String(await freePort()) })
  expect(exit).toBe(0)
  expect(of('data folder')).toMatchObject([{ verdict: 'note', advice: expect.stringContaining('npm start') }])
  expect(of('database')).toMatchObject([{ verdict: 'note' }])
  expect(of('port')).toMatchObject([{ verdict: 'note', what: expect.stringContaining('is free') }])
  expect(readFileSync.bind(undefined, join(folder, 'data', 'secret'))).toThrow()
})

test('a wrong file is told by line and field, and the rest is looked at all the same', async () => {
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

test('each provider key is tried, a wrong one is found, and none is shown', async () => {
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
  const env = { A_KEY: 'canary-good', TOLLGATE_PORT: String(await freePort()) }
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
  expect(of('clock')[0]?.what).toEndWith("as a provider's")
  expect(out).not.toContain('canary')
  const text = await doctor(folder, env)
  expect(text.out).not.toContain('canary')
  for (const line of text.out.trimEnd().split('\n').slice(0, -2)) expect(line).toMatch(/ {2}(ok|→ \S.*)$/)
})

test('a running gateway is asked as its clients ask it; open folders, wrong keys and wrong secrets are found', async () => {
  const port = await freePort()
  const folder = createFolder(`server: { port: ${port} }\n`)
  const gateway = spawn(folder, [], { TOLLGATE_LOG: 'json' })
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
    "ok the first key sees N models in OpenAI's shape",
    "ok the first key sees N models in Anthropic's shape",
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
