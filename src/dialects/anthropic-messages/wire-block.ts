// A content block on its way out, before it is known which cache marks are sent. Marks on blocks that are not sent move
// to a neighbour; of the rest the provider takes four.

import type { CacheMark, RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../request/json-text.ts'
import type { WarningList } from '../request/warning-list.ts'

const marksMax = 4

export interface WireBlock {
  readonly type: string
  /** Of a text block; blank ones are never sent. */
  readonly text?: string
  /** Everything behind `type`, of other blocks. */
  readonly members?: readonly (readonly [name: string, value: RawJson | undefined])[]
  /** Whether the provider takes a mark on it. */
  readonly markable: boolean
  mark: CacheMark | undefined
}

export function textBlock(text: string, mark?: CacheMark): WireBlock {
  return { type: 'text', text, markable: true, mark }
}

export function isBlank({ text }: WireBlock): boolean {
  return text !== undefined && text.trim() === ''
}

export function writeBlock({ type, text, members, mark }: WireBlock): RawJson {
  return jsonObject([
    ['type', jsonString(type)],
    ...(text === undefined ? (members ?? []) : [['text', jsonString(text)] as const]),
    ['cache_control', writeMark(mark)],
  ])
}

export function writeMark(mark: CacheMark | undefined): RawJson | undefined {
  if (!mark) return undefined
  return mark.life === 'long' ? '{"type":"ephemeral","ttl":"1h"}' : '{"type":"ephemeral"}'
}

/** The mark of a block that cannot carry it goes to the nearest one before it, else behind it. */
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

/**
 * Leaves the latest marks the provider takes; `others` of its slots are used elsewhere. `marked` is in the order of the
 * prompt: tools, system, messages. Without `supported` none is left.
 */
export function limitMarks(
  marked: readonly { mark: CacheMark | undefined }[],
  { others, supported }: { others: number; supported: boolean },
  warnings: WarningList,
): void {
  const marks = marked.filter(({ mark }) => mark !== undefined)
  if (marks.length === 0) return
  const kept = supported ? marks.slice(-(marksMax - others)) : []
  for (const block of marks) if (!kept.includes(block)) block.mark = undefined
  if (!supported) warnings.add('cache_mark_dropped', '/messages')
  // A short life before a long one is refused by the provider.
  const firstShort = kept.findIndex(({ mark }) => mark?.life === 'short')
  if (firstShort !== -1 && kept.slice(firstShort).some(({ mark }) => mark?.life === 'long')) {
    for (const block of kept) block.mark = { life: 'short' }
    warnings.add('cache_life_shortened', '/messages')
  }
}
