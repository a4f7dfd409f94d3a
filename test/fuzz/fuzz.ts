// Fuzzing by hand, `npm run fuzz`. Shows how far it is on a terminal,
// prints a violation so that it can be run again, and ends with exit code 1 if there was one.

import { refuseOptions, scriptOptions } from '../parts/script-options.ts'
import { fuzz } from './target.ts'
import { targets } from './targets.ts'

const usage = `npm run fuzz -- [options]
  --target NAME   one of ${targets.map(({ name }) => name).join(', ')}; otherwise all
  --inputs N      inputs for each target (1000000)
  --seed N        the same inputs again`

const values = scriptOptions(usage, {
  target: { type: 'string' },
  inputs: { type: 'string', default: '1000000' },
  seed: { type: 'string' },
})
const inputs = Number(values.inputs)
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed)
const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target)
if (chosen.length === 0 || !Number.isSafeInteger(inputs) || inputs < 1 || !Number.isSafeInteger(seed)) {
  refuseOptions('--target is one of those below; --inputs and --seed are whole numbers', usage)
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
