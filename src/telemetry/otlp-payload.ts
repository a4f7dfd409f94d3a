// Finished requests and metric readings as OTLP payloads, in the JSON that the protocol defines
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): 64-bit integers are strings, ids are hexadecimal,
// enums are numbers. Payloads contain no prompts, answers, error texts or keys.

import { totalInputTokens } from '../kernel/usage.ts'
import { createRegistry, isGeneration, type MetricReading, none } from './metrics.ts'
import { hasAnswered, type RequestRecord, type TraceContext } from './request-record.ts'

// OpenTelemetry's conventions for generative models, which are still in development. Version 1.42.0, read 2026-07 in
// open-telemetry/semantic-conventions-genai. Names that hold prompts or answers (gen_ai.input.messages and the like) are
// left out on purpose.

const genAiSchemaUrl = 'https://opentelemetry.io/schemas/gen-ai/1.42.0'

const genAi = {
  operationName: 'gen_ai.operation.name',
  providerName: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  responseModel: 'gen_ai.response.model',
  /** In seconds. */
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  tokenType: 'gen_ai.token.type',
  /** All input, cached or not. */
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  errorType: 'error.type',
} as const

/** The same in every payload. */
export interface Sender {
  readonly serviceName: string
  readonly version: string
  /** Identifies the replica. */
  readonly instanceId: string
}

export interface KeyValue {
  readonly key: string
  readonly value:
    | { readonly stringValue: string }
    | { readonly intValue: string }
    | { readonly doubleValue: number }
    | { readonly boolValue: boolean }
}

/** Leaves out what is undefined or empty. */
class Attributes {
  readonly list: KeyValue[] = []

  text(key: string, value: string | undefined): this {
    if (value !== undefined && value !== '') this.list.push({ key, value: { stringValue: value } })
    return this
  }

  int(key: string, value: number | undefined): this {
    if (value !== undefined) this.list.push({ key, value: { intValue: String(value) } })
    return this
  }

  double(key: string, value: number | undefined): this {
    if (value !== undefined) this.list.push({ key, value: { doubleValue: value } })
    return this
  }

  bool(key: string, value: boolean): this {
    this.list.push({ key, value: { boolValue: value } })
    return this
  }
}

function resourceOf({ serviceName, version, instanceId }: Sender) {
  const { list } = new Attributes()
    .text('service.name', serviceName)
    .text('service.version', version)
    .text('service.instance.id', instanceId)
  return { attributes: list }
}

function scopeOf({ version }: Sender) {
  return { name: 'tollgate', version }
}

/** Nanoseconds from epoch milliseconds and an offset that may have fractions. */
function unixNanos(epochMs: number, offsetMs = 0): string {
  return String(BigInt(epochMs) * 1_000_000n + BigInt(Math.round(offsetMs * 1_000_000)))
}

// Traces: one span for the request, and one below it for each attempt.

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

type RandomBytes = (count: number) => Uint8Array

/** Enums of the protocol. */
const server = 2
const client = 3
const statusError = 2

export function tracesPayload(requests: readonly TracedRequest[], sender: Sender, randomBytes: RandomBytes) {
  const spans = requests.flatMap((request) => requestSpans(request, randomBytes))
  const scopeSpans = [{ scope: scopeOf(sender), spans, schemaUrl: genAiSchemaUrl }]
  return { resourceSpans: [{ resource: resourceOf(sender), scopeSpans }] }
}

export function requestSpans(request: TracedRequest, randomBytes: RandomBytes): readonly Span[] {
  return [requestSpan(request), ...attemptSpans(request, randomBytes)]
}

function operationOf(record: RequestRecord): string {
  return isGeneration(record) ? 'chat' : 'count_tokens'
}

function requestSpan({ record, trace }: TracedRequest): Span {
  const { model, code, status, startedAt, totalMs } = record
  const operation = operationOf(record)
  // A rejected request is not a server error; an interrupted answer is.
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
    .text('url.path', record.path)
    .int('http.response.status_code', record.status)
    .text('tollgate.request_id', record.id)
    .text('tollgate.workspace_id', caller?.workspaceId)
    .text('tollgate.project_id', caller?.projectId)
    .text('tollgate.lane', record.lane)
    .int('tollgate.attempts', record.attempts.length)
    .int('tollgate.warnings', record.warnings.length > 0 ? record.warnings.length : undefined)
    .double('tollgate.cost_usd', charge === undefined ? undefined : Number(charge) / 1e9)
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
    .text('tollgate.usage.source', usage.source).list
}

