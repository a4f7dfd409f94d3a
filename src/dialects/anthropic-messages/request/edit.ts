// Edits a Messages body for a provider of the same dialect: the model's name, blocks that this gateway put into the
// history, a cap, speed or model that is not paid for, and, for hosts that do not use it, Anthropic's billing line.
// Everything else is forwarded byte for byte.

import { hasBytes, openBracket } from '../../../wire/bytes.ts'
import {
  type ByteEdit,
  JsonFault,
  type JsonMember,
  type JsonMembers,
  memberKind,
  memberText,
  readJsonElements,
  readJsonValueMembers,
  spliceBytes,
} from '../../../wire/json-members.ts'
import type { JsonSpan } from '../../../wire/json-spans.ts'
import {
  capWarnings,
  cutMembers,
  cutSpans,
  dearerMember,
  type RequestEdits,
  sentCap,
  tierWarning,
  unpaidModels,
} from '../../byte-lane/edits.ts'
import { isOwnSignature } from '../../canonical/signature.ts'
import type { Envelope } from '../../canonical/translation.ts'
import type { EditedRequest } from '../../dialect.ts'

/** Costs several times the price. */
const dearerSpeeds = ['fast']
/** Fallback models: Anthropic's if the model declines, OpenRouter's if it fails. */
const modelNames = ['fallbacks', 'fallback_credit_token', 'models', 'route']
const encoder = new TextEncoder()

export function editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest {
  const { body, members, outputCap } = envelope
  const changes = stripGatewayBlocks(body, members)
  if (edits.rules.attributionLine === false) changes.push(...attributionEdits(body, members))
  const refused: string[] = []
  const model = members.find('model')
  if (model) changes.push(replaceValue(model, JSON.stringify(edits.upstreamModel)))
  const written = members.find('max_tokens')
  const cap = sentCap(envelope, edits)
  if (written && cap !== outputCap) changes.push(replaceValue(written, String(cap)))
  const warnings = capWarnings(envelope, edits, written)
  const speed = dearerMember(envelope, edits, 'speed', dearerSpeeds)
  if (speed) {
    // The beta flag that unlocks a speed is harmless without it, and may stay.
    refused.push(speed.name)
    warnings.push(tierWarning(speed))
  }
  const unpaid = unpaidModels(envelope, edits, modelNames)
  if (unpaid) {
    refused.push(...unpaid.members)
    changes.push(...unpaid.edits)
    warnings.push(...unpaid.warnings)
  }
  if (refused.length > 0) changes.push(...cutMembers(members, refused))
  changes.sort((a, b) => a.start - b.start)
  return { body: spliceBytes(body, changes), warnings }
}

function replaceValue(member: JsonMember, jsonText: string): ByteEdit {
  return { start: member.valueStart, end: member.valueEnd, bytes: encoder.encode(jsonText) }
}

// Two kinds of blocks in a history come from this gateway and are refused by providers: thinking with our signature,
// and the empty text block of an answer without content.

/** Almost no body contains any of these, so bodies are searched for them first. JSON writers differ in the space. */
const gatewayBlockMarkers = ['"tg1.', '"text":""', '"text": ""'].map((text) => Buffer.from(text))

/** In order, without overlap. */
export function stripGatewayBlocks(body: Uint8Array, members: JsonMembers): ByteEdit[] {
  if (!gatewayBlockMarkers.some((marker) => hasBytes(body, marker))) return []
  const messages = members.find('messages')
  if (!messages || memberKind(body, messages) !== 'array') return []
  const spans = readJsonElements(body, messages.valueStart, messages.valueEnd)
  const inside = spans.map((span) => cutsInMessage(body, span))
  const whole = cutSpans(spans, (i) => inside[i] === 'all')
  const parts = inside.flatMap((cuts) => (cuts === 'all' ? [] : cuts))
  return [...whole, ...parts].sort((a, b) => a.start - b.start)
}

function cutsInMessage(body: Uint8Array, span: JsonSpan): ByteEdit[] | 'all' {
  const message = objectMembers(body, span)
  const role = message?.find('role')
  const content = message?.find('content')
  if (!role || !content || memberText(body, role) !== 'assistant' || memberKind(body, content) !== 'array') return []
  const blocks = readJsonElements(body, content.valueStart, content.valueEnd)
  const cut = blocks.map((block) => isGatewayBlock(body, block))
  if (cut.length > 0 && cut.every(Boolean)) return 'all'
  return cutSpans(blocks, (i) => cut[i] === true)
}

function isGatewayBlock(body: Uint8Array, span: JsonSpan): boolean {
  const block = objectMembers(body, span)
  const text = (name: string) => block && memberTextOf(body, block.find(name))
  switch (text('type')) {
    case 'text':
      return text('text') === ''
    case 'thinking':
      return isOwnSignature(text('signature') ?? '')
    case 'redacted_thinking':
      return isOwnSignature(text('data') ?? '')
    default:
      return false
  }
}

function memberTextOf(body: Uint8Array, member: JsonMember | undefined): string | undefined {
  return member && memberText(body, member)
}

/** undefined if it is not an object, or has duplicate names, which the provider has to judge. */
function objectMembers(body: Uint8Array, { start, end }: JsonSpan): JsonMembers | undefined {
  const members = readJsonValueMembers(body, start, end)
  return members instanceof JsonFault ? undefined : members
}

// Claude Code's first system block: a line for Anthropic's billing that changes with every call or conversation and is
// not part of the prompt. It would defeat prefix caches.

const billingPrefix = 'x-anthropic-billing-header'
const billingPrefixBytes = Buffer.from(billingPrefix)
/** The line has about a hundred bytes and comes first. */
const headBytes = 512

/**
 * The text without the line at its start; undefined = nothing is left. Intermediate tools may have joined it with other
 * text.
 */
export function withoutAttribution(text: string): string | undefined {
  if (!text.startsWith(billingPrefix)) return text
  const rest = text.replace(/^.*\r?\n?/, '')
  return rest.trim() === '' ? undefined : rest
}

/** The offset in a list of system blocks after the line; the start of the list if there is no line. */
export function behindAttribution(body: Uint8Array, system: JsonSpan): number {
  const first = Buffer.from(body.buffer, body.byteOffset + system.start, Math.min(headBytes, system.end - system.start))
  if (first[0] !== openBracket || !first.includes(billingPrefixBytes)) return system.start
  const spans = readJsonElements(body, system.start, system.end)
  return isAttribution(body, spans[0]) ? (spans[1]?.start ?? system.end) : system.start
}

/** Removes the blocks that consist only of the line. */
export function attributionEdits(body: Uint8Array, members: JsonMembers): ByteEdit[] {
  const system = hasBytes(body, billingPrefixBytes) ? members.find('system') : undefined
  if (!system || memberKind(body, system) !== 'array') return []
  const spans = readJsonElements(body, system.valueStart, system.valueEnd)
  return cutSpans(spans, (i) => isAttribution(body, spans[i]))
}

function isAttribution(body: Uint8Array, span: JsonSpan | undefined): boolean {
  const block = readJsonValueMembers(body, span?.start ?? 0, span?.end ?? 0)
  const text = block instanceof JsonFault ? undefined : block.find('text')
  return text !== undefined && withoutAttribution(memberText(body, text) ?? '') === undefined
}
