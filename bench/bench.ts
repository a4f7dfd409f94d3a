// Runs the benchmark: starts the fake upstream and every contender, measures them in turns, round after round, and prints
// the table. Contenders stay up through the whole run and only one is under load at a time.

import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cell, PATHS, requestBody, requestHeaders } from './cells.ts'
import type { Contender, Running, Setting } from './contenders/contender.ts'
import { launch } from './contenders/launch.ts'
import type { LoadPlan, LoadResult } from './load.ts'
import { type Options, readOptions, USAGE } from './options.ts'
import { type Measurement, summarize } from './summary.ts'
import { renderErrors, renderLimits, renderTable } from './table.ts'

interface Entry {
  readonly contender: Contender
  readonly version: string
  readonly running: Running
}

async function main(): Promise<number> {
  const options = readOptions(Bun.argv.slice(2))
  if ('wrong' in options) {
    console.error(options.wrong ? `${options.wrong}\n\n${USAGE}` : USAGE)
    return options.wrong ? 2 : 0
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
  const stops: (() => Promise<void>)[] = []
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort())
  try {
    const upstream = await launch({
      name: 'upstream',
      folder,
      command: [process.execPath, '--no-install', join(import.meta.dir, 'upstream.ts')],
    })
    if ('failed' in upstream) throw new Error(`the fake upstream ${upstream.failed}`)
    stops.push(upstream.stop)
    const upstreamUrl = `http://127.0.0.1:${upstream.port}`
    const setting = { upstreamUrl, upstreamPid: upstream.pid, folder, peers: options.peers }
    const { entries, absent } = await startAll(options.contenders, setting, stops)
    const measurements = await measureRounds(entries, options, interruption.signal)
    if (interruption.signal.aborted) return 130
    print(measurements, entries, absent, options)
    return 0
  } finally {
    await Promise.all(stops.map((stop) => stop()))
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startAll(contenders: readonly Contender[], setting: Setting, stops: (() => Promise<void>)[]) {
  const entries: Entry[] = []
  const absent: string[] = []
  for (const contender of contenders) {
    progress(`starting ${contender.name}`)
    const start = await contender.start(setting)
    if ('absent' in start) {
      absent.push(`${contender.name}: ${start.absent}`)
      continue
    }
    stops.push(start.running.stop)
    entries.push({ contender, version: start.version, running: start.running })
  }
  return { entries, absent }
}

async function measureRounds(
  entries: readonly Entry[],
  options: Options,
  interrupted: AbortSignal,
): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  for (let round = 1; round <= options.rounds; round++) {
    for (const cell of options.cells) {
      for (const entry of entries) {
        if (entry.contender.cells === 'streams' && cell.events === 0) continue
        progress(`round ${round} of ${options.rounds}: ${cell.id}, ${entry.contender.name}`)
        const result = await measure(entry, cell, options, interrupted)
        if (interrupted.aborted) return measurements
        if (result) measurements.push({ cell: cell.id, contender: entry.contender.name, round, result })
      }
    }
  }
  progress('')
  return measurements
}

async function measure(
  { running }: Entry,
  cell: Cell,
  options: Options,
  interrupted: AbortSignal,
): Promise<LoadResult | undefined> {
  const call = running.call(cell.surface)
  if (!call) return undefined
  const plan: LoadPlan = {
    port: running.port,
    path: PATHS[cell.surface],
    headers: [call.headers, ...(call.otherHeaders ?? [])].map((headers) => ({
      ...requestHeaders(cell.surface),
      ...headers,
    })),
    body: requestBody(cell, call.model),
    connections: cell.connections,
    warmupMs: options.warmupMs,
    windowMs: options.windowMs,
    pid: running.pid,
    eventsExpected: Math.max(0, cell.events - (call.eventsFewer ?? 0)),
  }
  const load = Bun.spawn([process.execPath, '--no-install', join(import.meta.dir, 'load.ts')], {
    stdin: new Blob([JSON.stringify(plan)]),
    stdout: 'pipe',
    stderr: 'inherit',
    signal: interrupted,
  })
  const output = await new Response(load.stdout).text()
  return interrupted.aborted ? undefined : (JSON.parse(output) as LoadResult)
}

function print(measurements: Measurement[], entries: readonly Entry[], absent: string[], options: Options): void {
  const versions = entries.map((entry) => `${entry.contender.name}: ${entry.version}`)
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}, Bun ${Bun.version}`
  if (options.json) {
    console.log(JSON.stringify({ machine, versions, absent, measurements }))
    return
  }
  const rows = summarize(measurements, options.cells)
  const seconds = options.windowMs / 1000
  console.log(
    `${machine}; medians of ${options.rounds} rounds of ${seconds} s in turns; × = ratio to bare, within rounds`,
  )
  console.log(versions.join(' · '))
  for (const line of absent) console.log(`skipped ${line}`)
  console.log(`\n${renderTable(rows, options.cells)}\n`)
  for (const line of renderErrors(rows)) console.log(line)
  for (const line of renderLimits(measurements, options.cells)) console.log(line)
}

/** One line that replaces itself on a terminal; nothing where output is kept. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`)
}

process.exitCode = await main()
