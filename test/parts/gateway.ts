// The real app in the test's process, with a separate database, folder and port.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type App, startApp } from '../../src/app.ts'
import { allBuiltInModels } from '../../src/catalog/data/built-in.ts'
import { frozenConfig, loadConfig, shownSettings } from '../../src/config/config.ts'
import { createConfigSource } from '../../src/config/source.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { builtInProviderIds, providerVariables } from '../../src/providers/registry.ts'
import { createLog } from '../../src/telemetry/log.ts'

export interface Gateway {
  readonly url: string
  /** The first key; '' for the second gateway on a database. */
  readonly key: string
  readonly app: App
  readonly dataFolder: string
  readonly configPath: string
  /** Everything logged so far, one JSON object per line. */
  logged(): Record<string, unknown>[]
  stop(): Promise<void>
}

export interface GatewayOptions {
  /** The configuration file's text (YAML or JSON). */
  readonly config?: string
  readonly env?: Record<string, string>
  /** In place of the system's, for waits that are too long for a test. */
  readonly clock?: Clock
  /** Upper bound of the first wait before a retry; 0 unless a test is about the waits. */
  readonly backoffMs?: number
  /** The ledger as the gateway shall see it. */
  wrapLedger?(real: Ledger): Ledger
  /**
   * How many times as long PostgreSQL may take, so that a busy machine fails no test: 30 unless a test loses the server.
   */
  readonly timeoutFactor?: number
  /** In place of Stripe's API. */
  readonly stripeUrl?: string
}

/** Many tests wait for a record. */
const requestLogFlushMs = 5

