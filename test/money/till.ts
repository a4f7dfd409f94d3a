// A gateway with priced models in front of fake providers, and its books: the quoted cost of a request, the
// record of it, and what left the wallet. The wallet begins with the $5.00 of opening credit.

import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Clock } from '../../src/kernel/clock.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { JournalTable } from '../../src/store/journal.ts'
import { requestFromRow, type StoredRow } from '../../src/telemetry/request-record.ts'
import { ask } from '../parts/ask.ts'
import { allDialects, type Gateway, requestRecords, startGateway } from '../parts/gateway.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { chat, gemini, inWordsOf, messages, requestBytes, responses, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import type { DialectName } from '../parts/upstream-words.ts'
import { createWallets, type Purse, type Wallets } from './wallets.ts'

/** Per token: 350 nano-dollars in, 2.8 read, 437.5 written, 700 written for an hour, 1,050 out; twice or so beyond 1,000. */
const usualPrice = `{ input: "0.35", output: "1.05", cache_read: "0.0028", cache_write: "0.4375", cache_write_1h: "0.70",
      over: { "1000": { input: "0.70", output: "1.575", cache_read: "0.0056", cache_write: "0.875", cache_write_1h: "1.40" } } }`

export interface TillOptions {
  /** YAML of a price, as in the configuration file. */
  readonly price?: string
  /** Members of all models that bound their prompts and answers. */
  readonly size?: string
  /** More members of the only route. */
  readonly route?: string
  /** YAML of the section of the configuration file. */
  readonly server?: string
  /** The same. */
  readonly retries?: string
  readonly clock?: Clock
  /** The ledger as the gateway shall see it. */
  wrapLedger?(real: Ledger): Ledger
  /** A second provider of each dialect, asked when the first one fails. */
  readonly spare?: Upstream
  /** PostgreSQL, where the charges and lines below cannot be read; absent = SQLite. */
  readonly databaseUrl?: string | undefined
  /** How many models of each dialect there are, each at a separate provider; 1 unless tests are about failures. */
  readonly models?: number
}

/** Priced models in each dialect, each at separate providers: `chat-3-1` is the second one of `till/chat-3`. */
function tillConfig(
  url: string,
  { price = usualPrice, size = 'context_tokens: 100000', route = '', server, retries, spare, models = 1 }: TillOptions,
): string {
  const providers: string[] = []
  const entries: string[] = []
  for (const [name, dialect] of Object.entries(allDialects)) {
    for (let model = 0; model < models; model++) {
      const routes = [url, ...(spare ? [spare.url] : [])].map((base, at) => {
        const id = `${name}-${model}-${at}`
        const baseUrl = name === 'messages' ? base : `${base}/v1`
        providers.push(`  - { id: ${id}, dialect: ${dialect}, base_url: "${baseUrl}", api_key: upstream-secret }`)
        return `{ provider: ${id}, model: up, priority: ${at}${route === '' ? '' : `, ${route}`} }`
      })
      const members = size === '' ? '' : `${size}, `
      entries.push(`  - { id: till/${name}-${model}, price: ${price}, ${members}routes: [${routes.join(', ')}] }`)
    }
  }
  const sections = Object.entries({ server, retries }).flatMap(([name, yaml]) => (yaml ? `${name}: ${yaml}\n` : []))
  return `${sections.join('')}providers:\n${providers.join('\n')}\nmodels:\n${entries.join('\n')}\n`
}

/** One way through the gateway: the bytes of a dialect pass as they are where surface and provider speak the same. */
export interface Path {
  readonly name: string
  readonly surface: TestSurface
  readonly provider: DialectName
  readonly stream: boolean
}

function pathOf(surface: TestSurface, provider: DialectName, stream: boolean): Path {
  const lane = surface.name === provider ? 'bytes' : 'translation'
  return {
    name: `${surface.name} from ${provider} (${lane}), ${stream ? 'streamed' : 'whole'}`,
    surface,
    provider,
    stream,
  }
}

export const streamedPaths: readonly Path[] = [
  ...[chat, messages, responses, gemini].flatMap((surface) => [
    pathOf(surface, 'chat', true),
    pathOf(surface, 'messages', true),
  ]),
  pathOf(responses, 'responses', true),
  pathOf(gemini, 'gemini', true),
]
export const wholePaths: readonly Path[] = streamedPaths.map(({ surface, provider }) =>
  pathOf(surface, provider, false),
)
export const allPaths: readonly Path[] = [...streamedPaths, ...wholePaths]

