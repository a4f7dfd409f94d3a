import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { post } from './parts/ask.ts'
import { ranOf } from './parts/command-line.ts'
import { gatewayCommand } from './parts/program.ts'

// The program as its user meets it: started, used through the terminal, stopped by a signal. The first test and the one of
// the command line start it with the launcher, the others directly.

const launcher = [join(import.meta.dir, '..', 'bin', 'tollgate')]
const folders: string[] = []
const children = new Set<Bun.Subprocess>()
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-process-'))
  folders.push(folder)
  return folder
}

interface Started {
  readonly child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  readonly url: string
  output(): string
  /** stdout alone. */
  log(): string
  until(text: string): Promise<string>
  /** By SIGTERM; the exit code. */
  stop(): Promise<number>
}

function run(folder: string, env: Record<string, string> = {}, command: readonly string[] = gatewayCommand()) {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      TOLLGATE_PORT: '0',
      TOLLGATE_LOG: 'pretty',
      // As the launcher does, so that it need not start a second time.
      ...(command[0] !== launcher[0] && { BUN_CONFIG_MAX_HTTP_REQUESTS: '65000' }),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  return child
}

async function start(folder: string, env: Record<string, string> = {}, command?: readonly string[]): Promise<Started> {
  const child = run(folder, env, command)
  let text = ''
  let logged = ''
  const waiting: { wanted: string; resolve: (text: string) => void }[] = []
  const look = (): void => {
    for (const each of waiting) if (text.includes(each.wanted)) each.resolve(text)
  }
  for (const stream of [child.stdout, child.stderr]) {
    void (async () => {
      const decoder = new TextDecoder()
      for await (const chunk of stream) {
        const more = decoder.decode(chunk, { stream: true })
        text += more
        if (stream === child.stdout) logged += more
        look()
      }
    })()
  }
  const until = (wanted: string): Promise<string> =>
    new Promise((resolve) => {
      waiting.push({ wanted, resolve })
      look()
    })
  await until('listening on http://')
  const url = /listening on (http:\/\/[0-9.:]+)/.exec(text)?.[1] ?? ''
  const stop = () => {
    child.kill('SIGTERM')
    return child.exited
  }
  return { child, url, stop, output: () => text, log: () => logged, until }
}

