// Sends traces and metrics to an OpenTelemetry collector, in the background and in batches. A request only adds its record
// to a bounded queue, so a slow or unreachable collector never delays one. What cannot be sent is dropped and counted.

import type { Clock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { type Every, onTimer } from '../kernel/timers.ts'
import { byLabel, type MetricReading } from './metrics.ts'
import {
  createGenAiMetrics,
  hex,
  metricsPayload,
  type RandomBytes,
  type TracedRequest,
  tracesPayload,
} from './otlp-payload.ts'
import { createSendQueue, type SendOutcome } from './otlp-queue.ts'
import type { RequestRecord, TraceContext } from './request-record.ts'

export type OtlpExporter = ReturnType<typeof createOtlpExporter>

export interface OtlpExporterOptions {
  readonly settings: OtlpSettings
  readonly clock: Clock
  readonly version: string
  /** Identifies the replica. */
  readonly instanceId: string
  readMetrics(): Promise<readonly MetricReading[]>
  /** A line for the log, once when sending begins to fail and once when it works again. */
  report(line: string): void
  readonly every?: Every
  readonly send?: Send
  readonly randomBytes?: RandomBytes
}

const traceFlushMs = 5_000
const metricsFlushMs = 60_000
/** Requests, of about 3 KB each. */
const queueMax = 2_048
const batchMax = 256
/** Payloads of clients that are on their way: of at most 4 MiB each, and usually of some kilobytes. */
const relayingMax = 16

export function createOtlpExporter(options: OtlpExporterOptions) {
  const { settings, clock, version, instanceId, every = onTimer, randomBytes = cryptoBytes } = options
  const send = createReportingSend(options.send ?? createSend(settings), options.report)
  const sender = { serviceName: settings.serviceName, version, instanceId }
  const beginTrace = createBeginTrace({ sampleRatio: settings.sampleRatio, randomBytes })
  const genAi = createGenAiMetrics()
  const startedAt = clock.now()
  const dropped = { metrics: 0, clients: 0 }
  let relaying = 0
  const queue = createSendQueue<TracedRequest>({
    send: (batch) => send('traces', tracesPayload(batch, sender, randomBytes)),
    itemsMax: queueMax,
    batchMax,
  })

  async function flushMetrics(): Promise<void> {
    const readings = [...(await options.readMetrics()), ...(await genAi.read())]
    const { kind } = await send('metrics', metricsPayload(readings, { startedAt, now: clock.now() }, sender))
    if (kind !== 'sent') dropped.metrics++
  }

  /** Sends the queue and the metrics. */
  async function flush(): Promise<void> {
    await Promise.all([queue.flush(), flushMetrics()])
  }

  const stops = [every(traceFlushMs, queue.flush), every(metricsFlushMs, flushMetrics)]

  return {
    /** Call at the beginning of a request, with its `traceparent`. The result is the `trace` of its record. */
    beginTrace,
    /** Call once per request, when it is over. Returns at once. */
    observeRequest(record: RequestRecord): void {
      genAi.observeRequest(record)
      const trace = record.trace ?? beginTrace(null)
      if (trace.sampled) queue.push({ record, trace })
    },
    /** Sends on what a client reported of itself, in protobuf or JSON. Returns at once; what the collector does not take is dropped. */
    relay(signal: Signal, body: Uint8Array | object): void {
      if (relaying >= relayingMax) {
        dropped.clients++
        return
      }
      relaying++
      void send(signal, body).then(({ kind }) => {
        relaying--
        if (kind !== 'sent') dropped.clients++
      })
    },
    /** Requests whose spans were dropped, and payloads of metrics and of clients that did not arrive. */
    dropped: () => byLabel({ traces: queue.dropped(), ...dropped }),
    flush,
    /** Flushes once more. What is still queued then counts as dropped. */
    async close(): Promise<void> {
      for (const stop of stops) stop()
      await flush()
      queue.drop()
    },
  }
}

export type Signal = 'traces' | 'metrics' | 'logs'

/** Bytes are protobuf, anything else is sent as JSON. */
export type Send = (signal: Signal, payload: unknown) => Promise<SendOutcome>

const sendTimeoutMs = 10_000
/** The statuses that the protocol lists as retryable. */
const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** Never throws. */
export function createSend({ endpoint, headers }: Pick<OtlpSettings, 'endpoint' | 'headers'>): Send {
  const revealed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()]))
  return async (signal, payload) => {
    try {
      const response = await fetch(`${endpoint}/v1/${signal}`, {
        method: 'POST',
        headers: {
          ...revealed,
          'content-type': payload instanceof Uint8Array ? 'application/x-protobuf' : 'application/json',
          'user-agent': 'tollgate',
        },
        body: payload instanceof Uint8Array ? new Uint8Array(payload) : JSON.stringify(payload),
        redirect: 'manual',
        signal: AbortSignal.timeout(sendTimeoutMs),
      })
      await response.body?.cancel()
      if (response.ok) return { kind: 'sent' }
      return { kind: retryable.has(response.status) ? 'later' : 'refused', why: `status ${response.status}` }
    } catch (error) {
      return { kind: 'later', why: errorName(error) }
    }
  }
}

