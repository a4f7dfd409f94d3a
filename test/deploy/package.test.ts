import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { freePort } from '../parts/free-port.ts'
import { manage } from '../parts/manage.ts'
import { ask, root } from './site.ts'

// The npm package on a machine with Node and npm alone: packed, installed by npm into an empty folder with an empty home,
// started, called and stopped, then replaced by a package with a higher version on the same data. npm gets the packages
// from a registry on loopback that serves those in node_modules, because the tests have no network.

const folder = mkdtempSync(join(tmpdir(), 'tollgate-package-'))
const place = (name: string): string => {
  mkdirSync(join(folder, name))
  return join(folder, name)
}
const programs = place('bin')
const machine = place('machine')
const env = { PATH: programs, HOME: place('home') }
const children = new Set<Bun.Subprocess>()
/** The gateway that npx has started, while it may run. */
let gateway: number | undefined
const registry = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: serveRegistry })

beforeAll(() => {
  // What npm and the launcher call beside Node. There is no Bun among it.
  for (const name of ['node', 'npm', 'sh', 'dirname', 'readlink'])
    symlinkSync(realpathSync(Bun.which(name) ?? ''), join(programs, name))
})

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  if (gateway !== undefined) process.kill(gateway, 'SIGKILL')
  await registry.stop(true)
  rmSync(folder, { recursive: true, force: true })
})

/** The two questions that npm has: which versions there are, and the archive of one. */
function serveRegistry({ url }: Request): Response {
  const [name = '', isArchive] = decodeURIComponent(new URL(url).pathname).slice(1).split('/-/')
  const installed = join(root, 'node_modules', name)
  if (!existsSync(installed)) return Response.json({ error: 'Not found' }, { status: 404 })
  if (isArchive !== undefined)
    return new Response(
      Bun.spawn(['tar', '-c', '--exclude=*.exe', '--transform=s,^[.],package,', '.'], { cwd: installed }).stdout,
    )
  const described = { ...JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')), optionalDependencies: {} }
  const dist = { tarball: `${registry.url}${name}/-/archive.tgz` }
  return Response.json({
    name,
    'dist-tags': { latest: described.version },
    versions: { [described.version]: { ...described, dist } },
  })
}

async function run(cwd: string, ...command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  children.add(child)
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  if (exit !== 0) throw new Error(`${command.join(' ')} ended with ${exit}:\n${out}${err}`)
  return out
}

async function pack(): Promise<string> {
  await run(root, 'npm', 'pack', '--silent', '--pack-destination', folder)
  return join(folder, `tollgate-${manifest.version}.tgz`)
}

/** The same sources with a higher version. */
async function packNext(archive: string, version: string): Promise<string> {
  const next = join(folder, `tollgate-${version}.tgz`)
  Bun.spawnSync(['tar', '-xf', archive], { cwd: folder })
  await Bun.write(join(folder, 'package/package.json'), JSON.stringify({ ...manifest, version }))
  Bun.spawnSync(['tar', '-czf', next, 'package'], { cwd: folder })
  return next
}

async function install(archive: string): Promise<void> {
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--registry', registry.url.href]
  await run(machine, 'npm', 'install', ...options, archive)
  // As npm leaves Bun's program, which is a hundred megabytes and therefore not sent through the registry.
  const bun = join(machine, 'node_modules/.bin/bun')
  rmSync(bun, { force: true })
  symlinkSync(process.execPath, bun)
}

const tollgate = (...args: readonly string[]): Promise<string> =>
  run(machine, join(machine, 'node_modules/.bin/tollgate'), ...args)

const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )

/** Starts the installed program by a command, and waits until it serves. */
async function start(...command: readonly string[]): Promise<{ url: string; child: Bun.Subprocess }> {
  const port = String(freePort())
  const child = Bun.spawn([...command, '--port', port], { cwd: machine, env, stdio: ['ignore', 'ignore', 'pipe'] })
  children.add(child)
  const url = `http://127.0.0.1:${port}`
  while (!(await isReady(url))) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}:\n${await child.stderr.text()}`)
    await Bun.sleep(50)
  }
  return { url, child }
}

/** Lets the installed program be used, and stops it as Ctrl-C does. */
async function whileRunning(use: (url: string) => Promise<void>): Promise<void> {
  const { url, child } = await start(join(machine, 'node_modules/.bin/tollgate'))
  await use(url)
  child.kill('SIGINT')
  expect(await child.exited).toBe(0)
}

/** A call to the sandbox, and what it costs at $1.00 and $2.00 per million tokens, in nano-dollars. */
async function call(url: string, key: string): Promise<number> {
  const answer = await ask(url, key, 'sandbox/echo')
  expect(answer.status).toBe(200)
  const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
  expect(usage.completion_tokens).toBeGreaterThan(0)
  return usage.prompt_tokens * 1_000 + usage.completion_tokens * 2_000
}

async function readBooks(url: string) {
  const managed = { url, dataFolder: join(machine, 'data') }
  const { data: workspaces } = await manage(managed, 'GET', '/api/workspaces')
  expect(workspaces).toHaveLength(1)
  const { balance } = await manage(managed, 'GET', `/api/workspaces/${workspaces[0].id}/wallet`)
  const { data: requests } = await manage(managed, 'GET', '/api/requests')
  return { nanoDollars: Math.round(Number(balance) * 1e9), requests: requests.map(({ id }: { id: string }) => id) }
}

test('starts with Node and npm alone, and keeps keys and money through an upgrade', async () => {
  const first = await pack()
  const next = await packNext(first, '99.0.0')
  await install(first)
  let key = ''
  let before = { nanoDollars: 0, requests: [] as string[] }
  await whileRunning(async (url) => {
    key = readFileSync(join(machine, 'data/first-key'), 'utf8').trim()
    // Bundled when the first one is opened, from packages that npm has put beside ours.
    for (const path of ['/', '/docs/five-minutes'])
      expect([path, (await fetch(url + path)).status]).toEqual([path, 200])
    const { nanoDollars } = await readBooks(url)
    const cost = await call(url, key)
    before = await readBooks(url)
    expect(before).toEqual({ nanoDollars: nanoDollars - cost, requests: [expect.any(String)] })
  })

  await install(next)
  expect(await tollgate('--version')).toBe('99.0.0\n')
  await whileRunning(async (url) => {
    expect(await readBooks(url)).toEqual(before)
    const cost = await call(url, key)
    expect(await readBooks(url)).toEqual({
      nanoDollars: before.nanoDollars - cost,
      requests: [expect.any(String), ...before.requests],
    })
  })
  // The opening credit and two charges.
  expect(JSON.parse(await tollgate('ledger', 'verify', '--json'))).toMatchObject({ ok: true, wallets: 1, transfers: 3 })
})

test('ends when the npx that started it is ended', async () => {
  // What npx does. The shell in which it runs the program may be one that ends without passing on the signal.
  const { url, child } = await start(join(programs, 'npm'), 'exec', '--', 'tollgate')
  gateway = Number(readFileSync(join(machine, 'data/lock-holder'), 'utf8'))
  child.kill('SIGTERM')
  await child.exited
  while (await isReady(url)) await Bun.sleep(50)
  gateway = undefined
})
