// Edits a Chat Completions body for a provider of the same dialect. Everything that is not edited is forwarded byte for
// byte, including key order, number spelling and unknown fields.

import { hasBytes } from '../../../wire/bytes.ts'
import type { JsonNode } from '../../../wire/json.ts'
import { BodyEdits, type EditedRequest, type PaidMembers, type RequestEdits, textIn } from '../../byte-lane/edits.ts'
import { isDisplayOnly, isOwnSignature } from '../../canonical/signature.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { openaiHostTiers } from '../../canonical/tiers.ts'
import type { SentRequest } from '../../canonical/translation.ts'
import { anyId, OpenCalls, type ToolIdRule } from '../../request/tools.ts'
import { reasoningFieldNames } from '../reasoning.ts'
import { bridge, toolIdMaxDefault } from './render.ts'

/** The name for an added cap, if the host's is not known; most hosts accept it. */
const capNameUsual = 'max_tokens'
const paid: PaidMembers = {
  // OpenRouter's stored presets may contain lists of fallback models.
  models: ['preset'],
  freeTools: /^$|^(function|custom|openrouter:(web_fetch|datetime))$/,
}

export function editRequest(sent: SentRequest, edits: RequestEdits): EditedRequest {
  const { streamUsage, endUserId } = edits.rules
  const body = new BodyEdits(sent, edits)
  body.nameModel()
  editMessages(body, sent.body, edits.rules)
  fitCalls(body, sent.body, edits.rules)
  editCap(body, sent.envelope.outputCap, edits.rules)
  body.removeUnpaid(paid)
  body.editTier('service_tier', openaiHostTiers)
  body.editCacheKey()
  // opencode's spelling of the key with `setCacheKey` (https://github.com/Soju06/codex-lb/issues/67, 2026-02). OpenAI
  // refuses it. It names the session, so hosts with a cache key get one.
  body.removeMembers(['promptCacheKey'])
  if (endUserId === false) body.removeMembers(['user', 'safety_identifier'])
  if (streamUsage === false) body.removeMembers(['stream_options'])
  else if (sent.envelope.stream && !sent.envelope.wantsStreamUsage) requestUsage(body)
  return body.finish()
}

/**
 * Usage is always requested from the provider; if the caller did not ask for it, the relay withholds the extra record.
 */
function requestUsage(body: BodyEdits): void {
  const options = body.root.get('stream_options')
  if (options?.members()) body.put(options, 'include_usage', 'true')
  else if (!options || options.kind === 'null') body.put(body.root, 'stream_options', '{"include_usage":true}')
}

/**
 * The cap under the host's name: renamed if the caller used the other one, added if there was none. For an unknown host
 * keep the caller's name: some models refuse the older name, some hosts the newer.
 */
function editCap(body: BodyEdits, outputCap: number | undefined, { outputCapName }: TargetRules): void {
  const older = body.root.get('max_tokens')
  const newer = body.root.get('max_completion_tokens')
  // The newer name counts, unless it is null and the older one is there.
  const isOlder = older && (!newer || newer.kind === 'null')
  const counting = isOlder ? older : newer
  // Send one cap: some hosts refuse two, others refuse the name they do not know, and of two a host may use the larger.
  if (older && newer) body.remove(counting === older ? newer : older)
  const cap = body.cap(counting && `/${counting.name}`)
  if (cap === undefined) return
  const name = outputCapName ?? counting?.name ?? capNameUsual
  if (!counting) return body.add(body.root, name, String(cap))
  if (counting.name !== name) body.rename(counting, name)
  if (cap !== outputCap) body.set(counting, String(cap))
}

// Message edits: a role that the host does not know, reasoning that the host refuses or requires, signatures that only
// this gateway can read, and for some hosts ids of calls and the order of messages. Almost no body contains any of these,
// so bodies are searched for them first.

const words = {
  role: Buffer.from('"developer"'),
  assistant: Buffer.from('"assistant"'),
  reasoning: Buffer.from('"reasoning'),
  blocks: Buffer.from('"thinking_blocks"'),
  own: Buffer.from('"tg1.'),
  calls: Buffer.from('"tool_calls"'),
}

