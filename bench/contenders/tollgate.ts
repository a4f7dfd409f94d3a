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

/** The byte lane: each surface is served by a provider of its own dialect. */
export const tollgate = contender('tollgate', { chat: 'chat', messages: 'messages' })

/** The translation lane: each surface is served by a provider of the other dialect. */
export const tollgateTranslated = contender('translated', { chat: 'messages', messages: 'chat' })

function contender(name: string, providerOf: Readonly<Record<Surface, Surface>>): Contender {
  return { name, cells: 'all', start: (setting) => start(name, providerOf, setting) }
}

async function start(name: string, providerOf: Readonly<Record<Surface, Surface>>, setting: Setting): Promise<Start> {
  const root = join(import.meta.dir, '..', '..')
  const data = join(setting.folder, `${name}-data`)
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const configPath = join(setting.folder, `${name}.yaml`)
  writeFileSync(configPath, configuration(setting.upstreamUrl))
  const launched = await launch({
    name,
    folder: setting.folder,
    command: [join(root, 'bin', 'tollgate')],
    environment: { TOLLGATE_PORT: '0', TOLLGATE_DATA: data, TOLLGATE_CONFIG: configPath, TOLLGATE_LOG: 'json' },
  })
  if ('failed' in launched) return { absent: launched.failed }
  const key = await firstKey(join(data, 'first-key'))
  if (!key) {
    await launched.stop()
    return { absent: 'did not start (wrote no first key)' }
  }
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const call = (surface: Surface) => ({
    model: `bench/${providerOf[surface]}`,
    headers: { authorization: `Bearer ${key}` },
    ...(providerOf[surface] === surface ? {} : { eventsFewer: 5 }),
  })
  return { version: manifest.version, running: { ...launched, call } }
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
  - { id: fake-messages, dialect: anthropic-messages, base_url: "${upstreamUrl}", api_key: x }
models:
${model('chat')}${model('messages')}`
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
