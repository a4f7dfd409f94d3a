// Whether callers notice that somebody has the console open: the gateway's latency under a steady load, with and without
// an overview and a list of requests that follow it, in short windows by turns. The verdict is on the p99 of all calls of
// each kind: that of one window rests on a handful of calls. The pages are their calls; a browser on the same machine
// would be measured with them.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { launch } from './contenders/launch.ts'
import { likelyRange, median, percentile } from './statistics.ts'

const usage = `npm run bench:console-open -- [options]
  --rate N      calls a second (100)
  --seconds N   of each window (5)
  --rounds N    windows of each kind, in turns (18)`

const boundPercent = 10
const dayMs = 86_400_000
/** The overview asks every 30 s; here more often, so that every window has some of it. */
const overviewMs = 4_000
/** Before each window, so that what is measured is a console that is open and not one that is being opened. */
const settleMs = 500
const warmupSeconds = 3

interface Target {
  readonly url: string
  readonly key: string
  readonly token: string
  readonly pid: number
}

interface Window {
  /** Milliseconds of each call. */
  readonly taken: readonly number[]
  readonly cpuPercent: number
  readonly failed: number
  /** The error of the first of them. */
  readonly firstFailure: string
}

async function main(): Promise<number> {
  const values = scriptOptions(usage, {
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '18' },
  })
  const [rate, seconds, rounds] = [Number(values.rate), Number(values.seconds), Number(values.rounds)]
  if (![rate, seconds, rounds].every((each) => Number.isInteger(each) && each > 0)) {
    return refuseOptions('--rate, --seconds and --rounds take whole numbers above 0', usage)
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

/** One window of each kind. */
type Round = Readonly<Record<'closed' | 'open', Window>>

async function measure(target: Target, { rate, seconds, rounds }: Plan): Promise<readonly Round[]> {
  const measured: Round[] = []
  await drive(target, rate, warmupSeconds)
  for (let round = 1; round <= rounds; round++) {
    // Whoever goes second meets a longer log; each kind does so every other time.
    const kinds = round % 2 === 0 ? (['open', 'closed'] as const) : (['closed', 'open'] as const)
    const windows: Partial<Record<'closed' | 'open', Window>> = {}
    for (const kind of kinds) {
      progress(`round ${round} of ${rounds}: console ${kind}`)
      const close = kind === 'open' ? openConsole(target) : async () => 0
      await Bun.sleep(settleMs)
      windows[kind] = await drive(target, rate, seconds)
      const followed = await close()
      if (kind === 'open' && followed === 0) throw new Error('the list of requests followed nothing')
    }
    const { closed, open } = windows
    if (closed && open) measured.push({ closed, open })
  }
  progress('')
  return measured
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
  return { taken, cpuPercent, failed, firstFailure }
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

/** CPU time of all threads of a process, in user and system mode. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  // Ticks of a hundredth of a second, as Linux has them everywhere today.
  return 10 * (Number(fields[11]) + Number(fields[12]))
}

function print(rounds: readonly Round[], { rate, seconds }: Plan): number {
  const p99 = (windows: readonly Window[]): number => percentileOf(windows, 99)
  const changeOf = (some: readonly Round[]): number =>
    100 * (p99(some.map(({ open }) => open)) / p99(some.map(({ closed }) => closed)) - 1)
  const all = rounds.flatMap(({ closed, open }) => [closed, open])
  console.log(
    `${rate} calls a second to sandbox/echo, ${rounds.length} windows of ${seconds} s of each kind, in turns\n`,
  )
  console.log('| console | calls | p50 ms | p99 ms | CPU of the gateway |\n|---|---|---|---|---|')
  for (const kind of ['closed', 'open'] as const) {
    const windows = rounds.map((round) => round[kind])
    const calls = windows.reduce((sum, { taken }) => sum + taken.length, 0)
    const cpu = median(windows.map(({ cpuPercent }) => cpuPercent))
    const [middle, late] = [percentileOf(windows, 50), p99(windows)].map((ms) => ms.toFixed(2))
    console.log(`| ${kind} | ${calls} | ${middle} | ${late} | ${cpu.toFixed(1)} % |`)
  }
  const change = changeOf(rounds)
  const [low, high] = likelyRange(rounds, changeOf)
  console.log(
    `\np99 with the console open: ${signed(change)} (nine of ten times between ${signed(low)} and ${signed(high)})`,
  )
  // The figure if there were nothing to find.
  const closed = rounds.map((round) => round.closed)
  const halves = [closed.filter((_, at) => at % 2 === 0), closed.filter((_, at) => at % 2 === 1)] as const
  console.log(
    `every other window without a console against the rest: ${signed(100 * (p99(halves[0]) / p99(halves[1]) - 1))}`,
  )
  if (low <= boundPercent && high > boundPercent)
    console.log(`the rounds differ too much to be sure of ${boundPercent} %`)
  const failed = all.reduce((sum, window) => sum + window.failed, 0)
  const failure = all.find((window) => window.failed > 0)?.firstFailure
  console.log(`calls that failed: ${failed}${failure === undefined ? '' : ` (${failure})`}`)
  return change <= boundPercent && failed === 0 ? 0 : 1
}

function percentileOf(windows: readonly Window[], rank: number): number {
  return percentile(
    windows.flatMap(({ taken }) => taken),
    rank,
  )
}

function signed(percent: number): string {
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toFixed(1)} %`
}

/** One line that replaces itself on a terminal; nothing where output is kept. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

process.exitCode = await main()
