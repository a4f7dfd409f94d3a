// The request log as the API shows it, and one request explained: where it could have gone and why, what was tried, what
// was used of each kind, at which price, and the transfer that this became. The sums hold to the nano-dollar.

import { chargeLines } from '../../catalog/charge-lines.ts'
import { readPriceVersion } from '../../catalog/price-versions.ts'
import { isoTime } from '../../kernel/clock.ts'
import { isId, type RequestId } from '../../kernel/ids.ts'
import { formatPico, formatPrice, formatUsd, type Nano, picoToNano, zeroNano } from '../../kernel/money.ts'
import type { Usage } from '../../kernel/usage.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Transfer, TransferKind } from '../../ledger/transfer.ts'
import type { Database } from '../../store/database.ts'
import type { RequestLog as StoredLog } from '../../telemetry/request-log.ts'
import type { LoggedRequest as StoredRequest } from '../../telemetry/request-row.ts'
import { transferAnswer } from './answers.ts'
import type { LoggedRequest } from './request-answer.ts'
import type { RequestLog } from './request-routes.ts'

export interface ReaderDependencies {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'transfersOf'>
  readonly requests: Pick<StoredLog, 'list' | 'find'>
}

export function createRequestReader({ database, ledger, requests }: ReaderDependencies): RequestLog {
  return {
    async list({ limit, cursor, ...filters }) {
      const before = cursor !== undefined && isId('req', cursor) ? { before: cursor } : {}
      const found = await requests.list({ ...filters, ...before, limit: limit + 1 })
      const items = found.slice(0, limit).map(shownRequest)
      return { items, nextCursor: found.length > limit ? items.at(-1)?.id : undefined }
    },
    async find(id: RequestId) {
      const request = await requests.find(id)
      if (!request) return undefined
      const transfers = await ledger.transfersOf(id)
      const transferOf = (wanted: TransferKind) => transfers.find(({ kind }) => kind === wanted)
      // It knows who served in the end: a call on a workspace's own credential has no price of the catalog.
      const charge = transferOf('charge')
      return {
        ...shownRequest(request),
        ...(charge && { price_version: charge.priceVersion ?? null }),
        charge: await explainCharge(database, request, { charge, writeoff: transferOf('writeoff') }),
        transfers: transfers.map((transfer) => transferAnswer(transfer, request.workspaceId)),
      }
    },
  }
}

export function shownRequest(request: StoredRequest): LoggedRequest {
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
    usage: request.usage ? shownUsage(request.usage) : null,
    price_version: request.priceVersion ?? null,
    cost: usdOrNull(request.charge),
    held: usdOrNull(request.held),
    first_event_ms: request.firstEventMs ?? null,
    total_ms: request.totalMs,
    client: request.client ?? null,
  }
}

function shownUsage(usage: Usage) {
  return {
    input_tokens: usage.inputTokens,
    cache_read_tokens: usage.cacheReadTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    cache_write_1h_tokens: usage.cacheWriteLongTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens ?? null,
    audio_input_tokens: usage.audioInputTokens ?? 0,
    audio_cache_read_tokens: usage.audioCacheReadTokens ?? 0,
    audio_output_tokens: usage.audioOutputTokens ?? 0,
    web_searches: usage.webSearches ?? 0,
    us_only: usage.isUsOnly ?? false,
    source: usage.source,
  }
}

interface Settled {
  readonly charge: Transfer | undefined
  /** What the wallet could not pay. */
  readonly writeoff: Transfer | undefined
}

/** null where nothing was charged by a price: refused requests, and calls on a workspace's own credential without a fee. */
async function explainCharge(database: Database, { usage, held }: StoredRequest, { charge, writeoff }: Settled) {
  if (!usage || charge?.priceVersion === undefined) return null
  const version = await readPriceVersion(database, charge.priceVersion)
  if (!version) return null
  const lines = chargeLines(version.price, usage)
  const writtenOff = writeoff?.amount ?? zeroNano
  // An estimate costs what was held at most, so that its lines may come to more.
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
