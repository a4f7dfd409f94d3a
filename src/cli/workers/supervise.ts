// Keeps a number of gateways alive on one port: starts them, starts the dead ones again, passes signals on, and ends
// when they have ended. It knows no process and no port; what a worker is it is told.

import type { Clock } from '../../kernel/clock.ts'

export interface Worker {
  readonly pid: number
  /** It takes requests; never comes true for one that cannot start. */
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
  /** Every call reaches every worker: the first drains, a second shortens the wait. */
  stop(signal: StopSignal): void
  /** When all have ended for good: 0, or 1 if none could be started or one failed to stop cleanly. */
  readonly done: Promise<number>
}

const pauseFirstMs = 500
const pauseMaxMs = 30_000
/** One that lived so long did not die of its start; the next pause is the first again. */
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
    // Alone: it migrates, makes what a first start makes, and says what is wrong with the settings once.
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
