import { describe, expect, test } from 'bun:test'
import { parsedMessages as parsed, refusedMessages as refused } from '../../../../test/parts/translation.ts'

describe('reasoning', () => {
  test('vector 47: each way of thinking is carried, with effort and display', () => {
    expect(parsed({}).reasoning).toBeUndefined()
    expect(parsed({ thinking: { type: 'disabled' } }).reasoning).toEqual({ mode: 'off' })
    expect(parsed({ thinking: { type: 'between_tools' } }).reasoning).toEqual({ mode: 'between-tools' })
    expect(parsed({ thinking: { type: 'enabled', budget_tokens: 2000, display: 'summarized' } }).reasoning).toEqual({
      mode: 'on',
      budgetTokens: 2000,
      visible: true,
    })
    const both = { thinking: { type: 'adaptive', display: 'omitted' }, output_config: { effort: 'xhigh' } }
    expect(parsed(both).reasoning).toEqual({ mode: 'adaptive', effort: 'xhigh', visible: false })
    expect(refused({ thinking: { type: 'on' } }).facts.param).toBe('thinking.type')
  })
})

describe('the form of the answer', () => {
  const format = (schema: string) => ({ kind: 'json-schema', schema })

  test('a schema is carried as it was written, under the new name and the old', () => {
    const raw = '{"type": "object", "properties":{"n":{"const":12345678901234567890}}}'
    const body = (field: string) =>
      `{"model":"a/b","max_tokens":9,"messages":[{"role":"user","content":"x"}],${field.replace('#', `{"type":"json_schema","schema":${raw}}`)}}`
    expect(parsed(body('"output_config":{"effort":"low","format":#}')).outputFormat).toEqual(format(raw) as never)
    expect(parsed(body('"output_format":#')).outputFormat).toEqual(format(raw) as never)
    expect(parsed({ output_config: { format: null } }).outputFormat).toBeUndefined()
    expect(refused({ output_config: { format: { type: 'json_schema' } } }).facts.param).toBe(
      'output_config.format.schema',
    )
  })
})

describe('settings', () => {
  test('sampling, stop sequences, user and cache are carried', () => {
    const request = parsed({
      temperature: 0.5,
      top_p: 0.9,
      top_k: 5,
      stop_sequences: ['a', 'b', 'c', 'd', 'e'],
      metadata: { user_id: 'u' },
      cache_control: { type: 'ephemeral', ttl: '1h' },
      stream: true,
    })
    expect(request.sampling).toEqual({ temperature: 0.5, topP: 0.9, topK: 5 })
    expect(request.automaticCache).toEqual({ life: 'long', isHour: true, pointer: '/cache_control' })
    expect(request.outputCap).toBe(100)
    expect(request.warnings).toEqual([])
    expect(request.unsupported).toEqual([])
  })

  test('vector 50: all stop sequences are carried, however many', () => {
    expect(parsed({ stop_sequences: ['1', '2', '3', '4', '5'] }).stop).toEqual(['1', '2', '3', '4', '5'])
    expect(refused({ stop_sequences: ['1', 2] }).facts.param).toBe('stop_sequences[1]')
  })

  test('vector 57: a long user id is parsed whole; the renderer shortens it', () => {
    expect(parsed({ metadata: { user_id: 'x'.repeat(300) } }).endUserId).toHaveLength(300)
    expect(parsed({ metadata: { user_id: '' } }).endUserId).toBeUndefined()
  })

  test('tiers and speed', () => {
    expect(parsed({ service_tier: 'auto' }).serviceTier).toBe('auto')
    expect(parsed({ service_tier: 'standard_only' }).serviceTier).toBe('standard')
    expect(parsed({ service_tier: 'auto', speed: 'fast' }).serviceTier).toBe('priority')
    expect(parsed({ speed: 'standard' }).serviceTier).toBeUndefined()
  })

  test('wrong types are refused by their place', () => {
    expect(refused({ top_p: 'x' }).facts.param).toBe('top_p')
    expect(refused({ metadata: { user_id: 3 } }).facts.param).toBe('metadata.user_id')
    expect(refused({ output_config: { effort: 'huge' } }).facts.param).toBe('output_config.effort')
    expect(refused({ service_tier: 'flex' }).facts.param).toBe('service_tier')
    expect(refused({ system: [{ type: 'image', source: {} }] }).facts.param).toBe('system[0].type')
  })
})

describe('features that only Anthropic has', () => {
  test('vector 49: a cap of zero, which warms a cache, is refused for other dialects', () => {
    expect(refused({ max_tokens: 0 }).facts.param).toBe('max_tokens')
  })

  test('vector 51: a place to compute in is a guarantee, the rest is left out', () => {
    const { unsupported } = parsed({
      inference_geo: 'us',
      context_management: { edits: [] },
      diagnostics: { previous_message_id: null },
      fallbacks: [{ model: 'm' }],
      output_config: { task_budget: { type: 'tokens', total: 5 } },
    })
    expect(unsupported.map(({ field, refuse }) => [field, refuse])).toEqual([
      ['/inference_geo', true],
      ['/context_management', false],
      ['/diagnostics', false],
      ['/fallbacks', false],
      ['/output_config/task_budget', false],
    ])
  })

  test('refuses what runs or is stored at Anthropic, unless it is empty', () => {
    for (const field of [
      { container: 'c' },
      { mcp_servers: [{ type: 'url' }] },
      { safeguards: { checks: ['actions'] } },
      { compaction: { type: 'summarize' } },
    ]) {
      expect(parsed(field).unsupported).toMatchObject([{ refuse: true }])
    }
    expect(parsed({ container: null, mcp_servers: [], fallbacks: null }).unsupported).toEqual([])
  })

  test('an unknown field is left out, null ones without a word', () => {
    expect(parsed({ foo: 1, bar: null, metadata: { user_id: 'u', team: 'x' } }).unsupported).toEqual([
      { field: '/foo', refuse: false },
      { field: '/metadata/team', refuse: false },
    ])
  })
})

test('accepts the requests of Claude Code', () => {
  const cache = { cache_control: { type: 'ephemeral' } }
  const request = parsed({
    max_tokens: 32_000,
    stream: true,
    system: [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.181' },
      { type: 'text', text: 'You are Claude Code', ...cache },
    ],
    thinking: { type: 'adaptive' },
    output_config: { effort: 'medium' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    metadata: { user_id: 'user_abc_account__session_def' },
    tools: [
      { name: 'Bash', description: 'runs', input_schema: { $schema: 'x', type: 'object' }, strict: true, ...cache },
      { name: 'mcp__a__b', description: '', input_schema: { type: 'object' }, defer_loading: true },
    ],
    messages: [
      { role: 'user', content: [{ type: 'text', text: '<system-reminder>…', ...cache }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: '', signature: 'tg1.x' },
          { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a\nb', is_error: false, ...cache }],
      },
      { role: 'system', content: 'Today is Monday.' },
    ],
  })
  expect(request.unsupported).toEqual([{ field: '/context_management', refuse: false }])
  expect(request.warnings).toEqual(['defer_loading_dropped;/tools/1/defer_loading'])
  expect(request.turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'system'])
})
