// The cost of the ledger on PostgreSQL:
// `bun run bench/postgres.ts [seconds per cell] [ms per round trip] [requests at a time] [rounds]`. One, two and four processes
// on one hot wallet and on many wallets, against a private server that really syncs: once on the loopback, and once with
// the delay that a network between two machines has, since the rows that a commit locks stay locked over its round trips.
// One table for each, medians of rounds in which every cell has a turn.

import { cpus } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { createId, type WorkspaceId } from '../src/kernel/ids.ts'
import type { Nano } from '../src/kernel/money.ts'
import { createLedger } from '../src/ledger/create-ledger.ts'
import { verify } from '../src/ledger/verify.ts'
import type { Database } from '../src/store/database.ts'
import { migrate } from '../src/store/migrate.ts'
import { openDatabase } from '../src/store/open-database.ts'
import { findPostgresPrograms } from '../test/parts/postgres.ts'
import { startSlowNetwork } from '../test/parts/slow-network.ts'
import { costOf } from './measure.ts'
import type { ChildPlan, ChildResult } from './postgres-child.ts'
import { type Server, startServer } from './postgres-server.ts'
import { median } from './statistics.ts'

const warmupMs = 1500
const manyWallets = 200
/** Between two machines of one data centre, with a switch or two and a load balancer between them. */
const defaultRoundTripMs = 1
/** In each process: who adds a process has callers for it. */
const defaultConcurrency = 64
/** A million dollars, the most that one top-up takes: no cell ends for want of money. */
const funds = 1_000_000_000_000_000n as Nano

interface Cell {
  readonly name: string
  readonly wallets: number
  readonly processes: number
}

const one = 'one wallet'
const many = `${manyWallets} wallets`
const cells: readonly Cell[] = [1, 2, 4].flatMap((processes) => [
  { name: one, wallets: 1, processes },
  { name: many, wallets: manyWallets, processes },
])

interface Row extends Cell {
  readonly perSecond: number
  readonly gatewayMicros: number
  readonly serverMicros: number
  readonly chargesPerCommit: number
  /** Writes to rows of wallets; each is a lock until its commit. */
  readonly walletWritesPerCharge: number
  /** undefined = not counted on the loopback. */
  readonly tripsPerCommit: number | undefined
  readonly refused: number
}

