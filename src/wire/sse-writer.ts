// SSE records as bytes. Whatever the text, one call makes one record: line breaks in it can neither end the record
// early nor add a field.

import { assert } from '../kernel/assert.ts'

const encoder = new TextEncoder()
const lineBreak = /\r\n|\r|\n/
const anyLineBreak = /[\r\n]/

/** Data of several lines is written as several data lines; a reader joins them with a line feed, CR or not. */
export function sseEvent(event: string | undefined, data: string): Uint8Array<ArrayBuffer> {
  assert(event === undefined || !anyLineBreak.test(event), 'an event name is one line')
  const name = event ? `event: ${event}\n` : ''
  return encoder.encode(`${name}${prefixed('data: ', data)}\n`)
}

/** A record that readers ignore, to keep a silent connection alive. */
export function sseComment(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(`${prefixed(': ', text)}\n`)
}

function prefixed(prefix: string, text: string): string {
  // JSON never holds a raw line break, so this is nearly every event.
  if (!anyLineBreak.test(text)) return `${prefix}${text}\n`
  return text
    .split(lineBreak)
    .map((line) => `${prefix}${line}\n`)
    .join('')
}
