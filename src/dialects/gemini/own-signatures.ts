// Reasoning of other models inside `thoughtSignature`, on its way to a caller of this dialect and back. Its clients
// return that member with the text or the call that it came with, and drop the thoughts themselves.

import type { SealedThinkingBlock, ThinkingBlock } from '../canonical/conversation.ts'
import { isRecord, parseJson, textOf } from '../canonical/json.ts'

type Reasoning = ThinkingBlock | SealedThinkingBlock

const prefix = 'tgs1'
/** How every one of them starts. */
export const ownSignatureStart = 'dGdzMV'

/** In base64, because clients treat the member as bytes. */
export function writeThoughts(blocks: readonly Reasoning[]): string {
  const written = blocks.map((block) =>
    block.kind === 'thinking' ? { text: block.text, signature: block.signature } : { data: block.data },
  )
  return Buffer.from(prefix + JSON.stringify(written)).toString('base64')
}

/** undefined if it is not ours. Python's client writes the other alphabet, which is read too. */
export function readThoughts(signature: string): readonly Reasoning[] | undefined {
  const text = Buffer.from(signature, 'base64').toString()
  const list = text.startsWith(prefix) ? parseJson(text.slice(prefix.length)) : undefined
  if (!Array.isArray(list)) return undefined
  return list.filter(isRecord).map((each): Reasoning => {
    if (typeof each.data === 'string') return { kind: 'sealed-thinking', data: each.data }
    const signed = typeof each.signature === 'string' ? each.signature : undefined
    return { kind: 'thinking', text: textOf(each.text), signature: signed }
  })
}
