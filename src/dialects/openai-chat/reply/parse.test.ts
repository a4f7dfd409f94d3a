import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { targetWith } from '../../../../test/parts/chat-requests.ts'
import { calls, chunk, done, record, signed, target } from '../../../../test/parts/chat-stream.ts'
import { noted, parseCut, parseWhole, requestId, steps } from '../../../../test/parts/reply-notation.ts'
import { tokenCounts } from '../../../../test/parts/token-counts.ts'
import type { ReplyEvent } from '../../canonical/reply.ts'
import { parseStream } from './parse.ts'

const read = (...records: string[]): string[] => noted(parseWhole(parseStream(target, requestId), records.join('')))
const eventsOf = (...records: string[]): ReplyEvent[] => parseWhole(parseStream(target, requestId), records.join(''))

describe('text and endings', () => {
  test('become one block, and the end is emitted after the terminal marker', () => {
    const parser = parseStream(target, requestId)
    const push = (text: string): string[] => noted(parser.push(new TextEncoder().encode(text)))
    expect(push(chunk({ role: 'assistant', content: '' }))).toEqual(['start c1'])
    expect(push(chunk({ content: 'Hel' }))).toEqual(['text', '+Hel'])
    expect(push(chunk({ content: 'lo' }))).toEqual(['+lo'])
    expect(push(chunk({}, 'stop'))).toEqual([])
    expect(push(done)).toEqual(['.', 'end end stop'])
    expect(push(chunk({ content: 'late' }))).toEqual([])
    expect(noted(parser.end())).toEqual([])
  })

  const endings: [name: string, records: string[], end: string][] = [
    ['length', [chunk({ content: 'a' }, 'length')], 'end length length'],
    ['a filter', [chunk({ content: 'a' }, 'content_filter')], 'end refusal content_filter'],
    ['an unknown word', [chunk({ content: 'a' }, 'eos_token')], 'end end eos_token'],
    [
      'a matched stop sequence, as vLLM names it',
      [record({ id: 'c1', choices: [{ delta: { content: 'a' }, finish_reason: 'stop', stop_reason: 'END' }] })],
      'end stop-sequence stop END',
    ],
    [
      'a matched token id, which is no sequence',
      [record({ id: 'c1', choices: [{ delta: { content: 'a' }, finish_reason: 'stop', stop_reason: 128009 }] })],
      'end end stop',
    ],
  ]
  test.each(endings)('stop with %s', (_, records, end) => {
    expect(read(...records, done)).toEqual(steps`start c1 | text | +a | . | ${end}`)
  })

  test('may have no content at all', () => {
    expect(read(chunk({ role: 'assistant', content: '' }), chunk({}, 'stop'), done)).toEqual(
      steps`start c1 | end end stop`,
    )
  })

  test('keep a refusal apart from text, and its words as the explanation', () => {
    expect(read(chunk({ refusal: 'I can' }), chunk({ refusal: 'not.' }), chunk({}, 'stop'), done)).toEqual(steps`
      start c1 | refusal | +I can | +not. | . | end refusal stop I cannot.
    `)
  })

  test('pitfall 121: a clean [DONE] without finish_reason ends the reply once', () => {
    expect(read(chunk({ content: 'a' }), done, done)).toEqual(steps`start c1 | text | +a | . | end end -`)
    const call = { index: 0, id: 'x', function: { name: 'f', arguments: '{}' } }
    expect(read(calls(call), done).at(-1)).toBe('end tool-calls -')
  })

  test('pitfall 122: of several finish reasons the last counts, wherever they stand', () => {
    const said = [
      chunk({ reasoning: 'r' }, 'stop'),
      chunk({ content: 'a' }, 'stop'),
      chunk({}, 'length'),
      chunk({}, null),
      done,
    ]
    expect(read(...said)).toEqual(steps`start c1 | thinking | +r | ${signed} | . | text | +a | . | end length length`)
  })

  test('reasoning_details at the end that repeat the streamed reasoning add nothing, as from another Tollgate', () => {
    const details = [{ type: 'reasoning.text', text: 'first this', index: 0 }]
    const said = [
      chunk({ reasoning_content: 'first ' }),
      chunk({ reasoning_content: 'this' }),
      chunk({ content: 'a' }),
      chunk({ reasoning_details: details }),
      chunk({}, 'stop'),
      done,
    ]
    const thinking = ['thinking', '+first ', '+this', signed, '.']
    expect(read(...said)).toEqual(['start c1', ...thinking, 'text', '+a', '.', 'end end stop'])
  })

  test('a close behind a finish_reason is an end, for hosts without [DONE]', () => {
    expect(read(chunk({ content: 'a' }, 'stop'))).toEqual(steps`start c1 | text | +a | . | end end stop`)
  })
})

