import { describe, expect, test } from 'bun:test'
import { gpts, refusedBy, rendered, responsesTarget } from '../../../../test/parts/responses.ts'
import { assistant, text, user } from '../../../../test/parts/translation.ts'
import { openaiResponses } from '../index.ts'

const closed = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'
const schemaFormat = (parts: object = {}) => ({
  kind: 'json-schema' as const,
  name: undefined,
  description: undefined,
  schema: closed,
  strict: undefined,
  ...parts,
})

describe('every request', () => {
  test('is streamed and kept nowhere, with what grows behind everything else', () => {
    expect(rendered({ system: [text('S')] }).json).toBe(
      '{"model":"gpt-x","stream":true,"store":false,"include":["reasoning.encrypted_content"],' +
        '"max_output_tokens":1000,"instructions":"S","input":[{"role":"user","content":"hi"}]}',
    )
    expect(openaiResponses.generationPath('gpt-x')).toBe('/responses')
  })

  test('asks for sealed reasoning only where there is reasoning', () => {
    expect(rendered({}, gpts.o3).body.include).toEqual(['reasoning.encrypted_content'])
    expect(rendered({}, gpts.gpt41).body).not.toHaveProperty('include')
  })

  test('needs something to answer, and no prefill', () => {
    expect(refusedBy({ turns: [] })).toBe('messages: `messages` has nothing to answer.')
    expect(refusedBy({ turns: [user('')] })).toStartWith('messages: ')
    expect(refusedBy({ turns: [user('a'), assistant('b')] })).toContain('does not support assistant message prefill')
  })

  test('leaves out or refuses what only its own dialect knows', () => {
    const field = (refuse: boolean) => ({ unsupported: [{ field: '/logprobs', refuse }] })
    expect(rendered(field(false)).warnings).toEqual(['logprobs_dropped;/logprobs'])
    expect(refusedBy(field(true))).toStartWith('logprobs: ')
  })
})

describe('the output cap', () => {
  test('vector 49, pitfall 4: is raised to 16, and may not be 0', () => {
    const small = rendered({ outputCap: 8 })
    expect(small.body.max_output_tokens).toBe(16)
    expect(small.warnings).toEqual(['max_tokens_raised;/max_tokens'])
    expect(rendered({ outputCap: 16 }).warnings).toEqual([])
    expect(refusedBy({ outputCap: 0 })).toStartWith('max_tokens: ')
  })

  test("is the model's at most, and its default where none is given", () => {
    const target = responsesTarget({}, { maxOutputTokens: 500, defaultOutputCap: 300 })
    const clamped = rendered({ outputCap: 1000 }, target)
    expect(clamped.body.max_output_tokens).toBe(500)
    expect(clamped.warnings).toEqual(['max_tokens_clamped;/max_tokens'])
    expect(rendered({ outputCap: undefined }, target).body.max_output_tokens).toBe(300)
    expect(rendered({ outputCap: undefined }).body).not.toHaveProperty('max_output_tokens')
  })
})

describe('sampling', () => {
  const sampling = {
    temperature: 0.2,
    topP: 0.9,
    topK: 5,
    frequencyPenalty: 0,
    presencePenalty: 1,
    seed: 1,
    logitBias: '{"1":2}',
  }

  test('is temperature and top_p; the rest is left out, defaults without a word', () => {
    const { body, warnings } = rendered({ sampling }, gpts.gpt41)
    expect(body).toMatchObject({ temperature: 0.2, top_p: 0.9 })
    expect(Object.keys(body)).not.toContain('top_k')
    expect(warnings).toEqual([
      'top_k_dropped;/top_k',
      'presence_penalty_dropped;/presence_penalty',
      'seed_dropped;/seed',
      'logit_bias_dropped;/logit_bias',
    ])
  })

  test('goes only where it is taken', () => {
    const warm = { sampling: { temperature: 0.2 } }
    expect(rendered(warm, gpts.o3).warnings).toEqual(['temperature_dropped;/temperature'])
    expect(rendered({ sampling: { temperature: 1, topP: 1 } }, gpts.o3).warnings).toEqual([])
    expect(rendered(warm, gpts.gpt56).body).not.toHaveProperty('temperature')
    expect(rendered({ ...warm, reasoning: { effort: 'none' } }, gpts.gpt56).body.temperature).toBe(0.2)
  })

  test('is clamped, and one of two where both are refused', () => {
    const hot = rendered({ sampling: { temperature: 1.7 } }, { temperatureMax: 1 })
    expect(hot.body.temperature).toBe(1)
    expect(hot.warnings).toEqual(['temperature_clamped;/temperature'])
    const both = rendered({ sampling: { temperature: 0.5, topP: 0.5 } }, { temperatureOrTopP: true })
    expect(both.body).toMatchObject({ temperature: 0.5 })
    expect(both.warnings).toEqual(['top_p_dropped;/top_p'])
  })

  test('pitfall 15: stop sequences are matched in the gateway', () => {
    const { body, mapping } = rendered({ stop: ['', 'END', '\n'] }, { stopMax: 4 })
    expect(body).not.toHaveProperty('stop')
    expect(mapping.stop).toEqual(['END', '\n'])
  })
})

