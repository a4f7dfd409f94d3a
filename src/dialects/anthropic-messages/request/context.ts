// Shared by the request parsers and renderers: warnings, content blocks for the wire, and cache marks.

import type { CacheMark, RawJson, UnsupportedField } from '../../canonical/conversation.ts'
import { jsonObject, jsonString } from '../../canonical/json.ts'
import { readCacheControl, spreadMark, warnMark } from '../../request/cache-marks.ts'
import type { RequestFields } from '../../request/fields.ts'
import type { WarningList } from '../../request/warnings.ts'

export interface ParseContext {
  readonly warnings: WarningList
  readonly unsupported: UnsupportedField[]
}

/** Spread into a block: `cacheMark` if the caller marked it, otherwise nothing. */
export function markOf(fields: RequestFields): { readonly cacheMark?: CacheMark } {
  return spreadMark(readCacheControl(fields))
}

// Content blocks before it is decided which cache marks are sent. Marks on blocks that are not sent move to a
// neighbour; of the rest the provider accepts four.

const marksMax = 4

export interface WireBlock {
  readonly type: string
  /** Set for a text block; blank ones are never sent. */
  readonly text?: string
  /** The members after `type`, for other blocks. */
  readonly members?: readonly (readonly [name: string, value: RawJson | undefined])[]
  /** Whether the provider accepts a mark on it. */
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

interface Marked {
  mark: CacheMark | undefined
}

/**
 * Keeps the last marks, as many as the provider accepts. `marked` is in prompt order: tools, system, messages. Removes
 * all marks if they are not `supported`. The automatic mark counts as one on the last block; returns it if it is still
 * to be sent.
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
  // The provider refuses a short life before a long one.
  const firstShort = kept.findIndex(({ mark }) => mark?.life === 'short')
  if (firstShort !== -1 && kept.slice(firstShort).some(({ mark }) => mark?.life === 'long')) {
    for (const block of kept) block.mark = { life: 'short' }
    warnings.add('cache_life_shortened', '/messages')
  }
  // One block cannot have two lives; the longer one, which it already has, covers both.
  const end = marked.at(-1)?.mark
  return end && end.life !== last.mark?.life ? undefined : last.mark
}

function dropMarks(marked: readonly Marked[], warnings: WarningList): void {
  for (const block of marked) {
    if (block.mark) warnMark(block.mark, '/messages', warnings)
    block.mark = undefined
  }
}
