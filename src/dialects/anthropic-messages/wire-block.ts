// A content block on its way out, before it is known which cache marks are sent. Marks on blocks that are not sent move
// to a neighbour; of the rest the provider takes four.

import type { CacheMark, RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { warnMark } from '../request/cache-marks.ts'
import type { WarningList } from '../request/warnings.ts'

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

interface Marked {
  mark: CacheMark | undefined
}

/**
 * Leaves the latest marks the provider takes. `marked` is in the order of the prompt: tools, system, messages. Without
 * `supported` none is left. The automatic mark counts as one more, on the last block; what is left of it is returned.
 */
export function limitMarks(
  marked: readonly Marked[],
  { automatic, supported }: { automatic: CacheMark | undefined; supported: boolean },
  warnings: WarningList,
): CacheMark | undefined {
  if (!supported) {
    dropMarks(marked, warnings)
    return undefined
  }
  const last: Marked = { mark: automatic }
  const marks = [...marked, last].filter(({ mark }) => mark !== undefined)
  dropMarks(marks.slice(0, -marksMax), warnings)
  const kept = marks.slice(-marksMax)
  // A short life before a long one is refused by the provider.
  const firstShort = kept.findIndex(({ mark }) => mark?.life === 'short')
  if (firstShort !== -1 && kept.slice(firstShort).some(({ mark }) => mark?.life === 'long')) {
    for (const block of kept) block.mark = { life: 'short' }
    warnings.add('cache_life_shortened', '/messages')
  }
  // One block cannot have two lives, and the longer one, which it has already, does for both.
  const end = marked.at(-1)?.mark
  return end && end.life !== last.mark?.life ? undefined : last.mark
}

function dropMarks(marked: readonly Marked[], warnings: WarningList): void {
  for (const block of marked) {
    if (block.mark) warnMark(block.mark, '/messages', warnings)
    block.mark = undefined
  }
}
