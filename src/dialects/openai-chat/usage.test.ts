import { expect, test } from 'bun:test'
import { context } from '../../../test/parts/reply-events.ts'
import { ChatStreamRelay } from './reply/relay.ts'
import { readUsage } from './usage.ts'

const counted = { prompt_tokens: 100, completion_tokens: 5 }

test.each([
  ['in the details', { prompt_tokens_details: { cached_tokens: 40 } }],
  ['as DeepSeek says it', { prompt_cache_hit_tokens: 40, prompt_cache_miss_tokens: 60 }],
  ['as Moonshot says it', { cached_tokens: 40 }],
  ['as gateways say it', { cache_read_input_tokens: 40 }],
])('pitfall 110: tokens read from a cache are found %s', (_, members) => {
  expect(readUsage({ ...counted, ...members })).toMatchObject({ inputTokens: 60, cacheReadTokens: 40 })
})

// https://docs.x.ai/docs/key-information/consumption-and-rate-limits: 12 + 1 + 386 = 399.
test('pitfall 109: reasoning that is counted beside the answer is part of the output, as the total tells', () => {
  const usage = (total: number | undefined) =>
    readUsage({
      prompt_tokens: 12,
      completion_tokens: 1,
      total_tokens: total,
      completion_tokens_details: { reasoning_tokens: 386 },
    })
  expect(usage(399)).toMatchObject({ outputTokens: 387, reasoningTokens: 386 })
  expect(usage(13)).toMatchObject({ outputTokens: 1 })
  expect(usage(undefined)).toMatchObject({ outputTokens: 1 })
})

test.each([
  ['in its last choice', { choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: counted }] }],
  ['in x_groq', { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], x_groq: { usage: counted } }],
])('pitfall 114: on the byte lane, too, a host that counts %s is believed', (_, last) => {
  const modelJson = new TextEncoder().encode('"m"')
  const relay = new ChatStreamRelay({ ...context, modelJson, wantsStreamUsage: false, envelope: { choices: 1 } })
  const record = (chunk: object) => `data: ${JSON.stringify({ id: 'c1', ...chunk })}\n\n`
  const first = record({ choices: [{ index: 0, delta: { content: 'hi' } }] })
  relay.push(new TextEncoder().encode(`${first}${record(last)}data: [DONE]\n\n`))
  expect(relay.usage).toMatchObject({ inputTokens: 100, outputTokens: 5, source: 'reported' })
})

test('audio is part of input and output; cached tokens are text unless reported otherwise', () => {
  const details = { prompt_tokens_details: { cached_tokens: 40, audio_tokens: 30 } }
  const usage = readUsage({ ...counted, ...details, completion_tokens_details: { audio_tokens: 2 } })
  expect(usage).toMatchObject({ inputTokens: 60, audioInputTokens: 30, outputTokens: 5, audioOutputTokens: 2 })
  expect(usage).not.toHaveProperty('audioCacheReadTokens')
  const more = readUsage({ ...counted, prompt_tokens_details: { cached_tokens: 40, audio_tokens: 70 } })
  expect(more).toMatchObject({ audioInputTokens: 60, audioCacheReadTokens: 10 })
  const none = readUsage({ ...counted, prompt_tokens_details: { audio_tokens: 0 }, completion_tokens_details: {} })
  expect(Object.keys(none ?? {}).filter((name) => name.startsWith('audio'))).toEqual([])
})
