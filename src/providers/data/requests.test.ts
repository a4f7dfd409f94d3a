// Every route of the built-in catalog, asked for everything at once: what its provider is known to refuse must not be
// in the body, and what each dialect needs must be.

import { describe, expect, test } from 'bun:test'
import { call, conversation, result, text, user } from '../../../test/parts/translation.ts'
import { builtInModels } from '../../catalog/data/built-in.ts'
import { anthropicMessages } from '../../dialects/anthropic-messages/index.ts'
import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { tierWordsOf } from '../../dialects/canonical/tiers.ts'
import type { DialectId, Dialects } from '../../dialects/dialect.ts'
import { gemini } from '../../dialects/gemini/index.ts'
import { openaiChat } from '../../dialects/openai-chat/index.ts'
import { openaiResponses } from '../../dialects/openai-responses/index.ts'
import { Failure } from '../../kernel/failure.ts'
import type { AskedTier } from '../../kernel/usage.ts'
import { rulesFor } from '../rules/rules-for.ts'
import { builtInProviders } from './built-in.ts'

const dialects: Dialects = {
  'openai-chat': openaiChat,
  'anthropic-messages': anthropicMessages,
  gemini,
  'openai-responses': openaiResponses,
}

const demanding = conversation({
  system: [text('Be brief.')],
  turns: [
    user('Is it raining in Oslo?'),
    { role: 'assistant', blocks: [call('call_0001', '{"city":"Oslo"}', 'weather')] },
    user(result('call_0001', 'rain')),
    user('And in Rome?'),
  ],
  tools: [{ kind: 'function', name: 'weather', description: undefined, schema: undefined, strict: undefined }],
  toolChoice: { kind: 'required' },
  parallelTools: false,
  sampling: { temperature: 1.5, topP: 0.9, topK: 40, frequencyPenalty: 0.5, seed: 7, logitBias: '{"1":2}' },
  outputCap: 1000,
  stop: ['END', 'STOP'],
  reasoning: { effort: 'medium' },
  endUserId: 'x'.repeat(150),
})

const asked = builtInModels.flatMap((model) =>
  model.routes.flatMap(({ provider: providerId, model: upstreamModel }) => {
    const provider = builtInProviders.find(({ id }) => id === providerId)
    if (provider === undefined) throw new Error(`${model.id} has a route to ${providerId}, which does not exist`)
    return provider.endpoints.map((endpoint) => [providerId, upstreamModel, endpoint, model] as const)
  }),
)

type Body = Readonly<Record<string, unknown>>

/** Limits of a dialect at every host. */
const limitsOf: Readonly<Partial<Record<DialectId, TargetRules>>> = {
  'openai-chat': { temperatureMax: 2, stopMax: 4 },
  'anthropic-messages': { temperatureMax: 1, penalties: false, seed: false, logitBias: false },
  'openai-responses': { temperatureMax: 2, stopMax: 0, penalties: false, seed: false, logitBias: false },
}

/** Members that the rules forbid and the body has. */
function offences(body: Body, rules: TargetRules): string[] {
  const found: string[] = []
  const claim = (isKept: boolean, message: string) => void (isKept || found.push(message))
  const { sampling, efforts, stopMax = 9, temperatureMax = 2 } = rules
  claim(rules.penalties !== false || !('frequency_penalty' in body), 'penalties')
  claim(rules.logitBias !== false || !('logit_bias' in body), 'logit_bias')
  claim(rules.seed !== false || !('seed' in body), 'seed')
  claim(rules.parallelFlag !== false || !('parallel_tool_calls' in body), 'parallel_tool_calls')
  claim(rules.forcedToolChoice !== false || body.tool_choice === 'auto' || isAuto(body.tool_choice), 'tool_choice')
  claim(sampling !== 'none' || !('temperature' in body || 'top_p' in body), 'sampling')
  claim(Number(body.temperature ?? 0) <= temperatureMax, 'temperature')
  claim(!(rules.temperatureOrTopP && 'temperature' in body && 'top_p' in body), 'temperature and top_p')
  const stops = (body.stop ?? body.stop_sequences ?? []) as readonly string[]
  claim(stops.length <= stopMax, 'stop')
  const { reasoning_effort: effort = recordOf(body.reasoning).effort } = body
  claim(effort === undefined || efforts === undefined || (efforts as readonly unknown[]).includes(effort), 'effort')
  return found
}

function isAuto(choice: unknown): boolean {
  return typeof choice === 'object' && choice !== null && 'type' in choice && choice.type === 'auto'
}

function capNameOf(dialect: DialectId, { outputCapName }: TargetRules): string | undefined {
  if (dialect === 'openai-chat') return outputCapName
  return dialect === 'openai-responses' ? 'max_output_tokens' : 'max_tokens'
}

