// Turns as contents: user and model in turns, the responses to a batch of calls in one content and in the order of the
// calls. A content depends only on its own turns and those before it, so that a conversation that grows keeps its
// beginning.

import type { RawJson, ToolResultBlock, Turn } from '../canonical/conversation.ts'
import { jsonArray, jsonObject } from '../canonical/json.ts'
import { renderAssistant } from './render-assistant.ts'
import { renderParts, textPart } from './render-parts.ts'
import { renderToolResult } from './render-tool-result.ts'
import { type Rendering, takesMediaInResults } from './rendering.ts'

export function renderMessages(turns: readonly Turn[], rendering: Rendering): readonly RawJson[] {
  const contents = new ContentList(rendering)
  let at = 0
  while (at < turns.length) {
    const isAssistant = turns[at]?.role === 'assistant'
    const next = turns.findIndex(({ role }, i) => i > at && (role === 'assistant') !== isAssistant)
    const end = next === -1 ? turns.length : next
    if (isAssistant) contents.pushAssistant(turns.slice(at, end))
    else contents.pushOthers(turns.slice(at, end))
    at = end
  }
  return contents.written()
}

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: RawJson[]
}

class ContentList {
  readonly #list: Content[] = []
  /** Ids of calls, which are unique by now, in their order; each with the name it is sent under. */
  readonly #calls = new Map<string, { readonly place: number; readonly name: string }>()

  constructor(private readonly rendering: Rendering) {}

  pushAssistant(run: readonly Turn[]): void {
    const blocks = run.flatMap((turn) => (turn.role === 'assistant' ? turn.blocks : []))
    for (const block of blocks) {
      if (block.kind !== 'tool-call') continue
      this.#calls.set(block.id, { place: this.#calls.size, name: this.rendering.names.sent(block.name) })
    }
    this.#join('model', renderAssistant(blocks, this.rendering, placeOf(run[0])))
  }

  /** Everything up to the next assistant turn: all responses first, then what else was said, in order. */
  pushOthers(run: readonly Turn[]): void {
    const results = run.flatMap((turn) =>
      turn.blocks.flatMap((block) => (block.kind === 'tool-result' ? [{ block, place: placeOf(turn) }] : [])),
    )
    const inOrder = results.toSorted((one, other) => this.#placeOf(one.block) - this.#placeOf(other.block))
    const responses = inOrder.map(({ block, place }) =>
      renderToolResult(block, this.#calls.get(block.callId)?.name ?? '', this.rendering, place),
    )
    this.#join(
      'user',
      responses.map(({ response }) => response),
    )
    const media = responses.flatMap((rendered) => rendered.media)
    const rest = run.flatMap((turn) => this.#renderTurn(turn))
    // Models that take no media inside a response count those beside it as one more response.
    const isApart = media.length > 0 && !takesMediaInResults(this.rendering.rules)
    if (isApart) this.#list.push({ role: 'user', parts: [...media, ...rest] })
    else this.#join('user', [...media, ...rest])
  }

  #renderTurn(turn: Turn): readonly RawJson[] {
    if (turn.role === 'assistant') return []
    if (turn.role === 'user') {
      return turn.blocks.flatMap((block) =>
        block.kind === 'tool-result' ? [] : renderParts(block, this.rendering, placeOf(turn)),
      )
    }
    // There is one system instruction, in front of everything. A later one stays in its place, as tagged text.
    const texts = turn.blocks.flatMap(({ text }) => (text === '' ? [] : [text]))
    if (texts.length === 0) return []
    this.rendering.warnings.add('system_inlined', placeOf(turn))
    return [textPart(`<system>\n${texts.join('\n\n')}\n</system>`)]
  }

  #placeOf(result: ToolResultBlock): number {
    return this.#calls.get(result.callId)?.place ?? 0
  }

  #join(role: Content['role'], parts: readonly RawJson[]): void {
    if (parts.length === 0) return
    const last = this.#list.at(-1)
    if (last?.role === role) for (const part of parts) last.parts.push(part)
    else this.#list.push({ role, parts: [...parts] })
  }

  written(): readonly RawJson[] {
    return this.#list.map(({ role, parts }) =>
      jsonObject([
        ['role', `"${role}"`],
        ['parts', jsonArray(parts)],
      ]),
    )
  }
}

function placeOf(turn: Turn | undefined): string {
  return turn?.place ?? '/messages'
}
