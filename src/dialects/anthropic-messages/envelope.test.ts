import { describe, expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { isVersionDate, limitHeaders, readCountEnvelope, readEnvelope } from './envelope.ts'

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
  expect(readEnvelope(body(fields), headers)).toMatchObject({ envelope: { offersTools, reasoning } })
})

test.each(['2023-06-01', '2024-02-29', '2000-02-29', '2099-12-31'])('%s is a date', (text) => {
  expect(isVersionDate(text)).toBe(true)
})

const none = ['2023-02-30', '2023-02-29', '1900-02-29', '2023-04-31', '2023-13-01', '2023-00-10', '2023-01-00']
test.each([...none, '0000-01-01', '2023-6-1', '2023-06-01 ', 'latest'])('%s is none', (text) => {
  expect(isVersionDate(text)).toBe(false)
})

// 2027-01-15T08:00:00Z
const now = 1_800_000_000_000

test('each limit has three headers; the reset is a time in whole seconds, rounded up', () => {
  expect(limitHeaders({}, now)).toEqual({})
  expect(limitHeaders({ requests: { limit: 60, remaining: 59, resetMs: 1 } }, now)).toEqual({
    'anthropic-ratelimit-requests-limit': '60',
    'anthropic-ratelimit-requests-remaining': '59',
    'anthropic-ratelimit-requests-reset': '2027-01-15T08:00:01Z',
  })
  expect(limitHeaders({ tokens: { limit: 150_000, remaining: 0, resetMs: 360_000 } }, now + 250)).toEqual({
    'anthropic-ratelimit-tokens-limit': '150000',
    'anthropic-ratelimit-tokens-remaining': '0',
    'anthropic-ratelimit-tokens-reset': '2027-01-15T08:06:01Z',
  })
  const whole = limitHeaders({ tokens: { limit: 1, remaining: 1, resetMs: 0 } }, now)
  expect(whole['anthropic-ratelimit-tokens-reset']).toBe('2027-01-15T08:00:00Z')
})
