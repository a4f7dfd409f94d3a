// Runs the benchmark: starts the fake upstream and every contender, measures them in turns, round after round, and prints
// the table. Contenders stay up through the whole run and only one is under load at a time.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { type Cell, PATHS, requestBody, requestHeaders } from './cells.ts'
import type { Contender, Running, Setting } from './contenders/contender.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { tollgate } from './contenders/tollgate.ts'
import { judge, renderVerdicts } from './limits.ts'
import type { LoadPlan, LoadResult } from './load.ts'
import { type Options, readOptions, WARM_UP_SECONDS_MAX } from './options.ts'
import { kindOf, type Probe, probe, type Refusal } from './probe.ts'
import { machineFacts, machineLine, type RequestsReport, writeResult } from './results.ts'
import { runLoad } from './run-load.ts'
import { type Measurement, summarize } from './summary.ts'
import { renderNotes, renderTable } from './table.ts'
import { writeReadme } from './write-readme.ts'

interface Entry {
  readonly contender: Contender
  readonly version: string
  readonly running: Running
  /** By kind of cell. */
  readonly probes: ReadonlyMap<string, Probe>
}

async function main(): Promise<number> {
  const options = readOptions(Bun.argv.slice(2))
  if ('message' in options) {
    console[options.isWrong ? 'error' : 'log'](options.message)
    return options.isWrong ? 2 : 0
  }
  if (options.render) {
    writeReadme()
    return 0
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
  const stops: (() => Promise<void>)[] = []
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort())
  try {
    const upstream = await startUpstream(folder)
    stops.push(upstream.stop)
    const { peersFolder, installPeers } = options
    const setting = { upstreamUrl: upstream.url, upstreamPid: upstream.pid, folder, peersFolder, installPeers }
    const { entries, absent } = await startAll(options, setting, stops)
    const cold = await measureCold(entries, options, interruption.signal)
    const measurements = await measureRounds(entries, options, interruption.signal)
    if (interruption.signal.aborted) return 130
    report({ measurements, cold, entries, absent, options })
    return 0
  } finally {
    await Promise.all(stops.map((stop) => stop()))
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startAll({ contenders, cells }: Options, setting: Setting, stops: (() => Promise<void>)[]) {
  const entries: Entry[] = []
  const absent: string[] = []
  for (const contender of contenders) {
    progress(`starting ${contender.name}`)
    const start = await contender.start(setting)
    if ('absent' in start) {
      // A table without the one it is about would only look like a result.
      if (contender === tollgate) throw new Error(`tollgate: ${start.absent}`)
      absent.push(`${contender.name}: ${start.absent}`)
      continue
    }
    stops.push(start.running.stop)
    const probes = new Map<string, Probe>()
    for (const cell of cells) {
      const kind = kindOf(cell)
      if (isFor(contender, cell) && !probes.has(kind)) probes.set(kind, await probe(start.running, cell))
    }
    entries.push({ contender, version: start.version, running: start.running, probes })
  }
  return { entries, absent }
}

function isFor(contender: Contender, cell: Cell): boolean {
  return contender.cells === 'all' || cell.events > 0
}

async function measureRounds(
  entries: readonly Entry[],
  options: Options,
  interrupted: AbortSignal,
): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  await warmUp(entries, options, interrupted)
  for (let round = 1; round <= options.rounds; round++) {
    for (const cell of options.cells) {
      for (const entry of entries) {
        const probed = entry.probes.get(kindOf(cell))
        if (!isFor(entry.contender, cell) || !probed || 'refused' in probed) continue
        progress(`round ${round} of ${options.rounds}: ${cell.id}, ${entry.contender.name}`)
        const result = await measure(entry.running, cell, probed.eventsFewer, options, interrupted)
        if (interrupted.aborted) return measurements
        if (result) measurements.push({ cell: cell.id, contender: entry.contender.name, round, result })
      }
    }
  }
  progress('')
  return measurements
}

/** The cost of the first requests after a start, before the code is compiled: CPU per request in the first cell of JSON. */
async function measureCold(
  entries: readonly Entry[],
  options: Options,
  interrupted: AbortSignal,
): Promise<readonly string[]> {
  const cell = options.cells.find(({ events }) => events === 0)
  if (cell === undefined) return []
  const lines: string[] = []
  for (const { contender, running, probes } of entries) {
    const probed = probes.get(kindOf(cell))
    if (probed === undefined || 'refused' in probed || contender.cells !== 'all') continue
    progress(`cold: ${contender.name}`)
    const result = await measure(running, cell, probed.eventsFewer, { ...options, warmupMs: 0 }, interrupted)
    if (result) lines.push(`${contender.name} ${(result.cpuMicros / result.requests).toFixed(0)}`)
  }
  return [`Cold (${cell.id}, first ${options.windowMs / 1000} s after the start), CPU µs/request: ${lines.join(' · ')}`]
}

/**
 * Compilers and lazy imports are done before anything is measured. JavaScriptCore compiles for about 30,000 requests; before
 * that a quarter of a request's CPU is the compiler's.
 */
async function warmUp(entries: readonly Entry[], options: Options, interrupted: AbortSignal): Promise<void> {
  for (const { contender, running, probes } of entries) {
    for (const [kind, probed] of probes) {
      const cell = options.cells.find((candidate) => kindOf(candidate) === kind)
      if (!cell || 'refused' in probed || interrupted.aborted) continue
      progress(`warming up ${contender.name}`)
      const few = { ...cell, connections: 32, arrivalsPerSecond: 0, waitMs: 0, promptBytes: 1_000 }
      const window = { ...options, warmupMs: 0, windowMs: Math.max(500, options.windowMs) }
      const giveUpAt = systemClock.monotonicMs() + WARM_UP_SECONDS_MAX * 1000
      let served = 0
      while (served < options.warmRequests && systemClock.monotonicMs() < giveUpAt && !interrupted.aborted) {
        const result = await measure(running, few, probed.eventsFewer, window, interrupted)
        served += (result?.requests ?? 0) + (result?.events ?? 0)
      }
    }
  }
}

async function measure(
  running: Running,
  cell: Cell,
  eventsFewer: number,
  options: Options,
  interrupted: AbortSignal,
): Promise<LoadResult | undefined> {
  const call = running.call(cell.surface, cell.provider)
  if (!call) return undefined
  const plan: LoadPlan = {
    port: running.port,
    path: call.path ?? PATHS[cell.surface],
    headers: [call.headers, ...(call.otherHeaders ?? [])].map((headers) => ({
      ...requestHeaders(cell.surface),
      ...headers,
    })),
    bodies: [requestBody(cell, call.model)],
    connections: cell.connections,
    arrivalsPerSecond: cell.arrivalsPerSecond,
    // Once round all streams, so that they no longer begin together.
    warmupMs: options.warmupMs + cell.waitMs,
    windowMs: options.windowMs + 2 * cell.waitMs,
    pid: running.pid,
    eventsExpected: Math.max(0, cell.events - eventsFewer),
  }
  return runLoad(plan, interrupted)
}

interface Run {
  readonly measurements: readonly Measurement[]
  readonly cold: readonly string[]
  readonly entries: readonly Entry[]
  readonly absent: readonly string[]
  readonly options: Options
}

function report({ measurements, cold, entries, absent, options }: Run): void {
  const { cells, rounds, windowMs } = options
  const facts = machineFacts()
  const versions = entries.map((entry) => `${entry.contender.name}: ${entry.version}`)
  if (options.json) console.log(JSON.stringify({ ...facts, versions, absent, measurements }))
  const run: RequestsReport = {
    ...facts,
    method: `medians of ${rounds} rounds of ${windowMs / 1000} s in turns, warm (${options.warmRequests} requests of each kind before); × = ratio to bare, within rounds`,
    versions,
    absent,
    cells: cells.map(({ id }) => id),
    rows: summarize(measurements, cells),
    refusals: refusalsOf(entries, cells),
    cold,
    verdicts: judge(measurements, cells),
  }
  if (options.write) {
    writeResult('requests', run)
    writeReadme()
  }
  if (options.json) return
  console.log(`${machineLine(run)}; ${run.method}`)
  console.log(versions.join(' · '))
  for (const line of absent) console.log(`skipped ${line}`)
  console.log(`\n${renderTable(run.rows, cells, run.refusals)}\n`)
  for (const line of [...renderNotes(run.rows, run.refusals), ...cold, ...renderVerdicts(run.verdicts)])
    console.log(line)
}

function refusalsOf(entries: readonly Entry[], cells: readonly Cell[]): Refusal[] {
  return entries.flatMap(({ contender, probes }) =>
    [...probes].flatMap(([kind, probed]) => {
      // The yardsticks are not expected to; their place in such a cell is their twin's.
      if (!('refused' in probed) || ['direct', 'bare', 'bare-rewrite', 'nginx'].includes(contender.name)) return []
      const ofKind = cells.filter((cell) => kindOf(cell) === kind).map(({ id }) => id)
      return [{ contender: contender.name, reason: probed.refused, cells: ofKind }]
    }),
  )
}

/** One line that replaces itself on a terminal; nothing where output is kept. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`)
}

process.exitCode = await main()
