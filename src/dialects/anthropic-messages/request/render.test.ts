import { describe, expect, test } from 'bun:test'
import {
  assistant,
  call,
  models,
  refusalOf,
  renderMessagesBody,
  target,
  text,
  user,
} from '../../../../test/parts/translation.ts'
import type { CacheMark, Conversation, ImageBlock, TextBlock, UserBlock } from '../../canonical/conversation.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAE='
const jpeg = '/9j/4AAQSkZJRgABAQ=='
const image = (mediaType: string, base64: string): ImageBlock => ({
  kind: 'image',
  source: { kind: 'data', mediaType, base64 },
})
const contentOf = (...blocks: UserBlock[]) => renderMessagesBody({ turns: [user(...blocks)] }).body.messages[0].content

describe('the output cap', () => {
  const capOf = (outputCap: number | undefined, facts: object) => {
    const { body, warnings } = renderMessagesBody({ outputCap }, target({}, facts))
    return [body.max_tokens, warnings]
  }

  test('vector 17: the cap is the caller’s, and without one the model’s default', () => {
    expect(capOf(80, { defaultOutputCap: 5, maxOutputTokens: 100 })).toEqual([80, []])
    expect(capOf(undefined, { defaultOutputCap: 4096, maxOutputTokens: 32_000 })).toEqual([4096, []])
  })

  test('pitfall 2: without a default the model’s largest answer, never a small number', () => {
    expect(capOf(undefined, { maxOutputTokens: 32_000 })).toEqual([32_000, []])
    expect(capOf(undefined, {})).toEqual([4096, []])
  })

  test('a cap above what the model can give is brought down with a warning', () => {
    expect(capOf(200, { maxOutputTokens: 100 })).toEqual([100, ['max_tokens_clamped;/max_tokens']])
  })
})

describe('sampling', () => {
  const sampled = (sampling: Conversation['sampling'], rules = {}, parts: Partial<Conversation> = {}) => {
    const { body, warnings, rendered } = renderMessagesBody({ sampling, ...parts }, rules)
    const { temperature, top_p, top_k } = body
    return { sent: { temperature, top_p, top_k }, warnings, version: rendered.headers['anthropic-version'] }
  }
  const nothing = { temperature: undefined, top_p: undefined, top_k: undefined }

  test('vector 18: left out where the model takes none, without a word if it was the default', () => {
    expect(sampled({ temperature: 0.2 }, models.opus55)).toMatchObject({
      sent: nothing,
      warnings: ['temperature_dropped;/temperature'],
    })
    expect(sampled({ temperature: 1, topP: 0.99 }, models.opus55)).toMatchObject({ sent: nothing, warnings: [] })
  })

  test('pitfall 16: a temperature above the ceiling is brought down with a warning', () => {
    expect(sampled({ temperature: 1.7 }, models.s45)).toMatchObject({
      sent: { ...nothing, temperature: 1 },
      warnings: ['temperature_clamped;/temperature'],
    })
  })

  test('pitfall 17: temperature goes before top_p where only one is taken', () => {
    expect(sampled({ temperature: 0.5, topP: 0.5, topK: 7 }, models.s45)).toMatchObject({
      sent: { temperature: 0.5, top_p: undefined, top_k: 7 },
      warnings: ['top_p_dropped;/top_p'],
    })
    expect(sampled({ temperature: 0.5, topP: 0.5 }).sent).toEqual({ temperature: 0.5, top_p: 0.5, top_k: undefined })
  })

  test('pitfall 18: left out while the model thinks', () => {
    const thinks = { reasoning: { effort: 'low' }, outputCap: 9000 } as const
    expect(sampled({ temperature: 0.5, topK: 3 }, models.s45, thinks)).toMatchObject({
      sent: nothing,
      warnings: ['temperature_dropped;/temperature', 'top_k_dropped;/top_k'],
    })
    expect(sampled({ temperature: 0.5 }, models.s45, { reasoning: { effort: 'none' } }).sent.temperature).toBe(0.5)
  })

  test('goes with the version that knows it', () => {
    expect(sampled({ temperature: 0.5 }).version).toBe('2023-06-01')
  })

  test('leaves out settings without a field in the dialect with a warning, unless they are empty', () => {
    const { warnings } = sampled({ seed: 1, presencePenalty: 0, frequencyPenalty: 0.5, logitBias: '{ }' })
    expect(warnings).toEqual(['frequency_penalty_dropped;/frequency_penalty', 'seed_dropped;/seed'])
    expect(sampled({ logitBias: '{"1":2}' }).warnings).toEqual(['logit_bias_dropped;/logit_bias'])
  })
})

