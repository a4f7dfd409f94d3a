import { describe, expect, test } from 'bun:test'
import { refusedRender, rendered, targetWith } from '../../../../test/parts/chat-requests.ts'
import type { CustomTool, FunctionTool, Turn } from '../../canonical/conversation.ts'

const closed = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'
const tool = (name: string, facts: Partial<FunctionTool> = {}): FunctionTool => ({
  kind: 'function',
  name,
  description: undefined,
  schema: closed,
  strict: undefined,
  place: '/tools/0',
  ...facts,
})
const custom = (grammar?: string): CustomTool => ({ kind: 'custom', name: 'patch', description: 'P', grammar })
const named = (name: string) => ({ type: 'function', function: { name } })

describe('tools', () => {
  test('pitfall 5: a schema goes out as it was written', () => {
    const schema = '{"type":"object", "properties":{"10":{"maximum":1.0},"2":{}}}'
    expect(rendered({ tools: [tool('f', { schema, description: 'F' })] }).text).toContain(
      `{"type":"function","function":{"name":"f","description":"F","parameters":${schema}}}`,
    )
  })

  test('a tool that takes nothing has an empty object as its parameters', () => {
    expect(rendered({ tools: [tool('f', { schema: undefined })] }).body.tools[0].function.parameters).toEqual({
      type: 'object',
      properties: {},
    })
  })

  test('an object that holds nothing says so, which the provider insists on', () => {
    const schema = '{"type":"object","additionalProperties":false}'
    const [sent] = rendered({ tools: [tool('f', { schema, strict: true })] }).body.tools
    expect(sent.function.parameters).toEqual({ type: 'object', additionalProperties: false, properties: {} })
    expect(sent.function.strict).toBe(true)
  })

  test('pitfall 50: names are made legal without merging two, everywhere alike, and can be restored', () => {
    const turns: Turn[] = [
      { role: 'assistant', blocks: [{ kind: 'tool-call', id: 't', name: 'a.b', arguments: '{}', custom: false }] },
      { role: 'user', blocks: [{ kind: 'tool-result', callId: 't', content: [], isError: false }] },
    ]
    const tools = [tool('a.b'), tool('a b'), tool('a_b'), tool('x'.repeat(80))]
    const { body, mapping } = rendered({ tools, turns, toolChoice: { kind: 'named', name: 'a.b' } })
    const sent = body.tools.map(({ function: { name } }: { function: { name: string } }) => name)
    expect(new Set(sent).size).toBe(4)
    for (const name of sent) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    expect(sent[2]).toBe('a_b')
    expect(body.messages[0].tool_calls[0].function.name).toBe(sent[0])
    expect(body.tool_choice).toEqual(named(sent[0]))
    expect([...mapping.toolNames]).toEqual([
      [sent[0], 'a.b'],
      [sent[1], 'a b'],
      [sent[3], 'x'.repeat(80)],
    ])
  })

  test('pitfall 51: too many tools are refused with the limit and the count', () => {
    const tools = (count: number) => Array.from({ length: count }, (_, i) => tool(`f${i}`))
    const refused = refusedRender({ tools: tools(129) }, targetWith({ toolsMax: 128 }))
    expect([refused.param, refused.message.includes('128'), refused.message.includes('129')]).toEqual([
      'tools',
      true,
      true,
    ])
    expect(rendered({ tools: tools(128) }, targetWith({ toolsMax: 128 })).body.tools).toHaveLength(128)
    // A server of one's own takes as many as fit its context.
    expect(rendered({ tools: tools(300) }).body.tools).toHaveLength(300)
    expect(refusedRender({ tools: tools(3) }, targetWith({ toolsMax: 2 })).message).toContain('at most 2')
  })

  test('pitfall 53: strictness goes out only where the schema can bear it', () => {
    const strict = (schema: string, rules = {}) => {
      const { body, warned } = rendered({ tools: [tool('f', { schema, strict: true })] }, targetWith(rules))
      return [body.tools[0].function.strict, warned]
    }
    const dropped = [undefined, ['strict_dropped /tools/0/strict']]
    expect(strict(closed)).toEqual([true, []])
    expect(strict(closed, { strictTools: false })).toEqual(dropped)
    expect(strict('{"type":"object","properties":{"a":{}},"additionalProperties":false}')).toEqual(dropped)
    expect(strict('{"type":"object","properties":{}}')).toEqual(dropped)
    const inner = closed.replace('{"type":"string"}', '{"type":"array","items":{"type":"object"}}')
    expect(strict(inner)).toEqual(dropped)
    expect(strict(closed.replace('"string"', '"string","format":"uri"'))).toEqual(dropped)
  })

  test('pitfall 12: a custom tool goes out as it is, or as a function with one string', () => {
    const native = rendered({ tools: [custom('{"type":"grammar"}')] }, targetWith({ customTools: true }))
    expect(native.body.tools[0]).toEqual({
      type: 'custom',
      custom: { name: 'patch', description: 'P', format: { type: 'grammar' } },
    })
    expect(native.mapping.customTools.size).toBe(0)
    const emulated = rendered({ tools: [custom()] })
    expect(emulated.body.tools[0].function.parameters.properties).toEqual({ input: { type: 'string' } })
    expect([...emulated.mapping.customTools]).toEqual(['patch'])
  })

  test('vector 38: a grammar nobody can follow is refused by name', () => {
    expect(refusedRender({ tools: [custom('{"type":"grammar"}')] }).message).toContain('patch')
  })
})

