import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parsed, parseResult, refusedParse } from '../../../test/parts/chat-requests.ts'
import { Failure } from '../../kernel/failure.ts'
import type { Turn } from '../canonical/conversation.ts'
import { pairTools } from '../request/tools.ts'
import { WarningList } from '../request/warnings.ts'

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]).toString('base64')
const text = (words: string) => ({ kind: 'text', text: words }) as const

describe('system messages', () => {
  test('vector 1: leading system and developer messages are system blocks, one each, in order', () => {
    const { system, turns } = parsed({
      messages: [
        { role: 'system', content: 'A' },
        { role: 'developer', content: 'B' },
        { role: 'user', content: 'hi' },
      ],
    })
    expect(system).toEqual([text('A'), text('B')])
    expect(turns).toEqual([{ role: 'user', blocks: [text('hi')], place: '/messages/2' }])
  })

  test('vector 2: a last system message stays in its place', () => {
    const { system, turns } = parsed({
      messages: [
        { role: 'system', content: 'A' },
        { role: 'user', content: 'u1' },
        { role: 'assistant', content: 'a1' },
        { role: 'user', content: 'u2' },
        { role: 'system', content: 'B' },
      ],
    })
    expect(system).toEqual([text('A')])
    expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'system'])
    expect(turns[3]?.blocks).toEqual([text('B')])
  })

  test('vector 3: a system message after an assistant stays in its place', () => {
    const { system, turns } = parsed({
      messages: [
        { role: 'user', content: 'u1' },
        { role: 'assistant', content: 'a1' },
        { role: 'system', content: 'B' },
        { role: 'user', content: 'u2' },
      ],
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
    const turns = pairTools(parsed({ messages }).turns, rule, warnings)
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

  test('vector 9: an id used again is told apart on both sides, and the first stays', () => {
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

  test('vector 37: legacy functions become calls and results with ids of their own', () => {
    const { turns, tools, toolChoice } = parsed({
      messages: [
        { role: 'user', content: 'u' },
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
        { role: 'user', content: [{ type: 'text', text: 'u', cache_control: { type: 'ephemeral' } }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { a: 1 } }] },
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
    const place = '/messages/0/content/0/cache_control'
    expect(turns[0]?.blocks).toEqual([{ ...text('u'), cacheMark: { life: 'short', place } }])
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
