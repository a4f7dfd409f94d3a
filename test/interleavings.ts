// The long run of the ledger's interleavings: `bun run test/interleavings.ts [stories] [seed]`, 100,000 by default. Ends
// with 0 if every hold ended exactly once and every store was right; otherwise it prints the story that broke it.

import { runInterleavings } from './parts/ledger-interleavings.ts'

const [stories = 100_000, seed = Math.floor(Math.random() * 2 ** 31)] = process.argv.slice(2).map(Number)
if (!Number.isInteger(stories) || stories < 1 || !Number.isInteger(seed)) {
  console.error('expected a number of stories, and a seed if it is to be the same run again')
  process.exit(2)
}

const startedMs = performance.now()
const isTerminal = process.stdout.isTTY === true
/** A terminal sees it move; a log gets twenty lines. */
const step = isTerminal ? Math.ceil(stories / 1000) : Math.ceil(stories / 20)

function show(done: number): void {
  if (done % step !== 0 && done !== stories) return
  const seconds = Math.round((performance.now() - startedMs) / 1000)
  const text = `${done} of ${stories} stories, ${Math.floor((100 * done) / stories)} %, ${seconds} s`
  process.stdout.write(isTerminal ? `\r\x1b[K${text}` : `${text}\n`)
}

console.log(`seed ${seed}`)
try {
  await runInterleavings({ stories, seed, onProgress: show })
  console.log(
    `${isTerminal ? '\n' : ''}${stories} stories played; every hold ended exactly once, and the books are right`,
  )
} catch (thrown) {
  console.error(isTerminal ? '\n' : '', thrown)
  process.exit(1)
}