function editMessages(body: BodyEdits, bytes: Uint8Array, rules: TargetRules): void {
  const has = (word: keyof typeof words) => hasBytes(bytes, words[word])
  // Some hosts refuse the role; others silently drop the message, and with it the whole system prompt.
  const renamesDeveloper = rules.systemRole === 'system' && has('role')
  const edits: AssistantEdits = {
    stripReasoning: rules.reasoningMembers === false && (has('reasoning') || has('blocks')),
    stripOwn: has('own'),
    echo: rules.reasoningEcho && has('assistant') ? rules.reasoningEcho : undefined,
  }
  if (!renamesDeveloper && !edits.stripReasoning && !edits.stripOwn && !edits.echo) return
  let isLost = false
  for (const [i, message] of (body.root.get('messages')?.elements() ?? []).entries()) {
    const role = message.get('role')
    if (role?.string === 'developer' && renamesDeveloper) body.set(role, '"system"')
    if (role?.string !== 'assistant') continue
    if (!isLost && edits.stripReasoning && hasReasoning(message)) {
      isLost = true
      body.warn('thinking_dropped', `/messages/${i}`)
    }
    editAssistant(body, message, edits)
  }
}

/** Other than reasoning that was only for display, which needs no warning on any lane. */
function hasReasoning(message: JsonNode): boolean {
  const isFilled = reasoningFieldNames.some((name) => {
    const member = message.get(name)
    return member?.kind === 'array' ? !member.isEmpty : Boolean(member?.string)
  })
  if (!isFilled) return false
  const details = message.get('reasoning_details')?.elements() ?? []
  return details.length === 0 || !details.every((entry) => isDisplayOnly(textIn(entry, 'signature')))
}

/** Ids of calls in the form that the host accepts, and a message between a result and a user message. */
function fitCalls(body: BodyEdits, bytes: Uint8Array, rules: TargetRules): void {
  const { toolIdPattern, toolIdMax, assistantAfterTool = false } = rules
  const hasIdRule = toolIdPattern !== undefined || toolIdMax !== undefined
  if ((!hasIdRule && !assistantAfterTool) || !hasBytes(bytes, words.calls)) return
  const messages = body.root.get('messages')?.elements() ?? []
  if (hasIdRule) fitCallIds(body, messages, { pattern: toolIdPattern ?? anyId, max: toolIdMax ?? toolIdMaxDefault })
  if (assistantAfterTool) addBridges(body, messages)
}

/** What cannot be paired is left as it is: the provider decides about it. */
function fitCallIds(body: BodyEdits, messages: readonly JsonNode[], rule: ToolIdRule): void {
  const open = new OpenCalls(rule)
  const fit = (node: JsonNode | undefined, sentFor: (id: string) => string | undefined): void => {
    const id = node?.string
    const sent = id && sentFor(id)
    if (node && sent && sent !== id) body.set(node, JSON.stringify(sent))
  }
  let before = ''
  for (const [i, message] of messages.entries()) {
    const role = textIn(message, 'role')
    if (role === 'assistant' && before !== 'assistant') open.clear()
    for (const call of (role === 'assistant' && message.get('tool_calls')?.elements()) || []) {
      fit(call.get('id'), (id) => open.add(id, i))
    }
    if (role === 'tool') fit(message.get('tool_call_id'), (id) => open.answer(id))
    before = role
  }
}

function addBridges(body: BodyEdits, messages: readonly JsonNode[]): void {
  let lastSpoken = ''
  for (const message of messages) {
    const role = textIn(message, 'role')
    if (role === 'user' && lastSpoken === 'tool') body.addBefore(message, bridge)
    if (role !== 'system' && role !== 'developer') lastSpoken = role
  }
}

interface AssistantEdits {
  readonly stripReasoning: boolean
  /** Remove reasoning with our signature. */
  readonly stripOwn: boolean
  /** The member without which assistant messages are refused, even those of another model. */
  readonly echo: TargetRules['reasoningEcho']
}

function editAssistant(body: BodyEdits, message: JsonNode, { stripReasoning, stripOwn, echo }: AssistantEdits): void {
  for (const name of stripReasoning ? reasoningFieldNames : []) {
    const member = message.get(name)
    if (member) body.remove(member)
  }
  if (stripOwn) stripOwnSignatures(body, message, stripReasoning)
  // Empty, as for a message without reasoning: reasoning of other models is not sent.
  const needsEcho = echo && (echo.when !== 'tool-turns' || message.get('tool_calls'))
  if (needsEcho && !message.get(echo.field)) body.add(message, echo.field, '""')
}

/** Our signatures in `reasoning_details`, which goes as a whole if there are no others, and in the extension on calls. */
function stripOwnSignatures(body: BodyEdits, message: JsonNode, isStripped: boolean): void {
  const details = message.get('reasoning_details')
  const entries = details?.elements() ?? []
  const own = entries.filter((entry) => ['signature', 'data'].some((name) => isOwnSignature(textIn(entry, name))))
  if (details && own.length > 0 && own.length === entries.length) body.remove(details)
  else if (!isStripped) for (const entry of own) body.remove(entry)
  for (const call of message.get('tool_calls')?.elements() ?? []) {
    const extra = call.get('extra_content')
    if (extra?.includes(words.own)) body.remove(extra)
  }
}
