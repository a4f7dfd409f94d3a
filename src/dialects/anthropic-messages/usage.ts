// Usage as Messages reports it: input_tokens excludes what was read from or written to a cache. In a stream the counts
// come in message_start and again, cumulative, in message_delta; hosts differ in which event carries the cache counts,
// so the last value that is not null wins, member by member.

import { tokenCount, type Usage } from '../../kernel/usage.ts'

/** The raw members as seen so far. */
export type UsageMembers = Record<string, unknown>

export function mergeUsage(seen: UsageMembers, value: unknown): UsageMembers {
  if (!isRecord(value)) return seen
  const merged = { ...seen }
  for (const [name, member] of Object.entries(value)) if (member !== null) merged[name] = member
  return merged
}

export function readUsage(members: UsageMembers): Usage | undefined {
  const input = tokenCount(members.input_tokens)
  const output = tokenCount(members.output_tokens)
  if (input === undefined || output === undefined) return undefined
  const split = isRecord(members.cache_creation) ? members.cache_creation : {}
  const long = tokenCount(split.ephemeral_1h_input_tokens) ?? 0
  const short = tokenCount(split.ephemeral_5m_input_tokens)
  const written = tokenCount(members.cache_creation_input_tokens) ?? (short ?? 0) + long
  const details = isRecord(members.output_tokens_details) ? members.output_tokens_details : {}
  const reasoning = tokenCount(details.thinking_tokens)
  return {
    inputTokens: input,
    cacheReadTokens: tokenCount(members.cache_read_input_tokens) ?? 0,
    cacheWriteTokens: Math.max(0, written - long),
    cacheWriteLongTokens: long,
    outputTokens: output,
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
    source: 'reported',
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
