import type { Usage } from '../../src/kernel/usage.ts'

/** The counts that every usage has. */
export function tokenCounts(
  inputTokens: number,
  outputTokens: number,
  cacheReadTokens = 0,
  cacheWriteTokens = 0,
  cacheWriteLongTokens = 0,
): Omit<Usage, 'source'> {
  return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, cacheWriteLongTokens }
}
