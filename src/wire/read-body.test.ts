import { afterEach, describe, expect, test } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { BodyFault, readBody, readResponseBody, readResponseStart } from './read-body.ts'

type Outcome = number | BodyFault['reason']
const cleanups: (() => void)[] = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** A server that reads one body; `outcome` is the length it read or why it did not. */
function bodyServer(bytesMax: number): { open(head: string): Socket; outcome: Promise<Outcome> } {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Outcome>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const reading = Promise.resolve(readBody(request, bytesMax))
      const body = await reading.catch((error: unknown) => {
        reject(error)
        return new Uint8Array(0)
      })
      resolve(body instanceof BodyFault ? body.reason : body.length)
      return new Response('done')
    },
  })
  cleanups.push(() => void server.stop(true))
  const open = (head: string): Socket => {
    const socket = connect(server.port ?? 0, '127.0.0.1')
    socket.on('error', () => {})
    cleanups.push(() => void socket.destroy())
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n`)
    return socket
  }
  return { open, outcome }
}

const chunked = 'Transfer-Encoding: chunked'
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const lastChunk = '0\r\n\r\n'

describe('a request body', () => {
  const twice = 'Content-Length: 3\r\nContent-Length: 3'
  test.each<[name: string, bytesMax: number, head: string, sent: string, outcome: Outcome]>([
    ['of an announced length is read up to the limit', 5, 'Content-Length: 5', 'hello', 5],
    ['announced over the limit is refused before any of it is sent', 5, 'Content-Length: 6', '', 'too-large'],
    ['that goes on behind its announced length ends there', 100, 'Content-Length: 3', 'hello', 3],
    ['with its length announced twice is read with the running limit', 5, twice, 'abc', 3],
    ['with its length announced twice is refused over the limit', 2, twice, 'abc', 'too-large'],
    ['in chunks is read up to the limit', 8, chunked, `${chunk('abc')}${chunk('defgh')}${lastChunk}`, 8],
    ['in chunks is refused at the limit, without its end', 8, chunked, chunk('abc') + chunk('defghi'), 'too-large'],
    ['in thousands of single bytes is put together', 5000, chunked, `${chunk('x').repeat(5000)}${lastChunk}`, 5000],
    ['in chunks with broken framing is aborted', 100, chunked, `${chunk('abc')}zz\r\n`, 'aborted'],
    ['that is not there is empty', 5, 'Accept: */*', '', 0],
  ])('%s', async (_, bytesMax, head, sent, outcome) => {
    const server = bodyServer(bytesMax)
    server.open(head).write(sent)
    expect(await server.outcome).toBe(outcome)
  })

  test.each([
    ['before its announced length', 'Content-Length: 50', 'x'.repeat(20)],
    ['between its chunks', chunked, chunk('abc')],
  ])('that breaks off %s is aborted', async (_, head, sent) => {
    const server = bodyServer(100)
    const socket = server.open(head)
    socket.write(sent, () => socket.destroy())
    expect(await server.outcome).toBe('aborted')
  })

  test('that is large is read in pieces, and aborted where it breaks off', async () => {
    const mebibyte = 1024 * 1024
    for (const sent of [3 * mebibyte, 2 * mebibyte]) {
      const { open, outcome } = bodyServer(4 * mebibyte)
      const socket = open(`Content-Length: ${3 * mebibyte}`)
      socket.write(new Uint8Array(sent), () => sent < 3 * mebibyte && socket.end())
      expect(await outcome).toBe(sent < 3 * mebibyte ? 'aborted' : sent)
    }
  })

  test('keeps its bytes and their order over several chunks', async () => {
    const pieces = ['a', 'bc'.repeat(2000), 'é'].map((piece) => new TextEncoder().encode(piece))
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces.shift()
        if (piece) controller.enqueue(piece)
        else controller.close()
      },
    })
    const body = await readBody(new Request('http://x', { method: 'POST', body: stream }), 5000)
    expect(new TextDecoder().decode(body as Uint8Array)).toBe(`a${'bc'.repeat(2000)}é`)
  })

  test('is measured if the request was made in this process, whatever its length header says', async () => {
    const request = new Request('http://x', { method: 'POST', body: '0123456789', headers: { 'content-length': '3' } })
    expect(await readBody(request, 5)).toEqual(new BodyFault('too-large'))
  })

  test('is read up to the limit if its announced length is not a number', async () => {
    const silent = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new Uint8Array(6)) })
    const headers = { 'content-length': '3, 3' }
    const request = new Request('http://x', { method: 'POST', body: silent, headers })
    expect(await readBody(request, 5)).toEqual(new BodyFault('too-large'))
  })

  test('that the server gives up fails for the reason that it gave', async () => {
    const reason = new BodyFault('too-slow')
    const failing = new ReadableStream({ pull: () => Promise.reject(reason) })
    expect(await readBody(new Request('http://x', { method: 'POST', body: failing }), 5)).toBe(reason)
  })

  test('is aborted if its source fails', async () => {
    const failing = new ReadableStream({ pull: () => Promise.reject(new Error('gone')) })
    const request = new Request('http://x', { method: 'POST', body: failing })
    expect(await readBody(request, 5)).toEqual(new BodyFault('aborted'))
  })
})

/** A server that answers the first bytes of any connection with these, and then closes or waits. */
async function rawAnswer(answer: string, then: 'close' | 'wait'): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => (then === 'close' ? socket.end(answer) : socket.write(answer)))
    cleanups.push(() => void socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => void server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}/`
}

