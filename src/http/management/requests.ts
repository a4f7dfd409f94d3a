// Handlers of the request log: listing, explaining, following, exporting and summing up requests. The sums of an
// explained charge are exact to the nano-dollar.

import { fileTypeOf, listAnswer } from '../../api/fields.ts'
import { operations } from '../../api/operations.ts'
import { type LoggedRequest, statsGroupsMax, type UsageItem, usageFields } from '../../api/requests.ts'
import { chargeLines } from '../../catalog/price.ts'
import { readPriceVersion } from '../../catalog/price-versions.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { isId, type RequestId } from '../../kernel/ids.ts'
import { formatPico, formatPrice, formatUsd, type Nano, picoToNano, zeroNano } from '../../kernel/money.ts'
import { factorNames, factors, tokenBuckets, type Usage, unitBuckets, wholeBuckets } from '../../kernel/usage.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Transfer, TransferKind } from '../../ledger/transfer.ts'
import type { Database } from '../../store/database.ts'
import type { Figures } from '../../store/request-rows.ts'
import type { RequestLog as StoredLog } from '../../telemetry/request-log.ts'
import type { LoggedRequest as StoredRequest } from '../../telemetry/request-row.ts'
import { firstEventsOf, readStats, type StatGroup } from '../../telemetry/request-stats.ts'
import type { RequestTail } from '../../telemetry/request-tail.ts'
import { exportUsage } from '../../telemetry/usage-export.ts'
import { notFound } from '../../tenancy/management.ts'
import { type CsvValue, csvLine } from '../../wire/csv.ts'
import { everyPage, given, pageOf, transferAnswer } from './answers.ts'
import type { RequestFilters, RequestLog, RouteDependencies } from './dependencies.ts'
import { type Call, implement, type Route } from './route.ts'

const dayMs = 86_400_000
/** A quarter of a year by the hour is some two thousand points. */
const statsDaysMax = 92
const usageSpanMs = 30 * dayMs

export function requestRoutes({ database, clock, requests, tail }: RouteDependencies): readonly Route[] {
  const follow = createFollowRequests(tail)
  return [
    implement(operations.followRequests, {
      events({ query }, signal) {
        const stream = follow(filtersOf(query), signal)
        if (stream) return stream
        throw new Failure('OVERLOADED', 'Too many clients are already following the request log.', {
          retryAfterMs: 10_000,
        })
      },
    }),
    implement(operations.exportRequests, {
      download({ query }) {
        const { format } = query
        const filters = { ...filtersOf(query), ...given({ from: query.from, to: query.to }) }
        const pages = everyPage((page) => requests.list({ ...filters, ...page }))
        const pieces = format === 'csv' ? csvPieces(pages) : jsonPieces(pages)
        return { type: fileTypeOf[format], name: `requests.${format}`, pieces }
      },
    }),
    implement(operations.listRequests, {
      async run({ query }) {
        const found = await requests.list({
          ...pageOf(query),
          ...filtersOf(query),
          ...given({ from: query.from, to: query.to }),
        })
        return listAnswer(found.items, found.nextCursor)
      },
    }),
    implement(operations.getRequest, {
      async run({ id }) {
        const found = await requests.find(id)
        if (!found) throw notFound('request', id)
        return found
      },
    }),
    implement(operations.getStats, {
      async run({ query }) {
        const to = query.to ?? clock.now()
        const from = query.from ?? Math.max(0, to - dayMs)
        if (from >= to) throw invalidRequest('`from` must be before `to`.', 'from')
        if (to - from > statsDaysMax * dayMs) {
          throw invalidRequest(`At most ${statsDaysMax} days can be summed up at once.`, 'from')
        }
        const { workspace_id: workspaceId, group } = query
        const stats = await readStats(database, clock, { from, to, group, ...given({ workspaceId }) })
        const groups = stats.groups.slice(0, statsGroupsMax).map(async ({ id, figures }) => {
          return { id, name: await nameOf(database, group, id), ...sumsAnswer(figures) }
        })
        return {
          from: isoTime(stats.from),
          to: isoTime(stats.to),
          counted_until: isoTime(stats.countedUntil),
          total: sumsAnswer(stats.total),
          hours: stats.hours.map(({ start, figures }) => ({ start: isoTime(start), ...sumsAnswer(figures) })),
          groups: await Promise.all(groups),
          groups_left_off: stats.groups.length - groups.length,
        }
      },
    }),
    implement(operations.exportUsage, {
      download({ query }) {
        const {
          to = clock.now(),
          from = Math.max(0, to - usageSpanMs),
          format,
          group_by: groupBy,
          workspace_id: workspaceId,
        } = query
        const wanted = { database, from, to, format, groupBy, ...given({ workspaceId }) }
        return { type: fileTypeOf[format], name: `usage.${format}`, pieces: exportUsage(wanted) }
      },
    }),
  ]
}

