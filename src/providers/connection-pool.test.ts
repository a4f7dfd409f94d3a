// The client against servers that send exact bytes. TLS and addresses are tested with the egress guard, which dials.

import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { holeTest, openBlackHole } from '../../test/parts/black-hole.ts'
import { connectionsRested, startUpstream, type Upstream, type UpstreamHandler } from '../../test/parts/upstream.ts'
import { systemClock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { isUnreachable } from './call-endpoint.ts'
import { createTarget, distrustMs, sendBySocket, strayCounts, type Target } from './connection-pool.ts'
import type { UpstreamRequest, UpstreamResponse } from './provider.ts'

let upstream: Upstream
afterEach(() => upstream.stop())

function targetAt(port: number): Target {
  return createTarget({ isTls: false, hostname: '127.0.0.1', port, host: `127.0.0.1:${port}` })
}

function start(handler: UpstreamHandler): Target {
  upstream = startUpstream(handler)
  return targetAt(Number(new URL(upstream.url).port))
}

const never = new AbortController().signal
const post: UpstreamRequest = { path: '/v1', headers: {}, body: new Uint8Array(3), signal: never }
const textOf = async (response: UpstreamResponse) => new TextDecoder().decode(await response.bytes())
const call = async (target: Target, more: Partial<UpstreamRequest> = {}) =>
  textOf(await sendBySocket(target, { ...post, ...more }))
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (thrown: { code?: unknown }) => thrown.code,
  )

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const chunkedHead = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

describe('a request', () => {
  test('is sent once, with its length, its host and its headers', async () => {
    const target = start((_, reply) => reply.write(ok))
    const body = new TextEncoder().encode('{"a":1}')
    const headers = { authorization: 'Bearer k', 'x-latin': 'é', Host: 'evil', 'Content-Length': '1', connection: 'x' }
    expect(await call(target, { path: '/v1/chat?x=1', headers, body })).toBe('ok')
    const [sent] = upstream.calls
    expect(upstream.calls).toHaveLength(1)
    expect(sent).toMatchObject({ method: 'POST', path: '/v1/chat?x=1', body })
    expect(Object.fromEntries(sent?.headers ?? [])).toEqual({
      host: target.host,
      'content-length': '7',
      authorization: 'Bearer k',
      'x-latin': 'é',
    })
  })

  test('with a body of several megabytes arrives unchanged', async () => {
    const target = start((_, reply) => reply.write(ok))
    const body = new Uint8Array(5_000_000).map((_, at) => at % 251)
    expect(await call(target, { body })).toBe('ok')
    expect(Bun.hash(upstream.calls[0]?.body ?? '')).toBe(Bun.hash(body))
  })

  test.each([
    ['a line break in a value', { headers: { a: 'b\r\nx: y' } }],
    ['a bare LF in a value', { headers: { a: 'b\nx: y' } }],
    ['a NUL in a value', { headers: { a: 'b\0' } }],
    ['a character beyond a byte in a value', { headers: { a: 'č' } }],
    ['a line break in a name', { headers: { 'a: b\r\nc': 'd' } }],
    ['an empty name', { headers: { '': 'b' } }],
    ['a space in the path', { path: '/v1 HTTP/1.1\r\nhost: evil\r\n\r\n' }],
    ['no slash before the path', { path: 'http://evil/' }],
  ])('with %s is not sent', (_, more) => {
    const target = start((_, reply) => reply.write(ok))
    expect(() => sendBySocket(target, { ...post, ...more })).toThrow(TypeError)
    expect(upstream.acceptedConnections()).toBe(0)
  })
})

