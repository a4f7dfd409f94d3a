// A gateway that has been in use for a month, and what goes on in it beside the calls that are measured: an open console,
// exports, the erasure of workspaces, a tenant with long prompts. Pages are their calls; a browser on the same machine would
// be measured with them.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../src/kernel/clock.ts'
import { type Launched, launch } from './contenders/launch.ts'
import { seedLog, type Tenant } from './seed-log.ts'
import type { CallTarget } from './steady-calls.ts'
import { UPSTREAM_MODEL } from './upstream-replies.ts'

/** What else can go on. */
export const activities = ['console', 'exports', 'erasure', 'long prompts'] as const
export type Activity = (typeof activities)[number]

const model = 'busy/chat'
const dayMs = 86_400_000
/** The overview asks every 30 s; here more often, so that every window has some of it. */
const overviewMs = 4_000
const longPromptBytes = 200_000
const longPromptsPerSecond = 10

export interface BusyGateway extends CallTarget {
  readonly model: string
  readonly otherKey: string
  /** Whose log is erased, one by each erasure. */
  readonly erasable: Tenant[]
  stop(): Promise<void>
}

export interface BusyOptions {
  readonly upstreamUrl: string
  /** In the log at the start, of 30 days. */
  readonly requests: number
  /** How many workspaces there are to erase, each with an equal part of the log. */
  readonly erasures: number
}

export async function startBusyGateway(
  folder: string,
  { upstreamUrl, requests, erasures }: BusyOptions,
): Promise<BusyGateway> {
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
  for (let at = 0; at <= erasures; at++) {
    const { secret, ...tenant } = await makeTenant(first.port, token, at)
    tenants.push(tenant)
    otherKey ||= secret
  }
  await first.stop()
  await seedLog({ url: undefined, dataFolder, tenants, requests, transfers: Math.floor(requests / 10), progress })
  const launched = await start()
  const url = `http://127.0.0.1:${launched.port}`
  const { pid, stop } = launched
  // The first one sends the long prompts.
  return { url, key: read('first-key'), otherKey, token, pid, model, erasable: tenants.slice(1), stop }
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

export type Ending = () => Promise<void>

export function begin(gateway: BusyGateway, activity: Activity): Ending {
  switch (activity) {
    case 'console':
      return openConsole(gateway)
    case 'exports':
      return again(gateway, exportAll)
    case 'erasure':
      return eraseOne(gateway)
    case 'long prompts':
      return sendLongPrompts(gateway)
  }
}

export function beginAll(gateway: BusyGateway): Ending {
  const endings = activities.map((activity) => begin(gateway, activity))
  return async () => void (await Promise.all(endings.map((end) => end())))
}

function openConsole({ url, token }: BusyGateway): Ending {
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
function again(gateway: BusyGateway, once: (gateway: BusyGateway, signal: AbortSignal) => Promise<void>): Ending {
  const end = new AbortController()
  const running = (async () => {
    while (!end.signal.aborted) await once(gateway, end.signal)
  })()
  return async () => {
    end.abort()
    await running
  }
}

/** The whole log as a file, and a report that reads every row. */
async function exportAll({ url, token }: BusyGateway, signal: AbortSignal): Promise<void> {
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
function eraseOne({ url, token, erasable }: BusyGateway): Ending {
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

function sendLongPrompts({ url, otherKey }: BusyGateway): Ending {
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

/** One line that replaces itself on a terminal; nothing where output is kept. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}
