import { describe, expect, test } from 'bun:test'
import { geminis, refusedBy, rendered } from '../../../../test/parts/gemini.ts'
import { assistant, call, result, user } from '../../../../test/parts/translation.ts'
import type { Conversation, FunctionTool, Tool } from '../../canonical/conversation.ts'

const tool = (name: string, more: Partial<FunctionTool> = {}): FunctionTool => ({
  kind: 'function',
  name,
  ...more,
})
const custom = (grammar?: string): Tool => ({ kind: 'custom', name: 'p', description: 'Patch.', grammar })
const tools = [tool('f'), tool('g')]
const config = (parts: Partial<Conversation>, rules = {}) =>
  rendered({ tools, ...parts }, rules).body.toolConfig?.functionCallingConfig
const declared = (list: Tool[]) => rendered({ tools: list }).body.tools[0].functionDeclarations

describe('declarations', () => {
  test('stand in one entry; a function that takes nothing has no schema', () => {
    const schema = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
    expect(rendered({ tools: [tool('f', { description: 'Does.', schema }), tool('g')] }).body.tools).toEqual([
      {
        functionDeclarations: [
          { name: 'f', description: 'Does.', parametersJsonSchema: JSON.parse(schema) },
          { name: 'g' },
        ],
      },
    ])
  })

  test('have an object at the root, and references keep to themselves', () => {
    const referring = '{"$ref":"#/definitions/A","definitions":{"A":{"type":"object"}}}'
    expect(declared([tool('f', { schema: referring })])[0].parametersJsonSchema).toEqual({
      type: 'object',
      $defs: { A: { type: 'object' } },
      anyOf: [{ $ref: '#/$defs/A' }],
    })
    expect(declared([tool('f', { schema: '{"type":["object","null"]}' })])[0].parametersJsonSchema).toEqual({
      type: 'object',
    })
    expect(refusedBy({ tools: [tool('f', { schema: '{"type":"array"}' })] })).toContain(
      'The tool `f` cannot be used: the root of its schema must have the type object, not "array".',
    )
  })

  test('tell what they cannot demand, with a warning', () => {
    const schema = '{"type":"object","properties":{"s":{"type":"string","minLength":2}}}'
    const { body, warnings } = rendered({ tools: [tool('f', { schema, pointer: '/tools/0' })] })
    expect(body.tools[0].functionDeclarations[0].parametersJsonSchema.properties.s).toEqual({
      type: 'string',
      description: '(minLength: 2)',
    })
    expect(warnings).toEqual(['tool_schema_loosened;/tools/0'])
  })

  test('vector 38: a custom tool is a function with one string; its grammar is refused', () => {
    const { body, mapping } = rendered({ tools: [custom()] })
    expect(body.tools[0].functionDeclarations).toEqual([
      {
        name: 'p',
        description: 'Patch.',
        parametersJsonSchema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
    ])
    expect(mapping.customTools).toEqual(new Set(['p']))
    expect(refusedBy({ tools: [custom('{"type":"grammar"}')] })).toContain('grammar of the custom tool `p`')
  })

  test('pitfall 50: have names the provider takes, everywhere, with the way back', () => {
    const odd = [tool('1st'), tool('_1st'), tool('a.b')]
    const { body, mapping } = rendered({
      tools: odd,
      toolChoice: { kind: 'named', name: '1st' },
      turns: [user('u'), assistant(call('t', '{}', '1st')), user(result('t'))],
    })
    const names = body.tools[0].functionDeclarations.map(({ name }: { name: string }) => name)
    for (const name of names) expect(name).toMatch(/^[A-Za-z_][A-Za-z0-9_-]{0,127}$/)
    expect(new Set(names).size).toBe(3)
    expect(names[0]).toMatch(/^_1st_[0-9a-f]{8}$/)
    expect(names[1]).toBe('_1st')
    expect(mapping.toolNames).toEqual(
      new Map([
        [names[0], '1st'],
        [names[2], 'a.b'],
      ]),
    )
    expect(body.toolConfig.functionCallingConfig.allowedFunctionNames).toEqual([names[0]])
    expect(body.contents[1].parts[0].functionCall.name).toBe(names[0])
    expect(body.contents[2].parts[0].functionResponse.name).toBe(names[0])
  })

  test('pitfall 51: too many, or one twice, are refused', () => {
    const many = Array.from({ length: 513 }, (_, i) => tool(`f${i}`))
    expect(refusedBy({ tools: many })).toBe('tools: This model takes at most 512 tools; the request has 513.')
    expect(refusedBy({ tools: [tool('f'), tool('f')] })).toContain('`f` appears twice')
  })
})

describe('choice', () => {
  test('pitfall 47: has a mode for each', () => {
    expect(config({})).toBeUndefined()
    expect(config({ toolChoice: { kind: 'auto' } })).toEqual({ mode: 'AUTO' })
    expect(config({ toolChoice: { kind: 'none' } })).toEqual({ mode: 'NONE' })
    expect(config({ toolChoice: { kind: 'required' } })).toEqual({ mode: 'ANY' })
    expect(config({ toolChoice: { kind: 'named', name: 'g' } })).toEqual({ mode: 'ANY', allowedFunctionNames: ['g'] })
  })

  test('among some names them, freely or by force', () => {
    const allowed = (force: boolean) => ({ toolChoice: { kind: 'allowed', names: ['g'], force } }) as const
    expect(config(allowed(true))).toEqual({ mode: 'ANY', allowedFunctionNames: ['g'] })
    expect(config(allowed(false))).toEqual({ mode: 'VALIDATED', allowedFunctionNames: ['g'] })
    const filtered = rendered({ tools, ...allowed(false) }, { allowedTools: false })
    expect(filtered.body.tools[0].functionDeclarations).toEqual([{ name: 'g' }])
    expect(filtered.body.toolConfig.functionCallingConfig).toEqual({ mode: 'AUTO' })
    expect(filtered.warnings).toEqual(['tools_filtered;/tool_choice'])
  })

  test('a strict tool asks for arguments held to the schema', () => {
    const strict = { tools: [tool('f', { strict: true, pointer: '/tools/0' }), tool('g')] }
    expect(config(strict)).toEqual({ mode: 'VALIDATED' })
    expect(config({ ...strict, toolChoice: { kind: 'auto' } })).toEqual({ mode: 'VALIDATED' })
    expect(config({ ...strict, toolChoice: { kind: 'required' } })).toEqual({ mode: 'ANY' })
    expect(rendered(strict, { strictTools: false }).warnings).toEqual(['strict_dropped;/tools/0/strict'])
  })

  test('is relaxed, with a warning, where a call cannot be demanded', () => {
    const relaxed = rendered({ tools, toolChoice: { kind: 'required' } }, { forcedToolChoice: false })
    expect(relaxed.body.toolConfig.functionCallingConfig).toEqual({ mode: 'AUTO' })
    expect(relaxed.warnings).toEqual(['tool_choice_relaxed;/tool_choice'])
  })

  test('refuses a choice of a tool that is not offered', () => {
    expect(refusedBy({ toolChoice: { kind: 'required' } })).toContain('offers no tools')
    expect(refusedBy({ tools, toolChoice: { kind: 'named', name: 'h' } })).toContain('`h`, which is not among')
    expect(refusedBy({ tools, toolChoice: { kind: 'allowed', names: ['h'], force: false } })).toContain(
      'allows no tool',
    )
  })

  test('one call at a time is seen to in the reply', () => {
    const single = rendered({ tools, parallelTools: false })
    expect(single.mapping.singleToolCall).toBe(true)
    expect(single.warnings).toEqual(['parallel_tool_calls_emulated;/parallel_tool_calls'])
    const byForm = rendered({ tools, parallelTools: false, oneCallByForm: true })
    expect([byForm.mapping.singleToolCall, byForm.warnings]).toEqual([true, []])
    const none = rendered({ tools, parallelTools: false, toolChoice: { kind: 'none' } })
    expect(none.mapping.singleToolCall).toBe(false)
    expect(none.warnings).toEqual([])
  })
})

describe('a JSON form', () => {
  const outputFormat = {
    kind: 'json-schema',
    name: 'n',
    schema: '{"type":"object","properties":{"a":{"const":"x"}},"required":["a"],"additionalProperties":false}',
    strict: true,
  } as const

  test('is a MIME type and a schema', () => {
    expect(rendered({ outputFormat }).body.generationConfig).toMatchObject({
      responseMimeType: 'application/json',
      responseJsonSchema: {
        type: 'object',
        properties: { a: { enum: ['x'] } },
        required: ['a'],
        additionalProperties: false,
      },
    })
    const any = rendered({ outputFormat: { kind: 'json-object' } }).body.generationConfig
    expect(any.responseMimeType).toBe('application/json')
    expect(any).not.toHaveProperty('responseJsonSchema')
  })

  test('goes together with tools from Gemini 3 on', () => {
    const { body, mapping } = rendered({ outputFormat, tools }, geminis.g3)
    expect(body.generationConfig.responseMimeType).toBe('application/json')
    expect(mapping.jsonTool).toBeUndefined()
  })

  test('pitfall 126: beside tools of an older model it is a hidden function', () => {
    const { body, mapping } = rendered({ outputFormat, tools: [tool('json')] }, geminis.flash25)
    expect(body.generationConfig).not.toHaveProperty('responseMimeType')
    expect(mapping.jsonTool).toBe('json_2')
    expect(body.tools[0].functionDeclarations[1]).toMatchObject({
      name: 'json_2',
      parametersJsonSchema: { type: 'object', required: ['a'] },
    })
    expect(body.toolConfig.functionCallingConfig).toEqual({ mode: 'ANY' })
    expect(rendered({ outputFormat }, geminis.flash25).body.generationConfig.responseMimeType).toBe('application/json')
  })

  test('through a hidden function leaves the choice among the own ones as it was', () => {
    const choose = (toolChoice: Conversation['toolChoice']) => config({ outputFormat, toolChoice }, geminis.flash25)
    expect(choose({ kind: 'none' })).toEqual({ mode: 'ANY', allowedFunctionNames: ['json'] })
    expect(choose({ kind: 'named', name: 'g' })).toEqual({ mode: 'ANY', allowedFunctionNames: ['g'] })
    expect(choose({ kind: 'required' })).toEqual({ mode: 'ANY', allowedFunctionNames: tools.map(({ name }) => name) })
    expect(choose({ kind: 'auto' })).toEqual({ mode: 'ANY' })
    expect(choose({ kind: 'allowed', names: ['g'], force: false })).toEqual({
      mode: 'ANY',
      allowedFunctionNames: ['g', 'json'],
    })
  })
})
