import { expect, test } from 'bun:test'
import { Failure } from '../../kernel/failure.ts'
import { renderFailure } from './failure.ts'

function told(status: number | undefined): string {
  const refusal = { provider: 'acme', dialect: 'openai-chat', word: undefined, overflow: undefined, status }
  return JSON.parse(renderFailure(new Failure('INVALID_REQUEST', 'no', { refusal }))).error.message
}

test('a refusal is told with the status the provider gave it', () => {
  expect(told(422)).toBe('Provider acme refused the request (422): no')
  expect(told(405)).toBe('Provider acme refused the request (405): no')
})

test('one inside a 200 is what it would have been', () => {
  expect(told(undefined)).toBe('Provider acme refused the request (400): no')
})
