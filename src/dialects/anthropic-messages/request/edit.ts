// Edits a Messages body for a provider of the same dialect: the model's name, blocks that this gateway put into the
// history, wrong labels of images, a cap or model that is not paid for, the service tier, and, for hosts that do not use it,
// Anthropic's billing line.
// Everything else is forwarded byte for byte.

import { hasBytes, utf8Text } from '../../../wire/bytes.ts'
import type { JsonNode } from '../../../wire/json.ts'
import { BodyEdits, type EditedRequest, type PaidMembers, type RequestEdits, textIn } from '../../byte-lane/edits.ts'
import { isOwnSignature } from '../../canonical/signature.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import type { SentRequest } from '../../canonical/translation.ts'
import { sniffMediaType } from '../../request/media.ts'
import { fastSpeed, hostTiers } from '../tiers.ts'

const paid: PaidMembers = {
  // Anthropic's fallback models if the model declines.
  models: ['fallbacks', 'fallback_credit_token'],
  freeTools: /^$|^(custom|bash|text_editor|computer|memory|web_fetch|tool_search|mcp)(_|$)/,
}

export function editRequest(sent: SentRequest, edits: RequestEdits): EditedRequest {
  const body = new BodyEdits(sent, edits)
  body.nameModel()
  if (gatewayBlockMarkers.some((marker) => hasBytes(sent.body, marker))) removeGatewayBlocks(body)
  if (hasBytes(sent.body, imageMarker)) correctImageTypes(body)
  if (edits.rules.attributionLine === false && hasBytes(sent.body, billingPrefixBytes)) {
    for (const block of body.root.get('system')?.elements() ?? []) if (isAttribution(block)) body.remove(block)
  }
  const written = body.root.get('max_tokens')
  const cap = body.cap(written && '/max_tokens')
  if (written && cap !== sent.envelope.outputCap) body.set(written, String(cap))
  body.removeUnpaid(paid)
  editTier(body, sent.envelope, edits.rules)
  return body.finish()
}

/** Hosts with words of their own have one member for all tiers. */
function editTier(body: BodyEdits, { tier }: SentRequest['envelope'], { serviceTiers }: TargetRules): void {
  if (!serviceTiers || (tier !== undefined && serviceTiers[tier] === fastSpeed)) return
  body.removeMembers(['speed'])
  body.editTier('service_tier', hostTiers)
}

// Two kinds of blocks in a history come from this gateway and are refused by providers: thinking with our signature,
// and the empty text block of an answer without content.

/** Almost no body contains any of these, so bodies are searched for them first. JSON writers differ in the space. */
const gatewayBlockMarkers = ['"tg1.', '"text":""', '"text": ""'].map((text) => Buffer.from(text))

/** A message goes as a whole if it has no other blocks. */
function removeGatewayBlocks(body: BodyEdits): void {
  for (const message of body.root.get('messages')?.elements() ?? []) {
    if (textIn(message, 'role') !== 'assistant') continue
    const blocks = message.get('content')?.elements() ?? []
    const ours = blocks.filter(isGatewayBlock)
    if (ours.length > 0 && ours.length === blocks.length) body.remove(message)
    else for (const block of ours) body.remove(block)
  }
}

function isGatewayBlock(block: JsonNode): boolean {
  switch (textIn(block, 'type')) {
    case 'text':
      return block.get('text')?.string === ''
    case 'thinking':
      return isOwnSignature(textIn(block, 'signature'))
    case 'redacted_thinking':
      return isOwnSignature(textIn(block, 'data'))
    default:
      return false
  }
}

// The provider refuses an image whose label does not match its content, and clients label by file name.

const imageMarker = Buffer.from('image/')

function correctImageTypes(body: BodyEdits): void {
  for (const message of body.root.get('messages')?.elements() ?? []) {
    for (const block of message.get('content')?.elements() ?? []) {
      correctImageType(body, block)
      // Only the content of a tool result is a list of blocks.
      if (block.get('type')?.string !== 'tool_result') continue
      for (const inner of block.get('content')?.elements() ?? []) correctImageType(body, inner)
    }
  }
}

/** More than what is needed for the type, also if slashes are escaped. The data is not decoded beyond that. */
const sniffedCharacters = 64

function correctImageType(body: BodyEdits, block: JsonNode): void {
  const source = textIn(block, 'type') === 'image' ? block.get('source') : undefined
  const label = source?.get('media_type')
  const data = source?.get('data')
  if (!source || !label || data?.kind !== 'string' || textIn(source, 'type') !== 'base64') return
  const { bytes, start, end } = data
  const head = utf8Text(bytes, start + 1, Math.min(end - 1, start + sniffedCharacters)).replaceAll('\\/', '/')
  const type = sniffMediaType(head)
  if (type?.startsWith('image/') && label.string !== type) body.set(label, JSON.stringify(type))
}

// Claude Code's first system block: a line for Anthropic's billing that changes with every call or conversation and is
// not part of the prompt. It would defeat prefix caches.

const billingPrefix = 'x-anthropic-billing-header'
const billingPrefixBytes = Buffer.from(billingPrefix)

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
export function behindAttribution(system: JsonNode): number {
  const first = system.at(0)
  return first && isAttribution(first) ? (system.at(1)?.start ?? system.end) : system.start
}

/** Searches the bytes first: other blocks may be long, and are not decoded. */
function isAttribution(block: JsonNode): boolean {
  return block.includes(billingPrefixBytes) && withoutAttribution(textIn(block, 'text')) === undefined
}
