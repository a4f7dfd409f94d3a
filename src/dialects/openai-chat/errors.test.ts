import { expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { renderOpenaiFailure } from '../reply/openai.ts'
import { readErrorObject, readFault } from './errors.ts'

function messageFor(status: number | undefined): string {
  const refusal = { provider: 'acme', dialect: 'openai-chat', word: undefined, overflow: undefined, status }
  return JSON.parse(renderOpenaiFailure(new Failure('INVALID_REQUEST', 'no', { refusal }))).error.message
}

test('a refusal names the status that the provider sent', () => {
  expect(messageFor(422)).toBe('Provider acme refused the request (422): no')
  expect(messageFor(405)).toBe('Provider acme refused the request (405): no')
})

test('a refusal inside a 200 is reported as a 400', () => {
  expect(messageFor(undefined)).toBe('Provider acme refused the request (400): no')
})

test.each(['tool_use_failed', 'json_validate_failed'])('%s is retryable, in an error body and inside a 200', (code) => {
  const error = { message: "Failed. See 'failed_generation'.", type: 'invalid_request_error', code }
  expect(readFault(400, new Headers(), JSON.stringify({ error })).isInvalidOutput).toBe(true)
  expect(readErrorObject(error).isInvalidOutput).toBe(true)
  expect(readErrorObject({ ...error, code: 'invalid_prompt' }).isInvalidOutput).toBeUndefined()
})
