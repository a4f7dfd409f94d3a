import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { geminiTarget, issuer, record, said } from '../../../../test/parts/gemini.ts'
import { noted, parseCut, parseWhole, requestId, steps } from '../../../../test/parts/reply-notation.ts'
import type { ReplyEvent } from '../../canonical/reply.ts'
import { parseStream } from './parse.ts'

const eventsOf = (...records: string[]): ReplyEvent[] =>
  parseWhole(parseStream(geminiTarget(), requestId), records.join(''))
const read = (...records: string[]): string[] => noted(eventsOf(...records))
const signed = `signed by ${issuer}`
const proof = (part: object): string => `${signed} ${JSON.stringify(part)}`
const text = (words: string, more: object = {}) => ({ text: words, ...more })
const thought = (words: string, more: object = {}) => ({ text: words, thought: true, ...more })
const call = (name: string, args?: object, more: object = {}) => ({ functionCall: { name, args }, ...more })
const usage = (prompt: number, candidates?: number, thoughts?: number) => ({
  usageMetadata: { promptTokenCount: prompt, candidatesTokenCount: candidates, thoughtsTokenCount: thoughts },
})

test('reports the usage so far before the end of the stream', () => {
  const parser = parseStream(geminiTarget(), requestId)
  parser.push(new TextEncoder().encode(said([text('Hel')]) + record(usage(3, 2)) + record(usage(3, 7))))
  expect(parser.usageSoFar).toMatchObject({ inputTokens: 3, outputTokens: 7 })
})

describe('text and thoughts', () => {
  test('are emitted as they arrive, and the end only when the provider closes', () => {
    const parser = parseStream(geminiTarget(), requestId)
    const push = (chunk: string): string[] => noted(parser.push(new TextEncoder().encode(chunk)))
    expect(push(said([thought('Hm')]))).toEqual(steps`start r1 | thinking | +Hm`)
    expect(push(said([text('Hel')]))).toEqual(steps`${signed} | . | text | +Hel`)
    expect(push(said([text('lo')], 'STOP'))).toEqual(['+lo'])
    expect(push(record(usage(3, 2)))).toEqual([])
    expect(noted(parser.end())).toEqual(['.', 'end end STOP'])
  })

  test('blank text alone opens no block in front of a call', () => {
    expect(read(said([text('\n'), call('f')], 'STOP'))).toEqual(steps`
      start r1 | call call_7_1 f | +{} | . | end tool-calls STOP
    `)
    expect(read(said([text('\n')]), said([text('a')], 'STOP'))).toEqual(steps`
      start r1 | text | +\na | . | end end STOP
    `)
  })

  test('parts that were not requested are omitted, and the texts around them stay separate', () => {
    const image = { inlineData: { mimeType: 'image/png', data: 'iVBO' } }
    expect(read(said([text('a'), image, text('b')], 'STOP'))).toEqual(steps`
      start r1 | text | +a | . | text apart | +b | . | end end STOP
    `)
  })
})

describe('calls', () => {
  test('vector 90: come whole, with one piece of arguments; of running usage the last counts', () => {
    const events = eventsOf(
      said([call('f', { a: 1 })], undefined, usage(10, 3)),
      said([text('')], 'STOP', usage(10, 7, 2)),
    )
    expect(noted(events)).toEqual(steps`start r1 | call call_7_1 f | +{"a":1} | . | end tool-calls STOP`)
    expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 10, outputTokens: 9, reasoningTokens: 2 } })
  })

  test('vector 66: without ids they get unique ones, and the signature of the first is kept', () => {
    expect(read(said([call('f', {}, { thoughtSignature: 'S' }), call('f', {})], 'STOP'))).toEqual(steps`
      start r1 | thinking | ${proof({ part: 'call', id: 'call_7_1', signature: 'S' })} | . | call call_7_1 f
      +{} | . | call call_7_2 f | +{} | . | end tool-calls STOP
    `)
  })

  test('keep the ids they have, but for one that is used twice', () => {
    const given = { functionCall: { id: 'x', name: 'f', args: {} } }
    const calls = read(said([given, given], 'STOP')).filter((line) => line.startsWith('call '))
    expect(calls).toEqual(['call x f', 'call call_7_2 f'])
  })

  test('pitfall 56: have their arguments as the model wrote them', () => {
    const json = '{ "n": 12345678901234567890, "x": 1.0 }'
    const line = `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${json}}}]},"finishReason":"STOP"}]}\n\n`
    expect(read(line)).toEqual(steps`start | call call_7_1 f | +${json} | . | end tool-calls STOP`)
  })

  test('without a name are a failure', () => {
    expect(read(said([call('')], 'STOP')).at(-1)).toBe('fail a tool call without a name')
  })
})

