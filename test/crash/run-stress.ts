// `npm run stress`: rounds of mixed calls on either engine in turn, with kill -9 and a store that hangs, fails to sync or is
// full. A line per round, a summary, and exit code 0 if nothing was broken.

import { findPostgresPrograms } from '../parts/postgres.ts'
import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import type { Engine } from './run-cycles.ts'
import { type StressResult, stress } from './stress.ts'

const usage = `npm run stress -- [options]
  --rounds N   rounds, on either engine in turn (6)
  --calls N    calls in each round, at most 2000 (2000)
  --stall N    seconds for which the store hangs, fails to sync or is full, five times a round (35)
  --engine E   sqlite, postgres or both (both)`

const values = scriptOptions(usage, {
  rounds: { type: 'string', default: '6' },
  calls: { type: 'string', default: '2000' },
  stall: { type: 'string', default: '35' },
  engine: { type: 'string', default: 'both' },
})
const [rounds, calls, stallSeconds] = [values.rounds, values.calls, values.stall].map(Number)
if (![rounds, calls, stallSeconds].every((value) => Number.isInteger(value) && Number(value) >= 1))
  refuseOptions('--rounds, --calls and --stall take a whole number from 1', usage)
if (Number(calls) > 2000) refuseOptions('--calls takes 2000 at most: each call has a different cost', usage)
const engines: readonly Engine[] = values.engine === 'both' ? ['sqlite', 'postgres'] : [values.engine as Engine]
if (!engines.every((engine) => engine === 'sqlite' || engine === 'postgres'))
  refuseOptions('--engine takes sqlite, postgres or both', usage)
if (engines.includes('sqlite') && Bun.which('strace') === null)
  refuseOptions('strace is not installed; install it, or say --engine postgres', usage)
if (engines.includes('postgres') && findPostgresPrograms() === undefined)
  refuseOptions('PostgreSQL is not installed; install it, or say --engine sqlite', usage)

// So that the gateways that run just now go too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

function lineOf(result: StressResult): string {
  const { answers, complete, replayed, unknown, chargedUnknown, uncharged, charges, kills, seconds, violations } =
    result
  return `${result.calls} calls, ${answers} answers: ${complete} complete (${replayed} replayed), ${unknown} unknown (${chargedUnknown} charged), ${uncharged} "nothing was charged"; ${charges} charges, ${kills} kills, ${seconds} s, ${violations.length} violations`
}

const results: StressResult[] = []
for (let round = 0; round < Number(rounds); round++) {
  const engine = engines[round % engines.length] as Engine
  const result = await stress({ engine, calls: Number(calls), stallSeconds: Number(stallSeconds) })
  results.push(result)
  console.log(`${engine.padEnd(8)}  ${round + 1}/${rounds}  ${lineOf(result)}`)
  for (const violation of result.violations) console.log(`    ${violation}`)
}
const sum = (of: (result: StressResult) => number) => results.reduce((total, result) => total + of(result), 0)
console.log(
  `\n${results.length} rounds, ${sum((result) => result.calls)} calls, ${sum((result) => result.charges)} charges, ${sum(({ unknown }) => unknown)} unknown outcomes of which ${sum(({ chargedUnknown }) => chargedUnknown)} were charged, ${sum(({ kills }) => kills)} kills, ${sum(({ violations }) => violations.length)} violations`,
)
process.exit(results.every(({ violations }) => violations.length === 0) ? 0 : 1)
