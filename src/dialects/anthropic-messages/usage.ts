// Usage in Messages: input_tokens excludes cache reads and writes. In a stream the counts come in message_start and
// again, cumulative, in message_delta. Hosts differ in which event carries the cache counts, so for each member the
// last value that is not null counts.

import {
  countReport,
  noTokens,
  type TokenCounts,
  tierReport,
  tokenCount,
  type Usage,
  unitReport,
  wholeBuckets,
} from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { isRecord, jsonNumber, jsonObject, jsonString, type Members, recordOf } from '../canonical/json.ts'
import { fastSpeed, repliedTiers, tierWords } from './tiers.ts'

/** The raw members so far. */
export type UsageMembers = Record<string, unknown>

export function mergeUsage(seen: UsageMembers, value: unknown): UsageMembers {
  if (!isRecord(value)) return seen
  const merged = { ...seen }
  for (const [name, member] of Object.entries(value)) if (member !== null) merged[name] = member
  return merged
}

/** Whether an event reports the output so far. The count in message_start is an initial value and is not billed. */
export function countsOutput(value: unknown): boolean {
  return tokenCount(recordOf(value).output_tokens) !== undefined
}

/** Summaries that the provider made of a conversation are billed like the rest, but counted separately. */
export function readUsage(members: UsageMembers): Usage | undefined {
  const usage = readCounts(members)
  if (!usage || !Array.isArray(members.iterations)) return usage
  const summaries = members.iterations.filter(isCompaction).flatMap((each) => readCounts(each) ?? [])
  return summaries.length === 0 ? usage : { ...usage, summaries: summaries.map(countsOf) }
}

function isCompaction(iteration: unknown): iteration is UsageMembers {
  return isRecord(iteration) && iteration.type === 'compaction'
}

function countsOf(usage: Usage): TokenCounts {
  return Object.fromEntries(wholeBuckets.map(({ count }) => [count, usage[count]])) as unknown as TokenCounts
}

function readCounts(members: UsageMembers): Usage | undefined {
  const input = tokenCount(members.input_tokens)
  const output = tokenCount(members.output_tokens)
  if (input === undefined || output === undefined) return undefined
  const split = recordOf(members.cache_creation)
  const long = tokenCount(split.ephemeral_1h_input_tokens)
  const short = tokenCount(split.ephemeral_5m_input_tokens)
  const parts = long === undefined && short === undefined ? undefined : (short ?? 0) + (long ?? 0)
  const writes = tokenCount(members.cache_creation_input_tokens) ?? parts
  const reads = tokenCount(members.cache_read_input_tokens)
  const reasoning = tokenCount(recordOf(members.output_tokens_details).thinking_tokens)
  return {
    ...noTokens,
    inputTokens: input,
    cacheReadTokens: reads ?? 0,
    cacheWriteTokens: Math.max(0, (writes ?? 0) - (long ?? 0)),
    cacheWriteLongTokens: long ?? 0,
    outputTokens: output,
    ...unitReport('webSearches', recordOf(members.server_tool_use).web_search_requests),
    ...(members.inference_geo === 'us' ? { isUsOnly: true } : {}),
    ...tierReport(repliedTiers, members.speed === fastSpeed ? fastSpeed : members.service_tier),
    ...countReport(reads, writes, reasoning),
  }
}

// Writing usage: input_tokens excludes cache reads and writes. Includes every member of the official types, null where
// it was not reported.

/** The usage of a message. `cost`: decimal USD digits; undefined = none. */
export function renderUsage(usage: Usage, cost: string | undefined): RawJson {
  const cache_creation = cacheCreation(usage)
  return jsonObject({
    ...counts(usage),
    ...{ cache_creation, service_tier: 'null', inference_geo: 'null', speed: 'null', ...tierMembers(usage), cost },
  })
}

/** The usage of message_delta: all counts are for the whole reply. Its tier is not known in message_start. */
export function renderDeltaUsage(usage: Usage, cost: string | undefined): RawJson {
  return jsonObject({ ...counts(usage), ...tierMembers(usage), cost })
}

function tierMembers({ tier }: Usage): Members {
  if (tier === undefined) return {}
  const speed = tier === 'priority' ? fastSpeed : 'standard'
  return { service_tier: jsonString(tierWords[tier]), speed: jsonString(speed) }
}

function counts(usage: Usage): Members {
  const { reasoningTokens = 0, cacheReported } = usage
  const writes = cacheReported === undefined ? usage.cacheWriteTokens + usage.cacheWriteLongTokens : undefined
  const reads = cacheReported === 'none' ? undefined : usage.cacheReadTokens
  return {
    input_tokens: String(usage.inputTokens),
    cache_creation_input_tokens: jsonNumber(writes) ?? 'null',
    cache_read_input_tokens: jsonNumber(reads) ?? 'null',
    output_tokens: String(usage.outputTokens),
    output_tokens_details: reasoningTokens > 0 ? jsonObject({ thinking_tokens: String(reasoningTokens) }) : 'null',
    server_tool_use: 'null',
  }
}

/** Written only if the two kinds of cache writes are known to differ. */
function cacheCreation({ cacheWriteTokens, cacheWriteLongTokens }: Usage): RawJson {
  if (cacheWriteLongTokens === 0) return 'null'
  return jsonObject({
    ephemeral_5m_input_tokens: String(cacheWriteTokens),
    ephemeral_1h_input_tokens: String(cacheWriteLongTokens),
  })
}
