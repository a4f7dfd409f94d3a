// Reasoning: the requested effort; encrypted reasoning items, which travel to callers of other dialects inside our
// signatures and back; and reasoning of other dialects, which travels inside `encrypted_content`.
//
// In this dialect tools and reasoning can be combined, so tools never change the effort.

import {
  type AssistantBlock,
  addTurn,
  type Conversation,
  type RawJson,
  type ReasoningBlock,
  type SealedThinkingBlock,
  type ThinkingBlock,
  type Turn,
  turnPointer,
} from '../canonical/conversation.ts'
import { filledObject, isRecord, jsonArray, jsonObject, jsonString, parseRecord, textOf } from '../canonical/json.ts'
import { blobFor, isDisplayOnly, writeSignature } from '../canonical/signature.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { ContentTags } from '../canonical/translation.ts'
import type { WarningList } from '../request/fields.ts'
import { fitEffort, isThinking, proofOf } from '../request/reasoning.ts'
import type { RulesAndWarnings } from '../request/settings.ts'

/** The member, undefined if it is omitted, and the effort in it. */
export function renderReasoning(conversation: Conversation, target: RulesAndWarnings) {
  const effort = fitEffort(conversation, target)
  // Only on request: some accounts are refused summaries until they are verified.
  const { visible, summary = 'auto' } = conversation.reasoning ?? {}
  const isShown = visible === true && effort !== 'none' && reasons(target.rules)
  return {
    reasoning: filledObject({ effort: jsonString(effort), summary: isShown ? jsonString(summary) : undefined }),
    effort,
  }
}

/** Whether the target reasons; one that does not refuses a request for encrypted reasoning. */
export function reasons({ efforts, thinksByDefault }: TargetRules): boolean {
  return thinksByDefault === true || efforts === undefined || efforts.length > 0
}

// Reasoning items inside our signatures. The provider encrypts them and wants them back unchanged, directly before what
// they led to. It refuses an item without its successor, so an item whose successor the caller did not receive is never
// sent back.

export interface ReasoningItem {
  /** '' if the provider gave none. */
  readonly id: string
  /** The summary parts, which the provider wants back unchanged. */
  readonly summary: readonly string[]
  readonly encryptedContent: string
}

export interface ReasoningProof {
  /** Consecutive items. */
  readonly items: readonly ReasoningItem[]
  /** The caller's id of the call they led to; undefined = they led to a message. */
  readonly call: string | undefined
}

/** undefined if it is not encrypted and so cannot be sent back. */
export function readReasoningItem({
  id,
  summary,
  encrypted_content,
}: Record<string, unknown>): ReasoningItem | undefined {
  const encryptedContent = textOf(encrypted_content)
  return encryptedContent === '' ? undefined : { id: textOf(id), summary: summaryTexts(summary), encryptedContent }
}

export function summaryTexts(summary: unknown): string[] {
  return Array.isArray(summary) ? summary.map((part) => (isRecord(part) ? textOf(part.text) : textOf(part))) : []
}

/** `proof` is undefined for reasoning that is only for display. */
export function signReasoning(issuer: string, proof: ReasoningProof | undefined): string {
  return writeSignature({ issuer, blob: proof && writeBlob(proof) })
}

function writeBlob({ items, call }: ReasoningProof): string {
  return JSON.stringify({
    items: items.map(({ id, summary, encryptedContent }) => ({ id, summary, encrypted_content: encryptedContent })),
    call,
  })
}

/** undefined if `issuer` did not issue it. Callers could forge it, so nothing in it is trusted. */
export function readProof(signature: string | undefined, issuer: string): ReasoningProof | undefined {
  const blob = parseRecord(blobFor(issuer, signature) ?? '')
  if (!blob || !Array.isArray(blob.items)) return undefined
  const items = blob.items.filter(isRecord).flatMap((item) => readReasoningItem(item) ?? [])
  return items.length === 0 ? undefined : { items, call: textOf(blob.call) || undefined }
}

// Restores the reasoning of a history to its place. Callers of some dialects return all reasoning at the front; each
// item goes directly before the call or message it led to. Reasoning of other issuers, and reasoning without its
// successor, is dropped.

/**
 * The turns with the reasoning that goes back to `issuer`; the signature of each remaining block is the item for the
 * wire. Consecutive assistant turns are joined, as they are one turn to the model, and empty text is removed.
 */
export function restoreThinking(turns: readonly Turn[], issuer: string, warnings: WarningList): Turn[] {
  const joined: Turn[] = []
  for (const turn of turns) addTurn(joined, turn)
  return joined.map((turn) => {
    if (turn.role !== 'assistant') return turn
    const warn = () => warnings.add('thinking_dropped', turnPointer(turn))
    return { ...turn, blocks: restored(turn.blocks, issuer, warn) }
  })
}

