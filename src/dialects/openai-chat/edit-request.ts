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
import { cutSpans } from '../byte-lane/cut-spans.ts'
import type { RequestEdits } from '../byte-lane/relay.ts'
import type { Envelope } from '../canonical/envelope.ts'
import { messageEdits } from './edit-messages.ts'

/** The older first. */
const capNames = ['max_tokens', 'max_completion_tokens']
const endUserNames = ['user', 'safety_identifier']

export function editRequest(envelope: Envelope, edits: RequestEdits): Uint8Array<ArrayBuffer> {
  const { body, members } = envelope
  const added: string[] = []
  const changes: ByteEdit[] = []
  const model = members.find('model')
  if (model) changes.push(replaceValue(model, JSON.stringify(edits.upstreamModel)))
  changes.push(...capEdits(envelope, edits, added))
  const { streamUsage, endUserId } = edits.rules
  const refused = [
    ...(streamUsage === false ? ['stream_options'] : []),
    ...(endUserId === false ? endUserNames : []),
    ...otherCap(envelope, edits),
  ]
  changes.push(...cutMembers(members, refused))
  changes.push(...messageEdits(envelope, edits.rules))
  if (envelope.stream && !envelope.wantsStreamUsage && streamUsage !== false) {
    changes.push(...usageEdits(envelope, added))
  }
  if (added.length > 0) {
    const last = members.list.at(-1)?.valueEnd ?? members.start + 1
    changes.push({ start: last, end: last, bytes: encode(`,${added.join(',')}`) })
  }
  return spliceBytes(
    body,
    changes.sort((a, b) => a.start - b.start),
  )
}

/** The cap under the name the host knows: renamed where the caller used the other one, added where it sent none. */
function capEdits(envelope: Envelope, edits: RequestEdits, added: string[]): ByteEdit[] {
  const { members, outputCap } = envelope
  const wanted = edits.rules.outputCapName
  const most = edits.outputCapMost ?? Number.POSITIVE_INFINITY
  const written = capNames.map((name) => members.find(name)).filter((member) => member !== undefined)
  const counting = countingCap(envelope)
  if (outputCap === undefined) {
    const cap = Math.min(edits.defaultOutputCap ?? Number.POSITIVE_INFINITY, most)
    if (cap === Number.POSITIVE_INFINITY) return []
    if (counting) return [replaceMember(counting, wanted ?? counting.name, cap)]
    added.push(`"${wanted ?? 'max_tokens'}":${cap}`)
    return []
  }
  if (outputCap > most) {
    // Where nobody knows which of two the host obeys, both are lowered.
    const lowered = wanted === undefined ? written : written.filter((member) => member === counting)
    return lowered.map((member) => replaceMember(member, wanted ?? member.name, most))
  }
  if (wanted === undefined || !counting || counting.name === wanted) return []
  return [{ ...nameSpan(counting), bytes: encode(`"${wanted}":`) }]
}

/** Of two caps the one that counts: the newer name before the older, a number before null. */
function countingCap({ body, members }: Envelope): JsonMember | undefined {
  const written = capNames.flatMap((name) => members.find(name) ?? [])
  return written.findLast((member) => memberKind(body, member) !== 'null') ?? written[0]
}

/** A host that knows one name gets one cap: some refuse two, and others a name that they do not know. */
function otherCap(envelope: Envelope, { rules }: RequestEdits): string[] {
  const counting = countingCap(envelope)
  if (rules.outputCapName === undefined || !counting) return []
  return capNames.filter((name) => name !== counting.name)
}

function replaceMember(member: JsonMember, name: string, value: number): ByteEdit {
  return { start: member.start, end: member.valueEnd, bytes: encode(`"${name}":${value}`) }
}

function cutMembers({ list }: Envelope['members'], names: readonly string[]): ByteEdit[] {
  if (names.length === 0) return []
  const spans = list.map(({ start, valueEnd }) => ({ start, end: valueEnd }))
  return cutSpans(spans, (i) => names.includes(list[i]?.name ?? ''))
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
