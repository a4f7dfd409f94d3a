// Usage as Chat Completions shows it: prompt_tokens includes what the cache gave and took. What nobody reported is left
// out.

import { totalInputTokens, type Usage } from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject } from '../request/json-text.ts'

/** `cost`: decimal USD digits, or undefined for none. */
export function renderUsage(usage: Usage, cost: string | undefined): RawJson {
  const prompt = totalInputTokens(usage)
  const { cacheReported, reasoningTokens: reasoning } = usage
  const writes = String(usage.cacheWriteTokens + usage.cacheWriteLongTokens)
  const cached = jsonObject([
    ['cached_tokens', String(usage.cacheReadTokens)],
    ['cache_write_tokens', cacheReported === undefined ? writes : undefined],
  ])
  return jsonObject([
    ['prompt_tokens', String(prompt)],
    ['completion_tokens', String(usage.outputTokens)],
    ['total_tokens', String(prompt + usage.outputTokens)],
    ['prompt_tokens_details', cacheReported === 'none' ? undefined : cached],
    [
      'completion_tokens_details',
      reasoning === undefined ? undefined : jsonObject([['reasoning_tokens', String(reasoning)]]),
    ],
    ['cost', cost],
  ])
}
