import { describe, expect, test } from 'bun:test'
import { gpts, refusedBy, rendered } from '../../../../test/parts/responses.ts'
import { assistant, text, user } from '../../../../test/parts/translation.ts'
import { openaiResponses } from '../index.ts'

describe('every request', () => {
  test('is streamed and kept nowhere, with what grows behind everything else', () => {
    expect(rendered({ system: [text('S')] }).json).toBe(
      '{"model":"gpt-x","stream":true,"store":false,"include":["reasoning.encrypted_content"],' +
        '"max_output_tokens":1000,"instructions":"S","input":[{"role":"user","content":"hi"}]}',
    )
    expect(openaiResponses.generationPath('gpt-x', true)).toBe('/responses')
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

  test('pitfall 15: stop sequences are matched in the gateway', () => {
    const { body, mapping } = rendered({ stop: ['', 'END', '\n'] }, { stopMax: 4 })
    expect(body).not.toHaveProperty('stop')
    expect(mapping.stop).toEqual(['END', '\n'])
  })
})

describe('reasoning', () => {
  const reasoningOf = (reasoning: object, rules: object = gpts.gpt56) => {
    const { body, warnings } = rendered({ reasoning }, rules)
    return [body.reasoning, warnings]
  }

  test('vector 47: turned off is effort none, with tools too', () => {
    const tools = [{ kind: 'function', name: 'f' }] as const
    const { body, warnings } = rendered({ reasoning: { mode: 'off' }, tools }, gpts.gpt56)
    expect(body.reasoning).toEqual({ effort: 'none' })
    expect(body.tools).toHaveLength(1)
    expect(warnings).toEqual([])
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
  test('any object needs its instructions in the input, where the provider looks for the word', () => {
    const { body } = rendered({ outputFormat: { kind: 'json-object' }, system: [text('Speak JSON.')] })
    expect(body.text).toEqual({ format: { type: 'json_object' } })
    expect(body).not.toHaveProperty('instructions')
    expect(body.input[0]).toEqual({ role: 'developer', content: 'Speak JSON.' })
  })

  test('stands beside the verbosity', () => {
    expect(rendered({ verbosity: 'low' }).body.text).toEqual({ verbosity: 'low' })
  })
})
