// Content blocks as input parts, the same for every position a block can stand in.

import type { DocumentBlock, ImageBlock, RawJson, TextBlock, ToolResultBlock } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { refuseAt } from '../request/fields.ts'
import { refuseAudio, refuseMediaUrl } from '../request/media.ts'
import type { Rendering } from './rendering.ts'

export type ContentBlock = TextBlock | ImageBlock | DocumentBlock
type Members = readonly (readonly [string, RawJson | undefined])[]

/** A string where one unmarked text is all there is, since every host takes that; parts otherwise. */
export function renderContent(blocks: readonly ContentBlock[], rendering: Rendering, place: string): RawJson {
  const [only, ...more] = blocks
  if (only?.kind === 'text' && more.length === 0 && !rendering.marks.inUse) return jsonString(only.text)
  return jsonArray(blocks.flatMap((block) => renderParts(block, rendering, place)))
}

/** Empty text says nothing, and is refused. */
export function isFilled(block: ContentBlock): boolean {
  return block.kind !== 'text' || block.text !== ''
}

/** `ended`: what ends with this block and may be marked, such as the result it is the last part of. */
export function renderParts(
  block: ContentBlock,
  rendering: Rendering,
  place: string,
  ended: readonly (ContentBlock | ToolResultBlock)[] = [block],
): RawJson[] {
  const parts = partsOf(block, rendering, place)
  // A mark covers all of the block, so it stands on its last part.
  const mark = rendering.marks.memberOf(...ended)
  return parts.map((part, i) => jsonObject(i === parts.length - 1 ? [...part, mark] : part))
}

function partsOf(block: ContentBlock, rendering: Rendering, place: string): Members[] {
  if (block.kind === 'text') return [textMembers(block.text)]
  if (block.kind === 'image') return [imageMembers(block, rendering, place)]
  if (block.source.kind === 'text') return [textMembers(documentText(block, block.source.text))]
  return documentMembers(block, block.source, rendering, place)
}

export function textPart(text: string): RawJson {
  return jsonObject(textMembers(text))
}

function textMembers(text: string): Members {
  return [
    ['type', '"input_text"'],
    ['text', jsonString(text)],
  ]
}

function imageMembers({ source }: ImageBlock, { rules }: Rendering, place: string): Members {
  if (rules.images === false) return refuseAt(place, 'This model does not take images.')
  refuseMediaUrl(source, rules, place)
  return [
    ['type', '"input_image"'],
    ['image_url', jsonString(source.kind === 'url' ? source.url : dataUrl(source))],
    // The dialect demands it.
    ['detail', '"auto"'],
  ]
}

function documentMembers(
  { title, context }: DocumentBlock,
  source: ImageBlock['source'],
  { rules }: Rendering,
  place: string,
): Members[] {
  refuseAudio(source, place)
  if (rules.documents === false) {
    return refuseAt(place, 'This model does not take documents; send their text instead.')
  }
  refuseMediaUrl(source, rules, place)
  const type = ['type', '"input_file"'] as const
  if (source.kind === 'data') {
    const file: Members = [
      type,
      ['filename', jsonString(title ?? 'document.pdf')],
      ['file_data', jsonString(dataUrl(source))],
    ]
    return context === undefined ? [file] : [file, textMembers(context)]
  }
  // A file by address has no name of its own.
  const about = [title, context].filter((line) => line !== undefined).join('\n\n')
  const file: Members = [type, ['file_url', jsonString(source.url)]]
  return about === '' ? [file] : [file, textMembers(about)]
}

function dataUrl({ mediaType, base64 }: { readonly mediaType: string; readonly base64: string }): string {
  return `data:${mediaType};base64,${base64}`
}

/** A plain-text document as prompt text: title, text, and what was said about it. */
export function documentText({ title, context }: DocumentBlock, text: string): string {
  return [title, text, context].filter((line) => line !== undefined).join('\n\n')
}
