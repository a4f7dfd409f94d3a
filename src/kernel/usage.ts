// What a generation consumed, in buckets that never overlap; every price, limit and usage object is made from these.
// Absent is not zero: a bucket nobody reported is undefined where the type allows it.

export interface TokenCounts {
  /** Input tokens that were neither read from nor written to a cache. */
  readonly inputTokens: number
  readonly cacheReadTokens: number
  /** Written to a short cache (five minutes). */
  readonly cacheWriteTokens: number
  /** Written to a long cache (one hour). */
  readonly cacheWriteLongTokens: number
  /** Reasoning included. */
  readonly outputTokens: number
  /** The part of inputTokens that is sound, which a price may set apart; absent = none, or nobody said so. */
  readonly audioInputTokens?: number
  /** The same of cacheReadTokens. */
  readonly audioCacheReadTokens?: number
  /** The same of outputTokens. */
  readonly audioOutputTokens?: number
}

export interface Usage extends TokenCounts {
  /** Summaries of the conversation that the provider made on the way, each read and written by itself; absent = none. */
  readonly summaries?: readonly TokenCounts[]
  /** Informative part of outputTokens; undefined = not reported. */
  readonly reasoningTokens?: number
  /** Searches of the web that the provider ran and bills one by one; absent = none. */
  readonly webSearches?: number
  /** The provider says that it kept the work in the United States, which may cost more; absent = it does not. */
  readonly isUsOnly?: true
  /** Which of the cache buckets were reported; absent = all of them. One that nobody reported counts as 0. */
  readonly cacheReported?: 'none' | 'reads'
  /** Of an estimate: its input is what the provider counted, and only the output is a guess. */
  readonly inputReported?: true
  readonly source: 'reported' | 'estimated'
}

/** A larger count is a provider's mistake or an attack; it would overflow nothing, but it must not be billed. */
export const tokensMax = 2 ** 31

export function totalInputTokens(usage: TokenCounts): number {
  return usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.cacheWriteLongTokens
}

/** A usage of which only the input is known, and that only roughly. */
export function estimatedInput(inputTokens: number): Usage {
  return {
    inputTokens,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    cacheWriteLongTokens: 0,
    outputTokens: 0,
    cacheReported: 'none',
    source: 'estimated',
  }
}

/** More than this in one answer is a provider's mistake, too. */
export const webSearchesMax = 1000

/** What `webSearches` is, spread into a usage, as an untrusted party wrote it. */
export function webSearchReport(value: unknown): { readonly webSearches?: number } {
  const count = tokenCount(value)
  return count === undefined || count === 0 ? {} : { webSearches: count }
}

/** What a provider says of sound, as an untrusted party wrote it. */
export interface HeardCounts {
  /** Of the whole prompt, with what came from a cache. */
  readonly prompt: unknown
  /** Of what came from a cache; absent = nobody says. */
  readonly cacheRead?: unknown
  readonly output: unknown
}

type AudioCounts = Pick<TokenCounts, 'audioInputTokens' | 'audioCacheReadTokens' | 'audioOutputTokens'>

const nothingHeard: AudioCounts = {}

/** Which parts of the counts are sound, spread into a usage. A cache gives text where nobody says otherwise. */
export function audioReport(
  counts: Pick<TokenCounts, 'inputTokens' | 'cacheReadTokens' | 'outputTokens'>,
  heard: HeardCounts,
): AudioCounts {
  const prompt = tokenCount(heard.prompt) ?? 0
  const output = Math.min(counts.outputTokens, tokenCount(heard.output) ?? 0)
  if (prompt === 0 && output === 0) return nothingHeard
  const fromCache = tokenCount(heard.cacheRead) ?? Math.max(0, prompt - counts.inputTokens)
  const cacheRead = Math.min(counts.cacheReadTokens, prompt, fromCache)
  const input = Math.min(counts.inputTokens, prompt - cacheRead)
  return {
    ...(input > 0 && { audioInputTokens: input }),
    ...(cacheRead > 0 && { audioCacheReadTokens: cacheRead }),
    ...(output > 0 && { audioOutputTokens: output }),
  }
}

/** A token count as an untrusted party wrote it: an integer in range, or undefined. */
export function tokenCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= tokensMax ? value : undefined
}

/** What `cacheReported` is, spread into a usage, for counts that may be missing. */
export function cacheReport(
  reads: number | undefined,
  writes: number | undefined,
): { readonly cacheReported?: 'none' | 'reads' } {
  if (writes !== undefined) return {}
  return { cacheReported: reads === undefined ? 'none' : 'reads' }
}