describe('a response', () => {
  test.each([
    ['with a length', 'HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world'],
    ['in chunks', `${chunkedHead}6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n`],
  ])('%s is read in packets of a byte, and its connection is used again', async (_, text) => {
    const target = start(async (_, reply) => {
      for (const byte of Buffer.from(text)) {
        await reply.write(new Uint8Array([byte]))
        await Bun.sleep(0)
      }
    })
    expect(await call(target)).toBe('hello world')
    await connectionsRested()
    expect(await call(target)).toBe('hello world')
    expect(upstream.acceptedConnections()).toBe(1)
  })

  test('is read piece by piece, as it arrives', async () => {
    const next = Promise.withResolvers<void>()
    const target = start(async (_, reply) => {
      await reply.write(`${chunkedHead}1\r\na\r\n1\r\nb\r\n`)
      await next.promise
      await reply.write('1\r\nc\r\n0\r\n\r\n')
    })
    const reader = (await sendBySocket(target, post)).body?.getReader()
    expect(await reader?.read()).toEqual({ done: false, value: new Uint8Array(Buffer.from('ab')) })
    const pending = reader?.read()
    next.resolve()
    expect(await pending).toEqual({ done: false, value: new Uint8Array(Buffer.from('c')) })
    expect(await reader?.read()).toMatchObject({ done: true })
  })

  test('until the end of the connection ends with it, and is broken by a reset', async () => {
    const target = start(async (call, reply) => {
      await reply.write('HTTP/1.1 200 OK\r\n\r\nhello')
      if (call.path === '/reset') {
        await Bun.sleep(20)
        reply.reset()
      } else reply.cut()
    })
    expect(await call(target)).toBe('hello')
    expect(await codeOf(call(target, { path: '/reset' }))).toBe('ECONNRESET')
  })

  test.each([
    ['before its head', ''],
    ['inside its head', 'HTTP/1.1 200 OK\r\ncontent-'],
    ['inside its body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello'],
    ['inside a chunk', `${chunkedHead}9\r\nhello`],
  ])('that is cut %s fails, and the request is not sent again', async (_, text) => {
    const target = start(async (_, reply) => {
      if (text !== '') await reply.write(text)
      reply.cut()
    })
    const code = await codeOf(call(target))
    expect(code).toBeString()
    expect(isUnreachable({ code })).toBe(false)
    expect(upstream.calls).toHaveLength(1)
  })

  test('that was sent before the request was read is given, and its connection is not used again', async () => {
    upstream = startUpstream(() => {})
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.pause()
          socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno')
        },
      },
    })
    const response = await sendBySocket(targetAt(server.port), { ...post, body: new Uint8Array(30_000_000) })
    expect(response.status).toBe(413)
    expect(await textOf(response)).toBe('no')
    server.stop(true)
  })

  test('that is not read stops the provider', async () => {
    let sent = 0
    const target = start(async (call, reply) => {
      await reply.write('HTTP/1.1 200 OK\r\n\r\n')
      for (; sent < 200 && !call.isClosed(); sent++) await reply.write(new Uint8Array(1_000_000))
      reply.cut()
    })
    const reader = (await sendBySocket(target, post)).body?.getReader()
    // Until nothing has moved for a while: what is left is in the buffers of the system.
    for (let before = -1; before !== sent; ) {
      before = sent
      await Bun.sleep(200)
    }
    expect(sent).toBeLessThan(50)
    let read = 0
    for (let piece = await reader?.read(); piece?.value; piece = await reader?.read()) read += piece.value.length
    expect(read).toBe(200_000_000)
  })
})

