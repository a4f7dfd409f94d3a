import { describe, expect, test } from 'bun:test'
import { noted, parseWhole, requestId, steps } from '../../../../test/parts/reply-notation.ts'
import {
  added,
  argumentsDelta,
  completed,
  created,
  done,
  functionCall,
  incomplete,
  issuer,
  message,
  outputText,
  reasoning,
  recorded,
  responsesTarget,
  sent,
  summaryDelta,
  textDelta,
} from '../../../../test/parts/responses.ts'
import type { ReplyEvent } from '../../canonical/reply.ts'
import { parseStream } from './parse.ts'

const eventsOf = (...stream: string[]): ReplyEvent[] =>
  parseWhole(parseStream(responsesTarget(), requestId), stream.join(''))
const read = (...stream: string[]): string[] => noted(eventsOf(...stream))
const signed = `signed by ${issuer}`
const proof = (items: readonly object[], call?: string): string => `${signed} ${JSON.stringify({ items, call })}`
const item = (n: number, encrypted_content: string, summary: readonly string[] = []) => ({
  id: `rs_${n}`,
  summary,
  encrypted_content,
})

describe('a stream as the provider sends it', () => {
  test('emits each piece once, although the provider sends everything twice', () => {
    const events = eventsOf(recorded)
    expect(noted(events)).toEqual(steps`
      start resp_1 | thinking | +Look | +ing. | +\n\nFound.
      ${proof([item(0, 'SEALED', ['Looking.', 'Found.'])])} | . | text | +Grüße  | +👋 | . | call call_2 f
      +{"a" | +:1} | . | end tool-calls completed
    `)
    expect(events.at(-1)).toMatchObject({
      usage: { inputTokens: 10, cacheReadTokens: 70, cacheWriteTokens: 20, outputTokens: 5, reasoningTokens: 3 },
    })
  })

  test('is emitted as it arrives', () => {
    const parser = parseStream(responsesTarget(), requestId)
    const push = (chunk: string): string[] => noted(parser.push(new TextEncoder().encode(chunk)))
    expect(push(created)).toEqual(['start resp_1'])
    expect(push(added(0, message(0)))).toEqual([])
    expect(push(textDelta(0, 'a'))).toEqual(['text', '+a'])
    expect(push(done(0, message(0, outputText('a'))))).toEqual(['.'])
    expect(push(added(1, functionCall(1)))).toEqual(['call call_1 f'])
    expect(push(argumentsDelta(1, '{}'))).toEqual(['+{}'])
    expect(push(done(1, functionCall(1, 'f', '{}')))).toEqual(['.'])
    expect(push(completed())).toEqual(['end tool-calls completed'])
    expect(parser.end()).toEqual([])
  })

  test('may contain unknown events, unreadable records and a final [DONE]', () => {
    const parser = parseStream(responsesTarget(), requestId)
    const stream = [
      created,
      sent('response.sparkle', { output_index: 0, delta: 'x' }),
      'data: {"type":\n\n',
      completed(),
    ]
    expect(noted(parseWhole(parser, `${stream.join('')}data: [DONE]\n\n`))).toEqual(
      steps`start resp_1 | end end completed`,
    )
    expect(parser.skipped).toBe(1)
  })

  test('may repeat a long request', () => {
    const response = { id: 'resp_1', instructions: 'x'.repeat(2 * 1024 * 1024) }
    expect(read(sent('response.created', { response }), completed(response))).toEqual(
      steps`start resp_1 | end end completed`,
    )
  })

  test('keeps alive between events', () => {
    expect(read(created, sent('keepalive', { sequence_number: 3 }), completed())).toEqual(steps`
      start resp_1 | ~ | end end completed
    `)
  })
})

