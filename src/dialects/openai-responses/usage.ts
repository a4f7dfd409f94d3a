// Usage in Responses: input_tokens includes cached and cache-written tokens, output_tokens includes reasoning.

import {
  billedReport,
  countReport,
  countsWithCache,
  tierReport,
  tokenCount,
  totalInputTokens,
  type Usage,
  unitReport,
} from '../../kernel/usage.ts'
import { hasBytes } from '../../wire/bytes.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { isRecord, jsonObject, recordOf } from '../canonical/json.ts'
import { openaiTiers } from '../canonical/tiers.ts'

/** `tier`: the `service_tier` of the response. */
export function readUsage(value: unknown, tier?: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined
  const input = tokenCount(value.input_tokens)
  const output = tokenCount(value.output_tokens)
  if (input === undefined || output === undefined) return undefined
  const inputDetails = recordOf(value.input_tokens_details)
  const reads = tokenCount(inputDetails.cached_tokens)
  const writes = tokenCount(inputDetails.cache_write_tokens)
  const reasoning = tokenCount(recordOf(value.output_tokens_details).reasoning_tokens)
  return {
    ...countsWithCache(input, output, { reads, writes }),
    ...countReport(reads, writes, reasoning),
    // xAI says what it bills.
    ...billedReport(value.cost_in_usd_ticks),
    ...tierReport(openaiTiers, tier),
  }
}

const searchType = 'web_search_call'
const searchMark = Buffer.from(searchType)

/** Whether the bytes of items may have a web search in them. */
export function mayHaveSearch(items: Uint8Array): boolean {
  return hasBytes(items, searchMark)
}

/** The searches among items. Opening a page that a search found is not billed. */
export function countSearches(items: readonly unknown[]): number {
  return items.map(recordOf).filter(({ type, action }) => {
    const { type: kind = 'search' } = recordOf(action)
    return type === searchType && kind === 'search'
  }).length
}

/** The usage itself has no count of searches. */
export function withSearches(usage: Usage | undefined, searches: number): Usage | undefined {
  return usage && searches > 0 ? { ...usage, ...unitReport('webSearches', searches) } : usage
}

/** Clients require the details, so counts that were not reported are 0. `cost`: decimal USD digits. */
export function renderUsage(usage: Usage, cost: string): RawJson {
  const input = totalInputTokens(usage)
  return jsonObject({
    input_tokens: String(input),
    input_tokens_details: jsonObject({
      cached_tokens: String(usage.cacheReadTokens),
      cache_write_tokens: String(usage.cacheWriteTokens + usage.cacheWriteLongTokens),
    }),
    output_tokens: String(usage.outputTokens),
    output_tokens_details: jsonObject({ reasoning_tokens: String(usage.reasoningTokens ?? 0) }),
    total_tokens: String(input + usage.outputTokens),
    cost,
  })
}
