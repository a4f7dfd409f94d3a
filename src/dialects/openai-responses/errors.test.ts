import { describe, expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { faultFromBody } from '../canonical/faults.ts'
import { readErrorObject, renderFailure } from './errors.ts'

const error = (code: string, message = 'Oops') => ({ code, message })

describe('an error inside a 200', () => {
  test.each([
    ['server_error', 500],
    ['rate_limit_exceeded', 429],
    ['insufficient_quota', 429],
    ['context_length_exceeded', 400],
    ['invalid_prompt', 400],
    ['bio_policy', 400],
    ['misalignment_policy_violation', 400],
    ['invalid_image', 400],
    ['failed_to_download_image', 400],
    ['image_content_policy_violation', 400],
    ['empty_image_file', 400],
    ['503', 503],
    ['something_new', undefined],
  ])('vector 70: with the code %s has the status %s', (code, status) => {
    expect(readErrorObject(error(code))).toMatchObject({ code, status, message: 'Oops' })
  })

  test('goes by its type where its code says nothing', () => {
    expect(readErrorObject({ type: 'invalid_request_error', code: null, message: 'x' }).status).toBe(400)
  })
})

test('a body is read in its own words, JSON or not', () => {
  const body = '{"error":{"message":"Bad","type":"invalid_request_error","param":"input","code":null}}'
  expect(faultFromBody(400, new Headers(), body)).toMatchObject({
    status: 400,
    type: 'invalid_request_error',
    code: undefined,
    message: 'Bad',
    param: 'input',
  })
  expect(faultFromBody(502, new Headers(), '<html>')).toMatchObject({ status: 502, message: '<html>' })
})

test('a spend limit is an error that Codex does not wait for', () => {
  const facts = { retryAfterMs: 60_000, shouldRetry: false, isSpendLimit: true, resetsAt: 1_794_700_000_500 }
  const failure = new Failure('LIMIT_EXCEEDED', 'Key "ci" has used it up.', facts)
  expect(JSON.parse(renderFailure(failure))).toEqual({
    error: {
      message: 'Key "ci" has used it up.',
      type: 'usage_limit_reached',
      param: null,
      code: 'LIMIT_EXCEEDED',
      resets_at: 1_794_700_001,
    },
  })
  const throttled = new Failure('LIMIT_EXCEEDED', 'Too many requests.', { retryAfterMs: 1000 })
  expect(JSON.parse(renderFailure(throttled)).error.type).toBe('rate_limit_error')
})
