import { expect, test } from 'bun:test'
import { tokenCounts } from '../../../test/parts/token-counts.ts'
import { mergeUsage, readUsage } from './usage.ts'

test('web searches are counted, and zero is the same as not reported', () => {
  const counts = { input_tokens: 10, output_tokens: 2 }
  expect(readUsage({ ...counts, server_tool_use: { web_search_requests: 3 } })?.webSearches).toBe(3)
  expect(readUsage({ ...counts, server_tool_use: { web_search_requests: 0 } })).toEqual(readUsage(counts) as never)
})

test('only US inference is flagged, and no other value of inference_geo', () => {
  const counts = { input_tokens: 10, output_tokens: 2 }
  expect(readUsage(mergeUsage({ ...counts, inference_geo: 'us' }, { inference_geo: null }))?.isUsOnly).toBe(true)
  for (const inference_geo of ['global', 'not_available', 'US', '', 1, true, ['us'], { us: 1 }]) {
    expect(readUsage({ ...counts, inference_geo })).toEqual(readUsage(counts) as never)
  }
})

// wire.md: entries of type `compaction` are not in the top-level numbers.
test('a summary made on the way is billed beside the answer, an iteration of the answer itself is not counted twice', () => {
  const compaction = {
    type: 'compaction',
    input_tokens: 180_000,
    cache_read_input_tokens: 7,
    cache_creation_input_tokens: 30,
    cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
    output_tokens: 3500,
  }
  const message = { type: 'message', input_tokens: 23_000, output_tokens: 1000 }
  const counts = mergeUsage({ input_tokens: 23_000 }, { output_tokens: 1000, iterations: [compaction, message] })
  expect(readUsage(counts)).toMatchObject({
    inputTokens: 23_000,
    outputTokens: 1000,
    summaries: [
      {
        ...tokenCounts(180_000, 3500, 7, 10, 20),
      },
    ],
  })
})