describe('a reply that fails', () => {
  test('pitfall 141: a close without finish_reason or [DONE] is a failure, never an end', () => {
    expect(read(chunk({ content: 'half' }))).toEqual(steps`start c1 | text | +half | fail a stream without an end`)
    expect(read('')).toEqual(['fail a stream without an end'])
  })

  test('a [DONE] without any reply is a failure', () => {
    expect(read(record({ choices: [], prompt_filter_results: [] }), done)).toEqual(['fail a stream without a reply'])
  })

  test('pitfall 142: an error object comes before everything else in its chunk', () => {
    const error = { message: 'overloaded', code: 502, type: 'server_error' }
    const failed = eventsOf(chunk({ content: 'a' }), chunk({ content: 'b' }, 'stop', { error }), done)
    expect(noted(failed)).toEqual(steps`start c1 | text | +a | fail overloaded`)
    expect(failed.at(-1)).toMatchObject({ fault: { code: '502', type: 'server_error' } })
  })

  const disguises: [name: string, text: string, message: string][] = [
    ['with empty choices', record({ choices: [], error: { message: 'no' } }), 'no'],
    ['as a string', record({ error: 'plain' }), 'plain'],
    ['in the choice', record({ choices: [{ delta: {}, error: { message: 'inner' } }] }), 'inner'],
    ['as an event of that name', 'event: error\ndata: {"message":"named"}\n\n', 'named'],
    ['as an object of that name', record({ object: 'error', message: 'typed' }), 'typed'],
  ]
  test.each(disguises)('vector 85: an error %s is a failure before anything was said', (_, text, message) => {
    expect(read(text, done)).toEqual([`fail ${message}`])
  })

  test('finish_reason "error" is a failure', () => {
    expect(read(chunk({ content: 'a' }), chunk({}, 'error'), done)).toEqual(steps`
      start c1 | text | +a | fail the reply ended with an error
    `)
  })

  test('a null error is none', () => {
    expect(read(chunk({ content: 'a' }, 'stop', { error: null }), done).at(-1)).toBe('end end stop')
  })

  test('pitfall 149: one malformed record is left out and counted; the rest counts', () => {
    const parser = parseStream(target, requestId)
    const events = parseWhole(
      parser,
      `${chunk({ content: 'a' })}data: {"id": broken\n\ndata: [1]\n\n${chunk({ content: 'b' }, 'stop')}${done}`,
    )
    expect(noted(events)).toEqual(steps`start c1 | text | +a | +b | . | end end stop`)
    expect(parser.skipped).toBe(2)
  })
})

