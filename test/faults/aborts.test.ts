// Clients that leave, at every stage of an answer, on both surfaces, streamed and not: the provider's connection is closed
// at once, no other route is tried, the request is recorded once, and the wallet pays by the row of docs/reference/charges.md
// that applies. Five hundred of them leave nothing behind.

import { heapStats } from 'bun:jsc'
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createWallets } from '../money/wallets.ts'
import { failoverConfig, requestRecords, startGateway, stopAll } from '../parts/gateway.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { bodyOf, bothSurfaces, requestBytes, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from '../parts/upstream.ts'
import { answerHello, wordsFor } from '../parts/upstream-words.ts'

const first = startUpstream(() => {})
const spare = startUpstream(answerHello)
const gateway = await startGateway({
  config: failoverConfig([first.url, spare.url], {
    model: 'max_output_tokens: 1000, default_max_tokens: 1000, price: { input: "1.00", output: "2.00" }',
  }),
})
const wallets = createWallets(gateway)
const unhandled: unknown[] = []
const onUnhandled = (reason: unknown): void => void unhandled.push(reason)
process.on('unhandledRejection', onUnhandled)
/** Requests recorded before the test. */
let seen = 0

beforeEach(async () => {
  first.calls.length = 0
  seen = (await requestRecords(gateway, 0)).length
})

afterAll(async () => {
  process.off('unhandledRejection', onUnhandled)
  await stopAll(gateway, first, spare)
})

/** The records of this test's requests, once there are that many. */
async function records(count: number): Promise<Record<string, unknown>[]> {
  return (await requestRecords(gateway, seen + count)).slice(seen)
}

async function send(surface: TestSurface, stream: boolean): Promise<RawConnection> {
  const connection = await connect(gateway.url)
  await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: String(stream) }) }))
  return connection
}

async function expectServing(surface: TestSurface): Promise<void> {
  first.handle(answerHello)
  const connection = await send(surface, false)
  expect(await connection.response()).toMatchObject({ status: 200 })
  connection.leave()
}

interface Stage {
  readonly when: 'before headers' | 'after headers' | 'before content' | 'mid' | 'after last'
  readonly stream: boolean
  act(call: UpstreamCall, reply: UpstreamReply): void | Promise<void>
  /** Waited for before the client leaves. */
  until?(connection: RawConnection): Promise<unknown>
  /** Nothing · something, at most the whole answer · exactly the whole answer: 3 in at $1, 2 out at $2, per million. */
  readonly pays: 'nothing' | 'what was delivered' | 'all'
}

const wholeNanos = 3n * 1000n + 2n * 2000n
const wholeHead = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n'

async function sayHello(call: UpstreamCall, reply: UpstreamReply): Promise<void> {
  await reply.startStream()
  await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello'))
}

const stages: readonly Stage[] = [
  { when: 'before headers', stream: true, act: () => {}, pays: 'nothing' },
  { when: 'after headers', stream: true, act: (_, reply) => reply.startStream(), pays: 'nothing' },
  {
    when: 'before content',
    stream: true,
    async act(call, reply) {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening)
    },
    pays: 'nothing',
  },
  {
    when: 'mid',
    stream: true,
    act: sayHello,
    until: (connection) => connection.until('hello'),
    pays: 'what was delivered',
  },
  {
    when: 'after last',
    stream: true,
    act: answerHello,
    until: (connection) => connection.response(),
    pays: 'all',
  },
  { when: 'before headers', stream: false, act: () => {}, pays: 'nothing' },
  { when: 'before content', stream: false, act: (_, reply) => reply.write(wholeHead), pays: 'nothing' },
  // An answer that is not streamed delivers nothing before its end.
  { when: 'mid', stream: false, act: (call, reply) => reply.write(wholeHead + wordsFor(call).whole), pays: 'nothing' },
  {
    when: 'after last',
    stream: false,
    act: answerHello,
    until: (connection) => connection.response(),
    pays: 'all',
  },
]

async function leaveAt(surface: TestSurface, { act, stream, until }: Stage): Promise<UpstreamCall> {
  const acted = Promise.withResolvers<UpstreamCall>()
  first.handle(async (call, reply) => {
    await act(call, reply)
    acted.resolve(call)
  })
  const connection = await send(surface, stream)
  const call = await acted.promise
  await until?.(connection)
  connection.leave()
  return call
}

const rounds = 10

describe.each([...bothSurfaces])('on the $name surface, leaving', (surface) => {
  test.each([...stages])('$when, streamed: $stream, pays $pays', async (stage) => {
    const isOver = stage.pays === 'all'
    const before = await wallets.read()
    for (let round = 0; round < rounds; round++) {
      const call = await leaveAt(surface, stage)
      // At once: the record is written when the client has gone, and by then the provider's call is closed.
      await records(round + 1)
      if (!isOver) await call.closed
    }
    const recorded = await records(rounds)
    expect(recorded.map(({ status }) => status)).toEqual(Array(rounds).fill(isOver ? 200 : 499))
    expect(recorded.every(({ attempts }) => attempts === 1)).toBe(true)
    expect(new Set(recorded.map(({ request_id }) => request_id)).size).toBe(rounds)
    expect(first.calls).toHaveLength(rounds)
    expect(spare.calls).toHaveLength(0)

    const after = await wallets.read()
    const paid = before.posted - after.posted
    if (stage.pays === 'nothing') expect(paid).toBe(0n)
    if (isOver) expect(paid).toBe(BigInt(rounds) * wholeNanos)
    if (stage.pays === 'what was delivered') {
      expect(paid).toBeGreaterThan(0n)
      // One word of output, and an input that is reported as 3 or estimated from a body of some sixty bytes.
      expect(paid).toBeLessThanOrEqual(BigInt(rounds) * (60n * 1000n + 2n * 2000n))
    }
    expect(after.held).toBe(0n)
    await expectServing(surface)
    expect(await records(rounds + 1)).toHaveLength(rounds + 1)
    expect(unhandled).toEqual([])
  })

  test('while its own body is being sent is recorded, and no provider is called', async () => {
    const connection = await connect(gateway.url)
    await connection.send(requestBytes(surface, { key: gateway.key, headers: { 'content-length': '5000' } }))
    connection.leave()
    expect(await records(1)).toMatchObject([{ status: 499 }])
    expect(first.calls).toHaveLength(0)
    await expectServing(surface)
  })
})

