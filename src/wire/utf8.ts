// Text out of bytes, and where bytes stop being text. A byte order mark is a character like any other here; whoever
// knows that it stands at the start of a stream drops it.

import { isUtf8 } from 'node:buffer'

/** Decodes a span without making a view first; invalid sequences become U+FFFD. */
export function utf8Text(bytes: Uint8Array, start: number, end: number): string {
  // Buffer's method works on any Uint8Array, at half the price of a subarray and a TextDecoder, and keeps a BOM.
  return Buffer.prototype.toString.call(bytes, 'utf8', start, end)
}

export function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

/**
 * The offset of the first byte that begins no whole, valid character; the length if all is well. Each step checks half
 * of what is left, so the search costs about as much as the one check that failed before it.
 */
export function utf8FaultOffset(bytes: Uint8Array): number {
  // Everything before `low` is valid and ends with a whole character; the first fault begins before `high`.
  let low = 0
  let high = bytes.length
  while (high - low > 8) {
    const middle = low + ((high - low) >> 1)
    let cut = middle
    while (middle - cut < 3 && isContinuation(bytes[cut])) cut--
    if (isUtf8(bytes.subarray(low, cut))) low = cut
    else high = middle
  }
  let length = characterLength(bytes, low)
  while (length > 0) {
    low += length
    length = characterLength(bytes, low)
  }
  return low
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

/** 0 where no valid character begins. */
function characterLength(bytes: Uint8Array, at: number): number {
  for (let length = 1; length <= 4 && at + length <= bytes.length; length++) {
    if (isUtf8(bytes.subarray(at, at + length))) return length
  }
  return 0
}
