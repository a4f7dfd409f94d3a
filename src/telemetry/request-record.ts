// The record of one finished request, the line that is logged about it, and its row in the database. Prompts, answers and
// secrets are not in it.

import { type Tags, tagsFromText } from '../kernel/attribution.ts'
import { isoTime } from '../kernel/clock.ts'
import type { RedactionRule } from '../kernel/content-export.ts'
import { assert, type FailureCause } from '../kernel/failure.ts'
import type { BatchId, KeyId, ProjectId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import { type Tier, totalInputTokens, type UnitName, type Usage } from '../kernel/usage.ts'
import type { RequestRow } from '../store/request-rows.ts'
import { textToSql, timeFromSql } from '../store/sql.ts'
import { type Log, timeOfDay } from './log.ts'

/** One upstream call of a request. */
export interface AttemptRecord {
  readonly provider: string
  readonly upstreamModel: string
  /**
   * `ok`, or the provider's status or the class of the failure: `503`, `timed out`. `interrupted: broken` where it failed
   * after it had begun to answer. Empty while the attempt runs.
   */
  outcome: string
  /** Until it began to answer or failed, in milliseconds. */
  ms: number
  /** When it began, in milliseconds after the request. Absent in requests of older versions. */
  readonly startMs?: number
  /** What a call without an answer probably used, as reported or estimated; absent = nothing that is billed. */
  readonly usage?: Usage
  /** What that cost by the route's price, in nano-dollars; absent = nothing, or unknown. */
  readonly cost?: number
  /** The version of that price. */
  readonly costVersion?: string
}

/** Whether the caller got an answer from it, or a part of one. */
export function hasAnswered({ outcome }: Pick<AttemptRecord, 'outcome'>): boolean {
  return outcome === 'ok' || outcome.startsWith('interrupted')
}

/** A route that could have served a request, in the order of the plan. */
export interface CandidateRecord {
  readonly provider: string
  readonly upstreamModel: string
  /** Why it has this place, or was left out. */
  readonly why?: string
}

/** Why the candidate of a plan with one route is in it. */
export const onlyRoute = 'the only route'

/** One question to a policy of the operator. */
export interface PolicyCheck {
  /** The policy's id. */
  readonly policy: string
  readonly moment: 'request' | 'answer'
  readonly outcome: 'allowed' | 'blocked' | 'failed'
  /** When it began, in milliseconds after the request. */
  readonly startMs: number
  readonly ms: number
}

/** The owner of the request. */
export interface RecordedCaller {
  readonly keyId: KeyId
  readonly projectId: ProjectId
  readonly workspaceId: WorkspaceId
}

/** The trace that a request belongs to, and its own span in it. */
export interface TraceContext {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  /** The caller's span; undefined = the trace begins here. */
  readonly parentSpanId: string | undefined
  readonly sampled: boolean
}

/** The implausible part of the usage that a provider reported; `zero`: it counted nothing for an answer with content. */
export type ImplausibleCount = 'input' | 'output' | UnitName | 'summary' | 'zero'

/** Prompt and answer for the collector of the operator: JSON as OpenTelemetry's conventions describe it, redacted. */
export interface CapturedContent {
  /** undefined = the request has none. */
  readonly system: string | undefined
  readonly input: string
  /** undefined = there was no answer. */
  output: string | undefined
  readonly tools: string | undefined
  /** Older turns that are not in `input`. */
  readonly omitted: number
  /** As the client sent it. */
  readonly traceparent: string | null
  /** Whether the answer says in a header that it is exported. */
  readonly isAnnounced: boolean
  /** As was set when the request began. */
  readonly charactersMax: number
  readonly rules: readonly RedactionRule[]
}

const noList: readonly never[] = []

/** Filled in while the request runs. A field that stays undefined is not known. */
export class RequestRecord {
  /** 499: the client left before the end. */
  status = 0
  /** The code of a failure, also of one that was sent inside a stream. */
  code: string | undefined
  /** Detail beyond the code; undefined = none. */
  cause: FailureCause | undefined
  /** Why it failed, in the words the caller got. */
  reason: string | undefined
  caller: RecordedCaller | undefined
  model: string | undefined
  /**
   * The requested name, if the client may not use such a model. Kept apart from `model`, because sums have a row per model. The
   * id of the requested model, if a fallback answered.
   */
  requestedModel: string | undefined
  candidates: readonly CandidateRecord[] = noList
  attempts: AttemptRecord[] = []
  lane: 'bytes' | 'translation' | undefined
  /** Codes of what the translation dropped or approximated. */
  warnings: readonly string[] = noList
  /** Oddities of the provider's reply, and how they were handled; what policies said. */
  notes: string[] = []
  /** For metrics and traces; the notes say the same. */
  policies: readonly PolicyCheck[] = noList
  stream = false
  usage: Usage | undefined
  /** The first count that was not billed as reported. A note has the numbers. */
  implausible: { readonly count: ImplausibleCount; readonly reported: number } | undefined
  /** The tier that the reply names, if the price has none for it. A note says what was charged. */
  unpricedTier: Tier | undefined
  /** `charge` in decimal USD. The answer, the log and the API show it as `cost`. */
  chargeUsd: string | undefined
  /** The wallet's balance after the charge, where known. */
  balance: Nano | undefined
  priceVersion: string | undefined
  held: Nano | undefined
  /** The quoted amount until the charge is committed, then what the wallet paid. */
  charge: Nano | undefined
  /** The provider's bill to the operator, by the cost of the route; undefined = unknown. */
  upstreamCost: Nano | undefined
  /** The version of that cost; `own` on the workspace's own key. */
  costVersion: string | undefined
  /** Savings by the prompt cache at the price of the charge; negative if writing to it cost more. */
  cacheSaved: bigint | undefined
  /** The client's name for itself. */
  client: string | undefined
  /** The client's own name for it; undefined = it sends none. */
  session: string | undefined
  /** The program of the client and the agent within it, such as `codex_cli_rs/review`. */
  agent: string | undefined
  /** A hash; if the operator wants it recorded, followed by a space and the id that was sent. */
  endUser: string | undefined
  /** Sorted, `name=value`. */
  tags: readonly string[] = noList
  firstEventMs: number | undefined
  /** Until its charge is durable, or it ended without one. In the row: until the commit begins, which writes the row. */
  totalMs = 0
  /** The part of `totalMs` spent waiting for the charge to become durable. The end of an answer waits for that. */
  settleMs = 0
  /** The part of `totalMs` spent waiting for providers and policies. */
  waitedMs = 0
  /** The limit that refused it, such as `key requests`. */
  limitSource: string | undefined
  /** Set if traces are exported. */
  trace: TraceContext | undefined
  /** Set if prompt and answer are exported. */
  content: CapturedContent | undefined
  /** The batch it is a line of. */
  batchId: BatchId | undefined

  constructor(
    readonly id: RequestId,
    readonly startedAt: number,
    readonly path: string,
    /** The dialect of the caller. */
    readonly surface?: string,
  ) {}
}

// ── The line in the log ──

export function logRequest(log: Log, record: RequestRecord): void {
  log.line(record, prettyRequest, jsonRequest)
}

/** Built by hand at half the cost of JSON.stringify, because every request writes this line. */
function jsonRequest(record: RequestRecord): string {
  const { usage, attempts } = record
  const served = attempts.at(-1)
  let text = `{"time":"${isoTime(record.startedAt)}","level":"info","message":"request","request_id":"${record.id}"`
  text += `,"path":${jsonText(record.path)},"status":${record.status}`
  if (record.code !== undefined) text += `,"code":"${record.code}","reason":${JSON.stringify(record.reason)}`
  if (record.caller !== undefined) text += `,"key":"${record.caller.keyId}"`
  if (record.model !== undefined) text += `,"model":${jsonText(record.model)}`
  const replaced = replacedModel(record)
  if (replaced !== undefined) text += `,"requested_model":${jsonText(replaced)}`
  if (served) text += `,"provider":"${served.provider}","upstream_model":${jsonText(served.upstreamModel)}`
  text += `,"attempts":${attempts.length},"stream":${record.stream}`
  if (record.notes.length > 0) text += `,"notes":${JSON.stringify(record.notes)}`
  if (usage) text += `,"input_tokens":${totalInputTokens(usage)},"output_tokens":${usage.outputTokens}`
  if (record.chargeUsd !== undefined) text += `,"cost":"${record.chargeUsd}"`
  if (record.firstEventMs !== undefined) text += `,"first_event_ms":${rounded(record.firstEventMs)}`
  return `${text},"total_ms":${rounded(record.totalMs)}}`
}

/** The model that was asked for, if a fallback answered. */
function replacedModel({ model, requestedModel }: RequestRecord): string | undefined {
  return model === undefined ? undefined : requestedModel
}

/** Every line has one of a few paths and models. */
const knownJson = new Map<string, string>()
const knownJsonMax = 1000

function jsonText(text: string): string {
  const known = knownJson.get(text)
  if (known !== undefined) return known
  if (knownJson.size >= knownJsonMax) knownJson.clear()
  const json = JSON.stringify(text)
  knownJson.set(text, json)
  return json
}

/** `14:02:11  200  sandbox/echo  via sandbox  12 in  8 out  ttft 41 ms  310 ms  $0.000028  req_…` */
function prettyRequest(record: RequestRecord): string {
  const columns = [timeOfDay(record.startedAt), String(record.status), (record.model ?? record.path).padEnd(18)]
  const replaced = replacedModel(record)
  if (replaced !== undefined) columns.push(`in place of ${replaced}`)
  columns.push(prettyOutcome(record).padEnd(36))
  if (record.usage) columns.push(`${totalInputTokens(record.usage)} in`, `${record.usage.outputTokens} out`)
  if (record.firstEventMs !== undefined) columns.push(`ttft ${Math.round(record.firstEventMs)} ms`)
  columns.push(`${Math.round(record.totalMs)} ms`)
  if (record.chargeUsd !== undefined) columns.push(`$${record.chargeUsd}`)
  if (record.balance !== undefined) columns.push(`left $${formatUsd(record.balance)}`)
  columns.push(record.id)
  return columns.join('  ')
}

function prettyOutcome(record: RequestRecord): string {
  const served = record.attempts.at(-1)
  if (record.code !== undefined) return `${record.code}: ${record.reason}`
  if (!served) return ''
  const failed = record.attempts.slice(0, -1)
  const others = failed.length === 0 ? '' : `, ${record.attempts.length} attempts (first: ${failed[0]?.outcome})`
  return `via ${served.provider}${others}`
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10
}

// ── The row in the database ──

// Request ids ascend with time, so rows of a period are read and deleted by id, and times need no index.

/** Fields that have other columns, or are only in the log line or in metrics. */
type NotLogged =
  | ('surface' | 'caller' | 'implausible' | 'unpricedTier' | 'chargeUsd' | 'balance')
  | ('cacheSaved' | 'settleMs' | 'waitedMs' | 'limitSource' | 'trace' | 'policies' | 'content')

/** A record as it was stored. */
export interface LoggedRequest
  extends Readonly<Omit<RequestRecord, NotLogged | 'lane' | 'attempts' | 'notes' | 'tags'> & RecordedCaller> {
  /** Provider of the last attempt. */
  readonly provider: string | undefined
  readonly upstreamModel: string | undefined
  readonly lane: string | undefined
  readonly attempts: readonly AttemptRecord[]
  readonly notes: readonly string[]
  readonly tags: Tags
}

export interface ChargeFacts {
  readonly charge: Nano
  readonly writtenOff: Nano
  /** As in the column `budgets`. */
  readonly budgets: string | null
}

/** undefined = its key is unknown, so it belongs to no workspace. Without `facts` it was not charged. */
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
    upstream_cost: record.upstreamCost === undefined ? null : Number(record.upstreamCost),
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
    cost_version: record.costVersion ?? null,
    failed_cost: failedCostOf(record.attempts),
    batch_id: record.batchId ?? null,
  }
}

