import { describe, expect, test } from 'bun:test'
import { parsed, refusedParse } from '../../../../test/parts/chat-requests.ts'

const messages = [{ role: 'user', content: 'hi' }]
const offered = (...tools: object[]) => parsed({ messages, tools }).tools
const choice = (fields: object) => parsed({ messages, ...fields }).toolChoice

describe('tools', () => {
  test('in the older form alone are called one at a time, as an answer of that form has one call', () => {
    const functions = [{ name: 'f' }]
    const legacy = parsed({ messages, functions, parallel_tool_calls: true })
    expect([legacy.parallelTools, legacy.pointers?.parallelTools]).toEqual([false, '/functions'])
    expect(legacy.oneCallByForm).toBe(true)
    const said = parsed({ messages, functions, parallel_tool_calls: false })
    expect([said.parallelTools, said.pointers?.parallelTools]).toEqual([false, '/parallel_tool_calls'])
    expect(said.oneCallByForm).toBeUndefined()
    const both = parsed({ messages, functions, tools: [{ type: 'function', function: { name: 'g' } }] })
    expect([both.parallelTools, both.pointers?.parallelTools]).toEqual([undefined, '/parallel_tool_calls'])
  })

  test('pitfall 5: a schema is carried as it was written', () => {
    const schema = '{"type":"object", "properties":{"z":{"type":"number","maximum":1.0},"10":{},"2":{}}}'
    const body = `{"model":"m","messages":[{"role":"user","content":"x"}],
      "tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`
    expect(parsed(body).tools[0]).toEqual({ kind: 'function', name: 'f', schema, pointer: '/tools/0' })
  })

  test('pitfall 11: flat and Messages-shaped tools are read like their own, each by itself', () => {
    const tools = offered(
      { type: 'function', name: 'a', parameters: {}, strict: true },
      { name: 'b', input_schema: { type: 'object' } },
      { type: 'custom', name: 'c', input_schema: {} },
      { type: 'custom', name: 'd', format: { type: 'text' } },
      { type: 'function', function: { name: 'e', description: 'E' } },
    )
    expect(tools).toMatchObject([
      { kind: 'function', name: 'a', schema: '{}', strict: true },
      { kind: 'function', name: 'b', schema: '{"type":"object"}' },
      { kind: 'function', name: 'c', schema: '{}' },
      { kind: 'custom', name: 'd', grammar: undefined },
      { kind: 'function', name: 'e', schema: undefined, description: 'E' },
    ])
  })

  test('vector 38: a custom tool keeps its grammar, written either way', () => {
    const grammar = { type: 'grammar', grammar: { definition: 'g', syntax: 'lark' } }
    const tools = offered(
      { type: 'custom', custom: { name: 'a', format: grammar } },
      { type: 'custom', name: 'b', format: { type: 'grammar', definition: 'g', syntax: 'lark' } },
    )
    const written = '{"type":"grammar","grammar":{"definition":"g","syntax":"lark"}}'
    expect(tools).toMatchObject([{ grammar: written }, { grammar: written }])
  })

  test('pitfall 45: a tool type that only one provider has is refused by name', () => {
    const refused = refusedParse({ messages, tools: [{ type: 'web_search_20250305', name: 'web_search' }] })
    expect([refused.param, refused.message.includes('web_search_20250305')]).toEqual(['tools[0].type', true])
    expect(refusedParse({ messages, tools: [{ name: 'x' }] }).param).toBe('tools[0].type')
    expect(refusedParse({ messages, tools: [{ type: 'function', function: {} }] }).param).toBe('tools[0].function.name')
  })

  test('warns about further members of a tool', () => {
    const tool = { type: 'function', function: { name: 'f' }, defer_loading: true }
    expect(parsed({ messages, tools: [tool] }).warned).toEqual(['field_dropped /tools/0/defer_loading'])
  })
})

describe('tool choice', () => {
  test('all forms of it', () => {
    expect(choice({})).toBeUndefined()
    expect(choice({ tool_choice: 'none' })).toEqual({ kind: 'none' })
    expect(choice({ tool_choice: 'auto' })).toEqual({ kind: 'auto' })
    expect(choice({ tool_choice: 'required' })).toEqual({ kind: 'required' })
    expect(choice({ tool_choice: { type: 'function', function: { name: 'f' } } })).toEqual({ kind: 'named', name: 'f' })
    expect(choice({ tool_choice: { type: 'custom', custom: { name: 'f' } } })).toEqual({ kind: 'named', name: 'f' })
    expect(choice({ tool_choice: { type: 'tool', name: 'f' } })).toEqual({ kind: 'named', name: 'f' })
    expect(choice({ tool_choice: { type: 'any' } })).toEqual({ kind: 'required' })
    expect(choice({ function_call: 'auto' })).toEqual({ kind: 'auto' })
    expect(refusedParse({ messages, tool_choice: 'maybe' }).param).toBe('tool_choice')
    expect(refusedParse({ messages, tool_choice: 7 }).param).toBe('tool_choice')
  })

  test('vector 25: the parallel flag alone makes no choice', () => {
    expect(parsed({ messages, parallel_tool_calls: false })).toMatchObject({
      toolChoice: undefined,
      parallelTools: false,
    })
  })

  test('vector 26: the parallel flag is independent of the choice', () => {
    expect(parsed({ messages, tool_choice: 'none', parallel_tool_calls: false })).toMatchObject({
      toolChoice: { kind: 'none' },
      parallelTools: false,
    })
    const single = { type: 'auto', disable_parallel_tool_use: true }
    expect(parsed({ messages, tool_choice: single }).parallelTools).toBe(false)
  })

  test('vector 27: allowed tools, written either way', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }]
    expect(choice({ tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools } } })).toEqual({
      kind: 'allowed',
      names: ['f'],
      force: true,
    })
    const flat = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] }
    expect(choice({ tool_choice: flat })).toEqual({ kind: 'allowed', names: ['f'], force: false })
  })
})