/**
 * Usage is an attribute of the request span only, or a sum over all spans would count it twice. Attempts without a start
 * time are placed one after another before the first event.
 */
function attemptSpans({ record, trace }: TracedRequest, randomBytes: RandomBytes): readonly Span[] {
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
      .text('tollgate.attempt.outcome', outcome)
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

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

// Metrics. All of them are cumulative since the start, so that a lost payload is made up for by the next.

const cumulative = 2

export interface MetricTimes {
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly now: number
}

export function metricsPayload(readings: readonly MetricReading[], times: MetricTimes, sender: Sender) {
  const metrics = readings.filter(({ points }) => points.length > 0).map((reading) => metricOf(reading, times))
  const scopeMetrics = [{ scope: scopeOf(sender), metrics, schemaUrl: genAiSchemaUrl }]
  return { resourceMetrics: [{ resource: resourceOf(sender), scopeMetrics }] }
}

function metricOf(reading: MetricReading, { startedAt, now }: MetricTimes) {
  const { name, help: description, labels } = reading
  const unit = unitOf(name)
  const until = { timeUnixNano: unixNanos(now) }
  const since = { startTimeUnixNano: unixNanos(startedAt), ...until }
  if (reading.type === 'histogram') {
    const dataPoints = reading.points.map(({ values, counts, sum }) => ({
      attributes: attributesOf(labels, values),
      ...since,
      count: String(counts.reduce((total, count) => total + count, 0)),
      sum,
      bucketCounts: counts.map(String),
      explicitBounds: reading.bounds,
    }))
    return { name, description, unit, histogram: { aggregationTemporality: cumulative, dataPoints } }
  }
  const times = reading.type === 'gauge' ? until : since
  const dataPoints = reading.points
    .filter(({ value }) => Number.isFinite(value))
    .map(({ values, value }) => ({ attributes: attributesOf(labels, values), ...times, asDouble: value }))
  if (reading.type === 'gauge') return { name, description, unit, gauge: { dataPoints } }
  return { name, description, unit, sum: { aggregationTemporality: cumulative, isMonotonic: true, dataPoints } }
}

function attributesOf(labels: readonly string[], values: readonly string[]): readonly KeyValue[] {
  const attributes = new Attributes()
  for (const [at, label] of labels.entries()) attributes.text(label, values[at])
  return attributes.list
}

/** In the notation of UCUM; our names end in the unit. */
function unitOf(name: string): string {
  if (/(_seconds(_total)?|\.duration)$/.test(name)) return 's'
  if (/_bytes$/.test(name)) return 'By'
  if (/_usd(_total)?$/.test(name)) return '{USD}'
  return /(\.token\.usage|_tokens_total)$/.test(name) ? '{token}' : '1'
}

const genAiSeriesMax = 400

/** The two histograms that the conventions define, with their bounds. Only for a collector: ours say the same. */
export function createGenAiMetrics() {
  const registry = createRegistry()
  const names = [genAi.operationName, genAi.providerName, genAi.requestModel]
  const durations = registry.histogram({
    name: 'gen_ai.client.operation.duration',
    help: 'GenAI operation duration.',
    bounds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
    labels: [...names, genAi.errorType],
    keep: [genAi.operationName, genAi.errorType],
    seriesMax: genAiSeriesMax,
  })
  const tokens = registry.histogram({
    name: 'gen_ai.client.token.usage',
    help: 'Number of input and output tokens used.',
    bounds: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
    labels: [...names, genAi.tokenType],
    keep: [genAi.operationName, genAi.tokenType],
    seriesMax: genAiSeriesMax,
  })
  return {
    observeRequest(record: RequestRecord): void {
      const { usage, model = none, attempts } = record
      // A request that reached no provider was no operation of a model.
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
