import { afterEach, describe, expect, test } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { BodyFault, type BodyRoom, createBodyRoom, readBody, readResponseBody, readResponseStart } from './read-body.ts'

type Outcome = number | BodyFault['reason']
const cleanups: (() => void)[] = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** A server that reads one body; `outcome` is the length it read or why it did not. */
function bodyServer(bytesMax: number, room?: BodyRoom): { open(head: string): Socket; outcome: Promise<Outcome> } {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Outcome>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = await readBody(request, { bytesMax, ...(room && { room }) }).catch((error: unknown) => {
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
  test('of an announced length is read up to the limit', async () => {
    const server = bodyServer(5)
    server.open('Content-Length: 5').write('hello')
    expect(await server.outcome).toBe(5)
  })

  test('announced over the limit is refused before any of it is sent', async () => {
    const server = bodyServer(5)
    server.open('Content-Length: 6')
    expect(await server.outcome).toBe('too-large')
  })

  test('that goes on behind its announced length ends there', async () => {
    const server = bodyServer(100)
    server.open('Content-Length: 3').write('hello')
    expect(await server.outcome).toBe(3)
  })

  test('with its length announced twice is read with the running limit', async () => {
    const fits = bodyServer(5)
    fits.open('Content-Length: 3\r\nContent-Length: 3').write('abc')
    expect(await fits.outcome).toBe(3)
    const over = bodyServer(2)
    over.open('Content-Length: 3\r\nContent-Length: 3').write('abc')
    expect(await over.outcome).toBe('too-large')
  })

  test('that breaks off before its announced length is aborted', async () => {
    const server = bodyServer(100)
    const socket = server.open('Content-Length: 50')
    socket.write('x'.repeat(20), () => socket.destroy())
    expect(await server.outcome).toBe('aborted')
  })

  test('that is large is read in pieces, and aborted where it breaks off', async () => {
    const mebibyte = 1024 * 1024
    for (const sent of [3 * mebibyte, 2 * mebibyte]) {
      const { open, outcome } = bodyServer(4 * mebibyte, createBodyRoom(4 * mebibyte))
      const socket = open(`Content-Length: ${3 * mebibyte}`)
      socket.write(new Uint8Array(sent), () => sent < 3 * mebibyte && socket.end())
      expect(await outcome).toBe(sent < 3 * mebibyte ? 'aborted' : sent)
    }
  })

  test('in chunks is read up to the limit', async () => {
    const server = bodyServer(8)
    server.open(chunked).write(`${chunk('abc')}${chunk('defgh')}${lastChunk}`)
    expect(await server.outcome).toBe(8)
  })

  test('in chunks is refused at the limit, without waiting for its end', async () => {
    const server = bodyServer(8)
    server.open(chunked).write(`${chunk('abc')}${chunk('defghi')}`)
    expect(await server.outcome).toBe('too-large')
  })

  test('in thousands of single bytes is put together', async () => {
    const server = bodyServer(5000)
    server.open(chunked).write(`${chunk('x').repeat(5000)}${lastChunk}`)
    expect(await server.outcome).toBe(5000)
  })

  test('in chunks that breaks off is aborted', async () => {
    const server = bodyServer(100)
    const socket = server.open(chunked)
    socket.write(chunk('abc'), () => socket.destroy())
    expect(await server.outcome).toBe('aborted')
  })

  test('in chunks with broken framing is aborted', async () => {
    const server = bodyServer(100)
    server.open(chunked).write(`${chunk('abc')}zz\r\n`)
    expect(await server.outcome).toBe('aborted')
  })

  test('that is not there is empty', async () => {
    const server = bodyServer(5)
    server.open('Accept: */*')
    expect(await server.outcome).toBe(0)
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
    const body = await readBody(new Request('http://x', { method: 'POST', body: stream }), { bytesMax: 5000 })
    expect(new TextDecoder().decode(body as Uint8Array)).toBe(`a${'bc'.repeat(2000)}é`)
  })

  test('of a request made in this process is measured, whatever it announces', async () => {
    const request = new Request('http://x', { method: 'POST', body: '0123456789', headers: { 'content-length': '3' } })
    expect(await readBody(request, { bytesMax: 5 })).toEqual(new BodyFault('too-large'))
  })

  test('whose announced length is no number is not waited for beyond the limit', async () => {
    const silent = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new Uint8Array(6)) })
    const headers = { 'content-length': '3, 3' }
    const request = new Request('http://x', { method: 'POST', body: silent, headers })
    expect(await readBody(request, { bytesMax: 5 })).toEqual(new BodyFault('too-large'))
  })

  test('whose source fails is aborted', async () => {
    const failing = new ReadableStream({ pull: () => Promise.reject(new Error('gone')) })
    const request = new Request('http://x', { method: 'POST', body: failing })
    expect(await readBody(request, { bytesMax: 5 })).toEqual(new BodyFault('aborted'))
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
  test('is read up to the limit, announced or in chunks', async () => {
    const announced = await rawAnswer('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'wait')
    expect(await readResponseBody(await fetch(announced), 5)).toEqual(new TextEncoder().encode('hello'))
    const streamed = await rawAnswer(
      `HTTP/1.1 200 OK\r\n${chunked}\r\n\r\n${chunk('hel')}${chunk('lo')}${lastChunk}`,
      'wait',
    )
    expect(await readResponseBody(await fetch(streamed), 5)).toEqual(new TextEncoder().encode('hello'))
  })

  test('announced over the limit is refused before it arrives', async () => {
    const url = await rawAnswer('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n', 'wait')
    expect(await readResponseBody(await fetch(url), 5)).toBe('too-large')
  })

  test('in chunks is refused at the limit, without waiting for its end', async () => {
    const url = await rawAnswer(`HTTP/1.1 200 OK\r\n${chunked}\r\n\r\n${chunk('hello!')}`, 'wait')
    expect(await readResponseBody(await fetch(url), 5)).toBe('too-large')
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

  test('whose beginning is all that comes of it is that beginning', async () => {
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

  test('of a known length tells so at once', async () => {
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

  test('that is compressed is measured unpacked', async () => {
    const packed = Bun.gzipSync(new Uint8Array(100_000))
    const url = packedAnswer(packed)
    expect(packed.length).toBeLessThan(1000)
    expect(await readResponseBody(await fetch(url), 50_000)).toBe('too-large')
    expect((await readResponseBody(await fetch(url), 100_000)).length).toBe(100_000)
  })

  test('that is smaller unpacked than packed is measured unpacked too', async () => {
    const packed = Bun.gzipSync(new Uint8Array([1, 2, 3]))
    const url = packedAnswer(packed)
    expect(packed.length).toBeGreaterThan(5)
    expect(await readResponseBody(await fetch(url), 5)).toEqual(new Uint8Array([1, 2, 3]))
  })

  test('that breaks off rejects', async () => {
    const announced = await rawAnswer('HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello', 'close')
    await expect(readResponseBody(await fetch(announced), 100)).rejects.toThrow()
    const streamed = await rawAnswer(`HTTP/1.1 200 OK\r\n${chunked}\r\n\r\n${chunk('hello')}`, 'close')
    await expect(readResponseBody(await fetch(streamed), 100)).rejects.toThrow()
  })

  test('without a body is empty', async () => {
    expect(await readResponseBody(new Response(null, { status: 204 }), 5)).toEqual(new Uint8Array(0))
  })
})

const kibibyte = 1024
const bytesMax = 1024 * kibibyte

/** A body that is sent piece by piece, with or without saying how much is to come. */
function upload(announced?: number) {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const headers: Record<string, string> = announced === undefined ? {} : { 'content-length': String(announced) }
  return {
    request: new Request('http://gateway/', { method: 'POST', body: readable, headers }),
    send: (bytes: number) => writer.write(new Uint8Array(bytes)),
    end: () => writer.close(),
    cut: () => writer.abort(new Error('cut')),
  }
}

const outcome = (body: Uint8Array | BodyFault) => (body instanceof BodyFault ? body.reason : body.length)

test('what is announced is taken before a byte has come, and given back when all has', async () => {
  const room = createBodyRoom(300 * kibibyte)
  const [first, second, third] = [upload(200 * kibibyte), upload(200 * kibibyte), upload(200 * kibibyte)]
  const reading = readBody(first.request, { bytesMax, room })
  expect(outcome(await readBody(second.request, { bytesMax, room }))).toBe('no-room')
  void first.send(200 * kibibyte)
  void first.end()
  expect(outcome(await reading)).toBe(200 * kibibyte)
  void third.send(200 * kibibyte)
  void third.end()
  expect(outcome(await readBody(third.request, { bytesMax, room }))).toBe(200 * kibibyte)
})

test('a large one takes room as it comes, however much it announces', async () => {
  const room = createBodyRoom(2048 * kibibyte)
  const limits = { bytesMax: 32 * bytesMax, room }
  const [slow, other] = [upload(4096 * kibibyte), upload(1024 * kibibyte)]
  const reading = readBody(slow.request, limits)
  await slow.send(100 * kibibyte)
  void other.send(1024 * kibibyte)
  void other.end()
  expect(outcome(await readBody(other.request, limits))).toBe(1024 * kibibyte)
  // No other body is being read now.
  void slow.send(3996 * kibibyte)
  void slow.end()
  expect(outcome(await reading)).toBe(4096 * kibibyte)
})

test('a body of unknown length takes room as it grows, and gives all of it back when it is cut off or refused', async () => {
  const room = createBodyRoom(300 * kibibyte)
  for (let time = 0; time < 3; time++) {
    const [large, growing] = [upload(200 * kibibyte), upload()]
    const readings = [readBody(large.request, { bytesMax, room }), readBody(growing.request, { bytesMax, room })]
    void growing.send(90 * kibibyte).catch(() => {})
    void growing.send(90 * kibibyte).catch(() => {})
    expect(outcome((await readings[1]) as Uint8Array)).toBe('no-room')
    void large.cut().catch(() => {})
    expect(outcome((await readings[0]) as Uint8Array)).toBe('aborted')
  }
})

test('small bodies need no room, and one alone is let in whatever its size', async () => {
  const room = createBodyRoom(100 * kibibyte)
  const large = upload(200 * kibibyte)
  const reading = readBody(large.request, { bytesMax, room })
  for (const small of [upload(64 * kibibyte), upload()]) {
    void small.send(64 * kibibyte)
    void small.end()
    expect(outcome(await readBody(small.request, { bytesMax, room }))).toBe(64 * kibibyte)
  }
  void large.send(200 * kibibyte)
  void large.end()
  expect(outcome(await reading)).toBe(200 * kibibyte)
})
