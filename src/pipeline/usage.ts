// Validates reported usage and estimates what is missing. A count above what the request allows is implausible, and nothing
// of its report is used. A count of zero for an answer with content is missing. The estimate is made from the relayed bytes
// and never exceeds the bound either. Both lanes use the same functions, so the same reply costs the same on both.
// `quoteUsage` and `usageOfPart` of the Meter apply them to a reply.

import type { Envelope } from '../dialects/canonical/translation.ts'
import type { StreamRelay } from '../dialects/reply/relay.ts'
import type { Clock } from '../kernel/clock.ts'
import {
  countsOfSide,
  estimatedInput,
  type TokenCounts,
  totalInputTokens,
  type UnitCounts,
  type Usage,
  unitBuckets,
} from '../kernel/usage.ts'
import type { Candidate, OfferedModel } from '../routing/plan.ts'
import type { Log } from '../telemetry/log.ts'
import type { ImplausibleCount, RequestRecord } from '../telemetry/request-record.ts'
import { bytesPerToken } from './estimate.ts'

/** The cap where neither the caller nor the catalog sets one; more is held as a stream goes on. */
const capUnknown = 32_768

/** The most output tokens of one answer. */
export function outputCapOf({ outputCap }: Pick<Envelope, 'outputCap'>, model: OutputLimits): number {
  const asked = outputCap ?? model.defaultMaxTokens ?? model.maxOutputTokens ?? capUnknown
  return Math.min(asked, model.maxOutputTokens ?? Number.POSITIVE_INFINITY)
}

/** The most output tokens of one answer, whatever cap the caller sends. */
export function maxOutputOf({ maxOutputTokens }: OutputLimits): number {
  return maxOutputTokens ?? capUnknown
}

type OutputLimits = Pick<OfferedModel, 'defaultMaxTokens' | 'maxOutputTokens'>

/** The measured state of an answer, while it is relayed and after. */
export type MeasuredReply = Pick<StreamRelay, 'usage' | 'usageSoFar' | 'usageAtStart' | 'outputBytes' | 'bytesAtReport'>

export const nothingMeasured: MeasuredReply = {
  usage: undefined,
  usageSoFar: undefined,
  usageAtStart: undefined,
  outputBytes: 0,
  bytesAtReport: undefined,
}

const toleranceMin = 16
const toleranceShare = 0.05

/**
 * The most that a provider may report for an answer with this cap. 16 tokens: speculative decoding may overshoot by a draft,
 * some hosts count the end marker, and Responses knows no cap below 16. 5 %: some hosts recount the text with a tokenizer that
 * is not the model's.
 */
export function withTolerance(cap: number): number {
  return cap + Math.max(toleranceMin, Math.ceil(cap * toleranceShare))
}

/** A summary is made when the context window is nearly full, so that one answer has one or two. */
const summariesMax = 10

export interface UsageBounds {
  /** The most input tokens that the request can have when the model reads it once. */
  readonly inputTokens: number
  /** The most output tokens, over all choices. */
  readonly outputTokens: number
  /** Without a cap upstream, `outputTokens` is an assumption: an answer of more bytes may have one token for each. */
  readonly isCapSent: boolean
  /** The most output tokens of a summary of the conversation, to which the caller's cap does not apply. */
  readonly summaryTokens: number
  /** The most units of each bucket. Units without a price that were not requested have none: any number costs nothing. */
  readonly units: UnitCounts | undefined
}

/** The first count of a report that cannot be true. */
export interface Implausible {
  readonly count: ImplausibleCount
  readonly reported: number
  readonly max: number
}

/** undefined = every count may be true. `outputBytes` is called only where it decides. */
export function findImplausible(usage: Usage, bounds: UsageBounds, outputBytes: () => number): Implausible | undefined {
  const exceeding = findExceeding(usage, bounds, outputBytes)
  if (exceeding) return exceeding
  if ((usage.outputTokens > 0 && totalInputTokens(usage) > 0) || outputBytes() === 0) return undefined
  return { count: 'zero', reported: 0, max: 0 }
}

/** The first count above its bound. */
export function findExceeding(usage: Usage, bounds: UsageBounds, outputBytes: () => number): Implausible | undefined {
  const { outputTokens } = usage
  const input = totalInputTokens(usage)
  const inputMax = inputMaxOf(usage, bounds)
  if (input > inputMax) return { count: 'input', reported: input, max: inputMax }
  const outputMax = outputMaxOf(usage, bounds, outputTokens > bounds.outputTokens ? outputBytes : none)
  if (outputTokens > outputMax) return { count: 'output', reported: outputTokens, max: outputMax }
  if (bounds.units) {
    for (const { count, json } of unitBuckets) {
      if (isUnitPlausible(usage, bounds, count)) continue
      return { count: json, reported: usage[count] ?? 0, max: bounds.units[count] ?? 0 }
    }
  }
  const { summaries } = usage
  if (summaries && !areSummariesPlausible(summaries, bounds)) {
    return { count: 'summary', reported: summaries.length, max: summariesMax }
  }
  return undefined
}

const none = () => 0

/** The note in the request's record. */
export function implausibleNote({ count, reported, max }: Implausible): string {
  const unit = unitBuckets.find(({ json }) => json === count)
  if (unit) {
    return noteOf(`reported ${reported} ${unit.label.toLowerCase()}, and this request allows ${max} at most`)
  }
  const what: Partial<Record<ImplausibleCount, string>> = {
    input: `reported ${reported} input tokens, and this request can have ${max} at most`,
    output: `reported ${reported} output tokens, and this request allows ${max} at most`,
    summary: 'reported summaries of the conversation that are more or longer than the request allows',
    zero: 'reported no input or no output tokens, although the answer has content',
  }
  return noteOf(what[count] ?? '')
}

