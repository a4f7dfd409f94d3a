// `cache_control`, which began in one dialect and is sent to others too, and wishes about caching that a target cannot
// be told.

import type { CacheMark, Conversation } from '../canonical/conversation.ts'
import type { RequestFields } from './request-fields.ts'
import type { WarningList } from './warning-list.ts'

export function readCacheControl(fields: RequestFields): CacheMark | undefined {
  const control = fields.optionalObject('cache_control')
  return control && { life: control.optionalText('ttl') === '1h' ? 'long' : 'short', place: control.at }
}

/** What a block gets for its mark: `cacheMark`, or nothing. */
export function spreadMark(cacheMark: CacheMark | undefined): { readonly cacheMark?: CacheMark } {
  return cacheMark ? { cacheMark } : {}
}

/** For a mark that the target has no place for. Some callers mark dozens of blocks; each is named. */
export function warnMark({ place }: CacheMark, usualPlace: string, warnings: WarningList): void {
  warnings.add('cache_mark_dropped', place ?? usualPlace)
}

/** For a target that caches what it likes. Every other wish is what happens anyway. */
export function warnCacheOptions({ promptCacheOptions }: Conversation, warnings: WarningList): void {
  if (promptCacheOptions?.onlyMarked) warnings.add('prompt_cache_options_dropped', '/prompt_cache_options')
}
