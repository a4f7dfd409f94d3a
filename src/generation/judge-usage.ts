// What a provider says it consumed is not trusted: it is billed only where it can be true. Everything else is estimated
// from what passed, by one function for both lanes, so that the same reply costs the same on either.

import {
  estimatedInput,
  type TokenCounts,
  tokensMax,
  totalInputTokens,
  type Usage,
  webSearchesMax,
} from '../kernel/usage.ts'

/** As for prompts; texts of any script come out near, and JSON a little high. */
const bytesPerToken = 4

export interface UsageBounds {
  /** The size of the model's context window, where known. */
  readonly contextTokens: number | undefined
  /** The most output tokens that were asked for, over all choices; undefined = no cap was set. */
  readonly outputCap: number | undefined
}

/** Counts beyond what the model could have taken, and none of what was seen to pass, are mistakes or worse. */
export function isCredible(
  usage: Usage,
  { contextTokens, outputCap }: UsageBounds,
  outputBytes: () => number,
): boolean {
  const once = contextTokens === undefined ? tokensMax : contextTokens + (outputCap ?? contextTokens)
  // A model that searches reads everything again after each search.
  const most = once * (1 + (usage.webSearches ?? 0))
  if (isOver(usage, most) || usage.summaries?.some((counts) => isOver(counts, once))) return false
  if (usage.webSearches !== undefined && usage.webSearches > webSearchesMax) return false
  return (usage.outputTokens > 0 && totalInputTokens(usage) > 0) || outputBytes() === 0
}

function isOver(counts: TokenCounts, most: number): boolean {
  return totalInputTokens(counts) > most || counts.outputTokens > most
}

/** By the bytes that passed, and by what the provider said at the start. */
export function estimateUsage(
  atStart: Usage | undefined,
  outputBytes: number,
  estimatedInputTokens: () => number,
): Usage {
  const outputTokens = Math.max(atStart?.outputTokens ?? 0, tokensIn(outputBytes))
  // Hosts that know nothing yet begin with zeros.
  if (atStart && totalInputTokens(atStart) > 0) return withOutput(atStart, outputTokens)
  return { ...estimatedInput(estimatedInputTokens()), outputTokens }
}

/** What was counted, and the bytes that have passed since; where none have, it is the very usage that was told. */
export function usageSince(counted: Usage, bytes: number): Usage {
  return bytes === 0 ? counted : withOutput(counted, counted.outputTokens + tokensIn(bytes))
}

function withOutput(counted: Usage, outputTokens: number): Usage {
  const input = counted.source === 'reported' ? ({ inputReported: true } as const) : {}
  return { ...counted, outputTokens, ...input, source: 'estimated' }
}

function tokensIn(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken)
}
