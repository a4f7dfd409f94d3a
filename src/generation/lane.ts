// How a request travels to a candidate. Bytes: the endpoint speaks the caller's dialect and gets the caller's bytes.
// Translation: it speaks another, and both meet in the canonical form. What follows is the same for both.

import type { Dialect, Envelope, RelayContext, StreamRelay } from '../dialects/dialect.ts'
import type { ParsedRequest, RenderContext, Target, Warning } from '../dialects/translation.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { OfferedModel } from '../routing/offer.ts'
import { CollectedReply, TranslatedStream } from './translated-stream.ts'

export interface Lane {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  /** What was left out or approximated on the way. */
  readonly warnings: readonly Warning[]
  /** Whether the provider is asked for a stream; the translation lane always does, also for callers that want a whole. */
  readonly streamsUpstream: boolean
  relayStream(): StreamRelay
}

export interface LaneInput {
  readonly surface: Dialect
  readonly envelope: Envelope
  readonly model: OfferedModel
  readonly candidate: Candidate
  readonly clientHeaders: Headers
  readonly relay: RelayContext
  /** The canonical form of the request, parsed once however many candidates are tried. */
  conversation(): ParsedRequest | Failure
  renderContext(): RenderContext
}

export function openLane(input: LaneInput): Lane | Failure {
  return input.candidate.dialect === input.surface ? byteLane(input) : translationLane(input)
}

function byteLane({ envelope, model, candidate, clientHeaders, relay }: LaneInput): Lane {
  const { dialect, route, rules } = candidate
  return {
    headers: dialect.forwardedHeaders(clientHeaders),
    body: dialect.editRequest(envelope, {
      upstreamModel: route.upstreamModel,
      defaultOutputCap: model.defaultMaxTokens,
      rules,
    }),
    warnings: [],
    streamsUpstream: envelope.stream,
    relayStream: () => dialect.relayStream(relay),
  }
}

function translationLane(input: LaneInput): Lane | Failure {
  const { surface, envelope, model, candidate, clientHeaders } = input
  const parsed = input.conversation()
  if (parsed instanceof Failure) return parsed
  const target = targetOf(model, candidate)
  const rendered = candidate.dialect.translation.renderRequest(parsed.conversation, target)
  if (rendered instanceof Failure) return rendered
  const warnings = [...parsed.warnings, ...rendered.warnings]
  if (warnings.length > 0 && clientHeaders.get('x-tollgate-strict') === 'true') return strictRefusal(warnings)
  return {
    headers: rendered.headers,
    body: rendered.body,
    warnings,
    streamsUpstream: true,
    relayStream: () => {
      const translated = {
        from: candidate.dialect,
        to: surface,
        target,
        undo: rendered.undo,
        context: input.renderContext(),
      }
      return envelope.stream ? new TranslatedStream(translated) : new CollectedReply(translated)
    },
  }
}

function targetOf(model: OfferedModel, { provider, endpoint, route, rules }: Candidate): Target {
  return {
    upstreamModel: route.upstreamModel,
    issuer: `${provider.id}/${endpoint.dialect}`,
    rules,
    defaultOutputCap: model.defaultMaxTokens,
    maxOutputTokens: model.maxOutputTokens,
  }
}

function strictRefusal(warnings: readonly Warning[]): Failure {
  const list = warnings.map(({ code, field }) => `${code} (${field})`).join(', ')
  return invalidRequest(
    `x-tollgate-strict: no route carries this request whole; it would lose ${list}.`,
    warnings[0]?.field,
  )
}

/** `code;field=/pointer, …`, as the header carries it. */
export function warningsHeader(warnings: readonly Warning[]): string {
  return warnings.map(({ code, field }) => `${code};field=${encodeURI(field)}`).join(', ')
}
