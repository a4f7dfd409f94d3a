// Sends prompts and answers of projects that export their content to the collector or the tool of the operator, as spans over
// OTLP. A request only adds its record to a bounded queue. This and `capture-content.ts` are the only way for content to
// leave the gateway other than to providers and policies.

import type { Clock } from '../kernel/clock.ts'
import type { ContentExportSettings } from '../kernel/content-export.ts'
import type { Secret } from '../kernel/secret.ts'
import { type Every, onTimer } from '../kernel/timers.ts'
import { totalInputTokens, type Usage } from '../kernel/usage.ts'
import { createReportingSend, createSend, cryptoBytes, readHeaders, readTraceparent, type Send } from './otlp.ts'
import {
  attributes,
  client,
  hex,
  type RandomBytes,
  type Sender,
  schemaUrl,
  senderOf,
  statusOf,
  unixNanos,
  usageAttributes,
} from './otlp-payload.ts'
import { encodeTraces } from './otlp-protobuf.ts'
import { createSendQueue } from './otlp-queue.ts'
import { redact } from './redact.ts'
import { hasAnswered, type RequestRecord } from './request-record.ts'

export interface ContentExporterOptions {
  /** Read for every batch, so that a change of the configuration file is in effect at once. */
  settings(): Pick<ContentExportSettings, 'url'>
  readonly headers: Secret | undefined
  readonly clock: Clock
  readonly version: string
  /** Identifies the replica. */
  readonly instanceId: string
  report(line: string): void
  readonly every?: Every
  readonly send?: (url: string) => Send
  readonly randomBytes?: RandomBytes
}

const flushMs = 5_000
/** In characters: what collectors take in one request, and what may wait. */
const batchSizeMax = 2 * 1024 * 1024
const sizeMax = 16 * 1024 * 1024
const itemsMax = 2_048
const batchMax = 256

export function createContentExporter(options: ContentExporterOptions) {
  const { settings, version, instanceId, every = onTimer, randomBytes = cryptoBytes, report } = options
  const faults: string[] = []
  const headers = readHeaders(options.headers, faults, 'TOLLGATE_CONTENT_HEADERS')
  for (const fault of faults) report(fault)
  const sendTo = options.send ?? ((url) => createSend({ endpoint: url, headers }))
  const sender: Sender = { serviceName: 'tollgate', version, instanceId }
  const queue = createSendQueue<RequestRecord>({
    async send(batch) {
      const { url } = settings()
      // It was turned off meanwhile.
      if (url === undefined) return { kind: 'refused', why: 'content is not exported any more' }
      return await reportingSend(url)('traces', encodeTraces(contentPayload(batch, sender, randomBytes)))
    },
    ...{ itemsMax, batchMax, sizeMax, batchSizeMax },
  })
  let current: { readonly url: string; readonly send: Send } | undefined

  function reportingSend(url: string): Send {
    if (current?.url !== url) current = { url, send: createReportingSend(sendTo(url), report, 'content collector') }
    return current.send
  }

  const stop = every(flushMs, queue.flush)
  return {
    /** Call once per request, when it is over. Returns at once. */
    observeRequest(record: RequestRecord): void {
      if (record.content) queue.push(record, sizeOf(record.content))
    },
    /** Requests whose content did not arrive. */
    dropped: queue.dropped,
    /** Flushes once more. */
    async close(): Promise<void> {
      stop()
      await queue.flush()
      queue.drop()
    },
  }
}

function sizeOf({ system = '', input, output = '', tools = '' }: NonNullable<RequestRecord['content']>): number {
  return system.length + input.length + output.length + tools.length
}

// The names and forms of OpenTelemetry's conventions for generative models, read 2026-11
// (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans). Phoenix 20.26 shows them as a conversation.

export function contentPayload(records: readonly RequestRecord[], sender: Sender, randomBytes: RandomBytes) {
  const { resource, scope } = senderOf(sender)
  const spans = records.map((record) => contentSpan(record, randomBytes))
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans, schemaUrl }] }] }
}

/**
 * Of its own, beside the span of the request, which may go to another collector: in the same trace, below the span of the
 * client if it sent one.
 */
function contentSpan(record: RequestRecord, randomBytes: RandomBytes) {
  const { model, startedAt, totalMs, trace, content, status, code } = record
  const parent = readTraceparent(content?.traceparent ?? null)
  const traceId = parent?.traceId ?? (trace?.sampled ? trace.traceId : hex(randomBytes(16)))
  return {
    traceId,
    spanId: hex(randomBytes(8)),
    ...(parent && { parentSpanId: parent.spanId }),
    name: `chat ${model}`,
    kind: client,
    startTimeUnixNano: unixNanos(startedAt),
    endTimeUnixNano: unixNanos(startedAt, totalMs),
    attributes: attributes(contentAttributes(record)),
    status: statusOf(status >= 400 || code !== undefined),
  }
}

function contentAttributes(record: RequestRecord): Parameters<typeof attributes>[0] {
  const { usage, content, caller, charge, endUser } = record
  // Clients choose it.
  const session = content && record.session && redact(record.session, content.rules)
  const served = record.attempts.at(-1)
  const upstreamModel = served && hasAnswered(served) ? served.upstreamModel : undefined
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': served?.provider,
    'gen_ai.request.model': record.model,
    'gen_ai.response.model': upstreamModel,
    'gen_ai.request.stream': record.stream,
    'gen_ai.conversation.id': session,
    'gen_ai.system_instructions': content?.system,
    'gen_ai.input.messages': content?.input,
    'gen_ai.output.messages': content?.output,
    'gen_ai.tool.definitions': content?.tools,
    ...(usage && usageAttributes(usage)),
    ...costAttributes(charge, usage),
    // Langfuse and Phoenix group by these; OpenInference has its own name for the model, by which Phoenix finds a price.
    'session.id': session,
    'user.id': endUser?.split(' ', 1)[0],
    'llm.model_name': upstreamModel,
    'input.value': content && textOfLast(content.input),
    'output.value': content?.output && textOfLast(content.output),
    'error.type': record.code,
    'tollgate.request_id': record.id,
    'tollgate.workspace_id': caller?.workspaceId,
    'tollgate.project_id': caller?.projectId,
    'tollgate.content.omitted_messages': content?.omitted || undefined,
  }
}

/** In the list of a session: without it Phoenix shows the name of the model as the answer. */
const textMax = 4096

interface Part {
  readonly content?: string
  readonly name?: string
  readonly arguments?: unknown
  readonly response?: string
}

/** What the last of these messages says, as plain text; it has been redacted. */
function textOfLast(messages: string): string {
  const { parts = [] } = (JSON.parse(messages) as { readonly parts: readonly Part[] }[]).at(-1) ?? {}
  const texts = parts.map(({ content, name, arguments: given, response }) =>
    name === undefined ? (content ?? response ?? '') : `${name}(${JSON.stringify(given)})`,
  )
  return texts.join('\n').slice(0, textMax).toWellFormed()
}

/** `gen_ai.usage.cost` is not in the conventions; Langfuse reads it. `llm.cost.total` is OpenInference's. */
function costAttributes(charge: RequestRecord['charge'], usage: Usage | undefined): Parameters<typeof attributes>[0] {
  if (charge === undefined) return {}
  const cost = { doubleValue: Number(charge) / 1e9 }
  const total = usage && totalInputTokens(usage) + usage.outputTokens
  return { 'gen_ai.usage.cost': cost, 'llm.cost.total': cost, 'llm.token_count.total': total }
}