describe('media', () => {
  test('vector 14: images by value and by address; other formats are refused', () => {
    expect(contentOf(image('image/png', png))).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
    ])
    expect(contentOf({ kind: 'image', source: { kind: 'url', url: 'https://x/i.png' } })).toEqual([
      { type: 'image', source: { type: 'url', url: 'https://x/i.png' } },
    ])
    const failure = refusalOf({ turns: [{ ...user(image('image/bmp', 'Qk0=')), pointer: '/messages/0' }] })
    expect(failure.message).toContain('image/bmp')
    expect(failure.facts.param).toBe('messages[0]')
  })

  test('pitfall 92: a wrong label is corrected by the bytes', () => {
    expect(contentOf(image('image/png', jpeg))[0].source.media_type).toBe('image/jpeg')
    expect(contentOf(image('image/jpg', 'AAAA'))[0].source.media_type).toBe('image/jpeg')
  })

  test('vector 15: a PDF is a document with its title', () => {
    const source = { kind: 'data', mediaType: 'application/pdf', base64: 'JVBERi0xLjc=' } as const
    expect(contentOf({ kind: 'document', source, title: 'r.pdf', context: 'about' })).toEqual([
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjc=' },
        title: 'r.pdf',
        context: 'about',
      },
    ])
  })

  test('pitfall 96: a PDF that came as an image is a document', () => {
    expect(contentOf(image('image/png', 'JVBERi0xLjc='))[0].type).toBe('document')
  })

  test('pitfall 97: documents by text, by address and by text in base64', () => {
    const plain = (data: string) => ({ type: 'document', source: { type: 'text', media_type: 'text/plain', data } })
    expect(contentOf({ kind: 'document', source: { kind: 'text', text: 'hello' } })).toEqual([plain('hello')])
    expect(
      contentOf({ kind: 'document', source: { kind: 'data', mediaType: 'text/csv', base64: btoa('a,b') } }),
    ).toEqual([plain('a,b')])
    expect(contentOf({ kind: 'document', source: { kind: 'url', url: 'https://x/d.pdf' } })).toEqual([
      { type: 'document', source: { type: 'url', url: 'https://x/d.pdf' } },
    ])
    const zip: UserBlock = { kind: 'document', source: { kind: 'data', mediaType: 'application/zip', base64: 'UEs=' } }
    expect(refusalOf({ turns: [user(zip)] }).message).toContain('application/zip')
  })

  test('pitfall 93: by address they are refused for a host that fetches nothing, wherever they stand', () => {
    const picture: UserBlock = { kind: 'image', source: { kind: 'url', url: 'https://x/i.png' } }
    const document: UserBlock = { kind: 'document', source: { kind: 'url', url: 'https://x/d.pdf' } }
    const inResult: UserBlock = { kind: 'tool-result', callId: 'a', content: [picture], isError: false }
    for (const turns of [[user(picture)], [user(document)], [user('u'), assistant(call('a')), user(inResult)]]) {
      expect(refusalOf({ turns }, { mediaUrls: false }).message).toContain('by URL')
    }
    expect(contentOf(image('image/png', png))).toHaveLength(1)
  })

  test('a model that takes no media refuses them', () => {
    expect(refusalOf({ turns: [user(image('image/png', png))] }, { images: false }).message).toContain('images')
  })
})

