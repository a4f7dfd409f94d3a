import { describe, expect, test } from 'bun:test'
import {
  assistant,
  call,
  models,
  refusalOf,
  renderMessagesBody,
  result,
  system,
  text,
  user,
} from '../../../../test/parts/translation.ts'
import type { AssistantBlock, UserBlock } from '../../canonical/conversation.ts'

const block = (words: string) => ({ type: 'text', text: words })
const says = (role: string, ...words: string[]) => ({ role, content: words.map(block) })

test('a chat that begins with the assistant gets an opening of the user, which stays as the chat grows', () => {
  const opening = says('user', '(The conversation begins with the assistant.)')
  const turns = [assistant('Welcome!'), user('hi')]
  const { body, warnings } = renderMessagesBody({ turns }, models.opus55)
  expect(body.messages).toEqual([opening, says('assistant', 'Welcome!'), says('user', 'hi')])
  expect(warnings).toEqual(['opening_added;/messages'])
  const grown = renderMessagesBody({ turns: [...turns, assistant('a'), user('b')] }, models.opus55)
  expect(grown.body.messages.slice(0, 3)).toEqual(body.messages)
  // A system message that has to be the user's text opens the conversation as well.
  const inlined = renderMessagesBody({ turns: [system('S'), ...turns] }, models.s45)
  expect(inlined.body.messages[0]).toEqual(says('user', '<system_message>\nS\n</system_message>'))
  expect(inlined.warnings).toEqual(['system_inlined;/messages'])
})

test('system text alone gets the same opening, and the chat that comes of it begins alike', () => {
  const opening = says('user', '(The conversation begins with the assistant.)')
  const alone = renderMessagesBody({ system: [text('Greet me.')], turns: [] }, models.opus55)
  expect([alone.body.system, alone.body.messages]).toEqual([[block('Greet me.')], [opening]])
  expect(alone.warnings).toEqual(['opening_added;/messages'])
  const grown = renderMessagesBody(
    { system: [text('Greet me.')], turns: [assistant('Hi!'), user('hi')] },
    models.opus55,
  )
  expect(grown.body.messages[0]).toEqual(opening)
  expect(refusalOf({ system: [text(' ')], turns: [] }).facts.param).toBe('messages')
})

describe('system text', () => {
  test('vector 1: leading system texts become one block each, in order', () => {
    const { body } = renderMessagesBody({ system: [text('A'), text('B')], turns: [user('hi')] })
    expect(body.system).toEqual([block('A'), block('B')])
    expect(body.messages).toEqual([says('user', 'hi')])
  })

  test('vector 2: a late system message stands behind the user turn and is not hoisted', () => {
    const turns = [user('u1'), assistant('a1'), user('u2'), system('B')]
    const { body, warnings } = renderMessagesBody({ system: [text('A')], turns }, models.opus55)
    expect(body.system).toEqual([block('A')])
    expect(body.messages).toEqual([
      says('user', 'u1'),
      says('assistant', 'a1'),
      says('user', 'u2'),
      says('system', 'B'),
    ])
    expect(warnings).toEqual([])
  })

  test('vector 3: between assistant and user it moves behind the user turn, or into its text', () => {
    const turns = [user('u1'), assistant('a1'), system('B'), user('u2')]
    const moved = renderMessagesBody({ turns }, models.opus55)
    expect(moved.body.messages.slice(2)).toEqual([says('user', 'u2'), says('system', 'B')])
    expect(moved.warnings).toEqual([])
    const inlined = renderMessagesBody({ turns }, models.s45)
    expect(inlined.body.messages.slice(2)).toEqual([says('user', '<system_message>\nB\n</system_message>', 'u2')])
    expect(inlined.body.system).toBeUndefined()
    expect(inlined.warnings).toEqual(['system_inlined;/messages'])
  })

  test('pitfall 31: a system message never comes between a call and its result', () => {
    const turns = [user('u'), assistant(call('c1')), system('B'), user(result('c1')), assistant('done'), user('v')]
    const { body } = renderMessagesBody({ turns }, models.opus55)
    expect(body.messages.map(({ role }: { role: string }) => role)).toEqual(
      'user assistant user system assistant user'.split(' '),
    )
  })

  test('pitfall 31: behind an assistant turn that another one follows it becomes user text where it stands', () => {
    const ends = renderMessagesBody({ turns: [user('u'), assistant('a'), system('B')] }, models.opus55)
    const goesOn = renderMessagesBody(
      { turns: [user('u'), assistant('a'), system('B'), assistant('c'), user('v')] },
      models.opus55,
    )
    expect(ends.body.messages[2]).toEqual(says('user', '<system_message>\nB\n</system_message>'))
    expect(goesOn.body.messages.slice(0, 3)).toEqual(ends.body.messages)
    expect(ends.warnings).toEqual(['system_inlined;/messages'])
  })

  test('system messages in a row are one', () => {
    const { body } = renderMessagesBody({ turns: [user('u'), system('A'), system('B')] }, models.opus55)
    expect(body.messages).toEqual([says('user', 'u'), says('system', 'A', 'B')])
  })
})

