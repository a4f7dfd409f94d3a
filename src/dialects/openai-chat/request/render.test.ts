import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { emptyConversation, rendered, targetWith } from '../../../../test/parts/chat-requests.ts'
import { Failure } from '../../../kernel/failure.ts'
import type {
  AssistantBlock,
  Conversation,
  ReasoningSettings,
  TextBlock,
  Turn,
  UserBlock,
} from '../../canonical/conversation.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { renderRequest } from './render.ts'

const text = (words: string): TextBlock => ({ kind: 'text', text: words })

describe('cache marks', () => {
  const marked = (words: string, life: 'short' | 'long' = 'short') => ({ ...text(words), cacheMark: { life } })
  const turns: Turn[] = [
    { role: 'user', blocks: ['1', '2', '3', '4'].map((words) => marked(words, 'long')), pointer: '/messages/0' },
  ]
  const conversation = { system: [marked('S')], turns }

  test('the latest four are breakpoints', () => {
    const { body, warned } = rendered(conversation, targetWith({ cacheStyle: 'breakpoint' }))
    expect(body.messages[0].content).toEqual([{ type: 'text', text: 'S' }])
    expect(body.messages[1].content[3]).toEqual({
      type: 'text',
      text: '4',
      prompt_cache_breakpoint: { mode: 'explicit', ttl: '30m' },
    })
    expect(JSON.stringify(body).split('prompt_cache_breakpoint')).toHaveLength(5)
    expect(warned).toEqual(['cache_mark_dropped /system'])
  })

  test('pitfall 108: a target that knows no marks gets none, and each place is named', () => {
    const { text: sent, warned } = rendered(conversation)
    expect(sent).not.toContain('cache')
    expect(warned).toEqual(['cache_mark_dropped /system', 'cache_mark_dropped /messages/0'])
  })

  test('requests caching of the whole prompt only if it is not automatic', () => {
    const warnedBy = (rules: TargetRules) => rendered({ automaticCache: { life: 'short' } }, targetWith(rules)).warned
    expect(warnedBy({ cacheStyle: 'implicit' })).toEqual([])
    expect(warnedBy({ cacheStyle: 'breakpoint' })).toEqual([])
    expect(warnedBy({})).toEqual(['cache_mark_dropped /cache_control'])
  })
})

test('requests caching of the marked parts only, if the target supports that', () => {
  const promptCacheOptions = { written: '{"mode":"explicit"}', onlyMarked: true }
  const sent = (rules: TargetRules) => {
    const { body, warned } = rendered({ promptCacheOptions }, targetWith(rules))
    return [body.prompt_cache_options, warned]
  }
  expect(sent({ cacheStyle: 'breakpoint' })).toEqual([{ mode: 'explicit' }, []])
  expect(sent({ cacheStyle: 'implicit' })).toEqual([undefined, ['prompt_cache_options_dropped /prompt_cache_options']])
})

