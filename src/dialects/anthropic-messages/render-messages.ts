// Turns as messages, under the rules of the provider: tool results first in the one user message behind their calls,
// system messages only behind a user message, nothing blank. A turn's rendering depends on the turns before it and on
// those it is joined with, so a conversation that grows keeps its beginning.

import type { Conversation, RawJson, Turn } from '../canonical/conversation.ts'
import { jsonArray, jsonObject } from '../canonical/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { refuseAt, refusePrefill } from '../request/fields.ts'
import type { WarningList } from '../request/warnings.ts'
import { renderTurn, type TurnContext } from './render-turn.ts'
import { isBlank, moveMarks, textBlock, type WireBlock, writeBlock } from './wire-block.ts'

export interface WireMessage {
  readonly role: 'user' | 'assistant' | 'system'
  readonly blocks: WireBlock[]
}

export interface HistoryContext extends TurnContext {
  /** There is system text in front. */
  readonly isInstructed: boolean
}

export function renderMessages(turns: readonly Turn[], context: HistoryContext): WireMessage[] {
  const rendered = turns.map((turn) => ({ turn, blocks: renderTurn(turn, context) }))
  moveMarks(rendered.flatMap(({ blocks }) => blocks))
  const messages = new MessageList(context.rules, context.warnings)
  for (const { turn, blocks } of rendered) {
    const sent = blocks.filter((block) => !isBlank(block))
    if (sent.length > 0) messages.add(turn, sent)
  }
  const list = messages.end()
  if (list.length === 0 && !context.isInstructed) {
    refuseAt('/messages', '`messages` hold no content: at least one user message is needed.')
  }
  if (list.length > 0 && list[0]?.role !== 'assistant') return list
  context.warnings.add('opening_added', turns[0]?.place ?? '/messages')
  return [{ role: 'user', blocks: [textBlock(openingText)] }, ...list]
}

/**
 * The first message must be the user's. Chats that begin with a greeting of the assistant have none there, and neither do
 * those that are to begin with one, of which there is only system text yet.
 */
const openingText = '(The conversation begins with the assistant.)'

/** Joins turns of one role, and holds system messages back until they may stand. */
class MessageList {
  readonly #list: WireMessage[] = []
  readonly #held: { readonly turn: Turn; readonly blocks: readonly WireBlock[] }[] = []

  constructor(
    private readonly rules: TargetRules,
    private readonly warnings: WarningList,
  ) {}

  add(turn: Turn, blocks: readonly WireBlock[]): void {
    if (turn.role === 'system') {
      if (this.rules.midSystem) this.#held.push({ turn, blocks })
      else this.#inline(turn, blocks)
      return
    }
    if (turn.role === 'assistant') this.#place()
    this.#join(turn.role, blocks)
  }

  end(): WireMessage[] {
    this.#place()
    return this.#list.map(({ role, blocks }) => {
      if (role !== 'user') return { role, blocks }
      const results = blocks.filter(({ type }) => type === 'tool_result')
      return { role, blocks: results.concat(blocks.filter(({ type }) => type !== 'tool_result')) }
    })
  }

  /** An answer, or the end, is next: held system messages stand behind the user's, and become its text without one. */
  #place(): void {
    const legal = this.#list.at(-1)?.role === 'user'
    for (const { turn, blocks } of this.#held.splice(0)) {
      if (legal) this.#join('system', blocks)
      else this.#inline(turn, blocks)
    }
  }

  #inline(turn: Turn, blocks: readonly WireBlock[]): void {
    this.warnings.add('system_inlined', turn.place ?? '/messages')
    this.#join(
      'user',
      blocks.map(({ text, mark }) => textBlock(`<system_message>\n${text}\n</system_message>`, mark)),
    )
  }

  #join(role: WireMessage['role'], blocks: readonly WireBlock[]): void {
    const last = this.#list.at(-1)
    if (last?.role === role) for (const block of blocks) last.blocks.push(block)
    else this.#list.push({ role, blocks: [...blocks] })
  }
}

/** A conversation that ends with the assistant asks the model to go on from there. */
export function judgePrefill(messages: readonly WireMessage[], rules: TargetRules, conversation: Conversation): void {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return
  if (rules.prefill === false || conversation.outputFormat?.kind === 'json-schema') {
    refusePrefill(conversation.turns.at(-1))
  }
  const block = last.blocks.at(-1)
  if (block?.text !== undefined) last.blocks.splice(-1, 1, textBlock(block.text.trimEnd(), block.mark))
}

export function writeMessages(messages: readonly WireMessage[]): RawJson {
  return jsonArray(
    messages.map(({ role, blocks }) =>
      jsonObject([
        ['role', `"${role}"`],
        ['content', jsonArray(blocks.map(writeBlock))],
      ]),
    ),
  )
}
