// A tool result as a function response. Media stand inside it where the target takes them there; others are handed back,
// to be shown behind all responses of the batch.

import type { RawJson, ToolResultBlock } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { aboutDocument, plainText, renderParts, textPart } from './render-parts.ts'
import { type Rendering, takesIds, takesMediaInResults } from './rendering.ts'

export interface RenderedResult {
  readonly response: RawJson
  /** Parts for the user's side, the first one saying which call they belong to. */
  readonly media: readonly RawJson[]
}

/** `name`: that of the function called, as it was sent. */
export function renderToolResult(
  result: ToolResultBlock,
  name: string,
  rendering: Rendering,
  place: string,
): RenderedResult {
  const { rules } = rendering
  const inside: RawJson[] = []
  const outside: RawJson[] = []
  const texts = result.content.map((block) => {
    if (block.kind === 'text') return block.text
    const text = block.kind === 'document' ? plainText(block) : undefined
    if (text !== undefined) return text
    // The provider fetches nothing for a response.
    if (!takesMediaInResults(rules) || block.source.kind !== 'data') {
      outside.push(...renderParts(block, rendering, place))
      return `[${block.kind}]`
    }
    inside.push(...renderParts({ kind: block.kind, source: block.source }, rendering, place))
    return block.kind === 'document' ? aboutDocument(block) : ''
  })
  const response = jsonObject([
    ['id', takesIds(rules) ? jsonString(result.callId) : undefined],
    ['name', jsonString(name)],
    ['response', saying(texts.filter(Boolean).join('\n'), result.isError)],
    ['parts', inside.length === 0 ? undefined : jsonArray(inside)],
  ])
  const label = textPart(`From the result of tool call ${result.callId} (${name}):`)
  return {
    response: jsonObject([['functionResponse', response]]),
    media: outside.length === 0 ? [] : [label, ...outside],
  }
}

function saying(text: string, isError: boolean): RawJson {
  if (!isError) return jsonObject([['output', jsonString(text)]])
  return jsonObject([['error', jsonString(text === '' ? '[tool error]' : text)]])
}