function filtersOf(query: Call<typeof operations.followRequests>['query']): RequestFilters {
  const { workspace_id: workspaceId, project_id: projectId, key_id: keyId, model, outcome } = query
  return given({ workspaceId, projectId, keyId, model, outcome })
}

export function createRequestReader({
  database,
  ledger,
  requests,
}: {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'transfersOf'>
  readonly requests: Pick<StoredLog, 'list' | 'find'>
}): RequestLog {
  return {
    async list({ limit, cursor, ...filters }) {
      const before = cursor !== undefined && isId('req', cursor) ? { before: cursor } : {}
      const found = await requests.list({ ...filters, ...before, limit: limit + 1 })
      const items = found.slice(0, limit).map(requestAnswer)
      return { items, nextCursor: found.length > limit ? items.at(-1)?.id : undefined }
    },
    async find(id: RequestId) {
      const request = await requests.find(id)
      if (!request) return undefined
      const transfers = await ledger.transfersOf(id)
      const transferOf = (wanted: TransferKind) => transfers.find(({ kind }) => kind === wanted)
      // The transfer knows which route served in the end: a call on a workspace's own credential has no catalog price.
      const charge = transferOf('charge')
      return {
        ...requestAnswer(request),
        ...(charge && { price_version: charge.priceVersion ?? null }),
        charge: await explainCharge(database, request, { charge, writeoff: transferOf('writeoff') }),
        transfers: transfers.map((transfer) => transferAnswer(transfer, request.workspaceId)),
      }
    },
  }
}

function requestAnswer(request: StoredRequest): LoggedRequest {
  return {
    id: request.id,
    started_at: isoTime(request.startedAt),
    workspace_id: request.workspaceId,
    project_id: request.projectId,
    key_id: request.keyId,
    path: request.path,
    stream: request.stream,
    model: request.model ?? null,
    status: request.status,
    code: request.code ?? null,
    reason: request.reason ?? null,
    provider: request.provider ?? null,
    upstream_model: request.upstreamModel ?? null,
    lane: request.lane ?? null,
    candidates: request.candidates.map(({ provider, upstreamModel, why }) => ({
      provider,
      upstream_model: upstreamModel,
      why: why ?? null,
    })),
    attempts: request.attempts.map(({ provider, upstreamModel, outcome, ms }) => ({
      provider,
      upstream_model: upstreamModel,
      outcome,
      ms,
    })),
    warnings: request.warnings,
    notes: request.notes,
    usage: request.usage ? usageAnswer(request.usage) : null,
    price_version: request.priceVersion ?? null,
    cost: usdOrNull(request.charge),
    held: usdOrNull(request.held),
    first_event_ms: request.firstEventMs ?? null,
    total_ms: request.totalMs,
    client: request.client ?? null,
  }
}

function usageAnswer(usage: Usage) {
  const parts = tokenBuckets.filter(({ partOf }) => partOf !== undefined)
  return {
    ...Object.fromEntries(wholeBuckets.map(({ bucket, count }) => [`${bucket}_tokens`, usage[count]])),
    reasoning_tokens: usage.reasoningTokens ?? null,
    ...Object.fromEntries(parts.map(({ bucket, count }) => [`${bucket}_tokens`, usage[count] ?? 0])),
    ...Object.fromEntries(unitBuckets.map(({ json, count }) => [json, usage[count] ?? 0])),
    ...Object.fromEntries(factorNames.map((name) => [name, usage[factors[name].flag] ?? false])),
    source: usage.source,
  } as UsageItem
}

interface Settled {
  readonly charge: Transfer | undefined
  /** The part the wallet could not pay. */
  readonly writeoff: Transfer | undefined
}

/** null if nothing was charged by a price: rejected requests, and calls on a workspace's own credential without a fee. */
async function explainCharge(database: Database, { usage, held }: StoredRequest, { charge, writeoff }: Settled) {
  if (!usage || charge?.priceVersion === undefined) return null
  const version = await readPriceVersion(database, charge.priceVersion)
  if (!version) return null
  const lines = chargeLines(version.price, usage)
  const writtenOff = writeoff?.amount ?? zeroNano
  // An estimate costs at most what was held, so its lines may add up to more.
  const total = charge.estimated
    ? charge.amount + writtenOff
    : picoToNano(lines.reduce((sum, { pico }) => sum + pico, 0n))
  return {
    price_version: charge.priceVersion,
    price_source: version.source,
    price_effective_from: isoTime(version.effectiveFrom),
    lines: lines.map(({ kind, tokens, price, pico }) => ({
      kind,
      tokens,
      price_per_million: formatPrice(price),
      amount: formatPico(pico),
    })),
    total: formatUsd(total as Nano),
    written_off: formatUsd(writtenOff),
    charged: formatUsd(charge.amount),
    released: usdOrNull(held === undefined ? undefined : ((held > charge.amount ? held - charge.amount : 0n) as Nano)),
  }
}

