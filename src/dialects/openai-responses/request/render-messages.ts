// Renders turns as input items. Each item depends only on its own turn and those before it, so a growing conversation
// keeps its prefix.

import type {
  AssistantBlock,
  RawJson,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../../canonical/json.ts'
import {
  argumentText,
  type ContentBlock,
  errorMark,
  isFilled,
  joinedText,
  mediaOutside,
  message,
  renderParts,
  textIn,
  writeTurns,
} from '../../request/openai.ts'
import { type Rendering, reasons } from './context.ts'

export function renderMessages(turns: readonly Turn[], rendering: Rendering): RawJson[] {
  const items: RawJson[] = []
  writeTurns(
    turns,
    {
      assistant: (blocks) => void items.push(...renderAssistant(blocks, rendering)),
      result(result, place) {
        const { item, media } = renderToolResult(result, rendering, place)
        items.push(item)
        return media
      },
      user(blocks, media, place) {
        const said = blocks.filter(isFilled)
        if (media.length > 0) {
          const parts = said.flatMap((block) => renderParts(block, rendering, place))
          items.push(message('user', jsonArray([...media, ...parts])))
        } else if (said.length > 0) items.push(message('user', renderContent(said, rendering, place)))
      },
      system: (blocks) => void items.push(...renderSystem(blocks, rendering)),
      inlinedSystem: (text) => void items.push(message('user', jsonString(text))),
    },
    rendering,
  )
  return items
}

/** System text as an input message; none if it is empty. */
export function renderSystem(blocks: readonly TextBlock[], rendering: Rendering): RawJson[] {
  const text = joinedText(blocks)
  if (text === '') return []
  const { rules, marks } = rendering
  const content = marks.inUse ? renderContent(blocks.filter(isFilled), rendering, '') : jsonString(text)
  return [message(rules.systemRole ?? 'developer', content)]
}

// Assistant turns: text, calls and reasoning as items, in order. Reasoning is sent back encrypted or not at all, never
// as visible text.

/** Expects the blocks that restoreThinking returned. */
function renderAssistant(blocks: readonly AssistantBlock[], rendering: Rendering): RawJson[] {
  // The provider's label cannot be returned by callers, so derive it from the turn's content. Older models ignore it;
  // hosts of other models may not know the member.
  const label = blocks.some(({ kind }) => kind === 'tool-call') ? '"commentary"' : '"final_answer"'
  const phase = reasons(rendering.rules) ? label : undefined
  const items: RawJson[] = []
  let said = ''
  const flush = () => {
    if (said !== '') items.push(jsonObject({ role: '"assistant"', content: jsonString(said), phase }))
    said = ''
  }
  for (const block of blocks) {
    // The dialect has refusals only in messages with a provider id.
    if (block.kind === 'text' || block.kind === 'refusal') {
      said += block.text
      continue
    }
    flush()
    if (block.kind === 'tool-call') items.push(renderCall(block, rendering))
    else if (block.kind === 'thinking' && block.signature !== undefined) items.push(block.signature)
  }
  flush()
  return items
}

function renderCall(call: ToolCallBlock, { names, customCalls }: Rendering): RawJson {
  const isCustom = customCalls.has(call.id)
  return jsonObject({
    type: isCustom ? '"custom_tool_call"' : '"function_call"',
    call_id: jsonString(call.id),
    name: jsonString(names.sent(call.name)),
    [isCustom ? 'input' : 'arguments']: jsonString(isCustom ? call.arguments : argumentText(call)),
  })
}

// Tool results as call outputs: a string if it is all text, a list of parts if it contains media. For hosts that accept
// only text, media are replaced by a stub and returned, to be placed in a user message.

interface RenderedResult {
  readonly item: RawJson
  /** Parts for the user message, starting with the call they belong to. */
  readonly media: readonly RawJson[]
}

function renderToolResult(result: ToolResultBlock, rendering: Rendering, place: string): RenderedResult {
  const { rules, marks, customCalls } = rendering
  const media = result.content.filter((block) => textIn(block) === undefined)
  const isHoisted = media.length > 0 && rules.mediaInToolResults === false
  const asParts = isHoisted ? stubParts : resultParts
  const parts = marks.inUse || (media.length > 0 && !isHoisted) ? asParts(result, rendering, place) : []
  const item = jsonObject({
    type: customCalls.has(result.callId) ? '"custom_tool_call_output"' : '"function_call_output"',
    call_id: jsonString(result.callId),
    output: parts.length > 0 ? jsonArray(parts) : jsonString(stringOf(result)),
  })
  return { item, media: isHoisted ? mediaOutside(media, result.callId, rendering, place) : [] }
}

function resultParts(result: ToolResultBlock, rendering: Rendering, place: string): RawJson[] {
  const filled = result.content.filter(isFilled)
  const failed =
    result.isError && filled[0]?.kind !== 'text'
      ? renderParts({ kind: 'text', text: errorMark.trim() }, rendering, place)
      : []
  const parts = filled.flatMap((block, i) => {
    const saysFailed = result.isError && i === 0 && block.kind === 'text'
    const shown = saysFailed ? { ...block, text: errorMark + block.text } : block
    return renderParts(shown, rendering, place, i === filled.length - 1 ? [block, result] : [block])
  })
  return [...failed, ...parts]
}

/** The text of a result whose media are placed elsewhere, with all its marks. */
function stubParts(result: ToolResultBlock, rendering: Rendering, place: string): RawJson[] {
  const texts = result.content.filter((block) => textIn(block) !== undefined)
  return renderParts({ kind: 'text', text: stringOf(result) }, rendering, place, [result, ...texts])
}

function stringOf({ isError, content }: ToolResultBlock): string {
  return (isError ? errorMark : '') + content.map((block) => textIn(block) ?? `[${block.kind}]`).join('\n')
}

/** A string for a single unmarked text, which every host accepts; parts otherwise. */
function renderContent(blocks: readonly ContentBlock[], rendering: Rendering, place: string): RawJson {
  const [only, ...more] = blocks
  if (only?.kind === 'text' && more.length === 0 && !rendering.marks.inUse) return jsonString(only.text)
  return jsonArray(blocks.flatMap((block) => renderParts(block, rendering, place)))
}
