import { describe, expect, test } from 'bun:test'
import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import type { DialectId } from '../../dialects/dialect.ts'
import { rulesFor } from './rules-for.ts'

function facts(upstreamModel: string, dialect: DialectId = 'openai-chat'): TargetRules {
  return rulesFor({ dialect, upstreamModel, endpointRules: undefined })
}

describe('reasoning that must be sent back', () => {
  test('is wanted by its creators under their names', () => {
    expect(facts('deepseek-v4-pro').reasoningEcho).toEqual({ field: 'reasoning_content', when: 'always' })
    expect(facts('kimi-k2.6').reasoningEcho).toEqual({ field: 'reasoning_content', when: 'tool-turns' })
  })

  test('is stripped for everybody else, since strict hosts refuse it', () => {
    for (const name of ['deepseek-ai/DeepSeek-V4', 'moonshotai/kimi-k2.6', 'deepseek-reasoner', 'deepseek-r1:32b']) {
      expect(facts(name).reasoningEcho).toBeUndefined()
    }
  })
})

describe('efforts', () => {
  test.each([
    ['deepseek-v4-flash', ['low', 'high', 'max'], true],
    ['kimi-k3', ['low', 'high', 'max'], true],
    ['kimi-k2.5', [], true],
    ['openai/gpt-oss-120b', ['low', 'medium', 'high'], true],
    ['gpt-oss:20b', ['low', 'medium', 'high'], true],
    ['mistral-small-2603', ['none', 'high'], false],
    ['mistral-medium-3-5', ['none', 'high'], false],
    ['mistral-large-2512', [], undefined],
    ['magistral-medium-2509', [], true],
    ['grok-3-mini', ['low', 'high'], true],
    ['grok-3', [], false],
    ['grok-4-0709', [], true],
    ['grok-4-1-fast-reasoning', [], true],
    ['grok-4-1-fast-non-reasoning', [], false],
    ['grok-4.20-0309-reasoning', [], true],
    ['grok-4.3', ['none', 'low', 'medium', 'high'], true],
    ['x-ai/grok-4.5', ['low', 'medium', 'high'], true],
    ['deepseek-flash', ['low', 'high', 'max'], true],
    ['kimi-k3.1-pro', ['low', 'high', 'max'], true],
    ['kimi-k2.6', [], true],
    ['glm-5.2', ['none', 'high', 'max'], true],
    ['zai-org/GLM-5.3', ['low', 'high', 'max'], true],
    ['accounts/fireworks/models/glm-5p3-flash', ['low', 'high', 'max'], true],
    ['zai-glm-5-3', ['low', 'high', 'max'], true],
    ['qwen-3.8-27b', ['none', 'low', 'medium', 'high'], true],
    ['qwen/qwen3.8-27b', ['none', 'low', 'medium', 'high'], true],
    ['mistral-large-4', ['low', 'medium', 'high'], true],
  ] as const)('of %s', (model, efforts, thinksByDefault) => {
    expect(facts(model)).toMatchObject({ efforts: [...efforts] })
    expect(facts(model).thinksByDefault).toBe(thinksByDefault)
  })
})

describe('the Mistral family', () => {
  test.each([
    'mistral-large-latest',
    'mistralai/Mistral-Small-3.2-24B-Instruct-2506',
    'open-mixtral-8x22b',
    'ministral-3b-latest',
    'codestral-2508',
    'devstral-medium-latest',
    'mistral:7b',
  ])('%s wants nine letters or digits, and an answer behind a tool result', (model) => {
    const { toolIdPattern, toolIdMax, assistantAfterTool } = facts(model)
    expect([toolIdMax, assistantAfterTool]).toEqual([9, true])
    const fits = ['abc123XYZ', 'call_1234', 'abc12345', 'abc123XYZ0'].map((id) => toolIdPattern?.test(id))
    expect(fits).toEqual([true, false, false, false])
  })

  test('is not every name with a tral in it', () => {
    expect(facts('central-7b').assistantAfterTool).toBeUndefined()
    expect(facts('nous-hermes-mistral').assistantAfterTool).toBeUndefined()
  })
})

describe('reasoning in tags', () => {
  test.each(
    'deepseek-r1:32b deepseek-ai/DeepSeek-R1-0528 qwq-32b Qwen/Qwen3-8B zai-org/GLM-4.6 MiniMax-M2.1'.split(' '),
  )('is what %s writes', (model) => expect(facts(model).thinkTags).toBe(true))
  test.each(['Qwen/Qwen3-235B-A22B-Instruct-2507', 'qwen3-coder-plus', 'llama-3.3-70b', 'deepseek-v4-pro'])(
    'is not what %s writes',
    (model) => expect(facts(model).thinkTags).toBeUndefined(),
  )
})

test('reasoning Grok models take neither penalties nor stop sequences, the others both', () => {
  expect(facts('grok-4.3')).toMatchObject({ penalties: false, stopMax: 0 })
  expect(facts('grok-4-fast-non-reasoning')).toMatchObject({ penalties: true, stopMax: 4 })
})

test('DeepSeek in thinking mode takes no forced tool, in either dialect of its API', () => {
  expect(facts('deepseek-v4-pro').forcedToolChoice).toBe(false)
  expect(facts('deepseek-v4-pro', 'anthropic-messages')).toMatchObject({
    forcedToolChoice: false,
    thinking: ['enabled', 'disabled'],
    efforts: ['low', 'high', 'max'],
    thinksByDefault: true,
  })
})
