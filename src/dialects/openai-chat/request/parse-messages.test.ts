import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parsed, parseResult, refusedParse } from '../../../../test/parts/chat-requests.ts'
import { Failure } from '../../../kernel/failure.ts'
import type { Turn } from '../../canonical/conversation.ts'
import { writeSignature } from '../../canonical/signature.ts'
import { readRequest, WarningList } from '../../request/fields.ts'
import { pairTools } from '../../request/tools.ts'

const says = (role: string, content: unknown) => ({ role, content })

const text = (words: string) => ({ kind: 'text', text: words }) as const

describe('system messages', () => {
  test('vector 1: leading system and developer messages are system blocks, one each, in order', () => {
    const { system, turns } = parsed({ messages: [says('system', 'A'), says('developer', 'B'), says('user', 'hi')] })
    expect(system).toEqual([text('A'), text('B')])
    expect(turns).toEqual([{ role: 'user', blocks: [text('hi')], pointer: '/messages/2' }])
  })

  test('vector 2: a last system message stays in its place', () => {
    const { system, turns } = parsed({
      messages: [
        says('system', 'A'),
        says('user', 'u1'),
        says('assistant', 'a1'),
        says('user', 'u2'),
        says('system', 'B'),
      ],
    })
    expect(system).toEqual([text('A')])
    expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'system'])
    expect(turns[3]?.blocks).toEqual([text('B')])
  })

  test('vector 3: a system message after an assistant stays in its place', () => {
    const { system, turns } = parsed({
      messages: [says('user', 'u1'), says('assistant', 'a1'), says('system', 'B'), says('user', 'u2')],
    })
    expect(system).toEqual([])
    expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'system', 'user'])
  })

  test('a name is left out with one warning, at its first place', () => {
    const { warned } = parsed({
      messages: [
        { role: 'user', name: 'ann', content: 'x' },
        { role: 'user', name: 'bob', content: 'y' },
      ],
    })
    expect(warned).toEqual(['name_dropped /messages/0/name'])
  })
})

