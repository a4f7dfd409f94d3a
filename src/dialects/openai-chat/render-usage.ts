// Usage as Chat Completions shows it: prompt_tokens includes what the cache gave and took. What nobody reported is left
// out, and so it is with all details of an estimate.

import { totalInputTokens, type Usage } from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject } from '../request/json-text.ts'

/** `cost`: decimal USD digits, or undefined for none. */
export function renderUsage(usage: Usage, cost: string | undefined): RawJson {
  const prompt = totalInputTokens(usage)
  const cached: [string, RawJson][] = [
    ['cached_tokens', String(usage.cacheReadTokens)],
    ['cache_write_tokens', String(usage.cacheWriteTokens + usage.cacheWriteLongTokens)],
  ]
  const isKnown = usage.source === 'reported' || prompt > usage.inputTokens
  const reasoning = usage.reasoningTokens
  return jsonObject([
    ['prompt_tokens', String(prompt)],
    ['completion_tokens', String(usage.outputTokens)],
    ['total_tokens', String(prompt + usage.outputTokens)],
    ['prompt_tokens_details', isKnown ? jsonObject(cached) : undefined],
    [
      'completion_tokens_details',
      reasoning === undefined ? undefined : jsonObject([['reasoning_tokens', String(reasoning)]]),
    ],
    ['cost', cost],
  ])
}
