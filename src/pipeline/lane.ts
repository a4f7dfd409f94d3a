// How a request travels to a candidate. Bytes: the endpoint speaks the caller's dialect and gets the caller's bytes.
// Translation: it speaks another, and both meet in the canonical form. What follows is the same for both.

import { mustStream } from '../dialects/byte-lane/edits.ts'
import type { StreamRelay } from '../dialects/byte-lane/relay.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import { issuerName } from '../dialects/canonical/signature.ts'
import type { ReplyMapping, Target, Warning } from '../dialects/canonical/translation.ts'
import { paramOf, WarningList } from '../dialects/request/warnings.ts'
import { assert } from '../kernel/assert.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { wrappings } from '../providers/wrapping/wrappings.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { OfferedModel } from '../routing/offer.ts'
import type { Call } from './call.ts'
import { isStrict } from './strict.ts'
import { CollectedReply, type Translated, TranslatedStream } from './translated-stream.ts'

export interface Lane {
  readonly name: 'bytes' | 'translation'
  /** Path, headers and body as the host takes them, but for its credential. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  /** What was left out or approximated on the way. */
  readonly warnings: readonly Warning[]
  /** Whether the provider is asked for a stream; the translation lane always does, also for callers that want a whole. */
  readonly streamsUpstream: boolean
  relayStream(): StreamRelay
}

export function openLane(call: Call, candidate: Candidate): Lane | Failure {
  const { envelope, model, surface } = call
  const isSame = candidate.dialect === surface && !mustStream(envelope, candidate.rules, model.defaultMaxTokens)
  call.story.record.lane = isSame ? 'bytes' : 'translation'
  const opened = isSame ? byteLane(call, candidate) : translationLane(call, candidate)
  if (opened instanceof Failure) return opened
  const lane = inHostForm(opened, candidate)
  if (lane.warnings.length > 0 && isStrict(call.request.headers)) return strictRefusal(lane.warnings)
  return lane
}

/** A host may take less than its dialect has; what it is not sent is one more loss. */
function inHostForm(opened: Omit<Lane, 'path'>, { dialect, endpoint, route }: Candidate): Lane {
  const path = dialect.generationPath(route.upstreamModel)
  const wrapping = endpoint.wrapping && wrappings[endpoint.wrapping]
  if (!wrapping) return { ...opened, path }
  const wrapped = wrapping.wrap({ path, headers: opened.headers, body: opened.body }, endpoint)
  assert(wrapped, 'every host generates')
  const warnings = new WarningList()
  warnings.addAll(opened.warnings)
  warnings.addAll(wrapped.warnings)
  return { ...opened, ...wrapped, warnings: warnings.list }
}

/** With no more output than the wallet can pay for. */
function affordable(conversation: Conversation, { outputCapMost, model }: Call): Conversation {
  if (outputCapMost === undefined) return conversation
  const asked = conversation.outputCap ?? model.defaultMaxTokens ?? outputCapMost
  return { ...conversation, outputCap: Math.min(asked, outputCapMost) }
}

/** The caller's bytes went out as they were. */
const noMapping: ReplyMapping = {
  toolNames: new Map(),
  customTools: new Set(),
  jsonTool: undefined,
  stop: [],
  singleToolCall: false,
}

function byteLane(call: Call, candidate: Candidate): Omit<Lane, 'path'> {
  const { route, rules, isOwn } = candidate
  const { envelope, model, surface: dialect, request } = call
  const { body, warnings } = dialect.editRequest(envelope, {
    upstreamModel: route.upstreamModel,
    defaultOutputCap: model.defaultMaxTokens,
    affordableOutputCap: call.outputCapMost,
    maxOutputTokens: model.maxOutputTokens,
    isOwn,
    rules,
  })
  return {
    name: 'bytes',
    headers: dialect.forwardedHeaders(request.headers),
    body,
    warnings,
    streamsUpstream: envelope.stream,
    // A provider that streams though it was not asked to is collected, as on the other lane.
    relayStream: () =>
      envelope.stream
        ? dialect.relayStream(call)
        : relayTranslated(call, candidate, { target: targetOf(model, candidate), mapping: noMapping }),
  }
}

function translationLane(call: Call, candidate: Candidate): Omit<Lane, 'path'> | Failure {
  const parsed = call.conversation()
  if (parsed instanceof Failure) return parsed
  const target = targetOf(call.model, candidate)
  const rendered = candidate.dialect.translation.renderRequest(affordable(parsed.conversation, call), target)
  if (rendered instanceof Failure) return rendered
  const warnings = new WarningList()
  warnings.addAll(parsed.warnings)
  warnings.addAll(rendered.warnings)
  return {
    name: 'translation',
    headers: rendered.headers,
    body: rendered.body,
    warnings: warnings.list,
    streamsUpstream: true,
    relayStream: () => relayTranslated(call, candidate, { target, mapping: rendered.mapping }),
  }
}

/** On its own, since what it makes is kept for as long as the answer takes, and the rendered request must not be with it. */
function relayTranslated(
  call: Call,
  { dialect }: Candidate,
  asked: Pick<Translated, 'target' | 'mapping'>,
): TranslatedStream | CollectedReply {
  const context = call.renderContext()
  const note = (text: string) => void call.story.record.notes.push(text)
  const translated = { from: dialect, to: call.surface, ...asked, context, note }
  return call.envelope.stream ? new TranslatedStream(translated) : new CollectedReply(translated)
}

function targetOf(model: OfferedModel, { provider, endpoint, route, rules }: Candidate): Target {
  return {
    upstreamModel: route.upstreamModel,
    issuer: issuerName(provider.id, endpoint.dialect, route.upstreamModel),
    rules,
    defaultOutputCap: model.defaultMaxTokens,
    maxOutputTokens: model.maxOutputTokens,
  }
}

function strictRefusal(lost: readonly Warning[]): Failure {
  const list = lost.map(({ code, field }) => `${code} (${paramOf(field)})`).join(', ')
  const message = `x-tollgate-strict: this request cannot be carried whole to the model's provider; lost would be ${list}.`
  return invalidRequest(message.slice(0, strictMessageMax), lost[0] && paramOf(lost[0].field))
}

const strictMessageMax = 2000
/** Clients choose the names in pointers; a header must stay a header. */
const warningsMax = 20
const pointerMax = 100

/** `code;field=/pointer, …`, as the header carries it. */
export function warningsHeader(warnings: readonly Warning[]): string {
  const shown = warnings.slice(0, warningsMax).map(({ code, field }) => {
    const pointer = encodeURI(field.slice(0, pointerMax).toWellFormed()).replace(/[,;]/g, encodeURIComponent)
    return `${code};field=${pointer}`
  })
  if (warnings.length > warningsMax) shown.push(`and_more;count=${warnings.length - warningsMax}`)
  return shown.join(', ')
}
