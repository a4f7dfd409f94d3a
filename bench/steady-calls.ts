// Calls with a prompt of 1 KB to one gateway at a steady rate: how long each took, what the gateway spent, and how often its
// event loop stood still.

import { readFileSync } from 'node:fs'
import { systemClock } from '../src/kernel/clock.ts'
import { requestBody } from './cells.ts'
import { percentile } from './statistics.ts'

export const stallSeconds = 0.05
const smallCall = { surface: 'chat', events: 0, paceMs: 0, waitMs: 0, promptBytes: 1024 } as const

export interface CallTarget {
  readonly url: string
  readonly key: string
  readonly token: string
  readonly pid: number
}

export interface CallPlan {
  readonly model: string
  /** Calls a second. */
  readonly rate: number
  readonly seconds: number
}

export interface Window {
  /** Milliseconds of each call. */
  readonly taken: readonly number[]
  readonly cpuPercent: number
  /** Samples of the event loop that were later than `stallSeconds`. */
  readonly stalls: number
  readonly failed: number
  /** The error of the first of them. */
  readonly firstFailure: string
}

/** At fixed times, whether or not earlier ones are answered: a gateway that stalls does not get a pause for it. */
export async function drive({ url, key, token, pid }: CallTarget, { model, rate, seconds }: CallPlan): Promise<Window> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = requestBody(smallCall, model)
  const taken: number[] = []
  let failed = 0
  let firstFailure = ''
  const call = async (dueAt: number): Promise<void> => {
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
    const text = await response.text()
    if (!response.ok && failed++ === 0) firstFailure = `${response.status} ${text.slice(0, 200)}`
    taken.push(systemClock.monotonicMs() - dueAt)
  }
  const stalls = () => readStalls(url, token)
  const stallsBefore = await stalls()
  const cpuBefore = cpuMs(pid)
  const startAt = systemClock.monotonicMs()
  const calls: Promise<void>[] = []
  for (let place = 0; place < rate * seconds; place++) {
    const dueAt = startAt + (place * 1000) / rate
    const wait = dueAt - systemClock.monotonicMs()
    if (wait > 0) await Bun.sleep(wait)
    calls.push(call(dueAt))
  }
  await Promise.all(calls)
  const cpuPercent = (100 * (cpuMs(pid) - cpuBefore)) / (systemClock.monotonicMs() - startAt)
  return { taken, cpuPercent, stalls: (await stalls()) - stallsBefore, failed, firstFailure }
}

/** Since the gateway started. */
export async function readStalls(url: string, token: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
  const value = (rest: string): number => {
    const line = metrics.split('\n').find((each) => each.startsWith(`tollgate_event_loop_delay_seconds_${rest}`))
    if (line === undefined) throw new Error('the metrics do not tell the delay of the event loop')
    return Number(line.split(' ').at(-1))
  }
  return value('count') - value(`bucket{le="${stallSeconds}"}`)
}

/** CPU time of all threads of a process, in user and system mode. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  // Ticks of a hundredth of a second, as Linux has them everywhere today.
  return 10 * (Number(fields[11]) + Number(fields[12]))
}

export function percentileOf(windows: readonly Window[], rank: number): number {
  return percentile(
    windows.flatMap(({ taken }) => taken),
    rank,
  )
}