/** The code or the name, not the message, which may contain the address. */
function errorName(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** Reports once when sending begins to fail, and once when it works again. */
export function createReportingSend(
  send: Send,
  report: (line: string) => void,
  collector = 'telemetry collector',
): Send {
  let isFailing = false
  return async (signal, payload) => {
    const outcome = await send(signal, payload)
    if (outcome.kind === 'sent') {
      if (isFailing) report(`the ${collector} accepts data again`)
      isFailing = false
    } else if (!isFailing) {
      isFailing = true
      report(`the ${collector} does not accept ${signal} (${outcome.why}); data that cannot be sent is dropped`)
    }
    return outcome
  }
}

// Trace context (W3C): a request belongs to the trace of its `traceparent`, or starts one.

/** An unsampled trace needs no ids. */
const unsampled: TraceContext = Object.freeze({ traceId: '', spanId: '', parentSpanId: undefined, sampled: false })

/** version-trace-parent-flags; later versions may append more, version ff is forbidden. */
const traceparentPattern = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Follows the caller's sampling decision, and samples a share of the traces that begin here. */
export function createBeginTrace(options: { readonly sampleRatio: number; readonly randomBytes: RandomBytes }) {
  const { sampleRatio, randomBytes } = options
  /** Decides by the trace id, so that every program with the same ratio samples the same traces. */
  const sampledBelow = Math.round(sampleRatio * 2 ** 48)
  const isSampled = (traceId: string) => Number.parseInt(traceId.slice(-12), 16) < sampledBelow
  return (traceparent: string | null): TraceContext => {
    const parent = readTraceparent(traceparent)
    const traceId = parent?.traceId ?? hex(randomBytes(16))
    if (!(parent ? parent.sampled : isSampled(traceId))) return unsampled
    return { traceId, spanId: hex(randomBytes(8)), parentSpanId: parent?.spanId, sampled: true }
  }
}

/** undefined if it is missing, malformed or all zeros: the trace begins here. */
export function readTraceparent(text: string | null): Omit<TraceContext, 'parentSpanId'> | undefined {
  const match = traceparentPattern.exec(text ?? '')
  if (!match) return undefined
  const [whole, traceId = '', spanId = '', flags = '', more] = match
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  if (whole.startsWith('00') && more !== undefined) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function cryptoBytes(count: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(count))
}

// Settings, from the variables that all OpenTelemetry programs read. An invalid one is reported and ignored: telemetry must
// never prevent a gateway from starting.

export interface OtlpSettings {
  /** Without a trailing slash; `/v1/traces` and `/v1/metrics` are appended. */
  readonly endpoint: string
  readonly headers: Readonly<Record<string, Secret>>
  readonly serviceName: string
  /** The share of traces that begin here which is sampled. */
  readonly sampleRatio: number
}

/** From the environment; config/ reads it. */
interface OtlpVariables {
  readonly endpoint?: string | undefined
  /** Usually holds a token. */
  readonly headers?: Secret | undefined
  readonly serviceName?: string | undefined
  readonly samplerArg?: string | undefined
}

/** Without settings nothing is sent. `faults` has a sentence for each variable that is ignored, without its value. */
export function readOtlpSettings(variables: OtlpVariables): { settings: OtlpSettings | undefined; faults: string[] } {
  const { endpoint, serviceName = 'tollgate', samplerArg = '1' } = variables
  const faults: string[] = []
  if (endpoint === undefined) return { settings: undefined, faults }
  const protocol = URL.parse(endpoint)?.protocol
  if (protocol !== 'http:' && protocol !== 'https:') {
    faults.push('OTEL_EXPORTER_OTLP_ENDPOINT is ignored: expected an address such as http://collector:4318')
    return { settings: undefined, faults }
  }
  const headers = readHeaders(variables.headers, faults)
  const ratio = samplerArg.trim() === '' ? Number.NaN : Number(samplerArg)
  const isRatio = ratio >= 0 && ratio <= 1
  if (!isRatio) faults.push('OTEL_TRACES_SAMPLER_ARG is ignored: expected a number from 0 to 1')
  const settings = { endpoint: endpoint.replace(/\/+$/, ''), headers, serviceName, sampleRatio: isRatio ? ratio : 1 }
  return { settings, faults }
}

/** `name=value,name=value`, values percent-encoded. */
export function readHeaders(
  text: Secret | undefined,
  faults: string[],
  variable = 'OTEL_EXPORTER_OTLP_HEADERS',
): Readonly<Record<string, Secret>> {
  const headers: Record<string, Secret> = {}
  for (const [at, pair] of (text?.reveal() ?? '').split(',').entries()) {
    if (pair.trim() === '') continue
    const cut = pair.indexOf('=')
    const name = pair.slice(0, Math.max(0, cut)).trim().toLowerCase()
    const value = decoded(pair.slice(cut + 1).trim())
    const isSendable = /^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(name) && value !== undefined && /^[\t -~]*$/.test(value)
    if (isSendable) headers[name] = new Secret(value)
    else faults.push(`entry ${at + 1} of ${variable} is ignored: expected name=value`)
  }
  return headers
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
