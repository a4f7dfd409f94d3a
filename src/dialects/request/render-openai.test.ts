// The parts that Chat Completions and Responses render alike. Each row is sent to both; the expected members are written
// out where the two differ.

import { describe, expect, test } from 'bun:test'
import { conversation } from '../../../test/parts/translation.ts'
import { Failure } from '../../kernel/failure.ts'
import type {
  Conversation,
  CustomTool,
  FunctionTool,
  OutputFormat,
  ReasoningSettings,
} from '../canonical/conversation.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { openaiOwnTiers } from '../canonical/tiers.ts'
import type { Target } from '../canonical/translation.ts'
import { openaiChat } from '../openai-chat/index.ts'
import { openaiResponses } from '../openai-responses/index.ts'

type Parts = Partial<Conversation>
const both = { chat: openaiChat, responses: openaiResponses }
type Side = keyof typeof both
const sides: readonly Side[] = ['chat', 'responses']

function render(side: Side, parts: Parts, rules: TargetRules = {}, facts: Partial<Target> = {}) {
  const target = { upstreamModel: 'up', issuer: 'acme/x/up', defaultOutputCap: undefined, maxOutputTokens: undefined }
  return both[side].translation.renderRequest(conversation(parts), { ...target, rules, ...facts })
}

function sent(side: Side, parts: Parts, rules?: TargetRules, facts?: Partial<Target>) {
  const result = render(side, parts, rules, facts)
  if (result instanceof Failure) throw new Error(`refused: ${result.message}`)
  const json = new TextDecoder().decode(result.body)
  const warned = result.warnings.map(({ code, field }) => `${code} ${field}`)
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  return { json, body: JSON.parse(json) as any, warned, mapping: result.mapping }
}

function refusal(side: Side, parts: Parts, rules?: TargetRules): string {
  const result = render(side, parts, rules)
  if (!(result instanceof Failure)) throw new Error('was not refused')
  return `${result.facts.param}: ${result.message}`
}

/** Members of the body, undefined = absent; the last element is the list of warnings. */
interface Row {
  readonly name: string
  readonly parts: Parts
  readonly rules?: TargetRules
  readonly facts?: Partial<Target>
  readonly chat: object
  /** As in chat, if absent. */
  readonly responses?: object
  readonly warned?: readonly string[]
}

function check(rows: readonly Row[]): void {
  for (const { name, parts, rules, facts, chat, responses = chat, warned = [] } of rows) {
    test.each([['chat', chat] as const, ['responses', responses] as const])(`${name} (%s)`, (side, expected) => {
      const result = sent(side, parts, rules, facts)
      expect(Object.fromEntries(Object.keys(expected).map((key) => [key, result.body[key]]))).toEqual(expected)
      expect(result.warned).toEqual([...warned])
    })
  }
}

const off = { temperature: undefined, top_p: undefined }
const warm = { temperature: 0.2, topP: 1 }
const efforts = ['none', 'low', 'high'] as const
const long = 'e'.repeat(300)
const hash = new Bun.CryptoHasher('sha256').update(long).digest('hex')