describe('reasoning', () => {
  test('that follows reasoning is one block, and all of it goes back', () => {
    expect(
      read(
        created,
        summaryDelta(0, 0, 'a'),
        done(0, reasoning(0, ['a'], 'S0')),
        summaryDelta(1, 0, 'b'),
        done(1, reasoning(1, ['b'], 'S1')),
        textDelta(2, 'c'),
        completed(),
      ).slice(1, 6),
    ).toEqual(steps`thinking | +a | +\n\nb | ${proof([item(0, 'S0', ['a']), item(1, 'S1', ['b'])])} | .`)
  })

  test('that led to nothing is only to be read, and not passed on if it cannot be', () => {
    expect(read(created, done(0, reasoning(0, ['a'], 'S')), incomplete('max_output_tokens'))).toEqual(steps`
      start resp_1 | thinking | +a | ${signed} | . | end length max_output_tokens
    `)
    expect(read(created, done(0, reasoning(0, [], 'S')), incomplete('max_output_tokens'))).toEqual(
      steps`start resp_1 | end length max_output_tokens`,
    )
  })

  test('that led to something which is not passed on is only to be read', () => {
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed' }
    expect(read(created, done(0, reasoning(0, ['a'], 'S')), done(1, search), textDelta(2, 'b'), completed())).toEqual([
      'start resp_1',
      'thinking',
      '+a',
      signed,
      '.',
      'text',
      '+b',
      '.',
      'end end completed',
    ])
    expect(read(created, done(0, reasoning(0, [], 'S')), done(1, search), textDelta(2, 'b'), completed())).toEqual(
      steps`start resp_1 | text | +b | . | end end completed`,
    )
  })

  test('reads the reasoning of open models from the item itself', () => {
    const delta = sent('response.reasoning_text.delta', { output_index: 0, content_index: 0, delta: 'Hm' })
    const whole = { type: 'reasoning', id: 'rs_0', summary: [], content: [{ type: 'reasoning_text', text: 'Hm' }] }
    const expected = ['start resp_1', 'thinking', '+Hm', signed, '.', 'end end completed']
    expect(read(created, delta, done(0, whole), completed())).toEqual(expected)
    expect(read(created, done(0, whole), completed())).toEqual(expected)
  })
})

describe('text', () => {
  test('white space alone opens no block, unless there is nothing else', () => {
    expect(read(created, textDelta(0, '\n'), done(0, message(0)), added(1, functionCall(1)), completed())).toEqual(
      steps`start resp_1 | call call_1 f | . | end tool-calls completed`,
    )
    expect(read(created, textDelta(0, '\n'), completed())).toEqual(steps`
      start resp_1 | text | +\n | . | end end completed
    `)
  })

  test('a refusal is a refusal block, and the stop reason of the reply', () => {
    const refusal = (delta: string) => sent('response.refusal.delta', { output_index: 0, content_index: 0, delta })
    expect(read(created, refusal('I '), refusal('cannot.'), completed())).toEqual(steps`
      start resp_1 | refusal | +I  | +cannot. | . | end refusal completed I cannot.
    `)
  })
})

describe('endings', () => {
  test('vector 70: a cap that was reached, with usage and also in the middle of a call', () => {
    const usage = { input_tokens: 4, output_tokens: 9 }
    const events = eventsOf(
      created,
      added(0, functionCall(0)),
      argumentsDelta(0, '{"a'),
      incomplete('max_output_tokens', { usage }),
    )
    expect(noted(events)).toEqual(steps`start resp_1 | call call_0 f | +{"a | . | end length max_output_tokens`)
    expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 4, outputTokens: 9 } })
  })

  test.each([
    ['content_filter', 'end refusal content_filter'],
    ['max_messages', 'end length max_messages'],
    ['something_new', 'end length something_new'],
  ])('incomplete for %s is read', (reason, end) => {
    expect(read(created, textDelta(0, 'a'), incomplete(reason)).at(-1)).toBe(end)
  })

  test('pitfall 121: a stream that just closes has failed', () => {
    expect(read(created, textDelta(0, 'a'))).toEqual(steps`start resp_1 | text | +a | fail a stream without an end`)
    expect(read(created, textDelta(0, 'a'), 'data: [DONE]\n\n').at(-1)).toBe('fail a stream without an end')
    expect(read('')).toEqual(['fail a stream without an end'])
  })

  test('events after the end are ignored', () => {
    expect(read(created, completed(), textDelta(0, 'a'), sent('error', { message: 'late' }))).toEqual(
      steps`start resp_1 | end end completed`,
    )
  })
})

