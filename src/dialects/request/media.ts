// Media by value and by URL. The type of media sent by value is detected from its first bytes, because labels are often
// wrong and providers refuse a wrong one. Media are never decoded beyond that, and URLs are never fetched.

import type { DocumentBlock, MediaBlock, MediaSource } from '../canonical/conversation.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { paramOf, refuseAt } from './fields.ts'

/** Media type and its first bytes as Latin-1; `????` is the length of the file. */
const signatures: readonly (readonly [string, string])[] = [
  ['image/png', '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', '\xff\xd8\xff'],
  ['image/gif', 'GIF8'],
  ['image/webp', 'RIFF????WEBP'],
  ['application/pdf', '%PDF'],
]

/** The media type by content; undefined if it is none of png, jpeg, gif, webp and pdf. */
export function sniffMediaType(base64: string): string | undefined {
  const head = Buffer.from(base64.slice(0, 24), 'base64').toString('latin1')
  const withoutLength = `${head.slice(0, 4)}????${head.slice(8)}`
  return signatures.find(([, signature]) => head.startsWith(signature) || withoutLength.startsWith(signature))?.[0]
}

/** The media type by content, otherwise the label in its proper spelling. */
export function knownMediaType(base64: string, label: string): string {
  const spelt = label.trim().toLowerCase()
  return sniffMediaType(base64) ?? (spelt === 'image/jpg' ? 'image/jpeg' : spelt)
}

/** undefined if it is not a data URL with base64 data. The media type is in lower case, without parameters. */
export function readDataUrl(url: string) {
  const comma = url.indexOf(',')
  if (comma === -1 || url.slice(0, 5).toLowerCase() !== 'data:') return undefined
  const [mediaType = '', ...parameters] = url.slice(5, comma).toLowerCase().split(';')
  if (parameters.at(-1)?.trim() !== 'base64') return undefined
  return { mediaType: mediaType.trim() || 'text/plain', base64: url.slice(comma + 1) }
}

export function isWebUrl(url: string): boolean {
  return /^https?:\/\//i.test(url)
}

/** The limit of browsers and most servers. A signed storage URL has about 2,000 characters. */
const urlLengthMax = 8192
const controlCharacter = /[^ -~\u0080-\uffff]/
/** Anything longer is part of the file name. */
const endingLengthMax = 16

/** `pointer` names the URL in a refusal. A data URL holds the media itself and may be of any length. */
export function readMediaUrl(url: string, pointer: string): MediaSource {
  const data = readDataUrl(url)
  if (data) return { ...data, kind: 'data', mediaType: knownMediaType(data.base64, data.mediaType) }
  if (url.length > urlLengthMax) {
    refuseAt(pointer, `\`${paramOf(pointer)}\` is longer than the ${urlLengthMax} characters that a URL may have.`)
  }
  if (controlCharacter.test(url)) refuseAt(pointer, `\`${paramOf(pointer)}\` must not contain control characters.`)
  return { kind: 'url', url }
}

/** `png` for `https://a.example/b.PNG?c=d`; undefined if there is none. */
export function endingOf(url: string): string | undefined {
  const [path = ''] = url.split(/[?#]/, 1)
  const ending = path.slice(path.lastIndexOf('.') + 1)
  return path.includes('.') && ending !== '' && ending.length <= endingLengthMax ? ending.toLowerCase() : undefined
}

/** An image or a PDF by URL or data URL; its content decides which. */
export function mediaByUrl(url: string, pointer: string): MediaBlock {
  if (isWebUrl(url)) return { kind: 'image', source: readMediaUrl(url, pointer) }
  const data = readDataUrl(url)
  if (!data) return refuseAt(pointer, `\`${paramOf(pointer)}\` must be an http(s) URL or a base64 data URL.`)
  return mediaByContent(data.base64, data.mediaType, pointer)
}

export function mediaByContent(base64: string, label: string, pointer: string): MediaBlock {
  const mediaType = sniffMediaType(base64) ?? (label === 'application/pdf' ? label : undefined)
  if (mediaType === undefined) {
    return refuseAt(pointer, `\`${paramOf(pointer)}\` (${label}) is not a PNG, JPEG, GIF or WebP image or a PDF.`)
  }
  return { kind: mediaType === 'application/pdf' ? 'document' : 'image', source: { kind: 'data', mediaType, base64 } }
}

// Refusing media that a target does not accept, before anything is sent. The gateway does not convert media; another
// route of the model may accept them.

export function refuseMediaUrl({ kind }: MediaSource, { mediaUrls }: TargetRules, pointer: string): void {
  if (kind === 'url' && mediaUrls === false) {
    refuseAt(pointer, 'This model does not take images and documents by URL here; send the data instead.')
  }
}

/** For dialects without an audio block: audio arrives as a document by value. */
export function refuseAudio(source: DocumentBlock['source'], pointer: string): void {
  if (isAudio(source)) refuseAt(pointer, 'This model does not take audio; send its text instead.')
}

export function isAudio(source: DocumentBlock['source']): boolean {
  return source.kind === 'data' && source.mediaType.startsWith('audio/')
}
