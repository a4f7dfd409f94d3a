// A tool result as a tool message. These hold text only: a medium leaves a stub in its place and is handed back, to be
// shown in a user message behind all tool messages of the batch.

import type { DocumentBlock, ImageBlock, RawJson, ToolResultBlock } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { documentText, renderParts, textPart } from './render-parts.ts'
import type { Rendering } from './rendering.ts'

/** The dialect has no field for a failed call. */
const errorMark = '[tool error] '

export interface RenderedResult {
  readonly message: RawJson
  /** Parts for the user message, the first one saying which call they belong to. */
  readonly media: readonly RawJson[]
}

export function renderToolResult(result: ToolResultBlock, rendering: Rendering, place: string): RenderedResult {
  const media = result.content.filter(isMedium)
  const inPlace = rendering.rules.mediaInToolResults === true
  const texts = result.content.flatMap((block) => {
    if (block.kind === 'text') return [block.text]
    if (block.kind === 'document' && block.source.kind === 'text') return [documentText(block, block.source.text)]
    return inPlace ? [] : [`[${block.kind}]`]
  })
  const text = `${result.isError ? errorMark : ''}${texts.join('\n')}`
  const marks = rendering.marks
  // An empty part is refused by hosts that pass it on to Claude; an empty string is not.
  const textual =
    text === '' ? [] : [jsonObject([['type', '"text"'], ['text', jsonString(text)], marks.memberOf(result)])]
  const endsWith = (i: number) => textual.length === 0 && inPlace && i === media.length - 1
  const shown = media.flatMap((block, i) => renderParts(block, rendering, place, endsWith(i) ? result : block))
  const inside = inPlace ? shown : []
  const isParts = inside.length > 0 || (marks.inUse && text !== '')
  const content = isParts ? jsonArray([...textual, ...inside]) : jsonString(text)
  const message = jsonObject([
    ['role', '"tool"'],
    ['tool_call_id', jsonString(result.callId)],
    ['content', content],
  ])
  const label = textPart(`From the result of tool call ${result.callId}:`)
  return { message, media: inPlace || shown.length === 0 ? [] : [label, ...shown] }
}

function isMedium(block: ToolResultBlock['content'][number]): block is ImageBlock | DocumentBlock {
  return block.kind === 'image' || (block.kind === 'document' && block.source.kind !== 'text')
}
