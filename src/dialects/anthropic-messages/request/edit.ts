// Edits a Messages body for a provider of the same dialect: the model's name, blocks that this gateway put into the
// history, a cap, speed or model that is not paid for, and, for hosts that do not use it, Anthropic's billing line.
// Everything else is forwarded byte for byte.

import { hasBytes, openBracket } from '../../../wire/bytes.ts'
import { type ByteEdit, type JsonMembers, type JsonSpan, memberKind, readJsonElements } from '../../../wire/json.ts'
import {
  BodyEdits,
  byStart,
  type EditedRequest,
  elementsOf,
  objectAt,
  type PaidMembers,
  type RequestEdits,
  removeSpans,
  textAt,
} from '../../byte-lane/edits.ts'
import { isOwnSignature } from '../../canonical/signature.ts'
import type { Envelope } from '../../canonical/translation.ts'

const paid: PaidMembers = {
  // Costs several times the price. The beta flag that unlocks a speed is harmless without it, and may stay.
  tier: ['speed', 'fast'],
  // Anthropic's fallback models if the model declines.
  models: ['fallbacks', 'fallback_credit_token'],
  freeTools: /^$|^(custom|bash|text_editor|computer|memory|web_fetch|tool_search|mcp)(_|$)/,
}

export function editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest {
  const { members } = envelope
  const body = new BodyEdits(envelope, edits)
  body.nameModel()
  body.changes.push(...stripGatewayBlocks(envelope.body, members))
  if (edits.rules.attributionLine === false) body.changes.push(...attributionEdits(envelope.body, members))
  const written = members.find('max_tokens')
  const cap = body.cap(written)
  if (written && cap !== envelope.outputCap) body.replace(written, String(cap))
  body.removeUnpaid(paid)
  return body.finish()
}

// Two kinds of blocks in a history come from this gateway and are refused by providers: thinking with our signature,
// and the empty text block of an answer without content.

/** Almost no body contains any of these, so bodies are searched for them first. JSON writers differ in the space. */
const gatewayBlockMarkers = ['"tg1.', '"text":""', '"text": ""'].map((text) => Buffer.from(text))

/** In order, without overlap. */
export function stripGatewayBlocks(body: Uint8Array, members: JsonMembers): ByteEdit[] {
  if (!gatewayBlockMarkers.some((marker) => hasBytes(body, marker))) return []
  const spans = elementsOf(body, members.find('messages'))
  const inside = spans.map((span) => editsOfMessage(body, span))
  const whole = removeSpans(spans, (i) => inside[i] === 'all')
  const parts = inside.flatMap((edits) => (edits === 'all' ? [] : edits))
  return [...whole, ...parts].sort(byStart)
}

function editsOfMessage(body: Uint8Array, span: JsonSpan): ByteEdit[] | 'all' {
  const message = objectAt(body, span)
  if (textAt(body, message?.find('role')) !== 'assistant') return []
  const blocks = elementsOf(body, message?.find('content'))
  const isOurs = blocks.map((block) => isGatewayBlock(body, block))
  if (isOurs.length > 0 && isOurs.every(Boolean)) return 'all'
  return removeSpans(blocks, (i) => isOurs[i] === true)
}

function isGatewayBlock(body: Uint8Array, span: JsonSpan): boolean {
  const block = objectAt(body, span)
  const text = block?.find('text')
  switch (textAt(body, block?.find('type'))) {
    case 'text':
      return text !== undefined && memberKind(body, text) === 'string' && textAt(body, text) === ''
    case 'thinking':
      return isOwnSignature(textAt(body, block?.find('signature')))
    case 'redacted_thinking':
      return isOwnSignature(textAt(body, block?.find('data')))
    default:
      return false
  }
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
  const spans = hasBytes(body, billingPrefixBytes) ? elementsOf(body, members.find('system')) : []
  return removeSpans(spans, (i) => isAttribution(body, spans[i]))
}

function isAttribution(body: Uint8Array, span: JsonSpan | undefined): boolean {
  const block = span && objectAt(body, span)
  return withoutAttribution(textAt(body, block?.find('text'))) === undefined
}
