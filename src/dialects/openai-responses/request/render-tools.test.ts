import { describe, expect, test } from 'bun:test'
import { gpts, refusedBy, rendered } from '../../../../test/parts/responses.ts'
import type { CustomTool, FunctionTool, Tool, ToolChoice } from '../../canonical/conversation.ts'

const closed = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'
const tool = (name: string, parts: Partial<FunctionTool> = {}): FunctionTool => ({
  kind: 'function',
  name,
  description: undefined,
  schema: undefined,
  strict: undefined,
  ...parts,
})
const custom = (parts: Partial<CustomTool> = {}): CustomTool => ({
  kind: 'custom',
  name: 'patch',
  description: 'P',
  grammar: undefined,
  ...parts,
})
const none = { type: 'object', properties: {} }

describe('functions', () => {
  test('are flat, and say that they are not strict', () => {
    const { json, body } = rendered({
      tools: [tool('f', { schema: '{ "type":"object", "properties":{}, "x":1.0 }', description: 'D' }), tool('g')],
    })
    expect(json).toContain(
      '{"type":"function","name":"f","description":"D","parameters":{ "type":"object", "properties":{}, "x":1.0 },"strict":false}',
    )
    expect(body.tools[1]).toEqual({ type: 'function', name: 'g', parameters: none, strict: false })
  })

  test('say of an object that holds nothing that it does, which the provider insists on', () => {
    const schema = '{"type":"object","additionalProperties":false}'
    const [f] = rendered({ tools: [tool('f', { schema, strict: true })] }).body.tools
    expect(f).toMatchObject({ parameters: { ...none, additionalProperties: false }, strict: true })
  })

  test('pitfall 53: are strict where that was asked for and can be met', () => {
    const strictOf = (schema: string, rules = {}) => {
      const { body, warnings } = rendered({ tools: [tool('f', { schema, strict: true })] }, rules)
      return [body.tools[0].strict, warnings]
    }
    const dropped = ['strict_dropped;/tools/strict']
    expect(strictOf(closed)).toEqual([true, []])
    expect(strictOf(closed, { strictTools: false })).toEqual([false, dropped])
    expect(strictOf('{"type":"object","properties":{}}')).toEqual([false, dropped])
    expect(strictOf(closed.replace('["a"]', '[]'))).toEqual([false, dropped])
    const nested = (inner: string) =>
      `{"type":"object","properties":{"a":{"anyOf":[{"type":"array","items":${inner}}]}},"required":["a"],"additionalProperties":false}`
    expect(strictOf(nested(closed))).toEqual([true, []])
    expect(strictOf(nested('{"type":["object","null"]}'))).toEqual([false, dropped])
    expect(strictOf(nested('{"type":"string","format":"uri"}'))).toEqual([false, dropped])
  })

  test('pitfall 50: have names the provider takes, with the way back', () => {
    const { body, mapping } = rendered({ tools: [tool('a.b')], toolChoice: { kind: 'named', name: 'a.b' } })
    const [{ name }] = body.tools
    expect(name).toMatch(/^a_b_[0-9a-f]{8}$/)
    expect(body.tool_choice).toEqual({ type: 'function', name })
    expect([...mapping.toolNames]).toEqual([[name, 'a.b']])
  })

  test('pitfall 51: are not too many', () => {
    const tools = Array.from({ length: 129 }, (_, n) => tool(`f${n}`))
    expect(refusedBy({ tools })).toBe('tools: This model takes at most 128 tools; the request has 129.')
  })
})

describe('custom tools', () => {
  test('are themselves, with the grammar beside the type', () => {
    const grammar = '{"type":"grammar","grammar":{"syntax":"lark","definition":"start: \\"a\\""}}'
    const { body, mapping } = rendered({ tools: [custom(), custom({ name: 'p2', grammar })] })
    expect(body.tools).toEqual([
      { type: 'custom', name: 'patch', description: 'P' },
      {
        type: 'custom',
        name: 'p2',
        description: 'P',
        format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
      },
    ])
    expect(mapping.customTools.size).toBe(0)
  })

  test('vector 38: are functions of one string where the host has none, and a grammar is refused', () => {
    const { body, mapping } = rendered({ tools: [custom()] }, gpts.plain)
    expect(body.tools[0]).toMatchObject({ type: 'function', name: 'patch', strict: false })
    expect(body.tools[0].parameters.required).toEqual(['input'])
    expect([...mapping.customTools]).toEqual(['patch'])
    expect(refusedBy({ tools: [custom({ grammar: '{"type":"grammar"}' })] }, gpts.plain)).toContain(
      'cannot be enforced',
    )
  })
})

