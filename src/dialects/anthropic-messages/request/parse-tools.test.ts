import { describe, expect, test } from 'bun:test'
import { parsedMessages as parsed, refusedMessages as refused } from '../../../../test/parts/translation.ts'

const messages = [{ role: 'user', content: 'hi' }]
const schema = { type: 'object', properties: {} }

describe('custom tools', () => {
  test('pitfall 5: the schema is carried as it was written', () => {
    const raw = '{ "type":"object","properties":{"z":{"maximum":12345678901234567890},"a":{} } }'
    const body = `{"model":"a/b","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f",
      "input_schema":${raw},"description":"d","strict":true,"cache_control":{"type":"ephemeral"}}]}`
    expect(parsed(body).tools).toEqual([
      {
        kind: 'function',
        name: 'f',
        description: 'd',
        schema: raw,
        strict: true,
        cacheMark: { life: 'short', pointer: '/tools/0/cache_control' },
        pointer: '/tools/0',
      },
    ])
  })

  test('pitfall 44: deferred tools are all sent, and said to be', () => {
    const tools = [
      { name: 'f', input_schema: schema, defer_loading: true, eager_input_streaming: true },
      { type: 'custom', name: 'g', input_schema: schema, defer_loading: true, eager_input_streaming: false },
    ]
    const { tools: parsedTools, warnings } = parsed({ tools })
    expect(parsedTools.map(({ name }) => name)).toEqual(['f', 'g'])
    expect(warnings).toEqual([
      'defer_loading_dropped;/tools/0/defer_loading',
      'eager_input_streaming_dropped;/tools/0/eager_input_streaming',
    ])
  })

  test('examples of input join the description', () => {
    const tools = [{ name: 'f', description: 'd', input_schema: schema, input_examples: [{ a: 1 }, { b: 2 }] }]
    expect(parsed({ tools }).tools[0]?.description).toBe('d\n\nExamples of input:\n{"a":1}\n{"b":2}')
  })

  test('pitfall 47: a tool that only code may call is refused by name', () => {
    const tool = { name: 'f', input_schema: schema }
    expect(parsed({ tools: [{ ...tool, allowed_callers: ['direct', 'code_execution_20260120'] }] }).warnings).toEqual(
      [],
    )
    const failure = refused({ tools: [{ ...tool, allowed_callers: ['code_execution_20260120'] }] })
    expect(failure.message).toContain('`f`')
    expect(failure.facts.param).toBe('tools[0].allowed_callers')
  })

  test('wrong types are refused by their place', () => {
    expect(refused({ tools: [{ input_schema: schema }] }).facts.param).toBe('tools[0].name')
    expect(refused({ tools: [{ name: 'f', input_schema: 'x' }] }).facts.param).toBe('tools[0].input_schema')
    expect(refused({ tools: [7] }).facts.param).toBe('tools[0]')
  })
})

describe('typed tools', () => {
  test('vector 53: client tools are functions with their published schema', () => {
    const { tools, unsupported } = parsed({
      tools: [
        { type: 'bash_20250124', name: 'bash' },
        { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 100 },
        { type: 'memory_20250818', name: 'memory' },
      ],
    })
    expect(unsupported).toEqual([])
    expect(tools.map(({ name }) => name)).toEqual(['bash', 'str_replace_based_edit_tool', 'memory'])
    const bash = tools[0]?.kind === 'function' ? JSON.parse(tools[0].schema ?? '') : undefined
    expect(Object.keys(bash.properties)).toEqual(['command', 'restart'])
  })

  test('vector 53 and pitfall 45: server tools and toolsets are refused by their type', () => {
    for (const type of ['web_search_20250305', 'code_execution_20260521', 'computer_toolset_20260801', 'mcp_toolset']) {
      const [field] = parsed({ tools: [{ type, name: 'x' }] }).unsupported
      expect(field).toMatchObject({ field: '/tools/0', refuse: true })
      expect(field?.reason).toContain(`\`${type}\``)
    }
  })
})

describe('tools in mid-conversation', () => {
  test('the list is the one offered at the end, with a warning', () => {
    const change = (type: string, tool: object) => ({ role: 'system', content: [{ type, tool }] })
    const { tools, warnings } = parsed({
      tools: [
        { name: 'f', input_schema: schema },
        { name: 'g', input_schema: schema },
      ],
      messages: [
        ...messages,
        change('tool_removal', { type: 'tool_reference', name: 'f' }),
        { role: 'assistant', content: 'a' },
        ...messages,
        change('tool_addition', { type: 'tool_definition', definition: { name: 'h', input_schema: schema } }),
        change('tool_removal', { type: 'tool_reference', name: 'g' }),
        change('tool_addition', { type: 'tool_reference', name: 'g' }),
      ],
    })
    expect(tools.map(({ name }) => name)).toEqual(['g', 'h'])
    expect(warnings).toEqual([
      'tool_removal_merged;/messages/1/content/0',
      'tool_addition_merged;/messages/4/content/0',
    ])
  })
})

test('tool choice and the flag against parallel calls', () => {
  const choice = (tool_choice: object) => {
    const { toolChoice, parallelTools } = parsed({ tool_choice })
    return [toolChoice, parallelTools]
  }
  expect(choice({ type: 'auto' })).toEqual([{ kind: 'auto' }, undefined])
  expect(choice({ type: 'any', disable_parallel_tool_use: true })).toEqual([{ kind: 'required' }, false])
  expect(choice({ type: 'tool', name: 'f', disable_parallel_tool_use: false })).toEqual([
    { kind: 'named', name: 'f' },
    undefined,
  ])
  expect(choice({ type: 'none' })).toEqual([{ kind: 'none' }, undefined])
  expect(refused({ tool_choice: { type: 'required' } }).facts.param).toBe('tool_choice.type')
})
