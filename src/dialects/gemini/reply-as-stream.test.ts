import { describe, expect, test } from 'bun:test'
import { geminiTarget } from '../../../test/parts/gemini.ts'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
import { parseStream } from './parse-stream.ts'
import { replyAsStream } from './reply-as-stream.ts'

const encode = (body: unknown): Uint8Array =>
  new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
const events = (body: unknown): string[] => {
  const stream = replyAsStream(encode(body))
  if ('fault' in stream) throw new Error(stream.fault.message)
  return noted(parseWhole(parseStream(geminiTarget()), stream))
}
const faultOf = (body: unknown) => {
  const result = replyAsStream(encode(body))
  if (!('fault' in result)) throw new Error('was taken')
  return result.fault
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
    expect(events(body)).toEqual([
      'start r1',
      'text',
      '+so\nbe it',
      '.',
      'call call_r1_1 f',
      '+{"n": 12345678901234567890}',
      '.',
      'end tool-calls STOP',
    ])
  })

  test('a list of records is the stream without its form', () => {
    expect(events([reply('a'), reply('b', 'STOP')])).toEqual(['start', 'text', '+a', '+b', '.', 'end end STOP'])
  })

  test('a blocked prompt is a reply', () => {
    expect(events({ promptFeedback: { blockReason: 'OTHER' } })).toEqual([
      'start',
      'end refusal OTHER prompt blocked: OTHER',
    ])
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
    for (const body of ['', '[]', '"hi"', '{"candidates":[', [1]]) {
      expect(faultOf(body).message).toBe('a reply that is no JSON object, or not all of it')
    }
  })
})
