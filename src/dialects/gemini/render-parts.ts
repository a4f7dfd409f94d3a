// Content blocks as parts, the same for every position a block can stand in. The media type is what the bytes say it is,
// and one that the provider does not read is refused before anything is sent.

import type { DocumentBlock, ImageBlock, MediaSource, RawJson, TextBlock } from '../canonical/conversation.ts'
import { jsonObject, jsonString } from '../canonical/json.ts'
import { refuseAt } from '../request/fields.ts'
import { endingOf, knownMediaType, refuseMediaUrl } from '../request/media.ts'
import type { Rendering } from './rendering.ts'

/** What the provider reads (docs of 2026-11). */
const imageTypes = ['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif']
const documentTypes = /^(application\/pdf$|audio\/|video\/)/
const textTypes = /^(text\/|application\/json$)/

/** For media by address, which come without a label. */
const typeOfEnding: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  heic: 'image/heic',
  heif: 'image/heif',
  gif: 'image/gif',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
}

/** None for an empty text, which is refused. `place` names the message in a refusal. */
export function renderParts(
  block: TextBlock | ImageBlock | DocumentBlock,
  rendering: Rendering,
  place: string,
): RawJson[] {
  switch (block.kind) {
    case 'text':
      return block.text === '' ? [] : [textPart(block.text)]
    case 'image':
      return renderImage(block, rendering, place)
    case 'document':
      return renderDocument(block, rendering, place)
  }
}

export function textPart(text: string): RawJson {
  return jsonObject([['text', jsonString(text)]])
}

/** The text of a document that is nothing else, with what was said about it; undefined for any other. */
export function plainText({ source, title, context }: DocumentBlock): string | undefined {
  const text =
    source.kind === 'text'
      ? source.text
      : source.kind === 'data' && textTypes.test(typeOf(source) ?? '')
        ? Buffer.from(source.base64, 'base64').toString()
        : undefined
  return text === undefined ? undefined : [title, text, context].filter(Boolean).join('\n\n')
}

function renderImage(image: ImageBlock, rendering: Rendering, place: string): RawJson[] {
  const mediaType = typeOf(image.source)
  if (mediaType === 'application/pdf') return renderDocument({ ...image, kind: 'document' }, rendering, place)
  if (rendering.rules.images === false) refuseAt(place, 'This model does not take images.')
  refuseMediaUrl(image.source, rendering.rules, place)
  if (isFilm(image.source)) refuseAt(place, 'This is the address of a film, not of an image.')
  if (mediaType !== undefined && !imageTypes.includes(mediaType)) {
    refuseAt(place, `An image of type \`${mediaType}\` is not supported; send JPEG, PNG or WebP.`)
  }
  return [mediaPart(image.source, mediaType)]
}

function renderDocument(document: DocumentBlock, { rules }: Rendering, place: string): RawJson[] {
  const { source } = document
  const text = plainText(document)
  if (text !== undefined || source.kind === 'text') return text ? [textPart(text)] : []
  const mediaType = typeOf(source)
  if (rules.documents === false) refuseAt(place, 'This model does not take documents.')
  refuseMediaUrl(source, rules, place)
  if (mediaType !== undefined && !documentTypes.test(mediaType)) {
    refuseAt(place, `A document of type \`${mediaType}\` is not supported; send PDF or plain text.`)
  }
  // A part has no place for a title; the model reads it in front.
  const about = aboutDocument(document)
  return [...(about === '' ? [] : [textPart(about)]), mediaPart(source, mediaType)]
}

/** Its title, and what was said about it; '' = nothing. */
export function aboutDocument({ title, context }: DocumentBlock): string {
  return [title, context].filter(Boolean).join('\n\n')
}

/** The provider knows these pages and reads their film: hours of it, where a picture was held for. */
const filmHosts = /^((www|m|music)\.)?(youtube(-nocookie)?\.com|youtu\.be)$/

function isFilm(source: MediaSource): boolean {
  return source.kind === 'url' && filmHosts.test(URL.parse(source.url)?.hostname ?? '')
}

/** undefined = an address that does not tell. */
function typeOf(source: MediaSource): string | undefined {
  if (source.kind === 'url') {
    const ending = endingOf(source.url) ?? ''
    return Object.hasOwn(typeOfEnding, ending) ? typeOfEnding[ending] : undefined
  }
  return knownMediaType(source.base64, source.mediaType)
}

function mediaPart(source: MediaSource, mediaType: string | undefined): RawJson {
  const type = ['mimeType', mediaType === undefined ? undefined : jsonString(mediaType)] as const
  if (source.kind === 'url') return jsonObject([['fileData', jsonObject([type, ['fileUri', jsonString(source.url)]])]])
  return jsonObject([['inlineData', jsonObject([type, ['data', jsonString(source.base64)]])]])
}
