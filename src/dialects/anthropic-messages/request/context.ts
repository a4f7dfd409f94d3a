// Shared by the request parsers and renderers: content blocks for the wire, and cache marks.

import type { CacheMark, RawJson } from '../../canonical/conversation.ts'
import { jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import { type Marked, readCacheControl, writeCacheControl } from '../../request/cache-marks.ts'
import type { RequestFields } from '../../request/fields.ts'

/** Spread into a block. */
export function markOf(fields: RequestFields): { readonly cacheMark?: CacheMark } {
  const cacheMark = readCacheControl(fields)
  return cacheMark ? { cacheMark } : {}
}

// Content blocks before it is decided which cache marks are sent. Marks on blocks that are not sent move to a
// neighbour; of the rest the provider accepts four.

export interface WireBlock extends Marked {
  readonly type: string
  /** Set for a text block; blank ones are never sent. */
  readonly text?: string
  /** The members after `type`, for other blocks. */
  readonly members?: Members
  /** Whether the provider accepts a mark on it. */
  readonly markable: boolean
}

export function textBlock(text: string, mark?: CacheMark): WireBlock {
  return { type: 'text', text, markable: true, mark }
}

export function isBlank({ text }: WireBlock): boolean {
  return text !== undefined && text.trim() === ''
}

export function writeBlock({ type, text, members, mark }: WireBlock): RawJson {
  return jsonObject({
    type: jsonString(type),
    text: jsonString(text),
    ...members,
    cache_control: writeCacheControl(mark),
  })
}

/** The mark of a block that cannot carry it moves to the nearest block before it, otherwise after it. */
export function moveMarks(blocks: readonly WireBlock[]): void {
  let before: WireBlock | undefined
  let waiting: CacheMark | undefined
  for (const block of blocks) {
    if (block.markable && !isBlank(block)) {
      block.mark ??= waiting
      waiting = undefined
      before = block
    } else if (block.mark) {
      if (before) before.mark ??= block.mark
      else waiting = block.mark
      block.mark = undefined
    }
  }
}
