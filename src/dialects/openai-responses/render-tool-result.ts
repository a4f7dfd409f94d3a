// A tool result as the output of its call: a string where it is all text, a list of parts where it holds media. For
// hosts that take text only, a medium leaves a stub in its place and is handed back, to be shown in a user message.

import type { RawJson, ToolResultBlock } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { type ContentBlock, documentText, isFilled, renderParts, textPart } from './render-parts.ts'
import type { Rendering } from './rendering.ts'

/** The dialect has no field for a failed call. */
const errorMark = '[tool error] '

export interface RenderedResult {
  readonly item: RawJson
  /** Parts for the user message, the first one saying which call they belong to. */
  readonly media: readonly RawJson[]
}

export function renderToolResult(result: ToolResultBlock, rendering: Rendering, place: string): RenderedResult {
  const { rules, marks, customCalls } = rendering
  const media = result.content.filter((block) => textIn(block) === undefined)
  const isHoisted = media.length > 0 && rules.mediaInToolResults === false
  const isParts = !isHoisted && (media.length > 0 || marks.inUse)
  const parts = isParts
    ? partsOf(result, rendering, place)
    : isHoisted && marks.inUse
      ? [stubPart(result, rendering)]
      : []
  const item = jsonObject([
    ['type', customCalls.has(result.callId) ? '"custom_tool_call_output"' : '"function_call_output"'],
    ['call_id', jsonString(result.callId)],
    ['output', parts.length > 0 ? jsonArray(parts) : jsonString(stringOf(result))],
  ])
  if (!isHoisted) return { item, media: [] }
  const label = textPart(`From the result of tool call ${result.callId}:`)
  return { item, media: [label, ...media.flatMap((block) => renderParts(block, rendering, place))] }
}

function partsOf(result: ToolResultBlock, rendering: Rendering, place: string): RawJson[] {
  const filled = result.content.filter(isFilled)
  const failed = result.isError && filled[0]?.kind !== 'text' ? [textPart(errorMark.trim())] : []
  const parts = filled.flatMap((block, i) => {
    const saysFailed = result.isError && i === 0 && block.kind === 'text'
    const shown = saysFailed ? { ...block, text: errorMark + block.text } : block
    return renderParts(shown, rendering, place, i === filled.length - 1 ? [block, result] : [block])
  })
  return [...failed, ...parts]
}

/** The text of a result whose media stand elsewhere, with the marks of all of it. */
function stubPart(result: ToolResultBlock, { marks }: Rendering): RawJson {
  const texts = result.content.filter((block) => textIn(block) !== undefined)
  return jsonObject([
    ['type', '"input_text"'],
    ['text', jsonString(stringOf(result))],
    marks.memberOf(result, ...texts),
  ])
}

function stringOf({ isError, content }: ToolResultBlock): string {
  return (isError ? errorMark : '') + content.map((block) => textIn(block) ?? `[${block.kind}]`).join('\n')
}

/** undefined = a medium. */
function textIn(block: ContentBlock): string | undefined {
  if (block.kind === 'text') return block.text
  return block.kind === 'document' && block.source.kind === 'text' ? documentText(block, block.source.text) : undefined
}
