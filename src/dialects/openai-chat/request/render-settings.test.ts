import { describe, expect, test } from 'bun:test'
import { refusedRender, rendered, targetWith } from '../../../../test/parts/chat-requests.ts'
import type { ReasoningWish, TextBlock } from '../../canonical/conversation.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'

const text = (words: string): TextBlock => ({ kind: 'text', text: words })
const schema = '{"type":"object","properties":{"a":{"type":"null"}},"required":["a"],"additionalProperties":false}'
const format = { kind: 'json-schema', name: undefined, description: undefined, schema, strict: undefined } as const

describe('settings', () => {
  test('the call is always streamed, with usage', () => {
    expect(rendered({}).body).toEqual({
      model: 'up-1',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'hi' }],
    })
  })

  test('pitfall 3: the cap goes out under the name the target knows, once', () => {
    expect(rendered({ outputCap: 9 }).body.max_tokens).toBe(9)
    const renamed = rendered({ outputCap: 9 }, targetWith({ outputCapName: 'max_completion_tokens' })).body
    expect([renamed.max_tokens, renamed.max_completion_tokens]).toEqual([undefined, 9])
    const clamped = rendered({ outputCap: 9 }, targetWith({}, { maxOutputTokens: 5 }))
    expect([clamped.body.max_tokens, clamped.warned]).toEqual([5, ['max_tokens_clamped /max_tokens']])
    expect(refusedRender({ outputCap: 0 }).param).toBe('max_tokens')
  })

  test('vector 54: sampling is forwarded to a target that takes it', () => {
    const { body, warned } = rendered({ sampling: { temperature: 0.2, topP: 0.9 } })
    expect([body.temperature, body.top_p, warned]).toEqual([0.2, 0.9, []])
  })

  test('a target that refuses sampling gets none; a default goes silently', () => {
    const send = (rules: TargetRules, reasoning?: ReasoningWish) => {
      const { body, warned } = rendered({ sampling: { temperature: 0.2, topP: 1 }, reasoning }, targetWith(rules))
      return [body.temperature, body.top_p, warned]
    }
    const none = [undefined, undefined, ['temperature_dropped /temperature']]
    const efforts = ['none', 'low', 'high'] as const
    expect(send({ sampling: 'none' })).toEqual(none)
    expect(send({ sampling: 'without-reasoning', efforts, thinksByDefault: true })).toEqual(none)
    expect(send({ sampling: 'without-reasoning', efforts }, { effort: 'low' })).toEqual(none)
    expect(send({ sampling: 'without-reasoning', efforts, thinksByDefault: true }, { mode: 'off' })).toEqual([
      0.2,
      1,
      [],
    ])
  })

  test('pitfall 16: a temperature above the ceiling is lowered with a warning', () => {
    const { body, warned } = rendered({ sampling: { temperature: 1.7 } }, targetWith({ temperatureMax: 1 }))
    expect([body.temperature, warned]).toEqual([1, ['temperature_clamped /temperature']])
  })

  test('pitfall 17: of temperature and top_p only the first goes where both are refused', () => {
    const target = targetWith({ temperatureOrTopP: true })
    const { body, warned } = rendered({ sampling: { temperature: 0.5, topP: 0.5 } }, target)
    expect([body.temperature, body.top_p, warned]).toEqual([0.5, undefined, ['top_p_dropped /top_p']])
  })

  test('top_k only goes where it is known', () => {
    expect(rendered({ sampling: { topK: 5 } }, targetWith({ topK: true })).body.top_k).toBe(5)
    expect(rendered({ sampling: { topK: 5 } }).warned).toEqual(['top_k_dropped /top_k'])
  })

  test('vector 50: five stops are all matched in the gateway, four are sent', () => {
    const five = rendered({ stop: ['a', 'b', 'c', 'd', 'e'] })
    expect([five.body.stop, five.mapping.stop]).toEqual([undefined, ['a', 'b', 'c', 'd', 'e']])
    const four = rendered({ stop: ['a', 'b', 'c', 'd'] })
    expect([four.body.stop, four.mapping.stop]).toEqual([['a', 'b', 'c', 'd'], []])
  })

  test('pitfall 15: a target without stops gets none, they are matched here', () => {
    const { body, mapping, warned } = rendered({ stop: ['END'] }, targetWith({ stopMax: 0 }))
    expect([body.stop, mapping.stop, warned]).toEqual([undefined, ['END'], []])
  })

  test('vector 57: an end user id that is too long goes out as a hash', () => {
    const sha256OfEs = new Bun.CryptoHasher('sha256').update('e'.repeat(300)).digest('hex')
    const target = targetWith({ endUserIdName: 'safety_identifier' })
    expect(rendered({ endUserId: 'e'.repeat(300) }, target).body.safety_identifier).toBe(sha256OfEs)
    expect(rendered({ endUserId: 'u1' }, target).body.safety_identifier).toBe('u1')
  })

  test('pitfall 7: 64 characters is what `user` takes', () => {
    expect(rendered({ endUserId: 'e'.repeat(64) }).body.user).toBe('e'.repeat(64))
    expect(rendered({ endUserId: 'e'.repeat(150) }).body.user).toMatch(/^[0-9a-f]{64}$/)
  })

  test('vector 51: what breaks a guarantee is refused by name, the rest is warned about', () => {
    expect(refusedRender({ unsupported: [{ field: '/inference_geo', refuse: true }] }).param).toBe('inference_geo')
    expect(rendered({ unsupported: [{ field: '/diagnostics', refuse: false }] }).warned).toEqual([
      'diagnostics_dropped /diagnostics',
    ])
  })

  test('fast processing goes out only where it is sold', () => {
    expect(rendered({ serviceTier: 'fast' }, targetWith({ fastTier: true })).body.service_tier).toBe('fast')
    expect(rendered({ serviceTier: 'fast' }).warned).toEqual(['service_tier_dropped /service_tier'])
    expect(rendered({ serviceTier: 'standard' }).warned).toEqual([])
  })
})

