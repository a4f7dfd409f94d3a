// A gateway with priced models in front of fake providers, and its books: the quoted cost of a request, the
// record of it, and what left the wallet. The wallet begins with the $5.00 of opening credit.

import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { requestFromRow, type StoredRow } from '../../src/telemetry/request-record.ts'
import { ask } from '../parts/ask.ts'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { chat, gemini, inWordsOf, messages, responses, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import type { DialectName } from './provider-words.ts'
import { type TillOptions, tillConfig } from './till-config.ts'
import { createWallets, type Purse, type Wallets } from './wallets.ts'

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
  const { clock, wrapLedger } = options
  const config = tillConfig(upstream.url, options)
  const gateway = await startGateway({ config, ...(clock && { clock }), ...(wrapLedger && { wrapLedger }) })
  const books = new Database(join(gateway.dataFolder, 'tollgate.db'), { readonly: true, safeIntegers: true })
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
    charges: (requestId) => chargesOf(books, requestId),
    chargeCount: () => books.query<{ id: string }, []>(`SELECT id FROM transfers WHERE kind = 'charge'`).all().length,
    async line(requestId) {
      for (;;) {
        const row = books.query<StoredRow, [string]>('SELECT * FROM requests WHERE id = ?').get(requestId)
        if (row) {
          const { notes, attempts } = requestFromRow(row)
          return { ...row, notes: JSON.stringify(notes), attempts: JSON.stringify(attempts) }
        }
        await Bun.sleep(5)
      }
    },
    async over(count) {
      for (;;) {
        const lines = gateway.logged().filter(({ message }) => message === 'request')
        if (lines.length >= count) return lines.map(({ request_id }) => String(request_id))
        await Bun.sleep(1)
      }
    },
    wallets: createWallets(gateway),
    close() {
      books.close()
      upstream.stop()
      rmSync(dirname(gateway.dataFolder), { recursive: true, force: true })
    },
    async [Symbol.asyncDispose]() {
      books.close()
      await gateway.stop()
      upstream.stop()
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
