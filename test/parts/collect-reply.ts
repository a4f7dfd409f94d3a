// The blocks of a reply with the content of their deltas, for expectations.

import type { ReplyBlock, ReplyEvent, Stop } from '../../src/dialects/canonical/reply.ts'
import { assert } from '../../src/kernel/failure.ts'
import type { Usage } from '../../src/kernel/usage.ts'

type Collected<Block> = Block extends { readonly kind: 'tool-call' }
  ? Block & { readonly arguments: string }
  : Block extends { readonly kind: 'thinking' }
    ? Block & { readonly text: string; readonly signature: string | undefined }
    : Block extends { readonly kind: 'sealed-thinking' }
      ? Block
      : Block & { readonly text: string }

/** A block with the content of its deltas. */
export type CollectedBlock = Collected<ReplyBlock>

export interface CollectedReply {
  readonly id: string | undefined
  readonly blocks: readonly CollectedBlock[]
  readonly stop: Stop
  readonly usage: Usage | undefined
}

/** The events must form a complete reply, ending with reply-end. */
export function collectReply(events: readonly ReplyEvent[]): CollectedReply {
  let id: string | undefined
  const blocks: CollectedBlock[] = []
  let block: ReplyBlock = { kind: 'text' }
  let text = ''
  let signature: string | undefined
  for (const event of events) {
    switch (event.type) {
      case 'reply-start':
        id ??= event.id
        break
      case 'block-start':
        block = event.block
        text = ''
        signature = undefined
        break
      case 'text-delta':
      case 'thinking-delta':
      case 'arguments-delta':
        text += event.text
        break
      case 'signature':
        signature = event.signature
        break
      case 'block-end':
        blocks.push(collected(block, text, signature))
    }
  }
  const end = events.at(-1)
  assert(end?.type === 'reply-end', 'a complete reply')
  return { id, blocks, stop: end.stop, usage: end.usage }
}

function collected(block: ReplyBlock, text: string, signature: string | undefined): CollectedBlock {
  switch (block.kind) {
    case 'tool-call':
      return { ...block, arguments: text.toWellFormed() }
    case 'thinking':
      return { ...block, text: text.toWellFormed(), signature }
    case 'sealed-thinking':
      return block
    default:
      return { ...block, text: text.toWellFormed() }
  }
}
