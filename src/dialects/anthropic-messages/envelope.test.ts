import { describe, expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { readCountEnvelope, readEnvelope } from './envelope.ts'

const headers = new Headers({ 'anthropic-version': '2026-10-21' })
const body = (fields: object): Uint8Array<ArrayBuffer> =>
  new TextEncoder().encode(
    JSON.stringify({ model: 'a/b', max_tokens: 9, messages: [{ role: 'user', content: 'x' }], ...fields }),
  )

describe.each([readEnvelope, readCountEnvelope])('%p', (read) => {
  test('refuses a thread with the code its client knows, whatever the route', () => {
    for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_of_somebody_else' }]) {
      const refused = read(body({ thread }), headers)
      if (!(refused instanceof Failure)) throw new Error('was not refused')
      expect([refused.code, refused.facts.param]).toEqual(['INVALID_REQUEST', 'thread'])
      expect(refused.facts.details).toEqual({ error_code: 'thread_unsupported_request' })
    }
  })

  test('takes a thread that is null for none', () => {
    expect(read(body({ thread: null }), headers)).not.toBeInstanceOf(Failure)
  })
})

test.each([
  [{}, false, undefined],
  [{ tools: [] }, false, undefined],
  [{ tools: [{ name: 'f' }], thinking: { type: 'disabled' } }, true, 'off'],
  [{ thinking: { type: 'adaptive' } }, false, 'on'],
  [{ output_config: { effort: 'low' } }, false, 'on'],
  [{ output_config: { format: {} } }, false, undefined],
  [{ thinking: 'yes' }, false, undefined],
] as const)('%j says whether tools and reasoning are wanted', (fields, offersTools, reasoning) => {
  expect(readEnvelope(body(fields), headers)).toMatchObject({ offersTools, reasoning })
})
