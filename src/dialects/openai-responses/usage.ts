// Usage in Responses: input_tokens includes cached and cache-written tokens, output_tokens includes reasoning.

import { cacheReport, tokenCount, type Usage } from '../../kernel/usage.ts'
import { isRecord, recordOf } from '../canonical/json.ts'

export function readUsage(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined
  const input = tokenCount(value.input_tokens)
  const output = tokenCount(value.output_tokens)
  if (input === undefined || output === undefined) return undefined
  const inputDetails = recordOf(value.input_tokens_details)
  const reads = tokenCount(inputDetails.cached_tokens)
  const writes = tokenCount(inputDetails.cache_write_tokens)
  const cacheRead = Math.min(input, reads ?? 0)
  const cacheWrite = Math.min(input - cacheRead, writes ?? 0)
  const reasoning = tokenCount(recordOf(value.output_tokens_details).reasoning_tokens)
  return {
    inputTokens: input - cacheRead - cacheWrite,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    cacheWriteLongTokens: 0,
    outputTokens: output,
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
    ...cacheReport(reads, writes),
    source: 'reported',
  }
}
