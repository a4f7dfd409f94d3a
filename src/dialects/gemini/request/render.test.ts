import { describe, expect, test } from 'bun:test'
import { geminis, geminiTarget, refusedBy, rendered } from '../../../../test/parts/gemini.ts'
import { text, user } from '../../../../test/parts/translation.ts'
import type { Conversation, ReasoningSettings } from '../../canonical/conversation.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'

const config = (parts: Partial<Conversation>, rules: TargetRules = geminis.g3) => {
  const { body, warnings } = rendered({ outputCap: undefined, ...parts }, rules)
  return { config: body.generationConfig, warnings }
}
const thinking = (reasoning: ReasoningSettings, rules: TargetRules = geminis.g3) => {
  const { config: found, warnings } = config({ reasoning }, rules)
  return [found?.thinkingConfig, ...warnings]
}

describe('thinking by level', () => {
  test('has the word that was asked for, and shows its thoughts', () => {
    expect(thinking({ effort: 'low' })).toEqual([{ thinkingLevel: 'low', includeThoughts: true }])
    expect(thinking({ effort: 'high', visible: false })).toEqual([{ thinkingLevel: 'high' }])
    expect(thinking({ mode: 'adaptive' })).toEqual([{ includeThoughts: true }])
    expect(thinking({ budgetTokens: 5000, mode: 'on' })).toEqual([{ thinkingLevel: 'medium', includeThoughts: true }])
  })

  test('goes no higher than it can, with a warning', () => {
    for (const effort of ['xhigh', 'max'] as const) {
      expect(thinking({ effort })).toEqual([
        { thinkingLevel: 'high', includeThoughts: true },
        'effort_adjusted;/reasoning_effort',
      ])
    }
    expect(thinking({ effort: 'minimal' })[0]).toMatchObject({ thinkingLevel: 'low' })
    expect(thinking({ effort: 'minimal' }, { efforts: ['minimal', 'low', 'high'] })).toEqual([
      { thinkingLevel: 'minimal', includeThoughts: true },
    ])
    expect(thinking({ effort: 'medium' }, { efforts: ['low', 'high'] })[0]).toMatchObject({ thinkingLevel: 'low' })
  })

  test('cannot be turned off: the least there is, with a warning', () => {
    for (const wish of [{ effort: 'none' }, { mode: 'off' }, { budgetTokens: 0 }] as const) {
      expect(thinking(wish)).toEqual([{ thinkingLevel: 'low' }, 'reasoning_not_disabled;/reasoning_effort'])
    }
  })

  test('is not sent if nothing was requested', () => {
    expect(config({}).config).toBeUndefined()
  })
})

describe('thinking by budget', () => {
  test('has the tokens that were asked for, within what the model takes', () => {
    expect(thinking({ budgetTokens: 5000 }, geminis.flash25)).toEqual([{ thinkingBudget: 5000, includeThoughts: true }])
    expect(thinking({ budgetTokens: 40_000 }, geminis.flash25)).toEqual([
      { thinkingBudget: 24_576, includeThoughts: true },
      'reasoning_budget_clamped;/reasoning_effort',
    ])
    expect(thinking({ budgetTokens: 30_000 }, geminis.pro25)).toEqual([
      { thinkingBudget: 30_000, includeThoughts: true },
    ])
    expect(thinking({ effort: 'medium' }, geminis.pro25)).toEqual([{ thinkingBudget: 8192, includeThoughts: true }])
    expect(thinking({ effort: 'max' }, geminis.pro25)).toEqual([{ thinkingBudget: 32_768, includeThoughts: true }])
  })

  test('is −1 where the model is to see for itself', () => {
    expect(thinking({ mode: 'adaptive' }, geminis.flash25)).toEqual([{ thinkingBudget: -1, includeThoughts: true }])
  })

  test('is 0 for off, and 128 with a warning where that cannot be', () => {
    expect(thinking({ effort: 'none' }, geminis.flash25)).toEqual([{ thinkingBudget: 0 }])
    expect(thinking({ effort: 'none' }, geminis.pro25)).toEqual([
      { thinkingBudget: 128 },
      'reasoning_not_disabled;/reasoning_effort',
    ])
  })

  test('is dropped with a warning by a model that does not think', () => {
    expect(thinking({ effort: 'high' }, geminis.g20)).toEqual([undefined, 'reasoning_dropped;/reasoning_effort'])
    expect(thinking({ effort: 'none' }, geminis.g20)).toEqual([undefined])
  })
})

