// Media by address, as every dialect takes them: the gateway fetches none, but it reads them and passes them on.

import type { MediaSource } from '../canonical/conversation.ts'
import { knownMediaType, readDataUrl } from './media-type.ts'
import { refuseAt } from './request-fields.ts'
import { paramOf } from './warning-list.ts'

/** What browsers and most servers still take; a signed address of a store has some 2,000 characters. */
const urlLengthMax = 8192
/** Longer ones are part of a name. */
const endingLengthMax = 16

/** `pointer` names the address in a refusal. A data URL is the medium itself, and as long as that is. */
export function mediumAt(url: string, pointer: string): MediaSource {
  const data = readDataUrl(url)
  if (data) return { ...data, kind: 'data', mediaType: knownMediaType(data.base64, data.mediaType) }
  if (url.length > urlLengthMax) {
    refuseAt(pointer, `\`${paramOf(pointer)}\` is longer than the ${urlLengthMax} characters that a URL may have.`)
  }
  if (hasControlCharacter(url)) refuseAt(pointer, `\`${paramOf(pointer)}\` must not contain control characters.`)
  return { kind: 'url', url }
}

/** `png` of `https://a.example/b.PNG?c=d`; undefined = it has none. */
export function endingOf(url: string): string | undefined {
  const path = url.slice(0, indexOrEnd(url, '?')).slice(0, indexOrEnd(url, '#'))
  const dot = path.lastIndexOf('.')
  const length = path.length - dot - 1
  if (dot === -1 || length === 0 || length > endingLengthMax) return undefined
  return path.slice(dot + 1).toLowerCase()
}

function indexOrEnd(text: string, sign: string): number {
  const at = text.indexOf(sign)
  return at === -1 ? text.length : at
}

function hasControlCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || code === 0x7f) return true
  }
  return false
}