function restored(blocks: readonly AssistantBlock[], issuer: string, warn: () => void): AssistantBlock[] {
  const led = new Map<AssistantBlock, ThinkingBlock[]>()
  for (const [index, block] of blocks.entries()) {
    if (!isThinking(block)) continue
    const signature = proofOf(block)
    const proof = readProof(signature, issuer)
    const follower = proof && followerOf(proof, blocks, index)
    if (follower) led.set(follower, [...(led.get(follower) ?? []), ...proof.items.map(asBlock)])
    else if (!isDisplayOnly(signature)) warn()
  }
  return blocks.flatMap((block) => (isThinking(block) || isEmpty(block) ? [] : [...(led.get(block) ?? []), block]))
}

/** The call by id. A message is the next text, or the first one if all reasoning came after it. */
function followerOf(
  { call }: ReasoningProof,
  blocks: readonly AssistantBlock[],
  index: number,
): AssistantBlock | undefined {
  if (call !== undefined) return blocks.find((block) => block.kind === 'tool-call' && block.id === call)
  const isSaid = (block: AssistantBlock) => (block.kind === 'text' || block.kind === 'refusal') && !isEmpty(block)
  return blocks.find((block, i) => i > index && isSaid(block)) ?? blocks.find(isSaid)
}

function asBlock(item: ReasoningItem): ThinkingBlock {
  return { kind: 'thinking', text: '', signature: renderItem(item) }
}

/** The item's readable reasoning must not be sent: the provider accepts only the encrypted form. */
function renderItem({ id, summary, encryptedContent }: ReasoningItem): RawJson {
  return jsonObject({
    type: '"reasoning"',
    id: jsonString(id || undefined),
    summary: jsonArray(summary.map((text) => jsonObject({ type: '"summary_text"', text: jsonString(text) }))),
    encrypted_content: jsonString(encryptedContent),
  })
}

function isEmpty(block: AssistantBlock): boolean {
  return (block.kind === 'text' || block.kind === 'refusal') && block.text === ''
}

// Reasoning of other dialects inside `encrypted_content`, on its way to a caller of this dialect and back: the signature
// of readable reasoning, whose text is the item's summary, or encrypted reasoning as a whole. A tag before it says that
// this gateway issued it to the caller's workspace.

/** In every content that is ours. */
export const ownContentMark = '"tgr1.'
const signed = 'tgr1.s.'
const sealed = 'tgr1.e.'
/** A summary in place of a conversation, in an item of its own. */
const compacted = 'tgr1.c.'

type Written = Pick<ThinkingBlock, 'kind' | 'signature'> | SealedThinkingBlock

/** undefined for reasoning that cannot be sent back. Without tags it is written as a provider would. */
export function writeEncrypted(block: Written, tags: ContentTags | undefined): string | undefined {
  const isSealed = block.kind === 'sealed-thinking'
  const content = isSealed ? block.data.toWellFormed() : block.signature
  if (content === undefined || !tags) return content
  return tagged(isSealed ? sealed : signed, content, tags)
}

function tagged(form: string, content: string, tags: ContentTags): string {
  return `${form}${tags.tag(form + content)}.${content}`
}

/** Base64, because it counts as opaque for callers. */
export function writeCompaction(summary: string, tags: ContentTags | undefined): string {
  const content = Buffer.from(summary.toWellFormed()).toString('base64')
  return tags ? tagged(compacted, content, tags) : content
}

/** The summary in the content of a compaction; undefined if it is not ours. `forged`: as for reasoning. */
export function readCompacted(
  encrypted: string,
  tags: ContentTags | undefined,
): { readonly summary: string } | 'forged' | undefined {
  if (!tags || !encrypted.startsWith(compacted)) return undefined
  const content = contentIn(encrypted, compacted, tags)
  return content === undefined ? 'forged' : { summary: summaryLead + Buffer.from(content, 'base64').toString() }
}

/** What the model reads before a summary. */
const summaryLead = 'Summary of the conversation so far, which it replaces:\n\n'

function contentIn(encrypted: string, form: string, tags: ContentTags): string | undefined {
  const end = encrypted.indexOf('.', form.length)
  const content = encrypted.slice(end + 1)
  return end !== -1 && tags.isValid(form + content, encrypted.slice(form.length, end)) ? content : undefined
}

/** undefined if it is not ours: a provider's own, or damaged. `forged`: not issued to this workspace, or changed since. */
export function readEncrypted(
  encrypted: string,
  text: string,
  tags: ContentTags | undefined,
): ReasoningBlock | 'forged' | undefined {
  if (!tags || !isOwnContent(encrypted)) return undefined
  const form = encrypted.slice(0, signed.length)
  const content = contentIn(encrypted, form, tags)
  if (content === undefined) return 'forged'
  return form === signed ? { kind: 'thinking', text, signature: content } : { kind: 'sealed-thinking', data: content }
}

export function isOwnContent(encrypted: string): boolean {
  return encrypted.startsWith(signed) || encrypted.startsWith(sealed)
}

export const forgedContent =
  '`encrypted_content` was changed, or was not issued to this workspace by this gateway. Send the reasoning items of a conversation unchanged and with a key of the same workspace, or leave them out.'
