// Crash after crash on one engine: data folders and databases, turns on the machine, and the sums at the end. Several
// sites take turns: on PostgreSQL a dead replica's holds are open for ten seconds and more, and waiting needs no core.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RequestFailpoint, requestFailpoints } from '../../src/kernel/failpoint.ts'
import { withBooks } from '../parts/crash-books.ts'
import { Payer } from '../parts/crash-topups.ts'
import { type CrashUpstream, startCrashUpstream } from '../parts/crash-upstream.ts'
import { upstreamConfig } from '../parts/gateway.ts'
import { sharedPostgres } from '../parts/postgres.ts'
import { createTurns, type TakeTurn } from '../parts/turns.ts'
import { type CycleResult, runCycle, runningLeast, type Site, startOn } from './cycle.ts'

export type Engine = 'sqlite' | 'postgres'

export interface CyclesOptions {
  readonly engine: Engine
  readonly cycles: number
  /** Shared by all runs that use this machine's cores at the same time; absent = this is the only run. */
  readonly takeTurn?: TakeTurn
  /** One of this many cycles on PostgreSQL waits for the whole silence; absent = only the first does. */
  readonly satOutEvery?: number
  /** Holds of a dead process must be gone after this. */
  readonly reapedWithinMs: number
  onCycle?(result: CycleResult, counted: number): void
}

export interface CyclesSummary {
  /** Cycles with enough streams running at the kill. */
  readonly cycles: number
  /** Cycles that died too early to count; checked all the same. */
  readonly early: number
  readonly results: readonly CycleResult[]
}

/** Repeats for kills that came too early; one in ten is usual. */
const earlyMax = 5
const tooEarly = `the gateway died again and again before ${runningLeast} streams ran`

/** Each keeps a gateway, and on PostgreSQL a dozen of the server's connections. */
const sitesMax: Record<Engine, number> = { sqlite: 2, postgres: 8 }

export async function runCycles(options: CyclesOptions): Promise<CyclesSummary> {
  const {
    engine,
    cycles,
    takeTurn = createTurns(availableParallelism()),
    satOutEvery = Number.POSITIVE_INFINITY,
    reapedWithinMs,
    onCycle = () => {},
  } = options
  const sites: Site[] = []
  const results: CycleResult[] = []
  const nextFailpoint = shuffledFailpoints()
  let begun = 0
  let counted = 0
  const runSite = async (site: Site) => {
    while (begun < cycles) {
      const silence = begun++ % satOutEvery === 0 ? 'sat out' : 'skipped'
      const result = await runCycle(site, { failpoint: nextFailpoint(), takeTurn, silence, reapedWithinMs })
      results.push(result)
      site.crashUpstream.upstream.calls.length = 0
      if (result.running >= runningLeast) counted++
      else if (results.length - counted > earlyMax + cycles) throw new Error(tooEarly)
      else begun--
      onCycle(result, counted)
    }
  }
  try {
    const count = Math.min(cycles, sitesMax[engine])
    await Promise.all(
      Array.from({ length: count }, async () => {
        const site = await inTurn(takeTurn, () => createSite(engine, startCrashUpstream()))
        sites.push(site)
        await runSite(site)
      }),
    )
    return { cycles: counted, early: results.length - counted, results }
  } finally {
    for (const { crashUpstream, dataFolder } of sites) {
      crashUpstream.upstream.stop()
      rmSync(dataFolder, { recursive: true, force: true })
    }
  }
}

/** Limits that nothing reaches, so that every charge is also counted in a day and in a window that rolls. */
const countedEverywhere = JSON.stringify({
  spend: ['day', '5h'].map((window) => ({ subject: 'all', window, amount: String(10n ** 15n) })),
})

/** A gateway that was started once and stopped: with its first key and its opening credit. `database`: in place of a new one. */
export async function createSite(engine: Engine, crashUpstream: CrashUpstream, database?: string): Promise<Site> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'tollgate-crash-'))
  const configPath = join(dataFolder, 'tollgate.yaml')
  writeFileSync(configPath, upstreamConfig(crashUpstream.upstream.url))
  const databaseUrl = database ?? (engine === 'postgres' ? await (await sharedPostgres()).createMigrated() : undefined)
  const data = { dataFolder, databaseUrl, configPath }
  const gateway = await startOn(data)
  await gateway.stop()
  await withBooks(data, (database) =>
    database.transaction((sql) => sql`UPDATE workspaces SET limits = ${countedEverywhere}`),
  )
  const payer = new Payer(dataFolder)
  return { ...data, payer, crashUpstream, asked: 0, receipts: [], transfers: 0, known: new Set() }
}

/** All nine before any comes again, in a new order each time; the one with the longest wait first. */
function shuffledFailpoints(): () => RequestFailpoint {
  let left: RequestFailpoint[] = []
  return () => {
    if (left.length === 0) {
      left = requestFailpoints.filter((name) => name !== 'in_reap')
      return 'in_reap'
    }
    const [name = 'mid_stream'] = left.splice(Math.floor(Math.random() * left.length), 1)
    return name
  }
}

async function inTurn<T>(takeTurn: TakeTurn, work: () => Promise<T>): Promise<T> {
  const endTurn = await takeTurn()
  try {
    return await work()
  } finally {
    endTurn()
  }
}