/** Callers of Messages whose provider speaks it too: what only Anthropic has gets through. */
export const messagesPaths: readonly Path[] = allPaths.filter(
  ({ surface, provider }) => surface.name === 'messages' && provider === 'messages',
)

/** A request as the management API explains it. */
export interface Explained {
  readonly notes: readonly string[]
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly source: string }
  readonly charge: {
    readonly total: string
    readonly lines: readonly { kind: string; tokens: number; price_per_million: string; amount: string }[]
  }
}

export interface Charge {
  readonly amount: bigint
  readonly isEstimated: boolean
  readonly usage: Record<string, unknown>
}

export interface RequestLine {
  readonly status: bigint
  readonly code: string | null
  readonly charge: bigint | null
  readonly held: bigint | null
  readonly usage: string | null
  readonly notes: string
  readonly attempts: string
  readonly stream: bigint
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly requestId: string
  /** The digits of the last `cost` in the body. */
  readonly cost: string | undefined
}

export interface AskMore {
  readonly headers?: Record<string, string>
  /** Who pays; the first workspace if none is named. */
  readonly purse?: Purse
}

export interface Till extends AsyncDisposable {
  /** The books and the provider, of a gateway that has stopped. */
  close(): void
  readonly gateway: Gateway
  readonly upstream: Upstream
  bodyFor(path: Path, members?: object): string
  /** A model, as a member of a body, whose provider has no past: what failed before is not asked again for a while. */
  fresh(path: Path): { readonly model: string }
  ask(path: Path, members?: object, more?: AskMore): Promise<Answer>
  /** Sends a request over a connection that a test can leave or stop reading. */
  send(path: Path, members?: object, purse?: Purse): Promise<RawConnection>
  /** The charges of a request: none or one. */
  charges(requestId: string): readonly Charge[]
  /** All transfers that left the wallet. */
  chargeCount(): number
  /** The request's line in the log, once it is written. */
  line(requestId: string): Promise<RequestLine>
  /** The ids of the requests that are over, in that order, once there are this many. */
  over(count: number): Promise<readonly string[]>
  readonly wallets: Wallets
}

export async function openTill(options: TillOptions = {}): Promise<Till> {
  const upstream = startUpstream(() => {})
  const { clock, wrapLedger, databaseUrl } = options
  const config = tillConfig(upstream.url, options)
  const env = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }
  const gateway = await startGateway({ config, env, ...(clock && { clock }), ...(wrapLedger && { wrapLedger }) })
  let opened: ReturnType<typeof openBooks> | undefined
  const books = () => {
    opened ??= openBooks(gateway.dataFolder)
    return opened.read()
  }
  const bodyFor: Till['bodyFor'] = ({ surface, provider, stream }, members = {}) =>
    JSON.stringify({
      model: `till/${provider}-0`,
      ...inWordsOf(surface, {
        messages: [{ role: 'user', content: 'hi' }],
        ...(surface.name === 'messages' && { max_tokens: 100 }),
        ...(stream && { stream, ...(surface.name === 'chat' && { stream_options: { include_usage: true } }) }),
        ...members,
      }),
    })
  const used = { chat: 0, messages: 0, responses: 0, gemini: 0 }
  return {
    gateway,
    upstream,
    bodyFor,
    fresh({ provider }) {
      used[provider] += 1
      if (used[provider] >= (options.models ?? 1)) throw new Error('open the till with more models')
      return { model: `till/${provider}-${used[provider]}` }
    },
    ask: async (path, members, { headers, purse } = {}) => {
      const asked = { url: gateway.url, key: purse?.key ?? gateway.key }
      return await readAnswer(await ask(asked, path.surface, bodyFor(path, members), headers))
    },
    async send(path, members, purse) {
      const connection = await connect(gateway.url)
      const body = bodyFor(path, members)
      await connection.send(requestBytes(path.surface, { key: purse?.key ?? gateway.key, body }))
      return connection
    },
    charges: (requestId) => chargesOf(books(), requestId),
    chargeCount: () => books().query<{ id: string }, []>(`SELECT id FROM transfers WHERE kind = 'charge'`).all().length,
    async line(requestId) {
      for (;;) {
        const row = books().query<StoredRow, [string]>('SELECT * FROM requests WHERE id = ?').get(requestId)
        if (row) {
          const { notes, attempts } = requestFromRow(row)
          return { ...row, notes: JSON.stringify(notes), attempts: JSON.stringify(attempts) }
        }
        await Bun.sleep(5)
      }
    },
    over: async (count) => (await requestRecords(gateway, count)).map(({ request_id }) => String(request_id)),
    wallets: createWallets(gateway),
    close() {
      opened?.close()
      upstream.stop()
      rmSync(dirname(gateway.dataFolder), { recursive: true, force: true })
    },
    async [Symbol.asyncDispose]() {
      opened?.close()
      await gateway.stop()
      upstream.stop()
    },
  }
}