describe('tool calls and results', () => {
  const calls = (...ids: string[]) => ({
    role: 'assistant',
    content: null,
    tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
  })
  const result = (id: string, content: unknown = `r${id}`) => ({ role: 'tool', tool_call_id: id, content })
  const rule = { pattern: /^[A-Za-z0-9_-]+$/, max: 64 }
  const pair = (messages: object[]) => {
    const warnings = new WarningList()
    const turns = readRequest(() => pairTools(parsed({ messages }).turns, rule, warnings))
    return { turns, warnings: warnings.list }
  }
  const ids = (turns: readonly Turn[] | Failure) =>
    Array.isArray(turns)
      ? turns.flatMap((turn: Turn) =>
          turn.blocks.flatMap((block) =>
            block.kind === 'tool-call' ? [block.id] : block.kind === 'tool-result' ? [block.callId] : [],
          ),
        )
      : []

  test('vector 6: a call without a result is refused by its id', () => {
    const { turns } = pair([{ role: 'user', content: 'u' }, calls('a', 'b'), result('a')])
    expect(turns).toBeInstanceOf(Failure)
    expect(turns instanceof Failure && [turns.message.includes('`b`'), turns.facts.param]).toEqual([
      true,
      'messages[1]',
    ])
  })

  test('vector 7: a result without a call is refused by its id', () => {
    const { turns } = pair([{ role: 'user', content: 'u' }, calls('a'), result('a'), result('zz')])
    expect(turns instanceof Failure && [turns.message.includes('`zz`'), turns.facts.param]).toEqual([
      true,
      'messages[3]',
    ])
  })

  test('pitfall 35: a second result for one call is left out with a warning', () => {
    const { turns, warnings } = pair([calls('a'), result('a', 'first'), result('a', 'second')])
    expect(ids(turns)).toEqual(['a', 'a'])
    expect(warnings).toEqual([{ code: 'duplicate_tool_result_dropped', field: '/messages/2' }])
  })

  test('vector 9: a repeated id is made unique in call and result, and the first one stays', () => {
    const twice = [calls('call_1'), result('call_1'), calls('call_1'), result('call_1')]
    const { turns, warnings } = pair(twice)
    const [first, firstResult, second, secondResult] = ids(turns)
    expect([first, firstResult]).toEqual(['call_1', 'call_1'])
    expect(second).not.toBe('call_1')
    expect(secondResult).toBe(second as string)
    expect(warnings).toEqual([])
    expect(ids(pair([...twice, calls('x'), result('x')]).turns).slice(0, 4)).toEqual(ids(turns))
  })

  test('pitfall 36: one id for two calls at once is answered by two results, in order', () => {
    const { turns, warnings } = pair([calls('c', 'c'), result('c'), result('c')])
    const [first, second, ...results] = ids(turns)
    expect(first).toBe('c')
    expect(second).not.toBe('c')
    expect(results).toEqual([first as string, second as string])
    expect(warnings).toEqual([])
  })

  test('vector 37: legacy functions become calls and results with generated ids', () => {
    const { turns, tools, toolChoice } = parsed({
      messages: [
        says('user', 'u'),
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"x":1}' } },
        { role: 'function', name: 'f', content: 'done' },
      ],
      functions: [{ name: 'f', parameters: { type: 'object' } }],
      function_call: { name: 'f' },
    })
    expect(turns[1]?.blocks).toEqual([
      { kind: 'tool-call', id: 'call_legacy_1', name: 'f', arguments: '{"x":1}', custom: false },
    ])
    expect(turns[2]?.blocks).toEqual([
      { kind: 'tool-result', callId: 'call_legacy_1', content: [text('done')], isError: false },
    ])
    expect(tools[0]).toMatchObject({ kind: 'function', name: 'f', schema: '{"type":"object"}' })
    expect(toolChoice).toEqual({ kind: 'named', name: 'f' })
  })

  test('a function message that answers nothing is refused', () => {
    expect(refusedParse({ messages: [{ role: 'function', name: 'f', content: 'x' }] }).message).toContain('`f`')
  })

  test('pitfall 11: Messages-shaped blocks are read like their own', () => {
    const { turns } = parsed({
      messages: [
        says('user', [{ type: 'text', text: 'u', cache_control: { type: 'ephemeral' } }]),
        says('assistant', [{ type: 'tool_use', id: 't', name: 'f', input: { a: 1 } }]),
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 't',
              is_error: true,
              content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }],
            },
          ],
        },
      ],
    })
    const pointer = '/messages/0/content/0/cache_control'
    expect(turns[0]?.blocks).toEqual([{ ...text('u'), cacheMark: { life: 'short', pointer } }])
    expect(turns[1]?.blocks).toEqual([{ kind: 'tool-call', id: 't', name: 'f', arguments: '{"a":1}', custom: false }])
    expect(turns[2]?.blocks).toEqual([
      {
        kind: 'tool-result',
        callId: 't',
        content: [{ kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: png } }],
        isError: true,
      },
    ])
  })

  test('pitfall 34: a tool message without content is an empty result', () => {
    const { turns } = parsed({ messages: [calls('a'), { role: 'tool', tool_call_id: 'a' }] })
    expect(turns[1]?.blocks).toEqual([{ kind: 'tool-result', callId: 'a', content: [], isError: false }])
  })
})

describe('anything at all', () => {
  test('wrong types are refused with the path, never thrown', () => {
    const refused = (message: unknown) => refusedParse({ messages: [{ role: 'user', content: 'u' }, message] }).param
    expect(refused(7)).toBe('messages[1]')
    expect(refused({ content: 'x' })).toBe('messages[1].role')
    expect(refused({ role: 'wizard', content: 'x' })).toBe('messages[1].role')
    expect(refused({ role: 'user', content: 7 })).toBe('messages[1].content')
    expect(refused({ role: 'user', content: [{ type: 'text', text: 7 }] })).toBe('messages[1].content[0].text')
    expect(refused({ role: 'user', content: ['x'] })).toBe('messages[1].content[0]')
    expect(refused({ role: 'tool', content: 'x' })).toBe('messages[1].tool_call_id')
    expect(refused({ role: 'assistant', tool_calls: [{ id: '' }] })).toBe('messages[1].tool_calls[0].id')
    expect(refused({ role: 'assistant', tool_calls: 'x' })).toBe('messages[1].tool_calls')
  })

  test('no JSON makes the parser throw', () => {
    const word = fc.constantFrom('role', 'content', 'type', 'text', 'tool_calls', 'function', 'name', 'image_url', 'id')
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom('user', 'assistant', 'tool', 'system', 'text', 'image_url', 'function', 'x', ''),
        fc.jsonValue({ maxDepth: 1 }),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(word, tie('any'), { maxKeys: 5 }),
      ),
    })).any
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), value, (messages, tools) => {
        const result = parseResult({ messages, tools: Array.isArray(tools) ? tools : [tools] })
        return result instanceof Failure || result.conversation.turns.length <= messages.length
      }),
      { numRuns: 500 },
    )
  })
})

