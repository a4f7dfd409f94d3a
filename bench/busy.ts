// Whether callers notice what else the gateway does: the latency of calls at a steady rate, in short windows by turns, alone
// and beside an open console, exports, the erasure of a workspace's log, a tenant with long prompts, and all of these. The
// verdict is on the p99 of all calls of each kind, and on how long the event loop stood still. Pages are their calls; a
// browser on the same machine would be measured with them.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { refuseOptions, scriptOptions } from '../test/parts/script-options.ts'
import { type Launched, launch } from './contenders/launch.ts'
import { startUpstream } from './contenders/start-upstream.ts'
import { seedLog, type Tenant } from './seed-log.ts'
import { likelyRange, median } from './statistics.ts'
import { type CallTarget, drive, percentileOf, stallSeconds, type Window } from './steady-calls.ts'
import { UPSTREAM_MODEL } from './upstream-replies.ts'

const kinds = ['alone', 'console', 'exports', 'erasure', 'long prompts', 'all of these'] as const
type Kind = (typeof kinds)[number]

const usage = `npm run bench:busy -- [options]
  --rate N       calls a second (100)
  --seconds N    of each window (5)
  --rounds N     windows of each kind, in turns (12)
  --requests N   in the log at the start (100000)
  --only a,b     of: ${kinds.slice(1).join(', ')}`

const model = 'busy/chat'
const dayMs = 86_400_000
/** The overview asks every 30 s; here more often, so that every window has some of it. */
const overviewMs = 4_000
/** Before each window, so that what is measured is a console that is open and not one that is being opened. */
const settleMs = 500
const warmupSeconds = 3
const longPromptBytes = 200_000
const longPromptsPerSecond = 10

interface Target extends CallTarget {
  readonly otherKey: string
  /** Whose log is erased, one in each window that erases. */
  readonly erasable: Tenant[]
}

interface Plan {
  readonly rate: number
  readonly seconds: number
  readonly rounds: number
  readonly only: readonly Kind[]
}

/** One window of each kind. */
type Round = ReadonlyMap<Kind, Window>