function mode(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

test('the first start prints a key once and a curl line that works as printed; the second start prints no secret', async () => {
  const folder = createFolder()
  const first = await start(folder, {}, launcher)
  const key = /sk-tg-[0-9A-Za-z]{34}/.exec(first.output())?.[0] ?? ''
  expect(first.output()).toContain('first start')
  expect(readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim()).toBe(key)
  expect(mode(join(folder, 'data'))).toBe('700')
  expect(mode(join(folder, 'data', 'first-key'))).toBe('600')
  expect(mode(join(folder, 'data', 'secret'))).toBe('600')

  const line = /Try it +(curl [\s\S]*?'\n)/.exec(first.output())?.[1] ?? ''
  const curl = Bun.spawn(['bash', '-c', line], { stdout: 'pipe', stderr: 'ignore' })
  const answer = await new Response(curl.stdout).text()
  const words = [...answer.matchAll(/"content":"([^"]+)"/g)].map(([, text]) => text)
  expect(words.join('')).toBe('hello from the other side of the gate')
  expect(answer.trimEnd().endsWith('data: [DONE]')).toBe(true)
  // 12 tokens in at $1.00 and 8 out at $2.00 per million.
  expect(await first.until('$0.000028')).toContain('200  sandbox/echo')
  expect(await first.stop()).toBe(0)

  const second = await start(folder)
  expect(second.output()).not.toContain('sk-tg-')
  expect(second.output()).not.toContain('first start')
  const models = await fetch(`${second.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  expect(models.status).toBe(200)
  second.child.kill('SIGINT')
  expect(await second.child.exited).toBe(0)
})

test('refuses to start without the secret of its database, says what to do, and creates no other secret', async () => {
  const folder = createFolder()
  const first = await start(folder)
  await first.stop()
  const file = join(folder, 'data', 'secret')
  const secret = readFileSync(file, 'utf8')
  rmSync(file)
  for (let i = 0; i < 2; i++) {
    const refused = await ranOf(run(folder))
    expect(refused.exit).toBe(1)
    expect(refused.err).toContain('The master secret is missing')
    expect(refused.err).not.toMatch(/^ +at /m)
  }
  mkdirSync(file)
  const unreadable = await ranOf(run(folder))
  expect(unreadable.exit).toBe(1)
  expect(unreadable.err).toContain('Tollgate cannot read or create ')
  expect(unreadable.err).not.toMatch(/^ +at /m)
  rmSync(file, { recursive: true })
  writeFileSync(file, secret, { mode: 0o600 })
  const second = await start(folder)
  expect(await second.stop()).toBe(0)
})

test('a start that cannot listen does not count as the first start', async () => {
  const other = await start(createFolder())
  const folder = createFolder()
  const refused = await ranOf(run(folder, { TOLLGATE_PORT: new URL(other.url).port }))
  expect([refused.exit, refused.out]).toEqual([1, ''])
  await other.stop()

  const first = await start(folder)
  const key = readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim()
  expect(first.output()).toContain('first start')
  expect(first.output()).toMatch(/Console +http\S+\/console\?t=\S+/)
  expect(first.output()).toContain(`-H "Authorization: Bearer ${key}"`)
  await first.stop()

  const second = await start(folder)
  expect(second.output()).not.toContain('sk-tg-')
  await second.stop()
})

test('without a terminal the log is JSON without a secret, and the first key and link are printed beside it', async () => {
  const folder = createFolder()
  const { child, url, log, until } = await start(folder, { TOLLGATE_LOG: 'json' })
  const key = readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim()
  const notice = await until('first start: Try it: ')
  expect(notice).toContain(`first start: API key ${key} `)
  expect(notice).toContain(`first start: Console ${url}/console?t=`)
  const [first] = log().split('\n')
  const { curl } = JSON.parse(first ?? '') as { curl: string }
  const printed = /Try it: (curl .*)/.exec(notice)?.[1] ?? ''
  for (const line of [curl, printed]) {
    const called = Bun.spawn(['bash', '-c', line], { cwd: folder, stdout: 'pipe', stderr: 'ignore' })
    expect((await new Response(called.stdout).text()).trimEnd()).toEndWith('data: [DONE]')
  }
  child.kill('SIGTERM')
  await child.exited
  expect(log()).not.toContain('sk-tg-')
  expect(log()).not.toContain('?t=')
  const lines = log()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(lines.find((line) => line.url !== undefined)).toMatchObject({ url, message: `listening on ${url}` })
})

test('SIGTERM lets the running stream finish before the process ends', async () => {
  const folder = createFolder()
  const { child, url, until } = await start(folder)
  const key = readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim()
  const messages = [{ role: 'user', content: 'one two three four five six' }]
  const response = await post({ url, key }, '/v1/chat/completions', { model: 'sandbox/slow', stream: true, messages })
  child.kill('SIGTERM')
  await until('stopping')
  const text = await response.text()
  expect([...text.matchAll(/"content":"([^"]+)"/g)].map(([, word]) => word).join('')).toBe(
    'one two three four five six',
  )
  expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
  expect(await child.exited).toBe(0)
})

test('a signal ends a start that is still waiting for its database', async () => {
  const folder = createFolder()
  const asked = Promise.withResolvers<void>()
  // Accepts the connection and never answers.
  using silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => asked.resolve() } })
  const child = run(folder, { DATABASE_URL: `postgres://tollgate@127.0.0.1:${silent.port}/tollgate` })
  await asked.promise
  child.kill('SIGTERM')
  const { exit, err } = await ranOf(child)
  expect([exit, err]).toEqual([0, expect.stringContaining('SIGTERM while starting; no request was served')])
})

test('a start that fails prints why and what to do, and exits with 1', async () => {
  const folder = createFolder()
  const { child, url } = await start(folder)
  const port = new URL(url).port

  const sameFolder = await ranOf(run(folder))
  expect(sameFolder.exit).toBe(1)
  expect(sameFolder.err).toMatch(/^tollgate cannot start: Another Tollgate \(process \d+\) is using .*TOLLGATE_DATA/)

  const samePort = await ranOf(run(createFolder(), { TOLLGATE_PORT: port }))
  expect(samePort.exit).toBe(1)
  expect(samePort.err).toContain(
    `Port ${port} on 127.0.0.1 is taken. Stop the other program, or choose another: --port N`,
  )
  child.kill('SIGTERM')
  await child.exited

  const wrong = createFolder()
  writeFileSync(
    join(wrong, 'tollgate.yaml'),
    'models:\n  - id: a/b\n    price: { input: 2.5, output: "1.00" }\n    routes: []\n',
  )
  const refused = await ranOf(run(wrong))
  expect(refused.exit).toBe(1)
  expect(refused.err).toMatch(/tollgate\.yaml:3:\d+ {2}models\[0\]\.price\.input {2}expected a decimal string/)
  expect(refused.err).toContain('models[0].routes')
})

test('loads a changed configuration file while running, and keeps the last good one when the file is wrong', async () => {
  const folder = createFolder()
  const path = join(folder, 'tollgate.yaml')
  const model = (id: string) =>
    `models:\n  - { id: ${id}, price: free, routes: [{ provider: sandbox, model: echo }] }\n`
  writeFileSync(path, model('one/model'))
  const { child, url, until } = await start(folder)
  const key = readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim()
  const ids = async () => {
    const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
    return ((await response.json()) as { data: { id: string }[] }).data
      .map(({ id }) => id)
      .filter((id) => !id.startsWith('sandbox/'))
  }
  expect(await ids()).toEqual(['one/model'])
  writeFileSync(path, model('two/model'))
  await until('the changed configuration is in effect')
  expect(await ids()).toEqual(['two/model'])
  writeFileSync(path, 'models: 7\n')
  expect(await until('the last valid one stays in effect')).toMatch(/tollgate\.yaml:1:\d+ {2}models/)
  expect(await ids()).toEqual(['two/model'])
  child.kill('SIGTERM')
  await child.exited
})

test('--version, --help and an unknown command print what they should', async () => {
  const folder = createFolder()
  const version = await ranOf(run(folder, {}, [...launcher, '--version']))
  expect(version).toMatchObject({ exit: 0, out: `${manifest.version}\n` })
  const help = await ranOf(run(folder, {}, [...launcher, '--help']))
  expect(help.exit).toBe(0)
  for (const word of ['tollgate [serve]', 'TOLLGATE_PORT', 'DATABASE_URL']) expect(help.out).toContain(word)
  const unknown = await ranOf(run(folder, {}, [...launcher, 'serv']))
  expect(unknown.exit).toBe(2)
  expect(unknown.err).toContain('Try: tollgate serve')
  const misspelt = await start(folder, { TOLLGATE_PROT: '1' })
  expect(misspelt.output()).toContain('TOLLGATE_PORT')
  await misspelt.stop()
})
