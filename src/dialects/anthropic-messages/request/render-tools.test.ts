import { describe, expect, test } from 'bun:test'
import {
  assistant,
  call,
  models,
  refusalOf,
  renderMessagesBody,
  result,
  user,
} from '../../../../test/parts/translation.ts'
import type { Conversation, FunctionTool, Tool } from '../../canonical/conversation.ts'

const tool = (name: string, parts: Partial<FunctionTool> = {}): FunctionTool => ({
  kind: 'function',
  name,
  ...parts,
})
const f = tool('f')
const g = tool('g')

describe('schemas', () => {
  const schemaOf = (schema: string) => {
    const { body, json, warnings } = renderMessagesBody({ tools: [tool('f', { schema })] })
    return { tool: body.tools[0], json, warnings }
  }

  test('vector 22: a tool without parameters takes an empty object', () => {
    expect(renderMessagesBody({ tools: [f] }).body.tools).toEqual([
      { name: 'f', input_schema: { type: 'object', properties: {} } },
    ])
  })

  test('pitfall 5: a schema that needs no change is sent as it was written', () => {
    const schema = '{ "properties":{"z":{"maximum":12345678901234567890},"2":{},"1":{}}, "type":"object" }'
    expect(schemaOf(schema).json).toContain(`"input_schema":${schema}`)
  })

  test('pitfall 52: the root becomes an object, the rest stays as it was written', () => {
    expect(schemaOf('{"properties":{"n":{"const":1.0}}}').json).toContain(
      '"input_schema":{"type":"object","properties":{"n":{"const":1.0}}}',
    )
    expect(schemaOf('{"type":["object","null"],"title":"T"}').json).toContain(
      '"input_schema":{"type":"object","title":"T"}',
    )
    expect(refusalOf({ tools: [tool('f', { schema: '{"type":"string"}' })] }).message).toContain('`f`')
  })

  test('vector 23: a choice at the root is merged and explained in the description, with a warning', () => {
    const { tool: sent, warnings } = schemaOf(
      '{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"anyOf":[' +
        '{"properties":{"a":{"type":"string"}},"required":["a"]},' +
        '{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"integer"}},"required":["b"]}]}',
    )
    expect(sent).toEqual({
      name: 'f',
      description: 'The input must have at least one of these sets of fields: (a) or (b).',
      input_schema: {
        type: 'object',
        properties: {
          k: { type: 'string' },
          a: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
          b: { type: 'integer' },
        },
        required: ['k'],
      },
    })
    expect(warnings).toEqual(['tool_schema_merged;/tools/0'])
  })

  test('pitfall 52: allOf and references at the root are merged too', () => {
    const { tool: sent } = schemaOf(
      '{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"b":{}},"required":["b"]}],' +
        '"$defs":{"A":{"type":"object","properties":{"a":{}},"required":["a"]}}}',
    )
    expect(sent.input_schema).toEqual({
      type: 'object',
      properties: { a: {}, b: {} },
      required: ['a', 'b'],
      $defs: { A: { type: 'object', properties: { a: {} }, required: ['a'] } },
    })
  })

  test('vector 23: what cannot be merged is refused by the name of the tool', () => {
    for (const branch of ['{"type":"string"}', '{"$ref":"#"}', '{"$ref":"https://x/y"}', '{"anyOf":[{}]}', 'true']) {
      const failure = refusalOf({ tools: [tool('pick', { schema: `{"oneOf":[${branch}]}`, pointer: '/tools/0' })] })
      expect(failure.message).toContain('`pick`')
      expect(failure.facts.param).toBe('tools[0]')
    }
  })

  test('pitfall 59: a reference to itself at the root is refused, not followed', () => {
    const schema = '{"anyOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":{"$ref":"#/$defs/A"}}}'
    expect(refusalOf({ tools: [tool('f', { schema })] }).message).toContain('`f`')
  })

  test('pitfall 53: strict is only sent where the model knows it and the schema qualifies', () => {
    const closed = '{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}'
    const sent = (schema: string, rules = {}) =>
      renderMessagesBody({ tools: [tool('f', { schema, strict: true })] }, rules)
    expect(sent(closed, { strictTools: true }).body.tools[0].strict).toBe(true)
    expect(sent(closed, { strictTools: true }).warnings).toEqual([])
    for (const one of [
      sent(closed),
      sent('{"type":"object"}', { strictTools: true }),
      sent(closed.replace('"string"', '"string","minLength":2'), { strictTools: true }),
      sent(closed.replace('{"type":"string"}', `{"allOf":[${closed}]}`), { strictTools: true }),
      sent(closed.replace('{"type":"string"}', '{"oneOf":[{"type":"string"}]}'), { strictTools: true }),
    ]) {
      expect(one.body.tools[0].strict).toBeUndefined()
      expect(one.warnings).toEqual(['strict_dropped;/tools/0'])
    }
    expect(renderMessagesBody({ tools: [tool('f', { schema: closed })] }, { strictTools: true }).body.tools[0]).toEqual(
      {
        name: 'f',
        input_schema: JSON.parse(closed),
      },
    )
  })
})

