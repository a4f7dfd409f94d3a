import { describe, expect, test } from 'bun:test'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
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

describe('a stream as the provider sends it', () => {
  test('is told once, though everything in it is told twice', () => {
    const events = eventsOf(recorded)
    expect(noted(events)).toEqual([
      'start resp_1',
      'thinking',
      '+Look',
      '+ing.',
      '+\n\nFound.',
      proof([item(0, 'SEALED', ['Looking.', 'Found.'])]),
      '.',
      'text',
      '+Grüße ',
      '+👋',
      '.',
      'call call_2 f',
      '+{"a"',
      '+:1}',
      '.',
      'end tool-calls completed',
    ])
    expect(events.at(-1)).toMatchObject({
      usage: { inputTokens: 10, cacheReadTokens: 70, cacheWriteTokens: 20, outputTokens: 5, reasoningTokens: 3 },
    })
  })

  test('is told as it comes', () => {
    const parser = parseStream(responsesTarget())
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

  test('may hold events nobody knows, records nobody can read, and a mark at the end', () => {
    const parser = parseStream(responsesTarget())
    const stream = [
      created,
      sent('response.sparkle', { output_index: 0, delta: 'x' }),
      'data: {"type":\n\n',
      completed(),
    ]
    expect(noted(parseWhole(parser, `${stream.join('')}data: [DONE]\n\n`))).toEqual([
      'start resp_1',
      'end end completed',
    ])
    expect(parser.skipped).toBe(1)
  })

  test('may repeat a long request', () => {
    const response = { id: 'resp_1', instructions: 'x'.repeat(2 * 1024 * 1024) }
    expect(read(sent('response.created', { response }), completed(response))).toEqual([
      'start resp_1',
      'end end completed',
    ])
  })

  test('keeps alive between events', () => {
    expect(read(created, sent('keepalive', { sequence_number: 3 }), completed())).toEqual([
      'start resp_1',
      '~',
      'end end completed',
    ])
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
    ).toEqual(['thinking', '+a', '+\n\nb', proof([item(0, 'S0', ['a']), item(1, 'S1', ['b'])]), '.'])
  })

  test('that led to nothing is only to be read, and not passed on if it cannot be', () => {
    expect(read(created, done(0, reasoning(0, ['a'], 'S')), incomplete('max_output_tokens'))).toEqual([
      'start resp_1',
      'thinking',
      '+a',
      signed,
      '.',
      'end length max_output_tokens',
    ])
    expect(read(created, done(0, reasoning(0, [], 'S')), incomplete('max_output_tokens'))).toEqual([
      'start resp_1',
      'end length max_output_tokens',
    ])
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
    expect(read(created, done(0, reasoning(0, [], 'S')), done(1, search), textDelta(2, 'b'), completed())).toEqual([
      'start resp_1',
      'text',
      '+b',
      '.',
      'end end completed',
    ])
  })

  test('of open models is text in the item itself', () => {
    const delta = sent('response.reasoning_text.delta', { output_index: 0, content_index: 0, delta: 'Hm' })
    const whole = { type: 'reasoning', id: 'rs_0', summary: [], content: [{ type: 'reasoning_text', text: 'Hm' }] }
    const told = ['start resp_1', 'thinking', '+Hm', signed, '.', 'end end completed']
    expect(read(created, delta, done(0, whole), completed())).toEqual(told)
    expect(read(created, done(0, whole), completed())).toEqual(told)
  })
})

describe('text', () => {
  test('of nothing but blanks opens no block, unless it is all there is', () => {
    expect(read(created, textDelta(0, '\n'), done(0, message(0)), added(1, functionCall(1)), completed())).toEqual([
      'start resp_1',
      'call call_1 f',
      '.',
      'end tool-calls completed',
    ])
    expect(read(created, textDelta(0, '\n'), completed())).toEqual([
      'start resp_1',
      'text',
      '+\n',
      '.',
      'end end completed',
    ])
  })

  test('of a refusal is one, and ends the reply as one', () => {
    const refusal = (delta: string) => sent('response.refusal.delta', { output_index: 0, content_index: 0, delta })
    expect(read(created, refusal('I '), refusal('cannot.'), completed())).toEqual([
      'start resp_1',
      'refusal',
      '+I ',
      '+cannot.',
      '.',
      'end refusal completed I cannot.',
    ])
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
    expect(noted(events)).toEqual(['start resp_1', 'call call_0 f', '+{"a', '.', 'end length max_output_tokens'])
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
    expect(read(created, textDelta(0, 'a'))).toEqual(['start resp_1', 'text', '+a', 'fail a stream without an end'])
    expect(read(created, textDelta(0, 'a'), 'data: [DONE]\n\n').at(-1)).toBe('fail a stream without an end')
    expect(read('')).toEqual(['fail a stream without an end'])
  })

  test('nothing counts behind the end', () => {
    expect(read(created, completed(), textDelta(0, 'a'), sent('error', { message: 'late' }))).toEqual([
      'start resp_1',
      'end end completed',
    ])
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

  test.each(['failed', 'cancelled'])('what was counted of a reply that was %s after some content is kept', (word) => {
    const parser = parseStream(responsesTarget())
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
    const told = { code: 'server_error', message: 'Oops', status: 500 }
    expect(faultOf(created, sent('error', error))).toMatchObject(told)
    expect(faultOf(created, sent('error', { error }))).toMatchObject(told)
    expect(faultOf(`data: ${JSON.stringify({ error })}\n\n`)).toMatchObject(told)
  })

  test('leave the open block open', () => {
    expect(read(created, textDelta(0, 'a'), failed({ code: 'server_error', message: 'Oops' }))).toEqual([
      'start resp_1',
      'text',
      '+a',
      'fail Oops',
    ])
  })
})