describe('assistant messages', () => {
  const assistant = (message: object) =>
    parsed({ messages: [says('user', 'u'), { role: 'assistant', ...message }] }).turns[1]?.blocks
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":9007199254740993}' } }

  test('vector 11: empty content beside calls leaves only the calls', () => {
    expect(assistant({ content: '', tool_calls: [call] })?.map(({ kind }) => kind)).toEqual(['tool-call'])
  })

  test('vector 13: a refusal is kept as one', () => {
    expect(assistant({ content: null, refusal: 'no' })).toEqual([{ kind: 'refusal', text: 'no' }])
    expect(assistant({ content: [{ type: 'refusal', refusal: 'no' }] })).toEqual([{ kind: 'refusal', text: 'no' }])
  })

  test('vector 10: arguments stay the text they were, whatever it is', () => {
    const argumentsOf = (written: string) => {
      const block = assistant({ tool_calls: [{ ...call, function: { name: 'f', arguments: written } }] })?.[0]
      return block?.kind === 'tool-call' ? block.arguments : undefined
    }
    for (const written of ['', '[1]', '{bad', ' {"b" : 1.0} ']) {
      expect(argumentsOf(written)).toBe(written)
    }
  })

  test('pitfall 54: arguments sent as an object are taken as text', () => {
    const calls = [{ ...call, function: { name: 'f', arguments: { b: [1] } } }]
    expect(assistant({ tool_calls: calls })?.[0]).toMatchObject({ arguments: '{"b":[1]}' })
  })

  test('pitfall 56: that text is the raw one, with all digits and in its own order', () => {
    const body = `{"model":"m","messages":[{"role":"user","content":"u"},{"role":"assistant","tool_calls":[
    {"id":"c","type":"function","function":{"name":"f","arguments":{"z": 1.0, "a":9007199254740993}}}]}]}`
    const block = parsed(body).turns[1]?.blocks[0]
    expect(block).toMatchObject({ kind: 'tool-call', arguments: '{"z": 1.0, "a":9007199254740993}' })
  })

  test('pitfall 58: all calls of a message are kept, in order', () => {
    const second = { id: 'c2', type: 'custom', custom: { name: 'g', input: 'free text' } }
    expect(assistant({ tool_calls: [call, second] })).toMatchObject([
      { id: 'c1', name: 'f', custom: false },
      { id: 'c2', name: 'g', arguments: 'free text', custom: true },
    ])
  })

  test('a call that is also in the content is one call', () => {
    const part = { type: 'tool_use', id: 'c1', name: 'f', input: { a: 1 } }
    const blocks = assistant({ content: [{ type: 'text', text: 'so' }, part], tool_calls: [call] })
    expect(blocks).toMatchObject([text('so'), { kind: 'tool-call', id: 'c1', arguments: call.function.arguments }])
    expect(assistant({ content: [part, { ...part, id: 'c2' }], tool_calls: [call] })).toMatchObject([
      { id: 'c2' },
      { id: 'c1' },
    ])
    // One id for every call is what some models write.
    expect(assistant({ tool_calls: [call, call] })).toHaveLength(2)
  })

  test('vector 35: reasoning details keep their order and stand before what was said and called', () => {
    const blocks = assistant({
      content: 'said',
      reasoning_content: 'not this',
      reasoning_details: [
        { type: 'reasoning.text', text: 'one', signature: 'sig1', format: 'anthropic-claude-v1', index: 0 },
        { type: 'reasoning.text', text: 'two', signature: 'sig2', index: 1 },
        { type: 'reasoning.encrypted', data: 'sealed', index: 2 },
      ],
      tool_calls: [call],
    })
    expect(blocks).toEqual([
      { kind: 'thinking', text: 'one', signature: 'sig1' },
      { kind: 'thinking', text: 'two', signature: 'sig2' },
      { kind: 'sealed-thinking', data: 'sealed' },
      text('said'),
      { kind: 'tool-call', id: 'c1', name: 'f', arguments: '{"a":9007199254740993}', custom: false },
    ])
  })

  test('pitfall 72: reasoning between what was said and called stays there', () => {
    const detail = (text: string, index: number) => ({ type: 'reasoning.text', text, signature: `s${text}`, index })
    const thought = (words: string) => ({ kind: 'thinking', text: words, signature: `s${words}` })
    const blocks = assistant({
      content: 'said',
      reasoning_details: [detail('A', 0), detail('B', 2), detail('C', 4)],
      tool_calls: [call, { ...call, id: 'c2' }],
    })
    expect(blocks).toMatchObject([thought('A'), text('said'), thought('B'), { id: 'c1' }, thought('C'), { id: 'c2' }])
  })

  test('pitfall 71: a signature comes through byte for byte', () => {
    const details = [{ type: 'reasoning.text', text: 'ä\n', signature: 'EqQB/+==' }]
    expect(assistant({ reasoning_details: details })).toEqual([
      { kind: 'thinking', text: 'ä\n', signature: 'EqQB/+==' },
    ])
  })

  test('pitfall 73: a sealed block beside a readable one is kept', () => {
    const blocks = [
      { type: 'redacted_thinking', data: 'd' },
      { type: 'thinking', thinking: 't', signature: 's' },
    ]
    expect(assistant({ thinking_blocks: blocks })).toEqual([
      { kind: 'sealed-thinking', data: 'd' },
      { kind: 'thinking', text: 't', signature: 's' },
    ])
  })

  test('pitfall 75: blocks of one turn are not merged', () => {
    const detail = (n: number) => ({ type: 'reasoning.text', text: `t${n}`, signature: `s${n}` })
    expect(assistant({ reasoning_details: [detail(1), detail(2)] })).toHaveLength(2)
  })

  test('pitfall 79: a proof of another form is never taken for a Messages signature', () => {
    const [block] =
      assistant({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'x', format: 'openai-responses-v1' }] }) ??
      []
    expect(block?.kind === 'sealed-thinking' && block.data.startsWith('tg1.')).toBe(true)
  })

  test('pitfall 74: a signature without text is kept', () => {
    expect(assistant({ reasoning_details: [{ type: 'reasoning.text', text: '', signature: 's' }] })).toEqual([
      { kind: 'thinking', text: '', signature: 's' },
    ])
  })

  test('pitfall 84: reasoning text under either name, and LiteLLM blocks, are thinking', () => {
    const unsigned = [{ kind: 'thinking', text: 'hm' }, text('x')]
    expect(assistant({ content: 'x', reasoning_content: 'hm' })).toEqual(unsigned as never)
    expect(assistant({ content: 'x', reasoning: 'hm' })).toEqual(unsigned as never)
    expect(
      assistant({ content: 'x', thinking_blocks: [{ type: 'thinking', thinking: 'hm', signature: 's' }] }),
    ).toEqual([{ kind: 'thinking', text: 'hm', signature: 's' }, text('x')])
  })

  test('pitfall 89: thinking parts in the content are thinking, in place', () => {
    const content = [
      {
        type: 'thinking',
        thinking: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      { type: 'text', text: 'x' },
    ]
    const thought = [{ kind: 'thinking', text: 'ab' }, text('x')]
    expect(assistant({ content })).toEqual(thought as never)
    // The same reasoning under a second name is not said twice.
    expect(assistant({ content, reasoning_content: 'ab' })).toEqual(thought as never)
  })

  test("a call's own signature is for its issuer alone, and warned about", () => {
    const signed = { ...call, extra_content: { google: { thought_signature: 'sg' } } }
    const { turns, warned } = parsed({ messages: [{ role: 'assistant', tool_calls: [signed] }] })
    expect(turns[0]?.blocks).toHaveLength(1)
    expect(warned).toEqual(['thinking_dropped /messages/0/tool_calls/0/extra_content'])
  })

  test('pitfall 80: ours is thinking before its call, where the details did not come back', () => {
    const signature = writeSignature({ issuer: 'google/gemini/g', blob: 'S1' })
    const signed = { ...call, extra_content: { google: { thought_signature: signature } } }
    const thought = { kind: 'thinking', text: '', signature }
    const read = (members: object) => parsed({ messages: [{ role: 'assistant', tool_calls: [signed], ...members }] })
    expect(read({}).turns[0]?.blocks).toMatchObject([thought, { kind: 'tool-call' }])
    expect(read({}).warned).toEqual([])
    const details = [{ type: 'reasoning.text', text: '', signature, format: 'unknown', index: 0 }]
    expect(read({ reasoning_details: details }).turns[0]?.blocks).toMatchObject([thought, { kind: 'tool-call' }])
  })

  test('audio of an earlier answer is refused', () => {
    const messages = [{ role: 'assistant', audio: { id: 'a' } }]
    expect(refusedParse({ messages }).param).toBe('messages[0].audio')
  })

  test('unknown members of a message are warned about, echoed output and nulls are not', () => {
    const { warned } = parsed({
      messages: [{ role: 'assistant', content: 'x', annotations: [], function_call: null, mood: 'glad' }],
    })
    expect(warned).toEqual(['field_dropped /messages/0/mood'])
  })
})

