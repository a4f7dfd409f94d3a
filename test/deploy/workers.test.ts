import { afterAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../parts/free-port.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { ask, createSite, type Site } from './site.ts'

// `serve --workers`: processes of one family on one port.

const installed = findPostgresPrograms() !== undefined
const children: Bun.Subprocess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

/** Everything it prints, read as it comes. */
function watch(child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>) {
  children.push(child)
  let text = ''
  const take = async (stream: ReadableStream<Uint8Array>) => {
    for await (const bytes of stream) text += Buffer.from(bytes).toString()
  }
  void take(child.stdout)
  void take(child.stderr)
  const count = (wanted: string) => text.split(wanted).length - 1
  return {
    text: () => text,
    async until(wanted: string, times: number) {
      while (count(wanted) < times) {
        if (child.exitCode !== null) throw new Error(`it ended:\n${text}`)
        await Bun.sleep(10)
      }
    },
  }
}

/** The processes that a process started. */
function workersOf(pid: number): readonly number[] {
  const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return listed === '' ? [] : listed.split(' ').map(Number)
}

const isAlive = (pid: number) => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function startFamily(site: Site, count: number) {
  const databaseUrl = await (await sharedPostgres()).createDatabase()
  const port = freePort()
  const env = { DATABASE_URL: databaseUrl, TOLLGATE_LOG: 'json' }
  const parent = site.spawn(['serve', '--workers', String(count), '--port', String(port)], env)
  const output = watch(parent)
  await output.until('listening on', count)
  const key = readFileSync(join(site.dataFolder, 'first-key'), 'utf8').trim()
  return { parent, output, url: `http://127.0.0.1:${port}`, key }
}

test('the embedded database refuses, and says what to do', async () => {
  using site = createSite()
  const refused = await site.run(['serve', '--workers', '2'])
  expect(refused.exit).toBe(1)
  expect(refused.err).toContain(
    '--workers needs PostgreSQL, because only one process can write to the embedded database',
  )
  for (const wrong of ['0', 'two', '-1', '1000']) {
    expect(await site.run(['serve', '--workers', wrong])).toMatchObject({ exit: 2 })
  }
})

describe.skipIf(!installed || process.platform !== 'linux')('on PostgreSQL', () => {
  test('workers share the port; a killed one is replaced; a stop ends them all with 0', async () => {
    using site = createSite()
    const { parent, output, url, key } = await startFamily(site, 2)
    const [first = 0, second = 0] = workersOf(parent.pid)
    expect(workersOf(parent.pid)).toHaveLength(2)
    for (let call = 0; call < 20; call++) expect((await ask(url, key, 'sandbox/echo')).status).toBe(200)

    process.kill(first, 'SIGKILL')
    await output.until('listening on', 3)
    expect(output.text()).toContain(`worker ${first} ended (SIGKILL); another one is started in 0.5 s`)
    expect(workersOf(parent.pid)).toHaveLength(2)
    expect(workersOf(parent.pid)).toContain(second)
    for (let call = 0; call < 20; call++) expect((await ask(url, key, 'sandbox/echo')).status).toBe(200)

    const last = workersOf(parent.pid)
    parent.kill('SIGTERM')
    expect(await parent.exited).toBe(0)
    expect(last.filter(isAlive)).toEqual([])
  })

  test('workers end when the process that watches over them is killed', async () => {
    using site = createSite()
    const { parent } = await startFamily(site, 2)
    const workers = workersOf(parent.pid)
    parent.kill('SIGKILL')
    await parent.exited
    while (workers.some(isAlive)) await Bun.sleep(20)
    expect(workers).toHaveLength(2)
  })
})
