import { expect, test } from 'bun:test'
import { environmentWithRoom } from './upstream-calls.ts'

test('a process without the variable gets it beside what it had; a number that somebody set holds', () => {
  const room = { BUN_CONFIG_MAX_HTTP_REQUESTS: '65000' }
  expect(environmentWithRoom({ PATH: '/bin', GONE: undefined })).toEqual({ PATH: '/bin', ...room })
  expect(environmentWithRoom({ BUN_CONFIG_MAX_HTTP_REQUESTS: '' })).toEqual(room)
  expect(environmentWithRoom({ BUN_CONFIG_MAX_HTTP_REQUESTS: '300' })).toBeUndefined()
})