describe('settings', () => {
  check([
    {
      name: 'vector 54: sampling goes to a target that accepts it',
      parts: { sampling: { temperature: 0.2, topP: 0.9 } },
      chat: { temperature: 0.2, top_p: 0.9 },
    },
    ...(
      [
        ['no sampling', { sampling: 'none' }, undefined],
        ['none while it reasons, and it does by default', { sampling: 'without-reasoning', thinksByDefault: true }],
        ['none while it reasons, as requested', { sampling: 'without-reasoning' }, { effort: 'low' }],
      ] as const
    ).map(
      ([what, rules, reasoning]): Row => ({
        name: `a target that accepts ${what} gets none; a default needs no warning`,
        parts: { sampling: warm, reasoning },
        rules: { efforts, ...rules },
        chat: off,
        warned: ['temperature_dropped /temperature'],
      }),
    ),
    {
      name: 'sampling is accepted once reasoning is off',
      parts: { sampling: warm, reasoning: { mode: 'off' } },
      rules: { efforts, sampling: 'without-reasoning', thinksByDefault: true },
      chat: { temperature: 0.2, top_p: 1 },
    },
    {
      name: 'pitfall 16: a temperature above the maximum is lowered',
      parts: { sampling: { temperature: 1.7 } },
      rules: { temperatureMax: 1 },
      chat: { temperature: 1 },
      warned: ['temperature_clamped /temperature'],
    },
    {
      name: 'pitfall 17: only temperature is sent where both are refused',
      parts: { sampling: { temperature: 0.5, topP: 0.5 } },
      rules: { temperatureOrTopP: true },
      chat: { temperature: 0.5, top_p: undefined },
      warned: ['top_p_dropped /top_p'],
    },
    {
      name: 'top_k is omitted where it is not known',
      parts: { sampling: { topK: 5 } },
      chat: { top_k: undefined },
      warned: ['top_k_dropped /top_k'],
    },
    {
      name: 'pitfall 3: a cap above the maximum of the model is lowered',
      parts: { outputCap: 900 },
      facts: { maxOutputTokens: 500 },
      chat: { max_tokens: 500 },
      responses: { max_output_tokens: 500 },
      warned: ['max_tokens_clamped /max_tokens'],
    },
    {
      name: 'the default cap is sent if the caller gave none',
      parts: { outputCap: undefined },
      facts: { defaultOutputCap: 300 },
      chat: { max_tokens: 300 },
      responses: { max_output_tokens: 300 },
    },
    {
      name: 'no cap is sent without a default',
      parts: { outputCap: undefined },
      chat: { max_tokens: undefined },
      responses: { max_output_tokens: undefined },
    },
    ...([undefined, 'standard', 'auto'] as const).map(
      (serviceTier): Row => ({
        name: `the tier ${serviceTier} is sent to hosts of Responses, which all know it`,
        parts: { serviceTier },
        chat: { service_tier: undefined },
        responses: { service_tier: serviceTier === 'standard' ? 'default' : serviceTier },
      }),
    ),
    {
      name: 'a tier is sent',
      parts: { serviceTier: 'priority' },
      chat: { service_tier: 'priority' },
    },
    {
      name: 'a tier is dropped where the host has none',
      parts: { serviceTier: 'priority' },
      rules: { serviceTiers: {} },
      chat: { service_tier: undefined },
      warned: ['service_tier_dropped /service_tier'],
    },
    {
      name: 'the standard tier is named to hosts that might choose another, if the price has tiers',
      parts: {},
      rules: { serviceTiers: openaiOwnTiers },
      facts: { namesTier: true },
      chat: { service_tier: 'default' },
    },
    { name: 'the cache key is sent', parts: { promptCacheKey: 'k' }, chat: { prompt_cache_key: 'k' } },
    {
      name: 'vector 57: an end-user id that is too long is hashed',
      parts: { endUserId: long },
      chat: { user: hash },
      responses: { safety_identifier: hash },
    },
    {
      name: 'pitfall 7: `user` takes 64 characters',
      parts: { endUserId: 'e'.repeat(64) },
      rules: { endUserIdName: 'user' },
      chat: { user: 'e'.repeat(64) },
    },
    {
      name: 'pitfall 7: `safety_identifier` takes 128 characters',
      parts: { endUserId: 'e'.repeat(128) },
      rules: { endUserIdName: 'safety_identifier' },
      chat: { safety_identifier: 'e'.repeat(128) },
    },
    {
      name: 'an end-user id is dropped where the host refuses one',
      parts: { endUserId: 'u1' },
      rules: { endUserId: false },
      chat: { user: undefined, safety_identifier: undefined },
      warned: ['end_user_id_dropped /user'],
    },
    {
      name: 'vector 51: a hint that only the caller’s dialect has is omitted',
      parts: { unsupported: [{ field: '/diagnostics', refuse: false }] },
      chat: {},
      warned: ['diagnostics_dropped /diagnostics'],
    },
    {
      name: 'cache options are sent as written to a host with breakpoints',
      parts: { promptCacheOptions: { written: '{"mode" : "explicit"}', onlyMarked: true } },
      rules: { cacheStyle: 'breakpoint' },
      chat: { prompt_cache_options: { mode: 'explicit' } },
    },
    {
      name: 'cache options are dropped where caching is implicit',
      parts: { promptCacheOptions: { written: '{"mode":"explicit"}', onlyMarked: true } },
      rules: { cacheStyle: 'implicit' },
      chat: { prompt_cache_options: undefined },
      warned: ['prompt_cache_options_dropped /prompt_cache_options'],
    },
  ])

  test.each(sides)('refuses a cap of 0 and fields that break a guarantee (%s)', (side) => {
    expect(refusal(side, { outputCap: 0 })).toStartWith('max_tokens: ')
    expect(refusal(side, { unsupported: [{ field: '/inference_geo', refuse: true }] })).toStartWith('inference_geo: ')
  })

  test.each(sides)('hashes an email address (%s)', (side) => {
    const { body } = sent(side, { endUserId: 'a@b.c' })
    expect(body.user ?? body.safety_identifier).toMatch(/^[0-9a-f]{64}$/)
    expect(sent(side, { endUserId: 'e'.repeat(150) }, { endUserIdName: 'user' }).body.user).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('reasoning effort', () => {
  const wide = ['low', 'medium', 'high', 'xhigh'] as const
  const adjusted = 'effort_adjusted /reasoning_effort'
  const dropped = 'reasoning_dropped /reasoning_effort'
  const notDisabled = 'reasoning_not_disabled /reasoning_effort'
  const rows: readonly (readonly [
    name: string,
    ReasoningSettings,
    TargetRules,
    string | undefined,
    warned?: string,
  ])[] = [
    ['pitfall 23: a known effort is sent', { effort: 'high' }, {}, 'high'],
    ['pitfall 23: a higher effort is lowered to the nearest', { effort: 'max' }, {}, 'high', adjusted],
    ['pitfall 23: gaps are skipped', { effort: 'max' }, { efforts: ['low', 'xhigh'] }, 'xhigh', adjusted],
    ['pitfall 23: minimal is raised to the lowest', { effort: 'minimal' }, {}, 'low', adjusted],
    ['pitfall 23: no effort where there is none', { effort: 'high' }, { efforts: [] }, undefined, dropped],
    ['some reasoning never becomes none', { effort: 'low' }, { efforts: ['none', 'high', 'max'] }, 'high', adjusted],
    ['nor does a budget', { budgetTokens: 1024, mode: 'on' }, { efforts: ['none', 'high'] }, 'high', adjusted],
    ['it is dropped where only none is known', { effort: 'low' }, { efforts: ['none'] }, undefined, dropped],
    ['2048 tokens are low', { budgetTokens: 2048 }, { efforts: wide }, 'low'],
    ['2049 tokens are medium', { budgetTokens: 2049 }, { efforts: wide }, 'medium'],
    ['8192 tokens are medium', { budgetTokens: 8192, mode: 'on' }, { efforts: wide }, 'medium'],
    ['8193 tokens are high', { budgetTokens: 8193 }, { efforts: wide }, 'high'],
    ['20,000 tokens are high', { budgetTokens: 20_000 }, { efforts: wide }, 'high'],
    ['20,001 tokens are xhigh', { budgetTokens: 20_001 }, { efforts: wide }, 'xhigh'],
    ['off is none', { mode: 'off' }, { efforts: ['none', 'low'] }, 'none'],
    ['off is the lowest', { mode: 'off' }, { efforts: ['low', 'high'], thinksByDefault: true }, 'low', notDisabled],
    ['off is nothing where nothing is on', { mode: 'off' }, { thinksByDefault: false }, undefined],
    ['off is not promised where nothing is known', { mode: 'off' }, {}, undefined, notDisabled],
    ['off is nothing for a model that does not reason', { effort: 'none' }, { efforts: [] }, undefined],
    ['adaptive is left to the model', { mode: 'adaptive' }, {}, undefined],
  ]
  check(
    rows.map(([name, reasoning, rules, effort, warned]) => ({
      name,
      parts: { reasoning },
      rules,
      chat: { reasoning_effort: effort },
      responses: { reasoning: effort && { effort } },
      warned: warned === undefined ? [] : [warned],
    })),
  )
})

const closed = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'

describe('output format', () => {
  const format: OutputFormat & { kind: 'json-schema' } = { ...{ kind: 'json-schema', schema: closed } }
  const written = (parts: object) => ({ name: 'output', schema: JSON.parse(closed), strict: true, ...parts })
  const schemaRow = (name: string, parts: Partial<typeof format>, expected: object, warned: string[] = []): Row => ({
    name,
    parts: { outputFormat: { ...format, ...parts } },
    chat: { response_format: { type: 'json_schema', json_schema: written(expected) } },
    responses: { text: { format: { type: 'json_schema', ...written(expected) } } },
    warned,
  })
  const open = '{"type":"object","properties":{"a":{}}}'
  const uri = closed.replace('"string"', '"string","format":"uri"')
  const anyObject = { type: 'json_object' }
  check([
    schemaRow('a schema is strict where it can be', {}, {}),
    schemaRow('an open schema is not strict', { schema: open }, { schema: JSON.parse(open), strict: false }),
    schemaRow(
      'a strict schema with other keywords is not',
      { schema: uri, strict: true },
      { schema: JSON.parse(uri), strict: false },
      ['strict_dropped /response_format'],
    ),
    schemaRow(
      'name and description are sent, and strict is off if the caller says so',
      { name: 'a b', description: 'D', strict: false },
      { name: 'a_b', description: 'D', strict: false },
    ),
    {
      name: 'requests an object from a target without schemas',
      parts: { outputFormat: format },
      rules: { jsonOutput: 'object' },
      chat: { response_format: anyObject },
      responses: { text: { format: anyObject } },
      warned: ['json_schema_emulated /response_format'],
    },
  ])

  test.each(sides)('tells such a target the schema in the system prompt (%s)', (side) => {
    const { body } = sent(
      side,
      { system: [{ kind: 'text', text: 'S' }], outputFormat: format },
      { jsonOutput: 'object' },
    )
    expect((body.messages ?? body.input)[0].content).toEndWith(closed)
  })
})

describe('tools', () => {
  const tool = (name: string, parts: Partial<FunctionTool> = {}): FunctionTool => ({
    ...{ kind: 'function', name, schema: closed, pointer: '/tools/0' },
    ...parts,
  })
  const custom = (parts: Partial<CustomTool> = {}): CustomTool => ({
    ...{ kind: 'custom', name: 'patch', description: 'P' },
    ...parts,
  })
  const none = { type: 'object', properties: {} }
  /** A tool or choice in the form of each side. */
  const inForm = (side: Side, type: string, members: object) =>
    side === 'chat' ? { type, [type]: members } : { type, ...members }
  const takesAll: TargetRules = { customTools: true, allowedTools: true }

  test.each(sides)('pitfall 5: a schema is sent as written (%s)', (side) => {
    const schema = '{"type":"object", "properties":{"10":{"maximum":1.0},"2":{}}}'
    const { json } = sent(side, { tools: [tool('f', { schema, description: 'F' })] })
    const members = `"name":"f","description":"F","parameters":${schema}`
    expect(json).toContain(
      side === 'chat' ? `{"type":"function","function":{${members}}}` : `{"type":"function",${members},"strict":false}`,
    )
  })

  test.each(sides)('a tool without parameters has an empty object (%s)', (side) => {
    const strict = side === 'chat' ? {} : { strict: false }
    const { body } = sent(side, { tools: [tool('f', { schema: undefined })] })
    expect(body.tools).toEqual([inForm(side, 'function', { name: 'f', parameters: none, ...strict })])
    const empty = '{"type":"object","additionalProperties":false}'
    expect(sent(side, { tools: [tool('f', { schema: empty, strict: true })] }).body.tools).toEqual([
      inForm(side, 'function', { name: 'f', parameters: { ...none, additionalProperties: false }, strict: true }),
    ])
  })

  const nested = (inner: string) =>
    `{"type":"object","properties":{"a":{"anyOf":[{"type":"array","items":${inner}}]}},"required":["a"],"additionalProperties":false}`
  const strictRows: readonly (readonly [schema: string, isStrict: boolean, rules: TargetRules])[] = [
    [closed, true, {}],
    [closed, false, { strictTools: false }],
    ['{"type":"object","properties":{"a":{}},"additionalProperties":false}', false, {}],
    ['{"type":"object","properties":{}}', false, {}],
    [closed.replace('{"type":"string"}', '{"type":"array","items":{"type":"object"}}'), false, {}],
    [closed.replace('"string"', '"string","format":"uri"'), false, {}],
    [closed.replace('["a"]', '[]'), false, {}],
    [nested(closed), true, {}],
    [nested('{"type":["object","null"]}'), false, {}],
    [nested('{"type":"string","format":"uri"}'), false, {}],
  ]
  test.each(strictRows)(
    'pitfall 53: strict is only sent if the schema allows it: %s → %p',
    (schema, isStrict, rules) => {
      for (const side of sides) {
        const { body, warned } = sent(side, { tools: [tool('f', { schema, strict: true })] }, rules)
        const { strict = false } = side === 'chat' ? body.tools[0].function : body.tools[0]
        expect([strict, warned]).toEqual([isStrict, isStrict ? [] : ['strict_dropped /tools/0/strict']])
      }
    },
  )

  test.each(sides)('pitfall 50: names are made legal and unique, and can be restored (%s)', (side) => {
    const tools = [tool('a.b'), tool('a b'), tool('a_b'), tool('x'.repeat(80))]
    const { body, mapping } = sent(side, { tools, toolChoice: { kind: 'named', name: 'a.b' } })
    const names: string[] = body.tools.map(
      (each: { name?: string; function?: { name: string } }) => (each.function ?? each).name,
    )
    expect(new Set(names).size).toBe(4)
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    expect(names[2]).toBe('a_b')
    expect(body.tool_choice).toEqual(inForm(side, 'function', { name: names[0] }))
    expect([...mapping.toolNames].map(([, name]) => name)).toEqual(['a.b', 'a b', 'x'.repeat(80)])
    expect(mapping.toolNames.get(names[0] ?? '')).toBe('a.b')
  })

  test.each(sides)('pitfall 51: too many tools are refused with the limit and the count (%s)', (side) => {
    const tools = (count: number) => Array.from({ length: count }, (_, i) => tool(`f${i}`))
    const message = 'tools: This model takes at most 128 tools; the request has 129.'
    expect(refusal(side, { tools: tools(129) }, { toolsMax: 128 })).toBe(message)
    expect(sent(side, { tools: tools(128) }, { toolsMax: 128 }).body.tools).toHaveLength(128)
    if (side === 'responses') expect(refusal(side, { tools: tools(129) })).toBe(message)
    // A self-hosted server takes as many as fit its context.
    else expect(sent(side, { tools: tools(300) }).body.tools).toHaveLength(300)
  })

  test.each(sides)('pitfall 12: a custom tool is sent as such (%s)', (side) => {
    const grammar = '{"type":"grammar","grammar":{"syntax":"lark","definition":"start: \\"a\\""}}'
    const { body, mapping } = sent(side, { tools: [custom(), custom({ name: 'p2', grammar })] }, takesAll)
    const flat = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' }
    expect(body.tools).toEqual([
      inForm(side, 'custom', { name: 'patch', description: 'P' }),
      inForm(side, 'custom', { name: 'p2', description: 'P', format: side === 'chat' ? JSON.parse(grammar) : flat }),
    ])
    expect(mapping.customTools.size).toBe(0)
  })

  test.each(sides)('vector 38: it is a function with one string elsewhere, and a grammar is refused (%s)', (side) => {
    const { body, mapping } = sent(side, { tools: [custom()] }, { customTools: false })
    const { parameters, ...others } = side === 'chat' ? body.tools[0].function : body.tools[0]
    expect(others).toMatchObject({ name: 'patch', ...(side === 'chat' ? {} : { strict: false }) })
    expect([parameters.properties, parameters.required]).toEqual([{ input: { type: 'string' } }, ['input']])
    expect([...mapping.customTools]).toEqual(['patch'])
    expect(refusal(side, { tools: [custom({ grammar: '{"type":"grammar"}' })] }, { customTools: false })).toBe(
      'tools: The grammar of the custom tool `patch` cannot be enforced by this model.',
    )
  })

  describe('choice', () => {
    const tools = [tool('f'), tool('g'), custom()]
    const functionF = (side: Side) => inForm(side, 'function', { name: 'f' })
    const allowed = (names: string[], force: boolean) => ({ kind: 'allowed', names, force }) as const
    const relaxed = ['tool_choice_relaxed /tool_choice']
    const filtered = ['tools_filtered /tool_choice']
    const restricted = (side: Side, mode: string, ...listed: object[]) =>
      inForm(side, 'allowed_tools', { mode, tools: listed })

    const rows: readonly {
      readonly choice: Conversation['toolChoice']
      readonly rules?: TargetRules
      readonly expected: (side: Side) => unknown
      readonly count?: number
      readonly warned?: readonly string[]
    }[] = [
      { choice: { kind: 'auto' }, expected: () => 'auto' },
      { choice: { kind: 'none' }, expected: () => 'none' },
      { choice: { kind: 'required' }, expected: () => 'required' },
      { choice: { kind: 'named', name: 'f' }, expected: functionF },
      { choice: { kind: 'named', name: 'patch' }, expected: (side) => inForm(side, 'custom', { name: 'patch' }) },
      { choice: { kind: 'required' }, rules: { forcedToolChoice: false }, expected: () => 'auto', warned: relaxed },
      {
        choice: allowed(['f'], true),
        rules: { forcedToolChoice: false },
        expected: (side) => restricted(side, 'auto', functionF(side)),
        warned: relaxed,
      },
      {
        choice: allowed(['f', 'patch', 'gone'], true),
        expected: (side) => restricted(side, 'required', functionF(side), inForm(side, 'custom', { name: 'patch' })),
      },
      {
        choice: allowed(['f'], true),
        rules: { allowedTools: false },
        expected: functionF,
        count: 1,
        warned: filtered,
      },
      {
        choice: allowed(['f', 'g'], true),
        rules: { allowedTools: false },
        expected: () => 'required',
        count: 2,
        warned: filtered,
      },
      {
        choice: allowed(['f', 'g'], false),
        rules: { allowedTools: false },
        expected: () => 'auto',
        count: 2,
        warned: filtered,
      },
    ]
    test.each(rows)(
      'vector 27, pitfall 46: the choice $choice.kind, as far as the target supports it',
      ({ choice, rules, expected, count = 3, warned: said = [] }) => {
        for (const side of sides) {
          const { body, warned } = sent(side, { tools, toolChoice: choice }, { ...takesAll, ...rules })
          expect([body.tool_choice, body.tools.length, warned]).toEqual([expected(side), count, [...said]])
        }
      },
    )

    test.each(sides)('pitfall 26: without tools nothing is sent, and a required call is refused (%s)', (side) => {
      const { body } = sent(side, { toolChoice: { kind: 'auto' }, parallelTools: false })
      expect(Object.keys(body).filter((name) => name.includes('tool'))).toEqual([])
      const refused = (choice: Conversation['toolChoice'], offered: typeof tools = []) =>
        refusal(side, { tools: offered, toolChoice: choice })
      expect(refused({ kind: 'required' })).toStartWith('tool_choice: ')
      expect(refused({ kind: 'named', name: 'f' })).toStartWith('tool_choice: ')
      expect(refused({ kind: 'named', name: 'h' }, tools)).toContain('`h`')
      expect(refused(allowed(['h'], false), tools)).toStartWith('tool_choice: ')
    })

    test.each(sides)(
      'vectors 25 and 26: one call at a time is a flag, not sent where nothing is called (%s)',
      (side) => {
        const flag = (parts: Parts) => sent(side, { tools, ...parts }, takesAll).body.parallel_tool_calls
        expect(flag({ parallelTools: false })).toBe(false)
        expect(flag({ parallelTools: false, toolChoice: { kind: 'required' } })).toBe(false)
        expect(flag({ parallelTools: true })).toBeUndefined()
        expect(flag({ parallelTools: false, toolChoice: { kind: 'none' } })).toBeUndefined()
        const { body, mapping, warned } = sent(
          side,
          { tools: [tool('f')], parallelTools: false },
          { parallelFlag: false },
        )
        expect([body.parallel_tool_calls, mapping.singleToolCall]).toEqual([undefined, true])
        expect(warned).toEqual(['parallel_tools_dropped /parallel_tool_calls'])
      },
    )
  })
})
