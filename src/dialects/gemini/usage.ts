// Usage in generateContent, reported as a running total in every record of a stream:
//
//   promptTokenCount          the prompt, cached tokens included; cachedContentTokenCount is the part read from a cache
//   toolUsePromptTokenCount   prompts of tools that the provider ran itself, in addition to the prompt
//   candidatesTokenCount      the answer, thoughts not included; absent while there is none
//   thoughtsTokenCount        thoughts, in addition to the answer
//   promptTokensDetails       the prompt by modality, such as AUDIO; cacheTokensDetails and candidatesTokensDetails alike
//
// Cache writes are not reported.

import {
  audioReport,
  countReport,
  countsWithCache,
  tierReport,
  tokenCount,
  totalInputTokens,
  type Usage,
} from '../../kernel/usage.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { isRecord, jsonObject, jsonString } from '../canonical/json.ts'
import { hostTiers, lower, repliedTiers } from './tiers.ts'

export function readUsage(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined
  const prompt = tokenCount(value.promptTokenCount)
  if (prompt === undefined) return undefined
  const reads = tokenCount(value.cachedContentTokenCount)
  const thoughts = tokenCount(value.thoughtsTokenCount)
  const output = (tokenCount(value.candidatesTokenCount) ?? 0) + (thoughts ?? 0)
  const counted = countsWithCache(prompt, output, { reads })
  const counts = { ...counted, inputTokens: counted.inputTokens + (tokenCount(value.toolUsePromptTokenCount) ?? 0) }
  return {
    ...counts,
    ...audioReport(counts, {
      prompt: audioIn(value.promptTokensDetails),
      cacheRead: audioIn(value.cacheTokensDetails),
      output: audioIn(value.candidatesTokensDetails),
    }),
    ...countReport(reads, undefined, thoughts),
    ...tierReport(repliedTiers, lower(value.serviceTier ?? value.trafficType)),
  }
}

/** undefined = modalities were not reported. */
function audioIn(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined
  const audio = (details as unknown[]).filter(isRecord).filter(({ modality }) => modality === 'AUDIO')
  return audio.reduce((sum, { tokenCount: count }) => sum + (tokenCount(count) ?? 0), 0)
}

/** `cost`: decimal USD digits. */
export function renderUsage(usage: Usage, cost: string): RawJson {
  const prompt = totalInputTokens(usage)
  const { outputTokens, reasoningTokens, cacheReadTokens } = usage
  return jsonObject({
    promptTokenCount: String(prompt),
    cachedContentTokenCount: cacheReadTokens > 0 ? String(cacheReadTokens) : undefined,
    candidatesTokenCount: String(outputTokens - (reasoningTokens ?? 0)),
    thoughtsTokenCount: reasoningTokens === undefined ? undefined : String(reasoningTokens),
    totalTokenCount: String(prompt + outputTokens),
    serviceTier: usage.tier && jsonString(hostTiers[usage.tier]),
    cost,
  })
}
