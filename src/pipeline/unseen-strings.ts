// Finds the strings of a request or an answer that its document for policies does not have, by comparing the two, so that a
// new member of a provider's format is seen without a change here.

import { isUtf8 } from 'node:buffer'
import { isRecord, parseJson, recordOf, textOf } from '../dialects/canonical/json.ts'
import { pointerStep } from '../dialects/request/fields.ts'
import { isText } from '../wire/bytes.ts'
import { type JsonPath, visitStrings } from '../wire/json-strings.ts'

export interface UnseenString {
  /** The name of a header, or a JSON pointer into the body or a record; for strings inside `arguments`, into the document or the arguments' member. */
  readonly field: string
  readonly text: string
}

type Document = Readonly<Record<string, unknown>>

/** `document`: one member, which is null if the body could not be read. */
export function unseenInBody(body: Uint8Array, document: Document, media: ReadonlySet<string>): UnseenString[] {
  const { strings, decoded } = readDocument(document)
  for (const text of media) strings.add(text)
  const isUnread = Object.values(document).includes(null)
  const unseen = decoded
  visitStrings(body, (text, path, isName) => {
    if (text === '' || strings.has(text) || (!isUnread && isFormatWord(text, path, isName))) return
    // A name is listed once, however often it occurs.
    if (isName) strings.add(text)
    unseen.push({ field: pointerOf(path), text })
    if (path.at(-1) === 'arguments' && !isName) unseen.push(...stringsIn(text, path).filter(isEscapedIn(text)))
    const encoded = textInBase64(text, isUnread)
    if (encoded !== undefined) unseen.push({ field: pointerOf(path), text: encoded })
  })
  return unseen
}

/** `records`: JSON, or else any text. Strings of one place, such as the deltas of a transcript, are joined before they are compared. */
export function unseenInRecords(records: readonly string[], document: Document): UnseenString[] {
  const { decoded, joined } = readDocument(document)
  const other = decoded
  const places = new Map<string, Place>()
  const isSeen = memoized((text: string) => joined.some((each) => each.includes(text)))
  for (const record of records) {
    const value = parseJson(record)
    if (value === undefined) {
      other.push({ field: '', text: record })
      continue
    }
    // Events of different types have their deltas in the same place.
    const type = textOf(recordOf(value).type)
    visitStrings(encoder.encode(record), (text, path, isName) => {
      if (text === '' || isFormatWord(text, path, isName)) return
      const field = pointerOf(path)
      const key = `${type} ${isName} ${field}`
      const place = places.get(key)
      if (place) addTo(place, text)
      else places.set(key, { field, text, first: text, isRepeated: true })
    })
  }
  for (const { field, text, first, isRepeated } of places.values()) {
    const said = isRepeated ? first : text
    if (isSeen(said)) continue
    other.push({ field, text: said })
    const encoded = textInBase64(said)
    if (encoded !== undefined) other.push({ field, text: encoded })
  }
  return other
}

/** Tokens with their probabilities are many times as long as the answer, and repeat. */
function memoized(find: (text: string) => boolean): (text: string) => boolean {
  const found = new Map<string, boolean>()
  return (text) => {
    const known = found.get(text) ?? find(text)
    found.set(text, known)
    return known
  }
}

interface Place {
  readonly field: string
  text: string
  readonly first: string
  /** All records have the same string, such as an id. */
  isRepeated: boolean
}

function addTo(place: Place, text: string): void {
  place.text += text
  place.isRepeated &&= text === place.first
}

interface ReadDocument {
  /** Names of members included. */
  readonly strings: Set<string>
  /** Strings inside `arguments` that are written with escapes, which its text shows encoded. */
  readonly decoded: UnseenString[]
  /** The strings of each kind, such as all texts, in their order. */
  readonly joined: readonly string[]
}

function readDocument(document: Document): ReadDocument {
  const strings = new Set<string>()
  const decoded: UnseenString[] = []
  const kinds = new Map<string, string>()
  const visit = (value: unknown, path: JsonPath, kind: string): void => {
    if (typeof value === 'string') {
      strings.add(value)
      kinds.set(kind, (kinds.get(kind) ?? '') + value)
      if (path.at(-1) !== 'arguments') return
      // Some dialects write arguments as an object, others as its text.
      const inner = stringsIn(value, path)
      for (const { text } of inner) strings.add(text)
      decoded.push(...inner.filter(isEscapedIn(value)))
    } else if (Array.isArray(value)) {
      for (const [at, each] of value.entries()) visit(each, [...path, at], kind)
    } else if (isRecord(value)) {
      for (const [name, each] of Object.entries(value)) {
        strings.add(name)
        visit(each, [...path, name], `${textOf(value.type)} ${name}`)
      }
    }
  }
  visit(document, [], '')
  return { strings, decoded, joined: [...kinds.values(), ...decoded.map(({ text }) => text)] }
}

/** The strings in a text that may be JSON. */
function stringsIn(source: string, path: JsonPath): UnseenString[] {
  const found: UnseenString[] = []
  if (!/^\s*[[{]/.test(source)) return found
  const at = pointerOf(path)
  visitStrings(encoder.encode(source), (text, inner) => found.push({ field: at + pointerOf(inner), text }))
  return found
}

/** Also by a line break: what is behind it reads differently in the source. */
function isEscapedIn(source: string) {
  return ({ text }: UnseenString): boolean => text !== '' && !source.includes(text)
}

/** At the end of a string, as in data URLs and in compactions, which count as opaque and are not. */
const base64Form = /(?:^|[,.])([A-Za-z0-9+/_-]{12,}={0,2})$/

/** `isLenient`: also text that is not all UTF-8, which many readers take. Other strings, such as ids, may look like it. */
function textInBase64(text: string, isLenient = false): string | undefined {
  const bytes = Buffer.from(base64Form.exec(text)?.[1] ?? '', 'base64')
  const isDecoded = bytes.length > 0 && isText(bytes) && (isLenient || isUtf8(bytes))
  return isDecoded ? bytes.toString() : undefined
}

const encoder = new TextEncoder()

function pointerOf(path: JsonPath): string {
  return path.map(pointerStep).join('')
}

const plainName = /^[A-Za-z_$]{1,40}$/
/** Such as `image_url`, `OBJECT`, `response.completed`, `web_search_20250305`. */
const plainType = /^[A-Za-z_.]{1,40}(_\d{8})?$/

/** A word of the format, which providers check, or the model of the request. */
function isFormatWord(text: string, path: JsonPath, isName: boolean): boolean {
  if (isName) return plainName.test(text)
  const name = path.findLast((step) => typeof step === 'string')
  if (name === 'type' || name === 'role') return plainType.test(text)
  return name === 'model' && path.length === 1
}
