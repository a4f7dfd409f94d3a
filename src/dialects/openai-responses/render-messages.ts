// The prompt as input items. Each item depends only on its own turn and those before it, so that a conversation that
// grows keeps the prefix it was sent with.

import type { RawJson, TextBlock, Turn, UserBlock } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { renderAssistant } from './render-assistant.ts'
import { isFilled, renderContent, renderParts } from './render-parts.ts'
import { renderToolResult } from './render-tool-result.ts'
import type { Rendering } from './rendering.ts'

type UserTurn = Turn & { readonly role: 'user' }

export function renderMessages(turns: readonly Turn[], rendering: Rendering): RawJson[] {
  const items: RawJson[] = []
  let at = 0
  while (at < turns.length) {
    const turn = turns[at]
    if (turn?.role === 'assistant') {
      items.push(...renderAssistant(turn.blocks, rendering))
      at += 1
      continue
    }
    const next = turns.findIndex((later, i) => i > at && later.role === 'assistant')
    const end = next === -1 ? turns.length : next
    items.push(...renderOthers(turns.slice(at, end), rendering))
    at = end
  }
  return items
}

/** Everything up to the next assistant turn: all results first, then what else was said, in order. */
function renderOthers(run: readonly Turn[], rendering: Rendering): RawJson[] {
  const items: RawJson[] = []
  const media: RawJson[] = []
  let lastResult: Turn | undefined
  for (const turn of run) {
    for (const block of turn.blocks) {
      if (block.kind !== 'tool-result') continue
      const rendered = renderToolResult(block, rendering, placeOf(turn))
      items.push(rendered.item)
      media.push(...rendered.media)
      lastResult = turn
    }
  }
  for (const turn of run) {
    if (turn.role === 'system') items.push(...renderSystemTurn(turn, rendering))
    // The media go with the turn of the last result, which later turns cannot change any more.
    else if (turn.role === 'user') items.push(...renderUser(turn, turn === lastResult ? media : [], rendering))
  }
  return items
}

function renderUser(turn: UserTurn, media: readonly RawJson[], rendering: Rendering): RawJson[] {
  const said = turn.blocks.flatMap((block: UserBlock) => (block.kind === 'tool-result' ? [] : [block])).filter(isFilled)
  if (said.length === 0 && media.length === 0) return []
  const place = placeOf(turn)
  if (media.length === 0) return [message('user', renderContent(said, rendering, place))]
  return [message('user', jsonArray([...media, ...said.flatMap((block) => renderParts(block, rendering, place))]))]
}

/** System text as a message of the input; none if there is no text. */
export function renderSystem(blocks: readonly TextBlock[], rendering: Rendering): RawJson[] {
  const text = joinedText(blocks)
  if (text === '') return []
  const { rules, marks } = rendering
  const content = marks.inUse ? renderContent(blocks.filter(isFilled), rendering, '') : jsonString(text)
  return [message(rules.systemRole ?? 'developer', content)]
}

/** Where a host takes system messages only at the front, a later one stays in its place as tagged user text. */
function renderSystemTurn(turn: Turn & { readonly role: 'system' }, rendering: Rendering): RawJson[] {
  if (rendering.rules.midSystem !== false) return renderSystem(turn.blocks, rendering)
  const text = joinedText(turn.blocks)
  if (text === '') return []
  rendering.warnings.add('system_inlined', placeOf(turn))
  return [message('user', jsonString(`<system>\n${text}\n</system>`))]
}

export function joinedText(blocks: readonly TextBlock[]): string {
  return blocks
    .map(({ text }) => text)
    .filter((text) => text !== '')
    .join('\n\n')
}

function placeOf({ place }: Turn): string {
  return place ?? '/messages'
}

function message(role: string, content: RawJson): RawJson {
  return jsonObject([
    ['role', jsonString(role)],
    ['content', content],
  ])
}
