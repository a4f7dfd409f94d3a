// A request's record as a row of the request log, and back. Ids of requests ascend with time, so a moment is a place among
// them: the log is read and cleaned by id, without an index on times.

import { assert } from '../kernel/assert.ts'
import { type Tags, tagsFromText } from '../kernel/attribution.ts'
import type { KeyId, ProjectId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { RequestRow } from '../store/request-rows.ts'
import { textToSql, timeFromSql } from '../store/sql.ts'
import {
  type AttemptRecord,
  type CandidateRecord,
  onlyRoute,
  type RecordedCaller,
  type RequestRecord,
} from './request-record.ts'

/** A record as it was stored. */
export interface LoggedRequest
  extends Readonly<
    Pick<
      RequestRecord,
      'id' | 'startedAt' | 'path' | 'stream' | 'model' | 'status' | 'code' | 'reason' | 'candidates' | 'warnings'
    > &
      Pick<RequestRecord, 'usage' | 'priceVersion' | 'held' | 'charge' | 'firstEventMs' | 'totalMs' | 'client'> &
      Pick<RequestRecord, 'cause' | 'requestedModel'> &
      Pick<RequestRecord, 'session' | 'agent' | 'endUser' | 'upstreamCost'> &
      RecordedCaller
  > {
  /** Provider of the last attempt. */
  readonly provider: string | undefined
  readonly upstreamModel: string | undefined
  readonly lane: string | undefined
  readonly attempts: readonly AttemptRecord[]
  readonly notes: readonly string[]
  readonly tags: Tags
}

/** The charge, and the facts that are written with it. */
export interface ChargeFacts {
  readonly charge: Nano
  readonly writtenOff: Nano
  /** As in the column `budgets`. */
  readonly budgets: string | null
}

/** undefined for a request whose key is unknown: it belongs to no workspace. Without `facts` it was not charged. */
export function requestRow(record: RequestRecord, facts?: ChargeFacts): RequestRow | undefined {
  const { caller, usage } = record
  if (!caller) return undefined
  const served = record.attempts.at(-1)
  return {
    id: record.id,
    started_at: record.startedAt,
    workspace_id: caller.workspaceId,
    project_id: caller.projectId,
    key_id: caller.keyId,
    path: record.path,
    stream: record.stream ? 1 : 0,
    model: textToSql(record.model),
    status: record.status,
    code: record.code ?? null,
    cause: record.cause ?? null,
    reason: textToSql(record.reason),
    provider: served?.provider ?? null,
    upstream_model: textToSql(served?.upstreamModel),
    lane: record.lane ?? null,
    attempt_start_ms: served?.startMs ?? null,
    attempt_ms: served?.ms ?? null,
    first_event_ms: record.firstEventMs === undefined ? null : Math.round(record.firstEventMs),
    total_ms: Math.round(record.totalMs),
    client: textToSql(record.client),
    session: textToSql(record.session),
    agent: record.agent ?? null,
    end_user: textToSql(record.endUser),
    tags: record.tags.length === 0 ? null : record.tags.join(','),
    details: detailsOf(record),
    held: record.held === undefined ? null : Number(record.held),
    charge: facts ? Number(facts.charge) : null,
    written_off: facts && facts.writtenOff > 0n ? Number(facts.writtenOff) : null,
    upstream_cost: facts && record.upstreamCost !== undefined ? Number(record.upstreamCost) : null,
    price_version: record.priceVersion ?? null,
    input_tokens: usage ? totalInputTokens(usage) : null,
    cache_read_tokens: usage ? usage.cacheReadTokens : null,
    cache_write_tokens: usage ? usage.cacheWriteTokens : null,
    cache_write_1h_tokens: usage ? usage.cacheWriteLongTokens : null,
    output_tokens: usage ? usage.outputTokens : null,
    cache_saved: facts && record.cacheSaved !== undefined ? Number(record.cacheSaved) : null,
    usage: usage ? JSON.stringify(usage) : null,
    estimated: usage?.source === 'estimated' ? 1 : 0,
    budgets: facts?.budgets ?? null,
  }
}

/** Only known keys are charged. */
export function chargedRequestRow(record: RequestRecord, facts: ChargeFacts): RequestRow {
  const row = requestRow(record, facts)
  assert(row, 'a request that is charged has a caller')
  return row
}

interface Details {
  readonly requestedModel?: string
  readonly candidates?: readonly CandidateRecord[]
  readonly attempts?: readonly AttemptRecord[]
  readonly warnings?: readonly string[]
  readonly notes?: readonly string[]
}

/** Leaves out what `requestFromRow` makes of the other columns, so most rows have none. */
function detailsOf({ requestedModel, candidates, attempts, warnings, notes }: RequestRecord): string | null {
  const [attempt] = attempts
  const isOneAttempt = attempts.length === 0 || (attempts.length === 1 && attempt?.outcome === 'ok')
  const served = attempts.at(-1)
  const [candidate] = candidates
  const isOnlyRoute = served
    ? candidates.length === 1 &&
      candidate?.why === onlyRoute &&
      candidate.provider === served.provider &&
      candidate.upstreamModel === served.upstreamModel
    : candidates.length === 0
  const isUsual = isOneAttempt && isOnlyRoute && requestedModel === undefined
  if (isUsual && warnings.length === 0 && notes.length === 0) return null
  const details: Details = {
    ...(requestedModel !== undefined && { requestedModel }),
    ...(!isOnlyRoute && { candidates }),
    ...(!isOneAttempt && { attempts }),
    ...(warnings.length > 0 && { warnings }),
    ...(notes.length > 0 && { notes }),
  }
  return JSON.stringify(details)
}

type Stored<Row> = {
  readonly [Column in keyof Row]: number extends Row[Column] ? Exclude<Row[Column], number> | bigint : Row[Column]
}

/** The row as it is read: every integer is a bigint. */
export type StoredRow = Stored<Omit<RequestRow, 'id' | 'workspace_id' | 'project_id' | 'key_id'>> & {
  readonly id: RequestId
  readonly workspace_id: WorkspaceId
  readonly project_id: ProjectId
  readonly key_id: KeyId
}

/** undefined = it is not what this program writes. */
function storedUsage(text: string): Usage | undefined {
  try {
    const usage = JSON.parse(text) as Usage
    return Number.isSafeInteger(totalInputTokens(usage) + usage.outputTokens) ? usage : undefined
  } catch {
    return undefined
  }
}

const unreadableUsage = 'the stored usage of this request cannot be read'

export function requestFromRow(row: StoredRow): LoggedRequest {
  const usage = row.usage === null ? undefined : storedUsage(row.usage)
  const { provider, upstream_model: upstreamModel } = row
  const route = provider !== null && upstreamModel !== null ? { provider, upstreamModel } : undefined
  const { requestedModel, candidates, attempts, warnings = [], notes = [] }: Details = JSON.parse(row.details ?? '{}')
  const startMs = row.attempt_start_ms === null ? undefined : Number(row.attempt_start_ms)
  const attempt = route && {
    ...route,
    outcome: 'ok',
    ms: Number(row.attempt_ms),
    ...(startMs !== undefined && { startMs }),
  }
  return {
    id: row.id,
    startedAt: timeFromSql(row.started_at) ?? 0,
    workspaceId: row.workspace_id,
    projectId: row.project_id,
    keyId: row.key_id,
    path: row.path,
    stream: row.stream === 1n,
    model: row.model ?? undefined,
    requestedModel,
    status: Number(row.status),
    code: row.code ?? undefined,
    cause: (row.cause ?? undefined) as LoggedRequest['cause'],
    reason: row.reason ?? undefined,
    provider: provider ?? undefined,
    upstreamModel: upstreamModel ?? undefined,
    lane: row.lane ?? undefined,
    candidates: candidates ?? (route ? [{ ...route, why: onlyRoute }] : []),
    attempts: attempts ?? (attempt ? [attempt] : []),
    warnings,
    notes: row.usage !== null && !usage ? [...notes, unreadableUsage] : notes,
    usage,
    priceVersion: row.price_version ?? undefined,
    held: (row.held ?? undefined) as Nano | undefined,
    charge: (row.charge ?? undefined) as Nano | undefined,
    upstreamCost: (row.upstream_cost ?? undefined) as Nano | undefined,
    firstEventMs: row.first_event_ms === null ? undefined : Number(row.first_event_ms),
    totalMs: Number(row.total_ms),
    client: row.client ?? undefined,
    session: row.session ?? undefined,
    agent: row.agent ?? undefined,
    endUser: row.end_user ?? undefined,
    tags: tagsFromText(row.tags),
  }
}

/** Sorts after every id on both engines. */
export const endOfLog: RequestId = `req_${'Z'.repeat(27)}`
