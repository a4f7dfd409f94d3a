// Shares a range of seeds among processes, shows on the terminal how far they are, and prints what failed.

import { join } from 'node:path'
import type { FailedSeed, SeedProgress, SeedRange } from './run-seeds.ts'

export interface RunJobsOptions extends SeedRange {
  readonly jobs: number
}

/** Seeds that one process gets at a time: small enough that none waits long for the last. */
const shareMost = 500

export async function runJobs({ engine, first, seeds, jobs }: RunJobsOptions): Promise<boolean> {
  const startedMs = performance.now()
  const isTerminal = process.stdout.isTTY === true
  const stride = isTerminal ? 1 : Math.ceil(seeds / 20)
  const failed: FailedSeed[] = []
  let [done, steps, isWhole] = [0, 0, true]
  const show = () => {
    const seconds = (performance.now() - startedMs) / 1000
    const text = `${done} of ${seeds} seeds, ${Math.floor((100 * done) / seeds)} %, ${failed.length} failed, ${steps} steps, ${Math.round(seconds)} s`
    process.stdout.write(isTerminal ? `\r\x1b[K${text}` : `${text}\n`)
  }
  const hear = (progress: SeedProgress) => {
    done += progress.done
    steps += progress.steps
    if (progress.failed) {
      failed.push(progress.failed)
      console.log(
        `${isTerminal ? '\n' : ''}seed ${progress.failed.seed}: ${progress.failed.violation}\n  ${progress.failed.replay}`,
      )
    }
    if (done % stride === 0) show()
  }
  const size = Math.min(shareMost, Math.ceil(seeds / jobs))
  const shares = Array.from({ length: Math.ceil(seeds / size) }, (_, at) => ({
    engine,
    first: first + at * size,
    seeds: Math.min(size, seeds - at * size),
  }))
  const work = async () => {
    for (let share = shares.shift(); share && failed.length === 0; share = shares.shift()) {
      if (!(await runShare(share, hear))) isWhole = false
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  show()
  const isSound = failed.length === 0 && isWhole && done === seeds
  console.log(
    `${isTerminal ? '\n' : ''}${isSound ? `${seeds} worlds of the ${engine} ledger, no violation` : 'VIOLATIONS'}`,
  )
  return isSound
}

async function runShare({ engine, first, seeds }: SeedRange, hear: (progress: SeedProgress) => void): Promise<boolean> {
  const args = ['--child', '--engine', engine, '--first', String(first), '--seeds', String(seeds)]
  const child = Bun.spawn([process.execPath, 'run', join(import.meta.dir, 'simulate.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let rest = ''
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) hear(JSON.parse(line))
  }
  return (await child.exited) === 0
}