describe('the form of the answer', () => {
  const format = (schema: string): Conversation['outputFormat'] => ({
    kind: 'json-schema',
    name: 'out',
    schema,
    strict: true,
  })

  test('vector 29: requests any JSON object in the last system block, with a warning', () => {
    const { body, warnings } = renderMessagesBody({ system: [text('A')], outputFormat: { kind: 'json-object' } })
    expect(body.system).toHaveLength(2)
    expect(body.system[0]).toEqual({ type: 'text', text: 'A' })
    expect(body.system[1].text).toContain('JSON object')
    expect(body.output_config).toBeUndefined()
    expect(warnings).toEqual(['json_object_emulated;/response_format'])
  })

  test('pitfall 124: constraints that cannot be enforced are described, and objects are closed', () => {
    const { body, warnings } = renderMessagesBody({
      outputFormat: format(
        '{"$schema":"x","type":"object","properties":{"n":{"type":"integer","minimum":1,"description":"N"},' +
          '"l":{"type":"array","minItems":2,"items":{"type":"object","properties":{"s":{"oneOf":[{"pattern":"^a"}]}}}}},' +
          '"required":["n"]}',
      ),
    })
    expect(body.output_config.format).toEqual({
      type: 'json_schema',
      schema: {
        type: 'object',
        properties: {
          n: { type: 'integer', description: 'N (minimum: 1)' },
          l: {
            type: 'array',
            items: {
              type: 'object',
              properties: { s: { anyOf: [{ description: '(pattern: "^a")' }] } },
              additionalProperties: false,
            },
            description: '(minItems: 2)',
          },
        },
        required: ['n'],
        additionalProperties: false,
      },
    })
    expect(warnings).toEqual(['output_schema_loosened;/response_format'])
  })

  test('a schema inside the part is sent without a warning, its numbers and order as written', () => {
    const schema =
      '{"type":"object","properties":{"2":{"const":12345678901234567890},"1":{"format":"date"}},"additionalProperties":false}'
    const { json, warnings } = renderMessagesBody({ outputFormat: format(schema) })
    expect(json).toContain(`"schema":${schema}`)
    expect(warnings).toEqual([])
  })

  test('references that lead nowhere are refused by name; recursive schemas only where no tool can be demanded', () => {
    expect(refusalOf({ outputFormat: format('{"$ref":"https://x/y.json"}') }).facts.param).toBe('response_format')
    for (const schema of [
      '{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"items":{"$ref":"#/$defs/a"}}}}',
      '{"properties":{"self":{"$ref":"#"}}}',
    ]) {
      const refused = refusalOf({ outputFormat: format(schema) }, { forcedToolChoice: false })
      expect(refused.message).toContain('recursive')
      const { body, warnings } = renderMessagesBody({ outputFormat: format(schema) })
      expect(body.tools[0].input_schema).toEqual({ type: 'object', ...JSON.parse(schema) })
      expect(body.tool_choice).toEqual({ type: 'tool', name: 'json' })
      expect(warnings).toEqual(['strict_dropped;/response_format'])
    }
    const diamond =
      '{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"type":"string"}}}'
    expect(renderMessagesBody({ outputFormat: format(diamond) }).warnings).toEqual([])
  })

  test('pitfall 125: a model without it must call a tool of ours, which the reply is read from', () => {
    const emulated = { ...models.s45, jsonOutput: 'emulated' } as const
    const { body, rendered } = renderMessagesBody({ outputFormat: format('{"properties":{}}') }, emulated)
    expect(body.tools).toHaveLength(1)
    expect(body.tools[0]).toMatchObject({ name: 'json', input_schema: { type: 'object', properties: {} } })
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'json' })
    expect(body.output_config).toBeUndefined()
    expect(rendered.mapping.jsonTool).toBe('json')
    const own = { kind: 'function', name: 'json' } as const
    const beside = renderMessagesBody({ outputFormat: format('{}'), tools: [own] }, emulated)
    expect(beside.rendered.mapping.jsonTool).toBe('json_2')
    expect(beside.body.tool_choice).toEqual({ type: 'any' })
    expect(refusalOf({ outputFormat: format('{}') }, { ...emulated, forcedToolChoice: false }).facts.param).toBe(
      'response_format',
    )
  })

  test('requests an open object by a tool, or closes it with a warning if there can be no tool', () => {
    const map = '{"type":"object","additionalProperties":{"type":"number"}}'
    const open = [map, '{"type":"object"}', '{"properties":{"a":{"type":"string"}},"additionalProperties":true}']
    for (const schema of open) {
      const { body, rendered, warnings } = renderMessagesBody({ outputFormat: format(schema) })
      expect(body.output_config).toBeUndefined()
      expect(body.tools[0].input_schema).toEqual({ type: 'object', ...JSON.parse(schema) })
      expect(body.tool_choice).toEqual({ type: 'tool', name: 'json' })
      expect(rendered.mapping.jsonTool).toBe('json')
      expect(warnings).toEqual(['strict_dropped;/response_format'])
      const unforced = renderMessagesBody({ outputFormat: format(schema) }, { forcedToolChoice: false })
      expect(unforced.body.tools).toBeUndefined()
      expect(unforced.body.output_config.format.schema.additionalProperties).toBe(false)
      expect(unforced.warnings).toEqual(['output_schema_tightened;/response_format'])
    }
    // Alternatives at the root of a tool's input can only be described.
    const choice = renderMessagesBody({ outputFormat: format(`{"anyOf":[${map},{"properties":{"a":{}}}]}`) })
    expect(choice.body.tools[0].input_schema).toEqual({ type: 'object', properties: { a: {} } })
    expect(choice.warnings).toEqual(['strict_dropped;/response_format', 'output_schema_loosened;/response_format'])
    // A tool's input is an object, and this answer is none.
    const list = renderMessagesBody({ outputFormat: format(`{"type":"array","items":${map}}`) })
    expect(list.body.output_config.format.schema.items).toEqual({ type: 'object', additionalProperties: false })
    expect(list.warnings).toEqual(['output_schema_tightened;/response_format'])
  })

  test('a demand for a call of the caller’s own tools is not met by the tool of ours', () => {
    const own = (name: string) => ({ kind: 'function', name }) as const
    const outputFormat = format('{"type":"object"}')
    const toolChoice = { kind: 'required' } as const
    const one = renderMessagesBody({ outputFormat, toolChoice, tools: [own('f')] })
    expect(one.rendered.mapping.jsonTool).toBe('json')
    expect(one.body.tool_choice).toEqual({ type: 'tool', name: 'f' })
    const two = { outputFormat, toolChoice, tools: [own('f'), own('g')] }
    const several = renderMessagesBody(two)
    expect(several.body.tools).toHaveLength(2)
    expect(several.body.tool_choice).toEqual({ type: 'any' })
    expect(several.body.output_config.format.schema.additionalProperties).toBe(false)
    expect(several.warnings).toEqual(['output_schema_tightened;/response_format'])
    // A model without such a form of the answer has only the tool, and may call it at once.
    const emulated = renderMessagesBody(two, { ...models.s45, jsonOutput: 'emulated' })
    expect(emulated.body.tool_choice).toEqual({ type: 'any' })
    expect(emulated.warnings).toEqual(['tool_choice_relaxed;/tool_choice'])
    const free = renderMessagesBody({ ...two, toolChoice: { kind: 'auto' } })
    expect([free.rendered.mapping.jsonTool, free.body.tool_choice]).toEqual(['json', { type: 'any' }])
  })

  test('requests a schema that is too large for the provider by a tool', () => {
    const fields = (count: number, schema: string) => Array.from({ length: count }, (_, i) => `"f${i}":${schema}`)
    const optional = (count: number) =>
      `{"type":"object","properties":{${fields(count, '{"type":"string"}')}},"additionalProperties":false}`
    const within = renderMessagesBody({ outputFormat: format(optional(24)) })
    expect(within.body.output_config.format.schema).toEqual(JSON.parse(optional(24)))
    expect(within.warnings).toEqual([])
    const over = renderMessagesBody({ outputFormat: format(optional(25)) })
    expect(over.body.output_config).toBeUndefined()
    expect(over.body.tools[0]).toMatchObject({ name: 'json', input_schema: JSON.parse(optional(25)) })
    expect(over.warnings).toEqual(['strict_dropped;/response_format'])
  })

  test('pitfall 21: thinking with a budget is dropped if the answer must be a tool call', () => {
    const { body, warnings } = renderMessagesBody(
      { outputFormat: format('{}'), reasoning: { effort: 'low' }, outputCap: 9000 },
      { ...models.s45, jsonOutput: 'emulated' },
    )
    expect(body.thinking).toEqual({ type: 'disabled' })
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'json' })
    expect(warnings).toEqual(['reasoning_dropped;/reasoning_effort'])
  })
})

