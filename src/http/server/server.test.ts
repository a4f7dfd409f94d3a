import { afterAll, expect, test } from 'bun:test'
import { createJumpClock } from '../../../test/parts/jump-clock.ts'
import { openOwnSocket } from '../../../test/parts/own-socket.ts'
import { connect, type RawConnection } from '../../../test/parts/raw-client.ts'
import { closeCodeIn, frame, handshake } from '../../../test/parts/web-socket.ts'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import { Answer, type AnswerSink, type AnswerStream, BrokenOff } from '../../pipeline/answer.ts'
import { BodyFault } from '../../wire/read-body.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { HttpServer, type ServerOptions } from './server.ts'
import { type MessageSink, Upgrade } from './web-socket.ts'

// Over bare sockets. What the gateway makes of odd requests: test/bad-http.test.ts; of slow and leaving clients:
// test/slow-readers.test.ts and test/hostile.

const servers: HttpServer[] = []
const open: RawConnection[] = []

afterAll(() => {
  for (const connection of open) connection.leave()
  for (const server of servers) {
    void server.stop()
    server.terminate()
  }
})

const showDefect = (error: unknown) => new Answer(500, {}, String(error))

function start(serve: (request: IncomingRequest) => Answer | Promise<Answer>, options: Partial<ServerOptions> = {}) {
  const place = { host: '127.0.0.1', port: 0, sharesPort: false, idleSeconds: 60, clock: systemClock }
  const limits = { connectionsMax: 10_000, requestsMax: 10_000, bodiesBytesMax: () => 2 ** 30 }
  const server = new HttpServer({ ...place, ...limits, serve, onDefect: showDefect, ...options })
  servers.push(server)
  return {
    server,
    async connect(): Promise<RawConnection> {
      const connection = await connect(`http://127.0.0.1:${server.port}`)
      open.push(connection)
      return connection
    },
  }
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')
/** After it, a handler that waits for nothing has answered. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
const bytes = (words: string) => new Uint8Array(Buffer.from(words))

/** Answers with the method, the target and the body. */
const echo = start(async (request) => {
  const body = text(await request.bytes())
  return new Answer(
    200,
    { 'x-host': request.headers.get('host') ?? '' },
    bytes(`${request.method} ${request.url} ${body}`),
  )
})

async function answers(connection: RawConnection, count: number): Promise<string[]> {
  const bodies: string[] = []
  for (let at = 0; at < count; at++) {
    const response = await connection.response()
    bodies.push(response === 'closed' ? 'closed' : response.body)
  }
  return bodies
}

const two =
  'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello' +
  'POST /b?c HTTP/1.1\r\nhost:y\r\ntransfer-encoding: chunked\r\n\r\n3\r\nwor\r\n2;x=y\r\nld\r\n0\r\nt: u\r\n\r\n' +
  'GET /d HTTP/1.1\r\nhost: z\r\n\r\n'

test('requests that are sent together are answered one after the other', async () => {
  const connection = await echo.connect()
  await connection.send(two)
  expect(await answers(connection, 3)).toEqual(['POST /a hello', 'POST /b?c world', 'GET /d '])
})

test('a request is read the same wherever its bytes are cut', async () => {
  for (let at = 1; at < two.length; at++) {
    const connection = await echo.connect()
    await connection.send(two.slice(0, at))
    // Another connection is answered after these bytes were read.
    const other = await echo.connect()
    await other.send('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    await other.closed
    await connection.send(two.slice(at))
    expect(await answers(connection, 3)).toEqual(['POST /a hello', 'POST /b?c world', 'GET /d '])
    connection.leave()
  }
})

test('empty lines before a request are skipped, wherever they are cut', async () => {
  const sent = `\r\n\r\nPOST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello\r\nGET /b HTTP/1.1\r\nhost: x\r\n\r\n\r\n`
  for (const cut of [0, 1, 2, 3, sent.indexOf('GET') - 1, sent.length - 1]) {
    const connection = await echo.connect()
    await connection.send(sent.slice(0, cut))
    await Bun.sleep(1)
    await connection.send(sent.slice(cut))
    expect(await answers(connection, 2)).toEqual(['POST /a hello', 'GET /b '])
    await connection.send('GET /c HTTP/1.1\r\nhost: x\r\n\r\n')
    expect(await answers(connection, 1)).toEqual(['GET /c '])
  }
})

test('lines that end with a line feed alone are refused at once', async () => {
  for (const sent of ['GET / HTTP/1.1\nhost: x\n\n', 'GET / HTTP/1.1\r\nhost: x\n', '\r\r\n']) {
    const connection = await echo.connect()
    await connection.send(sent)
    expect(await connection.response()).toMatchObject({ status: 400 })
    await connection.closed
  }
})

test('a thousand requests at once are answered in order', async () => {
  const connection = await echo.connect()
  const numbers = Array.from({ length: 1000 }, (_, at) => at)
  await connection.send(numbers.map((at) => `GET /${at} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''))
  expect(await answers(connection, 1000)).toEqual(numbers.map((at) => `GET /${at} `))
})

test('a large body arrives whole, and the connection takes another request', async () => {
  const connection = await echo.connect()
  const body = 'x'.repeat(3_000_000)
  for (let times = 0; times < 2; times++) {
    await connection.send(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    expect(await answers(connection, 1)).toEqual([`POST / ${body}`])
  }
})

test('an answer does not wait for a body that nobody reads, and the rest of it is thrown away', async () => {
  const { connect } = start(() => new Answer(401, {}, 'no'))
  const connection = await connect()
  await connection.send('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2000000\r\n\r\n')
  expect(await connection.response()).toMatchObject({ status: 401, body: 'no' })
  await connection.send(`${'y'.repeat(2_000_000)}GET / HTTP/1.1\r\nhost: x\r\n\r\n`)
  expect(await connection.response()).toMatchObject({ status: 401, body: 'no' })
})

test('a client that asks whether to send its body is told when the body is read', async () => {
  const asked = Promise.withResolvers<void>()
  const { connect } = start(async (request) => {
    if (request.method === 'GET') return new Answer(200, {}, 'ok')
    await asked.promise
    return new Answer(200, {}, await request.bytes())
  })
  const connection = await connect()
  await connection.send('POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n')
  // When a connection opened after this one has been answered, the request has been read.
  const other = await connect()
  await other.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(await other.response()).toMatchObject({ body: 'ok' })
  expect(connection.received()).toBe('')
  asked.resolve()
  await connection.until('HTTP/1.1 100 Continue\r\n\r\n')
  await connection.send('ok')
  expect(await connection.response()).toMatchObject({ status: 200, body: 'ok' })
})

test('a client that asks and is refused gets no 100, and the connection ends', async () => {
  const { connect } = start(() => new Answer(401, {}, 'no'))
  const connection = await connect()
  await connection.send('POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n')
  const received = await connection.until('no')
  expect(received).toStartWith('HTTP/1.1 401 ')
  expect(received.toLowerCase()).toContain('\r\nconnection: close\r\n')
  await connection.closed
})

test('a client of HTTP/1.0 gets no 100, which it would take for its answer', async () => {
  const connection = await echo.connect()
  await connection.send('POST / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n')
  // The head has been read when a connection opened after this one has been answered.
  const other = await echo.connect()
  await other.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await other.response()
  await connection.send('ok')
  await connection.closed
  expect(connection.received()).toStartWith('HTTP/1.1 200 OK\r\n')
})

test('a body that is read after its answer has begun gets no 100', async () => {
  const { answer, sink } = written()
  const { connect } = start((request) => {
    void sink.then((to) => {
      to.write(bytes('answer'))
      void request.bytes()
      to.end()
    })
    return answer
  })
  const connection = await connect()
  await connection.send('POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n')
  await connection.closed
  expect(connection.received()).not.toContain('100 Continue')
  expect(await connection.response()).toMatchObject({ status: 200, body: 'answer' })
})

const whole = (head: string) => ({
  length: Number(/\r\ncontent-length: ([0-9]+)\r\n/i.exec(head)?.[1] ?? Number.NaN),
  isChunked: /\r\ntransfer-encoding: chunked\r\n/i.test(head),
})

test.each([
  ['a text', () => new Answer(200, {}, 'héllo'), { length: 6, isChunked: false }],
  ['nothing', () => new Answer(303, {}), { length: 0, isChunked: false }],
  ['204', () => new Answer(204, {}), { length: Number.NaN, isChunked: false }],
  ['bytes', () => new Answer(200, {}, new Uint8Array(70_000)), { length: 70_000, isChunked: false }],
  ['a stream', () => new Answer(200, {}, slowly('a', 'b')), { length: Number.NaN, isChunked: true }],
])('the length of %s is known to the client', async (_, answer, framing) => {
  const { connect } = start(() => answer())
  const connection = await connect()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  const head = (await connection.until('\r\n\r\n')).split('\r\n\r\n')[0] ?? ''
  expect(whole(`${head}\r\n`)).toEqual(framing)
})

test('a HEAD has the head of a GET and no body', async () => {
  const { connect } = start((request) =>
    request.url === '/slow' ? new Answer(200, {}, slowly('a')) : new Answer(200, {}, 'hello'),
  )
  const connection = await connect()
  for (const path of ['/', '/slow', '/']) {
    await connection.send(`HEAD ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect(await connection.response({ bodyless: true })).toMatchObject({ status: 200, body: '' })
  }
  expect(connection.received()).toBe('')
})

/** A stream whose pieces come later. */
function slowly(...pieces: string[]): AnswerStream {
  return {
    async run(sink) {
      for (const piece of pieces) {
        await Bun.sleep(1)
        await sink.write(bytes(piece))
      }
    },
    clientLeft: async () => {},
  }
}

test('a stream can have its headers sent before its first piece', async () => {
  const run = async (sink: AnswerSink) => {
    sink.write(new Uint8Array(0))
    await new Promise(() => {})
  }
  const { connect } = start(() => new Answer(200, {}, { run, clientLeft: async () => {} }))
  const connection = await connect()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await connection.until('\r\n\r\n')
})

test('a stream that has reported its failure breaks its answer off, and is not reported again', async () => {
  const reported: unknown[] = []
  const run = async (sink: AnswerSink) => {
    sink.write(bytes('half a file'))
    await Bun.sleep(1)
    throw new BrokenOff()
  }
  const { connect } = start(() => new Answer(200, {}, { run, clientLeft: async () => {} }), {
    onDefect: (error) => new Answer(500, {}, `${reported.push(error)}`),
  })
  const connection = await connect()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await connection.closed
  expect(connection.received()).toContain('half a file')
  expect(connection.received()).not.toContain('0\r\n\r\n')
  expect(reported).toEqual([])
})

test('cookies stay apart', async () => {
  const { connect } = start(() => new Answer(200, { 'set-cookie': ['a=1, x', 'b=2'] }))
  const connection = await connect()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  const head = await connection.until('\r\n\r\n')
  expect(head.match(/^set-cookie: .*$/gim)).toEqual(['set-cookie: a=1, x', 'set-cookie: b=2'])
})

test.each([['b\r\nx-c: d'], [['a', 'b\r\nx-c: d']]])('the header %j cannot start another line', async (value) => {
  const { connect } = start(() => new Answer(200, { 'x-a': value }, 'x'))
  const connection = await connect()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(await connection.response()).toMatchObject({ status: 500 })
})

test('a client of HTTP/1.0 gets a stream without chunks, and then the end', async () => {
  const { connect } = start(() => new Answer(200, {}, slowly('a', 'b')))
  const connection = await connect()
  await connection.send('GET / HTTP/1.0\r\n\r\n')
  await connection.closed
  expect(connection.received()).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:(?!transfer-encoding).*\r\n)*\r\nab$/)
})

test('a client of HTTP/1.0 can keep its connection', async () => {
  const kept = 'POST /a HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello'
  const connection = await echo.connect()
  for (const sent of [kept, kept]) {
    await connection.send(sent)
    const response = await connection.response()
    expect(response).toMatchObject({ status: 200, body: 'POST /a hello' })
    expect(response === 'closed' ? null : response.headers.get('connection')).toBe('keep-alive')
  }
  await connection.send('GET /b HTTP/1.0\r\n\r\n')
  const last = await connection.response()
  expect(last === 'closed' ? null : last.headers.get('connection')).toBe('close')
  await connection.closed
})

test('a stream to a client of HTTP/1.0 ends its connection, even one that is kept', async () => {
  const { connect } = start(() => new Answer(200, {}, slowly('a', 'b')))
  const connection = await connect()
  await connection.send('GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n')
  await connection.closed
  expect(connection.received()).toMatch(/\r\nconnection: close\r\n\r\nab$/)
})

/** A streamed answer that the test writes. */
function written() {
  const sink = Promise.withResolvers<AnswerSink>()
  const left = Promise.withResolvers<void>()
  const answer = new Answer(
    200,
    {},
    {
      run(to) {
        sink.resolve(to)
        return new Promise(() => {})
      },
      clientLeft: async () => left.resolve(),
    },
  )
  return { answer, sink: sink.promise, left: left.promise }
}

/** A streamed answer whose client does not read yet. */
async function unread() {
  const { answer, sink } = written()
  const { connect } = start(() => answer)
  const connection = await connect()
  connection.pause()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  return { connection, to: await sink }
}

test('a streamed answer waits for a client that does not read, and loses nothing', async () => {
  const { connection, to } = await unread()
  const piece = bytes('z'.repeat(100_000))
  let pieces = 0
  let full: Promise<void> | undefined
  while (!full) {
    full = to.write(piece)
    pieces++
  }
  connection.resume()
  await full
  to.end(bytes('end'))
  expect(await connection.response()).toMatchObject({ body: `${'z'.repeat(100_000 * pieces)}end` })
})

test('small pieces that wait for a client stay what they were', async () => {
  const { connection, to } = await unread()
  let expected = ''
  const write = (piece: string) => {
    expected += piece
    return to.write(bytes(piece))
  }
  let full: Promise<void> | undefined
  for (let at = 0; !full; at++) full = write(`${at} `.repeat(4000))
  for (let at = 0; at < 100; at++) void write(`later ${at}, `)
  connection.resume()
  await full
  to.end()
  const response = await connection.response()
  expect(response === 'closed' ? 'closed' : response.body === expected).toBe(true)
})

test('a client is served no further request before it has taken the answer to the last one', async () => {
  const { answer, sink } = written()
  const targets: string[] = []
  const { connect } = start((request) => {
    targets.push(request.url)
    return request.url === '/first' ? answer : new Answer(200, {}, bytes('short'))
  })
  const connection = await connect()
  connection.pause()
  await connection.send('GET /first HTTP/1.1\r\nhost: x\r\n\r\nGET /second HTTP/1.1\r\nhost: x\r\n\r\n')
  const to = await sink
  let full: Promise<void> | undefined
  while (!full) full = to.write(bytes('z'.repeat(100_000)))
  to.end()
  // Requests of other connections are served meanwhile, so this one would be too.
  for (let times = 0; times < 3; times++) {
    const other = await connect()
    await other.send('GET /other HTTP/1.1\r\nhost: x\r\n\r\n')
    await other.response()
  }
  expect(targets).toEqual(['/first', '/other', '/other', '/other'])
  connection.resume()
  await connection.response()
  expect(await connection.response()).toMatchObject({ body: 'short' })
})

test('a client that closes its sending side after its answer was sent gets all of it', async () => {
  const { connect } = start(() => new Answer(200, {}, new Uint8Array(400_000)))
  const connection = await connect()
  connection.pause()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  const other = await connect()
  await other.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await other.response()
  connection.halfClose()
  await other.send('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  await other.closed
  connection.resume()
  const response = await connection.response()
  expect(response === 'closed' ? 0 : response.body.length).toBe(400_000)
})

test('the time that a client may be silent starts again when it takes part of its answer', async () => {
  const { socket, tell } = openOwnSocket({
    serve: () => new Answer(200, {}, new Uint8Array(300_000)),
    onDefect: showDefect,
  })
  socket.room = 1000
  tell('data', bytes('GET / HTTP/1.1\r\nhost: x\r\n\r\n'))
  await nextTurn()
  socket.calls.length = 0
  socket.room = 1000
  tell('drain')
  expect(socket.calls).toEqual(['timeout 60'])
  tell('timeout')
  expect(socket.calls).toEqual(['timeout 60', 'terminate'])
})

test('between requests a connection may be silent for twelve minutes', async () => {
  const { socket, tell } = openOwnSocket({
    serve: () => new Answer(200, {}, new Uint8Array(3000)),
    onDefect: showDefect,
  })
  for (let requests = 0; requests < 2; requests++) {
    tell('data', bytes('GET / HTTP/1.1\r\nhost: x\r\n\r\n'))
    await nextTurn()
    for (let minutes = 1; minutes < 12; minutes++) {
      socket.calls.length = 0
      tell('timeout')
      expect(socket.calls).toEqual(['timeout 60'])
    }
  }
  tell('timeout')
  expect(socket.calls).toEqual(['timeout 60', 'end'])
})

test('a head has a minute from its first byte on, and no more for each further one', async () => {
  const { socket, tell } = openOwnSocket({
    serve: () => new Answer(200, {}, new Uint8Array(3000)),
    onDefect: showDefect,
  })
  tell('data', bytes('GET / HTTP/1.1\r\nhost: x\r\n\r\n'))
  await nextTurn()
  socket.calls.length = 0
  tell('data', bytes('GET / HTT'))
  tell('data', bytes('P/1.1\r\n'))
  expect(socket.calls).toEqual(['timeout 60'])
  tell('timeout')
  expect(socket.calls).toEqual(['timeout 60', 'end'])
})

test('a connection on which nothing is asked is closed after a minute', () => {
  const { socket, tell } = openOwnSocket({ serve: () => new Answer(200, {}, new Uint8Array(0)), onDefect: showDefect })
  tell('timeout')
  expect(socket.calls).toEqual(['timeout 60', 'end'])
})

test('a client that does not take its last answer is not waited for without a limit', async () => {
  const { socket, tell } = openOwnSocket({
    serve(_, control) {
      control.timeout(0)
      return new Answer(200, { connection: 'close' }, new Uint8Array(300_000))
    },
    onDefect: showDefect,
  })
  socket.room = 1000
  tell('data', bytes('GET / HTTP/1.1\r\nhost: x\r\n\r\n'))
  await nextTurn()
  expect(socket.calls.slice(-2)).toEqual(['timeout 0', 'timeout 60'])
})

test('an answer that is on its way is not reset when its client is slow to close', async () => {
  const { socket, tell } = openOwnSocket({ serve: () => new Answer(200, {}, new Uint8Array(3)), onDefect: showDefect })
  tell('data', bytes('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'))
  await nextTurn()
  tell('drain')
  expect(socket.calls.slice(-2)).toEqual(['shutdown', 'timeout 8'])
  tell('timeout')
  expect(socket.calls).not.toContain('terminate')
  expect(socket.calls.at(-1)).toBe('end')
})

test('an answer learns that its client has left, and the body that it sends no more', async () => {
  const { answer, sink, left } = written()
  const broken = Promise.withResolvers<unknown>()
  const { server, connect } = start((request) => {
    request.bytes().catch(broken.resolve)
    return answer
  })
  const connection = await connect()
  await connection.send('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc')
  await sink
  connection.leave()
  await left
  expect(await broken.promise).toBeInstanceOf(Error)
  expect(server.running).toBe(0)
})

test('a streamed answer that fails by a defect is reported and broken off', async () => {
  const reported = Promise.withResolvers<unknown>()
  const run = async (sink: AnswerSink) => {
    sink.write(bytes('half'))
    throw new Error('a defect')
  }
  const { connect } = start(() => new Answer(200, {}, { run, clientLeft: async () => {} }), {
    onDefect(error) {
      reported.resolve(error)
      return new Answer(500, {})
    },
  })
  const connection = await connect()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(String(await reported.promise)).toBe('Error: a defect')
  await connection.closed
  expect(connection.received()).not.toContain('0\r\n\r\n')
})

test('an answer that cannot be sent ends only its own connection', async () => {
  const reported: unknown[] = []
  const run = () => {
    throw new Error('a defect')
  }
  const { socket, tell } = openOwnSocket({
    serve: async () => new Answer(200, {}, { run, clientLeft: async () => {} }),
    onDefect(error) {
      reported.push(error)
      return new Answer(500, {})
    },
  })
  tell('data', bytes('GET / HTTP/1.1\r\nhost: x\r\n\r\n'))
  while (reported.length === 0) await Bun.sleep(1)
  expect(reported).toHaveLength(1)
  expect(socket.calls.at(-1)).toBe('terminate')
})

test.each([
  ['a connection that was reset', 'ECONNRESET', 0],
  ['an error that was thrown by a handler of the socket', undefined, 1],
  ['an error of the runtime in a handler of the socket', 'ERR_INVALID_STATE', 1],
])('%s: %p is reported as a defect %d times', (_, code, times) => {
  const reported: unknown[] = []
  const { tell } = openOwnSocket({
    serve: () => new Answer(200, {}),
    onDefect: (error) => new Answer(500, {}, `${reported.push(error)}`),
  })
  tell('error', Object.assign(new Error(), code === undefined ? {} : { code }))
  expect(reported).toHaveLength(times)
})

test('a signal aborts when the client leaves before its answer', async () => {
  const aborted = Promise.withResolvers<void>()
  const began = Promise.withResolvers<void>()
  const { connect } = start((request) => {
    request.signal.addEventListener('abort', () => aborted.resolve())
    began.resolve()
    return new Promise(() => {})
  })
  const connection = await connect()
  await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await began.promise
  connection.leave()
  await aborted.promise
})

test('a body that stops being chunks fails its reader, and the answer is the last', async () => {
  const began = Promise.withResolvers<void>()
  const { connect } = start(async (request) => {
    began.resolve()
    const read = await request.bytes().then(text, () => 'broken')
    return new Answer(200, {}, bytes(read))
  })
  const connection = await connect()
  await connection.send('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n')
  await began.promise
  await connection.send('zz\r\n')
  expect(await connection.response()).toMatchObject({ status: 200, body: 'broken' })
  await connection.closed
})

test('an idle connection is closed for a new one if there are too many', async () => {
  const answering = Promise.withResolvers<Answer>()
  const short = new Answer(200, {}, bytes('short'))
  const { server, connect } = start(({ url }) => (url === '/wait' ? answering.promise : short), { connectionsMax: 2 })
  const [busy, idle] = [await connect(), await connect()]
  await busy.send('GET /wait HTTP/1.1\r\nhost: x\r\n\r\n')
  while (server.running === 0) await Bun.sleep(1)
  await idle.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(await answers(idle, 1)).toEqual(['short'])
  const next = await connect()
  await idle.closed
  await next.send('GET /wait HTTP/1.1\r\nhost: x\r\n\r\n')
  while (server.running === 1) await Bun.sleep(1)
  // Both are busy.
  const last = await connect()
  await last.closed
  answering.resolve(new Answer(200, {}, bytes('late')))
  expect([...(await answers(busy, 1)), ...(await answers(next, 1))]).toEqual(['late', 'late'])
})

test('the connection that keeps the server waiting longest is closed for a new one, also within a request', async () => {
  const { connect } = start(async (request) => new Answer(200, {}, await request.bytes()), { connectionsMax: 3 })
  const [body, head, kept] = [await connect(), await connect(), await connect()]
  await body.send('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc')
  await head.send('GET / HT')
  await kept.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await kept.response()
  // By then the others have been read as well.
  for (const slow of [body, head]) {
    const next = await connect()
    await next.send('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nok')
    expect(await next.response()).toMatchObject({ status: 200, body: 'ok' })
    expect(await slow.response()).toMatchObject({ status: 408 })
  }
  const next = await connect()
  await next.send('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nok')
  expect(await next.response()).toMatchObject({ status: 200, body: 'ok' })
  await kept.closed
})

test('a connection whose client does not take its answer is closed for a new one, too', async () => {
  const { server, connect } = start(
    ({ url }) => new Answer(200, {}, url === '/large' ? new Uint8Array(20_000_000) : 'short'),
    { connectionsMax: 2 },
  )
  const [deaf, other] = [await connect(), await connect()]
  deaf.pause()
  await deaf.send('GET /large HTTP/1.1\r\nhost: x\r\n\r\n')
  // When a request that was sent later has been answered, this one has been, too.
  await other.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(await other.response()).toMatchObject({ body: 'short' })
  const next = await connect()
  for (const connection of [next, other]) {
    await connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    expect(await connection.response()).toMatchObject({ body: 'short' })
  }
  deaf.resume()
  await deaf.closed
  expect(deaf.received().length).toBeLessThan(20_000_000)
  expect(server.running).toBe(0)
})

/** Answers with the body, or why it was given up. */
const echoBody = async (request: IncomingRequest) => {
  const read = await request.bytes().catch((error: unknown) => error)
  if (read instanceof BodyFault) return new Answer(read.reason === 'too-slow' ? 408 : 503, {}, read.reason)
  return read instanceof Uint8Array ? new Answer(200, {}, read) : new Answer(400, {}, String(read))
}

const post = (length: number, ...pieces: string[]) =>
  bytes(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n${pieces.join('')}`)

test.each([
  // Just over a minute, for six bytes more; the next byte comes at 70 seconds.
  ['one byte every ten seconds', 10, 1, 70],
  // After t seconds, 60 + t/2 are allowed.
  ['50 KB a second', 10, 500_000, 120],
])(
  'a body that is sent in %s has a minute and a second for each 100 KB',
  async (_, everySeconds, pieceBytes, limit) => {
    const clock = createJumpClock()
    const { socket, tell } = openOwnSocket({ serve: echoBody, onDefect: showDefect, clock })
    tell('data', post(30_000_000))
    let seconds = 0
    while (socket.received.length === 0 && seconds < 1000) {
      clock.jump(everySeconds)
      seconds += everySeconds
      tell('data', new Uint8Array(pieceBytes))
      await nextTurn()
    }
    expect(seconds).toBe(limit)
    expect(text(socket.received)).toStartWith('HTTP/1.1 408 Request Timeout\r\n')
    expect(socket.calls).toContain('shutdown')
  },
)

test('a body of which nothing comes for a minute is given up', async () => {
  const { socket, tell } = openOwnSocket({ serve: echoBody, onDefect: showDefect })
  tell('data', post(9, 'abc'))
  expect(socket.calls.at(-1)).toBe('timeout 60')
  tell('timeout')
  await nextTurn()
  expect(text(socket.received)).toStartWith('HTTP/1.1 408 ')
})

test('a handler that lets its client be silent does not wait for a body without an end', async () => {
  const clock = createJumpClock()
  const { socket, tell } = openOwnSocket({
    serve(request, control) {
      control.timeout(0)
      return echoBody(request)
    },
    onDefect: showDefect,
    clock,
  })
  tell('data', post(9, 'abc'))
  expect(socket.calls).not.toContain('timeout 0')
  clock.jump(50)
  tell('data', bytes('def'))
  expect(socket.calls.at(-1)).toBe('timeout 11')
  tell('data', bytes('ghi'))
  expect(socket.calls).toContain('timeout 0')
  await nextTurn()
  expect(text(socket.received)).toEndWith('abcdefghi')
})

test('the rest of a body whose request was answered has no more time than others', async () => {
  const clock = createJumpClock()
  const { socket, tell } = openOwnSocket({ serve: () => new Answer(401, {}, 'no'), onDefect: showDefect, clock })
  tell('data', post(900))
  await nextTurn()
  for (let times = 0; times < 5; times++) {
    clock.jump(10)
    tell('data', bytes('x'))
  }
  expect(socket.calls).not.toContain('shutdown')
  clock.jump(11)
  tell('data', bytes('x'))
  expect(socket.calls).toContain('shutdown')
  expect(text(socket.received).match(/HTTP\/1.1/g)).toHaveLength(1)
})

test('a client does not answer for the time in which its body is not read', async () => {
  const clock = createJumpClock()
  const mayRead = Promise.withResolvers<void>()
  const { socket, tell } = openOwnSocket({
    async serve(request) {
      await mayRead.promise
      return echoBody(request)
    },
    onDefect: showDefect,
    clock,
  })
  tell('data', post(100_003, 'x'.repeat(100_000)))
  expect(socket.calls.at(-1)).toBe('timeout 0')
  clock.jump(600)
  mayRead.resolve()
  await nextTurn()
  expect(socket.calls.at(-1)).toBe('timeout 60')
  tell('data', bytes('end'))
  await nextTurn()
  expect(text(socket.received)).toEndWith('xend')
})

const large = 'x'.repeat(150_000)

test('bodies that are being received are refused above what all may hold, and room is free again when they end', async () => {
  const { server, connect } = start(echoBody, { bodiesBytesMax: () => 250_000 })
  for (let times = 0; times < 3; times++) {
    const [first, second, small] = [await connect(), await connect(), await connect()]
    await first.send(post(150_001, large))
    while (server.bodyBytes < 150_000) await Bun.sleep(1)
    await second.send(post(150_001, large))
    expect(await second.response()).toMatchObject({ status: 503, body: 'no-room' })
    await second.closed
    await small.send(post(2, 'ok'))
    expect(await small.response()).toMatchObject({ status: 200, body: 'ok' })
    if (times === 0) first.leave()
    else {
      await first.send('y')
      expect(await first.response()).toMatchObject({ status: 200, body: `${large}y` })
    }
    while (server.bodyBytes > 0) await Bun.sleep(1)
  }
})

test('a body that is sent slowly gives way to one that needs its room', async () => {
  const clock = createJumpClock()
  const { server, connect } = start(echoBody, { bodiesBytesMax: () => 250_000, clock })
  const [slow, other] = [await connect(), await connect()]
  await slow.send(post(150_001, large))
  while (server.bodyBytes < 150_000) await Bun.sleep(1)
  clock.jump(7)
  await other.send(post(150_001, large, 'y'))
  expect(await other.response()).toMatchObject({ status: 200, body: `${large}y` })
  expect(await slow.response()).toMatchObject({ status: 503, body: 'no-room' })
})

test('as many requests as may be running leave connections for others, and a body that completes then is refused', async () => {
  const answering = Promise.withResolvers<Answer>()
  const serve = (request: IncomingRequest) =>
    request.url === '/wait'
      ? answering.promise
      : request.url === '/healthz'
        ? new Answer(200, {}, 'ok')
        : echoBody(request)
  const { server, connect } = start(serve, { connectionsMax: 3, requestsMax: 1 })
  const [upload, busy] = [await connect(), await connect()]
  await upload.send(post(4, 'ab'))
  await busy.send('GET /wait HTTP/1.1\r\nhost: x\r\n\r\n')
  while (!server.isFull || server.bodyBytes === 0) await Bun.sleep(1)
  const probe = await connect()
  await probe.send('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(await probe.response()).toMatchObject({ status: 200, body: 'ok' })
  await upload.send('cd')
  expect(await upload.response()).toMatchObject({ status: 503, body: 'no-room' })
  answering.resolve(new Answer(200, {}, 'late'))
  expect(await busy.response()).toMatchObject({ body: 'late' })
})

test('connections that clients keep after their last answer count too', async () => {
  const { server } = start(() => new Answer(200, {}), { connectionsMax: 2 })
  for (let times = 0; times < 4; times++) {
    const refused = Promise.withResolvers<void>()
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: server.port,
      // Sends no end when it gets one.
      allowHalfOpen: true,
      socket: { data() {}, end: () => refused.resolve() },
    })
    socket.write('not HTTP\r\n\r\n')
    await refused.promise
  }
  expect(server.lingeringConnections).toBe(2)
})

test('stopping does not wait for the rest of a request that was answered', async () => {
  const { server, connect } = start(() => new Answer(401, {}, 'no'), { idleSeconds: 0 })
  const connection = await connect()
  await connection.send('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc')
  expect(await connection.response()).toMatchObject({ status: 401 })
  await server.stop()
})

test('stopping closes idle connections, and others after their answer', async () => {
  const answering = Promise.withResolvers<Answer>()
  const { server, connect } = start(() => answering.promise)
  const [idle, busy] = [await connect(), await connect()]
  await busy.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  while (server.running === 0) await Bun.sleep(1)
  const stopped = server.stop()
  await idle.closed
  answering.resolve(new Answer(200, {}, bytes('last')))
  const last = await busy.response()
  expect(last).toMatchObject({ body: 'last' })
  expect(last === 'closed' ? null : last.headers.get('connection')).toBe('close')
  await busy.closed
  await stopped
})

// ── WebSockets ──

/** Answers each message with itself, once `wait` resolves. */
function openWebSocket(options: { readonly wait?: Promise<void>; readonly clock?: Clock } = {}) {
  const left: string[] = []
  const open = (client: MessageSink) => ({
    async answer(message: string) {
      await options.wait
      client.send(message)
    },
    async clientLeft() {
      left.push('left')
    },
  })
  const own = openOwnSocket({
    serve: () => new Upgrade({ 'x-request-id': 'req_1' }, 1_000_000, open),
    onDefect: showDefect,
    ...(options.clock && { clock: options.clock }),
  })
  own.tell('data', bytes(handshake('key')))
  return { ...own, left }
}

const pingFrame = '\x89\x00'
const pong = frame('', { opcode: 10 })

test('a WebSocket answers its handshake, and one message after another', async () => {
  const { socket, tell } = openWebSocket()
  await nextTurn()
  expect(text(socket.received)).toStartWith('HTTP/1.1 101 Switching Protocols\r\nx-request-id: req_1\r\n')
  // The key and its answer are those of RFC 6455, section 1.3.
  expect(text(socket.received)).toContain('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n')
  tell('data', Buffer.concat([frame('one'), frame('two')]))
  for (let turns = 0; turns < 4; turns++) await nextTurn()
  expect(text(socket.received)).toEndWith('\x81\x03one\x81\x03two')
})

test('a silent WebSocket is sent a ping, and closed without an answer to it', async () => {
  const { socket, tell, left } = openWebSocket()
  await nextTurn()
  tell('timeout')
  expect(text(socket.received)).toEndWith(pingFrame)
  tell('data', pong)
  tell('timeout')
  expect(text(socket.received)).toEndWith(pingFrame + pingFrame)
  expect(left).toEqual([])
  tell('timeout')
  expect([socket.calls.at(-1), left]).toEqual(['end', ['left']])
})

test('a WebSocket without messages is closed after an hour', async () => {
  const { socket, tell } = openWebSocket()
  await nextTurn()
  for (let pings = 0; pings < 120; pings++) {
    tell('timeout')
    tell('data', pong)
  }
  expect(text(socket.received)).toEndWith(pingFrame)
  tell('timeout')
  expect(closeCodeIn(socket.received)).toBe(1001)
})

test('a WebSocket is never idle while a message is answered', async () => {
  const wait = Promise.withResolvers<void>()
  const { socket, tell, server } = openWebSocket({ wait: wait.promise })
  await nextTurn()
  tell('data', frame('one'))
  expect([socket.calls.at(-1), server.running]).toEqual(['timeout 0', 1])
  wait.resolve()
  await nextTurn()
  expect([socket.calls.at(-1), server.running]).toEqual(['timeout 30', 0])
})

test('a message that arrives too slowly ends its WebSocket', async () => {
  const clock = createJumpClock()
  const { socket, tell, left } = openWebSocket({ clock })
  await nextTurn()
  const message = frame('x'.repeat(100_000))
  tell('data', message.subarray(0, 50_000))
  clock.jump(60)
  tell('data', message.subarray(50_000, 60_000))
  expect(left).toEqual([])
  clock.jump(2)
  tell('timeout')
  expect([closeCodeIn(socket.received), left]).toEqual([1008, ['left']])
})

test('parts of messages count with the bodies that arrive', async () => {
  const { socket, tell, server } = openWebSocket()
  await nextTurn()
  const message = frame('x'.repeat(900_000))
  tell('data', message.subarray(0, 500_000))
  expect(server.bodyBytes).toBe(500_000)
  tell('data', message.subarray(500_000))
  expect(server.bodyBytes).toBe(0)
  await nextTurn()
  expect(text(socket.received.subarray(-900_000))).toBe('x'.repeat(900_000))
})

test('a client that sends on while a message is answered is not read', async () => {
  const wait = Promise.withResolvers<void>()
  const { socket, tell } = openWebSocket({ wait: wait.promise })
  await nextTurn()
  const pauses: string[] = []
  socket.pause = () => void pauses.push('pause')
  socket.resume = () => void pauses.push('resume')
  tell('data', frame('one'))
  tell('data', frame('x'.repeat(60_000)))
  expect(pauses).toEqual([])
  tell('data', frame('y'.repeat(60_000)))
  expect(pauses).toEqual(['pause'])
  wait.resolve()
  for (let turns = 0; turns < 6; turns++) await nextTurn()
  expect(pauses).toEqual(['pause', 'resume'])
  expect(text(socket.received)).toEndWith('y'.repeat(60_000))
})

test('a WebSocket gives way to a new connection when there are too many', async () => {
  const upgrade = () => new Upgrade({}, 1000, () => ({ answer: async () => {}, clientLeft: async () => {} }))
  const crowded = start(upgrade, { connectionsMax: 2 })
  const first = await crowded.connect()
  await first.send(handshake('key'))
  await first.until('\r\n\r\n')
  const others = [await crowded.connect(), await crowded.connect()]
  await first.closed
  expect(closeCodeIn(first.bytes())).toBe(1013)
  for (const each of others) each.leave()
})