/** Beside the gateway's own connection, and as up to date as what the gateway reads. */
function openBooks(dataFolder: string) {
  const database = new Database(join(dataFolder, 'tollgate.db'), { readwrite: true, safeIntegers: true })
  database.run('PRAGMA busy_timeout = 60000')
  const journal = new JournalTable((text) => database.prepare(text))
  return {
    read(): Database {
      journal.apply()
      return database
    },
    close(): void {
      journal.finalize()
      database.close()
    },
  }
}

async function readAnswer(response: Response): Promise<Answer> {
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    requestId: response.headers.get('request-id') ?? '',
    cost: costIn(text),
  }
}

/** What an error says about the wallet. */
export function errorMetadata(text: string): object {
  const { error } = JSON.parse(text) as { error: { metadata?: object; details?: { metadata: object }[] } }
  return error.metadata ?? error.details?.[0]?.metadata ?? {}
}

/** The error in the last event of a stream. Clients of Responses and Gemini read other codes; ours is beside them. */
export function lastError(text: string): { readonly code: unknown; readonly message: string } {
  const data = JSON.parse((text.trimEnd().split('\n').at(-1) ?? '').slice('data: '.length))
  const error = data.response?.error ?? data.error
  const [info] = error.details ?? []
  if (info) return { ...error, code: info.reason, metadata: info.metadata }
  return data.type === 'response.failed' ? { ...error, code: error.metadata.code } : error
}

/** "hello", two tokens; the input is 3 as Messages reported it, or the estimate of "hi": 8. */
export const helloCharge: Readonly<Record<DialectName, bigint>> = {
  chat: 8n * 350n + 2n * 1_050n,
  messages: 3n * 350n + 2n * 1_050n,
  responses: 8n * 350n + 2n * 1_050n,
  gemini: 8n * 350n + 2n * 1_050n,
}

/** A tenth of a cent in, a cent out; no prompt counts for more than the thousand tokens that the model takes. */
export const costly = {
  price: '{ input: "1000", output: "10000" }',
  size: 'context_tokens: 1000, max_output_tokens: 64000, default_max_tokens: 64000',
}
export const nanosIn = 1_000_000n
export const nanosOut = 10_000_000n

/** How a whole stream ends, on any surface. */
export const terminal = /\[DONE\]|message_stop|response\.completed|finishReason/

export function costIn(text: string): string | undefined {
  return [...text.matchAll(/"cost":"?([0-9.]+)/g)].at(-1)?.[1]
}

interface TransferRow {
  readonly amount: bigint
  readonly estimated: bigint
  readonly usage: string
}

function chargesOf(books: Database, requestId: string): Charge[] {
  const rows = books
    .query<TransferRow, [string]>(
      `SELECT amount, estimated, usage FROM transfers WHERE request_id = ? AND kind = 'charge'`,
    )
    .all(requestId)
  return rows.map(({ amount, estimated, usage }) => ({
    amount,
    isEstimated: estimated === 1n,
    usage: JSON.parse(usage) as Record<string, unknown>,
  }))
}

/** Everything that tells what a request cost says the same figure, and the hold is gone. */
export async function expectPaid(
  till: Till,
  { requestId }: Pick<Answer, 'requestId'>,
  amount: bigint,
  how: 'reported' | 'estimated' = 'reported',
  purse?: Purse,
): Promise<void> {
  expect(till.charges(requestId)).toMatchObject([{ amount, isEstimated: how === 'estimated' }])
  const line = await till.line(requestId)
  expect(line.charge).toBe(amount)
  expect(JSON.parse(line.usage ?? '{}')).toMatchObject({ source: how })
  expect((await till.wallets.read(purse?.workspaceId)).held).toBe(0n)
}

/** Nothing left the wallet for it, and nothing is held. */
export async function expectUnpaid(till: Till, requestId: string): Promise<RequestLine> {
  const line = await till.line(requestId)
  expect(line.charge).toBeNull()
  expect(till.charges(requestId)).toEqual([])
  expect((await till.wallets.read()).held).toBe(0n)
  return line
}
