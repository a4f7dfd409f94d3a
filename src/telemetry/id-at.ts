// Request ids ascend with time, so a moment is a place among them; the request log is read and cleaned by that, without
// an index of its own on times.

import { assert } from '../kernel/assert.ts'
import type { RequestId } from '../kernel/ids.ts'

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const digitCount = 26
/** After every id, in whatever order the database has for text: a sign that is no digit of an id may come first there. */
export const endOfLog: RequestId = `req_${'Z'.repeat(digitCount + 1)}`
/** Below the 48 bits of the time an id has 80 others. */
const timeShift = 80n

/** Not greater than any id that was made at that millisecond or later, and greater than all made before it. */
export function firstIdAt(epochMs: number): RequestId {
  assert(Number.isInteger(epochMs) && epochMs >= 0 && epochMs < 2 ** 48, 'a time has 48 bits')
  let rest = BigInt(epochMs) << timeShift
  let digits = ''
  for (let at = 0; at < digitCount; at++) {
    digits = (alphabet[Number(rest & 31n)] ?? '') + digits
    rest >>= 5n
  }
  return `req_${digits}`
}
