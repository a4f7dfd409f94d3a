import { describe, expect, test } from 'bun:test'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
import {
  added,
  argumentsDelta,
  completed,
  created,
  done,
  functionCall,
  issuer,
  message,
  outputText,
  reasoning,
  responsesTarget,
  sent,
  textDelta,
} from '../../../test/parts/responses.ts'
import type { ReplyEvent } from '../canonical/reply.ts'
import { parseStream } from './parse-stream.ts'

const eventsOf = (...stream: string[]): ReplyEvent[] => parseWhole(parseStream(responsesTarget()), stream.join(''))
const read = (...stream: string[]): string[] => noted(eventsOf(...stream))
const signed = `signed by ${issuer}`
const proof = (items: readonly object[], call?: string): string => `${signed} ${JSON.stringify({ items, call })}`
const item = (n: number, encrypted_content: string, summary: readonly string[] = []) => ({
  id: `rs_${n}`,
  summary,
  encrypted_content,
})

describe('items without deltas', () => {
  test('count as they are told in the end', () => {
    expect(
      read(
        created,
        done(0, reasoning(0, ['a', 'b'])),
        done(1, message(1, outputText('c'), { type: 'refusal', refusal: 'no' })),
        completed(),
      ),
    ).toEqual([
      'start resp_1',
      'thinking',
      '+a',
      '+\n\nb',
      signed,
      '.',
      'text',
      '+c',
      '.',
      'refusal',
      '+no',
      '.',
      'end refusal completed no',
    ])
  })

  test('count also where only the end of the reply tells of them', () => {
    const output = [message(0, outputText('a')), functionCall(1, 'f', '{"b":2}')]
    expect(read(created, completed({ output }))).toEqual([
      'start resp_1',
      'text',
      '+a',
      '.',
      'call call_1 f',
      '+{"b":2}',
      '.',
      'end tool-calls completed',
    ])
  })

  test('or where an item was begun and never ended', () => {
    const output = [functionCall(0, 'f', '{"b":2}')]
    expect(read(created, added(0, functionCall(0)), completed({ output }))).toEqual([
      'start resp_1',
      'call call_0 f',
      '+{"b":2}',
      '.',
      'end tool-calls completed',
    ])
  })

  test('whatever number it has there', () => {
    const output = [reasoning(9, ['x']), functionCall(0, 'f', '{"b":2}')]
    expect(read(created, added(0, functionCall(0)), completed({ output })).slice(1, -1)).toEqual([
      'call call_0 f',
      '+{"b":2}',
      '.',
    ])
    expect(read(created, added(0, functionCall(0)), completed({ output: [reasoning(9, ['x'])] })).slice(1, -1)).toEqual(
      ['call call_0 f', '.'],
    )
  })

  test('count once, though a host repeats them', () => {
    const [a, b] = [done(0, message(1, outputText('a'))), done(0, message(2, outputText('b')))]
    expect(read(created, a, a, b, completed()).filter((line) => line.startsWith('+'))).toEqual(['+a', '+b'])
  })

  test('pitfall 56: arguments that are an object keep their spelling', () => {
    const written = '{ "n": 12345678901234567890 }'
    const whole = `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":${written}}}\n\n`
    expect(read(created, whole, completed())).toContain(`+${written}`)
  })
})

test('arguments end with their object, whatever is written behind it, streamed or told as a whole', () => {
  const streamed = [
    added(0, functionCall(0)),
    argumentsDelta(0, '{"a":'),
    argumentsDelta(0, '1}}'),
    argumentsDelta(0, '}'),
  ]
  expect(read(created, ...streamed, done(0, functionCall(0)), completed()).slice(1, -1)).toEqual([
    'call call_0 f',
    '+{"a":',
    '+1}',
    '.',
  ])
  expect(read(created, done(0, functionCall(0, 'f', '{"a":1}}')), completed())).toContain('+{"a":1}')
})

