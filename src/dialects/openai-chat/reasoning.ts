// Reasoning in Chat Completions, which has no standard field for it. `reasoning_details` is the most complete
// extension.
//
// ReasoningBlob collects the parts of a host's reasoning that only the host can read, so that they can travel in a
// signature of ours and go back unchanged.

import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject, jsonString, type Members, textOf } from '../canonical/json.ts'
import type { ReplyBlock } from '../canonical/reply.ts'
import { isOwnSignature, readSignature } from '../canonical/signature.ts'

/** Members of a message that may hold reasoning, the most complete first. */
export const reasoningFieldNames = ['reasoning_details', 'thinking_blocks', 'reasoning_content', 'reasoning'] as const

type Detail = Record<string, unknown>

export class ReasoningBlob {
  #details: Detail[] = []
  /** Some collected part is readable only by its host. */
  isOpaque = false

  push(details: readonly Detail[]): void {
    for (const detail of details) this.#merge(detail)
  }

  /** Returns the collected entries as JSON and resets; undefined if all are readable. */
  take(): string | undefined {
    const blob = this.isOpaque ? JSON.stringify(this.#details) : undefined
    this.#details = []
    this.isOpaque = false
    return blob
  }

  /** Texts arrive in pieces, everything else complete. */
  #merge(detail: Detail): void {
    if (textOf(detail.signature) !== '' || textOf(detail.data) !== '') this.isOpaque = true
    const at = this.#details.findLastIndex(({ type, index }) => type === detail.type && index === detail.index)
    const before = this.#details[at]
    if (!before || textOf(detail.data) !== '') {
      this.#details.push({ ...detail })
      return
    }
    const merged: Detail = { ...before }
    for (const [name, value] of Object.entries(detail)) {
      if (value === null) continue
      const grows = (name === 'text' || name === 'summary') && typeof value === 'string'
      merged[name] = grows ? textOf(before[name]) + value : value
    }
    this.#details[at] = merged
  }
}

// The position of reasoning among text and calls. A message of this dialect has one text, one refusal and then its
// calls, whatever the original order of blocks. Only the indexes in `reasoning_details` record the position of
// reasoning, and providers refuse their own reasoning in another order.

type BlockKind = ReplyBlock['kind']

/**
 * The index of each reasoning block of a reply, in order. `kinds`: the blocks of the reply, without empty texts.
 *
 * Indexes refer to the blocks of the returned message, not of the reply: there all texts are joined and precede the
 * calls. Counting each text would move the reasoning behind the calls it led to. Without joined or moved texts both are
 * the same.
 */
export function reasoningPlaces(kinds: readonly BlockKind[]): number[] {
  const said = new Set<BlockKind>()
  const saidAtAll = new Set(kinds.filter(isSaid)).size
  const places: number[] = []
  let calls = 0
  for (const kind of kinds) {
    if (kind === 'tool-call') calls += 1
    else if (isSaid(kind)) said.add(kind)
    // All text precedes a call, including text that came later.
    else places.push(places.length + (calls > 0 ? calls + saidAtAll : said.size))
  }
  return places
}

/** A block of reasoning and its index, if it has one. */
export interface PlacedReasoning<Block> {
  readonly block: Block
  readonly place: number | undefined
}

/**
 * Puts reasoning back between text and calls. Indexes that do not fit, because others count differently or a text was
 * omitted, never move reasoning after the last block: what it led to is there, and a message may not end with
 * reasoning. Reasoning without an index, or indexed from 0 without gaps, comes first.
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

// Writing `reasoning_details`: one entry per block, with the signature its issuer wants back.

/** `place` is the block's index in the reply. */
export function renderThinkingDetail(text: string, signature: string | undefined, place: number): RawJson {
  return detail(
    { type: '"reasoning.text"', text: jsonString(text), signature: jsonString(signature) },
    signature,
    place,
  )
}

export function renderSealedDetail(data: string, place: number): RawJson {
  return detail({ type: '"reasoning.encrypted"', data: jsonString(data) }, data, place)
}

/** With the format name that this extension has for the proof. */
function detail(members: Members, proof: string | undefined, place: number): RawJson {
  const own = isOwnSignature(proof ?? '') ? '"unknown"' : '"anthropic-claude-v1"'
  return jsonObject({ ...members, format: proof ? own : undefined, index: String(place) })
}

/**
 * The signature of the thinking before a call, on the call itself: clients that drop `reasoning_details` return this
 * extension of Google's (@ai-sdk/openai-compatible 3.0.90). Only for a signature with data.
 */
export function callProof(signature: string | undefined): RawJson | undefined {
  if (readSignature(signature ?? '')?.blob === undefined) return undefined
  return `{"google":${jsonObject({ thought_signature: jsonString(signature ?? '') })}}`
}
