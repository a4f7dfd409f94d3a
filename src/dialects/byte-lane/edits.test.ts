import { describe, expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { dialects } from '../registry.ts'

// Tools that a provider runs and bills apart from tokens, on the operator's account.

const surfaces = {
  'openai-chat': { messages: [{ role: 'user', content: 'hi' }] },
  'anthropic-messages': { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  'openai-responses': { input: 'hi', store: false },
} as const
type Name = keyof typeof surfaces

const nothing = { searches: false, allowed: [] }

function sent(name: Name, members: object, hostedTools = nothing as object, isOwn = false) {
  const bytes = new TextEncoder().encode(JSON.stringify({ model: 'm', ...surfaces[name], ...members }))
  const envelope = dialects[name].readEnvelope(bytes, new Headers({ 'anthropic-version': '2023-06-01' }))
  if (envelope instanceof Failure) throw new Error(envelope.message)
  const rules = { upstreamModel: 'up', defaultOutputCap: undefined, rules: {}, isOwn }
  const { body, warnings, refused } = dialects[name].editRequest(envelope, {
    ...rules,
    hostedTools: hostedTools as typeof nothing,
  })
  const json = JSON.parse(new TextDecoder().decode(body)) as { tools?: unknown; input?: unknown; plugins?: unknown }
  return { ...json, refused, warnings: warnings.map(({ code, field }) => `${code} ${field}`) }
}

const own = { type: 'function', name: 'f', function: { name: 'f' }, input_schema: {} }
const unpaid: readonly (readonly [Name, object])[] = [
  ['openai-chat', { type: 'web_search', web_search: { enable: true } }],
  ['openai-chat', { type: 'builtin_function', function: { name: '$web_search' } }],
  ['openai-chat', { type: 'openrouter:web_search' }],
  ['openai-chat', { type: 'code_interpreter' }],
  ['anthropic-messages', { type: 'web_search_20250305', name: 'web_search' }],
  ['anthropic-messages', { type: 'code_execution_20250825', name: 'code_execution' }],
  ['openai-responses', { type: 'image_generation' }],
  ['openai-responses', { type: 'code_interpreter', container: { type: 'auto' } }],
  ['openai-responses', { type: 'file_search', vector_store_ids: ['vs_1'] }],
  ['openai-responses', { type: 'shell', environment: { type: 'container_auto' } }],
]

describe.each(unpaid)('%s: %j', (name, tool) => {
  const type = String((tool as { type: string }).type)
  const tools = [name === 'anthropic-messages' ? { name: 'f', input_schema: {} } : own, tool]

  test('is refused by its place and name', () => {
    const { refused } = sent(name, { tools })
    expect(refused?.facts.param).toBe('tools[1]')
    expect(refused?.message).toContain(`\`${type.replace('openrouter:', '')}\``)
  })

  test('passes where the operator or the workspace pays for it', () => {
    const allowed = [type.replace(/_\d{8}$/, '')]
    for (const paid of [sent(name, { tools }, { ...nothing, allowed }), sent(name, { tools }, nothing, true)]) {
      expect(paid).toMatchObject({ tools, refused: undefined, warnings: [] })
    }
  })
})

test.each<readonly [Name, ...object[]]>([
  ['openai-chat', own, { type: 'custom', custom: { name: 'c' } }, { type: 'openrouter:datetime' }],
  ['anthropic-messages', { name: 'f', input_schema: {} }, { type: 'bash_20250124', name: 'bash' }],
  ['anthropic-messages', { type: 'web_fetch_20250910', name: 'web_fetch' }],
  ['openai-responses', own, { type: 'custom', name: 'c' }, { type: 'local_shell' }, { type: 'shell' }],
  ['openai-responses', { type: 'shell', environment: { type: 'local' } }, { type: 'mcp', server_label: 's' }],
])('%s: tools that the caller runs, or that cost only tokens, pass', (name, ...tools) => {
  expect(sent(name, { tools })).toMatchObject({ tools, refused: undefined, warnings: [] })
})

test('a search of Responses without a price is left out, wherever the tools are', () => {
  const search = { type: 'web_search' }
  const input = [
    { type: 'additional_tools', role: 'developer', tools: [search, own, search] },
    { type: 'additional_tools', role: 'developer', tools: [search] },
    { role: 'user', content: 'hi' },
  ]
  const cut = sent('openai-responses', { tools: [own, search], input })
  expect(cut).toMatchObject({ tools: [own], input: [{ tools: [own] }, { tools: [] }, {}], refused: undefined })
  expect(cut.warnings).toEqual([
    'tool_dropped /tools/1',
    'tool_dropped /input/0/tools/0',
    'tool_dropped /input/0/tools/2',
    'tool_dropped /input/1/tools/0',
  ])
  const priced = { searches: true, allowed: [] }
  expect(sent('openai-responses', { tools: [own, search], input }, priced)).toMatchObject({ input, warnings: [] })
  const hidden = [{ type: 'additional_tools', tools: [{ type: 'image_generation' }] }, ...input]
  expect(sent('openai-responses', { input: hidden }).refused?.facts.param).toBe('input[0].tools[0]')
})

test('a plugin that searches is left out without a price for searches', () => {
  const plugins = [{ id: 'web' }, { id: 'response-healing' }]
  expect(sent('openai-chat', { plugins })).toMatchObject({
    plugins: [plugins[1]],
    warnings: ['plugin_dropped /plugins/0'],
  })
  expect(sent('openai-chat', { plugins }, { searches: true, allowed: [] })).toMatchObject({ plugins, warnings: [] })
})
