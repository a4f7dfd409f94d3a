// The record of one finished request, and the one line that is written about it. Prompts, answers and
// secrets are not in it.

import { isoTime } from '../kernel/clock.ts'
import type { FailureCause } from '../kernel/failure.ts'
import type { KeyId, ProjectId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import { totalInputTokens, type UnitName, type Usage } from '../kernel/usage.ts'
import { type Log, timeOfDay } from './log.ts'

/** One upstream call of a request. */
export interface AttemptRecord {
  readonly provider: string
  readonly upstreamModel: string
  /**
   * `ok`, or the provider's status or the class of the failure: `503`, `timed out`. `interrupted: broken` where it failed
   * after it had begun to answer. Empty while it is under way.
   */
  outcome: string
  /** Until it began to answer or failed, in milliseconds. */
  ms: number
  /** When it began, in milliseconds after the request; requests of older versions do not know. */
  readonly startMs?: number
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

/** The owner of the request. */
export interface RecordedCaller {
  readonly keyId: KeyId
  readonly projectId: ProjectId
  readonly workspaceId: WorkspaceId
}

/** Which trace a request belongs to, and what its own span is called there. */
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

/** Filled in as the request goes; every field that stays undefined was never known. */
export interface RequestRecord {
  readonly id: RequestId
  readonly startedAt: number
  readonly path: string
  /** The dialect of the caller. */
  readonly surface: string | undefined
  /** 499: the client left before the end. */
  status: number
  /** The code of a failure, also of one that was sent inside a stream. */
  code: string | undefined
  /** Detail beyond the code; undefined = none. */
  cause: FailureCause | undefined
  /** Why it failed, in the words the caller got. */
  reason: string | undefined
  caller: RecordedCaller | undefined
  model: string | undefined
  /** The requested name, if it is no model that the client may use. Not `model`: sums have a row for each of those. */
  requestedModel: string | undefined
  candidates: readonly CandidateRecord[]
  attempts: AttemptRecord[]
  lane: 'bytes' | 'translation' | undefined
  /** Codes of what the translation dropped or approximated. */
  warnings: readonly string[]
  /** Oddities of the provider's reply, and how they were handled. */
  notes: string[]
  stream: boolean
  usage: Usage | undefined
  /** The first count that was not billed as reported; a note says which numbers it was. */
  implausibleUsage: ImplausibleCount | undefined
  /** Decimal, as in the answer. */
  costUsd: string | undefined
  /** The wallet's balance then, where known. */
  balance: Nano | undefined
  priceVersion: string | undefined
  held: Nano | undefined
  charge: Nano | undefined
  /** The provider's bill to the operator, by the cost of the route; undefined = unknown. */
  upstreamCost: Nano | undefined
  /** Savings by the prompt cache at the price of the charge; negative if writing to it cost more. */
  cacheSaved: bigint | undefined
  /** The client's name for itself. */
  client: string | undefined
  /** As the client names it; undefined = it does not. */
  session: string | undefined
  /** The program of the client and the agent within it, such as `codex_cli_rs/review`. */
  agent: string | undefined
  /** A hash; if the operator wants it recorded, followed by a space and the id that was sent. */
  endUser: string | undefined
  /** Sorted, `name=value`. */
  tags: readonly string[]
  firstEventMs: number | undefined
  /** Until its charge is durable, or it ended without one; in the row, until the commit begins. */
  totalMs: number
  /** How much of it was waiting for the charge to become durable, which the end of an answer waits for. */
  settleMs: number
  /** How much of it was waiting for providers. */
  waitedMs: number
  /** The limit that refused it, such as `key requests`. */
  limitSource: string | undefined
  /** Where traces are kept. */
  trace: TraceContext | undefined
}

const noList: readonly never[] = []

export function createRecord(id: RequestId, startedAt: number, path: string, surface?: string): RequestRecord {
  return {
    id,
    startedAt,
    path,
    surface,
    status: 0,
    code: undefined,
    cause: undefined,
    reason: undefined,
    caller: undefined,
    model: undefined,
    requestedModel: undefined,
    candidates: noList,
    attempts: [],
    lane: undefined,
    warnings: noList,
    notes: [],
    stream: false,
    usage: undefined,
    implausibleUsage: undefined,
    costUsd: undefined,
    balance: undefined,
    priceVersion: undefined,
    held: undefined,
    charge: undefined,
    upstreamCost: undefined,
    cacheSaved: undefined,
    client: undefined,
    session: undefined,
    agent: undefined,
    endUser: undefined,
    tags: noList,
    firstEventMs: undefined,
    totalMs: 0,
    settleMs: 0,
    waitedMs: 0,
    limitSource: undefined,
    trace: undefined,
  }
}

export function logRequest(log: Log, record: RequestRecord): void {
  log.line(record, prettyRequest, jsonRequest)
}

/** Written by hand: one line per request is the most frequent thing a gateway writes, and this costs half. */
function jsonRequest(record: RequestRecord): string {
  const { usage, attempts } = record
  const served = attempts.at(-1)
  let text = `{"time":"${isoTime(record.startedAt)}","level":"info","message":"request","request_id":"${record.id}"`
  text += `,"path":${jsonText(record.path)},"status":${record.status}`
  if (record.code !== undefined) text += `,"code":"${record.code}","reason":${JSON.stringify(record.reason)}`
  if (record.caller !== undefined) text += `,"key":"${record.caller.keyId}"`
  if (record.model !== undefined) text += `,"model":${jsonText(record.model)}`
  if (served) text += `,"provider":"${served.provider}","upstream_model":${jsonText(served.upstreamModel)}`
  text += `,"attempts":${attempts.length},"stream":${record.stream}`
  if (record.notes.length > 0) text += `,"notes":${JSON.stringify(record.notes)}`
  if (usage) text += `,"input_tokens":${totalInputTokens(usage)},"output_tokens":${usage.outputTokens}`
  if (record.costUsd !== undefined) text += `,"cost":"${record.costUsd}"`
  if (record.firstEventMs !== undefined) text += `,"first_event_ms":${rounded(record.firstEventMs)}`
  return `${text},"total_ms":${rounded(record.totalMs)}}`
}

/** The same few paths and models are in every line. */
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
  columns.push(prettyOutcome(record).padEnd(36))
  if (record.usage) columns.push(`${totalInputTokens(record.usage)} in`, `${record.usage.outputTokens} out`)
  if (record.firstEventMs !== undefined) columns.push(`ttft ${Math.round(record.firstEventMs)} ms`)
  columns.push(`${Math.round(record.totalMs)} ms`)
  if (record.costUsd !== undefined) columns.push(`$${record.costUsd}`)
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
