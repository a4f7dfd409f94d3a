// Which of the reasoning in a history its issuer will recognise. Proofs go back to the very parts they came on: the
// thought, the text or the call. What another has issued stays away.

import type { AssistantBlock, SealedThinkingBlock, ThinkingBlock, Turn } from '../canonical/conversation.ts'
import { readSignature } from '../canonical/signature.ts'
import type { WarningList } from '../request/warnings.ts'
import { readProof, type SignedPart } from './thought-signature.ts'

/** A text or a call with the signature of its part. Whoever copies blocks on the way out must keep the member. */
type Signed<Block> = Block & { readonly thoughtSignature?: string }

export function signatureOf(block: Signed<AssistantBlock>): string | undefined {
  return block.thoughtSignature
}

/** The turns with the reasoning that goes back to `issuer`; a signature that is left on a thought is the issuer's own. */
export function restoreThinking(turns: readonly Turn[], issuer: string, warnings: WarningList): Turn[] {
  let calls = new Map<string, string>()
  return turns.map((turn, i) => {
    if (turn.role !== 'assistant') return turn
    // Assistant turns in a row are one to the model.
    if (turns[i - 1]?.role !== 'assistant') calls = callSignatures(turns, i, issuer)
    const text = turn.blocks.flatMap((block) => proofOf(block, issuer) ?? []).findLast(({ part }) => part === 'text')
    const last = turn.blocks.findLast((block) => block.kind === 'text' && block.text !== '')
    const blocks = turn.blocks.flatMap((block): Signed<AssistantBlock>[] => {
      if (isThinking(block)) return restored(block, issuer, () => warnings.add('thinking_dropped', placeOf(turn)))
      if (block === last && text) return [{ ...block, thoughtSignature: text.signature }]
      const signature = block.kind === 'tool-call' ? calls.get(block.id) : undefined
      if (signature === undefined) return [block]
      return [{ ...block, thoughtSignature: signature }]
    })
    return { ...turn, blocks }
  })
}

function placeOf({ place }: Turn): string {
  return place ?? '/messages'
}

/** By call id, from all assistant turns in a row. */
function callSignatures(turns: readonly Turn[], from: number, issuer: string): Map<string, string> {
  const found = new Map<string, string>()
  for (let i = from; turns[i]?.role === 'assistant'; i++) {
    for (const block of turns[i]?.blocks ?? []) {
      const proof = proofOf(block, issuer)
      if (proof?.part === 'call') found.set(proof.id, proof.signature)
    }
  }
  return found
}

function restored(block: ThinkingBlock | SealedThinkingBlock, issuer: string, warn: () => void): ThinkingBlock[] {
  const proof = proofOf(block, issuer)
  if (!proof || block.kind !== 'thinking') {
    // Ours without a blob was only to be read.
    if (!isOnlyToRead(block)) warn()
    return []
  }
  if (proof.part === 'thought') return [{ ...block, signature: proof.signature }]
  return block.text === '' ? [] : [{ ...block, signature: undefined }]
}

function proofOf(block: Turn['blocks'][number], issuer: string): SignedPart | undefined {
  return block.kind === 'thinking' ? readProof(block.signature, issuer) : undefined
}

function isOnlyToRead(block: ThinkingBlock | SealedThinkingBlock): boolean {
  const own = readSignature((block.kind === 'thinking' ? block.signature : block.data) ?? '')
  return own !== undefined && own.blob === undefined
}

function isThinking(block: AssistantBlock): block is ThinkingBlock | SealedThinkingBlock {
  return block.kind === 'thinking' || block.kind === 'sealed-thinking'
}
