// The prompt as Chat Completions messages. Each message depends only on what was said before the answer to it, so that a
// conversation that grows keeps the prefix it was sent with.

import type { RawJson, TextBlock, Turn } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { renderAssistant } from './render-assistant.ts'
import { renderParts } from './render-parts.ts'
import { renderToolResult } from './render-tool-result.ts'
import type { Rendering } from './rendering.ts'
import { renderUserContent, type SaidTurn } from './user-message.ts'

/** Stands between a tool message and a user message for hosts whose templates need something there. */
const bridge = '{"role":"assistant","content":"OK."}'

type UserTurn = Turn & { readonly role: 'user' }

export function renderMessages(
  system: readonly TextBlock[],
  turns: readonly Turn[],
  rendering: Rendering,
): readonly RawJson[] {
  const messages = new MessageList(rendering)
  messages.pushSystem(system)
  let at = 0
  while (at < turns.length) {
    const end = turns[at]?.role === 'assistant' ? assistantEnd(turns, at) : othersEnd(turns, at)
    const run = turns.slice(at, end)
    if (run[0]?.role === 'assistant') messages.pushAssistant(run)
    else messages.pushOthers(run)
    at = end
  }
  return messages.end()
}

/** Calls must be answered by the very next messages: an assistant turn that follows calls is one message with them. */
function assistantEnd(turns: readonly Turn[], from: number): number {
  let end = from + 1
  while (turns[end]?.role === 'assistant' && turns[end - 1]?.blocks.some(({ kind }) => kind === 'tool-call')) end++
  return end
}

function othersEnd(turns: readonly Turn[], from: number): number {
  const end = turns.findIndex((turn, i) => i > from && turn.role === 'assistant')
  return end === -1 ? turns.length : end
}

class MessageList {
  readonly #list: RawJson[] = []
  #said: SaidTurn[] = []
  #lastSpoken: string | undefined

  constructor(private readonly rendering: Rendering) {}

  end(): readonly RawJson[] {
    this.#pushSaid()
    return this.#list
  }

  pushAssistant(run: readonly Turn[]): void {
    const blocks = run.flatMap((turn) => (turn.role === 'assistant' ? turn.blocks : []))
    const message = renderAssistant(blocks, this.rendering, placeOf(run[0]))
    if (message !== undefined) this.#push('assistant', message)
  }

  /** Everything up to the next assistant turn: all tool messages first, then what else was said, in order. */
  pushOthers(run: readonly Turn[]): void {
    const media: RawJson[] = []
    let lastResult: Turn | undefined
    for (const turn of run) {
      for (const block of turn.blocks) {
        if (block.kind !== 'tool-result') continue
        const rendered = renderToolResult(block, this.rendering, placeOf(turn))
        this.#push('tool', rendered.message)
        media.push(...rendered.media)
        lastResult = turn
      }
    }
    for (const turn of run) {
      if (turn.role === 'system') this.#pushSystemTurn(turn)
      // The media go with the turn of the last result, which later turns cannot change any more.
      else if (turn.role === 'user') this.#sayUser(turn, turn === lastResult ? media : [])
    }
  }

  #sayUser({ blocks, place = '/messages' }: UserTurn, media: readonly RawJson[]): void {
    const said = blocks.flatMap((block) => (block.kind === 'tool-result' ? [] : [{ block, marked: block }]))
    if (said.length > 0 || media.length > 0) this.#said.push({ media, blocks: said, place })
  }

  pushSystem(blocks: readonly TextBlock[]): void {
    const filled = blocks.filter(({ text }) => text !== '')
    if (filled.length === 0) return
    const { rules, marks } = this.rendering
    const content =
      rules.systemAsParts || marks.inUse
        ? jsonArray(filled.flatMap((block) => renderParts(block, this.rendering, '')))
        : jsonString(textOf(filled))
    this.#push('system', message(rules.systemRole ?? 'system', content))
  }

  /** Where a host may take system messages only at the front, a later one stays in its place as tagged user text. */
  #pushSystemTurn(turn: Turn & { readonly role: 'system' }): void {
    const { rules, marks, warnings } = this.rendering
    if (rules.midSystem) {
      this.pushSystem(turn.blocks)
      return
    }
    const text = textOf(turn.blocks)
    if (text === '') return
    warnings.add('system_inlined', placeOf(turn))
    const block = { kind: 'text', text: `<system>\n${text}\n</system>` } as const
    const marked = turn.blocks.findLast((each) => marks.keeps(each)) ?? block
    this.#said.push({ media: [], blocks: [{ block, marked }], place: placeOf(turn) })
  }

  #push(role: 'system' | 'assistant' | 'tool', text: RawJson): void {
    this.#pushSaid()
    if (role !== 'system') this.#lastSpoken = role
    this.#list.push(text)
  }

  #pushSaid(): void {
    if (this.#said.length === 0) return
    if (this.#lastSpoken === 'tool' && this.rendering.rules.assistantAfterTool) this.#list.push(bridge)
    this.#lastSpoken = 'user'
    this.#list.push(message('user', renderUserContent(this.#said, this.rendering)))
    this.#said = []
  }
}

function placeOf(turn: Turn | undefined): string {
  return turn?.place ?? '/messages'
}

function textOf(blocks: readonly TextBlock[]): string {
  return blocks
    .map(({ text }) => text)
    .filter((text) => text !== '')
    .join('\n\n')
}

function message(role: string, content: RawJson): RawJson {
  return jsonObject([
    ['role', jsonString(role)],
    ['content', content],
  ])
}
