// Usage as Chat Completions shows it: prompt_tokens includes what the cache gave and took. What nobody reported is left
// out.

import { totalInputTokens, type Usage } from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject } from '../canonical/json.ts'

/** `cost`: decimal USD digits, or undefined for none. */
export function renderUsage(usage: Usage, cost: string | undefined): RawJson {
  const prompt = totalInputTokens(usage)
  const { cacheReported, reasoningTokens, audioOutputTokens } = usage
  const writes = String(usage.cacheWriteTokens + usage.cacheWriteLongTokens)
  const heard = (usage.audioInputTokens ?? 0) + (usage.audioCacheReadTokens ?? 0)
  const promptDetails = detailsOf([
    ['cached_tokens', cacheReported === 'none' ? undefined : String(usage.cacheReadTokens)],
    ['cache_write_tokens', cacheReported === undefined ? writes : undefined],
    ['audio_tokens', heard === 0 ? undefined : String(heard)],
  ])
  const outputDetails = detailsOf([
    ['reasoning_tokens', reasoningTokens === undefined ? undefined : String(reasoningTokens)],
    ['audio_tokens', audioOutputTokens === undefined ? undefined : String(audioOutputTokens)],
  ])
  return jsonObject([
    ['prompt_tokens', String(prompt)],
    ['completion_tokens', String(usage.outputTokens)],
    ['total_tokens', String(prompt + usage.outputTokens)],
    ['prompt_tokens_details', promptDetails],
    ['completion_tokens_details', outputDetails],
    ['cost', cost],
  ])
}

type Members = Parameters<typeof jsonObject>[0]

/** undefined = nobody reported any. */
function detailsOf(members: Members): RawJson | undefined {
  return members.some(([, value]) => value !== undefined) ? jsonObject(members) : undefined
}