async function main(): Promise<number> {
  const values = scriptOptions(usage, {
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '12' },
    requests: { type: 'string', default: '100000' },
    only: { type: 'string', default: kinds.slice(1).join(',') },
  })
  const [rate, seconds, rounds] = [Number(values.rate), Number(values.seconds), Number(values.rounds)]
  const requests = Number(values.requests)
  if (![rate, seconds, rounds, requests].every((each) => Number.isInteger(each) && each > 0)) {
    return refuseOptions('--rate, --seconds, --rounds and --requests take whole numbers above 0', usage)
  }
  const named = values.only.split(',')
  const only = kinds.filter((kind) => kind === 'alone' || named.includes(kind))
  if (only.length !== named.length + 1) return refuseOptions('--only takes names from the list below', usage)
  const plan = { rate, seconds, rounds, only }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-busy-'))
  const upstream = await startUpstream(folder)
  try {
    const { launched, target } = await startTarget(folder, { upstreamUrl: upstream.url, requests, rounds })
    try {
      return print(await measure(target, plan), plan)
    } finally {
      await launched.stop()
    }
  } finally {
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A gateway with a log of 30 days, of which each workspace to erase has an equal part. */
async function startTarget(
  folder: string,
  { upstreamUrl, requests, rounds }: { upstreamUrl: string; requests: number; rounds: number },
): Promise<{ readonly launched: Launched; readonly target: Target }> {
  const dataFolder = join(folder, 'data')
  mkdirSync(dataFolder, { mode: 0o700 })
  writeFileSync(join(folder, 'busy.yaml'), configText(upstreamUrl))
  const start = async (): Promise<Launched> => {
    const environment = {
      TOLLGATE_PORT: '0',
      TOLLGATE_DATA: dataFolder,
      TOLLGATE_LOG: 'json',
      TOLLGATE_CONFIG: join(folder, 'busy.yaml'),
    }
    const command = [join(import.meta.dir, '..', 'bin', 'tollgate')]
    const launched = await launch({ name: 'gateway', folder, command, environment })
    if ('failed' in launched) throw new Error(`the gateway ${launched.failed}`)
    return launched
  }
  const first = await start()
  const read = (name: string): string => readFileSync(join(dataFolder, name), 'utf8').trim()
  const token = read('admin-token')
  const tenants: Tenant[] = []
  let otherKey = ''
  for (let at = 0; at <= 2 * rounds; at++) {
    const { secret, ...tenant } = await makeTenant(first.port, token, at)
    tenants.push(tenant)
    otherKey ||= secret
  }
  await first.stop()
  await seedLog({ url: undefined, dataFolder, tenants, requests, transfers: Math.floor(requests / 10), progress })
  const launched = await start()
  const url = `http://127.0.0.1:${launched.port}`
  // The first one sends the long prompts.
  const erasable = tenants.slice(1)
  return { launched, target: { url, key: read('first-key'), otherKey, token, pid: launched.pid, erasable } }
}

function configText(upstreamUrl: string): string {
  return `providers:
  - { id: fake, dialect: openai-chat, base_url: "${upstreamUrl}/v1", api_key: unused }
models:
  - { id: ${model}, price: { input: "0.001", output: "0.001" }, routes: [{ provider: fake, model: ${UPSTREAM_MODEL} }] }
`
}

async function makeTenant(port: number, token: string, at: number): Promise<Tenant & { readonly secret: string }> {
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Record<string, string>
  }
  const { id: workspaceId = '' } = await post('/api/workspaces', { name: `tenant ${at}` })
  await post(`/api/workspaces/${workspaceId}/topups`, { amount: '1000.00' })
  const { id: projectId = '' } = await post(`/api/workspaces/${workspaceId}/projects`, { name: 'busy' })
  const { id: keyId = '', secret = '' } = await post(`/api/projects/${projectId}/keys`, { name: 'busy' })
  return { workspaceId, projectId, keyId, secret }
}

async function measure(target: Target, { rate, seconds, rounds, only }: Plan): Promise<readonly Round[]> {
  const measured: Round[] = []
  await drive(target, { model, rate, seconds: warmupSeconds })
  for (let round = 1; round <= rounds; round++) {
    const windows = new Map<Kind, Window>()
    // Whoever goes later meets a longer log; each kind does so in turn.
    const start = round % only.length
    for (const kind of [...only.slice(start), ...only.slice(0, start)]) {
      progress(`round ${round} of ${rounds}: ${kind}`)
      const end = begin(target, kind)
      await Bun.sleep(settleMs)
      windows.set(kind, await drive(target, { model, rate, seconds }))
      await end()
    }
    measured.push(windows)
  }
  progress('')
  return measured
}

// ── What else goes on ──

type Ending = () => Promise<void>

function begin(target: Target, kind: Kind): Ending {
  switch (kind) {
    case 'alone':
      return async () => {}
    case 'console':
      return openConsole(target)
    case 'exports':
      return again(target, exportAll)
    case 'erasure':
      return eraseOne(target)
    case 'long prompts':
      return sendLongPrompts(target)
    case 'all of these': {
      const endings = kinds.slice(1, -1).map((each) => begin(target, each))
      return async () => void (await Promise.all(endings.map((end) => end())))
    }
  }
}

function openConsole({ url, token }: Target): Ending {
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
    if ((await followed) === 0) throw new Error('the list of requests followed nothing')
  }
}

/** One after another until the end, and at least one. */
function again(target: Target, once: (target: Target, signal: AbortSignal) => Promise<void>): Ending {
  const end = new AbortController()
  const running = (async () => {
    while (!end.signal.aborted) await once(target, end.signal)
  })()
  return async () => {
    end.abort()
    await running
  }
}

