// Several processes on one port: starts workers, restarts those that end, and stops them together.

import { readProcess } from '../config/config.ts'
import { environmentWithRoom, upstreamCallsVariable } from '../config/environment.ts'
import type { Clock } from '../kernel/clock.ts'

export interface Worker {
  readonly pid: number
  /** Resolves when it accepts requests; never resolves if it cannot start. */
  readonly ready: Promise<void>
  /** The exit code, or the name of a signal. */
  readonly ended: Promise<number | string>
  signal(name: StopSignal): void
}

export type StopSignal = 'SIGTERM' | 'SIGINT'

export interface SuperviseOptions {
  readonly count: number
  readonly clock: Clock
  startWorker(): Worker
  wait(milliseconds: number): Promise<void>
  /** A line for the operator. */
  report(line: string): void
}

export interface Supervision {
  /** Signals every worker: the first call drains, a second shortens the wait. */
  stop(signal: StopSignal): void
  /** Resolves when all have ended: to 0, or to 1 if none could be started or one failed to stop cleanly. */
  readonly done: Promise<number>
}

const pauseFirstMs = 500
const pauseMaxMs = 30_000
/** A worker that ran this long started successfully, so the pause before a restart is reset. */
const steadyMs = 60_000

export function supervise(options: SuperviseOptions): Supervision {
  const running = new Set<Worker>()
  let stopping = false
  let failed = false

  const launch = (): Worker => {
    const worker = options.startWorker()
    running.add(worker)
    void worker.ended.then(() => running.delete(worker))
    return worker
  }
  const keepAlive = async (first: Worker): Promise<void> => {
    let worker = first
    let startedMs = options.clock.monotonicMs()
    for (let pauseMs = pauseFirstMs; ; ) {
      const end = await worker.ended
      if (stopping) {
        failed ||= end !== 0
        return
      }
      if (options.clock.monotonicMs() - startedMs >= steadyMs) pauseMs = pauseFirstMs
      options.report(`worker ${worker.pid} ended (${end}); another one is started in ${pauseMs / 1000} s`)
      await options.wait(pauseMs)
      if (stopping) return
      pauseMs = Math.min(pauseMs * 2, pauseMaxMs)
      startedMs = options.clock.monotonicMs()
      worker = launch()
    }
  }
  const run = async (): Promise<number> => {
    // The first one starts alone: it migrates, creates what a first start creates, and reports wrong settings once.
    const first = launch()
    const end = await Promise.race([first.ready, first.ended])
    if (end !== undefined) return stopping && end === 0 ? 0 : 1
    const workers = [first]
    while (workers.length < options.count && !stopping) workers.push(launch())
    await Promise.all(workers.map(keepAlive))
    return failed ? 1 : 0
  }

  return {
    stop(signal) {
      stopping = true
      for (const worker of running) worker.signal(signal)
    },
    done: run(),
  }
}

export const workerWord = 'serve-as-worker'

export function startWorker(): Worker {
  const ready = Promise.withResolvers<void>()
  const child = Bun.spawn([process.execPath, ...ownArguments(), workerWord], {
    // In its own process group: Ctrl-C would otherwise reach it twice, from the terminal and from its parent.
    detached: true,
    // The current environment, including settings from the command line; Bun would pass on the original one.
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

/** The single-file program contains its script; otherwise Bun needs its path. */
export function ownArguments(bunOptions: readonly string[] = ['--no-install']): readonly string[] {
  const isSingleFile = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:/~BUN/')
  return isSingleFile ? [] : [...bunOptions, Bun.main]
}

/**
 * Restarts a gateway that was not started by its launcher (`bun src/main.ts`, or the single-file program), so that more
 * than Bun's default of 256 upstream calls can run. The process id and open files stay. Returns if nothing needs to be
 * done, or after a warning if it is not possible.
 */
export function startWithRoom(env: Readonly<Record<string, string | undefined>>, args: readonly string[]): void {
  const environment = environmentWithRoom(env)
  if (environment === undefined) return
  try {
    process.execve?.(process.execPath, [process.execPath, ...ownArguments(process.execArgv), ...args], environment)
  } catch {
    // Not available on every system; then only the warning remains.
  }
  process.stderr.write(
    `warning: ${upstreamCallsVariable} is not set, so 256 upstream calls run at a time and the next one waits. Start with bin/tollgate, or set it to 65000.\n`,
  )
}