describe('tool calls and results', () => {
  test('vector 5: results keep their order and stand first', () => {
    const turns = [user('u'), assistant(call('a'), call('b')), user(result('b')), user(result('a'))]
    const { body } = renderMessagesBody({ turns })
    expect(body.messages[2].content.map((one: { tool_use_id: string }) => one.tool_use_id)).toEqual(['b', 'a'])
  })

  test('pitfall 27: results of parallel calls become one user message', () => {
    const turns = [user('u'), assistant(call('a'), call('b')), user(result('a', '1')), user(result('b', '2'))]
    const { body } = renderMessagesBody({ turns })
    expect(body.messages).toHaveLength(3)
    expect(body.messages[2]).toEqual({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: '1' },
        { type: 'tool_result', tool_use_id: 'b', content: '2' },
      ],
    })
  })

  test('pitfall 28: a user note behind the results joins them, results first', () => {
    const turns = [user('u'), assistant(call('a')), user('note', result('a')), user('more')]
    const { body } = renderMessagesBody({ turns })
    expect(body.messages[2].content).toEqual([
      { type: 'tool_result', tool_use_id: 'a', content: 'ok' },
      block('note'),
      block('more'),
    ])
  })

  test('vector 9: an id used again is renamed on both sides, and the first pair stays', () => {
    const turns = [
      user('u'),
      assistant(call('call_1')),
      user(result('call_1', 'one')),
      assistant(call('call_1')),
      user(result('call_1', 'two')),
    ]
    const { body, json } = renderMessagesBody({ turns })
    expect(body.messages[1].content[0].id).toBe('call_1')
    expect(body.messages[2].content[0].tool_use_id).toBe('call_1')
    expect(body.messages[3].content[0].id).toBe('call_1_3')
    expect(body.messages[4].content[0].tool_use_id).toBe('call_1_3')
    const grown = renderMessagesBody({ turns: [...turns, assistant('end'), user('v')] }).json
    expect(grown.startsWith(json.slice(0, json.lastIndexOf(']}')))).toBe(true)
  })

  test('pitfall 48: an id of foreign form is replaced alike on both sides, whole and without a memory', () => {
    const id = 'call:1|fc_2'
    const { body } = renderMessagesBody({ turns: [user('u'), assistant(call(id)), user(result(id))] })
    const sent = body.messages[1].content[0].id
    expect(sent).toMatch(/^call_1_fc_2_[0-9a-f]{8}$/)
    expect(body.messages[2].content[0].tool_use_id).toBe(sent)
  })

  test('vector 37: calls of the old function form keep their deterministic ids', () => {
    const turns = [user('u'), assistant(call('call_legacy_1')), user(result('call_legacy_1'))]
    const { body } = renderMessagesBody({ turns })
    expect(body.messages[1].content[0]).toMatchObject({ type: 'tool_use', id: 'call_legacy_1' })
    expect(body.messages[2].content[0]).toMatchObject({ type: 'tool_result', tool_use_id: 'call_legacy_1' })
  })

  test('vector 10: arguments become an object, whatever was written', () => {
    const inputs = (args: string) => {
      const { json, warnings } = renderMessagesBody({
        turns: [user('u'), assistant(call('c', args)), user(result('c'))],
      })
      return [/"input":(.*?)\}\]\},\{"role":"user"/.exec(json)?.[1], warnings]
    }
    expect(inputs('')).toEqual(['{}', []])
    expect(inputs('[1]')).toEqual(['{"value":[1]}', []])
    expect(inputs('{bad')).toEqual(['{"raw_arguments":"{bad"}', ['invalid_arguments_wrapped;/messages']])
  })

  test('pitfall 54: an object that was encoded twice is unwrapped once', () => {
    const { body } = renderMessagesBody({
      turns: [user('u'), assistant(call('c', '"{\\"a\\":1}"')), user(result('c'))],
    })
    expect(body.messages[1].content[0].input).toEqual({ a: 1 })
  })

  test('pitfall 56: big integers, key order and number spelling of arguments survive', () => {
    const args = '{"z":12345678901234567890,"1":1.0,"a":1e2}'
    const { json } = renderMessagesBody({ turns: [user('u'), assistant(call('c', args)), user(result('c'))] })
    expect(json).toContain(`"input":${args}`)
  })

  test('half a character inside arguments is written as an escape', () => {
    const args = '{"a":"x\ud83d"}'
    const { json } = renderMessagesBody({ turns: [user('u'), assistant(call('c', args)), user(result('c'))] })
    expect(json).toContain('"input":{"a":"x\\ud83d"}')
  })

  test('pitfall 34: a result without content is kept', () => {
    const { body } = renderMessagesBody({ turns: [user('u'), assistant(call('c')), user(result('c', ''))] })
    expect(body.messages[2].content).toEqual([{ type: 'tool_result', tool_use_id: 'c' }])
  })

  test('pitfall 57: an error keeps its flag, and says something', () => {
    const failed = (content: UserBlock): UserBlock => ({ ...content, isError: true }) as UserBlock
    const at = (content: UserBlock) =>
      renderMessagesBody({ turns: [user('u'), assistant(call('c')), user(content)] }).body.messages[2].content[0]
    expect(at(failed(result('c', 'boom')))).toEqual({
      type: 'tool_result',
      tool_use_id: 'c',
      content: 'boom',
      is_error: true,
    })
    expect(at(failed(result('c', '')))).toMatchObject({ content: '[tool error]', is_error: true })
  })

  test('pitfall 35: a second result for a call is left out with a warning', () => {
    const turns = [user('u'), assistant(call('c')), user(result('c', 'first')), user(result('c', 'second'))]
    const { body, warnings } = renderMessagesBody({ turns })
    expect(body.messages[2].content).toEqual([{ type: 'tool_result', tool_use_id: 'c', content: 'first' }])
    expect(warnings).toEqual(['duplicate_tool_result_dropped;/messages'])
  })

  test('vector 11: an empty text beside calls is not sent', () => {
    const { body } = renderMessagesBody({ turns: [user('u'), assistant('', call('c')), user(result('c'))] })
    expect(body.messages[1].content).toEqual([{ type: 'tool_use', id: 'c', name: 'f', input: {} }])
  })

  test('pitfall 95: media in a result are real blocks, in the same form as elsewhere', () => {
    const shot: UserBlock = {
      kind: 'tool-result',
      callId: 'c',
      content: [text('see'), { kind: 'image', source: { kind: 'url', url: 'https://x/y.png' } }],
      isError: false,
    }
    const turns = [user('u'), assistant(call('c')), user(shot)]
    const image = { type: 'image', source: { type: 'url', url: 'https://x/y.png' } }
    expect(renderMessagesBody({ turns }).body.messages[2].content).toEqual([
      { type: 'tool_result', tool_use_id: 'c', content: [block('see'), image] },
    ])
  })

  test('sound is refused by name', () => {
    const sound: UserBlock = { kind: 'document', source: { kind: 'data', mediaType: 'audio/wav', base64: 'UklG' } }
    expect(refusalOf({ turns: [user(sound)] }, { documents: false }).message).toContain('does not take audio')
  })

  test('cache options need no warning, because only marked blocks are cached', () => {
    const promptCacheOptions = { written: '{"mode":"explicit"}', onlyMarked: true }
    expect(renderMessagesBody({ promptCacheOptions }).warnings).toEqual([])
  })

  test('an input of a custom tool goes out as its one string', () => {
    const custom: AssistantBlock = { kind: 'tool-call', id: 'c', name: 'patch', arguments: '*** "x"', custom: true }
    const { body } = renderMessagesBody({ turns: [user('u'), assistant(custom), user(result('c'))] })
    expect(body.messages[1].content[0].input).toEqual({ input: '*** "x"' })
  })
})

