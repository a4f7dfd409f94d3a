// The gateway itself, started as an operator would: its launcher, an embedded database in a folder of its own, two
// providers over the fake upstream and the key that its first start writes.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Surface } from '../cells.ts'
import { UPSTREAM_MODEL } from '../upstream-replies.ts'
import type { Contender, Setting, Start } from './contender.ts'
import { launch } from './launch.ts'

const FIRST_KEY_MS_MAX = 5_000

/** Both lanes: the model decides which provider is behind a surface. */
export const tollgate = contender('tollgate', {})

/** The same without holds and charges. */
export const tollgateUnbilled = contender('unbilled', { isBilled: false })

/** The same with a wallet for each connection. */
export const tollgateWallets = contender('many-wallets', { wallets: 32 })

/** The same with six spend limits that nothing reaches: of a group, of some models, in windows that roll. */
export const tollgateLimits = contender('six-limits', { hasLimits: true })

/** The same where callers can create batches. */
export const tollgateBatches = contender('batches', { hasBatches: true })

/** The gateway of another checkout, such as that of an earlier commit, to compare both within one run. */
export const tollgateFrom = (root: string): Contender => contender('before', { root })

/** With a file loaded into its process before its own code. */
export const tollgateWith = (preload: string): Contender => contender('tollgate', { preload })

interface Variation {
  readonly preload?: string
  /** The checkout it is started from; this one by default. */
  readonly root?: string
  readonly isBilled?: boolean
  readonly wallets?: number
  readonly hasLimits?: boolean
  readonly hasBatches?: boolean
}

function contender(name: string, variation: Variation): Contender {
  const byDefault = Object.keys(variation).length === 0
  return { name, cells: 'all', byDefault, start: (setting) => start(name, setting, variation) }
}

const ownRoot = join(import.meta.dir, '..', '..')

async function start(name: string, setting: Setting, variation: Variation): Promise<Start> {
  const { isBilled = true, wallets = 1, hasLimits = false, hasBatches = false, root = ownRoot, preload } = variation
  const data = join(setting.folder, `${name}-data`)
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const configPath = join(setting.folder, `${name}.yaml`)
  writeFileSync(configPath, configuration(setting.upstreamUrl) + batchesSection(hasBatches))
  const launched = await launch({
    name,
    folder: setting.folder,
    command: preload
      ? [process.execPath, '--no-install', '--preload', preload, join(root, 'src', 'main.ts')]
      : isBilled
        ? [join(root, 'bin', 'tollgate')]
        : [process.execPath, join(root, 'bench', 'unbilled-gateway.ts')],
    environment: {
      TOLLGATE_PORT: '0',
      TOLLGATE_DATA: data,
      TOLLGATE_CONFIG: configPath,
      TOLLGATE_LOG: 'json',
      BUN_CONFIG_MAX_HTTP_REQUESTS: '65000',
    },
  })
  if ('failed' in launched) return { absent: launched.failed }
  const key = await firstKey(join(data, 'first-key'))
  if (!key) {
    await launched.stop()
    return { absent: 'did not start (wrote no first key)' }
  }
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  if (hasLimits) await setLimits(launched.port, data)
  const others = wallets > 1 ? await openWallets(launched.port, data, wallets - 1) : []
  const call = (_surface: Surface, provider: Surface) => ({
    model: `bench/${provider}`,
    headers: { authorization: `Bearer ${key}` },
    otherHeaders: others.map((other) => ({ authorization: `Bearer ${other}` })),
  })
  return { version: manifest.version, running: { ...launched, call } }
}

/** Workspaces with money and a key each, made as an operator would make them. */
async function openWallets(port: number, data: string, count: number): Promise<string[]> {
  const manage = managementOf(port, data)
  const post = (path: string, body: object) => manage<Record<string, string>>('POST', path, body)
  const keys: string[] = []
  for (let at = 0; at < count; at++) {
    const workspace = await post('/api/workspaces', { name: `bench-${at}` })
    await post(`/api/workspaces/${workspace.id}/topups`, { amount: '5.00' })
    const project = await post(`/api/workspaces/${workspace.id}/projects`, { name: 'bench' })
    keys.push((await post(`/api/projects/${project.id}/keys`, { name: 'bench' })).secret ?? '')
  }
  return keys
}

/** Of the project of the first key, which is in the group that three of them name. */
async function setLimits(port: number, data: string): Promise<void> {
  const manage = managementOf(port, data)
  const [key] = (await manage<{ data: { id: string; project_id: string; workspace_id: string }[] }>('GET', '/api/keys'))
    .data
  await manage('POST', `/api/workspaces/${key?.workspace_id}/groups`, { name: 'bench', members: [key?.id] })
  const limits = [
    { subject: 'group:bench', window: 'day' },
    { subject: 'group:bench', window: '5h' },
    { subject: 'group:bench', models: 'bench/*', window: '7d' },
    { models: 'bench/*', window: '1h' },
    { models: '!bench/other', window: '24h' },
    { window: '31d' },
  ]
  const spendLimits = limits.map((limit) => ({ ...limit, limit: '1000' }))
  await manage('PUT', `/api/projects/${key?.project_id}/limits`, { spend_limits: spendLimits })
}

function managementOf(port: number, data: string) {
  const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  return async <Answer>(method: string, path: string, body?: object): Promise<Answer> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
    return (await response.json()) as Answer
  }
}

// Priced, so that the whole way to the ledger is measured, and so low that the opening credit of $5.00 lasts: a request
// of 320 tokens costs $0.00000032, and a hold for 2,048 tokens of output $0.0000021.
function configuration(upstreamUrl: string): string {
  const model = (surface: string) => `  - id: bench/${surface}
    owned_by: bench
    name: Bench ${surface}
    context_tokens: 400000
    max_output_tokens: 32000
    default_max_tokens: 2048
    price: { input: "0.001", output: "0.001" }
    routes:
      - { provider: fake-${surface}, model: ${UPSTREAM_MODEL} }
`
  return `providers:
  - { id: fake-chat, dialect: openai-chat, base_url: "${upstreamUrl}/v1", api_key: x }
  - { id: fake-responses, dialect: openai-responses, base_url: "${upstreamUrl}/v1", api_key: x }
  - { id: fake-messages, dialect: anthropic-messages, base_url: "${upstreamUrl}", api_key: x }
models:
${model('chat')}${model('messages')}${model('responses')}`
}

function batchesSection(isOn: boolean): string {
  return `batches: { enabled: ${isOn ? 'on' : 'off'} }\n`
}

/** Lets a gateway that runs stop its batches, or go on with them. It reads its file within a second. */
export function switchBatches(folder: string, isOn: boolean): void {
  const path = join(folder, `${tollgateBatches.name}.yaml`)
  writeFileSync(path, readFileSync(path, 'utf8').replace(batchesSection(!isOn), batchesSection(isOn)))
}

async function firstKey(path: string): Promise<string | undefined> {
  const giveUpAt = systemClock.monotonicMs() + FIRST_KEY_MS_MAX
  while (systemClock.monotonicMs() < giveUpAt) {
    const key = existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
    if (key) return key
    await Bun.sleep(30)
  }
  return undefined
}
