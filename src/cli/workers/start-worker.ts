// A worker as a process: this very program again, told that it shares its port. It ends by itself when the process that
// started it is gone, so that nobody serves unwatched.

import { readProcess } from '../../config/config.ts'
import type { Worker } from './supervise.ts'

export const workerWord = 'serve-as-worker'

export function startWorker(): Worker {
  const ready = Promise.withResolvers<void>()
  const child = Bun.spawn([process.execPath, ...ownArguments(), workerWord], {
    // A group of its own: Ctrl-C in a terminal would otherwise reach it twice, from there and from its parent.
    detached: true,
    // As it is now, with what stood on the command line; Bun would hand on what this process was started with.
    env: readProcess().env,
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
    ipc: () => ready.resolve(),
  })
  return {
    pid: child.pid,
    ready: ready.promise,
    ended: child.exited.then((exitCode) => child.signalCode ?? exitCode),
    signal: (name) => child.kill(name),
  }
}

/** The single-file program is its own script; otherwise Bun is told which one to run. */
export function ownArguments(bunOptions: readonly string[] = ['--no-install']): readonly string[] {
  const isSingleFile = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:/~BUN/')
  return isSingleFile ? [] : [...bunOptions, Bun.main]
}