describe('failures', () => {
  const faultOf = (...stream: string[]) => {
    const last = eventsOf(...stream).at(-1)
    return last?.type === 'reply-failure' ? last.fault : undefined
  }
  const failed = (error: object | null, status = 'failed') =>
    sent('response.failed', { response: { id: 'resp_1', status, error } })

  test('vector 70: a failed reply is classified by its code', () => {
    const error = { code: 'rate_limit_exceeded', message: 'Rate limit reached. Please try again in 1.5s.' }
    expect(faultOf(created, failed(error))).toMatchObject({ ...error, status: 429 })
  })

  test.each(['failed', 'cancelled'])('keeps the usage of a reply that was %s after some content', (word) => {
    const parser = parseStream(responsesTarget(), requestId)
    const usage = { input_tokens: 9000, output_tokens: 4000, output_tokens_details: { reasoning_tokens: 3990 } }
    const response = { id: 'resp_1', status: word, error: { code: 'server_error', message: 'Oops' }, usage }
    const events = parseWhole(parser, [created, textDelta(0, 'a'), sent(`response.${word}`, { response })].join(''))
    expect(noted(events).at(-1)).toBe('fail Oops')
    expect(parser.usageSoFar).toMatchObject({ inputTokens: 9000, outputTokens: 4000, reasoningTokens: 3990 })
  })

  test('a failed or cancelled reply without a word fails all the same', () => {
    expect(faultOf(created, failed(null))).toMatchObject({ message: 'the reply was failed', status: undefined })
    expect(faultOf(created, sent('response.cancelled', { response: {} }))).toMatchObject({
      message: 'the reply was cancelled',
    })
  })

  test('an error event has its members beside its type, or in an object', () => {
    const error = { code: 'server_error', message: 'Oops', param: null }
    const expected = { code: 'server_error', message: 'Oops', status: 500 }
    expect(faultOf(created, sent('error', error))).toMatchObject(expected)
    expect(faultOf(created, sent('error', { error }))).toMatchObject(expected)
    expect(faultOf(`data: ${JSON.stringify({ error })}\n\n`)).toMatchObject(expected)
  })

  test('leave the open block open', () => {
    expect(read(created, textDelta(0, 'a'), failed({ code: 'server_error', message: 'Oops' }))).toEqual(steps`
      start resp_1 | text | +a | fail Oops
    `)
  })
})

