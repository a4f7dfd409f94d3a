// Content blocks as Chat Completions parts, the same for every position a block can stand in.

import type { DocumentBlock, ImageBlock, RawJson, TextBlock, ToolResultBlock } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { refuseAt } from '../request/fields.ts'
import { isAudio, refuseMediaUrl } from '../request/media.ts'
import type { Rendering } from './rendering.ts'

export type Block = TextBlock | ImageBlock | DocumentBlock
type Members = readonly (readonly [string, RawJson | undefined])[]

/** Hosts refuse empty text. */
export function isFilled(block: Block): boolean {
  return block.kind !== 'text' || block.text !== ''
}

/** `marked`: what ends with this block and may be marked, such as the result it is the last part of. */
export function renderParts(
  block: Block,
  rendering: Rendering,
  place: string,
  marked: Block | ToolResultBlock = block,
): RawJson[] {
  const parts = partsOf(block, rendering, place)
  // A mark covers all of the block, so it stands on its last part.
  return parts.map((part, i) => jsonObject(i === parts.length - 1 ? [...part, rendering.marks.memberOf(marked)] : part))
}

function partsOf(block: Block, rendering: Rendering, place: string): Members[] {
  if (block.kind === 'text') return [textMembers(block.text)]
  if (block.kind === 'image') return [imageMembers(block, rendering, place)]
  if (block.source.kind === 'text') return [textMembers(documentText(block, block.source.text))]
  return documentMembers(block, rendering, place)
}

export function textPart(text: string): RawJson {
  return jsonObject(textMembers(text))
}

function textMembers(text: string): Members {
  return [
    ['type', '"text"'],
    ['text', jsonString(text)],
  ]
}

function imageMembers({ source }: ImageBlock, { rules }: Rendering, place: string): Members {
  if (rules.images === false) return refuseAt(place, 'This model does not take images.')
  refuseMediaUrl(source, rules, place)
  const url = source.kind === 'url' ? source.url : `data:${source.mediaType};base64,${source.base64}`
  return [
    ['type', '"image_url"'],
    ['image_url', jsonObject([['url', jsonString(url)]])],
  ]
}

function documentMembers(block: DocumentBlock, { rules }: Rendering, place: string): Members[] {
  const { source, title, context } = block
  if (source.kind === 'data' && isAudio(source)) return [soundMembers(source)]
  if (source.kind === 'url') {
    return refuseAt(place, 'This model does not take documents by URL; send the data instead.')
  }
  if (rules.documents !== true || source.kind === 'text') {
    return refuseAt(place, 'This model does not take documents; send their text instead.')
  }
  const file: Members = [
    ['filename', jsonString(title ?? 'document.pdf')],
    ['file_data', jsonString(`data:${source.mediaType};base64,${source.base64}`)],
  ]
  const part: Members = [
    ['type', '"file"'],
    ['file', jsonObject(file)],
  ]
  return context === undefined ? [part] : [part, textMembers(context)]
}

function soundMembers({ mediaType, base64 }: { readonly mediaType: string; readonly base64: string }): Members {
  const sound: Members = [
    ['data', jsonString(base64)],
    ['format', jsonString(mediaType.slice('audio/'.length))],
  ]
  return [
    ['type', '"input_audio"'],
    ['input_audio', jsonObject(sound)],
  ]
}

/** A plain-text document as prompt text: title, text, and what was said about it. */
export function documentText({ title, context }: DocumentBlock, text: string): string {
  return [title, text, context].filter((line) => line !== undefined).join('\n\n')
}
