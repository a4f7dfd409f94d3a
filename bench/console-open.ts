// Whether callers notice that somebody has the console open: the gateway's latency under a steady load, with and without
// an overview and a list of requests that follow it, round after round in turns. The pages are their calls; a browser on
// the same machine would be measured with them.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/kernel/clock.ts'
import { launch } from './contenders/launch.ts'
import { median, percentile } from './statistics.ts'

const usage = `bun run bench/console-open.ts [options]
  --rate N      calls a second (100)
  --seconds N   of each window (8)
  --rounds N    windows of each kind, in turns (6)`

const boundPercent = 10
const dayMs = 86_400_000
/** The overview asks every 30 s; here more often, so that every window has some of it. */
const overviewMs = 4_000
const warmupSeconds = 3

interface Target {
  readonly url: string
  readonly key: string
  readonly token: string
  readonly pid: number
}

interface Window {
  readonly p50: number
  readonly p99: number
  readonly cpuPercent: number
  readonly failed: number
  /** What the first of them was told. */
  readonly firstFailure: string
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      rate: { type: 'string', default: '100' },
      seconds: { type: 'string', default: '8' },
      rounds: { type: 'string', default: '6' },
      help: { type: 'boolean', default: false },
    },
  })
  const [rate, seconds, rounds] = [Number(values.rate), Number(values.seconds), Number(values.rounds)]
  if (values.help || ![rate, seconds, rounds].every((each) => Number.isInteger(each) && each > 0)) {
    console.log(usage)
    return values.help ? 0 : 2
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-console-open-'))
  const dataFolder = join(folder, 'data')
  mkdirSync(dataFolder, { mode: 0o700 })
  const environment = { TOLLGATE_PORT: '0', TOLLGATE_DATA: dataFolder, TOLLGATE_LOG: 'json' }
  const command = [join(import.meta.dir, '..', 'bin', 'tollgate')]
  const launched = await launch({ name: 'gateway', folder, command, environment })
  if ('failed' in launched) throw new Error(`the gateway ${launched.failed}`)
  try {
    const read = (name: string): string => readFileSync(join(dataFolder, name), 'utf8').trim()
    const url = `http://127.0.0.1:${launched.port}`
    const target = { url, key: read('first-key'), token: read('admin-token'), pid: launched.pid }
    return print(await measure(target, { rate, seconds, rounds }), { rate, seconds, rounds })
  } finally {
    await launched.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Plan {
  readonly rate: number
  readonly seconds: number
  readonly rounds: number
}

interface Measured {
  readonly closed: readonly Window[]
  readonly open: readonly Window[]
}

async function measure(target: Target, { rate, seconds, rounds }: Plan): Promise<Measured> {
  const closed: Window[] = []
  const open: Window[] = []
  await drive(target, rate, warmupSeconds)
  for (let round = 1; round <= rounds; round++) {
    // Whoever goes second meets a longer log; each kind does so every other time.
    const kinds = round % 2 === 0 ? (['open', 'closed'] as const) : (['closed', 'open'] as const)
    for (const kind of kinds) {
      progress(`round ${round} of ${rounds}: console ${kind}`)
      const close = kind === 'open' ? openConsole(target) : async () => 0
      const window = await drive(target, rate, seconds)
      const told = await close()
      if (kind === 'open' && told === 0) throw new Error('the list of requests followed nothing')
      if (kind === 'open') open.push(window)
      else closed.push(window)
    }
  }
  progress('')
  return { closed, open }
}

/** At fixed times, whether or not earlier ones are answered: a gateway that stalls does not get a pause for it. */
async function drive({ url, key, pid }: Target, rate: number, seconds: number): Promise<Window> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }] })
  const taken: number[] = []
  let failed = 0
  let firstFailure = ''
  const call = async (dueAt: number): Promise<void> => {
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
    const text = await response.text()
    if (!response.ok && failed++ === 0) firstFailure = `${response.status} ${text.slice(0, 200)}`
    taken.push(systemClock.monotonicMs() - dueAt)
  }
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
  return { p50: percentile(taken, 50), p99: percentile(taken, 99), cpuPercent, failed, firstFailure }
}

/** Answers with how to close it, which tells how many bytes were followed. */
function openConsole({ url, token }: Target): () => Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const end = new AbortController()
  const ask = async (path: string): Promise<void> => void (await (await fetch(url + path, { headers })).text())
  const overview = async (): Promise<void> => {
    const from = new Date(systemClock.now() - dayMs).toISOString()
    await ask('/api/workspaces?limit=200')
    await ask(`/api/stats?from=${from}&group=model`)
  }
  const requests = async (): Promise<number> => {
    await ask('/api/catalog')
    await ask('/api/requests?limit=50')
    const response = await fetch(`${url}/api/requests/events`, { headers, signal: end.signal })
    let bytes = 0
    try {
      for await (const piece of response.body ?? []) bytes += piece.byteLength
    } catch {
      // Ended by ourselves.
    }
    return bytes
  }
  void overview()
  const timer = setInterval(() => void overview(), overviewMs)
  const followed = requests()
  return async () => {
    clearInterval(timer)
    end.abort()
    return await followed
  }
}

/** Of all threads of a process, in user and system mode. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  // Ticks of a hundredth of a second, as Linux has them everywhere today.
  return 10 * (Number(fields[11]) + Number(fields[12]))
}

function print({ closed, open }: Measured, { rate, seconds, rounds }: Plan): number {
  const of = (windows: readonly Window[], name: 'p50' | 'p99' | 'cpuPercent') =>
    median(windows.map((window) => window[name]))
  const rows = [
    ['closed', closed],
    ['open', open],
  ] as const
  console.log(`${rate} calls a second to sandbox/echo, medians of ${rounds} windows of ${seconds} s each, in turns\n`)
  console.log('| console | p50 ms | p99 ms | CPU of the gateway |\n|---|---|---|---|')
  for (const [name, windows] of rows) {
    const [p50, p99, cpu] = [of(windows, 'p50'), of(windows, 'p99'), of(windows, 'cpuPercent')]
    console.log(`| ${name} | ${p50.toFixed(2)} | ${p99.toFixed(2)} | ${cpu.toFixed(1)} % |`)
  }
  const failed = [...closed, ...open].reduce((sum, window) => sum + window.failed, 0)
  // Within a round both met the same machine.
  const ratios = open.map((window, round) => window.p99 / (closed[round]?.p99 ?? Number.NaN))
  const change = 100 * (median(ratios) - 1)
  const spread = [...ratios].sort((a, b) => a - b).map((ratio) => ratio.toFixed(2))
  console.log(`\np99 with the console open: ${change.toFixed(1)} % (median; each round: ${spread.join(', ')} times)`)
  const told = [...closed, ...open].find((window) => window.failed > 0)?.firstFailure
  console.log(`calls that failed: ${failed}${told === undefined ? '' : ` (${told})`}`)
  return change <= boundPercent && failed === 0 ? 0 : 1
}

/** One line that replaces itself on a terminal; nothing where output is kept. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

process.exitCode = await main()