// A client that closes its sending side has left (docs/decisions/0083). It gets nothing, so its provider must not go on working.
describe.each([...bothSurfaces])('a client of the $name surface that half-closes its connection', (surface) => {
  test.each([true, false])('ends its call before the provider answers, streamed: %p', async (stream) => {
    const before = await wallets.read()
    const disconnected = Promise.withResolvers<void>()
    // It answers as soon as the client is known to be gone, which is too late.
    first.handle(async (call, reply) => {
      await disconnected.promise
      await answerHello(call, reply)
    }, 'stay unasked')
    const connection = await send(surface, stream)
    connection.halfClose()
    await connection.closed
    disconnected.resolve()
    expect((await records(1))[0]).toMatchObject({ status: 499 })
    await Promise.all(first.calls.map(({ closed }) => closed))
    expect(connection.received()).toBe('')
    expect(first.calls.length).toBeLessThanOrEqual(1)
    expect(spare.calls).toHaveLength(0)
    expect(await wallets.read()).toEqual(before)
  })

  test('in mid-stream pays for what it was sent', async () => {
    const before = await wallets.read()
    first.handle(sayHello)
    const connection = await send(surface, true)
    await connection.until('hello')
    connection.halfClose()
    await connection.closed
    await first.calls[0]?.closed
    expect((await records(1))[0]).toMatchObject({ status: 499 })
    const after = await wallets.read()
    expect(before.posted - after.posted).toBeGreaterThan(0n)
    expect(after.held).toBe(0n)
    expect(spare.calls).toHaveLength(0)
  })
})

test.each([...bothSurfaces])(
  'a client of the $name surface that sends two requests at once gets both answers',
  async (surface) => {
    const before = await wallets.read()
    first.handle(answerHello)
    const connection = await send(surface, true)
    await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface) }))
    const [streamed, whole] = [await connection.response(), await connection.response()]
    if (streamed === 'closed' || whole === 'closed') throw new Error('closed')
    expect(streamed.headers.get('content-type')).toStartWith('text/event-stream')
    expect(whole.headers.get('content-type')).toBe('application/json')
    expect((await records(2)).map(({ status }) => status)).toEqual([200, 200])
    expect(before.posted - (await wallets.read()).posted).toBe(2n * wholeNanos)
  },
)

describe('five hundred streams that their clients leave', () => {
  const batchSize = 50
  const streamCount = 500
  /** Sent before each client leaves, so that whatever is kept of a stream is seen. */
  const contentBytes = 64 * 1024
  /** Kinds of objects of which each running stream has at least one. */
  const kinds = ['AsyncFunctionGenerator', 'FullPromiseReaction', 'Map']

  function measure(): { bytes: number; objects: number } {
    Bun.gc(true)
    const { objectTypeCounts, heapSize, extraMemorySize } = heapStats()
    const objects = kinds.reduce((sum, kind) => sum + (objectTypeCounts[kind] ?? 0), 0)
    return { bytes: heapSize + extraMemorySize, objects }
  }

  /** Ends when the batch is charged: with a slow commit outstanding, the gateway would refuse the next one. */
  async function abortBatch(surface: TestSurface, recordedAfter: number): Promise<void> {
    first.calls.length = 0
    const connections = await Promise.all(Array.from({ length: batchSize }, () => send(surface, true)))
    await Promise.all(connections.map((connection) => connection.until('midway')))
    for (const connection of connections) connection.leave()
    await Promise.all(first.calls.map(({ closed }) => closed))
    expect(first.calls).toHaveLength(batchSize)
    await records(recordedAfter)
  }

  test.each([...bothSurfaces])(
    'on the $name surface close every upstream and leave nothing behind',
    async (surface) => {
      const filler = 'x'.repeat(contentBytes)
      first.handle(async (call, reply) => {
        const { opening, says } = wordsFor(call)
        await reply.startStream()
        await reply.chunk(opening + says(filler) + says('midway'))
      })
      const warmUp = 3 * batchSize
      for (let sent = batchSize; sent <= warmUp; sent += batchSize) await abortBatch(surface, sent)
      // A stream is released once its charge is on the disk.
      const atFirst = measure()
      for (let sent = batchSize; sent <= streamCount; sent += batchSize) await abortBatch(surface, warmUp + sent)
      const recorded = await records(streamCount + warmUp)
      const atLast = measure()
      expect(recorded).toHaveLength(streamCount + warmUp)
      expect(new Set(recorded.map(({ request_id }) => request_id)).size).toBe(recorded.length)
      expect(new Set(recorded.map(({ status }) => status))).toEqual(new Set([499]))
      expect(spare.calls).toHaveLength(0)
      expect(unhandled).toEqual([])
      // Kept streams would be 500 of each kind and 32 MB; the collector may hold on to a few.
      expect(atLast.objects - atFirst.objects).toBeLessThan(streamCount / 4)
      expect(atLast.bytes - atFirst.bytes).toBeLessThan((streamCount * contentBytes) / 4)
      await expectServing(surface)
    },
  )
})
