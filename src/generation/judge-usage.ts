// What a provider says it consumed is not trusted: it is billed only where it can be true. Everything else is estimated
// from what passed, by one function for both lanes, so that the same reply costs the same on either.

import { estimatedInput, tokensMax, totalInputTokens, type Usage, webSearchesMax } from '../kernel/usage.ts'

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
  const most = contextTokens === undefined ? tokensMax : contextTokens + (outputCap ?? contextTokens)
  if (totalInputTokens(usage) > most || usage.outputTokens > most) return false
  if (usage.webSearches !== undefined && usage.webSearches > webSearchesMax) return false
  return (usage.outputTokens > 0 && totalInputTokens(usage) > 0) || outputBytes() === 0
}

export function estimateUsage(
  atStart: Usage | undefined,
  outputBytes: number,
  estimatedInputTokens: () => number,
): Usage {
  const outputTokens = Math.ceil(outputBytes / bytesPerToken)
  // Hosts that know nothing yet begin with zeros.
  if (atStart && totalInputTokens(atStart) > 0)
    return { ...atStart, outputTokens: Math.max(atStart.outputTokens, outputTokens), source: 'estimated' }
  const counted = Math.max(atStart?.outputTokens ?? 0, outputTokens)
  return { ...estimatedInput(estimatedInputTokens()), outputTokens: counted }
}
