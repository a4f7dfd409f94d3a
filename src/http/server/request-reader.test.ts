import { describe, expect, spyOn, test } from 'bun:test'
import { HttpFault } from '../../wire/http-message.ts'
import { RequestReader, refusalOf } from './request-reader.ts'

// What is common to requests and responses: wire/http-message.test.ts. Against another reader and any bytes: test/fuzz.

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))

/** The status of the refusal, or the body of the request. */
function read(text: string): number | string {
  const reader = new RequestReader()
  try {
    const body = Buffer.from(reader.read(bytesOf(text))).toString('latin1')
    const refusal = reader.head && refusalOf(reader.head)
    return refusal?.status ?? (reader.isComplete ? body : 'incomplete')
  } catch (fault) {
    if (fault instanceof HttpFault) return fault.status
    throw fault
  }
}

const withLine = (line: string) => read(`GET / HTTP/1.1\r\n${line}\r\n\r\n`)

describe('the host', () => {
  test.each(['a', 'a.example:80', 'localhost:', '127.0.0.1', '[::1]:8080', '', 'a_b~c!', '%41'])(
    '"%s" is taken',
    (host) => expect(withLine(`host: ${host}`)).toBe(''),
  )

  test.each(['a/b', 'a b', 'a?', 'a#b', 'u@a', 'a:b', 'a:80:80', '[::1', '[::1]a', 'a\\b', '\xe9', 'http://a', 'a"'])(
    '"%s" is refused',
    (host) => expect(withLine(`host: ${host}`)).toBe(400),
  )

  test('is also checked where HTTP/1.0 does not ask for one', () => {
    expect(read('GET / HTTP/1.0\r\n\r\n')).toBe('')
    expect(read('GET / HTTP/1.0\r\nhost: a/b\r\n\r\n')).toBe(400)
  })
})

describe('an expectation', () => {
  test.each(['100-continue', '100-Continue'])('of %s is taken', (expected) =>
    expect(withLine(`host: a\r\nexpect: ${expected}`)).toBe(''),
  )

  test.each(['', 'x', '200-ok', '100-continue, x', '100-continue=1'])('of "%s" is refused', (expected) =>
    expect(withLine(`host: a\r\nexpect: ${expected}`)).toBe(417),
  )

  test('is ignored in HTTP/1.0', () => {
    expect(read('GET / HTTP/1.0\r\nexpect: x\r\n\r\n')).toBe('')
  })
})

test('200 headers are taken, and one more is refused', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, at) => `\r\nx-${at}: y`).join('')
  expect(withLine(`host: a${lines(199)}`)).toBe('')
  expect(withLine(`host: a${lines(200)}`)).toBe(431)
})

test('chunk extensions are taken up to 16 KiB in one body', () => {
  const chunks = (count: number) => `1;${'e'.repeat(1023)}\r\nx\r\n`.repeat(count)
  const post = (body: string) =>
    read(`POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${body}0\r\n\r\n`)
  expect(post(chunks(16))).toBe('x'.repeat(16))
  expect(post(chunks(17))).toBe(400)
})

test('a body begins with no extensions of the one before', () => {
  const reader = new RequestReader()
  const post = `POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n`
  for (let requests = 0; requests < 20; requests++) {
    reader.read(bytesOf(`${post}1;${'e'.repeat(4000)}\r\nx\r\n0\r\n\r\n`))
    expect(reader.isComplete).toBe(true)
    reader.reset()
  }
})

test('a head of many lines that comes byte by byte is not searched from its start each time', () => {
  const head = bytesOf(`GET / HTTP/1.1\r\n${`a: ${'b'.repeat(20)}\r\n`.repeat(150)}host: a\r\n\r\n`)
  const searching = spyOn(Buffer.prototype, 'indexOf')
  const reader = new RequestReader()
  for (let at = 0; at < head.length; at++) reader.read(head.slice(at, at + 1))
  const searches = searching.mock.calls.length
  searching.mockRestore()
  expect(reader.head?.get('a')).toStartWith('bb')
  // One for each byte, and another for each line feed.
  expect(searches).toBeGreaterThan(0)
  expect(searches).toBeLessThan(2 * head.length)
})
