// Every sync of the embedded database fails once, the process goes on or is killed and started again, and then the power is
// cut: each charge that was confirmed, before and after the failure, must be on the disk. The kernel reports a failed sync
// once, forgets what it could not write, and lets the next sync succeed.

import { expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import type { RequestId } from '../../src/kernel/ids.ts'
import { createLedger } from '../../src/ledger/create-ledger.ts'
import { verify } from '../../src/ledger/verify.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { injectSyncError } from '../parts/crash-inject.ts'
import { wholeTrace } from '../parts/crash-trace.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { openFunded } from '../parts/ledger.ts'
import { ModelDisk } from '../parts/power-cut.ts'

const child = join(import.meta.dir, '..', 'parts', 'charging-child.ts')
/** Each is two or three syncs: of the journal, and of the tables. */
const charges = 4

interface Run {
  readonly confirmed: readonly RequestId[]
  readonly hasFailed: boolean
}

/** Charges are confirmed under strace; `injected`: what strace does to syncs of the database. */
async function run(folder: string, disk: ModelDisk, workspaceId: string, injected?: string): Promise<Run> {
  const files = ['tollgate.db', 'tollgate.db-wal'].map((name) => join(folder, name))
  const file = join(folder, 'trace')
  const tracing = ['-D', '-f', '--seccomp-bpf', '-yy', '-s', '65536', '-o', file]
  const calls = ['-e', 'trace=fdatasync,fsync,pwrite64,pwritev,write,writev,ftruncate']
  const injecting = injected === undefined ? [] : ['-e', `inject=fdatasync,fsync:${injected}`]
  const paths = files.flatMap((path) => ['-P', path])
  const args = [
    ...tracing,
    ...calls,
    ...injecting,
    ...paths,
    process.execPath,
    child,
    folder,
    workspaceId,
    `${charges}`,
  ]
  const traced = Bun.spawn(['strace', ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
  const printed = await new Response(traced.stdout).text()
  await traced.exited
  const trace = await wholeTrace(file, traced.pid)
  disk.replay(trace, files)
  return { confirmed: printed.trim().split('\n').filter(Boolean) as RequestId[], hasFailed: trace.includes('INJECTED') }
}

/** A database with a wallet, on the disk. */
async function prepare(dataFolder: string): Promise<string> {
  const database = await openDatabase({ url: undefined, dataFolder })
  await migrate({ database, clock: systemClock })
  const books = await openFunded(database, 1_000_000n)
  await books.ledger.close()
  await database.close()
  return books.workspaceId
}

/** False: there is no such sync. */
async function failSync(nth: number, isKilled: boolean): Promise<boolean> {
  using folder = createThrowAwayFolder()
  const workspaceId = await prepare(folder.path)
  const disk = new ModelDisk()
  disk.add(join(folder.path, 'tollgate.db'), readFileSync(join(folder.path, 'tollgate.db')))
  const first = await run(folder.path, disk, workspaceId, `error=EIO:when=${nth}${isKilled ? ':signal=KILL' : ''}`)
  const second = isKilled ? await run(folder.path, disk, workspaceId) : undefined
  const confirmed = [...first.confirmed, ...(second?.confirmed ?? [])]
  if (!isKilled) expect(first.confirmed).toHaveLength(charges)
  if (second) expect(second.confirmed).toHaveLength(charges)

  using after = createThrowAwayFolder()
  for (const name of ['tollgate.db', 'tollgate.db-wal'])
    writeFileSync(join(after.path, name), disk.afterPowerCut(join(folder.path, name)))
  const recovered = await openDatabase({ url: undefined, dataFolder: after.path })
  const ledger = await createLedger({ database: recovered, clock: systemClock })
  const lost: RequestId[] = []
  for (const id of confirmed) if ((await ledger.transfersOf(id)).length !== 1) lost.push(id)
  expect({ nth, isKilled, lost }).toEqual({ nth, isKilled, lost: [] })
  expect((await verify(recovered)).findings).toEqual([])
  await ledger.close()
  await recovered.close()
  return first.hasFailed
}

for (const isKilled of [false, true]) {
  test.skipIf(Bun.which('strace') === null)(
    `a power cut loses no confirmed charge after any sync failed and the process ${isKilled ? 'was killed' : 'went on'} (strace)`,
    async () => {
      let nth = 1
      while (await failSync(nth, isKilled)) nth++
      expect(nth).toBeGreaterThan(2 * charges)
    },
  )
}

test.skipIf(Bun.which('strace') === null)(
  'a log that a checkpoint could not move to the database is kept, and the next start moves all of it (strace)',
  async () => {
    using folder = createThrowAwayFolder()
    await prepare(folder.path)
    const lines: string[] = []
    const report = (line: string) => void lines.push(line)
    const database = await openDatabase({ url: undefined, dataFolder: folder.path, report })
    const injection = await injectSyncError([process.pid], join(folder.path, 'tollgate.db'))
    // More than the 4,000 pages of 4 KB after which the log is moved.
    const text = 'x'.repeat(60_000)
    for (let n = 0; n < 300; n++) {
      await database.transaction(
        (sql) => sql`INSERT INTO idempotency (scope, key, body_sha256, state, response, expires_at)
          VALUES ('test', ${`${n}`}, '', 'done', ${text}, 0)`,
      )
    }
    await injection.end()
    expect(lines).toEqual([expect.stringContaining('could not be moved to the database')])
    await database.close()
    // A copy, because in this process the database stays open.
    using after = createThrowAwayFolder()
    for (const name of ['tollgate.db', 'tollgate.db-wal'])
      writeFileSync(join(after.path, name), readFileSync(join(folder.path, name)))
    const log = join(after.path, 'tollgate.db-wal')
    expect(statSync(log).size).toBeGreaterThan(4000 * 4096)
    const again = await openDatabase({ url: undefined, dataFolder: after.path })
    expect(statSync(log).size).toBe(0)
    expect(await again.sql`SELECT COUNT(*) AS count FROM idempotency`).toEqual([{ count: 300n }])
    await again.close()
  },
)
