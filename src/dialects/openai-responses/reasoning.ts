// Reasoning: the requested effort, and encrypted reasoning items, which travel to the caller inside our signatures and
// back.
//
// In this dialect tools and reasoning can be combined, so tools never change the effort.

import type { AssistantBlock, Conversation, RawJson, ThinkingBlock, Turn } from '../canonical/conversation.ts'
import { filledObject, isRecord, jsonArray, jsonObject, jsonString, parseRecord, textOf } from '../canonical/json.ts'
import { blobFor, isDisplayOnly, writeSignature } from '../canonical/signature.ts'
import { fitEffort, isThinking, proofOf } from '../request/reasoning.ts'
import type { WarningList } from '../request/warnings.ts'
import { type Rendering, reasons } from './request/context.ts'

/** The member, undefined if it is omitted, and the effort in it. */
export function renderReasoning(conversation: Conversation, rendering: Rendering) {
  const effort = fitEffort(conversation, rendering)
  // Only on request: some accounts are refused summaries until they are verified.
  const isShown = conversation.reasoning?.visible === true && effort !== 'none' && reasons(rendering.rules)
  return { reasoning: filledObject({ effort: jsonString(effort), summary: isShown ? '"auto"' : undefined }), effort }
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
  return joined(turns).map((turn) => {
    if (turn.role !== 'assistant') return turn
    const warn = () => warnings.add('thinking_dropped', turn.place ?? '/messages')
    return { ...turn, blocks: restored(turn.blocks, issuer, warn) }
  })
}

function joined(turns: readonly Turn[]): Turn[] {
  const list: Turn[] = []
  for (const turn of turns) {
    const last = list.at(-1)
    if (turn.role === 'assistant' && last?.role === 'assistant') {
      list.splice(-1, 1, { ...last, blocks: [...last.blocks, ...turn.blocks] })
    } else list.push(turn)
  }
  return list
}

function restored(blocks: readonly AssistantBlock[], issuer: string, warn: () => void): AssistantBlock[] {
  const led = new Map<AssistantBlock, ThinkingBlock[]>()
  for (const [place, block] of blocks.entries()) {
    if (!isThinking(block)) continue
    const signature = proofOf(block)
    const proof = readProof(signature, issuer)
    const follower = proof && followerOf(proof, blocks, place)
    if (follower) led.set(follower, [...(led.get(follower) ?? []), ...proof.items.map(asBlock)])
    else if (!isDisplayOnly(signature)) warn()
  }
  return blocks.flatMap((block) => (isThinking(block) || isEmpty(block) ? [] : [...(led.get(block) ?? []), block]))
}

/** The call by id. A message is the next text, or the first one if all reasoning came after it. */
function followerOf(
  { call }: ReasoningProof,
  blocks: readonly AssistantBlock[],
  place: number,
): AssistantBlock | undefined {
  if (call !== undefined) return blocks.find((block) => block.kind === 'tool-call' && block.id === call)
  const isSaid = (block: AssistantBlock) => (block.kind === 'text' || block.kind === 'refusal') && !isEmpty(block)
  return blocks.find((block, i) => i > place && isSaid(block)) ?? blocks.find(isSaid)
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
