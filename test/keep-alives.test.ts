// Providers that keep a client waiting. The clock is pushed ahead, so that the real ten and fifteen seconds pass in no
// time: headers go out early, comments and pings fill the silence, and failover stays invisible all the same.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { ask } from './parts/ask.ts'
import { allDialects, failoverConfig, type Gateway, startGateway, stopAll } from './parts/gateway.ts'
import { createJumpClock } from './parts/jump-clock.ts'
import { connect, type RawConnection, type RawResponse } from './parts/raw-client.ts'
import {
  allSurfaces,
  bodyOf,
  bothSurfaces,
  chat,
  expectFailure,
  messages,
  requestBytes,
  type TestSurface,
} from './parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamHandler, type UpstreamReply } from './parts/upstream.ts'
import { answerHello, helloWords, type Words } from './parts/upstream-words.ts'

const keepAlive = ': keep-alive\n\n'
const ping = 'event: ping\ndata: {"type":"ping"}\n\n'

/** How an error begins inside a stream. */
const errorEvents: Readonly<Record<TestSurface['name'], string>> = {
  chat: '',
  messages: 'event: error\n',
  responses: 'event: response.failed\n',
  gemini: '',
}

let clock = createJumpClock()
let first: Upstream
let second: Upstream
let gateway: Gateway

// A gateway for each test: what one test's provider did wrong must not be held against the next one's.
beforeEach(async () => {
  clock = createJumpClock()
  first = startUpstream(() => {})
  second = startUpstream(answerHello)
  gateway = await startGateway({ config: failoverConfig([first.url, second.url], { dialects: allDialects }), clock })
})

afterEach(() => stopAll(gateway, first, second))

interface Waiting {
  readonly connection: RawConnection
  /** How the first provider goes on, now that the client waits for it. */
  readonly reply: UpstreamReply
  readonly words: Words
}

/** A streamed request that has reached the first provider, which has done nothing yet but what `begin` does. */
async function waiting(
  surface: TestSurface,
  begin: (reply: UpstreamReply, words: Words) => Promise<void>,
): Promise<Waiting> {
  const words = helloWords[surface.name]
  const reached = new Promise<UpstreamReply>((resolve) => first.handle((_, reply) => resolve(reply)))
  const connection = await connect(gateway.url)
  await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: 'true' }) }))
  const reply = await reached
  await begin(reply, words)
  return { connection, reply, words }
}

const silent = async (): Promise<void> => {}

/** Long enough for the gateway to have looked at its clock, which then gave no reason to do anything. */
function someTicks(): Promise<void> {
  return Bun.sleep(250)
}

async function whole(connection: RawConnection): Promise<RawResponse> {
  const response = await connection.response()
  if (response === 'closed') throw new Error('closed without an answer')
  connection.leave()
  return response
}

/** The answer that the client would have got from this provider without any waiting. */
async function expectedFrom(surface: TestSurface): Promise<string> {
  first.handle((_, reply) => reply.json(500, {}))
  const connection = await connect(gateway.url)
  await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: 'true' }) }))
  return (await whole(connection)).body
}

