// `npm run interruptions -- [--count N] [--seed N]`: breaks off N recorded streams at random and checks that every caller
// gets an error. Exit code 0 if all did; the seed of a run reproduces it.

import { parseArgs } from 'node:util'
import { runInterruptions } from './run-interruptions.ts'

const { values } = parseArgs({
  options: { count: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
})
const count = Number(values.count)
const seed = Number(values.seed)
if (!Number.isInteger(count) || count < 1 || !Number.isInteger(seed)) {
  console.error('--count takes a whole number from 1, --seed a whole number')
  process.exit(2)
}

/** Lines for a log, one line that changes for a person. */
const isTerminal = process.stdout.isTTY
const step = isTerminal ? 500 : Math.max(1, Math.floor(count / 10))
const { counts, violations } = await runInterruptions({
  count,
  seed,
  onProgress(done, { counts, violations }) {
    if (done % step !== 0 && done !== count) return
    const line = `${done}/${count}  ${counts.reported} reported  ${counts.whole} whole  ${violations.length} violations`
    process.stdout.write(isTerminal ? `\r${line}` : `${line}\n`)
  },
})
if (isTerminal) process.stdout.write('\n')
for (const violation of violations.slice(0, 20)) console.log(`\n${violation}`)
console.log(`\n${count} interruptions, seed ${seed}: ${counts.silent} silent, ${violations.length} violations`)
process.exitCode = violations.length === 0 ? 0 : 1
