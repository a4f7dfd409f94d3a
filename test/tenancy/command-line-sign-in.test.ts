// `tollgate login` and what follows from it, with the program and a whole gateway.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Ran, ranOf, runHere } from '../parts/command-line.ts'
import { acceptInvitation } from '../parts/device-sign-in.ts'
import { freePort } from '../parts/free-port.ts'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { callManagement } from '../parts/manage.ts'
import { gatewayCommand } from '../parts/program.ts'

const adminToken = 'token-of-the-operator-0123456789'
const admin = { authorization: `Bearer ${adminToken}` }

let gateway: Gateway
let session: Readonly<Record<string, string>>
let project: string
const home = mkdtempSync(join(tmpdir(), 'tollgate-person-'))
const env = { HOME: home }
const children = new Set<Bun.Subprocess>()

const manage = async (
  method: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = admin,
) => {
  const text = await callManagement(gateway.url, headers, [method, path, body])
  return text === '' ? undefined : JSON.parse(text)
}
const run = (...args: string[]): Promise<Ran> => runHere(args, { env, cwd: home })

function spawn(...args: string[]) {
  const child = Bun.spawn([...gatewayCommand(), ...args], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] })
  children.add(child)
  return child
}

/** Reads all of it; `found` resolves as soon as the pattern has come. */
function watch(stream: ReadableStream<Uint8Array>, pattern: RegExp) {
  const found = Promise.withResolvers<string>()
  const read = async (): Promise<string> => {
    const decoder = new TextDecoder()
    let text = ''
    for await (const bytes of stream) {
      text += decoder.decode(bytes, { stream: true })
      const match = pattern.exec(text)?.[1]
      if (match !== undefined) found.resolve(match)
    }
    found.reject(new Error(`it ended without ${pattern}:\n${text}`))
    return text
  }
  return { found: found.promise, text: read() }
}

/** Starts `tollgate login`, and approves or denies the code that it shows. */
async function login(decision: 'approve' | 'deny'): Promise<Ran> {
  const child = spawn('login', gateway.url)
  const shown = watch(child.stderr, /\n {2}([A-Z]{4}-[A-Z]{4})\n/)
  const code = await shown.found
  const body = { code, ...(decision === 'approve' && { project_id: project }) }
  await manage('POST', `/api/me/device-grants/${decision}`, body, session)
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), shown.text])
  return { exit, out, err }
}

/** Makes the stored token look as if it expires in a minute, so that it is refreshed at the next use. */
function ageToken(): void {
  const folder = join(home, '.config/tollgate/sign-ins')
  const file = join(folder, readdirSync(folder).find((name) => name.endsWith('.json')) ?? '')
  const entry = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...entry, access_expires_at: new Date(Date.now() + 60_000).toISOString() }))
}

const callWith = (token: string) => fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })

beforeAll(async () => {
  const env = { TOLLGATE_ADMIN_TOKEN: adminToken, TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' }
  gateway = await startGateway({ env })
  const workspace = (await manage('POST', '/api/workspaces', { name: 'acme' })).id
  project = (await manage('POST', `/api/workspaces/${workspace}/projects`, { name: 'web' })).id
  await manage('POST', `/api/workspaces/${workspace}/topups`, { amount: '5.00' })
  const invitation = { email: 'ada@example.com', role: 'member', workspace_id: workspace }
  session = await acceptInvitation(gateway.url, (await manage('POST', '/api/invitations', invitation)).url)
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await gateway.stop()
  rmSync(home, { recursive: true, force: true })
})

test('a denied sign-in stores nothing', async () => {
  const { exit, err } = await login('deny')
  expect([exit, err]).toEqual([1, expect.stringContaining('the sign-in was denied in the browser.')])
  expect((await run('token', gateway.url)).exit).toBe(1)
})

test('an approved one gives tokens that the gateway takes, and says who and where', async () => {
  const { exit, out } = await login('approve')
  expect([exit, out]).toEqual([0, `Signed in to ${gateway.url} as ada@example.com.\n`])
  const token = await run('token')
  expect([token.exit, token.err]).toEqual([0, ''])
  expect((await callWith(token.out.trim())).status).toBe(200)
  const who = JSON.parse((await run('whoami', '--json')).out)
  expect(who).toMatchObject({ gateway: gateway.url, email: 'ada@example.com', workspace: 'acme', project: 'web' })
  const { data } = await manage('GET', '/api/sign-ins')
  expect(data).toMatchObject([{ email: 'ada@example.com', client: 'tollgate', project_id: project }])
})

test('programs that refresh at once all get a token that works, round after round, and nobody is signed out', async () => {
  for (let round = 0; round < 3; round++) {
    ageToken()
    const ran = await Promise.all(Array.from({ length: 4 }, () => ranOf(spawn('token', gateway.url))))
    for (const { exit, out } of ran) expect([exit, (await callWith(out.trim())).status]).toEqual([0, 200])
  }
  expect((await run('token')).exit).toBe(0)
})

test('a program without a helper works through the proxy, under the key of the person', async () => {
  const port = String(freePort())
  const connected = await run('connect', 'qwen', '--model', 'sandbox/echo', '--port', port)
  const [, url = '', key = ''] = /OPENAI_BASE_URL=(\S+)\n.*OPENAI_API_KEY=(\S+)\n/.exec(connected.out) ?? []
  const proxy = spawn('proxy', '--port', port)
  await watch(proxy.stdout, /Serving (\S+) on/).found
  ageToken()
  const answer = await fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/echo', stream: true, messages: [{ role: 'user', content: 'hello there' }] }),
  })
  const text = await answer.text()
  expect([answer.status, text]).toEqual([200, expect.stringContaining('data: [DONE]')])
  const { key_id } = (await manage('GET', '/api/sign-ins')).data[0]
  const { data } = await manage('GET', '/api/requests?limit=1')
  expect(data).toMatchObject([{ key_id, status: 200 }])
  proxy.kill('SIGTERM')
  expect(await proxy.exited).toBe(0)
})

test('a sign-in that was ended elsewhere: the gateway says what to run, then so does the helper', async () => {
  const [{ id }] = (await manage('GET', '/api/sign-ins')).data
  await manage('DELETE', `/api/sign-ins/${id}`)
  const refused = await callWith((await run('token')).out.trim())
  expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([401, 'false'])
  expect(await refused.text()).toContain('tollgate login')
  ageToken()
  const { exit, out, err } = await run('token', gateway.url)
  expect([exit, out, err.split('\n').length]).toEqual([1, '', 2])
  expect(err).toEndWith(`you are signed out of ${gateway.url}. Run: tollgate login ${gateway.url}\n`)
})

test('logout ends the sign-in at the gateway', async () => {
  await login('approve')
  const token = (await run('token')).out.trim()
  expect((await run('logout')).exit).toBe(0)
  expect([(await manage('GET', '/api/sign-ins')).data, (await callWith(token)).status]).toEqual([[], 401])
})