describe('determinism', () => {
  const rules: TargetRules[] = [
    {},
    { midSystem: true },
    { assistantAfterTool: true, toolIdMax: 9, toolIdPattern: /^\w{9}$/ },
  ]
  const image = { kind: 'image', source: { kind: 'url', url: 'https://x.test/a' } } as const
  /** One exchange: who speaks, and with which calls; ids repeat on purpose. */
  const exchange = fc.record({
    said: fc.array(fc.constantFrom(text('a'), image), { minLength: 1, maxLength: 3 }),
    note: fc.boolean(),
    calls: fc.array(fc.constantFrom('c', 'call_2', 'x'.repeat(50)), { maxLength: 3 }),
    apart: fc.boolean(),
    answered: fc.boolean(),
  })

  function turnsOf({
    said,
    note,
    calls,
    apart,
    answered,
  }: typeof exchange extends fc.Arbitrary<infer Value> ? Value : never): Turn[] {
    const asked: AssistantBlock[] = calls.map((id) => ({
      kind: 'tool-call',
      id,
      name: 'a.b',
      arguments: '',
      custom: false,
    }))
    const results: UserBlock[] = calls.map((callId) => ({
      kind: 'tool-result',
      callId,
      content: [image],
      isError: true,
    }))
    return [
      { role: 'user', blocks: said },
      ...(note ? [{ role: 'system', blocks: [text('note')] } as const] : []),
      { role: 'assistant', blocks: [text('t'), { kind: 'thinking', text: 'h' }, ...asked] },
      ...(apart
        ? results.map((block): Turn => ({ role: 'user', blocks: [block] }))
        : [{ role: 'user', blocks: results } as const]),
      ...(answered ? [{ role: 'assistant', blocks: [text('so')] } as const] : []),
    ]
  }

  const bytes = (turns: readonly Turn[], target: TargetRules): string => {
    const conversation: Conversation = { ...emptyConversation, turns }
    const result = renderRequest(conversation, targetWith(target))
    if (result instanceof Failure) throw new Error(result.message)
    return new TextDecoder().decode(result.body)
  }

  test('vector 99: a conversation that grows keeps the bytes of what was asked before each answer', () => {
    fc.assert(
      fc.property(fc.array(exchange, { minLength: 1, maxLength: 6 }), fc.constantFrom(...rules), (many, target) => {
        const turns: Turn[] = [...many.flatMap(turnsOf), { role: 'user', blocks: [text('end')] }]
        const whole = bytes(turns, target)
        expect(bytes(structuredClone(turns), target)).toBe(whole)
        for (const [at, { role }] of turns.entries()) {
          if (role !== 'assistant' || turns[at - 1]?.role === 'assistant') continue
          expect(whole).toStartWith(bytes(turns.slice(0, at), target).slice(0, -']}'.length))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('vector 9: ids as the target wants them, the same on both sides', () => {
    const call = (id: string): AssistantBlock => ({ kind: 'tool-call', id, name: 'f', arguments: '{}', custom: false })
    const result = (callId: string): UserBlock => ({ kind: 'tool-result', callId, content: [], isError: false })
    const turns: Turn[] = [
      { role: 'assistant', blocks: [call('call_1')] },
      { role: 'user', blocks: [result('call_1')] },
      { role: 'assistant', blocks: [call('call_1')] },
      { role: 'user', blocks: [result('call_1')] },
    ]
    const { messages } = rendered({ turns }).body
    expect(messages[0].tool_calls[0].id).toBe('call_1')
    expect(messages[2].tool_calls[0].id).not.toBe('call_1')
    expect(messages[3].tool_call_id).toBe(messages[2].tool_calls[0].id)
  })

  test('pitfall 48: ids are at most 40 characters, or what the target wants', () => {
    const turns = turnsOf({
      said: [text('a')],
      note: false,
      calls: [`toolu_${'x'.repeat(60)}`],
      apart: false,
      answered: false,
    })
    const idIn = (target: TargetRules) => rendered({ turns }, targetWith(target)).body.messages[1].tool_calls[0].id
    expect(idIn({})).toMatch(/^[A-Za-z0-9_-]{1,40}$/)
    expect(idIn({ toolIdMax: 9, toolIdPattern: /^[A-Za-z0-9]{9}$/ })).toMatch(/^[A-Za-z0-9]{9}$/)
  })
})

describe('settings and tools', () => {
  const schema = '{"type":"object","properties":{"a":{"type":"null"}},"required":["a"],"additionalProperties":false}'

  test('requests a stream with usage, or a whole reply', () => {
    expect(rendered({}).body).toEqual({
      model: 'up-1',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'hi' }],
    })
    expect(rendered({}, { ...targetWith(), wantsWhole: true }).body).toEqual({
      model: 'up-1',
      stream: false,
      messages: [{ role: 'user', content: 'hi' }],
    })
  })

  test('pitfall 3: the cap has the name that the target knows', () => {
    expect(rendered({ outputCap: 9 }).body.max_tokens).toBe(9)
    const renamed = rendered({ outputCap: 9 }, targetWith({ outputCapName: 'max_completion_tokens' })).body
    expect([renamed.max_tokens, renamed.max_completion_tokens]).toEqual([undefined, 9])
  })

  test.each([
    ['top_k', { topK: 5 }, 5, { topK: true }, { topK: false }],
    ['frequency_penalty', { frequencyPenalty: 1 }, 1, {}, { penalties: false }],
    ['presence_penalty', { presencePenalty: -1 }, -1, {}, { penalties: false }],
    ['seed', { seed: 7 }, 7, { sampling: 'none' }, { seed: false }],
    ['logit_bias', { logitBias: '{"1":2}' }, { '1': 2 }, {}, { logitBias: false }],
  ] as const)('%s is sent to a host that accepts it, and dropped with a warning elsewhere', (...row) => {
    const [name, sampling, value, accepting, refusing] = row
    const accepted = rendered({ sampling }, targetWith(accepting))
    expect([accepted.body[name], accepted.warned]).toEqual([value, []])
    const refused = rendered({ sampling }, targetWith(refusing))
    expect([refused.body[name], refused.warned]).toEqual([undefined, [`${name}_dropped /${name}`]])
  })

  test('vector 50: the gateway matches five stop sequences; four are sent', () => {
    const five = rendered({ stop: ['a', 'b', 'c', 'd', 'e'] })
    expect([five.body.stop, five.mapping.stop]).toEqual([undefined, ['a', 'b', 'c', 'd', 'e']])
    const four = rendered({ stop: ['a', 'b', 'c', 'd'] })
    expect([four.body.stop, four.mapping.stop]).toEqual([['a', 'b', 'c', 'd'], []])
  })

  test('pitfall 15: a host without stop sequences gets none; the gateway matches them', () => {
    const { body, mapping, warned } = rendered({ stop: ['END'] }, targetWith({ stopMax: 0 }))
    expect([body.stop, mapping.stop, warned]).toEqual([undefined, ['END'], []])
  })

  test('pitfall 13: reasoning is turned off, with a warning, where the host refuses it together with tools', () => {
    const efforts = ['none', 'low', 'high'] as const
    const tools = [{ kind: 'function', name: 'f' } as const]
    const sent = (reasoning: ReasoningSettings | undefined, rules: TargetRules = {}) => {
      const target = targetWith({ toolsWithReasoning: false, efforts, thinksByDefault: true, ...rules })
      const { body, warned } = rendered({ tools, reasoning }, target)
      return [body.reasoning_effort, warned]
    }
    expect(sent({ mode: 'off' })).toEqual(['none', []])
    expect(sent({ effort: 'high' })).toEqual(['none', ['reasoning_dropped /reasoning_effort']])
    expect(sent(undefined)).toEqual(['none', ['reasoning_dropped /tools']])
    expect(sent(undefined, { thinksByDefault: false })).toEqual([undefined, []])
    expect(sent({ effort: 'high' }, { toolsWithReasoning: true })).toEqual(['high', []])
    const withoutTools = rendered({ reasoning: { effort: 'high' } }, targetWith({ toolsWithReasoning: false, efforts }))
    expect(withoutTools.body.reasoning_effort).toBe('high')
  })

  test('pitfall 50: a tool has the same name in the history', () => {
    const turns: Turn[] = [
      { role: 'assistant', blocks: [{ kind: 'tool-call', id: 't', name: 'a.b', arguments: '{}', custom: false }] },
      { role: 'user', blocks: [{ kind: 'tool-result', callId: 't', content: [], isError: false }] },
    ]
    const own = { kind: 'function', name: 'a.b', schema } as const
    const { body } = rendered({ tools: [own], turns })
    expect(body.messages[0].tool_calls[0].function.name).toBe(body.tools[0].function.name)
  })
})