describe('tool choice', () => {
  const tools = [tool('f'), tool('g')]

  test('pitfall 46: each choice has its word, and none goes without the parallel flag', () => {
    const send = (kind: 'auto' | 'none' | 'required') => {
      const { tool_choice, parallel_tool_calls } = rendered({ tools, toolChoice: { kind }, parallelTools: false }).body
      return [tool_choice, parallel_tool_calls]
    }
    expect(send('auto')).toEqual(['auto', false])
    expect(send('required')).toEqual(['required', false])
    expect(send('none')).toEqual(['none', undefined])
    expect(rendered({ tools, toolChoice: { kind: 'named', name: 'g' } }).body.tool_choice).toEqual(named('g'))
    const flagOnly = rendered({ tools, parallelTools: false }).body
    expect([flagOnly.tool_choice, flagOnly.parallel_tool_calls]).toEqual([undefined, false])
  })

  test('pitfall 26: without tools none of it is sent, and a demanded call is refused', () => {
    const { body } = rendered({ toolChoice: { kind: 'auto' }, parallelTools: false })
    expect(Object.keys(body).filter((name) => name.includes('tool'))).toEqual([])
    expect(refusedRender({ toolChoice: { kind: 'required' } }).param).toBe('tool_choice')
    expect(refusedRender({ toolChoice: { kind: 'named', name: 'f' } }).param).toBe('tool_choice')
  })

  test('a name that is not offered is refused', () => {
    expect(refusedRender({ tools, toolChoice: { kind: 'named', name: 'h' } }).message).toContain('`h`')
  })

  test('a target that cannot be forced is asked instead, with a warning', () => {
    const { body, warned } = rendered(
      { tools, toolChoice: { kind: 'required' } },
      targetWith({ forcedToolChoice: false }),
    )
    expect([body.tool_choice, warned]).toEqual(['auto', ['tool_choice_relaxed /tool_choice']])
  })

  test('a target without the flag gets one call passed on', () => {
    const { body, mapping, warned } = rendered({ tools, parallelTools: false }, targetWith({ parallelFlag: false }))
    expect([body.parallel_tool_calls, mapping.singleToolCall]).toEqual([undefined, true])
    expect(warned).toEqual(['parallel_tools_dropped /parallel_tool_calls'])
  })

  test('vector 27: allowed tools go out natively, or the others are left out', () => {
    const toolChoice = { kind: 'allowed', names: ['f'], force: true } as const
    const native = rendered({ tools, toolChoice }, targetWith({ allowedTools: true })).body
    expect(native.tools).toHaveLength(2)
    expect(native.tool_choice).toEqual({
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [named('f')] },
    })
    const filtered = rendered({ tools, toolChoice })
    expect(filtered.body.tools).toHaveLength(1)
    expect(filtered.body.tool_choice).toEqual(named('f'))
    expect(filtered.warned).toEqual(['tools_filtered /tool_choice'])
  })
})
