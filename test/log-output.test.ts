import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { post } from './parts/ask.ts'
import { gatewayCommand } from './parts/program.ts'

// The program when its log cannot be written: it keeps serving, and counts the lines that are lost.

const folders: string[] = []
const children = new Set<Bun.Subprocess>()
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const adminToken = 'a-management-token-for-this-test'

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-log-'))
  folders.push(folder)
  return folder
}

/** Starts the gateway in bash, whose redirections decide where its output goes. */
function run(folder: string, redirections: string, format: 'json' | 'pretty' = 'json') {
  const child = Bun.spawn(['bash', '-c', `exec "$@" ${redirections}`, 'bash', ...gatewayCommand()], {
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      TOLLGATE_PORT: '0',
      TOLLGATE_LOG: format,
      TOLLGATE_ADMIN_TOKEN: adminToken,
      TOLLGATE_DRAIN_DELAY_SECONDS: '0',
      BUN_CONFIG_MAX_HTTP_REQUESTS: '65000',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  return child
}

async function until<T>(read: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await read()
    if (found !== undefined) return found
    await Bun.sleep(20)
  }
}

function readIfThere(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8').trim() || undefined : undefined
}

/** The gateway of a folder, without reading its output; rejects if the process ends. */
async function serving(folder: string, child: Bun.Subprocess) {
  const file = (name: string) =>
    until(() => {
      if (child.exitCode !== null) throw new Error(`the gateway has ended with ${child.exitCode}`)
      return readIfThere(join(folder, 'data', name))
    })
  const gateway = { url: await file('address'), key: await file('first-key') }
  return {
    async ask(): Promise<number> {
      const messages = [{ role: 'user', content: 'hello' }]
      const response = await post(gateway, '/v1/chat/completions', { model: 'sandbox/echo', messages })
      await response.text()
      return response.status
    },
    async dropped(): Promise<number> {
      const headers = { authorization: `Bearer ${adminToken}` }
      const page = await (await fetch(`${gateway.url}/metrics`, { headers })).text()
      return Number(/^tollgate_log_lines_dropped_total (\d+)$/m.exec(page)?.[1])
    },
  }
}

const full = existsSync('/dev/full')

for (const format of ['json', 'pretty'] as const) {
  test.skipIf(!full)(`serves while nothing can be written to the log (${format}) or to stderr`, async () => {
    const folder = createFolder()
    const child = run(folder, '> /dev/full 2> /dev/full', format)
    const { ask, dropped } = await serving(folder, child)
    for (let i = 0; i < 3; i++) expect(await ask()).toBe(200)
    await until(async () => ((await dropped()) >= 3 ? true : undefined))
    expect(await ask()).toBe(200)
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
  })
}

test('serves after the readers of its log and of stderr have gone', async () => {
  const folder = createFolder()
  const child = run(folder, '')
  const { ask, dropped } = await serving(folder, child)
  await Promise.all([child.stdout.cancel(), child.stderr.cancel()])
  for (let i = 0; i < 3; i++) expect(await ask()).toBe(200)
  await until(async () => ((await dropped()) >= 3 ? true : undefined))
  expect(await ask()).toBe(200)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
})

test('says once how many lines were lost when the log can be written again', async () => {
  const folder = createFolder()
  const pipe = join(folder, 'log')
  expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0)
  const read = () => {
    const reader = Bun.spawn(['cat', pipe], { stdio: ['ignore', 'pipe', 'ignore'] })
    children.add(reader)
    return reader
  }
  const first = read()
  const child = run(folder, '> log')
  const { ask, dropped } = await serving(folder, child)
  expect(await ask()).toBe(200)
  expect(await dropped()).toBe(0)
  first.kill('SIGKILL')
  await first.exited
  for (let i = 0; i < 3; i++) expect(await ask()).toBe(200)
  await until(async () => ((await dropped()) >= 3 ? true : undefined))

  const second = read()
  let text = ''
  void (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of second.stdout) text += decoder.decode(chunk, { stream: true })
  })()
  const notices = () => text.split('\n').filter((line) => line.includes('could not be written'))
  await until(async () => {
    await ask()
    return notices().length > 0 ? true : undefined
  })
  const lost = await dropped()
  expect(JSON.parse(notices()[0] ?? '')).toMatchObject({ level: 'warn', lines: lost, lines_since_start: lost })
  for (let i = 0; i < 3; i++) await ask()
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  await second.exited
  expect(notices()).toHaveLength(1)
  // Every line is whole.
  for (const line of text.split('\n').filter(Boolean)) JSON.parse(line)
  expect(text).toContain('stopping after the running requests')
})
