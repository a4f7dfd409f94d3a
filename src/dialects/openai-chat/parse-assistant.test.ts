import { describe, expect, test } from 'bun:test'
import { parsed, refusedParse } from '../../../test/parts/chat-requests.ts'
import { writeSignature } from '../canonical/signature.ts'

const text = (words: string) => ({ kind: 'text', text: words }) as const

describe('assistant messages', () => {
  const assistant = (message: object) =>
    parsed({
      messages: [
        { role: 'user', content: 'u' },
        { role: 'assistant', ...message },
      ],
    }).turns[1]?.blocks
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

  test('a call that stands in the content as well is one call', () => {
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
    const unsigned = [{ kind: 'thinking', text: 'hm', signature: undefined }, text('x')]
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
    const thought = [{ kind: 'thinking', text: 'ab', signature: undefined }, text('x')]
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