function packedAnswer(packed: Uint8Array<ArrayBuffer>): URL {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(packed, { headers: { 'content-encoding': 'gzip' } }),
  })
  cleanups.push(() => void server.stop(true))
  return server.url
}

describe('an answer from a provider', () => {
  test.each<[name: string, head: string, body: string, expected: string]>([
    ['announced is read up to the limit', 'Content-Length: 5', 'hello', 'hello'],
    ['in chunks is read up to the limit', chunked, `${chunk('hel')}${chunk('lo')}${lastChunk}`, 'hello'],
    ['announced over the limit is refused before it arrives', 'Content-Length: 6', '', 'too-large'],
    ['in chunks is refused at the limit, without waiting for its end', chunked, chunk('hello!'), 'too-large'],
  ])('%s', async (_, head, body, expected) => {
    const url = await rawAnswer(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`, 'wait')
    const read = await readResponseBody(await fetch(url), 5)
    expect(typeof read === 'string' ? read : new TextDecoder().decode(read)).toBe(expected)
  })

  test('can be read for its start alone', async () => {
    const endless = await rawAnswer(
      `HTTP/1.1 400 Bad Request\r\n${chunked}\r\n\r\n${chunk('hel')}${chunk('lo!')}`,
      'wait',
    )
    expect(await readResponseStart(await fetch(endless), 5)).toEqual(new TextEncoder().encode('hello'))
    const short = await rawAnswer('HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno', 'wait')
    expect(await readResponseStart(await fetch(short), 5)).toEqual(new TextEncoder().encode('no'))
  })

  test('is as much as has arrived if the rest never comes', async () => {
    const cut = await rawAnswer('HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\nno', 'wait')
    const controller = new AbortController()
    const response = await fetch(cut, { signal: controller.signal })
    const reading = readResponseStart(response, 64)
    await Bun.sleep(30)
    controller.abort()
    expect(await reading).toEqual(new TextEncoder().encode('no'))
  })

  test('tells that it comes, from the first byte that is not blank', async () => {
    const pieces = [' \n', ' ', ' {', '}', ' ']
    const seen: number[] = []
    let at = 0
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const piece = pieces[at++]
        if (piece === undefined) controller.close()
        else controller.enqueue(new TextEncoder().encode(piece))
      },
    })
    const read = await readResponseBody(new Response(body), 64, () => void seen.push(at))
    expect(new TextDecoder().decode(read as Uint8Array)).toBe(pieces.join(''))
    expect(seen).toHaveLength(3)
  })

  test('reports progress once if its length is known', async () => {
    const url = await rawAnswer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}', 'wait')
    let progress = 0
    await readResponseBody(await fetch(url), 64, () => void progress++)
    expect(progress).toBe(1)
  })

  test('that is over the limit is cancelled', async () => {
    let cancelled = 0
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(3)),
        cancel: () => void cancelled++,
      })
    expect(await readResponseBody(new Response(endless()), 5)).toBe('too-large')
    expect(cancelled).toBe(1)
    expect(await readResponseBody(new Response(endless(), { headers: { 'content-length': '6' } }), 5)).toBe('too-large')
    expect(cancelled).toBe(2)
  })

  test.each([
    ['larger', 100_000, 50_000, 'too-large'],
    ['larger', 100_000, 100_000, 100_000],
    ['smaller', 3, 5, 3],
  ] as const)(
    'that is %s unpacked than packed is measured unpacked: %d bytes, at most %d',
    async (_, bytes, bytesMax, expected) => {
      const packed = Bun.gzipSync(new Uint8Array(bytes).fill(1))
      expect(packed.length).toBeLessThan(bytes === 3 ? 50 : 1000)
      expect(packed.length).toBeGreaterThan(5)
      const read = await readResponseBody(await fetch(packedAnswer(packed)), bytesMax)
      expect(read).toEqual(expected === 'too-large' ? expected : new Uint8Array(bytes).fill(1))
    },
  )

  test.each([
    ['announced', 'Content-Length: 50', 'hello'],
    ['in chunks', chunked, chunk('hello')],
  ])('%s that breaks off rejects', async (_, head, body) => {
    const url = await rawAnswer(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`, 'close')
    await expect(readResponseBody(await fetch(url), 100)).rejects.toThrow()
  })

  test('without a body is empty', async () => {
    expect(await readResponseBody(new Response(null, { status: 204 }), 5)).toEqual(new Uint8Array(0))
  })
})
