// Edits a Chat Completions body for a provider of the same dialect. Everything that is not edited is forwarded byte for
// byte, including key order, number spelling and unknown fields.

import { hasBytes } from '../../../wire/bytes.ts'
import {
  type ByteEdit,
  insertMember,
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
import type { TargetRules } from '../../canonical/target-rules.ts'
import type { Envelope } from '../../canonical/translation.ts'
import type { EditedRequest } from '../../dialect.ts'
import { reasoningFieldNames } from '../reasoning.ts'

/** The name for an added cap, if the host's is not known; most hosts accept it. */
const capNameUsual = 'max_tokens'
/** Two names for the same tier. */
const dearerTiers = ['priority', 'fast']
/** OpenRouter's lists of fallback models, and stored presets that may contain such lists. */
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
  // Send one cap: some hosts refuse two, others refuse the name they do not know, and of two a host may use the larger.
  if (other) refused.push(other.name)
  const warnings = capWarnings(envelope, edits, counting)
  const tier = dearerMember(envelope, edits, 'service_tier', dearerTiers)
  if (tier) {
    refused.push(tier.name)
    warnings.push(tierWarning(tier))
  }
  const unpaid = unpaidModels(envelope, edits, modelNames)
  if (unpaid) {
    refused.push(...unpaid.members)
    changes.push(...unpaid.edits)
    warnings.push(...unpaid.warnings)
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
 * The cap under the host's name: renamed if the caller used the other one, added if there was none. For an unknown host
 * keep the caller's name: some models refuse the older name, some hosts the newer.
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

/** Which of two caps counts: the newer name, unless it is null. */
function capsOf({ body, members }: Envelope): { counting: JsonMember | undefined; other: JsonMember | undefined } {
  const older = members.find('max_tokens')
  const newer = members.find('max_completion_tokens')
  if (!older || !newer) return { counting: older ?? newer, other: undefined }
  return memberKind(body, newer) === 'null' ? { counting: older, other: newer } : { counting: newer, other: older }
}

/**
 * Usage is always requested from the provider; if the caller did not ask for it, the relay withholds the extra record.
 */
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

// Message edits: a role that the host does not know, reasoning that the host refuses or requires, and signatures that
// only this gateway can read. Almost no body contains any of these, so bodies are searched for them first.

const traces = {
  role: Buffer.from('"developer"'),
  assistant: Buffer.from('"assistant"'),
  reasoning: Buffer.from('"reasoning'),
  blocks: Buffer.from('"thinking_blocks"'),
  own: Buffer.from('"tg1.'),
}
const systemRole = new TextEncoder().encode('"system"')

/** In order within each message, without overlap. */
export function messageEdits({ body, members }: Envelope, rules: TargetRules): ByteEdit[] {
  const edits: MessageEdits = {
    // Some hosts refuse the role; others silently drop the message, and with it the whole system prompt.
    renameDeveloper: rules.systemRole === 'system' && hasBytes(body, traces.role),
    stripReasoning:
      rules.reasoningMembers === false && (hasBytes(body, traces.reasoning) || hasBytes(body, traces.blocks)),
    stripOurSignatures: hasBytes(body, traces.own),
    echo: rules.reasoningEcho && hasBytes(body, traces.assistant) ? rules.reasoningEcho : undefined,
  }
  const messages = members.find('messages')
  if (!messages || !(edits.renameDeveloper || edits.stripReasoning || edits.stripOurSignatures || edits.echo)) return []
  return readJsonElements(body, messages.valueStart, messages.valueEnd).flatMap((span) => editsIn(body, span, edits))
}

interface MessageEdits {
  /** `developer` becomes `system`. */
  readonly renameDeveloper: boolean
  /** Remove all reasoning. */
  readonly stripReasoning: boolean
  /** Remove reasoning with our signature. */
  readonly stripOurSignatures: boolean
  /** The member without which assistant messages are refused, even those of another model. */
  readonly echo: TargetRules['reasoningEcho']
}

function editsIn(body: Uint8Array, span: JsonSpan, edits: MessageEdits): ByteEdit[] {
  const { renameDeveloper, stripReasoning, stripOurSignatures, echo } = edits
  const message = objectAt(body, span)
  const role = message?.find('role')
  if (!message || !role) return []
  const word = memberText(body, role)
  if (word === 'developer' && renameDeveloper)
    return [{ start: role.valueStart, end: role.valueEnd, bytes: systemRole }]
  if (word !== 'assistant') return []
  const own = stripOurSignatures ? ownDetails(body, message) : []
  const cut = message.list.map(
    ({ name }) => (stripReasoning && isReasoning(name)) || (own === 'all' && name === 'reasoning_details'),
  )
  const spans = message.list.map(({ start, valueEnd }) => ({ start, end: valueEnd }))
  const members = cutSpans(spans, (i) => cut[i] === true)
  const proofs = stripOurSignatures ? ownProofs(body, message) : []
  return [...members, ...proofs, ...(own === 'all' || stripReasoning ? [] : own), ...missedEcho(body, message, echo)]
}

/** Adds the member empty, as for a message without reasoning: reasoning of other models is not sent. */
function missedEcho(body: Uint8Array, message: JsonMembers, echo: TargetRules['reasoningEcho']): ByteEdit[] {
  if (!echo || message.find(echo.field) || (echo.when === 'tool-turns' && !message.find('tool_calls'))) return []
  return [insertMember(body, message, echo.field, '""')]
}

/** Removes our signatures from the extension on calls. */
function ownProofs(body: Uint8Array, message: JsonMembers): ByteEdit[] {
  const calls = message.find('tool_calls')
  if (!calls || memberKind(body, calls) !== 'array') return []
  return readJsonElements(body, calls.valueStart, calls.valueEnd).flatMap((span) => {
    const list = objectAt(body, span)?.list ?? []
    const spans = list.map(({ start, valueEnd }) => ({ start, end: valueEnd }))
    return cutSpans(spans, (i) => list[i]?.name === 'extra_content' && holdsOwn(body, list[i]))
  })
}

function holdsOwn(body: Uint8Array, { valueStart, valueEnd }: JsonMember): boolean {
  return Buffer.from(body.buffer, body.byteOffset + valueStart, valueEnd - valueStart).includes(traces.own)
}

function isReasoning(name: string): boolean {
  return reasoningFieldNames.some((known) => known === name)
}

/** The edits that remove the entries with our signature; `all` = there are no others. */
function ownDetails(body: Uint8Array, message: JsonMembers): ByteEdit[] | 'all' {
  const details = message.find('reasoning_details')
  if (!details || memberKind(body, details) !== 'array') return []
  const entries = readJsonElements(body, details.valueStart, details.valueEnd)
  const isOwn = entries.map((entry) => {
    const fields = objectAt(body, entry)
    return ['signature', 'data'].some((name) => isOwnSignature(textOf(body, fields?.find(name))))
  })
  if (isOwn.length > 0 && isOwn.every(Boolean)) return 'all'
  return cutSpans(entries, (i) => isOwn[i] === true)
}

function textOf(body: Uint8Array, member: JsonMember | undefined): string {
  return (member && memberText(body, member)) ?? ''
}

/** undefined if it is not an object, or has duplicate names, which the host has to judge. */
function objectAt(body: Uint8Array, { start, end }: JsonSpan): JsonMembers | undefined {
  const members = readJsonValueMembers(body, start, end)
  return members instanceof JsonFault ? undefined : members
}
