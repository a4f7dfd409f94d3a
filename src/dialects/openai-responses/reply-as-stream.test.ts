import { expect, test } from 'bun:test'
import { noted, parseWhole } from '../../../test/parts/reply-notation.ts'
import { functionCall, issuer, message, outputText, reasoning, responsesTarget } from '../../../test/parts/responses.ts'
import { parseStream } from './parse-stream.ts'
import { replyAsStream } from './reply-as-stream.ts'

const streamOf = (body: unknown) =>
  replyAsStream(new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)))

const read = (body: unknown) => {
  const stream = streamOf(body)
  if ('fault' in stream) throw new Error(stream.fault.message)
  return parseWhole(parseStream(responsesTarget()), stream)
}

const faultOf = (body: unknown) => {
  const stream = streamOf(body)
  return 'fault' in stream ? stream.fault : undefined
}

test('pitfall 139: a whole reply is read like a stream', () => {
  const output = [reasoning(0, ['Hm'], 'S'), message(1, outputText('a')), functionCall(2, 'f', '{"b":2}')]
  const usage = { input_tokens: 4, output_tokens: 9 }
  const events = read({ id: 'resp_9', object: 'response', status: 'completed', error: null, output, usage })
  expect(noted(events)).toEqual([
    'start resp_9',
    'thinking',
    '+Hm',
    `signed by ${issuer} {"items":[{"id":"rs_0","summary":["Hm"],"encrypted_content":"S"}]}`,
    '.',
    'text',
    '+a',
    '.',
    'call call_2 f',
    '+{"b":2}',
    '.',
    'end tool-calls completed',
  ])
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

test('what is no reply is a fault', () => {
  const error = { code: 'server_error', message: 'Oops' }
  expect(faultOf({ status: 'failed', error, output: [] })).toMatchObject({ message: 'Oops', status: 500 })
  expect(faultOf({ status: 'in_progress', output: [] })?.message).toBe('a reply without an end')
  expect(faultOf({ status: 'completed' })?.message).toBe('a reply without output')
  expect(faultOf('<html>')?.message).toContain('no JSON object')
})
