// Usage in Chat Completions: prompt_tokens includes cached and cache-written tokens, completion_tokens
// includes reasoning. Hosts differ in where they put the cache counts:
//
//   OpenAI, most          prompt_tokens_details.cached_tokens, .cache_write_tokens
//   DeepSeek              prompt_cache_hit_tokens
//   Moonshot              cached_tokens (promptfoo/promptfoo#10132, 2026-07)
//   gateways (LiteLLM …)  cache_read_input_tokens, cache_creation_input_tokens
//
// Web searches: server_tool_use.web_search_requests (OpenRouter), num_sources_used (xAI's live search).
//
// Audio: audio_tokens in both details, included in the counts.
//
// xAI does not include reasoning in completion_tokens (vercel/ai#12425, 2026-02), which its total shows.
//
// xAI says what it bills: cost_in_usd_ticks.
//
// To support another spelling, add a row here and a test case.

import {
  audioReport,
  billedReport,
  countReport,
  countsWithCache,
  tierReport,
  tokenCount,
  totalInputTokens,
  type Usage,
  unitReport,
} from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { filledObject, isRecord, jsonNumber, jsonObject, listOf, recordOf } from '../canonical/json.ts'
import { openaiTiers } from '../canonical/tiers.ts'

/** `tier`: the `service_tier` of the reply or chunk. */
export function readUsage(value: unknown, tier?: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined
  const prompt = tokenCount(value.prompt_tokens)
  const output = tokenCount(value.completion_tokens)
  if (prompt === undefined || output === undefined) return undefined
  const promptDetails = recordOf(value.prompt_tokens_details)
  const outputDetails = recordOf(value.completion_tokens_details)
  const reads =
    tokenCount(promptDetails.cached_tokens) ??
    tokenCount(value.prompt_cache_hit_tokens) ??
    tokenCount(value.cache_read_input_tokens) ??
    tokenCount(value.cached_tokens)
  const writes = tokenCount(promptDetails.cache_write_tokens) ?? tokenCount(value.cache_creation_input_tokens)
  const reasoning = tokenCount(outputDetails.reasoning_tokens)
  const isBeside = reasoning !== undefined && value.total_tokens === prompt + output + reasoning
  const counts = countsWithCache(prompt, isBeside ? output + reasoning : output, { reads, writes })
  return {
    ...counts,
    ...audioReport(counts, { prompt: promptDetails.audio_tokens, output: outputDetails.audio_tokens }),
    ...unitReport('webSearches', recordOf(value.server_tool_use).web_search_requests ?? value.num_sources_used),
    ...countReport(reads, writes, reasoning),
    ...billedReport(value.cost_in_usd_ticks),
    ...tierReport(openaiTiers, tier),
  }
}

/** The usage in a chunk: beside the choices, in the last choice, or in `x_groq`. */
export function usageIn(chunk: Readonly<Record<string, unknown>>): unknown {
  return chunk.usage ?? recordOf(listOf(chunk.choices).find(isRecord)).usage ?? recordOf(chunk.x_groq).usage
}

// Writing usage: prompt_tokens includes cache reads and writes. Counts that were not reported are omitted.

/** `cost`: decimal USD digits; undefined = none. */
export function renderUsage(usage: Usage, cost: string | undefined): RawJson {
  const prompt = totalInputTokens(usage)
  const { cacheReported, reasoningTokens, audioOutputTokens } = usage
  const writes = String(usage.cacheWriteTokens + usage.cacheWriteLongTokens)
  const audioInput = (usage.audioInputTokens ?? 0) + (usage.audioCacheReadTokens ?? 0)
  return jsonObject({
    prompt_tokens: String(prompt),
    completion_tokens: String(usage.outputTokens),
    total_tokens: String(prompt + usage.outputTokens),
    prompt_tokens_details: filledObject({
      cached_tokens: cacheReported === 'none' ? undefined : String(usage.cacheReadTokens),
      cache_write_tokens: cacheReported === undefined ? writes : undefined,
      audio_tokens: audioInput === 0 ? undefined : String(audioInput),
    }),
    completion_tokens_details: filledObject({
      reasoning_tokens: jsonNumber(reasoningTokens),
      audio_tokens: jsonNumber(audioOutputTokens),
    }),
    cost,
  })
}
