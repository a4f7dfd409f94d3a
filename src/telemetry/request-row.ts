// A request's record as a row of the request log, and back. Ids of requests ascend with time, so a moment is a place among
// them: the log is read and cleaned by id, without an index on times.

import { assert } from '../kernel/assert.ts'
import type { KeyId, ProjectId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { RequestRow } from '../store/request-rows.ts'
import { textToSql, timeFromSql, timeToSql } from '../store/sql.ts'
import type { AttemptRecord, CandidateRecord, RequestRecord } from './request-record.ts'

/** A record as it was stored. */
export interface LoggedRequest {
  readonly id: RequestId
  readonly startedAt: number
  readonly workspaceId: WorkspaceId
  readonly projectId: ProjectId
  readonly keyId: KeyId
  readonly path: string
  readonly stream: boolean
  readonly model: string | undefined
  readonly status: number
  readonly code: string | undefined
  readonly reason: string | undefined
  readonly provider: string | undefined
  readonly upstreamModel: string | undefined
  readonly lane: string | undefined
  readonly candidates: readonly CandidateRecord[]
  readonly attempts: readonly AttemptRecord[]
  readonly warnings: readonly string[]
  readonly notes: readonly string[]
  readonly usage: Usage | undefined
  readonly priceVersion: string | undefined
  readonly held: Nano | undefined
  readonly charge: Nano | undefined
  readonly firstEventMs: number | undefined
  readonly totalMs: number
  readonly client: string | undefined
}

/** undefined for a request whose key is unknown: it belongs to no workspace. `usage`: its JSON, if it exists already. */
export function requestRow(record: RequestRecord, usageJson = jsonOf(record.usage)): RequestRow | undefined {
  const { caller, usage } = record
  if (!caller) return undefined
  const served = record.attempts.at(-1)
  const model = textToSql(record.model)
  const firstEventMs = record.firstEventMs === undefined ? undefined : Math.round(record.firstEventMs)
  return {
    // Field by field: the caller of a running request has more, such as limits, which must not cross to the writing thread.
    counted: {
      workspaceId: caller.workspaceId,
      projectId: caller.projectId,
      keyId: caller.keyId,
      startedAt: record.startedAt,
      model: model ?? '',
      isError: record.code !== undefined,
      inputTokens: usage ? totalInputTokens(usage) : 0,
      outputTokens: usage ? usage.outputTokens : 0,
      charge: Number(record.charge ?? 0n),
      firstEventMs,
    },
    columns: {
      id: record.id,
      started_at: timeToSql(record.startedAt),
      workspace_id: caller.workspaceId,
      project_id: caller.projectId,
      key_id: caller.keyId,
      path: record.path,
      stream: record.stream ? 1n : 0n,
      model,
      status: BigInt(record.status),
      code: record.code ?? null,
      reason: textToSql(record.reason),
      provider: served?.provider ?? null,
      upstream_model: textToSql(served?.upstreamModel),
      lane: record.lane ?? null,
      candidates: listJson(record.candidates),
      attempts: listJson(record.attempts),
      warnings: listJson(record.warnings),
      notes: listJson(record.notes),
      usage: usageJson ?? null,
      price_version: record.priceVersion ?? null,
      held: record.held ?? null,
      charge: record.charge ?? null,
      first_event_ms: firstEventMs === undefined ? null : BigInt(firstEventMs),
      total_ms: BigInt(Math.round(record.totalMs)),
      client: textToSql(record.client),
    },
  }
}

function jsonOf(usage: Usage | undefined): string | undefined {
  return usage && JSON.stringify(usage)
}

/** Most lists are empty. */
function listJson(list: readonly unknown[]): string {
  return list.length === 0 ? '[]' : JSON.stringify(list)
}

/** The database's row; every column has the type that was written. */
export interface StoredRow {
  readonly id: RequestId
  readonly started_at: bigint
  readonly workspace_id: WorkspaceId
  readonly project_id: ProjectId
  readonly key_id: KeyId
  readonly path: string
  readonly stream: bigint
  readonly model: string | null
  readonly status: bigint
  readonly code: string | null
  readonly reason: string | null
  readonly provider: string | null
  readonly upstream_model: string | null
  readonly lane: string | null
  readonly candidates: string
  readonly attempts: string
  readonly warnings: string
  readonly notes: string
  readonly usage: string | null
  readonly price_version: string | null
  readonly held: bigint | null
  readonly charge: bigint | null
  readonly first_event_ms: bigint | null
  readonly total_ms: bigint
  readonly client: string | null
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
  const notes: readonly string[] = JSON.parse(row.notes)
  return {
    id: row.id,
    startedAt: timeFromSql(row.started_at) ?? 0,
    workspaceId: row.workspace_id,
    projectId: row.project_id,
    keyId: row.key_id,
    path: row.path,
    stream: row.stream === 1n,
    model: row.model ?? undefined,
    status: Number(row.status),
    code: row.code ?? undefined,
    reason: row.reason ?? undefined,
    provider: row.provider ?? undefined,
    upstreamModel: row.upstream_model ?? undefined,
    lane: row.lane ?? undefined,
    candidates: JSON.parse(row.candidates),
    attempts: JSON.parse(row.attempts),
    warnings: JSON.parse(row.warnings),
    notes: row.usage !== null && !usage ? [...notes, unreadableUsage] : notes,
    usage,
    priceVersion: row.price_version ?? undefined,
    held: (row.held ?? undefined) as Nano | undefined,
    charge: (row.charge ?? undefined) as Nano | undefined,
    firstEventMs: row.first_event_ms === null ? undefined : Number(row.first_event_ms),
    totalMs: Number(row.total_ms),
    client: row.client ?? undefined,
  }
}

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const digitCount = 26
/** Sorts after every id on both engines. */
export const endOfLog: RequestId = `req_${'Z'.repeat(digitCount + 1)}`
/** An id has 48 bits of time and 80 random ones below them. */
const timeShift = 80n

/** Not greater than any id that was made at that millisecond or later, and greater than all made before it. */
export function firstIdAt(epochMs: number): RequestId {
  assert(Number.isInteger(epochMs) && epochMs >= 0 && epochMs < 2 ** 48, 'a time has 48 bits')
  let rest = BigInt(epochMs) << timeShift
  let digits = ''
  for (let at = 0; at < digitCount; at++) {
    digits = (alphabet[Number(rest & 31n)] ?? '') + digits
    rest >>= 5n
  }
  return `req_${digits}`
}
