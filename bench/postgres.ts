// What the ledger costs on PostgreSQL: `bun run bench/postgres.ts [seconds per cell]`. One and two processes on one hot
// wallet, exact and with leases, and on many wallets, against a private server that really syncs; one table at the end.

import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { systemClock } from '../src/kernel/clock.ts'
import { createId, type WorkspaceId } from '../src/kernel/ids.ts'
import type { Nano } from '../src/kernel/money.ts'
import { createLedger } from '../src/ledger/create-ledger.ts'
import { verify } from '../src/ledger/verify.ts'
import type { Database } from '../src/store/database.ts'
import { migrate } from '../src/store/migrate.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { findPostgresPrograms } from '../test/parts/postgres.ts'
import { costOf } from './measure.ts'
import type { ChildPlan, ChildResult } from './postgres-child.ts'

const concurrency = 64
const warmupMs = 1500
const manyWallets = 200
/** A million dollars, the most that one top-up takes: no cell ends for want of money. */
const funds = 1_000_000_000_000_000n as Nano

interface Cell {
  readonly name: string
  readonly wallets: number
  readonly isLeased: boolean
  readonly processes: number
}

const cells: readonly Cell[] = [
  { name: 'one wallet, exact', wallets: 1, isLeased: false, processes: 1 },
  { name: 'one wallet, leases', wallets: 1, isLeased: true, processes: 1 },
  { name: 'one wallet, exact', wallets: 1, isLeased: false, processes: 2 },
  { name: 'one wallet, leases', wallets: 1, isLeased: true, processes: 2 },
  { name: `${manyWallets} wallets, exact`, wallets: manyWallets, isLeased: false, processes: 1 },
  { name: `${manyWallets} wallets, exact`, wallets: manyWallets, isLeased: false, processes: 2 },
]

interface Row extends Cell {
  readonly perSecond: number
  readonly gatewayMicros: number
  readonly serverMicros: number
  readonly commitsPerSecond: number
  readonly refused: number
}

async function main(): Promise<number> {
  const [seconds = 3] = process.argv.slice(2).map(Number)
  const programs = findPostgresPrograms()
  if (programs === undefined || !(seconds > 0)) {
    console.error(programs ? 'expected a number of seconds for each cell' : 'PostgreSQL is not installed')
    return 2
  }
  await using server = await startServer(programs)
  const rows: Row[] = []
  for (const cell of cells) {
    console.error(`${cell.name}, ${cell.processes} process${cell.processes > 1 ? 'es' : ''}`)
    rows.push(await measure(server, cell, seconds * 1000))
  }
  print(rows, seconds)
  return 0
}

async function measure(server: Server, cell: Cell, windowMs: number): Promise<Row> {
  const url = await server.createDatabase()
  const database = await openDatabase({ url, dataFolder: '' })
  try {
    await migrate({ database, clock: systemClock })
    const workspaceIds = await fundWallets(database, cell.wallets)
    const share = { isLeased: cell.isLeased, concurrency: Math.ceil(concurrency / cell.processes) }
    const plan: ChildPlan = { url, workspaceIds, ...share, warmupMs, windowMs }
    const running = Array.from({ length: cell.processes }, () => runChild(plan))
    await Bun.sleep(warmupMs + 300)
    const before = {
      cpu: costOf(server.pid).cpuMicros,
      commits: await commitsOf(database),
      charged: await chargesOf(database),
    }
    await Bun.sleep(windowMs - 600)
    const [commits, charged] = [await commitsOf(database), await chargesOf(database)]
    const serverCpu = costOf(server.pid).cpuMicros - before.cpu
    const results = await Promise.all(running)
    const { findings } = await verify(database)
    if (findings.length > 0) throw new Error(`the books are wrong: ${JSON.stringify(findings.slice(0, 3))}`)
    const total = (pick: (result: ChildResult) => number) => results.reduce((sum, result) => sum + pick(result), 0)
    const seen = Math.max(1, charged - before.charged)
    const perSecond = total(({ charged, seconds }) => charged / seconds)
    return {
      ...cell,
      perSecond,
      gatewayMicros:
        total(({ cpuMicros }) => cpuMicros) /
        Math.max(
          1,
          total(({ charged }) => charged),
        ),
      serverMicros: serverCpu / seen,
      commitsPerSecond: ((commits - before.commits) / seen) * perSecond,
      refused: total(({ refused }) => refused),
    }
  } finally {
    await database.close()
  }
}

