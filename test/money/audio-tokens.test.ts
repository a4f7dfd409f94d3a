// Audio that a model reads or generates has separate prices where the model has them: charged by what the provider
// counted, the same on both surfaces, streamed or not, held for before anything is sent, and explained.

import { afterAll, describe, expect, test } from 'bun:test'
import { stopAll } from '../parts/gateway.ts'
import { bothSurfaces } from '../parts/surfaces.ts'
import { say } from '../parts/upstream-words.ts'
import { type Explained, expectPaid, openTill, streamedPaths, type Till, wholePaths } from './till.ts'

const text = 'input: "1.00", output: "2.00", cache_read: "0.10"'
const paths = [...streamedPaths, ...wholePaths].filter(({ provider }) => provider === 'chat')

const till = await openTill({ price: `{ ${text}, audio_input: "10.00", audio_output: "20.00" }` })
const unpriced = await openTill({ price: `{ ${text} }` })
const cached = await openTill({ price: `{ ${text}, audio_input: "10.00", audio_cache_read: "1.00" }` })
afterAll(() => stopAll(till, unpriced, cached))

/** 1,000 in, of which 200 from a cache and 300 audio; 100 out, of which 60 audio. */
const usage = {
  prompt_tokens: 1000,
  completion_tokens: 100,
  total_tokens: 1100,
  prompt_tokens_details: { cached_tokens: 200, audio_tokens: 300 },
  completion_tokens_details: { audio_tokens: 60 },
}

describe.each(paths)('$name', (path) => {
  test('sound is charged at its own price, and the charge says how much of it there was', async () => {
    till.upstream.handle((call, reply) => say(call, reply, { texts: ['heard'], usage }))
    const answer = await till.ask(path)
    // 500 × 1 + 300 × 10 + 200 × 0.1 + 40 × 2 + 60 × 20 micro-dollars
    expect(answer.cost).toBe('0.0048')
    await expectPaid(till, answer, 4_800_000n)
    expect(till.charges(answer.requestId)[0]?.usage).toMatchObject({
      ...{ inputTokens: 800, cacheReadTokens: 200, outputTokens: 100 },
      ...{ audioInputTokens: 300, audioOutputTokens: 60 },
    })
    const explained = (await till.wallets.explain(answer.requestId)) as Explained
    expect(explained.usage).toMatchObject({ input_tokens: 800, audio_input_tokens: 300, audio_output_tokens: 60 })
    expect(explained.charge.lines.map(({ kind, tokens }) => [kind, tokens])).toEqual([
      ['input', 500],
      ['audio_input', 300],
      ['cache_read', 200],
      ['output', 40],
      ['audio_output', 60],
    ])
  })

  test('a model without a price for it charges it as text', async () => {
    unpriced.upstream.handle((call, reply) => say(call, reply, { texts: ['heard'], usage }))
    // 800 × 1 + 200 × 0.1 + 100 × 2
    await expectPaid(unpriced, await unpriced.ask(path), 1_020_000n)
  })

  test('more sound than there are tokens is no more than all of them', async () => {
    const odd = {
      ...usage,
      prompt_tokens_details: { audio_tokens: 5000 },
      completion_tokens_details: { audio_tokens: 5000 },
    }
    till.upstream.handle((call, reply) => say(call, reply, { texts: ['heard'], usage: odd }))
    // 1000 × 10 + 100 × 20
    await expectPaid(till, await till.ask(path), 12_000_000n)
  })
})

describe.each(paths.filter(({ surface }) => surface.name === 'chat'))('the amount held, $name', (path) => {
  const clip = { type: 'input_audio', input_audio: { data: 'AAAA'.repeat(20_000), format: 'wav' } }
  const heldBy = async (of: Till, members: object) => {
    of.upstream.handle((call, reply) => say(call, reply, { texts: ['heard'], usage }))
    const answer = await of.ask(path, { max_tokens: 10, ...members })
    return (await of.line(answer.requestId)).held ?? 0n
  }
  const audioRequest = { messages: [{ role: 'user', content: [clip] }] }
  const spoken = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }

  test('is the price of sound where sound is sent, or asked for', async () => {
    const [plain, asText] = [await heldBy(till, audioRequest), await heldBy(unpriced, audioRequest)]
    // Ten tokens of output at two micro-dollars each are in both.
    expect(plain - 20_000n).toBe(10n * (asText - 20_000n))
    const difference = (await heldBy(till, spoken)) - (await heldBy(unpriced, spoken))
    expect(difference).toBe(10n * 18_000n)
  })

  test('is the price of text for text', async () => {
    expect(await heldBy(till, {})).toBe(await heldBy(unpriced, {}))
  })
})

/** A provider that counts by modality. */
const byModality = {
  ...{ promptTokenCount: 1000, cachedContentTokenCount: 200, candidatesTokenCount: 100, totalTokenCount: 1100 },
  promptTokensDetails: [
    { modality: 'TEXT', tokenCount: 600 },
    { modality: 'AUDIO', tokenCount: 400 },
  ],
  cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 100 }],
}

test.each(bothSurfaces.flatMap((surface) => [false, true].map((stream) => ({ surface, stream }))))(
  'a provider that counts by modality is paid alike on each surface, streamed or not: $surface.name, $stream',
  async ({ surface, stream }) => {
    cached.upstream.handle((call, reply) => say(call, reply, { texts: ['heard'], usage: byModality }))
    const answer = await cached.ask({ name: 'by modality', surface, provider: 'gemini', stream }, { max_tokens: 100 })
    // 500 × 1 + 300 × 10 + 100 × 0.1 + 100 × 1 + 100 × 2 micro-dollars
    expect(answer.text).toMatch(/"cost":0\.00381\D/)
  },
)