describe('strict tools together', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `f${i}`)
  /** An object of so many fields of one schema, of which the first ones are required. */
  const object = (count: number, schema: string, required = 0) =>
    `{"type":"object","properties":{${names(count).map((name) => `"${name}":${schema}`)}},` +
    `"required":${JSON.stringify(names(required))},"additionalProperties":false}`
  const text = '{"type":"string"}'
  const strictOnes = (schemas: readonly string[], parts: Partial<Conversation> = {}) => {
    const tools = schemas.map((schema, i) => tool(`t${i}`, { schema, strict: true, pointer: `/tools/${i}` }))
    const { body, warnings } = renderMessagesBody({ ...parts, tools }, { strictTools: true })
    return [body.tools.map(({ strict }: { strict?: boolean }) => strict === true), warnings]
  }

  test('are twenty at most', () => {
    const [strict, warnings] = strictOnes(names(21).map(() => object(1, text, 1)))
    expect(strict).toEqual([...names(20).map(() => true), false])
    expect(warnings).toEqual(['strict_dropped;/tools/20'])
  })

  test('have 24 optional fields at most, at any depth', () => {
    expect(strictOnes([object(20, text), object(4, text)])).toEqual([[true, true], []])
    const nested = object(1, object(4, text), 0)
    expect(strictOnes([object(20, text), nested, object(4, text)])).toEqual([
      [true, false, true],
      ['strict_dropped;/tools/1'],
    ])
    expect(strictOnes([object(30, text, 6), object(1, text, 1)])).toEqual([[true, true], []])
  })

  test('have 16 fields of several types at most', () => {
    for (const union of ['{"type":["string","null"]}', '{"anyOf":[{"type":"string"},{"type":"null"}]}']) {
      expect(strictOnes([object(16, union, 16)])).toEqual([[true], []])
      expect(strictOnes([object(17, union, 17)])).toEqual([[false], ['strict_dropped;/tools/0']])
      expect(strictOnes([object(9, union, 9), object(8, union, 8), object(7, union, 7)])).toEqual([
        [true, false, true],
        ['strict_dropped;/tools/1'],
      ])
    }
  })

  test('share this with the form of the answer, which comes first', () => {
    const outputFormat = (schema: string): Conversation['outputFormat'] => ({
      kind: 'json-schema',
      name: 'out',
      schema,
    })
    const dropped = [[false], ['strict_dropped;/tools/0']]
    expect(strictOnes([object(10, text)], { outputFormat: outputFormat(object(14, text)) })).toEqual([[true], []])
    expect(strictOnes([object(10, text)], { outputFormat: outputFormat(object(15, text)) })).toEqual(dropped)
  })
})

describe('names and kinds', () => {
  test('vector 38: a custom tool becomes a function of one string; a grammar is refused', () => {
    const custom: Tool = { kind: 'custom', name: 'patch', description: 'd' }
    const { body, rendered } = renderMessagesBody({ tools: [custom] })
    expect(body.tools).toEqual([
      {
        name: 'patch',
        description: 'd',
        input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
    ])
    expect([...rendered.mapping.customTools]).toEqual(['patch'])
    expect(refusalOf({ tools: [{ ...custom, grammar: '{"syntax":"lark"}' }] }).message).toContain('`patch`')
  })

  test('pitfall 50: names of foreign form are replaced in tools, history and choice, with the way back', () => {
    const turns = [user('u'), assistant(call('c', '{}', 'a.b')), user(result('c'))]
    const { body, rendered } = renderMessagesBody({
      tools: [tool('a.b'), tool('a/b')],
      turns,
      toolChoice: { kind: 'named', name: 'a.b' },
    })
    const [dot, slash] = body.tools.map(({ name }: { name: string }) => name)
    expect(dot).toMatch(/^a_b_[0-9a-f]{8}$/)
    expect(slash).toMatch(/^a_b_[0-9a-f]{8}$/)
    expect(dot).not.toBe(slash)
    expect(body.messages[1].content[0].name).toBe(dot)
    expect(body.tool_choice.name).toBe(dot)
    expect(rendered.mapping.toolNames.get(dot)).toBe('a.b')
    expect(rendered.mapping.toolNames.get(slash)).toBe('a/b')
  })

  test('renames arguments too, also those of the tool for the answer', () => {
    const schema = '{"type":"object","properties":{"$top":{"type":"integer"}},"required":["$top"]}'
    const tools = [{ kind: 'function', name: 'a b', schema } as const]
    const turns = [user('u'), assistant(call('t', '{"$top":5}', 'a b')), user(result('t'))]
    const { body, rendered } = renderMessagesBody({ tools, turns })
    const [tool] = body.tools
    const [field = ''] = Object.keys(tool.input_schema.properties)
    expect(field).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/)
    expect(tool.input_schema.required).toEqual([field])
    expect(body.messages[1].content[0].input).toEqual({ [field]: 5 })
    expect(rendered.mapping.argumentNames).toEqual(new Map([[tool.name, new Map([[field, '$top']])]]))
    const outputFormat = { kind: 'json-schema', name: 'n', schema } as const
    const answer = renderMessagesBody({ outputFormat }, { ...models.s45, jsonOutput: 'emulated' })
    expect(answer.rendered.mapping.argumentNames).toEqual(new Map([['json', new Map([[field, '$top']])]]))
  })

  test('pitfall 51: too many tools are refused with both numbers', () => {
    const tools = Array.from({ length: 3 }, (_, i) => tool(`t${i}`))
    expect(refusalOf({ tools }, { toolsMax: 2 }).message).toContain('at most 2 tools; the request has 3')
  })

  test('a tool that appears twice is refused', () => {
    expect(refusalOf({ tools: [f, f] }).message).toContain('`f` appears twice')
  })
})