/** The whole log as a file, and a report that reads every row. */
async function exportAll({ url, token }: Target, signal: AbortSignal): Promise<void> {
  const from = new Date(systemClock.now() - 30 * dayMs).toISOString()
  for (const path of [`/api/requests/export?from=${from}`, `/api/usage?from=${from}&group_by=tag:team`]) {
    try {
      const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` }, signal })
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      for await (const piece of response.body ?? []) void piece
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }
}

/** The statements with which retention deletes as well, without its pauses. */
function eraseOne({ url, token, erasable }: Target): Ending {
  const tenant = erasable.pop()
  if (!tenant) throw new Error('every workspace has been erased')
  const path = `${url}/api/workspaces/${tenant.workspaceId}/erase`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ confirm: 'erase' })
  const erased = fetch(path, { method: 'POST', headers, body })
  return async () => {
    const response = await erased
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
}

function sendLongPrompts({ url, otherKey }: Target): Ending {
  const headers = { authorization: `Bearer ${otherKey}`, 'content-type': 'application/json' }
  const content = 'the quick brown fox '.repeat(longPromptBytes / 20)
  const body = JSON.stringify({ model, max_tokens: 16, messages: [{ role: 'user', content }] })
  const sent: Promise<void>[] = []
  const send = async (): Promise<void> => {
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
    const text = await response.text()
    // A gateway that is too busy refuses some, as it should.
    if (!response.ok && response.status !== 503)
      throw new Error(`a long prompt: ${response.status} ${text.slice(0, 200)}`)
  }
  const timer = setInterval(() => sent.push(send()), 1_000 / longPromptsPerSecond)
  return async () => {
    clearInterval(timer)
    await Promise.all(sent)
  }
}

// ── The report ──

function print(rounds: readonly Round[], { rate, seconds, only }: Plan): number {
  const windowsOf = (some: readonly Round[], kind: Kind): Window[] => some.flatMap((round) => round.get(kind) ?? [])
  console.log(
    `${rate} calls a second with prompts of 1 KB, ${rounds.length} windows of ${seconds} s of each kind, in turns\n`,
  )
  console.log(
    `| beside | calls | p50 ms | p99 ms | × alone | nine of ten times between | CPU of the gateway | stalls above ${stallSeconds * 1000} ms |`,
  )
  console.log('|---|---|---|---|---|---|---|---|')
  for (const kind of only) {
    const windows = windowsOf(rounds, kind)
    const ratio = (some: readonly Round[]): number =>
      percentileOf(windowsOf(some, kind), 99) / percentileOf(windowsOf(some, 'alone'), 99)
    const range = likelyRange(rounds, ratio).map((each) => each.toFixed(2))
    const figures = [
      windows.reduce((sum, { taken }) => sum + taken.length, 0),
      percentileOf(windows, 50).toFixed(2),
      percentileOf(windows, 99).toFixed(2),
      ratio(rounds).toFixed(2),
      kind === 'alone' ? '' : range.join(' and '),
      `${median(windows.map(({ cpuPercent }) => cpuPercent)).toFixed(1)} %`,
      windows.reduce((sum, { stalls }) => sum + stalls, 0),
    ]
    console.log(`| ${[kind, ...figures].join(' | ')} |`)
  }
  // The figure if there were nothing to find.
  const alone = windowsOf(rounds, 'alone')
  const half = (rest: number) =>
    percentileOf(
      alone.filter((_, at) => at % 2 === rest),
      99,
    )
  console.log(`\nEvery other window alone against the rest: ${(half(0) / half(1)).toFixed(2)} ×`)
  const all = rounds.flatMap((round) => [...round.values()])
  const failed = all.reduce((sum, window) => sum + window.failed, 0)
  const failure = all.find((window) => window.failed > 0)?.firstFailure
  console.log(`Calls that failed: ${failed}${failure === undefined ? '' : ` (${failure})`}`)
  const stalls = all.reduce((sum, window) => sum + window.stalls, 0)
  return stalls === 0 && failed === 0 ? 0 : 1
}

/** One line that replaces itself on a terminal; nothing where output is kept. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

process.exitCode = await main()
