// What the parts of the request parser share: where losses are noted, and reading a cache mark.

import type { CacheMark, Leftover } from '../canonical/conversation.ts'
import type { RequestFields } from '../request/request-fields.ts'
import type { WarningList } from '../request/warning-list.ts'

export interface ParseContext {
  readonly warnings: WarningList
  readonly leftovers: Leftover[]
}

/** Spread into a block: `cacheMark` if the caller marked it, otherwise nothing. */
export function markOf(fields: RequestFields): { readonly cacheMark?: CacheMark } {
  const cacheMark = readMark(fields)
  return cacheMark ? { cacheMark } : {}
}

export function readMark(fields: RequestFields): CacheMark | undefined {
  const control = fields.optionalObject('cache_control')
  return control && { life: control.optionalText('ttl') === '1h' ? 'long' : 'short' }
}

/** Members nobody here knows are left out with a warning; null ones say nothing. */
export function warnUnknown(fields: RequestFields, known: readonly string[], { warnings }: ParseContext): void {
  for (const name of fields.names) {
    if (!known.includes(name) && fields.value(name) !== undefined) warnings.add('field_dropped', fields.pointer(name))
  }
}
