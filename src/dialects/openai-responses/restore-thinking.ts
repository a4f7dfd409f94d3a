// Which of the reasoning in a history its issuer will recognise, and where it stood. Callers of some dialects send all
// reasoning back in front of everything else; each piece goes directly before the call or the message it led to. What
// another has issued stays away, and so does what has lost the thing it led to.

import type { AssistantBlock, RawJson, SealedThinkingBlock, ThinkingBlock, Turn } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import type { WarningList } from '../request/warnings.ts'
import { isOnlyToRead, type ReasoningItem, type ReasoningProof, readProof } from './reasoning-proof.ts'

type AssistantTurn = Turn & { readonly role: 'assistant' }

/**
 * The turns with the reasoning that goes back to `issuer`: the signature of what is left is the item for the wire.
 * Assistant turns in a row become one, as they are to the model, and text that says nothing is gone.
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
    if (turn.role === 'assistant' && last?.role === 'assistant') list.splice(-1, 1, join(last, turn))
    else list.push(turn)
  }
  return list
}

function join(first: AssistantTurn, second: AssistantTurn): AssistantTurn {
  return { ...first, blocks: [...first.blocks, ...second.blocks] }
}

function restored(blocks: readonly AssistantBlock[], issuer: string, warn: () => void): AssistantBlock[] {
  const led = new Map<AssistantBlock, ThinkingBlock[]>()
  for (const [place, block] of blocks.entries()) {
    if (!isThinking(block)) continue
    const signature = (block.kind === 'thinking' ? block.signature : block.data) ?? ''
    const proof = readProof(signature, issuer)
    const follower = proof && followerOf(proof, blocks, place)
    if (follower) led.set(follower, [...(led.get(follower) ?? []), ...proof.items.map(asBlock)])
    else if (!isOnlyToRead(signature)) warn()
  }
  return blocks.flatMap((block) => (isThinking(block) || isEmpty(block) ? [] : [...(led.get(block) ?? []), block]))
}

/** The call by its id; a message is the next text there is, or the first if all reasoning came behind it. */
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

/** Readable reasoning of the item itself must not be sent: the provider takes only the sealed form. */
function renderItem({ id, summary, encryptedContent }: ReasoningItem): RawJson {
  return jsonObject([
    ['type', '"reasoning"'],
    ['id', id === '' ? undefined : jsonString(id)],
    ['summary', jsonArray(summary.map(summaryPart))],
    ['encrypted_content', jsonString(encryptedContent)],
  ])
}

function summaryPart(text: string): RawJson {
  return jsonObject([
    ['type', '"summary_text"'],
    ['text', jsonString(text)],
  ])
}

function isEmpty(block: AssistantBlock): boolean {
  return (block.kind === 'text' || block.kind === 'refusal') && block.text === ''
}

function isThinking(block: AssistantBlock): block is ThinkingBlock | SealedThinkingBlock {
  return block.kind === 'thinking' || block.kind === 'sealed-thinking'
}