describe('usage', () => {
  const usage = { prompt_tokens: 100, completion_tokens: 5 }
  const ended = (...records: string[]): unknown => eventsOf(...records).findLast(({ type }) => type === 'reply-end')
  const found = { usage: { inputTokens: 100, outputTokens: 5, source: 'reported' } }

  test('pitfall 112: is read from a chunk without choices behind the finish', () => {
    expect(ended(chunk({ content: 'a' }, 'stop'), record({ id: 'c1', choices: [], usage }), done)).toMatchObject(found)
  })

  test('pitfall 104: on any chunk counts, the last that is not null', () => {
    const early = chunk({ content: 'a' }, null, { usage: { prompt_tokens: 100, completion_tokens: 1 } })
    expect(ended(early, chunk({}, 'stop', { usage }), chunk({}, null, { usage: null }), done)).toMatchObject(found)
  })

  test('is found in the places some hosts have for it', () => {
    expect(ended(record({ choices: [{ delta: { content: 'a' }, finish_reason: 'stop', usage }] }), done)).toMatchObject(
      found,
    )
    expect(ended(chunk({ content: 'a' }, 'stop', { x_groq: { usage } }), done)).toMatchObject(found)
  })

  test('that never came is undefined, not zero', () => {
    expect(ended(chunk({ content: 'a' }, 'stop'), done)).toMatchObject({ usage: undefined })
  })

  test('pitfall 111: tells cache writes apart from other input', () => {
    const written = { ...usage, prompt_tokens_details: { cache_write_tokens: 40 } }
    expect(ended(chunk({ content: 'a' }, 'stop', { usage: written }), done)).toMatchObject({
      usage: { inputTokens: 60, cacheWriteTokens: 40 },
    })
  })

  test('pitfall 102: tells which counts of the cache were reported', () => {
    const reported = (details: object | undefined) =>
      ended(chunk({ content: 'a' }, 'stop', { usage: { ...usage, prompt_tokens_details: details } }), done)
    expect(reported(undefined)).toMatchObject({ usage: { cacheReadTokens: 0, cacheReported: 'none' } })
    expect(reported({ cached_tokens: 0 })).toMatchObject({ usage: { cacheReadTokens: 0, cacheReported: 'reads' } })
    expect(reported({ cached_tokens: 0, cache_write_tokens: 0 })).not.toHaveProperty('usage.cacheReported')
  })

  test('vector 61: has disjoint buckets, none below zero', () => {
    const details = { cached_tokens: 70, cache_write_tokens: 20 }
    const counted = {
      prompt_tokens: 100,
      completion_tokens: 5,
      prompt_tokens_details: details,
      completion_tokens_details: { reasoning_tokens: 3 },
    }
    const buckets = {
      ...tokenCounts(10, 5, 70, 20),
      reasoningTokens: 3,
      source: 'reported',
    }
    expect(ended(chunk({ content: 'a' }, 'stop', { usage: counted }), done)).toMatchObject({ usage: buckets })
    const over = { ...usage, prompt_tokens_details: { cached_tokens: 300 } }
    expect(ended(chunk({ content: 'a' }, 'stop', { usage: over }), done)).toMatchObject({
      usage: { inputTokens: 0, cacheReadTokens: 100 },
    })
  })
})

describe('framing', () => {
  const fixtures = ['azure', 'crlf', 'deepseek', 'odd-json', 'openai-text', 'openai-tools', 'openrouter']
  const bytesOf = (name: string): Uint8Array =>
    readFileSync(`${import.meta.dir}/../../../../test/fixtures/chat/${name}.sse`)

  test.each(fixtures)('vector 87: %s reads the same cut at every byte', (name) => {
    const bytes = bytesOf(name)
    const whole = parseWhole(parseStream(target, requestId), bytes)
    expect(whole.at(-1)?.type).toBe('reply-end')
    for (let cut = 1; cut < bytes.length; cut++)
      expect(parseCut(parseStream(target, requestId), bytes, [cut])).toEqual(whole)
  })

  test('pitfall 165: reads the same in any cuts, byte by byte included', () => {
    const bytes = bytesOf('openrouter')
    const whole = parseWhole(parseStream(target, requestId), bytes)
    expect(noted(whole)).toEqual(steps`
      start gen-1794701100-Zx | thinking | +We | + need | + a rhyme | ${signed} | . | text | +月 | +明かり | + 🌙 | .
      end end stop
    `)
    expect(
      parseCut(
        parseStream(target, requestId),
        bytes,
        Array.from({ length: bytes.length }, (_, at) => at),
      ),
    ).toEqual(whole)
    const cuts = fc.uniqueArray(fc.nat(bytes.length), { maxLength: 20 }).map((list) => list.sort((a, b) => a - b))
    fc.assert(
      fc.property(cuts, (at) => expect(parseCut(parseStream(target, requestId), bytes, at)).toEqual(whole)),
      { numRuns: 50 },
    )
  })

  test('pitfall 133: takes CRLF, no space, several data lines and a last record without its blank line', () => {
    const json = JSON.stringify({ id: 'c1', choices: [{ delta: { content: 'é' }, finish_reason: 'stop' }] }, null, 1)
    const lines = json.split('\n').map((line) => `data:${line}\r\n`)
    expect(read(`${lines.join('')}\r\n`, 'data:[DONE]')).toEqual(steps`start c1 | text | +é | . | end end stop`)
  })

  test('pitfall 134: comments are neither data nor an end', () => {
    expect(read(': PROCESSING\n\n', ':\n\n', chunk({ content: 'a' }), ': x\n\n', chunk({}, 'stop'), done)).toEqual(
      steps`start c1 | text | +a | . | end end stop`,
    )
  })

  test('pitfall 140: a last record that repeats the whole message adds nothing', () => {
    const whole = record({ id: 'c1', choices: [{ index: 0, message: { content: 'ab' }, finish_reason: 'stop' }] })
    expect(read(chunk({ content: 'ab' }), whole, done)).toEqual(steps`start c1 | text | +ab | . | end end stop`)
    expect(read(whole, done)).toEqual(steps`start c1 | text | +ab | . | end end stop`)
  })
})