describe('cache marks', () => {
  const marked = (words: string, life: CacheMark['life'] = 'short'): TextBlock => ({
    ...text(words),
    cacheMark: { life },
  })
  const short = { type: 'ephemeral' }

  test('vector 34: a mark becomes cache_control with its life, and of five the last four count', () => {
    const { body } = renderMessagesBody({ turns: [user(marked('a', 'long'), marked('b'))] })
    expect(body.messages[0].content).toEqual([
      { type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } },
      { type: 'text', text: 'b', cache_control: short },
    ])
    const five = renderMessagesBody({ turns: [user(...['1', '2', '3', '4', '5'].map((one) => marked(one)))] })
    const marks = five.body.messages[0].content.map((one: { cache_control?: object }) => one.cache_control)
    expect(marks).toEqual([undefined, short, short, short, short])
  })

  test('pitfall 106: tools, system, messages and the automatic one share the four', () => {
    const mark = { cacheMark: { life: 'short' } } as const
    const { body } = renderMessagesBody({
      tools: [{ kind: 'function', name: 'f', ...mark }],
      system: [marked('A')],
      turns: [user(marked('b'), marked('c'))],
      automaticCache: { life: 'short' },
    })
    expect(body.tools[0].cache_control).toBeUndefined()
    expect(body.system[0].cache_control).toEqual(short)
    expect(body.cache_control).toEqual(short)
  })

  test('pitfall 107: a short life never stands before a long one', () => {
    const { body, warnings } = renderMessagesBody({ turns: [user(marked('a'), marked('b', 'long'))] })
    expect(body.messages[0].content.map((one: { cache_control?: object }) => one.cache_control)).toEqual([short, short])
    expect(warnings).toEqual(['cache_life_shortened;/messages'])
  })

  test('pitfall 107: the automatic mark stands behind all others', () => {
    const long = { type: 'ephemeral', ttl: '1h' }
    const sent = (life: CacheMark['life'], automatic: CacheMark['life'], ...more: string[]) => {
      const turns = [user(marked('a', life), ...more)]
      const { body, warnings } = renderMessagesBody({ turns, automaticCache: { life: automatic } })
      return [body.messages[0].content[0].cache_control, body.cache_control, warnings]
    }
    expect(sent('short', 'long', 'b')).toEqual([short, short, ['cache_life_shortened;/messages']])
    expect(sent('long', 'short', 'b')).toEqual([long, short, []])
    expect(sent('long', 'long', 'b')).toEqual([long, long, []])
    // On one and the same block there is one life.
    expect(sent('long', 'short')).toEqual([long, undefined, []])
    expect(sent('short', 'long')).toEqual([short, short, ['cache_life_shortened;/messages']])
    expect(renderMessagesBody({ automaticCache: { life: 'long' } }).body.cache_control).toEqual(long)
  })
})

