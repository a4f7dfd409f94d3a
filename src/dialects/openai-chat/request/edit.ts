// Edits a Chat Completions body for a provider of the same dialect. Everything that is not edited is forwarded byte for
// byte, including key order, number spelling and unknown fields.

import { hasBytes } from '../../../wire/bytes.ts'
import {
  type ByteEdit,
  insertMember,
  type JsonMember,
  type JsonMembers,
  type JsonSpan,
  memberKind,
} from '../../../wire/json.ts'
import {
  BodyEdits,
  byteEdit,
  type EditedRequest,
  elementsOf,
  objectAt,
  objectIn,
  type PaidMembers,
  type RequestEdits,
  removeMembersIf,
  removeSpans,
  textAt,
} from '../../byte-lane/edits.ts'
import { isOwnSignature } from '../../canonical/signature.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import type { Envelope } from '../../canonical/translation.ts'
import { reasoningFieldNames } from '../reasoning.ts'

/** The name for an added cap, if the host's is not known; most hosts accept it. */
const capNameUsual = 'max_tokens'
const paid: PaidMembers = {
  // Two names for the same tier.
  tier: ['service_tier', 'priority', 'fast'],
  // OpenRouter's stored presets may contain lists of fallback models.
  models: ['preset'],
  freeTools: /^$|^(function|custom|openrouter:(web_fetch|datetime))$/,
}

export function editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest {
  const { streamUsage, endUserId } = edits.rules
  const body = new BodyEdits(envelope, edits)
  body.nameModel()
  body.changes.push(...messageEdits(envelope, edits.rules))
  editCap(body, envelope, edits)
  body.removeUnpaid(paid)
  body.editCacheKey()
  // opencode's spelling of the key with `setCacheKey` (https://github.com/Soju06/codex-lb/issues/67, 2026-02). OpenAI
  // refuses it. It names the session, so hosts with a cache key get one.
  body.remove('promptCacheKey')
  if (endUserId === false) body.remove('user', 'safety_identifier')
  if (streamUsage === false) body.remove('stream_options')
  else if (envelope.stream && !envelope.wantsStreamUsage) requestUsage(body, envelope)
  return body.finish()
}

/**
 * The cap under the host's name: renamed if the caller used the other one, added if there was none. For an unknown host
 * keep the caller's name: some models refuse the older name, some hosts the newer.
 */
function editCap(body: BodyEdits, envelope: Envelope, { rules }: RequestEdits): void {
  const { counting, other } = capsOf(envelope)
  // Send one cap: some hosts refuse two, others refuse the name they do not know, and of two a host may use the larger.
  if (other) body.remove(other.name)
  const cap = body.cap(counting)
  const name = rules.outputCapName ?? counting?.name ?? capNameUsual
  if (cap === undefined) return
  if (!counting) body.add(name, String(cap))
  else if (cap !== envelope.outputCap || counting.name !== name) {
    const written = cap === envelope.outputCap ? undefined : cap
    const end = written === undefined ? counting.valueStart : counting.valueEnd
    body.changes.push(byteEdit(counting.start, end, `"${name}":${written ?? ''}`))
  }
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
function requestUsage(body: BodyEdits, { body: bytes, members }: Envelope): void {
  const options = members.find('stream_options')
  if (!options) return body.add('stream_options', '{"include_usage":true}')
  if (memberKind(bytes, options) === 'null') return body.replace(options, '{"include_usage":true}')
  const inner = objectIn(bytes, options)
  if (!inner) return
  const include = inner.find('include_usage')
  if (include) body.replace(include, 'true')
  else body.changes.push(insertMember(bytes, inner, 'include_usage', 'true'))
}

// Message edits: a role that the host does not know, reasoning that the host refuses or requires, and signatures that
// only this gateway can read. Almost no body contains any of these, so bodies are searched for them first.

const words = {
  role: Buffer.from('"developer"'),
  assistant: Buffer.from('"assistant"'),
  reasoning: Buffer.from('"reasoning'),
  blocks: Buffer.from('"thinking_blocks"'),
  own: Buffer.from('"tg1.'),
}

/** In order within each message, without overlap. */
function messageEdits({ body, members }: Envelope, rules: TargetRules): ByteEdit[] {
  const edits: MessageEdits = {
    // Some hosts refuse the role; others silently drop the message, and with it the whole system prompt.
    renameDeveloper: rules.systemRole === 'system' && hasBytes(body, words.role),
    stripReasoning:
      rules.reasoningMembers === false && (hasBytes(body, words.reasoning) || hasBytes(body, words.blocks)),
    stripOurSignatures: hasBytes(body, words.own),
    echo: rules.reasoningEcho && hasBytes(body, words.assistant) ? rules.reasoningEcho : undefined,
  }
  const messages = members.find('messages')
  if (!messages || !(edits.renameDeveloper || edits.stripReasoning || edits.stripOurSignatures || edits.echo)) return []
  return elementsOf(body, messages).flatMap((span) => editsIn(body, span, edits))
}

interface MessageEdits {
  /** `developer` becomes `system`. */
  readonly renameDeveloper: boolean
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
  const word = textAt(body, role)
  if (word === 'developer' && renameDeveloper) return [byteEdit(role.valueStart, role.valueEnd, '"system"')]
  if (word !== 'assistant') return []
  const own = stripOurSignatures ? ownDetails(body, message) : []
  const members = removeMembersIf(
    message,
    ({ name }) => (stripReasoning && isReasoning(name)) || (own === 'all' && name === 'reasoning_details'),
  )
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
  return elementsOf(body, message.find('tool_calls')).flatMap((span) => {
    const call = objectAt(body, span)
    return call ? removeMembersIf(call, (member) => member.name === 'extra_content' && holdsOwn(body, member)) : []
  })
}

function holdsOwn(body: Uint8Array, { valueStart, valueEnd }: JsonMember): boolean {
  return Buffer.from(body.buffer, body.byteOffset + valueStart, valueEnd - valueStart).includes(words.own)
}

function isReasoning(name: string): boolean {
  return reasoningFieldNames.some((known) => known === name)
}

/** The edits that remove the entries with our signature; `all` = there are no others. */
function ownDetails(body: Uint8Array, message: JsonMembers): ByteEdit[] | 'all' {
  const entries = elementsOf(body, message.find('reasoning_details'))
  const isOwn = entries.map((entry) => {
    const fields = objectAt(body, entry)
    return ['signature', 'data'].some((name) => isOwnSignature(textAt(body, fields?.find(name))))
  })
  if (isOwn.length > 0 && isOwn.every(Boolean)) return 'all'
  return removeSpans(entries, (i) => isOwn[i] === true)
}
