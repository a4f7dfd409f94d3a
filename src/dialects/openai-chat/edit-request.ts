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
import type { RequestEdits } from '../byte-lane/relay.ts'
import type { Envelope } from '../canonical/envelope.ts'

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
  const refused = [...(streamUsage === false ? ['stream_options'] : []), ...(endUserId === false ? endUserNames : [])]
  changes.push(...cutMembers(members, refused))
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
function capEdits({ members, outputCap }: Envelope, edits: RequestEdits, added: string[]): ByteEdit[] {
  const wanted = edits.rules.outputCapName
  const most = edits.outputCapMost
  if (outputCap !== undefined && most !== undefined && outputCap > most) return loweredCap(members, wanted, most)
  if (outputCap === undefined) {
    const nullCap = capNames.map((name) => members.find(name)).find((member) => member !== undefined)
    const cap = Math.min(edits.defaultOutputCap ?? Number.POSITIVE_INFINITY, most ?? Number.POSITIVE_INFINITY)
    if (cap === Number.POSITIVE_INFINITY) return []
    if (nullCap) return [replaceMember(nullCap, wanted ?? nullCap.name, cap)]
    added.push(`"${wanted ?? 'max_tokens'}":${cap}`)
    return []
  }
  if (wanted === undefined || members.find(wanted)) return []
  const other = capNames.map((name) => members.find(name)).find((member) => member !== undefined)
  return other ? [{ ...nameSpan(other), bytes: encode(`"${wanted}":`) }] : []
}

/** Under every name the caller wrote it: hosts differ in which of two they obey. */
function loweredCap(members: Envelope['members'], wanted: string | undefined, most: number): ByteEdit[] {
  const written = capNames.map((name) => members.find(name)).filter((member) => member !== undefined)
  const isKnown = written.some(({ name }) => name === wanted)
  return written.map((member) => replaceMember(member, isKnown ? member.name : (wanted ?? member.name), most))
}

function replaceMember(member: JsonMember, name: string, value: number): ByteEdit {
  return { start: member.start, end: member.valueEnd, bytes: encode(`"${name}":${value}`) }
}

/** Members that the host refuses: each goes with the comma behind it, those at the end with the one in front. */
function cutMembers({ list }: Envelope['members'], names: readonly string[]): ByteEdit[] {
  if (names.length === 0) return []
  const isCut = ({ name }: JsonMember): boolean => names.includes(name)
  const lastKept = list.findLastIndex((member) => !isCut(member))
  return list.flatMap((member, i): ByteEdit[] => {
    if (!isCut(member)) return []
    const bytes = new Uint8Array(0)
    if (i > lastKept) return [{ start: list[i - 1]?.valueEnd ?? member.start, end: member.valueEnd, bytes }]
    return [{ start: member.start, end: list[i + 1]?.start ?? member.valueEnd, bytes }]
  })
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