describe('text blocks', () => {
  test('vector 13: a refusal goes back as text', () => {
    const { body } = renderMessagesBody({ turns: [user('u'), assistant({ kind: 'refusal', text: 'no' }), user('v')] })
    expect(body.messages[1]).toEqual(says('assistant', 'no'))
  })

  test('pitfall 32: blank text is never sent, and its mark moves to a neighbour', () => {
    const marked = { kind: 'text', text: ' \n', cacheMark: { life: 'short' } } as const
    const { body } = renderMessagesBody({
      system: [text('A'), marked],
      turns: [user('u', ''), assistant(' '), user(marked, 'v')],
    })
    expect(body.system).toEqual([{ ...block('A'), cache_control: { type: 'ephemeral' } }])
    expect(body.messages).toEqual([
      { role: 'user', content: [{ ...block('u'), cache_control: { type: 'ephemeral' } }, block('v')] },
    ])
  })

  test('a conversation without any content is refused', () => {
    expect(refusalOf({ turns: [user('  ')] }).facts.param).toBe('messages')
  })

  test('pitfall 24: a conversation that ends with the assistant is refused in the words of the provider', () => {
    const failure = refusalOf({ turns: [user('u'), { ...assistant('a'), pointer: '/messages/1' }] }, models.opus55)
    expect(failure.message).toBe(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
    expect(failure.facts.param).toBe('messages[1]')
  })

  test('pitfall 25: where it may end so, only the last text is trimmed at its end', () => {
    const turns = [user('u '), assistant('a \n'), user('v'), assistant('first ', 'so \n')]
    const { body } = renderMessagesBody({ turns }, models.s45)
    expect(body.messages).toEqual([
      says('user', 'u '),
      says('assistant', 'a \n'),
      says('user', 'v'),
      says('assistant', 'first ', 'so'),
    ])
  })

  test('pitfall 130: a schema for the answer and a begun answer exclude each other', () => {
    const outputFormat = { kind: 'json-schema', schema: '{"type":"object"}' } as const
    expect(refusalOf({ turns: [user('u'), assistant('{')], outputFormat }, models.s45).message).toContain('prefill')
  })
})
