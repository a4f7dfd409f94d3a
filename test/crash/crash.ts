// `npm run crash`: kills the gateway N times on each engine while streams
// run and checks the ledger after every restart. A line per cycle, a summary, and exit code 0 if nothing was broken.

import { findPostgresPrograms } from '../parts/postgres.ts'
import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import type { CycleResult } from './cycle.ts'
import { type CyclesSummary, type Engine, runCycles } from './run-cycles.ts'

const usage = `npm run crash -- [options]
  --cycles N   kills on each engine (50)
  --engine E   sqlite, postgres or both (both)`

function readOptions(): { readonly cycles: number; readonly engines: readonly Engine[] } {
  const values = scriptOptions(usage, {
    cycles: { type: 'string', default: '50' },
    engine: { type: 'string', default: 'both' },
  })
  const cycles = Number(values.cycles)
  if (!Number.isInteger(cycles) || cycles < 1) return refuseOptions('--cycles takes a whole number from 1', usage)
  if (values.engine === 'both') return { cycles, engines: ['sqlite', 'postgres'] }
  if (values.engine === 'sqlite' || values.engine === 'postgres') return { cycles, engines: [values.engine] }
  return refuseOptions('--engine takes sqlite, postgres or both', usage)
}

function cycleLine(engine: Engine, result: CycleResult, counted: number, cycles: number): string {
  const { failpoint, killedBy, running, asked, complete, transfers, holdsLeft, reapedMs, laterKills, violations } =
    result
  const place = killedBy === 'failpoint' ? `killed at ${failpoint}` : `kill -9 (${failpoint} not reached)`
  const again = laterKills > 0 ? ` and ${laterKills} × ${failpoint}` : ''
  const holds = engine === 'postgres' ? `  ${holdsLeft} holds gone after ${(reapedMs / 1000).toFixed(1)} s` : ''
  const verdict = violations.length === 0 ? 'ok' : `${violations.length} VIOLATIONS`
  return `${engine.padEnd(8)}  ${String(counted).padStart(3)}/${cycles}  ${`${place}${again}`.padEnd(44)}  ${running} streams running  ${asked} calls  ${complete} complete  ${transfers} transfers${holds}  ${verdict}`
}

function summaryText(engine: Engine, { cycles, early, results }: CyclesSummary): string {
  const sum = (of: (result: CycleResult) => number) => results.reduce((total, result) => total + of(result), 0)
  const reached = Map.groupBy(
    results.filter(({ killedBy }) => killedBy === 'failpoint'),
    ({ failpoint }) => failpoint,
  )
  const places = [...reached].map(([name, { length }]) => `${name} ${length}`).join(', ')
  const lines = [
    `${engine}: ${cycles} cycles${early > 0 ? `, and ${early} that died before enough streams ran` : ''}`,
    `  ${sum(({ running }) => running)} streams running at the kill, ${sum(({ asked }) => asked)} calls, ${sum(({ complete }) => complete)} seen complete, ${sum(({ transfers }) => transfers)} transfers`,
    `  killed at: ${places}${places === '' ? '' : ', '}kill -9 at random ${results.filter(({ killedBy }) => killedBy === 'kill -9').length}, and once more in a reap ${sum(({ laterKills }) => laterKills)}`,
  ]
  if (engine === 'postgres') {
    const slowest = Math.max(...results.map(({ reapedMs }) => reapedMs))
    lines.push(
      `  ${sum(({ holdsLeft }) => holdsLeft)} holds left open, the last gone ${(slowest / 1000).toFixed(1)} s after the death`,
    )
  }
  lines.push(`  ${sum(({ topUpsLost }) => topUpsLost)} top-ups lost their answer and were sent again`)
  lines.push(`  ${sum(({ violations }) => violations.length)} violations`)
  return lines.join('\n')
}

async function crash(engine: Engine, cycles: number): Promise<boolean> {
  const summary = await runCycles({
    engine,
    cycles,
    satOutEvery: 10,
    // M5.
    reapedWithinMs: 60_000,
    onCycle(result, counted) {
      console.log(cycleLine(engine, result, counted, cycles))
      for (const violation of result.violations) console.log(`    ${violation}`)
    },
  })
  console.log(`\n${summaryText(engine, summary)}\n`)
  return summary.results.every(({ violations }) => violations.length === 0)
}

// So that the gateways that run just now go too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const options = readOptions()
let isSound = true
for (const engine of options.engines) {
  if (engine === 'postgres' && findPostgresPrograms() === undefined) {
    console.error('PostgreSQL is not installed; install it, or say --engine sqlite')
    process.exit(2)
  }
  isSound = (await crash(engine, options.cycles)) && isSound
}
// The private PostgreSQL server would keep this process waiting.
process.exit(isSound ? 0 : 1)