export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const { config, env = {}, clock = systemClock, backoffMs = 0, wrapLedger } = options
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-gateway-'))
  const configPath = join(folder, 'tollgate.yaml')
  if (config !== undefined) writeFileSync(configPath, config)
  const inputs = {
    env: {
      TOLLGATE_PORT: '0',
      TOLLGATE_DATA: join(folder, 'data'),
      TOLLGATE_LOG: 'json',
      TOLLGATE_DRAIN_DELAY_SECONDS: '0',
      ...env,
    },
    cwd: folder,
    stdoutIsTerminal: false,
    providerVariables,
    builtInProviderIds,
    builtInModels: allBuiltInModels,
  }
  const load = (fileText?: string) => {
    const loaded = loadConfig({ ...inputs, fileText })
    if ('faults' in loaded) return loaded
    const { attempts } = loaded.config.retries
    // Without waits, the twenty seconds of retries would never pass.
    const retries = { ...loaded.config.retries, backoffMs, ...(backoffMs === 0 && { attempts: Math.min(attempts, 3) }) }
    return { ...loaded, config: frozenConfig({ ...loaded.config, retries }) }
  }
  const initial = load()
  if ('faults' in initial) throw new Error(`the test's configuration is wrong: ${JSON.stringify(initial.faults)}`)
  let unread = ''
  const records: Record<string, unknown>[] = []
  const log = createLog({
    format: 'json',
    clock: systemClock,
    write: (more) => {
      unread += more
    },
  })
  const source = createConfigSource({
    initial,
    load,
    report: (report) => log.info(report.kind),
    describe: (config) => shownSettings(config, inputs),
    intervalMs: 20,
  })
  const app = await startApp({
    ...{ source, clock, log },
    requestLogFlushMs,
    timeoutFactor: options.timeoutFactor ?? 30,
    onProgress: () => {},
    ...(wrapLedger && { wrapLedger }),
    ...(options.stripeUrl !== undefined && { stripeUrl: options.stripeUrl }),
  })
  const dataFolder = join(folder, 'data')
  const firstKey = join(dataFolder, 'first-key')
  return {
    url: app.url,
    key: existsSync(firstKey) ? readFileSync(firstKey, 'utf8').trim() : '',
    app,
    dataFolder,
    configPath,
    logged() {
      log.flush()
      // Tests that wait for a record call this every millisecond, so each line is parsed once.
      for (const line of unread.split('\n')) if (line !== '') records.push(JSON.parse(line) as Record<string, unknown>)
      unread = ''
      return [...records]
    },
    async stop() {
      await app.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Stops what a test file started, one after the other: a gateway before the providers behind it. */
export async function stopAll(
  ...started: readonly ({ stop(): unknown } | AsyncDisposable | Disposable)[]
): Promise<void> {
  for (const each of started) {
    if ('stop' in each) await each.stop()
    else if (Symbol.asyncDispose in each) await each[Symbol.asyncDispose]()
    else each[Symbol.dispose]()
  }
}

/** The log lines of requests, once there are this many: the last one is written when its charge is durable. */
export async function requestRecords(gateway: Gateway, count: number): Promise<Record<string, unknown>[]> {
  for (;;) {
    const records = gateway.logged().filter(({ message }) => message === 'request')
    if (records.length >= count) return records
    await Bun.sleep(1)
  }
}

/** Providers of the dialects by the names of their models, at the upstream's address. */
export const upstreamProviders = {
  chat: { id: 'chatty', dialect: 'openai-chat', path: '/v1' },
  messages: { id: 'messy', dialect: 'anthropic-messages', path: '' },
  responses: { id: 'ready', dialect: 'openai-responses', path: '/v1' },
  gemini: { id: 'googly', dialect: 'gemini', path: '/v1beta' },
}

/** A configuration with a provider per dialect at the upstream's address, and a model at each: `test/chat` at `chatty`. */
function configWith(upstreamUrl: string, names: readonly (keyof typeof upstreamProviders)[], extra = ''): string {
  const providers = names.map((name) => {
    const { id, dialect, path } = upstreamProviders[name]
    return `  - { id: ${id}, dialect: ${dialect}, base_url: "${upstreamUrl}${path}", api_key: upstream-secret-${name} }\n`
  })
  const models = names.map(
    (name) => `  - id: test/${name}
    price: { input: "1.00", output: "2.00", cache_read: "0.10", cache_write: "1.25", cache_write_1h: "2.00" }
    max_output_tokens: 8000
    default_max_tokens: 4096
    routes: [{ provider: ${upstreamProviders[name].id}, model: upstream-${name}-1 }]
`,
  )
  return `\nproviders:\n${providers.join('')}models:\n${models.join('')}${extra}`
}

export const upstreamConfig = (upstreamUrl: string, extra?: string): string =>
  configWith(upstreamUrl, ['chat', 'messages'], extra)
export const geminiConfig = (upstreamUrl: string): string => configWith(upstreamUrl, ['chat', 'messages', 'gemini'])
export const everyConfig = (upstreamUrl: string): string =>
  configWith(upstreamUrl, ['chat', 'messages', 'gemini', 'responses'])
export const responsesConfig = (upstreamUrl: string): string =>
  configWith(upstreamUrl, ['chat', 'messages', 'responses'])

export interface FailoverOptions {
  /** Members of each model. */
  readonly model?: string
  /** Members of each route beside its provider and model. */
  route?(at: number): string
  /** The dialects by the names of their models; Chat Completions and Messages by default. */
  readonly dialects?: Readonly<Record<string, string>>
}

export const allDialects = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
  gemini: 'gemini',
}

/**
 * A model per dialect, `test/chat` and `test/messages`, with a route to each upstream. The providers are called `chat-0`,
 * `chat-1` and so on, `messages-0`, `messages-1`. Unless an option says otherwise nothing costs anything, and each route
 * is tried where the one before it fails.
 */
export function failoverConfig(
  upstreamUrls: readonly string[],
  { model = 'price: free', route = (at) => `priority: ${at}`, ...options }: FailoverOptions = {},
): string {
  const { dialects = { chat: allDialects.chat, messages: allDialects.messages } } = options
  const surfaces = Object.entries(dialects)
  const providers = surfaces.flatMap(([name, dialect]) =>
    upstreamUrls.map((url, at) => {
      const base = name === 'messages' ? url : `${url}/v1${name === 'gemini' ? 'beta' : ''}`
      return `  - { id: ${name}-${at}, dialect: ${dialect}, base_url: "${base}", api_key: upstream-secret }`
    }),
  )
  const models = surfaces.map(([name]) => {
    const routes = upstreamUrls.map((_, at) => `{ provider: ${name}-${at}, model: up, ${route(at)} }`)
    return `  - { id: test/${name}, ${model}, routes: [${routes.join(', ')}] }`
  })
  return `providers:\n${providers.join('\n')}\nmodels:\n${models.join('\n')}\n`
}