/** The first bytes of each format are all that is looked at. */
const base64 = (bytes: readonly number[]) => Buffer.from(bytes).toString('base64')
const png = base64([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0])
const jpeg = base64([0xff, 0xd8, 0xff, 0xe0, 0, 0])
const bmp = Buffer.from('BM123456').toString('base64')
const pdf = Buffer.from('%PDF-1.7\n').toString('base64')

const userParts = (...content: object[]) => parsed({ messages: [{ role: 'user', content }] }).turns[0]?.blocks
const lifeOf = (block: object | undefined) => (block as { cacheMark?: { life: string } })?.cacheMark?.life

describe('content parts', () => {
  test('vector 14: images by data URL and by address; other formats are refused by name', () => {
    const image = (url: string, detail?: string) => ({ type: 'image_url', image_url: { url, detail } })
    expect(userParts(image(`data:image/png;base64,${png}`))).toEqual([
      { kind: 'image', source: { kind: 'data', mediaType: 'image/png', base64: png } },
    ])
    expect(userParts(image('https://x.test/a.png'))).toEqual([
      { kind: 'image', source: { kind: 'url', url: 'https://x.test/a.png' } },
    ])
    expect(refusedParse({ messages: [{ role: 'user', content: [image(`data:image/bmp;base64,${bmp}`)] }] }).param).toBe(
      'messages[0].content[0].image_url.url',
    )
    const detailed = (detail: string) =>
      parsed({ messages: [{ role: 'user', content: [image('https://x.test/a', detail)] }] }).warned
    expect(detailed('high')).toEqual(['detail_dropped /messages/0/content/0/image_url/detail'])
    expect(detailed('auto')).toEqual([])
  })

  test('an address that is none is refused by its place, in every part that can have one', () => {
    for (const url of [`https://x.test/${'.a#'.repeat(3000)}`, 'https://x.test/a\n.png']) {
      const paramOf = (part: object) => refusedParse({ messages: [{ role: 'user', content: [part] }] }).param
      expect(paramOf({ type: 'image_url', image_url: { url } })).toBe('messages[0].content[0].image_url.url')
      expect(paramOf({ type: 'image_url', image_url: url })).toBe('messages[0].content[0].image_url')
      expect(paramOf({ type: 'file', file: { file_data: url } })).toBe('messages[0].content[0].file.file_data')
      for (const type of ['image', 'document']) {
        expect(paramOf({ type, source: { type: 'url', url } })).toBe('messages[0].content[0].source.url')
      }
    }
  })

  test('pitfall 92: the bytes decide the media type, not the label', () => {
    expect(userParts({ type: 'image_url', image_url: { url: `data:image/png;base64,${jpeg}` } })).toEqual([
      { kind: 'image', source: { kind: 'data', mediaType: 'image/jpeg', base64: jpeg } },
    ])
  })

  test('pitfall 96: a PDF inside image_url is a document', () => {
    expect(userParts({ type: 'image_url', image_url: { url: `data:application/pdf;base64,${pdf}` } })).toEqual([
      { kind: 'document', source: { kind: 'data', mediaType: 'application/pdf', base64: pdf } },
    ])
  })

  test('vector 15: a PDF file is a document with its name as title; a file id is refused', () => {
    const file = { file_data: `data:application/pdf;base64,${pdf}`, filename: 'r.pdf' }
    expect(userParts({ type: 'file', file })).toEqual([
      { kind: 'document', source: { kind: 'data', mediaType: 'application/pdf', base64: pdf }, title: 'r.pdf' },
    ])
    expect(
      refusedParse({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] }).param,
    ).toBe('messages[0].content[0].file.file_id')
  })

  test('a text file is a document in plain text', () => {
    const file = { file_data: `data:text/plain;base64,${Buffer.from('größer').toString('base64')}` }
    expect(userParts({ type: 'file', file })).toEqual([{ kind: 'document', source: { kind: 'text', text: 'größer' } }])
  })

  test('sound of an unknown format and unknown parts are refused by name', () => {
    const refused = (part: object) => refusedParse({ messages: [{ role: 'user', content: [part] }] })
    expect(refused({ type: 'input_audio', input_audio: { data: '', format: 'hum' } }).param).toBe(
      'messages[0].content[0].input_audio.format',
    )
    expect(refused({ type: 'hologram' }).message).toContain('hologram')
  })

  test('sound is a document by value', () => {
    for (const data of ['UklG', 'data:audio/x-wav;base64,UklG']) {
      const part = { type: 'input_audio', input_audio: { data, format: 'wav' } }
      expect(parsed({ messages: [{ role: 'user', content: [part] }] }).turns[0]?.blocks).toEqual([
        { kind: 'document', source: { kind: 'data', mediaType: 'audio/wav', base64: 'UklG' } },
      ])
    }
  })

  test('vector 34: breakpoints are cache marks; half a day is more than anyone else keeps', () => {
    const marked = (ttl?: string) => ({ type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit', ttl } })
    const content = [marked(), marked('30m'), marked('12h')]
    const { turns, warned } = parsed({ messages: [{ role: 'user', content }] })
    expect(turns[0]?.blocks.map(lifeOf)).toEqual(['short', 'long', 'long'])
    expect(warned).toEqual(['cache_life_shortened /messages/0/content/2/prompt_cache_breakpoint/ttl'])
  })

  test('pitfall 105: cache_control counts on parts, messages, tools and at the top', () => {
    const mark = { cache_control: { type: 'ephemeral' } }
    const conversation = parsed({
      messages: [
        { role: 'system', content: 'S', ...mark },
        says('user', [{ type: 'text', text: 'c', cache_control: { type: 'ephemeral', ttl: '1h' } }]),
        { role: 'assistant', content: null, tool_calls: [{ id: 't', type: 'function', function: { name: 'f' } }] },
        { role: 'tool', tool_call_id: 't', content: 'r', ...mark },
      ],
      tools: [{ type: 'function', function: { name: 'f' }, ...mark }],
      ...mark,
    })
    expect(lifeOf(conversation.system[0])).toBe('short')
    expect(conversation.turns.map(({ blocks }) => blocks.map(lifeOf))).toEqual([['long'], [undefined], ['short']])
    expect(lifeOf(conversation.tools[0])).toBe('short')
    expect(conversation.automaticCache).toEqual({ life: 'short', pointer: '/cache_control' })
  })

  test('pitfall 105: are read inside a tool definition too, where unknown members cause a warning', () => {
    const { tools, warned } = parsed({
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'function', function: { name: 'f', cache_control: { type: 'ephemeral' }, colour: 'red' } }],
    })
    expect(lifeOf(tools[0])).toBe('short')
    expect(warned).toEqual(['field_dropped /tools/0/function/colour'])
  })
})