async function fundWallets(database: Database, count: number): Promise<readonly WorkspaceId[]> {
  const ledger = await createLedger({ database, clock: systemClock })
  const ids = Array.from({ length: count }, () => createId('ws'))
  for (const workspaceId of ids) {
    await database.transaction(
      (sql) => sql`INSERT INTO workspaces (id, name, created_at) VALUES (${workspaceId}, ${'bench'}, ${0n})`,
    )
    await ledger.fund({ workspaceId, amount: funds, kind: 'topup' })
  }
  await ledger.close()
  return ids
}

async function runChild(plan: ChildPlan): Promise<ChildResult> {
  const child = Bun.spawn([process.execPath, '--no-install', join(import.meta.dir, 'postgres-child.ts')], {
    stdin: new Blob([JSON.stringify(plan)]),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await new Response(child.stdout).text()) as ChildResult
}

async function chargesOf({ sql }: Database): Promise<number> {
  const [row] = await sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM transfers WHERE kind = 'charge'`
  return Number(row?.n ?? 0n)
}

/** Transactions that wrote: each of them has an id of its own. */
async function commitsOf({ sql }: Database): Promise<number> {
  const [row] = await sql<{ n: string }>`SELECT CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS n`
  return Number(row?.n ?? 0)
}

function print(rows: readonly Row[], seconds: number): void {
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}, Bun ${Bun.version}`
  console.log(`${machine}; ${seconds} s for each cell, ${concurrency} requests at a time, fsync on`)
  console.log(line(['', 'processes', 'charges/s', 'µs gateway', 'µs server', 'commits/s', 'charges/commit', 'refused']))
  for (const row of rows) {
    const { perSecond, gatewayMicros, serverMicros, commitsPerSecond } = row
    const figures = [perSecond, gatewayMicros, serverMicros, commitsPerSecond].map((figure) => figure.toFixed(0))
    const batch = (perSecond / Math.max(1, commitsPerSecond)).toFixed(1)
    console.log(line([row.name, String(row.processes), ...figures, batch, String(row.refused)]))
  }
  const rateOf = (name: string, processes: number) =>
    rows.find((row) => row.name === name && row.processes === processes)?.perSecond ?? 0
  for (const processes of [1, 2]) {
    const ratio = rateOf('one wallet, leases', processes) / rateOf('one wallet, exact', processes)
    console.log(`leases against exact, ${processes} process${processes > 1 ? 'es' : ''}: ${ratio.toFixed(2)} ×`)
  }
}

function line([name = '', ...figures]: readonly string[]): string {
  return `${name.padEnd(20)}${figures.map((figure) => figure.padStart(16)).join('')}`
}

interface Server extends AsyncDisposable {
  readonly pid: number
  createDatabase(): Promise<string>
}

async function startServer(programs: string): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-pg-'))
  const port = freePort()
  const asUser = ordinaryUser(folder)
  const data = join(folder, 'data')
  const init = [join(programs, 'initdb'), '-D', data, '-U', 'tollgate', '--auth=trust', '--locale=C', '--encoding=UTF8']
  const made = Bun.spawnSync([...asUser, ...init], { cwd: folder })
  if (made.exitCode !== 0) throw new Error(made.stderr.toString())
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', 'shared_buffers=256MB', '-c', 'max_wal_size=2GB']
  const command = [join(programs, 'postgres'), '-D', data, '-p', String(port), '-k', folder, ...settings]
  const child = Bun.spawn([...asUser, ...command], { cwd: folder, stdout: 'ignore', stderr: 'ignore' })
  const url = (name: string) => `postgres://tollgate@127.0.0.1:${port}/${name}`
  const admin = new SQL({ adapter: 'postgres', url: url('postgres'), max: 1 })
  while (!(await admin`SELECT 1`.catch(() => undefined))) await Bun.sleep(50)
  let count = 0
  return {
    pid: child.pid,
    async createDatabase() {
      const name = `bench_${++count}`
      await admin.unsafe(`CREATE DATABASE ${name}`)
      return url(name)
    },
    async [Symbol.asyncDispose]() {
      await admin.close()
      child.kill('SIGINT')
      await child.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** PostgreSQL refuses to run as root; Debian's package brings a user for it. */
function ordinaryUser(folder: string): string[] {
  if (process.getuid?.() !== 0) return []
  const idOf = (flag: string) => Number(Bun.spawnSync(['id', flag, 'postgres']).stdout.toString())
  const [user, group] = [idOf('-u'), idOf('-g')]
  chownSync(folder, user, group)
  return ['setpriv', `--reuid=${user}`, `--regid=${group}`, '--clear-groups']
}

function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

process.exitCode = await main()
