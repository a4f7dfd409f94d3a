// A finished request as spans: one for the request, one below it for each attempt. They tell who, where, how long and how
// much; prompts, answers, error texts and keys are not in them.

import { totalInputTokens } from '../../kernel/usage.ts'
import { isGeneration, none } from '../metrics/observed-request.ts'
import { hasAnswered, type RequestRecord, type TraceContext } from '../request-record.ts'
import { genAi, genAiSchemaUrl, http, own } from './gen-ai-names.ts'
import { Attributes, type KeyValue, resourceOf, type Sender, scopeOf, unixNanos } from './json-mapping.ts'
import { hex } from './trace-context.ts'

/** A record that was drawn to be kept. */
export interface TracedRequest {
  readonly record: RequestRecord
  readonly trace: TraceContext
}

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly KeyValue[]
  readonly status: { readonly code?: number }
}

/** Of the protocol's enums. */
const server = 2
const client = 3
const statusError = 2

export function tracesPayload(
  requests: readonly TracedRequest[],
  sender: Sender,
  randomBytes: (count: number) => Uint8Array,
) {
  const spans = requests.flatMap((request) => requestSpans(request, randomBytes))
  const scopeSpans = [{ scope: scopeOf(sender), spans, schemaUrl: genAiSchemaUrl }]
  return { resourceSpans: [{ resource: resourceOf(sender), scopeSpans }] }
}

export function requestSpans(request: TracedRequest, randomBytes: (count: number) => Uint8Array): readonly Span[] {
  return [requestSpan(request), ...attemptSpans(request, randomBytes)]
}

export function operationOf(record: RequestRecord): string {
  return isGeneration(record) ? 'chat' : 'count_tokens'
}

function requestSpan({ record, trace }: TracedRequest): Span {
  const { model, code, status, startedAt, totalMs } = record
  const operation = operationOf(record)
  // To a server a request that was refused is no error of its own; an answer that broke off is.
  const failed = status >= 500 || (status < 400 && code !== undefined)
  return {
    traceId: trace.traceId,
    spanId: trace.spanId,
    ...(trace.parentSpanId !== undefined && { parentSpanId: trace.parentSpanId }),
    name: model === undefined ? operation : `${operation} ${model}`,
    kind: server,
    startTimeUnixNano: unixNanos(startedAt),
    endTimeUnixNano: unixNanos(startedAt, totalMs),
    attributes: requestAttributes(record, operation),
    status: failed ? { code: statusError } : {},
  }
}

function requestAttributes(record: RequestRecord, operation: string): readonly KeyValue[] {
  const { usage, stream, firstEventMs, caller, charge } = record
  const served = record.attempts.at(-1)
  const attributes = new Attributes()
    .text(genAi.operationName, operation)
    .text(genAi.providerName, served?.provider ?? none)
    .text(genAi.requestModel, record.model)
    .text(genAi.responseModel, served && hasAnswered(served) ? served.upstreamModel : undefined)
    .bool(genAi.requestStream, stream)
    .double(genAi.timeToFirstChunk, stream && firstEventMs !== undefined ? firstEventMs / 1000 : undefined)
    .text(genAi.errorType, record.code)
    .text(http.path, record.path)
    .int(http.status, record.status)
    .text(own.requestId, record.id)
    .text(own.workspaceId, caller?.workspaceId)
    .text(own.projectId, caller?.projectId)
    .text(own.lane, record.lane)
    .int(own.attempts, record.attempts.length)
    .int(own.warnings, record.warnings.length > 0 ? record.warnings.length : undefined)
    .double(own.costUsd, charge === undefined ? undefined : Number(charge) / 1e9)
  if (!usage) return attributes.list
  return attributes
    .int(genAi.inputTokens, totalInputTokens(usage))
    .int(genAi.outputTokens, usage.outputTokens)
    .int(genAi.cacheReadTokens, usage.cacheReported === 'none' ? undefined : usage.cacheReadTokens)
    .int(
      genAi.cacheWriteTokens,
      usage.cacheReported === undefined ? usage.cacheWriteTokens + usage.cacheWriteLongTokens : undefined,
    )
    .int(genAi.reasoningTokens, usage.reasoningTokens)
    .text(own.usageSource, usage.source).list
}

/**
 * The usage stands at the request alone, or a sum over all spans would count it twice. Where it is not known when an
 * attempt began, they are taken to follow each other up to the first event.
 */
function attemptSpans({ record, trace }: TracedRequest, randomBytes: (count: number) => Uint8Array): readonly Span[] {
  const { attempts, startedAt, totalMs } = record
  let laterMs = record.firstEventMs ?? totalMs
  const starts = attempts.map(() => 0)
  for (let at = attempts.length - 1; at >= 0; at--) {
    const attempt = attempts[at]
    laterMs = Math.max(0, attempt?.startMs ?? laterMs - (attempt?.ms ?? 0))
    starts[at] = laterMs
  }
  return attempts.map(({ provider, upstreamModel, outcome, ms }, at) => {
    const isOk = outcome === 'ok'
    const startMs = starts[at] ?? 0
    const attributes = new Attributes()
      .text(genAi.providerName, provider)
      .text(genAi.requestModel, upstreamModel)
      .text(own.outcome, outcome)
      .text(genAi.errorType, isOk ? undefined : outcome)
    return {
      traceId: trace.traceId,
      spanId: hex(randomBytes(8)),
      parentSpanId: trace.spanId,
      name: `attempt ${provider}`,
      kind: client,
      startTimeUnixNano: unixNanos(startedAt, startMs),
      // The one that answered lasts as long as its answer.
      endTimeUnixNano: unixNanos(startedAt, hasAnswered({ outcome }) ? Math.max(startMs, totalMs) : startMs + ms),
      attributes: attributes.list,
      status: isOk ? {} : { code: statusError },
    }
  })
}
