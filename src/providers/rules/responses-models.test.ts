import { expect, test } from 'bun:test'
import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { rulesFor } from './rules-for.ts'

function facts(upstreamModel: string): TargetRules {
  return rulesFor({ dialect: 'openai-responses', upstreamModel, endpointRules: undefined })
}

test.each(['gpt-4o', 'gpt-4.1', 'gpt-5-chat-latest'])('%s has no dial, or it would be asked for reasoning', (model) => {
  expect(facts(model)).toMatchObject({ efforts: [], thinksByDefault: false })
})

test('what a model is asked to think is the same in both dialects', () => {
  expect(facts('gpt-5.6')).toMatchObject({
    efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    thinksByDefault: true,
    sampling: 'without-reasoning',
    cacheStyle: 'breakpoint',
  })
  expect(facts('gpt-5-pro').efforts).toEqual(['high'])
})

test('tools and reasoning go together here, whatever the other dialect says', () => {
  expect(rulesFor({ dialect: 'openai-chat', upstreamModel: 'gpt-5.6', endpointRules: undefined })).toMatchObject({
    toolsWithReasoning: false,
    outputCapName: 'max_completion_tokens',
  })
  expect(facts('gpt-5.6').toolsWithReasoning).toBeUndefined()
  expect(facts('gpt-5.6').outputCapName).toBeUndefined()
  expect(facts('o3').parallelFlag).toBeUndefined()
})
