// Finished requests and metric readings as OTLP payloads, in the JSON that the protocol defines
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): 64-bit integers are strings, ids are hexadecimal,
// enums are numbers. Payloads contain no prompts, answers, error texts or keys; `content-exporter.ts` makes those that do.

import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import { createRegistry, isGeneration, type MetricReading, none } from './metrics.ts'
import { hasAnswered, type RequestRecord, type TraceContext } from './request-record.ts'

// The `gen_ai.` names are OpenTelemetry's conventions for generative models, version 1.42.0, which are still in development
// (open-telemetry/semantic-conventions-genai, read 2026-07). Names that hold prompts or answers, such as
// `gen_ai.input.messages`, are in `content-exporter.ts` only.

export const schemaUrl = 'https://opentelemetry.io/schemas/gen-ai/1.42.0'

/** The same in every payload. */
export interface Sender {
  readonly serviceName: string
  readonly version: string
  /** Identifies the replica. */
  readonly instanceId: string
}

/** A plain number is an integer. Any other number is given as `doubleValue`, because the protocol distinguishes them. */
type AttributeValue = string | number | boolean | { readonly doubleValue: number }
type AttributeValues = Readonly<Record<string, AttributeValue | undefined>>

/** Leaves out values that are undefined or empty. */
export function attributes(values: AttributeValues) {
  return Object.entries(values).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [{ key, value: encoded(value) }],
  )
}

function encoded(value: AttributeValue) {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'number') return { intValue: String(value) }
  return typeof value === 'boolean' ? { boolValue: value } : value
}

export function senderOf({ serviceName, version, instanceId }: Sender) {
  const names = { 'service.name': serviceName, 'service.version': version, 'service.instance.id': instanceId }
  return { resource: { attributes: attributes(names) }, scope: { name: 'tollgate', version } }
}

/** Nanoseconds from epoch milliseconds and an offset that may have fractions. */
export function unixNanos(epochMs: number, offsetMs = 0): string {
  return String(BigInt(epochMs) * 1_000_000n + BigInt(Math.round(offsetMs * 1_000_000)))
}

// Traces: one span for the request, and below it one for each policy that was asked and one for each attempt.

export interface TracedRequest {
  readonly record: RequestRecord
  readonly trace: TraceContext
}

export type Span = ReturnType<typeof requestSpan>

export type RandomBytes = (count: number) => Uint8Array

/** Enums of the protocol. */
const server = 2
export const client = 3
export const statusOf = (isError: boolean): { readonly code?: number } => (isError ? { code: 2 } : {})

export function tracesPayload(requests: readonly TracedRequest[], sender: Sender, randomBytes: RandomBytes) {
  const { resource, scope } = senderOf(sender)
  const spans = requests.flatMap((request) => requestSpans(request, randomBytes))
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans, schemaUrl }] }] }
}

export function requestSpans(request: TracedRequest, randomBytes: RandomBytes): readonly Span[] {
  return [requestSpan(request), ...policySpans(request, randomBytes), ...attemptSpans(request, randomBytes)]
}

function operationOf(record: RequestRecord): string {
  return isGeneration(record) ? 'chat' : 'count_tokens'
}

function requestSpan({ record, trace: { traceId, spanId, parentSpanId } }: TracedRequest) {
  const { model, code, status, startedAt, totalMs } = record
  const operation = operationOf(record)
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    name: model === undefined ? operation : `${operation} ${model}`,
    kind: server,
    startTimeUnixNano: unixNanos(startedAt),
    endTimeUnixNano: unixNanos(startedAt, totalMs),
    attributes: requestAttributes(record, operation),
    // A rejected request is not a server error; an interrupted answer is.
    status: statusOf(status >= 500 || (status < 400 && code !== undefined)),
  }
}

function requestAttributes(record: RequestRecord, operation: string) {
  const { usage, stream, firstEventMs, caller, charge } = record
  const served = record.attempts.at(-1)
  const isTimed = stream && firstEventMs !== undefined
  return attributes({
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': served?.provider ?? none,
    'gen_ai.request.model': record.model,
    'gen_ai.response.model': served && hasAnswered(served) ? served.upstreamModel : undefined,
    'gen_ai.request.stream': stream,
    // In seconds.
    'gen_ai.response.time_to_first_chunk': isTimed ? { doubleValue: firstEventMs / 1000 } : undefined,
    'error.type': record.code,
    'url.path': record.path,
    'http.response.status_code': record.status,
    'tollgate.request_id': record.id,
    'tollgate.workspace_id': caller?.workspaceId,
    'tollgate.project_id': caller?.projectId,
    'tollgate.lane': record.lane,
    'tollgate.attempts': record.attempts.length,
    'tollgate.warnings': record.warnings.length || undefined,
    'tollgate.cost_usd': charge === undefined ? undefined : { doubleValue: Number(charge) / 1e9 },
    ...(usage && usageAttributes(usage)),
  })
}

export function usageAttributes(usage: Usage): AttributeValues {
  const { cacheReported, cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens } = usage
  return {
    // All input, cached or not.
    'gen_ai.usage.input_tokens': totalInputTokens(usage),
    'gen_ai.usage.output_tokens': usage.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': cacheReported === 'none' ? undefined : cacheReadTokens,
    'gen_ai.usage.cache_creation.input_tokens':
      cacheReported === undefined ? cacheWriteTokens + cacheWriteLongTokens : undefined,
    'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens,
    'tollgate.usage.source': usage.source,
  }
}

/**
 * Only the request span has the usage: a sum over all spans would otherwise count it twice. Attempts without a start time
 * are placed one after another before the first event.
 */
