// Prompt cache marks: reading `cache_control`, which several dialects accept, and warnings for targets that cannot
// honour a mark or option.

import type { CacheMark, Conversation } from '../canonical/conversation.ts'
import type { RequestFields } from './fields.ts'
import type { WarningList } from './warnings.ts'

export function readCacheControl(fields: RequestFields): CacheMark | undefined {
  const control = fields.optionalObject('cache_control')
  return control && { life: control.optionalText('ttl') === '1h' ? 'long' : 'short', place: control.at }
}

/** Spread into a block: `cacheMark`, or nothing. */
export function spreadMark(cacheMark: CacheMark | undefined): { readonly cacheMark?: CacheMark } {
  return cacheMark ? { cacheMark } : {}
}

/** Warns about a mark that the target cannot honour. Each one is named, even if a caller marks dozens of blocks. */
export function warnMark({ place }: CacheMark, usualPlace: string, warnings: WarningList): void {
  warnings.add('cache_mark_dropped', place ?? usualPlace)
}

/** For a target with implicit caching only. The other options are its default behaviour. */
export function warnCacheOptions({ promptCacheOptions }: Conversation, warnings: WarningList): void {
  if (promptCacheOptions?.onlyMarked) warnings.add('prompt_cache_options_dropped', '/prompt_cache_options')
}