for (const surface of allSurfaces) {
  describe(`a client of the ${surface.name} surface`, () => {
    test('gets headers and a comment after ten seconds, and another after each fifteen', async () => {
      const { connection, reply, words } = await waiting(surface, silent)
      clock.jump(9)
      await someTicks()
      expect(connection.received()).toBe('')
      clock.jump(1)
      const early = await connection.until(keepAlive)
      expect(early).toStartWith('HTTP/1.1 200')
      expect(early.toLowerCase()).toContain('content-type: text/event-stream')
      for (let comments = 2; comments <= 3; comments++) {
        clock.jump(14)
        await someTicks()
        expect(connection.received().split(keepAlive)).toHaveLength(comments)
        clock.jump(1)
        while (connection.received().split(keepAlive).length === comments) await Bun.sleep(5)
      }
      await reply.startStream()
      await reply.chunk(words.opening + words.says('hello') + words.ending)
      await reply.finish()
      const { status, body } = await whole(connection)
      expect(status).toBe(200)
      expect(body).toStartWith(keepAlive.repeat(3))
      expect(body.slice(keepAlive.length * 3)).toBe(await expectedFrom(surface))
    })

    test('gets them sooner where it says that it would not wait', async () => {
      const headers = { 'x-stainless-timeout': '5' }
      const reached = new Promise((resolve) => first.handle((_, reply) => resolve(reply)))
      const connection = await connect(gateway.url)
      const body = bodyOf(surface, { stream: 'true' })
      await connection.send(requestBytes(surface, { key: gateway.key, body, headers }))
      await reached
      clock.jump(3.9)
      await someTicks()
      expect(connection.received()).toBe('')
      clock.jump(0.1)
      expect(await connection.until(keepAlive)).toStartWith('HTTP/1.1 200')
      connection.leave()
    })

    test('gets only comments until the first meaningful event', async () => {
      const { connection, reply, words } = await waiting(surface, async (reply, words) => {
        await reply.startStream()
        await reply.chunk(`: provider says wait\n\n${words.opening}`)
      })
      clock.jump(10)
      await connection.until(keepAlive)
      expect(connection.received()).not.toContain(words.opening.slice(0, 12))
      await reply.chunk(words.says('hello') + words.ending)
      await reply.finish()
      const { body } = await whole(connection)
      expect(body).toStartWith(`${keepAlive}: provider says wait\n\n`)
      expect(body).toContain('hello')
      expect(body).toContain(words.terminal)
    })

    test('does not see that another provider had to be tried', async () => {
      for (const fail of ['cut', 'reset', 'refuse'] as const) {
        const { connection, reply } = await waiting(surface, silent)
        clock.jump(10)
        await connection.until(keepAlive)
        if (fail === 'refuse') await reply.json(503, { error: { message: 'busy' } })
        else reply[fail]()
        const { body } = await whole(connection)
        expect(body).toBe(keepAlive + (await expectedFrom(surface)))
      }
    })

    test('is served by another provider when the first stays silent for a minute', async () => {
      const { connection } = await waiting(surface, silent)
      clock.jump(61)
      const { status, body } = await whole(connection)
      expect(status).toBe(200)
      expect(body).toEndWith(await expectedFrom(surface))
      await first.calls[0]?.closed
    })

    const outage = bothSurfaces.includes(surface) ? 'NOT_FOUND' : 'UNAVAILABLE'
    const failures: readonly [status: number, code: string][] = [
      [500, outage],
      [429, 'LIMIT_EXCEEDED'],
      [413, 'PAYLOAD_TOO_LARGE'],
    ]
    test.each(failures)(
      'gets an error event when every provider answers %d after the headers',
      async (status, code) => {
        second.handle((_, reply) => reply.json(status, { error: { message: 'no' } }))
        const { connection, reply, words } = await waiting(surface, silent)
        clock.jump(10)
        await connection.until(keepAlive)
        // A 500 may pass, so that it is tried again where no other route is left.
        first.handle((_, again) => again.json(status, { error: { message: 'no' } }), 'stay unasked')
        await reply.json(status, { error: { message: 'no' } })
        const { body, headers } = await whole(connection)
        expect(body).toStartWith(`${keepAlive}${errorEvents[surface.name]}data: {`)
        expect(body).toEndWith('}\n\n')
        expect(body).not.toContain(words.terminal)
        const data = JSON.parse(body.slice(body.indexOf('data: ') + 6))
        const { message, ...error } = surface.name === 'responses' ? data.response.error : data.error
        expect(message).toContain(surface.name)
        // OpenAI's list of codes for failed responses has one for rate limits, and one for all that is no fault of the caller.
        if (surface.name === 'responses')
          expect(error.code).toBe(status === 429 ? 'rate_limit_exceeded' : 'server_error')
        else expect(surface.name === 'gemini' ? error.details[0].reason : error.code).toBe(code)
        if (surface.name === 'messages')
          expect(data).toMatchObject({ type: 'error', request_id: headers.get('request-id') })
      },
    )

    test('gets a status when every provider fails before the headers', async () => {
      second.handle((_, reply) => reply.json(500, {}))
      const { connection, reply } = await waiting(surface, silent)
      first.handle((_, again) => again.json(500, {}))
      await reply.json(500, {})
      expectFailure(surface, await connection.response(), {
        code: outage,
        says: `\`${surface.model}\` exists, but none of its routes can serve now`,
      })
      connection.leave()
    })

    test('gets an error when a provider falls silent in mid-stream, and the provider is disconnected', async () => {
      const { connection } = await waiting(surface, async (reply, words) => {
        await reply.startStream()
        await reply.chunk(words.opening + words.says('hello'))
      })
      await connection.until('hello')
      clock.jump(301)
      const { body } = await whole(connection)
      expect(body).toContain(`"${surface.name === 'gemini' ? 'reason' : 'code'}":"STREAM_INTERRUPTED"`)
      expect(body).toContain('fell silent')
      await first.calls[0]?.closed
      expect(second.calls).toHaveLength(0)
    })
  })
}

