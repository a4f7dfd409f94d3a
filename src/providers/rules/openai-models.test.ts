import { describe, expect, test } from 'bun:test'
import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { rulesFor } from './rules-for.ts'

function facts(upstreamModel: string): TargetRules {
  return rulesFor({ dialect: 'openai-chat', upstreamModel, endpointRules: undefined })
}

// Family · sampling · efforts · reasons when nothing is said · function tools while it reasons.
const table = `
  gpt-4o                  | all               |                               | no  | yes
  gpt-4o-mini-2024-07-18  | all               |                               | no  | yes
  gpt-4.1                 | all               |                               | no  | yes
  gpt-4-turbo             | all               |                               | no  | yes
  o1                      | none              | low medium high               | yes | yes
  o3                      | none              | low medium high               | yes | yes
  o3-mini                 | none              | low medium high               | yes | yes
  o4-mini                 | none              | low medium high               | yes | yes
  o4-mini-2025-04-16      | none              | low medium high               | yes | yes
  gpt-5                   | none              | minimal low medium high       | yes | yes
  gpt-5-2025-08-07        | none              | minimal low medium high       | yes | yes
  gpt-5-mini              | none              | minimal low medium high       | yes | yes
  gpt-5-nano              | none              | minimal low medium high       | yes | yes
  gpt-5-pro               | none              | high                          | yes | yes
  gpt-5-chat-latest       | all               |                               | no  | yes
  gpt-5.1                 | without-reasoning | none low medium high          | no  | yes
  gpt-5.1-2025-11-13      | without-reasoning | none low medium high          | no  | yes
  gpt-5.1-chat-latest     | none              | medium                        | yes | yes
  gpt-5.2                 | without-reasoning | none low medium high xhigh    | no  | yes
  gpt-5.2-chat-latest     | none              | medium                        | yes | yes
  gpt-5.3                 | without-reasoning | none low medium high xhigh    | no  | yes
  gpt-5.4                 | without-reasoning | none low medium high xhigh    | no  | no
  gpt-5.4-mini            | without-reasoning | none low medium high xhigh    | no  | no
  gpt-5.5                 | without-reasoning | none low medium high xhigh    | yes | no
  gpt-5.6                 | without-reasoning | none low medium high xhigh    | yes | no
  gpt-5.6-2026-07-09      | without-reasoning | none low medium high xhigh    | yes | no
  gpt-5.6-luna            | without-reasoning | none low medium high xhigh    | yes | no
  gpt-6-sol               | without-reasoning | none low medium high xhigh max | yes | no
  gpt-6-luna              | without-reasoning | none low medium high xhigh max | yes | no
  gpt-6.1-terra           | without-reasoning | none low medium high xhigh max | yes | no
  gpt-6-astra             | none              | low medium high xhigh max     | yes | yes
  gpt-6.1-sol             | none              | low medium high xhigh max     | yes | yes
`
const rows = table
  .trim()
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))

describe('the families', () => {
  test.each(rows)('%s', (model, ...wanted) => {
    const rules = facts(model)
    const found = [
      rules.sampling,
      rules.efforts?.join(' '),
      rules.thinksByDefault ? 'yes' : 'no',
      rules.toolsWithReasoning === false ? 'no' : 'yes',
    ]
    expect(found).toEqual(wanted as typeof found)
  })

  test.each(rows.filter(([, sampling]) => sampling !== 'all'))(
    '%s reasons, and takes neither penalties, biases, stop sequences nor max_tokens',
    (model) => {
      expect(facts(model)).toMatchObject({
        penalties: false,
        logitBias: false,
        stopMax: 0,
        outputCapName: 'max_completion_tokens',
        systemRole: 'developer',
      })
    },
  )

  test.each(['gpt-4o', 'gpt-4.1-mini', 'gpt-4-turbo', 'gpt-3.5-turbo', 'gpt-5-chat-latest'])(
    '%s does not, and takes them all',
    (model) => {
      const { penalties, logitBias, stopMax = 4, systemRole = 'system' } = facts(model)
      expect([penalties !== false, logitBias !== false, stopMax, systemRole]).toEqual([true, true, 4, 'system'])
    },
  )
})

test.each(rows)('%s takes a system message anywhere and 128 tools, at a reseller too', (model) => {
  const shared = { midSystem: true, toolsMax: 128 }
  expect([facts(model), facts(`openai/${model}`)]).toMatchObject([shared, shared])
})

test('other models have neither, not even with a similar name', () => {
  for (const model of ['openai/gpt-oss-120b', 'Qwen/Qwen3.6-27B', 'gemma-3-27b-it', 'any']) {
    expect([facts(model).midSystem, facts(model).toolsMax]).toEqual([undefined, undefined])
  }
})

