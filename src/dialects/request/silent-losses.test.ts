// Settings that have no place in another dialect: each is named in a warning, which strict callers get as a refusal.

import { expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { anthropicMessages } from '../anthropic-messages/index.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import type { Dialect, UpstreamDialect } from '../dialect.ts'
import { gemini } from '../gemini/index.ts'
import { openaiChat } from '../openai-chat/index.ts'
import { openaiResponses } from '../openai-responses/index.ts'

const cachesAtMarks: TargetRules = { cacheStyle: 'breakpoint' }

function translate(from: Dialect, body: object, to: UpstreamDialect, rules: TargetRules = {}) {
  const sent = from.readEnvelope(
    Buffer.from(JSON.stringify(body)),
    new Headers({ 'anthropic-version': '2023-06-01' }),
    '/models/a:generateContent',
  )
  if (sent instanceof Failure) throw new Error(sent.message)
  const parsed = from.translation.parseRequest(sent)
  if (parsed instanceof Failure) throw new Error(parsed.message)
  const target = { upstreamModel: 'up', issuer: 'p/d/up', rules, defaultOutputCap: 100, maxOutputTokens: undefined }
  const rendered = to.translation.renderRequest(parsed.conversation, target)
  if (rendered instanceof Failure) throw new Error(rendered.message)
  const warnings = [...parsed.warnings, ...rendered.warnings].map(({ code, field }) => `${code} ${field}`)
  return { warnings, body: JSON.parse(Buffer.from(rendered.body).toString()) }
}

const responses = (more: object) => ({ model: 'a/b', input: 'hi', ...more })
const chat = (more: object) => ({ model: 'a/b', messages: [{ role: 'user', content: 'hi' }], ...more })
const messages = (cache_control: object, more: object = {}) => ({
  ...{ model: 'a/b', max_tokens: 50, ...more },
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control }] }],
})
const declared = (more: object, mode?: string) => ({
  contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
  tools: [{ functionDeclarations: [{ name: 'look', parameters: { type: 'OBJECT', properties: {} }, ...more }] }],
  ...(mode && { toolConfig: { functionCallingConfig: { mode } } }),
})
const hour = { type: 'ephemeral', ttl: '1h' }
const mode = '/toolConfig/functionCallingConfig/mode'

test.each<[name: string, from: Dialect, body: object, to: UpstreamDialect, rules: TargetRules, warnings: string[]]>([
  [
    'how long a prompt cache is kept, from Responses',
    ...([openaiResponses, responses({ prompt_cache_retention: '24h' }), openaiChat, {}] as const),
    ['prompt_cache_retention_dropped /prompt_cache_retention'],
  ],
  [
    'the default of how long a prompt cache is kept',
    ...([openaiResponses, responses({ prompt_cache_retention: 'in_memory' }), openaiChat, {}] as const),
    [],
  ],
  [
    'the behavior of a function',
    ...([gemini, declared({ behavior: 'NON_BLOCKING' }), openaiChat, {}] as const),
    ['behavior_dropped /tools/0/functionDeclarations/0/behavior'],
  ],
  ['the usual behavior', gemini, declared({ behavior: 'BLOCKING' }), openaiChat, {}, []],
  [
    'the schema of what a function returns',
    ...([gemini, declared({ response: { type: 'STRING' } }), anthropicMessages, {}] as const),
    ['response_dropped /tools/0/functionDeclarations/0/response'],
  ],
  [
    'the JSON schema of what a function returns',
    ...([gemini, declared({ responseJsonSchema: { type: 'string' } }), openaiResponses, {}] as const),
    ['responseJsonSchema_dropped /tools/0/functionDeclarations/0/responseJsonSchema'],
  ],
  [
    'calls that must match their schema',
    ...([gemini, declared({}, 'VALIDATED'), openaiChat, {}] as const),
    [`tool_choice_relaxed ${mode}`],
  ],
  ['calls by choice of the model', gemini, declared({}, 'AUTO'), openaiChat, {}, []],
  [
    'a cache mark for an hour',
    ...([anthropicMessages, messages(hour), openaiChat, cachesAtMarks] as const),
    ['cache_life_shortened /messages/0/content/0/cache_control/ttl'],
  ],
  ['a cache mark for five minutes', anthropicMessages, messages({ type: 'ephemeral' }), openaiChat, cachesAtMarks, []],
  [
    'an hour for everything',
    ...([anthropicMessages, { ...chat({ cache_control: hour }), max_tokens: 50 }, openaiChat, cachesAtMarks] as const),
    ['cache_life_shortened /cache_control/ttl'],
  ],
  [
    'a summary of the reasoning, from Responses to Chat',
    ...([openaiResponses, responses({ reasoning: { summary: 'detailed' } }), openaiChat, {}] as const),
    ['summary_dropped /reasoning/summary'],
  ],
  [
    'no summary of the reasoning',
    ...([openaiResponses, responses({ reasoning: { effort: 'low', summary: 'none' } }), openaiChat, {}] as const),
    [],
  ],
  [
    'a summary of the reasoning, from Chat to Chat',
    ...([openaiChat, chat({ reasoning: { summary: 'auto' } }), openaiChat, {}] as const),
    ['summary_dropped /reasoning/summary'],
  ],
])('%s', (_, from, body, to, rules, warnings) => {
  expect(translate(from, body, to, rules).warnings).toEqual(warnings)
})

test.each([openaiResponses, openaiChat])('a summary of the reasoning reaches a provider that has one', (from) => {
  const members = { reasoning: { effort: 'low', summary: 'detailed' } }
  const body = from === openaiChat ? chat(members) : responses(members)
  const toResponses = translate(from, body, openaiResponses)
  expect([toResponses.warnings, toResponses.body.reasoning]).toEqual([[], { effort: 'low', summary: 'detailed' }])
  const toGemini = translate(from, body, gemini)
  expect([toGemini.warnings, toGemini.body.generationConfig.thinkingConfig.includeThoughts]).toEqual([[], true])
})
