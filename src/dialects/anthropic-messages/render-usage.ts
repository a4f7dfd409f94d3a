// Usage as Messages shows it: input_tokens excludes what the cache gave and took. Every member the official types
// declare is there, null where nobody reported it.

import type { Usage } from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { jsonObject } from '../canonical/json.ts'

type Member = readonly [string, RawJson | undefined]

/** The usage of a message; `cost`: decimal USD digits, or undefined for none. */
export function renderUsage(usage: Usage, cost: string | undefined): RawJson {
  return jsonObject([
    ...countMembers(usage),
    ['cache_creation', cacheCreation(usage)],
    ['service_tier', 'null'],
    ['inference_geo', 'null'],
    ['speed', 'null'],
    ['cost', cost],
  ])
}

/** The usage of message_delta: all counts are those of the whole reply. */
export function renderDeltaUsage(usage: Usage, cost: string | undefined): RawJson {
  return jsonObject([...countMembers(usage), ['cost', cost]])
}

function countMembers(usage: Usage): Member[] {
  const { reasoningTokens = 0, cacheReported } = usage
  const writes = cacheReported === undefined ? usage.cacheWriteTokens + usage.cacheWriteLongTokens : undefined
  const reads = cacheReported === 'none' ? undefined : usage.cacheReadTokens
  return [
    ['input_tokens', String(usage.inputTokens)],
    ['cache_creation_input_tokens', countOrNull(writes)],
    ['cache_read_input_tokens', countOrNull(reads)],
    ['output_tokens', String(usage.outputTokens)],
    [
      'output_tokens_details',
      reasoningTokens > 0 ? jsonObject([['thinking_tokens', String(reasoningTokens)]]) : 'null',
    ],
    ['server_tool_use', 'null'],
  ]
}

function countOrNull(tokens: number | undefined): RawJson {
  return tokens === undefined ? 'null' : String(tokens)
}

/** Which cache was written to is told only where both are known to differ. */
function cacheCreation({ cacheWriteTokens, cacheWriteLongTokens }: Usage): RawJson {
  if (cacheWriteLongTokens === 0) return 'null'
  return jsonObject([
    ['ephemeral_5m_input_tokens', String(cacheWriteTokens)],
    ['ephemeral_1h_input_tokens', String(cacheWriteLongTokens)],
  ])
}
