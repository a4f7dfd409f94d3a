import { describe, expect, test } from 'bun:test'
import { readErrorObject, readFault } from './errors.ts'

const none = new Headers()
const status = (code: number, word: string, message: string, details: object[] = []) =>
  JSON.stringify({ error: { code, message, status: word, details } })
const retryInfo = (retryDelay: string) => ({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay })
const errorInfo = (reason: string) => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason })

describe('an error response', () => {
  test('vector 93: RetryInfo says how long to wait', () => {
    const fault = readFault(429, none, status(429, 'RESOURCE_EXHAUSTED', 'Slow down.', [retryInfo('34s')]))
    expect(fault).toMatchObject({
      status: 429,
      type: 'RESOURCE_EXHAUSTED',
      code: 'RESOURCE_EXHAUSTED',
      message: 'Slow down.',
      retryAfterMs: 34_000,
    })
  })

  test.each([
    ['34.0748s', 34_075],
    ['0s', 0],
    ['soon', undefined],
    ['-3s', undefined],
    // Over a day: as with a header, a day.
    ['86401s', 86_400_000],
  ])('a delay of %s is %p ms', (delay, expected) => {
    const body = status(429, 'RESOURCE_EXHAUSTED', '', [retryInfo(delay)])
    expect(readFault(429, none, body).retryAfterMs).toBe(expected)
  })

  test('a header that says so goes first', () => {
    const body = status(429, 'RESOURCE_EXHAUSTED', '', [retryInfo('34s')])
    expect(readFault(429, new Headers({ 'retry-after': '2' }), body).retryAfterMs).toBe(2000)
  })

  test('may stand in a list', () => {
    const fault = readFault(503, none, `[${status(503, 'UNAVAILABLE', 'Overloaded.')}]`)
    expect(fault).toMatchObject({ status: 503, type: 'UNAVAILABLE', message: 'Overloaded.' })
  })

  test('the reason is the finer word', () => {
    const body = status(403, 'PERMISSION_DENIED', 'Off.', [errorInfo('SERVICE_DISABLED')])
    expect(readFault(403, none, body)).toMatchObject({ type: 'PERMISSION_DENIED', code: 'SERVICE_DISABLED' })
  })

  test.each([
    ['a bad key', status(400, 'INVALID_ARGUMENT', 'API key not valid.', [errorInfo('API_KEY_INVALID')]), 401],
    ['a region', status(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'), 403],
    ['a request', status(400, 'INVALID_ARGUMENT', 'Unknown name "foo".'), 400],
    ['a file not ready', status(400, 'FAILED_PRECONDITION', 'The File is not in an ACTIVE state.'), 400],
  ])('a 400 about %s is classified as what it is', (_, body, expected) => {
    expect(readFault(400, none, body).status).toBe(expected)
  })

  test('keeps an error body that is not JSON as text', () => {
    expect(readFault(502, none, '<html>Bad Gateway</html>')).toMatchObject({
      status: 502,
      type: undefined,
      code: undefined,
      message: '<html>Bad Gateway</html>',
    })
  })
})

describe('an error inside a 200', () => {
  test.each([
    [{ code: 503, status: 'UNAVAILABLE', message: 'm' }, 503],
    [{ status: 'RESOURCE_EXHAUSTED', message: 'm' }, 429],
    [{ status: 'DEADLINE_EXCEEDED' }, 504],
    [{ code: 8, status: 'RESOURCE_EXHAUSTED' }, 429],
    [{ message: 'm' }, undefined],
  ])('%j has the status %p', (error, expected) => {
    expect(readErrorObject(error).status).toBe(expected)
  })
})
