// Fuzzing by hand: `bun run test/fuzz/fuzz.ts [--target NAME] [--inputs N] [--seed S]`. Shows how far it is on a terminal,
// prints a violation so that it can be run again, and ends with exit code 1 if there was one.

import { parseArgs } from 'node:util'
import { fuzz } from './target.ts'
import { targets } from './targets.ts'

const { values } = parseArgs({
  options: {
    target: { type: 'string' },
    inputs: { type: 'string', default: '1000000' },
    seed: { type: 'string' },
  },
})
const inputs = Number(values.inputs)
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed)
const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target)
if (chosen.length === 0 || !Number.isSafeInteger(inputs) || inputs < 1 || !Number.isSafeInteger(seed)) {
  console.error(
    `--target is one of ${targets.map(({ name }) => name).join(', ')}; --inputs and --seed are whole numbers`,
  )
  process.exit(2)
}

const isTerminal = process.stderr.isTTY === true
console.log(`seed ${seed}, ${inputs.toLocaleString('en')} inputs for each target`)
for (const target of chosen) {
  const startedMs = performance.now()
  const seconds = (): number => (performance.now() - startedMs) / 1000
  const show = (done: number): string => {
    const rate = Math.round(done / seconds()).toLocaleString('en')
    return `${target.name.padEnd(18)} ${done.toLocaleString('en').padStart(11)} inputs ${rate.padStart(8)}/s`
  }
  const outcome = await fuzz(target, inputs, seed, (done) => {
    if (isTerminal) process.stderr.write(`\r${show(done)} `)
  })
  if (isTerminal) process.stderr.write('\r')
  console.log(`${show(outcome.inputs)}  ${outcome.violation === undefined ? 'no violation' : 'VIOLATION'}`)
  if (outcome.violation === undefined) continue
  console.log(outcome.violation)
  process.exitCode = 1
}