describe('items that mix', () => {
  test('vector 89: come one after another, and sealed reasoning with what it led to', () => {
    expect(
      read(
        created,
        added(0, reasoning(0)),
        done(0, reasoning(0, [], 'S0')),
        added(1, functionCall(1)),
        added(2, functionCall(2, 'g')),
        argumentsDelta(1, '{"a"'),
        argumentsDelta(2, '{"b"'),
        argumentsDelta(1, ':1}'),
        argumentsDelta(2, ':2}'),
        done(2, functionCall(2, 'g', '{"b":2}')),
        done(1, functionCall(1, 'f', '{"a":1}')),
        completed(),
      ),
    ).toEqual([
      'start resp_1',
      'thinking',
      proof([item(0, 'S0')], 'call_1'),
      '.',
      'call call_1 f',
      '+{"a"',
      '+:1}',
      '.',
      'call call_2 g',
      '+{"b"',
      '+:2}',
      '.',
      'end tool-calls completed',
    ])
  })

  test('wait where the one before never ends', () => {
    expect(read(created, added(0, message(0)), textDelta(0, 'a'), textDelta(1, 'b'), completed())).toEqual([
      'start resp_1',
      'text',
      '+a',
      '.',
      'text apart',
      '+b',
      '.',
      'end end completed',
    ])
  })

  test('are told apart by their ids where they have no numbers', () => {
    const delta = (item_id: string, text: string) =>
      sent('response.function_call_arguments.delta', { item_id, delta: text })
    const begin = (n: number) => sent('response.output_item.added', { item: functionCall(n) })
    expect(read(created, begin(1), begin(2), delta('fc_2', '2'), delta('fc_1', '1'), completed())).toEqual([
      'start resp_1',
      'call call_1 f',
      '+1',
      '.',
      'call call_2 f',
      '+2',
      '.',
      'end tool-calls completed',
    ])
  })

  test('are told apart although a host gives all of them one number', () => {
    const whole = (text: string) => [added(0, message(0)), textDelta(0, text), done(0, message(0, outputText(text)))]
    expect(read(created, ...whole('a'), ...whole('b'), completed()).slice(1, -1)).toEqual([
      'text',
      '+a',
      '.',
      'text apart',
      '+b',
      '.',
    ])
  })
})

describe('calls', () => {
  test('of custom tools have their input bare', () => {
    const custom = { type: 'custom_tool_call', id: 'ct_0', call_id: 'call_0', name: 'patch', input: '' }
    const delta = sent('response.custom_tool_call_input.delta', {
      output_index: 0,
      item_id: 'ct_0',
      delta: '"*** Begin',
    })
    expect(read(created, added(0, custom), delta, done(0, { ...custom, input: '"*** Begin' }), completed())).toEqual([
      'start resp_1',
      'custom call_0 patch',
      '+"*** Begin',
      '.',
      'end tool-calls completed',
    ])
  })

  test('pitfall 54: lose one layer of quotes around their arguments', () => {
    const deltas = [argumentsDelta(0, '"{\\"a\\"'), argumentsDelta(0, ':1}"')]
    expect(read(created, added(0, functionCall(0)), ...deltas, completed())).toContain('+{"a":1}')
  })

  test('pitfall 63: wait for a name, and have one in the end or fail', () => {
    const nameless = { type: 'function_call', id: 'fc_0', call_id: 'call_0' }
    const begun = [created, added(0, nameless), argumentsDelta(0, '{}')]
    expect(read(...begun)).toEqual(['start resp_1', 'fail a stream without an end'])
    expect(read(...begun, done(0, functionCall(0, 'f', '{}')), completed()).slice(1)).toEqual([
      'call call_0 f',
      '+{}',
      '.',
      'end tool-calls completed',
    ])
    expect(read(...begun, completed())).toEqual(['start resp_1', 'fail a tool call without a name'])
  })

  test('get an id where they have none, or one that is taken', () => {
    const bare = { type: 'function_call', name: 'f', arguments: '{}' }
    const calls = [done(0, bare), done(1, functionCall(7)), done(2, functionCall(7))]
    expect(read(created, ...calls, completed()).filter((line) => line.startsWith('call'))).toEqual([
      'call call_tg_resp1_1 f',
      'call call_7 f',
      'call call_tg_resp1_3 f',
    ])
  })

  test('whose arguments go on after their end are a failure', () => {
    expect(read(created, done(0, functionCall(0, 'f', '{}')), argumentsDelta(0, '{}')).at(-1)).toBe(
      'fail a piece of an item that had ended',
    )
  })
})