describe('a connection', () => {
  test.each([
    ['the provider says that it closes it', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok'],
    ['more follows than was announced', `${ok}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison`],
    ['the response is of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'],
  ])('is not used again where %s', async (_, text) => {
    const target = start((_, reply) => reply.write(text))
    for (let n = 1; n <= 2; n++) {
      expect(await call(target)).toBe('ok')
      expect(upstream.acceptedConnections()).toBe(n)
    }
  })

  test.each([
    ['sends what was not asked for', (reply: { write(text: string): unknown }) => reply.write(`${ok}`)],
    ['closes', (reply: { cut(): void }) => reply.cut()],
  ])('on which the provider later %s is not used again', async (_, later) => {
    const laterDone = Promise.withResolvers<void>()
    const target = start(async ({ closed }, reply) => {
      await reply.write(ok)
      await Bun.sleep(20)
      await later(reply)
      await closed
      laterDone.resolve()
    })
    expect(await call(target)).toBe('ok')
    await laterDone.promise
    // Both ends are in this process: one turn of its event loop later, the client has seen it too.
    await Bun.sleep(20)
    expect(await call(target)).toBe('ok')
    expect(upstream.acceptedConnections()).toBe(2)
  })

  test('is made for each call at a time, and all are kept', async () => {
    let waiting: (() => void)[] = []
    const target = start(async (_, reply) => {
      await new Promise<void>((resolve) => waiting.push(resolve))
      await reply.write(ok)
    })
    for (let round = 0; round < 2; round++) {
      const calls = Array.from({ length: 20 }, () => call(target))
      while (waiting.length < 20) await Bun.sleep(1)
      for (const resolve of waiting) resolve()
      waiting = []
      expect(await Promise.all(calls)).toEqual(Array(20).fill('ok'))
      await connectionsRested()
    }
    expect(upstream.acceptedConnections()).toBe(20)
    const fresh = call(target, { isFresh: true })
    while (waiting.length < 1) await Bun.sleep(1)
    waiting[0]?.()
    expect(await fresh).toBe('ok')
    expect(upstream.acceptedConnections()).toBe(21)
  })

  test('that has rested does not serve a call that waits for a new one', async () => {
    const target = start((_, reply) => reply.write(ok))
    expect(await call(target)).toBe('ok')
    const connect = Bun.connect
    const late = async (options: never) => {
      await connectionsRested()
      return connect(options)
    }
    const dialled = spyOn(Bun, 'connect').mockImplementation(late as unknown as typeof connect)
    expect(await call(target, { isFresh: true })).toBe('ok')
    dialled.mockRestore()
    expect(upstream.acceptedConnections()).toBe(2)
  })

  test('serves the next request if the first was aborted while connecting', async () => {
    const target = start((_, reply) => reply.write(ok))
    const controller = new AbortController()
    const aborted = sendBySocket(target, { ...post, signal: controller.signal })
    controller.abort(new Error('enough'))
    expect(await aborted.catch((thrown: Error) => thrown.message)).toBe('enough')
    // The second call dials too, in case the first attempt was lost; whichever connects first serves it.
    expect(await call(target)).toBe('ok')
    while (upstream.acceptedConnections() < 2) await Bun.sleep(1)
    await connectionsRested()
    expect(await Promise.all([call(target), call(target)])).toEqual(['ok', 'ok'])
    expect(upstream.acceptedConnections()).toBe(2)
    expect(upstream.calls).toHaveLength(3)
  })

  test('that cannot be made is reported to every call that waits for one', async () => {
    const target = start(() => {})
    upstream.stop()
    const codes = await Promise.all([1, 2, 3].map(() => codeOf(call(target))))
    expect(codes).toEqual(Array(3).fill('ECONNREFUSED'))
  })
})

// One that nobody asked for; on a connection that is used again it would be the answer to somebody else.
describe('a stray response', () => {
  const poison = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison'
  /** Sends it once, so long after the response to the first request. */
  const startStraying = (straysAfterMs: number, stray = poison): Target => {
    let isFirst = true
    return start(async (_, reply) => {
      await reply.write(ok)
      if (!isFirst) return
      isFirst = false
      await Bun.sleep(straysAfterMs)
      await reply.write(stray)
    })
  }

  test.each([0, 2, 8])(
    'that comes after %d ms is never an answer, however soon the next request is sent',
    async (ms) => {
      const target = startStraying(ms)
      for (let n = 0; n < 20; n++) {
        expect(await call(target)).toBe('ok')
        await Bun.sleep(n % 3)
      }
    },
  )

  test('makes each connection of its host carry one request, with any credential, for an hour', async () => {
    const target = startStraying(1)
    const other = new Secret('other')
    expect(await call(target, { credential: other })).toBe('ok')
    while (!strayCounts.has(target.host)) await Bun.sleep(1)
    expect(strayCounts.get(target.host)).toBe(1)
    for (let n = 2; n <= 4; n++) {
      expect(await call(target)).toBe('ok')
      await connectionsRested()
      expect(upstream.acceptedConnections()).toBe(n)
    }
    const now = spyOn(systemClock, 'monotonicMs').mockImplementation(() => performance.now() + distrustMs)
    for (let n = 0; n < 2; n++) {
      expect(await call(target)).toBe('ok')
      await connectionsRested()
    }
    expect(upstream.acceptedConnections()).toBe(5)
    now.mockRestore()
  })

  test('in the same packet as the response is noticed too', async () => {
    const target = start((_, reply) => reply.write(ok + poison))
    expect(await call(target)).toBe('ok')
    expect(strayCounts.get(target.host)).toBe(1)
  })

  test('by which a server says that it closes an idle connection is harmless', async () => {
    const target = startStraying(1, 'HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    expect(await call(target)).toBe('ok')
    await connectionsRested()
    for (let n = 0; n < 2; n++) {
      expect(await call(target)).toBe('ok')
      await connectionsRested()
    }
    expect(upstream.acceptedConnections()).toBe(2)
    expect(strayCounts.has(target.host)).toBe(false)
  })
})

test('calls with different credentials share no connection', async () => {
  const target = start((_, reply) => reply.write(ok))
  const credentials = ['a', 'b', 'a', 'b', undefined, undefined]
  for (const credential of credentials) {
    expect(await call(target, { credential: credential === undefined ? undefined : new Secret(credential) })).toBe('ok')
    await connectionsRested()
  }
  expect(upstream.acceptedConnections()).toBe(3)
})

holeTest('attempts to a host that accepts nothing are bounded', async () => {
  const hole = await openBlackHole()
  upstream = startUpstream(() => {})
  const dialled = spyOn(Bun, 'connect')
  const target = targetAt(hole.port)
  for (let n = 0; n < 200; n++) {
    const controller = new AbortController()
    const response = sendBySocket(target, { ...post, signal: controller.signal })
    controller.abort(new Error('enough'))
    expect(await response.catch((thrown: Error) => thrown.message)).toBe('enough')
  }
  expect(dialled).toHaveBeenCalledTimes(65)
  dialled.mockRestore()
  await hole.stop()
})

describe('an abort', () => {
  test('ends a call that waits for its response, and closes its connection', async () => {
    const target = start(() => {})
    const controller = new AbortController()
    const response = sendBySocket(target, { ...post, signal: controller.signal })
    while (upstream.calls.length === 0) await Bun.sleep(1)
    controller.abort(new Error('enough'))
    expect(await response.catch((thrown: Error) => thrown.message)).toBe('enough')
    await upstream.calls[0]?.closed
  })

  test('ends reading, and closes the connection', async () => {
    const target = start((_, reply) => reply.write(`${chunkedHead}1\r\na\r\n`))
    const controller = new AbortController()
    const reader = (await sendBySocket(target, { ...post, signal: controller.signal })).body?.getReader()
    await reader?.read()
    const pending = reader?.read().catch((thrown: Error) => thrown.message)
    controller.abort(new Error('enough'))
    expect(await pending).toBe('enough')
    expect(await reader?.read().catch((thrown: Error) => thrown.message)).toBe('enough')
    await upstream.calls[0]?.closed
  })

  test('after the response leaves the connection alone', async () => {
    const target = start((_, reply) => reply.write(ok))
    const controller = new AbortController()
    expect(await call(target, { signal: controller.signal })).toBe('ok')
    controller.abort()
    await connectionsRested()
    expect(await call(target)).toBe('ok')
    expect(upstream.acceptedConnections()).toBe(1)
    expect(await codeOf(call(target, { signal: controller.signal }))).not.toBe('answered')
  })

  test('a body that is cancelled closes the connection', async () => {
    const target = start((_, reply) => reply.write(`${chunkedHead}1\r\na\r\n`))
    const response = await sendBySocket(target, post)
    await response.body?.cancel()
    await upstream.calls[0]?.closed
    expect(await textOf(response)).toBe('')
  })
})
