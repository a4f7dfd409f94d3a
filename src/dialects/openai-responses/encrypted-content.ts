// Reasoning of other dialects inside `encrypted_content`, on its way to a caller of this dialect and back: the signature
// of readable reasoning, whose text is the item's summary, or encrypted reasoning as a whole.

import type { SealedThinkingBlock, ThinkingBlock } from '../canonical/conversation.ts'

/** In every content that is ours. */
export const ownContentMark = '"tgr1.'
const signed = 'tgr1.s.'
const sealed = 'tgr1.e.'

type Written = Pick<ThinkingBlock, 'kind' | 'signature'> | SealedThinkingBlock

/** undefined for reasoning that cannot be sent back. */
export function writeEncrypted(block: Written): string | undefined {
  if (block.kind === 'sealed-thinking') return sealed + block.data.toWellFormed()
  return block.signature === undefined ? undefined : signed + block.signature
}

/** undefined if it is not ours: a provider's own, or damaged. */
export function readEncrypted(encrypted: string, text: string): ThinkingBlock | SealedThinkingBlock | undefined {
  if (encrypted.startsWith(signed)) return { kind: 'thinking', text, signature: encrypted.slice(signed.length) }
  if (encrypted.startsWith(sealed)) return { kind: 'sealed-thinking', data: encrypted.slice(sealed.length) }
  return undefined
}

export function isOwnContent(encrypted: string): boolean {
  return encrypted.startsWith(signed) || encrypted.startsWith(sealed)
}