describe('reasoning effort', () => {
  const effort = (reasoning: ReasoningWish, rules: TargetRules = {}) => {
    const { body, warned } = rendered({ reasoning }, targetWith(rules))
    return [body.reasoning_effort, warned.map((warning) => warning.split(' ')[0] as string)]
  }

  test('pitfall 23: an effort is lowered to the nearest that the target takes', () => {
    expect(effort({ effort: 'high' })).toEqual(['high', []])
    expect(effort({ effort: 'max' })).toEqual(['high', ['effort_adjusted']])
    expect(effort({ effort: 'max' }, { efforts: ['low', 'xhigh'] })).toEqual(['xhigh', ['effort_adjusted']])
    expect(effort({ effort: 'minimal' })).toEqual(['low', ['effort_adjusted']])
    expect(effort({ effort: 'high' }, { efforts: [] })).toEqual([undefined, ['reasoning_dropped']])
  })

  test('who wants some reasoning is not answered with none', () => {
    expect(effort({ effort: 'low' }, { efforts: ['none', 'high', 'max'] })).toEqual(['high', ['effort_adjusted']])
    expect(effort({ budgetTokens: 1024, mode: 'on' }, { efforts: ['none', 'high'] })).toEqual([
      'high',
      ['effort_adjusted'],
    ])
    expect(effort({ effort: 'low' }, { efforts: ['none'] })).toEqual([undefined, ['reasoning_dropped']])
  })

  test('a budget is an effort', () => {
    const of = (budgetTokens: number) =>
      effort({ budgetTokens, mode: 'on' }, { efforts: ['low', 'medium', 'high', 'xhigh'] })[0]
    expect([2048, 2049, 8192, 8193, 20_000, 20_001].map(of)).toEqual([
      'low',
      'medium',
      'medium',
      'high',
      'high',
      'xhigh',
    ])
  })

  test('off is none, or the lowest with a warning, or nothing where nothing is on', () => {
    expect(effort({ mode: 'off' }, { efforts: ['none', 'low'] })).toEqual(['none', []])
    expect(effort({ mode: 'off' }, { efforts: ['low', 'high'], thinksByDefault: true })).toEqual([
      'low',
      ['reasoning_not_disabled'],
    ])
    expect(effort({ mode: 'off' })).toEqual([undefined, []])
    expect(effort({ mode: 'adaptive' })).toEqual([undefined, []])
  })

  test('pitfall 13: where tools exclude reasoning the model is told not to reason, and the caller that it does not', () => {
    const efforts = ['none', 'low', 'high'] as const
    const tools = [
      { kind: 'function', name: 'f', description: undefined, schema: undefined, strict: undefined } as const,
    ]
    const sent = (reasoning: ReasoningWish | undefined, rules: TargetRules = {}) => {
      const target = targetWith({ toolsWithReasoning: false, efforts, thinksByDefault: true, ...rules })
      const { body, warned } = rendered({ tools, reasoning }, target)
      return [body.reasoning_effort, warned]
    }
    expect(sent({ mode: 'off' })).toEqual(['none', []])
    expect(sent({ effort: 'high' })).toEqual(['none', ['reasoning_dropped /reasoning_effort']])
    expect(sent(undefined)).toEqual(['none', ['reasoning_dropped /tools']])
    expect(sent(undefined, { thinksByDefault: false })).toEqual([undefined, []])
    expect(sent({ effort: 'high' }, { toolsWithReasoning: true })).toEqual(['high', []])
    const hidden = targetWith({ toolsWithReasoning: false, efforts, jsonOutput: 'emulated' })
    expect(rendered({ outputFormat: format, reasoning: { effort: 'high' } }, hidden).body.reasoning_effort).toBe('none')
    expect(rendered({ reasoning: { effort: 'high' } }, hidden).body.reasoning_effort).toBe('high')
  })
})

