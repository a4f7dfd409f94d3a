// What is said to the model between two messages of anybody else: one user message, since many templates refuse two in a
// row, and the model is told the same by both.

import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonString } from '../canonical/json.ts'
import { type Block, isFilled, renderParts } from './render-parts.ts'
import type { Rendering } from './rendering.ts'

/** One turn's share of the message. */
export interface SaidTurn {
  /** Parts that come before the blocks. */
  readonly media: readonly RawJson[]
  readonly blocks: readonly SaidBlock[]
  readonly place: string
}

export interface SaidBlock {
  readonly block: Block
  /** Whose mark it carries. */
  readonly marked: Block
}

const blankLine = '\n\n'

/**
 * A string where each turn is one unmarked text, since every host takes that; parts otherwise. A later turn begins behind
 * a blank line in both: templates write parts one behind the other with nothing between.
 */
export function renderUserContent(turns: readonly SaidTurn[], rendering: Rendering): RawJson {
  const said = turns
    .map((turn) => ({ ...turn, blocks: turn.blocks.filter(({ block }) => isFilled(block)) }))
    .filter(({ media, blocks }) => media.length + blocks.length > 0)
  const texts = said.flatMap(plainText)
  if (texts.length === said.length && !rendering.marks.inUse) return jsonString(texts.join(blankLine))
  const parts = said.flatMap((turn, i) => renderTurn(i === 0 ? turn : apart(turn), rendering))
  return parts.length === 0 ? '""' : jsonArray(parts)
}

function plainText({ media, blocks }: SaidTurn): string[] {
  const [only] = blocks
  return media.length === 0 && blocks.length === 1 && only?.block.kind === 'text' ? [only.block.text] : []
}

function renderTurn({ media, blocks, place }: SaidTurn, rendering: Rendering): RawJson[] {
  return [...media, ...blocks.flatMap(({ block, marked }) => renderParts(block, rendering, place, marked))]
}

function apart(turn: SaidTurn): SaidTurn {
  const [first, ...others] = turn.blocks
  if (turn.media.length > 0 || first?.block.kind !== 'text') return turn
  const block = { ...first.block, text: blankLine + first.block.text }
  return { ...turn, blocks: [{ ...first, block }, ...others] }
}