describe('a model whose routes fail', () => {
  // The gateway of the other tests does not wait between attempts.
  beforeEach(async () => {
    await gateway.stop()
    const config = failoverConfig([first.url, second.url], { dialects: allDialects })
    gateway = await startGateway({ config, clock, backoffMs: 2000 })
  })

  /** Lets time pass in small steps until the answers have begun. */
  async function passUntil<Value>(awaited: Promise<Value>): Promise<Value> {
    let isOver = false
    void awaited.finally(() => {
      isOver = true
    })
    while (!isOver) {
      clock.jump(0.15)
      await Bun.sleep(20)
    }
    return await awaited
  }

  const askAll = () =>
    Promise.all(
      allSurfaces.map(async (surface) => {
        const response = await ask(gateway, surface, bodyOf(surface, { stream: 'true' }))
        return { surface, response }
      }),
    )

  test('is answered with a status after the retries, not with early headers and an error that no client retries', async () => {
    const busy: UpstreamHandler = (_, reply) => reply.json(503, { error: { message: 'busy' } }, { 'retry-after': '4' })
    for (const each of [first, second]) each.handle(busy)
    const startedMs = clock.monotonicMs()
    const answers = await passUntil(askAll())
    // Each route once, and four retries after 4 s each.
    expect(clock.monotonicMs() - startedMs).toBeGreaterThan(16_000)
    for (const { surface, response } of answers) {
      expect([surface.name, response.status]).toEqual([surface.name, bothSurfaces.includes(surface) ? 404 : 503])
      expect(response.headers.get('x-tollgate-attempts')).toBe('6')
    }
  })

  test('gets early headers all the same once a route takes long', async () => {
    first.handle((_, reply) => reply.json(503, { error: { message: 'busy' } }))
    second.handle(() => {})
    const answers = await passUntil(askAll())
    for (const { response } of answers) {
      expect(response.status).toBe(200)
      await response.body?.cancel()
    }
  })
})

describe('silence in mid-stream', () => {
  test.each([
    [chat, keepAlive],
    [messages, ping],
  ] as const)('is filled every fifteen seconds, on %# with what is legal there', async (surface, filler) => {
    const { connection, reply, words } = await waiting(surface, async (reply, words) => {
      await reply.startStream()
      await reply.chunk(words.opening + words.says('hello'))
    })
    await connection.until('hello')
    clock.jump(15)
    await connection.until(filler)
    await reply.chunk(words.says('again'))
    await connection.until('again')
    clock.jump(15)
    while (connection.received().split(filler).length < 3) await Bun.sleep(5)
    await reply.chunk(words.ending)
    await reply.finish()
    const { body } = await whole(connection)
    expect(body.replaceAll(filler, '').replace('"again"', '"hello"')).toBe(
      (await expectedFrom(surface)).replace(/(event: .*\n)?.*"hello".*\n\n/, (record) => record + record),
    )
  })
})
