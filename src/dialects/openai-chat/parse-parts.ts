// Content parts of user and tool messages: text, images, files, sound. Some clients post Messages-shaped blocks here;
// those are read as well. Routed by what a medium is, not by the part it came in.

import type { DocumentBlock, ImageBlock, TextBlock } from '../canonical/conversation.ts'
import { isRecord } from '../canonical/json.ts'
import { type RequestFields, refuseAt, shownWord } from '../request/fields.ts'
import { isWebUrl, readDataUrl, readMediaUrl, sniffMediaType } from '../request/media.ts'
import { paramOf } from '../request/warnings.ts'
import { markOf, type ParseContext } from './parse-context.ts'

export type ContentBlock = TextBlock | ImageBlock | DocumentBlock

const contentTypes: ReadonlySet<string> = new Set([
  ...['text', 'input_text', 'image_url', 'file', 'image', 'document', 'input_audio'],
])
const partMembers: ReadonlySet<string> = new Set([
  ...['type', 'text', 'image_url', 'file', 'input_audio', 'source', 'title', 'context'],
  ...['cache_control', 'prompt_cache_breakpoint'],
])
/** Of the object inside a part, whichever the part is. */
const detailMembers: ReadonlySet<string> = new Set([
  ...['url', 'detail', 'file_id', 'filename', 'file_data', 'data', 'format', 'type', 'media_type'],
])

/** What is written on a part and has no place in the canonical form. */
export function warnPartMembers(part: RequestFields, { warnings }: ParseContext): void {
  if (!contentTypes.has(part.text('type'))) return
  part.warnUnknown(partMembers, warnings)
  for (const name of ['image_url', 'file', 'input_audio', 'source']) {
    if (isRecord(part.value(name))) part.optionalObject(name)?.warnUnknown(detailMembers, warnings)
  }
}

/** undefined = a type that is not content. */
export function parsePart(part: RequestFields, context: ParseContext): ContentBlock | undefined {
  warnPartMembers(part, context)
  switch (part.text('type')) {
    case 'text':
    case 'input_text':
      return parseTextPart(part, context)
    case 'image_url':
      return { ...parseImageUrl(part, context), ...markOf(part, context) }
    case 'file':
      return { ...parseFile(part), ...markOf(part, context) }
    case 'image':
    case 'document':
      return { ...parseSource(part), ...markOf(part, context) }
    case 'input_audio':
      return { ...parseSound(part), ...markOf(part, context) }
    default:
      return undefined
  }
}

export function parseTextPart(part: RequestFields, context: ParseContext): TextBlock {
  return { kind: 'text', text: part.text('text'), ...markOf(part, context) }
}

export function refusePart(part: RequestFields, role: string): never {
  const type = part.text('type')
  return part.refuse('type', `A content part of type ${shownWord(type)} is not supported in a ${role} message.`)
}

function parseImageUrl(part: RequestFields, { warnings }: ParseContext): ImageBlock | DocumentBlock {
  // A bare string is not the documented form, but what several clients send.
  if (typeof part.value('image_url') === 'string') {
    return mediumByUrl(part.text('image_url'), part.pointer('image_url'))
  }
  const image = part.optionalObject('image_url') ?? part.missing('image_url')
  if ((image.optionalText('detail') ?? 'auto') !== 'auto') warnings.add('detail_dropped', image.pointer('detail'))
  return mediumByUrl(image.text('url'), image.pointer('url'))
}

function mediumByUrl(url: string, pointer: string): ImageBlock | DocumentBlock {
  if (isWebUrl(url)) return { kind: 'image', source: readMediaUrl(url, pointer) }
  const data = readDataUrl(url)
  if (!data) return refuseAt(pointer, `\`${paramOf(pointer)}\` must be an http(s) URL or a base64 data URL.`)
  return mediumByBytes(data.base64, data.mediaType, pointer)
}

function mediumByBytes(base64: string, label: string, pointer: string): ImageBlock | DocumentBlock {
  const mediaType = sniffMediaType(base64) ?? (label === 'application/pdf' ? label : undefined)
  if (mediaType === undefined) {
    return refuseAt(pointer, `\`${paramOf(pointer)}\` (${label}) is not a PNG, JPEG, GIF or WebP image or a PDF.`)
  }
  return { kind: mediaType === 'application/pdf' ? 'document' : 'image', source: { kind: 'data', mediaType, base64 } }
}

function parseFile(part: RequestFields): ImageBlock | DocumentBlock {
  const file = part.optionalObject('file') ?? part.missing('file')
  if (file.optionalText('file_id') !== undefined) {
    return file.refuse('file_id', 'Files by id are kept by one provider and not available here; send `file_data`.')
  }
  const title = file.optionalText('filename')
  const titled = title === undefined ? {} : { title }
  const fileData = file.text('file_data')
  const pointer = file.pointer('file_data')
  if (isWebUrl(fileData)) return { kind: 'document', source: readMediaUrl(fileData, pointer), ...titled }
  const { mediaType, base64 } = readDataUrl(fileData) ?? { mediaType: 'application/octet-stream', base64: fileData }
  if (mediaType.startsWith('text/') || mediaType === 'application/json') {
    const text = Buffer.from(base64, 'base64').toString('utf8')
    return { kind: 'document', source: { kind: 'text', text }, ...titled }
  }
  const medium = mediumByBytes(base64, mediaType, pointer)
  return medium.kind === 'document' ? { ...medium, ...titled } : medium
}

/** The dialect's own two, and what other hosts of it read. */
const soundFormats: ReadonlySet<string> = new Set(['wav', 'mp3', 'aiff', 'aac', 'ogg', 'flac'])

/** A document by value; who can listen to it is for the target to say. */
function parseSound(part: RequestFields): DocumentBlock {
  const sound = part.optionalObject('input_audio') ?? part.missing('input_audio')
  const format = sound.text('format').toLowerCase()
  if (!soundFormats.has(format)) {
    return sound.refuse('format', `The audio format ${shownWord(format)} is not supported; send wav or mp3.`)
  }
  const data = sound.text('data')
  // Bare base64 is the documented form; some clients send it as they would send an image.
  const base64 = readDataUrl(data)?.base64 ?? data
  return { kind: 'document', source: { kind: 'data', mediaType: `audio/${format}`, base64 } }
}

/** A Messages-shaped image or document. */
function parseSource(part: RequestFields): ImageBlock | DocumentBlock {
  const source = part.optionalObject('source') ?? part.missing('source')
  const title = part.optionalText('title')
  const about = part.optionalText('context')
  const named = { ...(title === undefined ? {} : { title }), ...(about === undefined ? {} : { context: about }) }
  const kind = part.text('type') === 'image' ? 'image' : 'document'
  switch (source.text('type')) {
    case 'base64': {
      const medium = mediumByBytes(source.text('data'), source.text('media_type'), source.pointer('data'))
      return medium.kind === 'document' ? { ...medium, ...named } : medium
    }
    case 'url': {
      const at = readMediaUrl(source.text('url'), source.pointer('url'))
      return kind === 'image' ? { kind, source: at } : { kind, source: at, ...named }
    }
    case 'text':
      if (kind === 'document') return { kind, source: { kind: 'text', text: source.text('data') }, ...named }
  }
  return source.refuse('type', `The source type ${shownWord(source.text('type'))} is not supported in an ${kind}.`)
}