describe('around the request', () => {
  test('vector 19: stop sequences, without those of whitespace alone', () => {
    expect(renderMessagesBody({ stop: ['X'] }).body.stop_sequences).toEqual(['X'])
    const some = renderMessagesBody({ stop: ['', '\n', 'END'] })
    expect(some.body.stop_sequences).toEqual(['END'])
    expect(some.warnings).toEqual(['stop_dropped;/stop'])
    expect(renderMessagesBody({ stop: [] }).body.stop_sequences).toBeUndefined()
  })

  test('pitfall 14: if only whitespace was asked for, the field is left out', () => {
    expect(renderMessagesBody({ stop: ['\n'] }).body.stop_sequences).toBeUndefined()
  })

  test('pitfall 15: sequences the target cannot match are left to the gateway', () => {
    const { body, rendered } = renderMessagesBody({ stop: ['a', 'b'] }, { stopMax: 0 })
    expect(body.stop_sequences).toBeUndefined()
    expect(rendered.mapping.stop).toEqual(['a', 'b'])
  })

  test('vector 33: the end user’s id, hashed where it is too long', () => {
    expect(renderMessagesBody({ endUserId: 's' }).body.metadata).toEqual({ user_id: 's' })
    const long = renderMessagesBody({ endUserId: 'x'.repeat(300) }).body.metadata.user_id
    expect(long).toMatch(/^[0-9a-f]{64}$/)
  })

  test('tiers in the words of the host', () => {
    expect(renderMessagesBody({ serviceTier: 'standard' }).body.service_tier).toBe('standard_only')
    expect(renderMessagesBody({ serviceTier: 'auto' }).body.service_tier).toBe('auto')
    for (const serviceTier of ['standard', 'auto'] as const) {
      const { body, warnings } = renderMessagesBody({ serviceTier }, { serviceTiers: {} })
      expect([body.service_tier, warnings]).toEqual([undefined, []])
    }
    expect(renderMessagesBody({ serviceTier: 'flex' }).warnings).toEqual(['service_tier_dropped;/service_tier'])
    const fast = renderMessagesBody({ serviceTier: 'priority' })
    expect(fast.body).toMatchObject({ speed: 'fast' })
    expect(fast.body).not.toHaveProperty('service_tier')
    const words = { serviceTiers: { priority: 'priority', flex: 'flex' } }
    expect(renderMessagesBody({ serviceTier: 'flex' }, words).body.service_tier).toBe('flex')
    expect(renderMessagesBody({ serviceTier: 'priority' }, words).body.service_tier).toBe('priority')
  })

  test('hints without a counterpart are named, defaults are not', () => {
    expect(renderMessagesBody({ verbosity: 'low', promptCacheKey: 'k' }).warnings).toEqual([
      'verbosity_dropped;/verbosity',
      'prompt_cache_key_dropped;/prompt_cache_key',
    ])
    expect(renderMessagesBody({ verbosity: 'medium' }).warnings).toEqual([])
  })

  test('unsupported fields are refused by name or omitted with a warning, one per field name', () => {
    const unsupported = [
      { field: '/foo', refuse: false },
      { field: '/stream_options/bar', refuse: false },
      { field: '/messages/1/bar', refuse: false },
    ]
    expect(renderMessagesBody({ unsupported }).warnings).toEqual([
      'foo_dropped;/foo',
      'bar_dropped;/stream_options/bar',
    ])
    const failure = refusalOf({ unsupported: [{ field: '/n', refuse: true, reason: 'One answer only.' }] })
    expect(failure.message).toBe('One answer only.')
    expect(failure.facts.param).toBe('n')
  })

  test('places that the caller’s parser noted name what is left out', () => {
    const pointers = { stop: '/stop_sequences' }
    expect(renderMessagesBody({ stop: [' '], pointers }).warnings).toEqual(['stop_dropped;/stop_sequences'])
  })

  test('it always streams, with the model’s upstream name, and the messages come last', () => {
    const { json, body } = renderMessagesBody({ stop: ['x'], endUserId: 'u' })
    expect(body.stream).toBe(true)
    expect(body.model).toBe('claude-upstream')
    expect(Object.keys(body).at(-1)).toBe('messages')
    expect(json).toBe(JSON.stringify(body))
  })
})
