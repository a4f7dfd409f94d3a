import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile } from '../../deploy/compile.ts'
import manifest from '../../package.json' with { type: 'json' }
import { ask } from './site.ts'

// The single-file program: built as `npm run compile` builds it, then used where there is neither Bun nor a source.

// It is a hundred megabytes, and the machine may be busy.

const folder = mkdtempSync(join(tmpdir(), 'tollgate-compiled-'))
const program = join(folder, 'tollgate')
const children = new Set<Bun.Subprocess>()

beforeAll(async () => {
  expect(manifest.scripts.compile).toBe('bun run deploy/compile.ts')
  await compile(program)
})
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

function spawn(...args: string[]) {
  const child = Bun.spawn([program, ...args], {
    cwd: folder,
    // With any free port a command could not know the address, so it gets one; those here do not use it.
    env: {
      PATH: '/nowhere',
      HOME: folder,
      TOLLGATE_LOG: 'json',
      ...(args.length === 0 ? { TOLLGATE_PORT: '0' } : { TOLLGATE_URL: 'http://127.0.0.1:1' }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  return child
}

async function run(...args: string[]) {
  const child = spawn(...args)
  const [exit, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { exit, out, err }
}

/** Reads on until it ends: a gateway whose log is not read is another test. */
function untilListening(child: ReturnType<typeof spawn>): Promise<string> {
  return new Promise((resolve, reject) => {
    void (async () => {
      let text = ''
      for await (const bytes of child.stdout) {
        text += Buffer.from(bytes).toString()
        const url = /"url":"(http:\/\/[0-9.:]+)"/.exec(text)?.[1]
        if (url !== undefined) resolve(url)
      }
      reject(new Error(`it did not listen:\n${text}${await child.stderr.text()}`))
    })()
  })
}

test('the single file starts, answers, charges, backs up, verifies and stops', async () => {
  expect(await run('--version')).toEqual({ exit: 0, out: `${manifest.version}\n`, err: '' })
  const gateway = spawn()
  const url = await untilListening(gateway)
  const key = readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim()
  const answer = await ask(url, key, 'sandbox/echo')
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({ model: 'sandbox/echo' })
  for (const path of ['/healthz', '/readyz']) expect((await fetch(url + path)).status).toBe(200)

  const page = await (await fetch(url, { headers: { accept: 'text/html' } })).text()
  const assets = new Set(page.match(/\/assets\/[a-z0-9.-]+/g))
  expect(assets.size).toBeGreaterThanOrEqual(2)
  for (const path of assets) expect([path, (await fetch(url + path)).status]).toEqual([path, 200])

  const made = await run('backup', 'backup.db')
  expect([made.exit, made.out]).toEqual([0, expect.stringContaining('backup.db: ')])
  gateway.kill('SIGTERM')
  expect(await gateway.exited).toBe(0)
  const verified = await run('ledger', 'verify', '--json')
  expect(verified.exit).toBe(0)
  // The opening credit and one charge.
  expect(JSON.parse(verified.out)).toMatchObject({ ok: true, wallets: 1, transfers: 2 })
})