function usdOrNull(amount: Nano | undefined): string | null {
  return amount === undefined ? null : formatUsd(amount)
}

function sumsAnswer(figures: Figures) {
  return {
    requests: Number(figures.requests),
    errors: Number(figures.errors),
    input_tokens: Number(figures.inputTokens),
    output_tokens: Number(figures.outputTokens),
    cost: formatUsd(figures.charge as Nano),
    first_event_ms: firstEventsOf(figures.firstEvents),
  }
}

async function nameOf({ sql }: Database, group: StatGroup, id: string): Promise<string | null> {
  if (group === 'model') return null
  const [row] = await (group === 'key'
    ? sql<{ name: string }>`SELECT name FROM api_keys WHERE id = ${id}`
    : sql<{ name: string }>`SELECT name FROM projects WHERE id = ${id}`)
  return row?.name ?? null
}

async function* jsonPieces(pages: AsyncIterable<readonly LoggedRequest[]>): AsyncGenerator<string> {
  for await (const page of pages) yield page.map((request) => `${JSON.stringify(request)}\n`).join('')
}

async function* csvPieces(pages: AsyncIterable<readonly LoggedRequest[]>): AsyncGenerator<string> {
  yield `${columns.map(([name]) => name).join(',')}\r\n`
  for await (const page of pages) {
    yield page.map((request) => `${csvLine(columns.map(([, value]) => value(request)))}\r\n`).join('')
  }
}

type Column = readonly [name: string, value: (request: LoggedRequest) => CsvValue]
type PlainField = {
  [Name in keyof LoggedRequest]: LoggedRequest[Name] extends CsvValue ? Name : never
}[keyof LoggedRequest]

const fields = (...names: readonly PlainField[]): readonly Column[] =>
  names.map((name) => [name, (request) => request[name]] as const)

/** In this order; null becomes an empty cell. */
const columns: readonly Column[] = [
  ...fields('started_at', 'id', 'workspace_id', 'project_id', 'key_id', 'path', 'stream', 'model', 'status', 'code'),
  ...fields('provider', 'upstream_model'),
  ['attempts', ({ attempts }) => attempts.length],
  ...usageFields.map((name): Column => {
    return [name === 'source' ? 'usage_source' : name, ({ usage }) => usage?.[name] ?? null]
  }),
  ...fields('price_version', 'cost', 'first_event_ms', 'total_ms', 'client', 'reason'),
]

/** undefined = too many clients are following already. */
type FollowRequests = (filters: RequestFilters, signal: AbortSignal) => ReadableStream<Uint8Array> | undefined

/** Chunks that wait for a slow reader; a slower one misses requests and can list them. */
const queuedChunksMax = 8
/** The tail polls once a second. Proxies, and the gateway itself, close connections that stay silent. */
const pollsPerKeepAlive = 15

const encoder = new TextEncoder()

function createFollowRequests(tail: RequestTail): FollowRequests {
  /** Serialised once, however many clients follow. */
  const serialised = new WeakMap<StoredRequest, string>()
  const eventOf = (request: StoredRequest): string => {
    const event = serialised.get(request) ?? `event: request\ndata: ${JSON.stringify(requestAnswer(request))}\n\n`
    serialised.set(request, event)
    return event
  }

  return (filters, signal) => {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined
    let polls = 0
    const send = (text: string): void => {
      if (controller && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(text))
    }
    const stop = tail.listen({
      onRequests(requests) {
        polls++
        // Everything a poll found goes out at once, because each chunk is a write to the socket.
        const events = requests.filter((request) => passes(request, filters)).map(eventOf)
        if (polls % pollsPerKeepAlive === 0) events.push(': still here\n\n')
        if (events.length > 0) send(events.join(''))
      },
      onEnd: () => controller?.close(),
    })
    if (!stop) return undefined
    signal.addEventListener('abort', stop, { once: true })
    return new ReadableStream<Uint8Array>(
      {
        start(own) {
          controller = own
          send('retry: 2000\n: listening\n\n')
        },
        cancel: stop,
      },
      new CountQueuingStrategy({ highWaterMark: queuedChunksMax }),
    )
  }
}

function passes(request: StoredRequest, { workspaceId, projectId, keyId, model, outcome }: RequestFilters): boolean {
  return (
    (workspaceId === undefined || request.workspaceId === workspaceId) &&
    (projectId === undefined || request.projectId === projectId) &&
    (keyId === undefined || request.keyId === keyId) &&
    (model === undefined || request.model === model) &&
    (outcome === undefined || (request.code === undefined) === (outcome === 'ok'))
  )
}
