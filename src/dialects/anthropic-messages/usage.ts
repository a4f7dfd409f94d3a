// Usage as Messages reports it: input_tokens excludes what was read from or written to a cache. In a stream the counts
// come in message_start and again, cumulative, in message_delta; hosts differ in which event carries the cache counts,
// so the last value that is not null wins, member by member.

import { cacheReport, type TokenCounts, tokenCount, type Usage, webSearchReport } from '../../kernel/usage.ts'
import { isRecord, recordOf } from '../canonical/json.ts'

/** The raw members as seen so far. */
export type UsageMembers = Record<string, unknown>

export function mergeUsage(seen: UsageMembers, value: unknown): UsageMembers {
  if (!isRecord(value)) return seen
  const merged = { ...seen }
  for (const [name, member] of Object.entries(value)) if (member !== null) merged[name] = member
  return merged
}

/** Whether an event tells the output so far: what message_start says of it is a beginning, and not to be billed. */
export function countsOutput(value: unknown): boolean {
  return tokenCount(recordOf(value).output_tokens) !== undefined
}

/** Summaries that the provider made of a conversation on the way are billed like the rest, but counted beside it. */
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
  const { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens, outputTokens } = usage
  return { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens, outputTokens }
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
    inputTokens: input,
    cacheReadTokens: reads ?? 0,
    cacheWriteTokens: Math.max(0, (writes ?? 0) - (long ?? 0)),
    cacheWriteLongTokens: long ?? 0,
    outputTokens: output,
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
    ...webSearchReport(recordOf(members.server_tool_use).web_search_requests),
    ...(members.inference_geo === 'us' ? { isUsOnly: true } : {}),
    ...cacheReport(reads, writes),
    source: 'reported',
  }
}
