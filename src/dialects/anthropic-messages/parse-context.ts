// What the parts of the request parser share: where losses are noted, and reading a cache mark.

import type { CacheMark, UnsupportedField } from '../canonical/conversation.ts'
import { readCacheControl, spreadMark } from '../request/cache-marks.ts'
import type { RequestFields } from '../request/fields.ts'
import type { WarningList } from '../request/warnings.ts'

export interface ParseContext {
  readonly warnings: WarningList
  readonly unsupported: UnsupportedField[]
}

/** Spread into a block: `cacheMark` if the caller marked it, otherwise nothing. */
export function markOf(fields: RequestFields): { readonly cacheMark?: CacheMark } {
  return spreadMark(readCacheControl(fields))
}