async function main(): Promise<number> {
  const given = process.argv.slice(2).map(Number)
  const [seconds = 2, roundTripMs = defaultRoundTripMs, concurrency = defaultConcurrency, rounds = 3] = given
  const programs = findPostgresPrograms()
  if (programs === undefined || !given.every((number) => number > 0)) {
    console.error(
      programs ? 'expected seconds, ms per round trip, requests at a time, rounds' : 'PostgreSQL is not installed',
    )
    return 2
  }
  await using server = await startServer(programs)
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}, Bun ${Bun.version}`
  const load = `${concurrency} requests at a time in each process`
  console.log(`${machine}; ${load}, ${rounds} rounds with ${seconds} s for each cell, fsync on`)
  for (const delayMs of [0, roundTripMs]) {
    const measured: Row[][] = []
    for (let round = 1; round <= rounds; round++) {
      const rows: Row[] = []
      for (const cell of cells) {
        console.error(`${delayMs} ms, round ${round}: ${cell.name}, processes: ${cell.processes}`)
        rows.push(await measure(server, cell, { windowMs: seconds * 1000, delayMs, concurrency }))
      }
      measured.push(rows)
    }
    print(measured, delayMs)
  }
  return 0
}

interface Terms {
  readonly windowMs: number
  readonly delayMs: number
  readonly concurrency: number
}

async function measure(server: Server, cell: Cell, { windowMs, delayMs, concurrency }: Terms): Promise<Row> {
  const url = await server.createDatabase()
  const database = await openDatabase({ url, dataFolder: '' })
  using network = startSlowNetwork(server.port, delayMs)
  try {
    await migrate({ database, clock: systemClock })
    const workspaceIds = await fundWallets(database, cell.wallets)
    const seenUrl = delayMs > 0 ? url.replace(`:${server.port}/`, `:${network.port}/`) : url
    const plan: ChildPlan = { url: seenUrl, workspaceIds, concurrency, warmupMs, windowMs }
    const running = Array.from({ length: cell.processes }, () => runChild(plan))
    const look = async () => {
      const [commits, charged] = [await commitsOf(database), await chargesOf(database)]
      return { commits, charged, cpu: costOf(server.pid).cpuMicros, sends: network.sends }
    }
    await Bun.sleep(warmupMs + 300)
    const before = await look()
    await Bun.sleep(windowMs - 600)
    const after = await look()
    const results = await Promise.all(running)
    const { findings } = await verify(database)
    if (findings.length > 0) throw new Error(`the books are wrong: ${JSON.stringify(findings.slice(0, 3))}`)
    const total = (pick: (result: ChildResult) => number) => results.reduce((sum, result) => sum + pick(result), 0)
    const charged = Math.max(1, after.charged - before.charged)
    const commits = Math.max(1, after.commits - before.commits)
    const inWindow = Math.max(
      1,
      total((result) => result.charged),
    )
    return {
      ...cell,
      perSecond: total((result) => result.charged / result.seconds),
      gatewayMicros: total(({ cpuMicros }) => cpuMicros) / inWindow,
      serverMicros: (after.cpu - before.cpu) / charged,
      chargesPerCommit: charged / commits,
      walletWritesPerCharge: (await walletWritesOf(database)) / Math.max(1, await chargesOf(database)),
      tripsPerCommit: delayMs > 0 ? (after.sends - before.sends) / commits : undefined,
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

/** Transactions that wrote: each of them has an id. */
async function commitsOf({ sql }: Database): Promise<number> {
  const [row] = await sql<{ n: string }>`SELECT CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS n`
  return Number(row?.n ?? 0)
}

/** In all; complete once the processes that wrote are gone. */
async function walletWritesOf({ sql }: Database): Promise<number> {
  const [row] = await sql<{ n: bigint }>`SELECT n_tup_upd AS n FROM pg_stat_user_tables WHERE relname = 'balances'`
  return Number(row?.n ?? 0n)
}

const columns = ['processes', 'charges/s', 'µs gateway', 'µs server', 'charges/commit', 'wallet/charge', 'trips/commit']

function print(rounds: readonly (readonly Row[])[], delayMs: number): void {
  console.log(`\n${delayMs === 0 ? 'on the loopback' : `${delayMs} ms for each round trip to the server`}`)
  console.log(line(['', ...columns, 'refused']))
  for (const [at, cell] of cells.entries()) {
    const figure = (pick: (row: Row) => number | undefined, digits = 0) => {
      const figures = rounds.flatMap((rows) => (rows[at] && pick(rows[at])) ?? [])
      return figures.length === 0 ? '-' : median(figures).toFixed(digits)
    }
    const rates = [
      figure((row) => row.perSecond),
      figure((row) => row.gatewayMicros),
      figure((row) => row.serverMicros),
    ]
    const counts = [figure((row) => row.chargesPerCommit, 1), figure((row) => row.walletWritesPerCharge, 3)]
    const rest = [figure((row) => row.tripsPerCommit, 1), figure((row) => row.refused)]
    console.log(line([cell.name, String(cell.processes), ...rates, ...counts, ...rest]))
  }
  for (const name of [one, many]) {
    const ratios = rounds.map((rows) => rateIn(rows, name, 2) / rateIn(rows, name, 1)).sort((a, b) => a - b)
    const range = `${ratios[0]?.toFixed(2)} to ${ratios.at(-1)?.toFixed(2)}`
    console.log(`2 processes against 1, ${name}: ${median(ratios).toFixed(2)} × (${range})`)
  }
}

function rateIn(rows: readonly Row[], name: string, processes: number): number {
  return rows.find((row) => row.name === name && row.processes === processes)?.perSecond ?? 0
}

function line([name = '', ...figures]: readonly string[]): string {
  return `${name.padEnd(20)}${figures.map((figure) => figure.padStart(16)).join('')}`
}

process.exitCode = await main()
