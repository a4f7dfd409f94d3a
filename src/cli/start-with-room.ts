// A gateway that was not started by its launcher (`bun src/main.ts`, or the single-file program) becomes itself once more,
// with room for more than Bun's 256 upstream calls. The process id and its open files stay the same.

import { environmentWithRoom, upstreamCallsVariable } from '../config/upstream-calls.ts'
import { ownArguments } from './workers/start-worker.ts'

/** Returns only where nothing is to be done, or nothing can be: then it says so. */
export function startWithRoom(env: Readonly<Record<string, string | undefined>>, args: readonly string[]): void {
  const environment = environmentWithRoom(env)
  if (environment === undefined) return
  try {
    process.execve?.(process.execPath, [process.execPath, ...ownArguments(process.execArgv), ...args], environment)
  } catch {
    // Not on every system; the warning below is what remains.
  }
  process.stderr.write(
    `warning: ${upstreamCallsVariable} is not set, so 256 upstream calls run at a time and the next one waits. Start with bin/tollgate, or set it to 65000.\n`,
  )
}
