// Crash after crash on one engine: data folders and databases, turns on the machine, and the sums at the end. On
// PostgreSQL several sites take turns, because a dead replica's holds are open for some twenty seconds and waiting
// needs no core.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FailpointName, failpointNames } from '../../src/kernel/failpoint.ts'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { Payer } from '../parts/crash-topups.ts'
import { type CrashUpstream, startCrashUpstream } from '../parts/crash-upstream.ts'
import { upstreamConfig } from '../parts/gateway.ts'
import { sharedPostgres } from '../parts/postgres.ts'
import { type CycleResult, runCycle, runningLeast, type Site } from './cycle.ts'

export type Engine = 'sqlite' | 'postgres'

export interface CyclesOptions {
  readonly engine: Engine
  readonly cycles: number
  onCycle?(result: CycleResult, counted: number): void
}

export interface CyclesSummary {
  /** Those with enough streams running at the kill. */
  readonly cycles: number
  /** Those that died too early to count; checked all the same. */
  readonly early: number
  readonly results: readonly CycleResult[]
}

/** Repeats for kills that came too early; one in ten is usual. */
const earlyMax = 5
const tooEarly = `the gateway died again and again before ${runningLeast} streams ran; is this machine busy?`

const sitesMax: Record<Engine, number> = { sqlite: 1, postgres: 5 }

export async function runCycles({ engine, cycles, onCycle = () => {} }: CyclesOptions): Promise<CyclesSummary> {
  const crashUpstream = startCrashUpstream()
  const sites: Site[] = []
  const results: CycleResult[] = []
  const takeTurn = createTurns()
  const nextFailpoint = shuffledFailpoints()
  let begun = 0
  let counted = 0
  const runSite = async (site: Site) => {
    while (begun < cycles) {
      begun++
      const result = await runCycle(site, { failpoint: nextFailpoint(), takeTurn })
      results.push(result)
      crashUpstream.upstream.calls.length = 0
      if (result.running >= runningLeast) counted++
      else if (results.length - counted > earlyMax + cycles) throw new Error(tooEarly)
      else begun--
      onCycle(result, counted)
    }
  }
  try {
    for (let at = 0; at < Math.min(cycles, sitesMax[engine]); at++) sites.push(await createSite(engine, crashUpstream))
    await Promise.all(sites.map(runSite))
    return { cycles: counted, early: results.length - counted, results }
  } finally {
    crashUpstream.upstream.stop()
    for (const { dataFolder } of sites) rmSync(dataFolder, { recursive: true, force: true })
  }
}

/** A gateway that was started once and stopped: with its first key and its opening credit. */
export async function createSite(engine: Engine, { upstream }: CrashUpstream): Promise<Site> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'tollgate-crash-'))
  const configPath = join(dataFolder, 'tollgate.yaml')
  writeFileSync(configPath, upstreamConfig(upstream.url))
  const databaseUrl = engine === 'postgres' ? await (await sharedPostgres()).createDatabase() : undefined
  const data = { dataFolder, databaseUrl, configPath }
  const gateway = await startCrashGateway(data)
  await gateway.stop()
  return { ...data, payer: new Payer(dataFolder), asked: 0, receipts: [], known: new Set() }
}

/** All nine before any comes again, in a new order each time. */
function shuffledFailpoints(): () => FailpointName {
  let left: FailpointName[] = []
  return () => {
    if (left.length === 0) left = [...failpointNames]
    const [name = 'mid_stream'] = left.splice(Math.floor(Math.random() * left.length), 1)
    return name
  }
}

function createTurns(): () => Promise<() => void> {
  let last = Promise.resolve()
  return async () => {
    const before = last
    const turn = Promise.withResolvers<void>()
    last = turn.promise
    await before
    return turn.resolve
  }
}
