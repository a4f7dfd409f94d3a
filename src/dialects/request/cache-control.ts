// `cache_control`, which began in one dialect and is sent to others too.

import type { CacheMark } from '../canonical/conversation.ts'
import type { RequestFields } from './request-fields.ts'

export function readCacheControl(fields: RequestFields): CacheMark | undefined {
  const control = fields.optionalObject('cache_control')
  return control && { life: control.optionalText('ttl') === '1h' ? 'long' : 'short' }
}

/** What a block gets for its mark: `cacheMark`, or nothing. */
export function spreadMark(cacheMark: CacheMark | undefined): { readonly cacheMark?: CacheMark } {
  return cacheMark ? { cacheMark } : {}
}
