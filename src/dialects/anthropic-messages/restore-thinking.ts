// Which of the reasoning in a history its issuer will recognise. The provider checks that the blocks it gets are an
// unbroken run of those it made, so where one cannot be given back, it and all earlier ones stay away; later ones are
// kept. A real signature is never touched.

import type { AssistantBlock, SealedThinkingBlock, ThinkingBlock, Turn } from '../canonical/conversation.ts'
import { isOwnSignature, readSignature } from '../canonical/signature.ts'
import type { WarningList } from '../request/warnings.ts'

/** The turns with the reasoning that goes back to `issuer`, each block as the issuer wrote it. */
export function restoreThinking(turns: readonly Turn[], issuer: string, warnings: WarningList): Turn[] {
  const ending = endingThinking(turns)
  const restored = turns.map((turn) => {
    if (turn.role !== 'assistant') return turn
    return {
      ...turn,
      blocks: turn.blocks.map((block) => (ending.has(block) ? undefined : restoreBlock(block, issuer))),
    }
  })
  const lost = restored.findLastIndex((turn) => turn.blocks.some((block) => block === undefined))
  return restored.map((turn, i): Turn => {
    if (turn.role !== 'assistant') return turn
    const { place, blocks } = turn
    const kept = blocks.filter((block) => block !== undefined && (i > lost || !isThinking(block))) as AssistantBlock[]
    if (kept.length < blocks.length) warnings.add('thinking_dropped', place ?? '/messages')
    return { role: 'assistant', blocks: kept, ...(place === undefined ? {} : { place }) }
  })
}

/**
 * Reasoning that led to nothing: the provider takes no message that ends with it. Turns in a row are one message, also
 * with blank ones between them, which are not sent.
 */
function endingThinking(turns: readonly Turn[]): ReadonlySet<Turn['blocks'][number]> {
  const ending = new Set<Turn['blocks'][number]>()
  let isFollowed = false
  for (const { role, blocks } of turns.toReversed()) {
    for (const block of blocks.toReversed()) {
      if ((block.kind === 'text' || block.kind === 'refusal') && block.text.trim() === '') continue
      if (!isThinking(block)) isFollowed = role === 'assistant'
      else if (!isFollowed) ending.add(block)
    }
  }
  return ending
}

/** undefined = reasoning that cannot be given back. */
function restoreBlock(block: AssistantBlock, issuer: string): AssistantBlock | undefined {
  if (block.kind === 'thinking') {
    const signature = proofFor(block.signature, issuer)
    return signature === undefined ? undefined : { ...block, signature }
  }
  if (block.kind === 'sealed-thinking') {
    const data = proofFor(block.data, issuer)
    return data === undefined ? undefined : { ...block, data }
  }
  return block
}

function proofFor(proof: string | undefined, issuer: string): string | undefined {
  if (proof === undefined || proof === '') return undefined
  if (!isOwnSignature(proof)) return proof
  const own = readSignature(proof)
  return own?.issuer === issuer ? own.blob : undefined
}

export function isThinking(block: { readonly kind: string }): block is ThinkingBlock | SealedThinkingBlock {
  return block.kind === 'thinking' || block.kind === 'sealed-thinking'
}
