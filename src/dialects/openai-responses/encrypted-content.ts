// Reasoning of other dialects inside `encrypted_content`, on its way to a caller of this dialect and back: the signature
// of readable reasoning, whose text is the item's summary, or encrypted reasoning as a whole. A tag before it says that
// this gateway issued it to the caller's workspace.

import type { SealedThinkingBlock, ThinkingBlock } from '../canonical/conversation.ts'
import type { ContentTags } from '../canonical/translation.ts'

/** In every content that is ours. */
export const ownContentMark = '"tgr1.'
const signed = 'tgr1.s.'
const sealed = 'tgr1.e.'

type Written = Pick<ThinkingBlock, 'kind' | 'signature'> | SealedThinkingBlock

/** undefined for reasoning that cannot be sent back. Without tags it is written as a provider would. */
export function writeEncrypted(block: Written, tags: ContentTags | undefined): string | undefined {
  const isSealed = block.kind === 'sealed-thinking'
  const content = isSealed ? block.data.toWellFormed() : block.signature
  if (content === undefined || !tags) return content
  const form = isSealed ? sealed : signed
  return `${form}${tags.tag(form + content)}.${content}`
}

/** undefined if it is not ours: a provider's own, or damaged. `forged`: not issued to this workspace, or changed since. */
export function readEncrypted(
  encrypted: string,
  text: string,
  tags: ContentTags | undefined,
): ThinkingBlock | SealedThinkingBlock | 'forged' | undefined {
  if (!tags || !isOwnContent(encrypted)) return undefined
  const form = encrypted.slice(0, signed.length)
  const end = encrypted.indexOf('.', form.length)
  const content = encrypted.slice(end + 1)
  if (end === -1 || !tags.isValid(form + content, encrypted.slice(form.length, end))) return 'forged'
  return form === signed ? { kind: 'thinking', text, signature: content } : { kind: 'sealed-thinking', data: content }
}

export function isOwnContent(encrypted: string): boolean {
  return encrypted.startsWith(signed) || encrypted.startsWith(sealed)
}

export const forgedContent =
  '`encrypted_content` was changed, or was not issued to this workspace by this gateway. Send the reasoning items of a conversation unchanged and with a key of the same workspace, or leave them out.'