describe('sampling', () => {
  const sampling = { temperature: 0.5, topP: 0.9, topK: 40, presencePenalty: 1, frequencyPenalty: -1, seed: 7 }

  test('is passed on', () => {
    expect(config({ sampling })).toEqual({ config: sampling, warnings: [] })
  })

  test('is left out, with warnings, where the target refuses it', () => {
    expect(config({ sampling }, geminis.flash25)).toEqual({
      config: { temperature: 0.5, topP: 0.9, topK: 40, seed: 7 },
      warnings: ['presence_penalty_dropped;/presence_penalty', 'frequency_penalty_dropped;/frequency_penalty'],
    })
    expect(config({ sampling: { temperature: 1, topP: 0.5, presencePenalty: 0 } }, { sampling: 'none' })).toEqual({
      config: undefined,
      warnings: ['top_p_dropped;/top_p'],
    })
  })

  test('omits what the provider does not support, with a warning', () => {
    expect(config({ sampling: { logitBias: '{"1":5}', seed: 2 ** 40 } }).warnings).toEqual([
      'logit_bias_dropped;/logit_bias',
      'seed_dropped;/seed',
    ])
  })

  test('has no temperature above the highest', () => {
    expect(config({ sampling: { temperature: 1.5 } }, { temperatureMax: 1 })).toEqual({
      config: { temperature: 1 },
      warnings: ['temperature_clamped;/temperature'],
    })
  })
})

describe('the rest', () => {
  test('the cap is that of the caller, of the model, or its default', () => {
    const capped = (outputCap: number | undefined) => {
      const target = geminiTarget({}, { defaultOutputCap: 100, maxOutputTokens: 500 })
      const { body, warnings } = rendered({ outputCap }, target)
      return [body.generationConfig.maxOutputTokens, ...warnings]
    }
    expect(capped(50)).toEqual([50])
    expect(capped(undefined)).toEqual([100])
    expect(capped(900)).toEqual([500, 'max_tokens_clamped;/max_tokens'])
    expect(refusedBy({ outputCap: 0 })).toContain('must be at least 1')
  })

  test('five stop sequences are sent, more are all matched here', () => {
    const five = ['a', 'b', 'c', 'd', 'e']
    expect(rendered({ stop: ['', ...five] }).body.generationConfig.stopSequences).toEqual(five)
    expect(rendered({ stop: five }).mapping.stop).toEqual([])
    const six = rendered({ stop: [...five, 'f'] })
    expect(six.body.generationConfig).not.toHaveProperty('stopSequences')
    expect(six.mapping.stop).toEqual([...five, 'f'])
  })

  test('a tier goes only where tiers are sold', () => {
    expect(rendered({ serviceTier: 'flex' }).body.serviceTier).toBe('flex')
    expect(rendered({ serviceTier: 'priority' }).body.serviceTier).toBe('priority')
    for (const [serviceTier, rules] of [
      ['scale', {}],
      ['priority', { serviceTiers: { flex: 'flex' } }],
      ['flex', { serviceTiers: {} }],
    ] as const) {
      const dropped = rendered({ serviceTier }, rules)
      expect(dropped.body).not.toHaveProperty('serviceTier')
      expect(dropped.warnings).toEqual(['service_tier_dropped;/service_tier'])
    }
    expect(rendered({ serviceTier: 'standard' }).warnings).toEqual([])
  })

  test('cache marks are left out, each place is named, and automatic caching happens anyway', () => {
    const marked = { ...text('a'), cacheMark: { life: 'short' } as const }
    const { json, warnings } = rendered({
      system: [marked],
      turns: [user(marked, marked)],
      automaticCache: { life: 'short' },
    })
    expect(json).not.toMatch(/cache/i)
    expect(warnings).toEqual(['cache_mark_dropped;/system', 'cache_mark_dropped;/messages'])
  })

  test('hints without a field are warnings', () => {
    expect(rendered({ verbosity: 'low', promptCacheKey: 'k', endUserId: 'u' }).warnings).toEqual([
      'verbosity_dropped;/verbosity',
      'prompt_cache_key_dropped;/prompt_cache_key',
      'end_user_id_dropped;/user',
    ])
  })

  test('a cache that keeps only what is marked cannot be asked for', () => {
    const warned = (onlyMarked: boolean) => rendered({ promptCacheOptions: { written: '{}', onlyMarked } }).warnings
    expect(warned(true)).toEqual(['prompt_cache_options_dropped;/prompt_cache_options'])
    expect(warned(false)).toEqual([])
  })

  test('unsupported fields cause warnings or refusals', () => {
    expect(rendered({ unsupported: [{ field: '/store', refuse: false }] }).warnings).toEqual(['store_dropped;/store'])
    expect(refusedBy({ unsupported: [{ field: '/logprobs', refuse: true }] })).toContain('logprobs')
  })
})
