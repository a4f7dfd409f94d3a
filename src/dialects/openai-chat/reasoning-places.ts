// Where reasoning stands among what was said and called. A message of this dialect has one text, one refusal and then its
// calls, whatever the order of the blocks it was made from; only the numbers in `reasoning_details` tell how the reasoning
// lay between them, and providers refuse their own reasoning in another order.

import type { ReplyBlock } from '../canonical/reply.ts'

type BlockKind = ReplyBlock['kind']

/**
 * The number for each reasoning block of a reply, in their order. `kinds`: its blocks, without texts that say nothing.
 *
 * Numbers are places among the blocks that the message has when it comes back, not among those of the reply: several
 * texts have become one by then, and it stands before all calls. Counting each of them would push the reasoning behind
 * the calls it led to. Where no text was joined or moved both are the same.
 */
export function reasoningPlaces(kinds: readonly BlockKind[]): number[] {
  const said = new Set<BlockKind>()
  const saidAtAll = new Set(kinds.filter(isSaid)).size
  const places: number[] = []
  let calls = 0
  for (const kind of kinds) {
    if (kind === 'tool-call') calls += 1
    else if (isSaid(kind)) said.add(kind)
    // Behind a call stands everything that was said, also what was said later.
    else places.push(places.length + (calls > 0 ? calls + saidAtAll : said.size))
  }
  return places
}

/** One block of reasoning, and its number; undefined where it has none. */
export interface PlacedReasoning<Block> {
  readonly block: Block
  readonly place: number | undefined
}

/**
 * Puts reasoning back between what was said and called. Numbers that do not fit, since others count differently or a
 * text has been left out, never bring reasoning behind the last block: what it led to is there, and nothing may end
 * with reasoning. What has no number, or is numbered from 0 without gaps, comes first.
 */
export function placeReasoning<Reasoning, Block>(
  reasoning: readonly PlacedReasoning<Reasoning>[],
  blocks: readonly Block[],
): (Reasoning | Block)[] {
  const placed = reasoning.map(({ block, place }, i) => ({ block, place: place ?? i }))
  const list: (Reasoning | Block)[] = []
  let next = 0
  for (const { block, place } of placed.toSorted((one, other) => one.place - other.place)) {
    while (list.length < place && next < blocks.length - 1) list.push(blocks[next++] as Block)
    list.push(block)
  }
  return [...list, ...blocks.slice(next)]
}

function isSaid(kind: BlockKind): boolean {
  return kind === 'text' || kind === 'refusal'
}
