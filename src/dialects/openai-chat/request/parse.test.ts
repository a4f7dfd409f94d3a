import { describe, expect, test } from 'bun:test'
import { parsed, refusedParse } from '../../../../test/parts/chat-requests.ts'

const messages = [{ role: 'user', content: 'hi' }]
const settings = (fields: object) => parsed({ messages, ...fields })
const unsupported = (fields: object) => settings(fields).unsupported.map(({ field, refuse }) => [field, refuse])

describe('caps, sampling and stops', () => {
  test('vector 17: of two caps that differ the newer name counts, with a warning', () => {
    const both = settings({ max_tokens: 50, max_completion_tokens: 80 })
    expect([both.outputCap, both.warned]).toEqual([80, ['max_tokens_ignored /max_tokens']])
    expect(both.pointers?.outputCap).toBe('/max_completion_tokens')
    expect(settings({ max_tokens: 50, max_completion_tokens: 50 }).warned).toEqual([])
    expect(settings({}).outputCap).toBeUndefined()
  })

  test('vector 18: temperature is carried as it is', () => {
    expect(settings({ temperature: 1.7 }).sampling).toEqual({ temperature: 1.7 })
    expect(settings({ temperature: 0 }).sampling).toEqual({ temperature: 0 })
    expect(refusedParse({ messages, temperature: 2.5 }).param).toBe('temperature')
  })

  test('vector 19: a stop is a list, and empty ones go with a warning', () => {
    expect(settings({ stop: 'X' }).stop).toEqual(['X'])
    expect(settings({ stop: null }).stop).toEqual([])
    const dropped = settings({ stop: ['', '\n', 'END'] })
    expect([dropped.stop, dropped.warned]).toEqual([['\n', 'END'], ['stop_dropped /stop']])
    expect(refusedParse({ messages, stop: ['a', 7] }).param).toBe('stop[1]')
  })

  test('vector 21: logprobs are to be refused, a seed is carried, a zero penalty says nothing', () => {
    expect(unsupported({ logprobs: true })).toEqual([['/logprobs', true]])
    const { sampling, unsupported: left } = settings({ seed: 1, presence_penalty: 0, frequency_penalty: 0.5 })
    expect(sampling).toEqual({ seed: 1, frequencyPenalty: 0.5 })
    expect(left).toEqual([])
  })

  test('a bias is carried as it was written', () => {
    const body = '{"model":"m","messages":[{"role":"user","content":"x"}],"logit_bias":{"50256": -100.0}}'
    expect(parsed(body).sampling.logitBias).toBe('{"50256": -100.0}')
    expect(settings({ logit_bias: {} }).sampling).toEqual({})
  })
})

describe('fields only this dialect knows', () => {
  test('refuses members that change the shape of the answer or a guarantee', () => {
    expect(unsupported({ n: 2 })).toEqual([['/n', true]])
    expect(unsupported({ audio: { voice: 'x', format: 'wav' }, modalities: ['text', 'audio'] })).toEqual([
      ['/audio', true],
      ['/modalities', true],
    ])
    const spoken = settings({ modalities: ['text', 'audio'] }).unsupported
    expect(spoken).toMatchObject([{ field: '/modalities', wantsAudio: true }])
    expect(unsupported({ moderation: { model: 'x' }, web_search_options: {} })).toEqual([
      ['/moderation', true],
      ['/web_search_options', true],
    ])
  })

  test('vector 39: an unknown field is left out with a warning, hints too', () => {
    const metadata = { a: 'b' }
    expect(unsupported({ foo: 1, metadata, prediction: { type: 'content', content: 'x' }, store: true })).toEqual([
      ['/foo', false],
      ['/metadata', false],
      ['/prediction', false],
      ['/store', false],
    ])
    expect(unsupported({ stream: true, stream_options: { include_usage: true, include_obfuscation: true } })).toEqual([
      ['/stream_options/include_obfuscation', false],
    ])
  })

  test('defaults and nulls say nothing', () => {
    const fields = {
      ...{ n: 1, logprobs: false, top_logprobs: 0, modalities: ['text'], store: false, metadata: null },
      ...{ audio: null, foo: null, stream: true, stream_options: { include_obfuscation: false } },
    }
    expect(unsupported(fields)).toEqual([])
  })

  test('reads identifiers, tier, verbosity and cache key into separate fields', () => {
    expect(settings({ user: 'u', safety_identifier: 's' }).endUserId).toBe('s')
    expect(settings({ user: 'u' }).endUserId).toBe('u')
    const tier = (word: string) => settings({ service_tier: word }).serviceTier
    expect(['auto', 'default', 'flex', 'priority', 'fast', 'scale', 'turbo'].map(tier)).toEqual([
      'auto',
      'standard',
      'flex',
      'priority',
      'priority',
      'scale',
      'unknown',
    ])
    expect(settings({ verbosity: 'low', prompt_cache_key: 'k' })).toMatchObject({
      verbosity: 'low',
      promptCacheKey: 'k',
    })
  })

  test('keeps cache options as written', () => {
    const body = (options: string) =>
      parsed(`{"model":"m","messages":[{"role":"user","content":"x"}],"prompt_cache_options":${options}}`)
    const written = '{"mode": "explicit","ttl":"30m"}'
    expect(body(written).promptCacheOptions).toEqual({ written, onlyMarked: true, life: 'long' })
    expect(body('{"mode":"implicit"}').promptCacheOptions).toMatchObject({ onlyMarked: false })
    expect(body('null').promptCacheOptions).toBeUndefined()
  })
})

describe('reasoning and output format', () => {
  test('the native effort goes before the extensions, and an effort before a budget', () => {
    const reasoningOf = (fields: object) => settings(fields).reasoning
    expect(reasoningOf({ reasoning_effort: 'high', reasoning: { effort: 'low', max_tokens: 9 } })).toEqual({
      effort: 'high',
    })
    expect(reasoningOf({ reasoning: { effort: 'low', max_tokens: 9 } })).toEqual({ effort: 'low' })
    expect(reasoningOf({ reasoning: { max_tokens: 9 }, thinking: { type: 'enabled', budget_tokens: 8 } })).toEqual({
      budgetTokens: 9,
      mode: 'on',
    })
    expect(reasoningOf({ thinking: { type: 'disabled' } })).toEqual({ mode: 'off' })
    expect(reasoningOf({ reasoning_effort: 'low', thinking: { type: 'disabled' } })).toEqual({ effort: 'low' })
    expect(reasoningOf({ reasoning: { enabled: false, exclude: true } })).toEqual({ mode: 'off', visible: false })
    expect(reasoningOf({})).toBeUndefined()
    expect(refusedParse({ messages, reasoning_effort: 'much' }).param).toBe('reasoning_effort')
  })

  test('a schema is carried as it was written; text is no format', () => {
    const schema = '{"type": "object", "properties":{"n":{"maximum":1.0}}}'
    const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema",
      "json_schema":{"name":"out","strict":true,"schema":${schema}}}}`
    expect(parsed(body).outputFormat).toEqual({ kind: 'json-schema', name: 'out', schema, strict: true })
    expect(settings({ response_format: { type: 'json_object' } }).outputFormat).toEqual({ kind: 'json-object' })
    expect(settings({ response_format: { type: 'text' } }).outputFormat).toBeUndefined()
    expect(refusedParse({ messages, response_format: { type: 'xml' } }).param).toBe('response_format.type')
  })
})
