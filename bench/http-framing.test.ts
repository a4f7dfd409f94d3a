import { expect, test } from 'bun:test'
import { MessageReader } from './http-framing.ts'

interface Message {
  head: string
  body: string
}

function messagesOf(chunks: string[]): Message[] {
  const messages: Message[] = []
  let current: Message = { head: '', body: '' }
  const reader = new MessageReader({
    head: (head) => {
      current.head = head
    },
    body: (bytes) => {
      current.body += Buffer.from(bytes).toString('latin1')
    },
    end: () => {
      messages.push(current)
      current = { head: '', body: '' }
    },
  })
  for (const chunk of chunks) reader.read(Buffer.from(chunk, 'latin1'))
  return messages
}

const LENGTH = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n'
const EMPTY = 'HTTP/1.1 204 No Content\r\nx: y\r\n\r\n'

const EXPECTED: Message[] = [
  { head: 'HTTP/1.1 200 OK\r\nContent-Length: 5', body: 'hello' },
  { head: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked', body: 'abc0123456789' },
  { head: 'HTTP/1.1 204 No Content\r\nx: y', body: '' },
  { head: 'HTTP/1.1 200 OK\r\nContent-Length: 5', body: 'hello' },
]

test('reads messages of every framing one after another from one piece', () => {
  expect(messagesOf([LENGTH + CHUNKED + EMPTY + LENGTH])).toEqual(EXPECTED)
})

test('reads the same messages cut at every byte position', () => {
  const all = LENGTH + CHUNKED + EMPTY + LENGTH
  for (let cut = 1; cut < all.length; cut++) {
    expect(messagesOf([all.slice(0, cut), all.slice(cut)])).toEqual(EXPECTED)
  }
})

test('reads the same messages byte by byte', () => {
  expect(messagesOf([...(LENGTH + CHUNKED + EMPTY + LENGTH)])).toEqual(EXPECTED)
})

test('passes trailers of a chunked message by', () => {
  const trailer = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nsum: 1\r\n\r\n'
  expect(messagesOf([trailer + LENGTH]).map((message) => message.body)).toEqual(['x', 'hello'])
})