describe('reasoning', () => {
  const reasoningOf = (wish: object, rules: object = gpts.gpt56) => {
    const { body, warnings } = rendered({ reasoning: wish }, rules)
    return [body.reasoning, warnings]
  }

  test('vector 47: turned off is effort none, with tools too', () => {
    const tools = [
      { kind: 'function', name: 'f', description: undefined, schema: undefined, strict: undefined },
    ] as const
    const { body, warnings } = rendered({ reasoning: { mode: 'off' }, tools }, gpts.gpt56)
    expect(body.reasoning).toEqual({ effort: 'none' })
    expect(body.tools).toHaveLength(1)
    expect(warnings).toEqual([])
  })

  test('effort is the nearest the model has, never more than asked where less is there', () => {
    expect(reasoningOf({ effort: 'high' })).toEqual([{ effort: 'high' }, []])
    expect(reasoningOf({ effort: 'max' })).toEqual([{ effort: 'xhigh' }, ['effort_adjusted;/reasoning_effort']])
    expect(reasoningOf({ effort: 'minimal' }, gpts.o3)).toEqual([
      { effort: 'low' },
      ['effort_adjusted;/reasoning_effort'],
    ])
    expect(reasoningOf({ effort: 'none' }, gpts.o3)).toEqual([
      { effort: 'low' },
      ['reasoning_not_disabled;/reasoning_effort'],
    ])
    expect(reasoningOf({ effort: 'low' }, gpts.gpt41)).toEqual([undefined, ['reasoning_dropped;/reasoning_effort']])
    expect(reasoningOf({ effort: 'none' }, gpts.gpt41)).toEqual([undefined, []])
  })

  test('a budget becomes a word, and as the model sees fit is none', () => {
    expect(reasoningOf({ budgetTokens: 8192, mode: 'on' })).toEqual([{ effort: 'medium' }, []])
    expect(reasoningOf({ mode: 'adaptive' })).toEqual([undefined, []])
  })

  test('is summed up where it is to be seen', () => {
    expect(reasoningOf({ effort: 'low', visible: true })).toEqual([{ effort: 'low', summary: 'auto' }, []])
    expect(reasoningOf({ visible: true })).toEqual([{ summary: 'auto' }, []])
    expect(reasoningOf({ effort: 'low', visible: false })).toEqual([{ effort: 'low' }, []])
    expect(reasoningOf({ effort: 'none', visible: true })).toEqual([{ effort: 'none' }, []])
    expect(reasoningOf({ visible: true }, gpts.gpt41)).toEqual([undefined, []])
  })
})

describe('the form of the answer', () => {
  test('is a schema, strict where it can be', () => {
    expect(rendered({ outputFormat: schemaFormat() }).body.text).toEqual({
      format: { type: 'json_schema', name: 'output', schema: JSON.parse(closed), strict: true },
    })
    const named = rendered({ outputFormat: schemaFormat({ name: 'a b', description: 'D', strict: false }) })
    expect(named.body.text.format).toMatchObject({ name: 'a_b', description: 'D', strict: false })
    const open = rendered({ outputFormat: schemaFormat({ schema: '{"type":"object"}', strict: true }) })
    expect(open.body.text.format.strict).toBe(false)
    expect(open.warnings).toEqual(['strict_dropped;/response_format'])
  })

  test('any object needs its instructions in the input, where the provider looks for the word', () => {
    const { body } = rendered({ outputFormat: { kind: 'json-object' }, system: [text('Speak JSON.')] })
    expect(body.text).toEqual({ format: { type: 'json_object' } })
    expect(body).not.toHaveProperty('instructions')
    expect(body.input[0]).toEqual({ role: 'developer', content: 'Speak JSON.' })
  })

  test('is asked for in words where there is no other way', () => {
    const object = rendered({ outputFormat: schemaFormat() }, { jsonOutput: 'object' })
    expect(object.body.text).toEqual({ format: { type: 'json_object' } })
    expect(object.body.input[0].content).toContain(closed)
    expect(object.warnings).toEqual(['json_schema_emulated;/response_format'])
    const words = rendered({ outputFormat: { kind: 'json-object' } }, { jsonOutput: 'emulated' })
    expect(words.body).not.toHaveProperty('text')
    expect(words.body.instructions).toBe('Answer with a single JSON object.')
    expect(words.warnings).toEqual(['json_object_emulated;/response_format'])
  })

  test('stands beside the verbosity', () => {
    expect(rendered({ verbosity: 'low' }).body.text).toEqual({ verbosity: 'low' })
  })
})

describe('serving', () => {
  test('vector 57: a long id of an end user is hashed', () => {
    const long = 'u'.repeat(300)
    const hash = new Bun.CryptoHasher('sha256').update(long).digest('hex')
    expect(rendered({ endUserId: long }).body.safety_identifier).toBe(hash)
    expect(rendered({ endUserId: 'a@b.c' }).body.safety_identifier).toMatch(/^[0-9a-f]{64}$/)
    expect(rendered({ endUserId: 's' }).body.safety_identifier).toBe('s')
  })

  test('what is said about the cache goes as it was written to models that know marks', () => {
    const promptCacheOptions = { written: '{"mode" : "explicit"}', onlyMarked: true }
    const sent = rendered({ promptCacheOptions }, { cacheStyle: 'breakpoint' })
    expect([sent.body.prompt_cache_options, sent.warnings]).toEqual([{ mode: 'explicit' }, []])
    const dropped = rendered({ promptCacheOptions }, { cacheStyle: 'implicit' })
    expect(dropped.body).not.toHaveProperty('prompt_cache_options')
    expect(dropped.warnings).toEqual(['prompt_cache_options_dropped;/prompt_cache_options'])
  })

  test('the cache key and the tier go by their names', () => {
    expect(rendered({ promptCacheKey: 'k' }).body.prompt_cache_key).toBe('k')
    expect(rendered({ serviceTier: 'economy' }, { fastTier: true }).body.service_tier).toBe('flex')
    expect(rendered({ serviceTier: 'fast' }).warnings).toEqual(['service_tier_dropped;/service_tier'])
    expect(rendered({ serviceTier: 'standard' }).warnings).toEqual([])
  })
})