describe('the choice', () => {
  const tools: Tool[] = [tool('f'), tool('g'), custom()]
  const choiceOf = (toolChoice: ToolChoice, rules = {}) => {
    const { body, warnings } = rendered({ tools, toolChoice }, rules)
    return [body.tool_choice, body.tools.length, warnings]
  }

  test('is a word or a name', () => {
    expect(choiceOf({ kind: 'auto' })).toEqual(['auto', 3, []])
    expect(choiceOf({ kind: 'none' })).toEqual(['none', 3, []])
    expect(choiceOf({ kind: 'required' })).toEqual(['required', 3, []])
    expect(choiceOf({ kind: 'named', name: 'g' })).toEqual([{ type: 'function', name: 'g' }, 3, []])
    expect(choiceOf({ kind: 'named', name: 'patch' })).toEqual([{ type: 'custom', name: 'patch' }, 3, []])
  })

  test('is relaxed where the model cannot be forced', () => {
    const relaxed = ['tool_choice_relaxed;/tool_choice']
    expect(choiceOf({ kind: 'required' }, { forcedToolChoice: false })).toEqual(['auto', 3, relaxed])
    const [choice, , warnings] = choiceOf({ kind: 'allowed', names: ['f'], force: true }, { forcedToolChoice: false })
    expect(choice).toMatchObject({ type: 'allowed_tools', mode: 'auto' })
    expect(warnings).toEqual(relaxed)
  })

  test('may be some of the tools, all of which stay', () => {
    const allowed = { kind: 'allowed', names: ['f', 'patch', 'gone'], force: true } as const
    expect(choiceOf(allowed)).toEqual([
      {
        type: 'allowed_tools',
        mode: 'required',
        tools: [
          { type: 'function', name: 'f' },
          { type: 'custom', name: 'patch' },
        ],
      },
      3,
      [],
    ])
  })

  test('vector 27: leaves the other tools out where the host knows no such choice', () => {
    const filtered = ['tools_filtered;/tool_choice']
    const rules = { allowedTools: false }
    expect(choiceOf({ kind: 'allowed', names: ['f'], force: true }, rules)).toEqual([
      { type: 'function', name: 'f' },
      1,
      filtered,
    ])
    expect(choiceOf({ kind: 'allowed', names: ['f', 'g'], force: true }, rules)).toEqual(['required', 2, filtered])
    expect(choiceOf({ kind: 'allowed', names: ['f', 'g'], force: false }, rules)).toEqual(['auto', 2, filtered])
  })

  test('pitfall 26: without tools says nothing, and is refused where it demands one', () => {
    const { body } = rendered({ toolChoice: { kind: 'auto' }, parallelTools: false })
    for (const name of ['tools', 'tool_choice', 'parallel_tool_calls']) expect(body).not.toHaveProperty(name)
    expect(refusedBy({ toolChoice: { kind: 'required' } })).toStartWith('tool_choice: ')
    expect(refusedBy({ tools, toolChoice: { kind: 'named', name: 'x' } })).toContain('`x`')
    expect(refusedBy({ tools, toolChoice: { kind: 'allowed', names: ['x'], force: false } })).toStartWith(
      'tool_choice: ',
    )
  })
})

describe('one call at a time', () => {
  const tools = [tool('f')]

  test('vectors 25 and 26: is a flag of its own, and needs none where nothing is called', () => {
    expect(rendered({ tools, parallelTools: false }).body.parallel_tool_calls).toBe(false)
    expect(rendered({ tools, parallelTools: true }).body).not.toHaveProperty('parallel_tool_calls')
    const { body } = rendered({ tools, parallelTools: false, toolChoice: { kind: 'none' } })
    expect(body).not.toHaveProperty('parallel_tool_calls')
  })

  test('is kept in the gateway where the host has no flag', () => {
    const { body, mapping, warnings } = rendered({ tools, parallelTools: false }, gpts.plain)
    expect(body).not.toHaveProperty('parallel_tool_calls')
    expect(mapping.singleToolCall).toBe(true)
    expect(warnings).toEqual(['parallel_tools_dropped;/parallel_tool_calls'])
  })
})