function failedCostOf(attempts: readonly AttemptRecord[]): number | null {
  let sum: number | null = null
  // 0: there is such an attempt, and its cost is unknown.
  for (const { usage, cost = 0 } of attempts) if (usage !== undefined) sum = (sum ?? 0) + cost
  return sum
}

/** Only known keys are charged. */
export function chargedRequestRow(record: RequestRecord, facts: ChargeFacts): RequestRow {
  const row = requestRow(record, facts)
  assert(row, 'a request that is charged has a caller')
  return row
}

/** The column `details`. */
export interface Details {
  readonly requestedModel?: string
  readonly candidates?: readonly CandidateRecord[]
  readonly attempts?: readonly AttemptRecord[]
  readonly warnings?: readonly string[]
  readonly notes?: readonly string[]
  /** The implausible count that the provider reported, and most likely bills. */
  readonly implausible?: { readonly count: ImplausibleCount; readonly reported: number }
  /** The tier without a price that the reply names, and that the provider most likely bills. */
  readonly unpricedTier?: Tier
}

/** Leaves out what `requestFromRow` derives from other columns, so most rows have no details. */
function detailsOf({
  requestedModel,
  candidates,
  attempts,
  warnings,
  notes,
  implausible,
  unpricedTier,
}: RequestRecord): string | null {
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
    ...(implausible && { implausible }),
    ...(unpricedTier && { unpricedTier }),
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

/** undefined = it cannot be read. */
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
    costVersion: row.cost_version ?? undefined,
    firstEventMs: row.first_event_ms === null ? undefined : Number(row.first_event_ms),
    totalMs: Number(row.total_ms),
    client: row.client ?? undefined,
    session: row.session ?? undefined,
    agent: row.agent ?? undefined,
    endUser: row.end_user ?? undefined,
    tags: tagsFromText(row.tags),
    batchId: (row.batch_id ?? undefined) as BatchId | undefined,
  }
}

/** Sorts after every id on both engines. */
export const endOfLog: RequestId = `req_${'Z'.repeat(27)}`