describe('items without deltas', () => {
  test('are taken from the end of the reply', () => {
    expect(
      read(
        created,
        done(0, reasoning(0, ['a', 'b'])),
        done(1, message(1, outputText('c'), { type: 'refusal', refusal: 'no' })),
        completed(),
      ),
    ).toEqual(steps`
      start resp_1 | thinking | +a | +\n\nb | ${signed} | . | text | +c | . | refusal | +no | .
      end refusal completed no
    `)
  })

  test('count also where only the end of the reply tells of them', () => {
    const output = [message(0, outputText('a')), functionCall(1, 'f', '{"b":2}')]
    expect(read(created, completed({ output }))).toEqual(steps`
      start resp_1 | text | +a | . | call call_1 f | +{"b":2} | . | end tool-calls completed
    `)
  })

  test('or where an item was begun and never ended', () => {
    const output = [functionCall(0, 'f', '{"b":2}')]
    expect(read(created, added(0, functionCall(0)), completed({ output }))).toEqual(steps`
      start resp_1 | call call_0 f | +{"b":2} | . | end tool-calls completed
    `)
  })

  test('a call is found in the final response under any index', () => {
    const output = [reasoning(9, ['x']), functionCall(0, 'f', '{"b":2}')]
    expect(read(created, added(0, functionCall(0)), completed({ output })).slice(1, -1)).toEqual(steps`
      call call_0 f | +{"b":2} | .
    `)
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

test('arguments end with their object, whatever follows it, streamed or whole', () => {
  const streamed = [
    added(0, functionCall(0)),
    argumentsDelta(0, '{"a":'),
    argumentsDelta(0, '1}}'),
    argumentsDelta(0, '}'),
  ]
  expect(read(created, ...streamed, done(0, functionCall(0)), completed()).slice(1, -1)).toEqual(steps`
    call call_0 f | +{"a": | +1} | .
  `)
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
    ).toEqual(steps`
      start resp_1 | thinking | ${proof([item(0, 'S0')], 'call_1')} | . | call call_1 f | +{"a" | +:1} | .
      call call_2 g | +{"b" | +:2} | . | end tool-calls completed
    `)
  })

  test('wait where the one before never ends', () => {
    expect(read(created, added(0, message(0)), textDelta(0, 'a'), textDelta(1, 'b'), completed())).toEqual(steps`
      start resp_1 | text | +a | . | text apart | +b | . | end end completed
    `)
  })

  test('are distinguished by id if they have no index', () => {
    const delta = (item_id: string, text: string) =>
      sent('response.function_call_arguments.delta', { item_id, delta: text })
    const begin = (n: number) => sent('response.output_item.added', { item: functionCall(n) })
    expect(read(created, begin(1), begin(2), delta('fc_2', '2'), delta('fc_1', '1'), completed())).toEqual(steps`
      start resp_1 | call call_1 f | +1 | . | call call_2 f | +2 | . | end tool-calls completed
    `)
  })

  test('are distinguished although a host gives all of them one index', () => {
    const whole = (text: string) => [added(0, message(0)), textDelta(0, text), done(0, message(0, outputText(text)))]
    expect(read(created, ...whole('a'), ...whole('b'), completed()).slice(1, -1)).toEqual(steps`
      text | +a | . | text apart | +b | .
    `)
  })
})

describe('calls', () => {
  test('calls of custom tools have their plain input', () => {
    const custom = { type: 'custom_tool_call', id: 'ct_0', call_id: 'call_0', name: 'patch', input: '' }
    const delta = sent('response.custom_tool_call_input.delta', {
      output_index: 0,
      item_id: 'ct_0',
      delta: '"*** Begin',
    })
    expect(read(created, added(0, custom), delta, done(0, { ...custom, input: '"*** Begin' }), completed())).toEqual(
      steps`start resp_1 | custom call_0 patch | +"*** Begin | . | end tool-calls completed`,
    )
  })

  test('pitfall 54: lose one layer of quotes around their arguments', () => {
    const deltas = [argumentsDelta(0, '"{\\"a\\"'), argumentsDelta(0, ':1}"')]
    expect(read(created, added(0, functionCall(0)), ...deltas, completed())).toContain('+{"a":1}')
  })

  test('pitfall 63: wait for a name, and have one in the end or fail', () => {
    const nameless = { type: 'function_call', id: 'fc_0', call_id: 'call_0' }
    const begun = [created, added(0, nameless), argumentsDelta(0, '{}')]
    expect(read(...begun)).toEqual(['start resp_1', 'fail a stream without an end'])
    expect(read(...begun, done(0, functionCall(0, 'f', '{}')), completed()).slice(1)).toEqual(steps`
      call call_0 f | +{} | . | end tool-calls completed
    `)
    expect(read(...begun, completed())).toEqual(['start resp_1', 'fail a tool call without a name'])
  })

  test('get an id where they have none, or one that is taken', () => {
    const bare = { type: 'function_call', name: 'f', arguments: '{}' }
    const calls = [done(0, bare), done(1, functionCall(7)), done(2, functionCall(7))]
    expect(read(created, ...calls, completed()).filter((line) => line.startsWith('call'))).toEqual(steps`
      call call_tg_7_1 f | call call_7 f | call call_tg_7_3 f
    `)
  })

  test('arguments that continue after their end are a failure', () => {
    expect(read(created, done(0, functionCall(0, 'f', '{}')), argumentsDelta(0, '{}')).at(-1)).toBe(
      'fail a piece of an item that had ended',
    )
  })
})

describe('whole replies', () => {
  const read = (body: unknown) =>
    parseStream(responsesTarget(), requestId).whole(
      new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)),
    )

  const faultOf = (body: unknown) => {
    const [event] = read(body)
    return event?.type === 'reply-failure' ? event.fault : undefined
  }

  test('pitfall 139: a whole reply is read like a stream', () => {
    const output = [reasoning(0, ['Hm'], 'S'), message(1, outputText('a')), functionCall(2, 'f', '{"b":2}')]
    const usage = { input_tokens: 4, output_tokens: 9 }
    const events = read({ id: 'resp_9', object: 'response', status: 'completed', error: null, output, usage })
    expect(noted(events)).toEqual(steps`
      start resp_9 | thinking | +Hm
      signed by ${issuer} {"items":[{"id":"rs_0","summary":["Hm"],"encrypted_content":"S"}]} | . | text | +a | .
      call call_2 f | +{"b":2} | . | end tool-calls completed
    `)
    expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 4, outputTokens: 9 } })
  })

  test('one that was cut says so, over several lines too', () => {
    const body = JSON.stringify(
      { status: 'incomplete', incomplete_details: { reason: 'content_filter' }, output: [] },
      null,
      2,
    )
    expect(noted(read(body))).toEqual(['start', 'end refusal content_filter'])
  })

  test('returns a fault for a body that is not a reply', () => {
    const error = { code: 'server_error', message: 'Oops' }
    expect(faultOf({ status: 'failed', error, output: [] })).toMatchObject({ message: 'Oops', status: 500 })
    expect(faultOf({ status: 'in_progress', output: [] })?.message).toBe('a reply without an end')
    expect(faultOf({ status: 'completed' })?.message).toBe('a reply without output')
    expect(faultOf('<html>')?.message).toContain('not a complete JSON object')
  })
})
