import { expect, test } from 'bun:test'
import { type StopSignal, supervise, type Worker } from './supervise.ts'

/** Workers that live and die as the test says, on a clock that it moves. */
function stage(count: number) {
  const workers: (Worker & { getReady(): void; end(how: number | string): void; readonly signals: StopSignal[] })[] = []
  const lines: string[] = []
  const pauses: { ms: number; over(): void }[] = []
  let nowMs = 0
  const supervision = supervise({
    count,
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
    startWorker() {
      const ready = Promise.withResolvers<void>()
      const ended = Promise.withResolvers<number | string>()
      const signals: StopSignal[] = []
      const worker = {
        pid: workers.length + 1,
        ready: ready.promise,
        ended: ended.promise,
        signals,
        signal: (name: StopSignal) => void signals.push(name),
        getReady: () => ready.resolve(),
        end: (how: number | string) => ended.resolve(how),
      }
      workers.push(worker)
      return worker
    },
    wait: (ms) => new Promise((resolve) => pauses.push({ ms, over: resolve })),
    report: (line) => lines.push(line),
  })
  const pass = (ms: number): void => {
    nowMs += ms
  }
  return { supervision, workers, lines, pauses, pass }
}

/** Everything that was set going by promises has happened. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

test('starts the first worker alone, and the others when it is ready', async () => {
  const { workers } = stage(3)
  await settled()
  expect(workers).toHaveLength(1)
  workers[0]?.getReady()
  await settled()
  expect(workers).toHaveLength(3)
})

test('does not restart a worker that cannot start', async () => {
  const { supervision, workers, pauses } = stage(3)
  workers[0]?.end(1)
  expect(await supervision.done).toBe(1)
  expect([workers.length, pauses.length]).toEqual([1, 0])
})

test('replaces a dead worker after pauses that double up to 30 s, and reset after a steady run', async () => {
  const { workers, pauses, lines, pass } = stage(2)
  workers[0]?.getReady()
  await settled()
  const seen: number[] = []
  for (let death = 0; death < 9; death++) {
    if (death === 8) pass(60_000)
    workers.at(-1)?.end('SIGKILL')
    await settled()
    const pause = pauses.at(-1)
    seen.push(pause?.ms ?? 0)
    pause?.over()
    await settled()
  }
  expect(seen).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 500])
  expect(workers).toHaveLength(11)
  expect(lines[0]).toBe('worker 2 ended (SIGKILL); another one is started in 0.5 s')
})

test('passes signals to every worker, and ends with the last one', async () => {
  const { supervision, workers } = stage(2)
  workers[0]?.getReady()
  await settled()
  supervision.stop('SIGTERM')
  supervision.stop('SIGINT')
  expect(workers.map(({ signals }) => signals)).toEqual([
    ['SIGTERM', 'SIGINT'],
    ['SIGTERM', 'SIGINT'],
  ])
  workers[0]?.end(0)
  await settled()
  const isDone = await Promise.race([supervision.done.then(() => true), settled().then(() => false)])
  expect(isDone).toBe(false)
  workers[1]?.end(0)
  expect(await supervision.done).toBe(0)
})

test('does not replace a worker after a stop during the pause', async () => {
  const { supervision, workers, pauses } = stage(2)
  workers[0]?.getReady()
  await settled()
  workers[1]?.end(137)
  await settled()
  supervision.stop('SIGTERM')
  workers[0]?.end(0)
  pauses[0]?.over()
  expect(await supervision.done).toBe(0)
  expect(workers).toHaveLength(2)
})

test('exits with 1 if a worker does not stop cleanly', async () => {
  const { supervision, workers } = stage(1)
  workers[0]?.getReady()
  await settled()
  supervision.stop('SIGTERM')
  workers[0]?.end('SIGKILL')
  expect(await supervision.done).toBe(1)
})