describe('signatures', () => {
  test('a signature on a call belongs to the thought before it', () => {
    expect(
      read(said([thought('Hm')]), said([call('f', {}, { thoughtSignature: 'S' })], 'STOP')).slice(1, 6),
    ).toEqual(steps`
      thinking | +Hm | ${proof({ part: 'call', id: 'call_7_1', signature: 'S' })} | . | call call_7_1 f
    `)
  })

  test('a signature on a thought ends its block, so that each keeps its own', () => {
    const parts = [thought('a', { thoughtSignature: 'S1' }), thought('b', { thoughtSignature: 'S2' })]
    expect(read(said(parts, 'STOP'))).toEqual(steps`
      start r1 | thinking | +a | ${proof({ part: 'thought', signature: 'S1' })} | . | thinking | +b
      ${proof({ part: 'thought', signature: 'S2' })} | . | end end STOP
    `)
  })

  test('a signature on a text waits for its end, also on a part without text', () => {
    const late = text('', { thoughtSignature: 'S' })
    expect(read(said([text('a')]), said([late]), said([text('b')], 'STOP'))).toEqual(steps`
      start r1 | text | +a | +b | . | thinking | ${proof({ part: 'text', signature: 'S' })} | . | end end STOP
    `)
  })

  test('that follow a call on a part without text are its own', () => {
    const late = { thoughtSignature: 'S' }
    expect(read(said([call('f')]), said([late], 'STOP')).slice(4)).toEqual(steps`
      thinking | ${proof({ part: 'call', id: 'call_7_1', signature: 'S' })} | . | end tool-calls STOP
    `)
  })
})

describe('endings', () => {
  test.each([
    ['MAX_TOKENS', 'end length MAX_TOKENS'],
    ['CONTINUATION', 'end length CONTINUATION'],
    ['SAFETY', 'end refusal SAFETY'],
    ['RECITATION', 'end refusal RECITATION'],
    ['PROHIBITED_CONTENT', 'end refusal PROHIBITED_CONTENT'],
    ['IMAGE_SAFETY', 'end refusal IMAGE_SAFETY'],
    ['OTHER', 'end end OTHER'],
    ['SOMETHING_NEW', 'end end SOMETHING_NEW'],
  ])('%s is read', (finish, end) => {
    expect(read(said([text('a')], finish))).toEqual(steps`start r1 | text | +a | . | ${end}`)
  })

  test('an unknown finish reason is flagged', () => {
    const stopOf = (finish: string) => eventsOf(said([text('a')], finish)).at(-1)
    expect(stopOf('OTHER')).toMatchObject({ stop: { isUnknown: true } })
    expect(stopOf('STOP')).not.toMatchObject({ stop: { isUnknown: true } })
  })

  test('pitfall 115: STOP with a call, in whichever record, is a stop for calls', () => {
    const endOf = (finish: string) => read(said([call('f')]), said([], finish)).at(-1)
    expect(endOf('STOP')).toBe('end tool-calls STOP')
    expect(endOf('MAX_TOKENS')).toBe('end length MAX_TOKENS')
    expect(endOf('SAFETY')).toBe('end refusal SAFETY')
    // Some hosts use another finish reason; without it the caller would never send the results.
    expect(endOf('FUNCTION_CALL')).toBe('end tool-calls FUNCTION_CALL')
  })

  test('pitfall 122: of several finish reasons the last counts', () => {
    const records = [said([text('a')], 'STOP'), said([text('b')], 'STOP'), said([], 'MAX_TOKENS'), said([])]
    expect(read(...records)).toEqual(steps`start r1 | text | +a | +b | . | end length MAX_TOKENS`)
  })

  test('vector 69: MAX_TOKENS may come with no content', () => {
    const only = record({
      candidates: [{ finishReason: 'MAX_TOKENS', index: 0 }],
      responseId: 'r1',
      ...usage(4, undefined, 9),
    })
    const events = eventsOf(only)
    expect(noted(events)).toEqual(['start r1', 'end length MAX_TOKENS'])
    expect(events.at(-1)).toMatchObject({ usage: { outputTokens: 9 } })
  })

  test('vector 67: a blocked prompt is a refusal, with usage', () => {
    const events = eventsOf(record({ promptFeedback: { blockReason: 'SAFETY' }, responseId: 'r1', ...usage(4) }))
    expect(noted(events)).toEqual(['start r1', 'end refusal SAFETY prompt blocked: SAFETY'])
    expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 4, outputTokens: 0 } })
  })

  test('pitfall 120: also when the reason is blank', () => {
    expect(read(record({ promptFeedback: { blockReason: '' } })).at(-1)).toBe(
      'end refusal BLOCKED_REASON_UNSPECIFIED prompt blocked: BLOCKED_REASON_UNSPECIFIED',
    )
  })

  test('feedback that blocks nothing is no ending', () => {
    expect(read(record({ promptFeedback: { safetyRatings: [] } }))).toEqual(['fail a stream without an end'])
  })

  test('the words of a refusal are its explanation', () => {
    const finish = { finishReason: 'RECITATION', finishMessage: 'Quoted.' }
    expect(read(record({ candidates: [finish] })).at(-1)).toBe('end refusal RECITATION Quoted.')
  })
})