/** There the model is in the path, and the settings are in a separate object. */
function checkGemini(body: Body, { efforts = [], thinking = [], penalties }: TargetRules): void {
  const settings = recordOf(body.generationConfig)
  const { thinkingLevel, thinkingBudget } = recordOf(settings.thinkingConfig)
  expect(body.model).toBeUndefined()
  expect(settings.maxOutputTokens).toBe(1000)
  expect(settings.stopSequences).toEqual(['END', 'STOP'])
  expect('frequencyPenalty' in settings).toBe(penalties !== false)
  // Effort is set by a word or by a number, never by both.
  expect(efforts.length > 0 ? efforts : [undefined]).toContain(thinkingLevel as never)
  expect(thinkingBudget).toBe(thinking.includes('enabled') ? 8192 : undefined)
}

function recordOf(value: unknown): Body {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

describe('a request to', () => {
  test.each(asked)('%s for %s is one it takes', (providerId, upstreamModel, endpoint, model) => {
    const { dialect, rules: endpointRules, modelRules } = endpoint
    const rules = rulesFor({ dialect, upstreamModel, endpointRules, modelRules, tags: model.tags ?? [] })
    const rendered = dialects[dialect].translation.renderRequest(demanding, {
      upstreamModel,
      issuer: `${providerId}/${dialect}`,
      rules,
      defaultOutputCap: model.default_max_tokens,
      maxOutputTokens: model.max_output_tokens,
    })
    if (rendered instanceof Failure) throw new Error(rendered.message)
    const body = JSON.parse(new TextDecoder().decode(rendered.body)) as Body
    if (dialect === 'gemini') return checkGemini(body, rules)
    expect(body.model).toBe(upstreamModel)
    expect(offences(body, { ...limitsOf[dialect], ...rules })).toEqual([])
    const caps = Object.entries(body).filter(([name]) => name.startsWith('max_'))
    expect(caps).toEqual([[String(capNameOf(dialect, rules)), 1000]])
    const { endUserIdMax = 64 } = rules
    if (dialect === 'anthropic-messages') expect(rendered.headers['anthropic-version']).toBe('2023-06-01')
    else if (rules.endUserId === false) expect([body.user, body.safety_identifier]).toEqual([undefined, undefined])
    else expect(String(body.user ?? body.safety_identifier).length).toBeLessThanOrEqual(endUserIdMax)
  })

  test('each provider with models is among them', () => {
    const served = new Set(asked.map(([providerId]) => providerId))
    const without = builtInProviders.map(({ id }) => id).filter((id) => !served.has(id))
    // Deployments have the names their owner gives them; and calls that cost a fee besides their tokens.
    expect(without).toEqual(['azure', 'perplexity'])
  })
})

describe('service tiers', () => {
  const words: readonly (readonly [provider: string, model: string, tier: AskedTier, word: string | undefined])[] = [
    ['openai', 'gpt-6.1-sol', 'flex', 'flex'],
    ['openai', 'gpt-6.1-sol', 'ultrafast', 'ultrafast'],
    ['anthropic', 'claude-opus-5', 'priority', 'fast'],
    ['anthropic', 'claude-opus-5', 'flex', undefined],
    ['google', 'gemini-3.6-flash', 'priority', 'priority'],
    ['google-vertex', 'gemini-3.6-flash', 'flex', 'flex'],
    ['google-vertex', 'gemini-3.6-flash', 'scale', 'dedicated'],
    ['openrouter', 'openai/gpt-6.1-sol', 'flex', 'flex'],
    ['openrouter', 'google/gemini-3.6-flash', 'priority', 'priority'],
    // They would serve it as usual, or refuse it.
    ['openrouter', 'anthropic/claude-opus-5', 'priority', undefined],
    ['amazon-bedrock', 'global.anthropic.claude-opus-5', 'priority', undefined],
    ['google-vertex', 'claude-opus-5', 'priority', undefined],
  ]
  test.each(words)('%s is sent for %s in %s: %s', (id, upstreamModel, tier, word) => {
    const endpoints = builtInProviders.find((provider) => provider.id === id)?.endpoints ?? []
    const serving = endpoints.filter(({ models }) => models?.test(upstreamModel) ?? true)
    expect(serving.length).toBeGreaterThan(0)
    // The first one serves models whose caller speaks none of them.
    const sent = serving.map(({ dialect, rules, modelRules }) => {
      const found = rulesFor({ dialect, upstreamModel, endpointRules: rules, modelRules })
      return tierWordsOf(found, dialects[dialect].hostTiers)[tier]
    })
    expect(sent[0]).toBe(word)
    for (const other of sent) if (word === undefined) expect(other).toBeUndefined()
  })
})