const encode = (reply: object | string): Uint8Array =>
  new TextEncoder().encode(typeof reply === 'string' ? reply : JSON.stringify(reply))
const events = (reply: object | string): string[] => noted(parseStream(targetWith(), requestId).whole(encode(reply)))
const choice = (message: object, finish: unknown = 'stop', index = 0) => ({ index, message, finish_reason: finish })

describe('pitfall 139: a whole reply', () => {
  test('is read with its usage', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
    const reply = { id: 'c1', object: 'chat.completion', choices: [choice({ content: 'hi', refusal: null })], usage }
    expect(parseStream(targetWith(), requestId).whole(encode(reply)).at(-1)).toMatchObject({
      type: 'reply-end',
      usage: { inputTokens: 3, outputTokens: 2 },
    })
  })

  test('reasoning, text and numbered calls are read back as they were, big numbers included', () => {
    const reply = `{
      "id": "c1",
      "choices": [ { "index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "reasoning_content": "hm", "content": "so\\nbe it", "tool_calls": [
          { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{\\"n\\": 12345678901234567890}" } },
          { "id": "b", "type": "function", "function": { "name": "g", "arguments": {
              "n": 12345678901234567890, "x": 1.0 } } } ] } } ]
    }`
    expect(events(reply)).toEqual([
      'start c1',
      'thinking',
      '+hm',
      'signed by acme/openai-chat',
      '.',
      'text',
      '+so\nbe it',
      '.',
      'call a f',
      '+{"n": 12345678901234567890}',
      '.',
      'call b g',
      expect.stringMatching(/^\+\{\s+"n": 12345678901234567890, "x": 1\.0 \}$/),
      '.',
      'end tool-calls tool_calls',
    ])
  })

  test('one that does not say how it ended has ended as it looks', () => {
    for (const finish of [null, undefined, '']) {
      expect(events({ choices: [choice({ content: 'a' }, finish)] }).at(-1)).toStartWith('end end ')
    }
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
    expect(events({ choices: [choice({ tool_calls: [call] }, null)] }).at(-1)).toStartWith('end tool-calls ')
  })
})

describe('fails on a body that is no reply', () => {
  const noJson = 'a reply that is not a complete JSON object'
  test.each<[unknown, string]>([
    ...['', 'null', '[]', '{', '<html>'].map((body): [unknown, string] => [body, noJson]),
    [{}, 'a reply without choices'],
    [{ choices: [] }, 'a reply without choices'],
    [{ choices: [choice({ content: 'a' }, 'error')] }, 'a reply without an end'],
    [{ choices: [{ finish_reason: 'stop' }] }, 'a reply without an end'],
    [{ error: { message: 'slow down', code: 'rate_limit_exceeded' } }, 'slow down'],
  ])('%j', (body, message) => {
    const fault = { message, ...(message === 'slow down' && { status: 429 }) }
    expect(parseStream(targetWith(), requestId).whole(encode(body as object))).toMatchObject([
      { type: 'reply-failure', fault },
    ])
  })
})
