// `npm run simulate -- [--seeds N] [--first S] [--engine embedded|shared] [--jobs J]`: the worlds of N seeds, in J processes.
// `npm run simulate -- --seed S [--trace] [--without 3,7]`: one world, again. Exit code 1 if a promise was broken.

import { availableParallelism } from 'node:os'
import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { type EngineName, planOf } from './plan.ts'
import { runJobs } from './run-jobs.ts'
import { runSeeds } from './run-seeds.ts'
import { simulateSeed } from './simulate-seed.ts'

const usage = `npm run simulate -- [options]
  --seeds N       worlds to simulate (1000)
  --first N       the first of their seeds (1)
  --engine E      embedded or shared (embedded)
  --jobs N        processes (one for each processor)
  --seed N        one world alone
  --trace         with --seed: every step
  --without a,b   with --seed: leave out these actors`

const values = scriptOptions(usage, {
  seeds: { type: 'string', default: '1000' },
  first: { type: 'string', default: '1' },
  seed: { type: 'string' },
  engine: { type: 'string', default: 'embedded' },
  jobs: { type: 'string', default: String(availableParallelism()) },
  trace: { type: 'boolean', default: false },
  without: { type: 'string', default: '' },
  /** Set for the processes of a run: progress as lines of JSON. */
  child: { type: 'boolean', default: false },
})

function fail(text: string): never {
  return refuseOptions(text, usage)
}

function whole(name: 'seeds' | 'first' | 'seed' | 'jobs'): number {
  const value = Number(values[name])
  return Number.isSafeInteger(value) && value >= 1 ? value : fail(`--${name} takes a whole number from 1`)
}

async function showOne(seed: number, engine: EngineName): Promise<boolean> {
  const without = new Set(values.without.split(',').filter(Boolean).map(Number))
  const { actors, troubles, hasFaults } = planOf(seed, engine)
  const wrong = troubles.map(({ kind, atMs }) => `${kind} at ${atMs} ms`).join(', ') || 'no crash'
  console.log(
    `seed ${seed}, ${engine}: ${actors.length - without.size} actors, ${wrong}, ${hasFaults ? 'a store that fails' : 'a good store'}`,
  )
  const { violations, steps } = await simulateSeed({
    seed,
    engine,
    without,
    ...(values.trace ? { trace: console.log } : {}),
  })
  for (const violation of violations) console.log(violation)
  console.log(`${steps} steps, ${violations.length === 0 ? 'no violation' : `${violations.length} VIOLATIONS`}`)
  return violations.length === 0
}

const engine: EngineName =
  values.engine === 'embedded' || values.engine === 'shared' ? values.engine : fail('--engine is embedded or shared')
const range = { engine, first: whole('first'), seeds: whole('seeds') }
let isSound: boolean
if (values.seed !== undefined) isSound = await showOne(whole('seed'), engine)
else if (values.child) {
  isSound = await runSeeds({ ...range, onProgress: (line) => console.log(JSON.stringify(line)) })
} else isSound = await runJobs({ ...range, jobs: Math.min(whole('jobs'), range.seeds) })
// A private PostgreSQL server would keep this process waiting.
process.exit(isSound ? 0 : 1)
