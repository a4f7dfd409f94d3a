// The members of a Chat Completions body that change on the way to a provider of the same dialect. Everything else is
// forwarded byte for byte: key order, number spelling and unknown fields included.

import {
  type ByteEdit,
  insertMember,
  JsonFault,
  type JsonMember,
  memberKind,
  readJsonValueMembers,
  spliceBytes,
} from '../../wire/json-members.ts'
import { cutMembers } from '../byte-lane/cut-spans.ts'
import { foreignModels } from '../byte-lane/foreign-models.ts'
import { capWarnings, dearerMember, sentCap, tierWarnings } from '../byte-lane/paid-limits.ts'
import type { RequestEdits } from '../byte-lane/relay.ts'
import type { Envelope } from '../canonical/envelope.ts'
import type { EditedRequest } from '../dialect.ts'
import { messageEdits } from './edit-messages.ts'

/** The older first. */
const capNames = ['max_tokens', 'max_completion_tokens']
/** For a cap that the caller did not send, where nothing is known of a host: the one that most of them know. */
const capNameUsual = 'max_tokens'
/** Two words for the same. */
const dearerTiers = ['priority', 'fast']
/** OpenRouter's lists of what to try instead, and settings kept there that hold such lists. */
const modelNames = ['models', 'route', 'preset']
const endUserNames = ['user', 'safety_identifier']

export function editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest {
  const { body, members } = envelope
  const added: string[] = []
  const changes: ByteEdit[] = []
  const model = members.find('model')
  if (model) changes.push(replaceValue(model, JSON.stringify(edits.upstreamModel)))
  const counting = countingCap(envelope)
  changes.push(...capEdits(envelope, edits, counting, added))
  const { streamUsage, endUserId } = edits.rules
  const tier = dearerMember(envelope, edits, 'service_tier', dearerTiers)
  const foreign = foreignModels(envelope, edits, modelNames)
  const refused = [
    ...(foreign?.members ?? []),
    ...(streamUsage === false ? ['stream_options'] : []),
    ...(endUserId === false ? endUserNames : []),
    ...otherCap(envelope, counting),
    ...(tier ? [tier.name] : []),
  ]
  changes.push(...cutMembers(members, refused), ...(foreign?.edits ?? []))
  changes.push(...messageEdits(envelope, edits.rules))
  if (envelope.stream && !envelope.wantsStreamUsage && streamUsage !== false) {
    changes.push(...usageEdits(envelope, added))
  }
  if (added.length > 0) {
    const last = members.list.at(-1)?.valueEnd ?? members.start + 1
    changes.push({ start: last, end: last, bytes: encode(`,${added.join(',')}`) })
  }
  return {
    body: spliceBytes(
      body,
      changes.sort((a, b) => a.start - b.start),
    ),
    warnings: [...capWarnings(envelope, edits, counting), ...tierWarnings(tier), ...(foreign?.warnings ?? [])],
  }
}

/**
 * The cap under the name the host is known for: renamed where the caller used the other one, added where it sent none.
 * Of a host that nothing is known of the caller may know more: some models refuse the older name, some hosts the newer.
 */
function capEdits(
  envelope: Envelope,
  edits: RequestEdits,
  counting: JsonMember | undefined,
  added: string[],
): ByteEdit[] {
  const cap = sentCap(envelope, edits)
  const name = edits.rules.outputCapName ?? counting?.name ?? capNameUsual
  if (cap === undefined) return []
  if (!counting) {
    added.push(`"${name}":${cap}`)
    return []
  }
  if (cap !== envelope.outputCap) return [replaceMember(counting, name, cap)]
  return counting.name === name ? [] : [{ ...nameSpan(counting), bytes: encode(`"${name}":`) }]
}

/** Of two caps the one that counts: the newer name before the older, a number before null. */
function countingCap({ body, members }: Envelope): JsonMember | undefined {
  const [older, newer] = [members.find('max_tokens'), members.find('max_completion_tokens')]
  if (!older || !newer) return older ?? newer
  return memberKind(body, newer) === 'null' ? older : newer
}

/** A host gets one cap: some refuse two, others a name that they do not know, and of two it may obey the larger. */
function otherCap({ members }: Envelope, counting: JsonMember | undefined): string[] {
  return counting ? capNames.filter((name) => name !== counting.name && members.find(name)) : []
}

function replaceMember(member: JsonMember, name: string, value: number): ByteEdit {
  return { start: member.start, end: member.valueEnd, bytes: encode(`"${name}":${value}`) }
}

/** Usage is always asked of the provider; where the caller did not ask, the relay keeps the extra record back. */
function usageEdits({ body, members }: Envelope, added: string[]): ByteEdit[] {
  const options = members.find('stream_options')
  if (!options) {
    added.push('"stream_options":{"include_usage":true}')
    return []
  }
  if (memberKind(body, options) === 'null') return [replaceValue(options, '{"include_usage":true}')]
  const inner = readJsonValueMembers(body, options.valueStart, options.valueEnd)
  if (inner instanceof JsonFault) return []
  const include = inner.find('include_usage')
  return [include ? replaceValue(include, 'true') : insertMember(body, inner, 'include_usage', 'true')]
}

function replaceValue(member: JsonMember, jsonText: string): ByteEdit {
  return { start: member.valueStart, end: member.valueEnd, bytes: encode(jsonText) }
}

/** From the opening quote of the name to the value. */
function nameSpan(member: JsonMember): { start: number; end: number } {
  return { start: member.start, end: member.valueStart }
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