describe('failures', () => {
  test('pitfall 119: a malformed call is one, and no empty answer', () => {
    for (const finish of ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS']) {
      expect(read(said([], finish))).toEqual(['start r1', `fail ${finish}`])
      // Asked again, the model may write another.
      expect(eventsOf(said([], finish)).at(-1)).toMatchObject({ fault: { code: finish, isInvalidOutput: true } })
    }
  })

  test('a close without a finish reason is one', () => {
    expect(read(said([text('a')]))).toEqual(steps`start r1 | text | +a | fail a stream without an end`)
    expect(read('')).toEqual(['fail a stream without an end'])
  })

  test('pitfall 142: an error record is one, and nothing behind it counts', () => {
    const error = record({ error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } })
    const events = eventsOf(said([text('a')]), error, said([text('b')], 'STOP'))
    expect(noted(events)).toEqual(steps`start r1 | text | +a | fail Overloaded.`)
    expect(events.at(-1)).toMatchObject({ fault: { status: 503, type: 'UNAVAILABLE' } })
  })

  test('reads a bare body as a failure, whatever its content type', () => {
    const error = { error: { code: 429, message: 'Slow down.', status: 'RESOURCE_EXHAUSTED' } }
    for (const body of [JSON.stringify(error, undefined, 2), `\n[${JSON.stringify(error)}]\n`]) {
      const events = eventsOf(body)
      expect(noted(events)).toEqual(['fail Slow down.'])
      expect(events[0]).toMatchObject({ fault: { status: 429 } })
    }
  })

  test('a record that cannot be read is left out and counted', () => {
    const parser = parseStream(geminiTarget(), requestId)
    expect(noted(parseWhole(parser, `data: {bad\n\n${said([text('a')], 'STOP')}`)).at(-1)).toBe('end end STOP')
    expect(parser.skipped).toBe(1)
  })
})

test('emits a well-formed reply whatever the provider sends', () => {
  const odd = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom('a', '', ' ', 'STOP', true, {}, []))
  const part = fc.record(
    {
      text: odd,
      thought: odd,
      thoughtSignature: odd,
      functionCall: fc.oneof(odd, fc.record({ name: odd, id: odd, args: odd })),
    },
    { requiredKeys: [] },
  )
  const candidate = fc.record(
    { content: fc.record({ parts: fc.array(part) }), finishReason: odd },
    { requiredKeys: [] },
  )
  const any = fc.record(
    { candidates: fc.oneof(odd, fc.array(candidate)), usageMetadata: odd, promptFeedback: odd, responseId: odd },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.array(any, { maxLength: 4 }), (records) => {
      const events = eventsOf(...records.map(record))
      const [last] = events.slice(-1)
      expect(['reply-end', 'reply-failure']).toContain(last?.type ?? '')
      let isOpen = false
      for (const [i, { type }] of events.entries()) {
        if (type === 'reply-start') expect(i).toBe(0)
        if (type === 'block-start' || type === 'reply-end') expect(isOpen).toBe(false)
        if (type.endsWith('-delta') || type === 'signature' || type === 'block-end') expect(isOpen).toBe(true)
        if (type === 'block-start') isOpen = true
        if (type === 'block-end') isOpen = false
      }
    }),
    { numRuns: 500 },
  )
})

