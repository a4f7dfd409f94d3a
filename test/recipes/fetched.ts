// Programs that are too large or too foreign to be dependencies: fetched once into the system's temporary folder, by
// version, and kept there for the next run. Where they cannot be had, tests are skipped by name with the reason.

import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder with the program in it, or why there is none. */
export type Fetched = { readonly folder: string } | { readonly reason: string }

export interface Step {
  /** As a reason names it when it fails. */
  readonly what: string
  readonly command: readonly string[]
}

/** Names the folder that keeps them, for a run whose temporary folder does not outlive it. */
export const fetchedVariable = 'TOLLGATE_TEST_FETCHED'

/** Enough for some hundred megabytes over a slow line; without a network the tools give up long before. */
const fetchMs = 300_000

/**
 * Runs the steps in a new folder and puts it in its place when all have worked, so that runs at the same time never see
 * half of one.
 */
export async function fetchOnce(name: string, steps: (folder: string) => Step[]): Promise<Fetched> {
  const folder = join(process.env[fetchedVariable] ?? tmpdir(), `tollgate-${name}`)
  if (existsSync(folder)) return { folder }
  const making = mkdtempSync(`${folder}-making-`)
  try {
    for (const step of steps(making)) {
      const problem = await run(step)
      if (problem !== undefined) return { reason: problem }
    }
    // Somebody else may have been faster; theirs is as good.
    if (!existsSync(folder)) renameSync(making, folder)
    return { folder }
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
}

async function run({ what, command }: Step): Promise<string | undefined> {
  const [program = ''] = command
  if (Bun.which(program) === null) return `there is no ${program}`
  const child = Bun.spawn([...command], {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: fetchMs,
    killSignal: 'SIGKILL',
  })
  const [errors, exitCode] = await Promise.all([child.stderr.text(), child.exited])
  if (exitCode === 0) return undefined
  const line = errors.split('\n').find((each) => /error/i.test(each)) ?? `exit code ${exitCode}`
  return `${what} failed: ${line.trim().slice(0, 200)}`
}
