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
import type { RequestEdits } from '../byte-lane/edits.ts'
import { capWarnings, cutMembers, dearerMember, sentCap, tierWarning, unpaidModels } from '../byte-lane/edits.ts'
import type { Envelope } from '../canonical/translation.ts'
import type { EditedRequest } from '../dialect.ts'
import { messageEdits } from './edit-messages.ts'

/** For a cap that the caller did not send, where nothing is known of a host: the one that most of them know. */
const capNameUsual = 'max_tokens'
/** Two words for the same. */
const dearerTiers = ['priority', 'fast']
/** OpenRouter's lists of what to try instead, and settings kept there that hold such lists. */
const modelNames = ['models', 'route', 'preset']
const endUserNames = ['user', 'safety_identifier']
const encoder = new TextEncoder()

export function editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest {
  const { body, members } = envelope
  const added: string[] = []
  const refused: string[] = []
  const changes = messageEdits(envelope, edits.rules)
  const model = members.find('model')
  if (model) changes.push(replaceValue(model, JSON.stringify(edits.upstreamModel)))
  const { counting, other } = capsOf(envelope)
  const cap = capEdit(envelope, edits, counting, added)
  if (cap) changes.push(cap)
  // A host gets one cap: some refuse two, others a name that they do not know, and of two it may obey the larger.
  if (other) refused.push(other.name)
  const warnings = capWarnings(envelope, edits, counting)
  const tier = dearerMember(envelope, edits, 'service_tier', dearerTiers)
  if (tier) {
    refused.push(tier.name)
    warnings.push(tierWarning(tier))
  }
  const foreign = unpaidModels(envelope, edits, modelNames)
  if (foreign) {
    refused.push(...foreign.members)
    changes.push(...foreign.edits)
    warnings.push(...foreign.warnings)
  }
  const { streamUsage, endUserId } = edits.rules
  if (endUserId === false) refused.push(...endUserNames)
  if (streamUsage === false) refused.push('stream_options')
  else if (envelope.stream && !envelope.wantsStreamUsage) changes.push(...usageEdits(envelope, added))
  if (refused.length > 0) changes.push(...cutMembers(members, refused))
  if (added.length > 0) {
    const last = members.list.at(-1)?.valueEnd ?? members.start + 1
    changes.push({ start: last, end: last, bytes: encoder.encode(`,${added.join(',')}`) })
  }
  changes.sort((a, b) => a.start - b.start)
  return { body: spliceBytes(body, changes), warnings }
}

/**
 * The cap under the name the host is known for: renamed where the caller used the other one, added where it sent none.
 * Of a host that nothing is known of the caller may know more: some models refuse the older name, some hosts the newer.
 */
function capEdit(
  envelope: Envelope,
  edits: RequestEdits,
  counting: JsonMember | undefined,
  added: string[],
): ByteEdit | undefined {
  const cap = sentCap(envelope, edits)
  const name = edits.rules.outputCapName ?? counting?.name ?? capNameUsual
  if (cap === undefined) return undefined
  if (!counting) {
    added.push(`"${name}":${cap}`)
    return undefined
  }
  const { start, valueStart, valueEnd } = counting
  if (cap !== envelope.outputCap) return { start, end: valueEnd, bytes: encoder.encode(`"${name}":${cap}`) }
  return counting.name === name ? undefined : { start, end: valueStart, bytes: encoder.encode(`"${name}":`) }
}

/** Of two caps the one that counts: the newer name before the older, a number before null. */
function capsOf({ body, members }: Envelope): { counting: JsonMember | undefined; other: JsonMember | undefined } {
  const older = members.find('max_tokens')
  const newer = members.find('max_completion_tokens')
  if (!older || !newer) return { counting: older ?? newer, other: undefined }
  return memberKind(body, newer) === 'null' ? { counting: older, other: newer } : { counting: newer, other: older }
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
  return { start: member.valueStart, end: member.valueEnd, bytes: encoder.encode(jsonText) }
}