describe('output format', () => {
  test('a schema goes out natively, strict where it can be', () => {
    expect(rendered({ outputFormat: format }).body.response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'output', schema: JSON.parse(schema), strict: true },
    })
    const open = { ...format, schema: '{"type":"object","properties":{"a":{}}}' }
    expect(rendered({ outputFormat: open }).body.response_format.json_schema.strict).toBe(false)
    const refused = { ...format, schema: schema.replace('"null"', '"string","format":"uri"'), strict: true }
    const { body, warned } = rendered({ outputFormat: refused })
    expect(body.response_format.json_schema.strict).toBe(false)
    expect(warned).toEqual(['strict_dropped /response_format'])
  })

  test('a target that only knows objects is told the schema', () => {
    const { body, warned } = rendered(
      { system: [text('S')], outputFormat: format },
      targetWith({ jsonOutput: 'object' }),
    )
    expect(body.response_format).toEqual({ type: 'json_object' })
    expect(body.messages[0].content).toEndWith(schema)
    expect(warned).toEqual(['json_schema_emulated /response_format'])
  })

  test('pitfall 125: a hidden tool stands for the format, and is told apart from the own ones', () => {
    const target = targetWith({ jsonOutput: 'emulated' })
    const alone = rendered({ outputFormat: format }, target)
    expect(alone.mapping.jsonTool).toBe('json_output')
    expect(alone.body.tool_choice).toEqual({ type: 'function', function: { name: 'json_output' } })
    const own = { kind: 'function', name: 'json_output', description: undefined, schema, strict: undefined } as const
    const both = rendered({ outputFormat: format, tools: [own] }, target)
    expect([both.mapping.jsonTool, both.body.tool_choice, both.body.tools.length]).toEqual([
      'json_output_2',
      'required',
      2,
    ])
    expect(
      refusedRender({ outputFormat: format }, targetWith({ jsonOutput: 'emulated', forcedToolChoice: false })).param,
    ).toBe('response_format')
  })
})