describe('tool choice', () => {
  const choice = (parts: Partial<Conversation>, rules = {}) => renderMessagesBody({ tools: [f, g], ...parts }, rules)

  test('pitfall 46: each choice has its word', () => {
    expect(choice({ toolChoice: { kind: 'auto' } }).body.tool_choice).toEqual({ type: 'auto' })
    expect(choice({ toolChoice: { kind: 'none' } }).body.tool_choice).toEqual({ type: 'none' })
    expect(choice({ toolChoice: { kind: 'required' } }).body.tool_choice).toEqual({ type: 'any' })
    expect(choice({ toolChoice: { kind: 'named', name: 'g' } }).body.tool_choice).toEqual({ type: 'tool', name: 'g' })
    expect(choice({}).body.tool_choice).toBeUndefined()
  })

  test('vector 25: the flag against parallel calls has auto as its carrier', () => {
    expect(choice({ parallelTools: false }).body.tool_choice).toEqual({ type: 'auto', disable_parallel_tool_use: true })
    expect(choice({ parallelTools: false, toolChoice: { kind: 'required' } }).body.tool_choice).toEqual({
      type: 'any',
      disable_parallel_tool_use: true,
    })
  })

  test('vector 26: none carries no flag', () => {
    expect(choice({ parallelTools: false, toolChoice: { kind: 'none' } }).body.tool_choice).toEqual({ type: 'none' })
  })

  test('vector 27: allowed tools are the only ones sent; one that must be called is named', () => {
    const only = choice({ toolChoice: { kind: 'allowed', names: ['f'], force: true } }, models.s45)
    expect(only.body.tools.map(({ name }: { name: string }) => name)).toEqual(['f'])
    expect(only.body.tool_choice).toEqual({ type: 'tool', name: 'f' })
    expect(only.warnings).toEqual(['tools_filtered;/tool_choice'])
    const both = choice({ toolChoice: { kind: 'allowed', names: ['f', 'g'], force: true } })
    expect(both.body.tool_choice).toEqual({ type: 'any' })
    expect(choice({ toolChoice: { kind: 'allowed', names: ['f'], force: false } }).body.tool_choice).toEqual({
      type: 'auto',
    })
    expect(refusalOf({ tools: [f], toolChoice: { kind: 'allowed', names: ['x'], force: true } }).facts.param).toBe(
      'tool_choice',
    )
  })

  test('replaces a forced tool choice by an instruction for models that refuse it, with a warning', () => {
    const { body, warnings } = choice({ toolChoice: { kind: 'required' }, parallelTools: false }, models.opus55)
    expect(body.tool_choice).toEqual({ type: 'auto', disable_parallel_tool_use: true })
    expect(warnings).toEqual(['tool_choice_relaxed;/tool_choice'])
  })

  test('pitfall 21: thinking that was asked for stays, and forcing yields', () => {
    const parts = { toolChoice: { kind: 'required' }, reasoning: { effort: 'low' }, outputCap: 9000 } as const
    const { body, warnings } = choice(parts, models.s45)
    expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 2048 })
    expect(body.tool_choice).toEqual({ type: 'auto' })
    expect(warnings).toEqual(['tool_choice_relaxed;/tool_choice'])
    expect(choice(parts, models.opus48).body.tool_choice).toEqual({ type: 'any' })
  })

  test('pitfall 26: without tools there is no choice to send, and a demand is refused', () => {
    const { body } = choice({ tools: [], toolChoice: { kind: 'auto' }, parallelTools: false })
    expect(body.tools).toBeUndefined()
    expect(body.tool_choice).toBeUndefined()
    expect(refusalOf({ toolChoice: { kind: 'required' } }).facts.param).toBe('tool_choice')
    expect(refusalOf({ tools: [f], toolChoice: { kind: 'named', name: 'x' } }).message).toContain('`x`')
  })
})
