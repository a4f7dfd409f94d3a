// Sends traces and metrics to a collector, in the background and in batches. A request only leaves its record in a
// bounded queue: a collector that is slow, gone or wrong costs what is dropped, which is counted, and nothing else.

import type { Clock } from '../../kernel/clock.ts'
import { type Every, onTimer } from '../metrics/every.ts'
import type { MetricReading, NumberPoint } from '../metrics/reading.ts'
import type { RequestRecord } from '../request-record.ts'
import { createGenAiMetrics } from './gen-ai-metrics.ts'
import type { Sender } from './json-mapping.ts'
import { metricsPayload } from './metrics-payload.ts'
import { type TracedRequest, tracesPayload } from './request-spans.ts'
import { createSend, type Send, type SendOutcome } from './send.ts'
import type { OtlpSettings } from './settings.ts'
import { type BeginTrace, createBeginTrace, randomBytes as realRandomBytes } from './trace-context.ts'

export interface OtlpExporter {
  /** At the beginning of a request, with its `traceparent`; what it answers belongs into the record as `trace`. */
  readonly beginTrace: BeginTrace
  /** To be called once per request, when it is over. Returns at once. */
  observeRequest(record: RequestRecord): void
  /** Requests whose spans were given up, and payloads of metrics that did not arrive. */
  dropped(): readonly NumberPoint[]
  /** Sends what is queued, and the metrics. */
  flush(): Promise<void>
  /** A last flush, and then nothing more. */
  close(): Promise<void>
}

export interface OtlpExporterOptions {
  readonly settings: OtlpSettings
  readonly clock: Clock
  readonly version: string
  /** Tells replicas apart. */
  readonly instanceId: string
  readMetrics(): Promise<readonly MetricReading[]>
  /** A line for the log, once when sending begins to fail and once when it works again. */
  report(line: string): void
  readonly every?: Every
  readonly send?: Send
  readonly randomBytes?: (count: number) => Uint8Array
}

const traceFlushMs = 5_000
const metricsFlushMs = 60_000
/** About 3 KB each until they are sent. */
const queueMax = 2_048
const batchMax = 256
/** So often a batch is offered to a collector in trouble, five seconds apart. */
const triesMax = 3

export function createOtlpExporter(options: OtlpExporterOptions): OtlpExporter {
  const { settings, clock, version, instanceId, every = onTimer, randomBytes = realRandomBytes } = options
  const send = createReportingSend(options.send ?? createSend(settings), options.report)
  const sender: Sender = { serviceName: settings.serviceName, version, instanceId }
  const beginTrace = createBeginTrace({ sampleRatio: settings.sampleRatio, randomBytes })
  const genAi = createGenAiMetrics()
  const startedAt = clock.now()
  const dropped = { traces: 0, metrics: 0 }
  let queue: TracedRequest[] = []
  /** How often the batch at the head of the queue was offered in vain. */
  let tries = 0
  let sending: Promise<void> = Promise.resolve()
  let isSending = false

  async function sendQueued(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.slice(0, batchMax)
      const { kind } = await send('traces', tracesPayload(batch, sender, randomBytes))
      if (kind === 'later' && ++tries < triesMax) return
      if (kind !== 'sent') dropped.traces += batch.length
      tries = 0
      queue = queue.slice(batch.length)
    }
  }

  /** One at a time: whoever asks meanwhile waits for the one that runs. */
  function flushTraces(): Promise<void> {
    if (isSending) return sending
    isSending = true
    sending = sendQueued().finally(() => {
      isSending = false
    })
    return sending
  }

  async function flushMetrics(): Promise<void> {
    const readings = [...(await options.readMetrics()), ...(await genAi.read())]
    const { kind } = await send('metrics', metricsPayload(readings, { startedAt, now: clock.now() }, sender))
    if (kind !== 'sent') dropped.metrics++
  }

  const stops = [every(traceFlushMs, flushTraces), every(metricsFlushMs, flushMetrics)]
  const flush = async (): Promise<void> => {
    await Promise.all([flushTraces(), flushMetrics()])
  }

  return {
    beginTrace,
    observeRequest(record) {
      genAi.observeRequest(record)
      const trace = record.trace ?? beginTrace(null)
      if (!trace.sampled) return
      if (queue.length >= queueMax) {
        dropped.traces++
        return
      }
      queue.push({ record, trace })
      // A busy second fills the queue long before the timer; one in trouble waits for it.
      if (queue.length % batchMax === 0 && tries === 0) void flushTraces()
    },
    dropped: () => Object.entries(dropped).map(([signal, value]) => ({ values: [signal], value })),
    flush,
    async close() {
      for (const stop of stops) stop()
      await flush()
      dropped.traces += queue.length
      queue = []
    },
  }
}

/** Says once that something is wrong, and once that it is over. */
function createReportingSend(send: Send, report: (line: string) => void): Send {
  let isFailing = false
  return async (signal, payload) => {
    const outcome: SendOutcome = await send(signal, payload)
    if (outcome.kind === 'sent') {
      if (isFailing) report('the telemetry collector takes what it is sent again')
      isFailing = false
    } else if (!isFailing) {
      isFailing = true
      report(`the telemetry collector does not take ${signal} (${outcome.why}); what cannot be sent is dropped`)
    }
    return outcome
  }
}
