import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { post } from './parts/ask.ts'
import { ranOf } from './parts/command-line.ts'
import { freePort } from './parts/free-port.ts'
import { manage } from './parts/manage.ts'
import { gatewayCommand } from './parts/program.ts'
import { startUpstream as startProvider } from './parts/upstream.ts'
import { answerWith } from './parts/upstream-words.ts'

// A master secret is replaced as an operator does it: processes, a restart, the command, killed now and then, another
// restart. All the while callers call with platform keys and with their own credentials.

const folder = mkdtempSync(join(tmpdir(), 'tollgate-rotation-'))
const children = new Set<Bun.Subprocess>()
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const workspaces = 120
const busyWorkspaces = 8
/** Spread over the start of the program and the work itself. */
const killsAfterMs = [80, 140, 180, 220, 260, 300]

type Variables = Record<string, string>

function spawn(args: string[], env: Variables) {
  const child = Bun.spawn([...gatewayCommand(), ...args], {
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      TOLLGATE_LOG: 'json',
      BUN_CONFIG_MAX_HTTP_REQUESTS: '65000',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  return child
}

const run = (args: string, env: Variables) => ranOf(spawn(args.split(' '), env))

async function startGateway(env: Variables) {
  const child = spawn([], env)
  const listening = Promise.withResolvers<void>()
  void (async () => {
    let text = ''
    // Read to the end: an unread log would stop the gateway.
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk
      if (text.includes('"url"')) listening.resolve()
    }
    listening.reject(new Error(`the gateway ended: ${text} ${await new Response(child.stderr).text()}`))
  })()
  listening.promise.catch(() => {})
  await listening.promise
  return {
    async stop() {
      child.kill('SIGTERM')
      expect(await child.exited).toBe(0)
    },
  }
}

/** Answers each call with the key it came with, refuses unknown keys. */
function startUpstream(known: ReadonlySet<string>) {
  return startProvider((call, reply) => {
    const key = call.headers.get('authorization')?.replace('Bearer ', '') ?? ''
    if (!known.has(key)) return reply.json(401, { error: { message: 'wrong key' } })
    return answerWith({ input: 1, output: 1 }, [key])(call, reply)
  })
}

interface Tenant {
  readonly key: string
  readonly ownKey: string
}

test('K3, A4: a new master secret under load, killed and resumed, and the old one dropped: nothing fails', async () => {
  const ownKeys = new Set(['platform-key'])
  const upstream = startUpstream(ownKeys)
  const port = freePort()
  const url = `http://127.0.0.1:${port}`
  writeFileSync(
    join(folder, 'tollgate.yaml'),
    `server: { port: ${port}, local_models: off }
providers: [{ id: acme, dialect: openai-chat, base_url: "${upstream.url}/v1", api_key: platform-key }]
models: [{ id: acme/m, price: free, routes: [{ provider: acme, model: m }] }]
`,
  )
  let gateway = await startGateway({})
  const managed = { url, dataFolder: join(folder, 'data') }

  async function createTenant(at: number): Promise<Tenant> {
    const workspace = await manage(managed, 'POST', '/api/workspaces', { name: `w${at}` })
    const project = await manage(managed, 'POST', `/api/workspaces/${workspace.id}/projects`, { name: 'p' })
    const key = await manage(managed, 'POST', `/api/projects/${project.id}/keys`, { name: `k${at}` })
    const ownKey = `own-key-of-${at}`
    ownKeys.add(ownKey)
    await manage(managed, 'PUT', `/api/workspaces/${workspace.id}/credentials/acme`, { api_key: ownKey })
    return { key: key.secret, ownKey }
  }

  /** The content, which is the own key that reached the provider, or the status; undefined while no gateway listens. */
  async function call({ key }: Tenant): Promise<string | undefined> {
    const body = { model: 'acme/m', messages: [{ role: 'user', content: 'hi' }] }
    const response = await post({ url, key }, '/v1/chat/completions', body).catch(() => undefined)
    // While it drains it says so, as for every restart.
    if (response === undefined || response.status === 503) return undefined
    const text = await response.text()
    return response.ok ? JSON.parse(text).choices[0].message.content : `${response.status} ${text}`
  }

  /** A gateway on a busy machine refuses any call for a moment. */
  async function answerTo(tenant: Tenant): Promise<string> {
    for (;;) {
      const content = await call(tenant)
      if (content !== undefined) return content
      await Bun.sleep(50)
    }
  }

  const tenants = await Promise.all(Array.from({ length: workspaces }, (_, at) => createTenant(at)))
  const busy = tenants.slice(0, busyWorkspaces)
  const failures: string[] = []
  let answered = 0
  let isOver = false
  const callers = busy.map(async (tenant) => {
    while (!isOver) {
      const content = await call(tenant)
      if (content === undefined) await Bun.sleep(20)
      else if (content === tenant.ownKey) answered++
      else failures.push(content)
    }
  })

  const oldSecret = readFileSync(join(folder, 'data', 'secret'), 'utf8').trim()
  const newSecret = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')
  const both = { TOLLGATE_SECRET: newSecret, TOLLGATE_SECRET_PREVIOUS: oldSecret }

  // Too early, and without what it needs: nothing is moved.
  expect(await run('secrets rotate', {})).toMatchObject({ exit: 2, err: expect.stringContaining('is not set') })
  expect(await run('secrets rotate', both)).toMatchObject({
    exit: 1,
    err: expect.stringContaining('with both secrets'),
  })

  await gateway.stop()
  gateway = await startGateway(both)
  const before = JSON.parse((await run('secrets status --json', both)).out)
  expect(before).toMatchObject({ rotating: true, previous_may_go: false, waiting: { credentials: workspaces } })
  for (const afterMs of killsAfterMs) {
    const child = spawn(['secrets', 'rotate'], both)
    await Bun.sleep(afterMs)
    child.kill('SIGKILL')
    await child.exited
  }
  const ended = await run('secrets rotate', both)
  expect([ended.exit, ended.err]).toEqual([0, ''])
  expect(ended.out).toContain('Keep TOLLGATE_SECRET_PREVIOUS')
  const waiting = JSON.parse((await run('secrets --json', both)).out)
  // The unused ones, and the first key of the installation.
  expect(waiting.waiting).toEqual({
    keys: workspaces - busyWorkspaces + 1,
    overlaps: 0,
    credentials: 0,
    responses: 0,
    batches: 0,
  })

  const firstKey = readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim()
  expect(await answerTo({ key: firstKey, ownKey: '' })).toBe('platform-key')
  for (const tenant of tenants) expect(await answerTo(tenant)).toBe(tenant.ownKey)
  let status = await run('secrets', both)
  while (!status.out.includes('Nothing depends on the previous secret')) status = await run('secrets', both)

  await gateway.stop()
  gateway = await startGateway({ TOLLGATE_SECRET: newSecret })
  for (const tenant of tenants) expect(await answerTo(tenant)).toBe(tenant.ownKey)
  isOver = true
  await Promise.all(callers)
  expect(failures).toEqual([])
  expect(answered).toBeGreaterThan(busyWorkspaces)
  await gateway.stop()

  // The old secret opens nothing any more.
  expect(await run('serve', {})).toMatchObject({ exit: 1, err: expect.stringContaining('is not the one') })
  upstream.stop()
})