function attemptSpans({ record, trace }: TracedRequest, randomBytes: RandomBytes): readonly Span[] {
  const { attempts, startedAt, totalMs } = record
  const starts: number[] = []
  let nextMs = record.firstEventMs ?? totalMs
  for (const { startMs, ms } of attempts.toReversed()) {
    nextMs = Math.max(0, startMs ?? nextMs - ms)
    starts.unshift(nextMs)
  }
  return attempts.map(({ provider, upstreamModel, outcome, ms }, at) => {
    const isOk = outcome === 'ok'
    const startMs = starts[at] ?? 0
    // The attempt that answered lasts as long as its answer.
    const endMs = hasAnswered({ outcome }) ? Math.max(startMs, totalMs) : startMs + ms
    return {
      traceId: trace.traceId,
      spanId: hex(randomBytes(8)),
      parentSpanId: trace.spanId,
      name: `attempt ${provider}`,
      kind: client,
      startTimeUnixNano: unixNanos(startedAt, startMs),
      endTimeUnixNano: unixNanos(startedAt, endMs),
      attributes: attributes({
        'gen_ai.provider.name': provider,
        'gen_ai.request.model': upstreamModel,
        'tollgate.attempt.outcome': outcome,
        'error.type': isOk ? undefined : outcome,
      }),
      status: statusOf(!isOk),
    }
  })
}

function policySpans({ record, trace }: TracedRequest, randomBytes: RandomBytes): readonly Span[] {
  return record.policies.map(({ policy, moment, outcome, startMs, ms }) => ({
    traceId: trace.traceId,
    spanId: hex(randomBytes(8)),
    parentSpanId: trace.spanId,
    name: `policy ${policy}`,
    kind: client,
    startTimeUnixNano: unixNanos(record.startedAt, startMs),
    endTimeUnixNano: unixNanos(record.startedAt, startMs + ms),
    attributes: attributes({
      'tollgate.policy.id': policy,
      'tollgate.policy.moment': moment,
      'tollgate.policy.outcome': outcome,
    }),
    status: statusOf(outcome === 'failed'),
  }))
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

// Metrics. All of them are cumulative since the start, so the next payload makes up for one that was lost.

/** Cumulative, as an enum of the protocol. */
const aggregationTemporality = 2

export interface MetricTimes {
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly now: number
}

export function metricsPayload(readings: readonly MetricReading[], times: MetricTimes, sender: Sender) {
  const { resource, scope } = senderOf(sender)
  const metrics = readings.filter(({ points }) => points.length > 0).map((reading) => metricOf(reading, times))
  return { resourceMetrics: [{ resource, scopeMetrics: [{ scope, metrics, schemaUrl }] }] }
}

function metricOf(reading: MetricReading, { startedAt, now }: MetricTimes) {
  const { name, help, labels, type } = reading
  const described = { name, description: help, unit: unitOf(name) }
  const until = { timeUnixNano: unixNanos(now) }
  const since = { startTimeUnixNano: unixNanos(startedAt), ...until }
  const labelled = (values: readonly string[]) =>
    attributes(Object.fromEntries(labels.map((label, at) => [label, values[at]])))
  if (type === 'histogram') {
    const dataPoints = reading.points.map(({ values, counts, sum }) => ({
      attributes: labelled(values),
      ...since,
      count: String(counts.reduce((total, count) => total + count, 0)),
      sum,
      bucketCounts: counts.map(String),
      explicitBounds: reading.bounds,
    }))
    return { ...described, histogram: { aggregationTemporality, dataPoints } }
  }
  const times = type === 'gauge' ? until : since
  const dataPoints = reading.points
    // JSON has no NaN and no infinity.
    .filter(({ value }) => Number.isFinite(value))
    .map(({ values, value }) => ({ attributes: labelled(values), ...times, asDouble: value }))
  if (type === 'gauge') return { ...described, gauge: { dataPoints } }
  return { ...described, sum: { aggregationTemporality, isMonotonic: true, dataPoints } }
}

/** As UCUM writes it. The names of metrics end in their unit. */
function unitOf(name: string): string {
  if (/(_seconds(_total)?|\.duration)$/.test(name)) return 's'
  if (/_bytes$/.test(name)) return 'By'
  if (/_usd(_total)?$/.test(name)) return '{USD}'
  return /(\.token\.usage|_tokens_total)$/.test(name) ? '{token}' : '1'
}

/** The two histograms that the conventions define, with their bounds. Only collectors get them: `/metrics` has the same numbers. */
export function createGenAiMetrics() {
  const registry = createRegistry()
  const labelsWith = (last: string) => ({
    labels: ['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.request.model', last],
    keep: ['gen_ai.operation.name', last],
    seriesMax: 400,
  })
  const durations = registry.histogram({
    name: 'gen_ai.client.operation.duration',
    help: 'GenAI operation duration.',
    bounds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
    ...labelsWith('error.type'),
  })
  const tokens = registry.histogram({
    name: 'gen_ai.client.token.usage',
    help: 'Number of input and output tokens used.',
    bounds: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
    ...labelsWith('gen_ai.token.type'),
  })
  return {
    observeRequest(record: RequestRecord): void {
      const { usage, model = none, attempts } = record
      // Without a provider, no model was called.
      const provider = attempts.at(-1)?.provider
      if (provider === undefined || !isGeneration(record)) return
      const operation = operationOf(record)
      durations.find(operation, provider, model, record.code ?? '').observe(record.totalMs / 1000)
      if (!usage) return
      tokens.find(operation, provider, model, 'input').observe(totalInputTokens(usage))
      tokens.find(operation, provider, model, 'output').observe(usage.outputTokens)
    },
    read: () => registry.read(),
  }
}