export function isImplausibleNote(note: string): boolean {
  return note.startsWith('implausible usage')
}

function noteOf(what: string): string {
  return `implausible usage: the provider ${what}; an estimate was charged instead`
}

function inputMaxOf(usage: Usage, bounds: UsageBounds): number {
  return bounds.inputTokens * roundsOf(usage, bounds)
}

function outputMaxOf(usage: Usage | undefined, bounds: UsageBounds, outputBytes: () => number): number {
  const max = bounds.outputTokens * roundsOf(usage, bounds)
  return bounds.isCapSent ? max : Math.max(max, outputBytes())
}

/** How often the model read the request: a model that searches the web reads everything again after each search. */
function roundsOf(usage: Usage | undefined, bounds: UsageBounds): number {
  return 1 + Math.min(usage?.webSearches ?? 0, bounds.units?.webSearches ?? 0)
}

function isUnitPlausible(usage: Usage, bounds: UsageBounds, count: keyof UnitCounts): boolean {
  return (usage[count] ?? 0) <= (bounds.units?.[count] ?? Number.POSITIVE_INFINITY)
}

function areSummariesPlausible(
  summaries: readonly TokenCounts[],
  { inputTokens, summaryTokens }: UsageBounds,
): boolean {
  return (
    summaries.length <= summariesMax &&
    summaries.every((counts) => totalInputTokens(counts) <= inputTokens && counts.outputTokens <= summaryTokens)
  )
}

function fieldsOf(usage: Usage, isWanted: (name: string) => boolean): Partial<Usage> {
  return Object.fromEntries(Object.entries(usage).filter(([name]) => isWanted(name)))
}

/** A report with the input of another one. */
export function withInputOf(reported: Usage, other: Usage): Usage {
  const isInput = (name: string) => countsOfSide.input.includes(name)
  return { ...fieldsOf(reported, (name) => !isInput(name)), ...fieldsOf(other, isInput) } as Usage
}

/** An estimate from the relayed bytes and from `reported`, if all of that is within the bounds; never above them. */
export function estimateUsage(
  reported: Usage | undefined,
  outputBytes: number,
  bounds: UsageBounds,
  estimatedInputTokens: () => number,
): Usage {
  const counted = reported && !findExceeding(reported, bounds, () => outputBytes) ? reported : undefined
  const max = outputMaxOf(counted, bounds, () => outputBytes)
  const outputTokens = Math.min(max, Math.max(counted?.outputTokens ?? 0, tokensIn(outputBytes)))
  // Some hosts report zeros until they know.
  if (counted && totalInputTokens(counted) > 0) return withOutput(counted, outputTokens)
  const units = counted && fieldsOf(counted, (name) => unitBuckets.some(({ count }) => count === name))
  return { ...estimatedInput(estimatedInputTokens()), outputTokens, ...units }
}

/** The reported count plus an estimate for the bytes relayed since; the same object if there were none. */
export function usageSince(counted: Usage, bytes: number, bounds: UsageBounds): Usage {
  if (bytes === 0) return counted
  const max = outputMaxOf(counted, bounds, () => Number.POSITIVE_INFINITY)
  return withOutput(counted, Math.min(max, counted.outputTokens + tokensIn(bytes)))
}

function withOutput(counted: Usage, outputTokens: number): Usage {
  const input = counted.source === 'reported' ? ({ inputReported: true } as const) : {}
  return { ...counted, outputTokens, ...input, source: 'estimated' }
}

function tokensIn(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken)
}

type WarnUsage = (record: RequestRecord, candidate: Candidate) => void

const warnEveryMs = 3_600_000

interface WarningDependencies {
  readonly log: Log
  readonly clock: Clock
}

/** Logs implausible usage and tiers without a price, each at most once an hour for each route; metrics count every case. */
export function createUsageWarnings({ log, clock }: WarningDependencies): WarnUsage {
  const warnedAtMs = new WeakMap<Candidate['health'], Map<string, number>>()
  const warn = (message: string, record: RequestRecord, { health, provider, route }: Candidate, facts: object) => {
    const nowMs = clock.monotonicMs()
    const ofRoute = warnedAtMs.get(health) ?? new Map<string, number>()
    warnedAtMs.set(health, ofRoute)
    const last = ofRoute.get(message)
    if (last !== undefined && nowMs - last < warnEveryMs) return
    ofRoute.set(message, nowMs)
    const { id, model } = record
    log.warn(message, {
      ...{ request_id: id, model, provider: provider.id, upstream_model: route.upstreamModel },
      ...facts,
    })
  }
  return (record, candidate) => {
    const { notes, implausible, unpricedTier } = record
    if (implausible) warn(implausibleWarning, record, candidate, { note: notes.find(isImplausibleNote) })
    if (unpricedTier) warn(unpricedTierWarning, record, candidate, { tier: unpricedTier })
  }
}

const implausibleWarning =
  'A provider reported implausible usage. This is logged once an hour for each route; tollgate_implausible_usage_total counts every case. See docs/operate/observe.md, "Implausible usage".'
const unpricedTierWarning =
  'A provider served a request in a service tier that has no price. It was charged as another tier. Set its price. This is logged once an hour for each route; tollgate_unpriced_tier_total counts every case. See docs/reference/service-tiers.md.'