test('only models of the o series refuse the flag for one call at a time', () => {
  expect(['o1', 'o3', 'o3-mini', 'o4-mini-2025-04-16'].map((model) => facts(model).parallelFlag)).toEqual(
    new Array(4).fill(false),
  )
  expect(['gpt-4o', 'gpt-5', 'gpt-6-sol'].map((model) => facts(model).parallelFlag)).toEqual(
    new Array(3).fill(undefined),
  )
})

describe('output by schema, images and documents', () => {
  test.each([
    ['gpt-3.5-turbo', 'object', false, false],
    ['gpt-4-turbo', 'object', true, false],
    ['gpt-4o-2024-05-13', 'object', true, true],
    ['gpt-4o-2024-08-06', 'schema', true, true],
    ['gpt-4.1', 'schema', true, true],
    ['o3-mini', 'schema', false, false],
    ['o3', 'schema', true, true],
    ['gpt-5-mini', 'schema', true, true],
    ['gpt-6.1-sol', 'schema', true, true],
  ])('%s: %s, images %s, documents %s', (model, jsonOutput, images, documents) => {
    const rules = facts(model)
    expect(rules.jsonOutput ?? 'schema').toBe(jsonOutput as 'schema' | 'object')
    expect(rules.images !== false).toBe(images)
    expect(rules.documents === true).toBe(documents)
  })
})

describe('features that only OpenAI itself adds to its models', () => {
  test('is assumed under the bare name, tuned or not', () => {
    expect(facts('gpt-5.6')).toMatchObject({ customTools: true, allowedTools: true, cacheStyle: 'breakpoint' })
    expect(facts('gpt-5.5')).toMatchObject({ customTools: true, allowedTools: true, cacheStyle: 'implicit' })
    expect(facts('gpt-6-astra').cacheStyle).toBe('breakpoint')
    expect(facts('ft:gpt-4o-mini-2024-07-18:acme::abc').documents).toBe(true)
    expect(facts('o3').customTools).toBeUndefined()
    expect(facts('gpt-5-chat-latest')).toMatchObject({ customTools: false, allowedTools: false })
  })

  test('is not at a reseller, whose model has the same limits all the same', () => {
    const { customTools, allowedTools, cacheStyle, systemRole, documents, ...limits } = facts('openai/gpt-5.6-sol')
    expect([customTools, allowedTools, cacheStyle, systemRole, documents]).toEqual(new Array(5).fill(undefined))
    expect(limits).toMatchObject({ sampling: 'without-reasoning', stopMax: 0, toolsWithReasoning: false })
  })
})

describe('names that only look alike', () => {
  const defaults = facts('acme-large-v1')
  test.each(['gpt-50', 'gpt-j-6b', 'foo1', 'yolo3', 'o', 'octo3', 'my-gpt-5', 'gpt4o', 'chatgpt'])(
    '%s is of no family here',
    (model) => {
      expect(facts(model)).toEqual(defaults)
    },
  )

  test('a version that is not in the table yet has what all reasoning models share', () => {
    const rules = facts('gpt-7.3-nova')
    expect(rules).toMatchObject({ sampling: 'none', outputCapName: 'max_completion_tokens', thinksByDefault: true })
    expect(rules.efforts).toBeUndefined()
    expect(facts('gpt-5.10')).toMatchObject({ sampling: 'none', cacheStyle: 'breakpoint' })
    expect(facts('gpt-5.10').efforts).toBeUndefined()
  })
})

function responsesFacts(upstreamModel: string): TargetRules {
  return rulesFor({ dialect: 'openai-responses', upstreamModel, endpointRules: undefined })
}

test.each(['gpt-4o', 'gpt-4.1', 'gpt-5-chat-latest'])('%s has no dial, or it would be asked for reasoning', (model) => {
  expect(responsesFacts(model)).toMatchObject({ efforts: [], thinksByDefault: false })
})

test('requests the same reasoning from a model in both dialects', () => {
  expect(responsesFacts('gpt-5.6')).toMatchObject({
    efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    thinksByDefault: true,
    sampling: 'without-reasoning',
    cacheStyle: 'breakpoint',
  })
  expect(responsesFacts('gpt-5-pro').efforts).toEqual(['high'])
})

test('tools and reasoning go together here, whatever the other dialect says', () => {
  expect(rulesFor({ dialect: 'openai-chat', upstreamModel: 'gpt-5.6', endpointRules: undefined })).toMatchObject({
    toolsWithReasoning: false,
    outputCapName: 'max_completion_tokens',
  })
  expect(responsesFacts('gpt-5.6').toolsWithReasoning).toBeUndefined()
  expect(responsesFacts('gpt-5.6').outputCapName).toBeUndefined()
  expect(responsesFacts('o3').parallelFlag).toBeUndefined()
})