describe('any cut of the bytes', () => {
  const stream = [
    said([thought('Überlegung 🤔')], undefined, usage(12)),
    said([text('Straße ')]),
    said([text('日本 🎉'), text('', { thoughtSignature: 'c2ln' })]),
    said([call('look', { q: 'é', n: [1, 2] }, { thoughtSignature: 'Zg==' }), call('look', {})]),
    record({ candidates: [{ content: {}, finishReason: 'STOP' }], ...usage(12, 30, 5) }),
  ].join('')
  const bare = `[${JSON.stringify({ candidates: [{ content: { parts: [text('ä')] }, finishReason: 'STOP' }] })}]`
  const ended = [stream, stream.replaceAll('\n', '\r\n'), stream.replaceAll('\n', '\r'), bare]
  const streams = [...ended, ` ${bare}`, `\r\n \t${bare}\n`, `\n \n${stream}`]

  test('gives the same events, at every single place', () => {
    for (const bytes of streams.map((each) => new TextEncoder().encode(each))) {
      const whole = parseWhole(parseStream(geminiTarget(), requestId), bytes)
      expect(noted(whole).at(-1)).toMatch(/^end /)
      for (let cut = 0; cut <= bytes.length; cut++) {
        expect(parseCut(parseStream(geminiTarget(), requestId), bytes, [cut])).toEqual(whole)
      }
    }
  })

  test('gives the same events, at any places', () => {
    fc.assert(
      fc.property(fc.constantFrom(...streams), fc.array(fc.nat(2000), { maxLength: 30 }), (each, places) => {
        const bytes = new TextEncoder().encode(each)
        const cuts = places.filter((place) => place < bytes.length).sort((a, b) => a - b)
        expect(parseCut(parseStream(geminiTarget(), requestId), bytes, cuts)).toEqual(
          parseWhole(parseStream(geminiTarget(), requestId), bytes),
        )
      }),
    )
  })
})

const encode = (body: unknown): Uint8Array =>
  new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
const whole = (body: unknown) => parseStream(geminiTarget(), requestId).whole(encode(body))
const events = (body: unknown): string[] => noted(whole(body))
const faultOf = (body: unknown) => {
  const last = whole(body).at(-1)
  if (last?.type !== 'reply-failure') throw new Error('no failure')
  return last.fault
}
const reply = (text: string, finishReason?: string) => ({
  candidates: [{ content: { parts: [{ text }] }, ...(finishReason === undefined ? {} : { finishReason }) }],
})

describe('pitfall 139: a whole reply as the stream that was asked for', () => {
  test('is one record, big numbers and line breaks included', () => {
    const body = `{
      "responseId": "r1",
      "candidates": [ { "finishReason": "STOP", "content": { "parts": [
        { "text": "so\\nbe it" },
        { "functionCall": { "name": "f", "args": {"n": 12345678901234567890} } } ] } } ]
    }\n`
    expect(events(body)).toEqual(steps`
      start r1 | text | +so\nbe it | . | call call_7_1 f | +{"n": 12345678901234567890} | . | end tool-calls STOP
    `)
  })

  test('a list of records is the stream without its form', () => {
    expect(events([reply('a'), reply('b', 'STOP')])).toEqual(steps`start | text | +a | +b | . | end end STOP`)
  })

  test('a blocked prompt is a reply', () => {
    expect(events({ promptFeedback: { blockReason: 'OTHER' } })).toEqual(
      steps`start | end refusal OTHER prompt blocked: OTHER`,
    )
  })

  test('an error is none, alone, in a list, and behind content', () => {
    const error = { error: { code: 500, message: 'Oh.', status: 'INTERNAL' } }
    for (const body of [error, [error], [reply('a'), error]]) {
      expect(faultOf(body)).toMatchObject({ status: 500, type: 'INTERNAL', message: 'Oh.' })
    }
  })

  test('nor is one that does not say how it ended, or is not all there', () => {
    expect(faultOf(reply('a')).message).toBe('a reply without an end')
    expect(faultOf({ usageMetadata: {} }).message).toBe('a reply without an end')
    for (const body of ['', '"hi"', '{"candidates":[']) {
      expect(faultOf(body).message).toBe('a reply that is not a complete JSON object')
    }
    for (const body of [[], [1], [reply('a')]]) expect(faultOf(body).message).toBe('a stream without an end')
  })
})
