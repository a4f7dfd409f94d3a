// Clients that leave: at every stage the provider's connection is closed at once, no other route is tried, and the
// record says 499 exactly once. Five hundred of them leave nothing behind.

import { heapStats } from 'bun:jsc'
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { failoverConfig, startGateway } from './parts/gateway.ts'
import { connect, type RawConnection } from './parts/raw-client.ts'
import { bodyOf, bothSurfaces, requestBytes, type TestSurface } from './parts/surfaces.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from './parts/upstream.ts'
import { wordsFor } from './parts/upstream-words.ts'

const batchSize = 50
const streamCount = 500
/** Passed before each client leaves, so that whatever is kept of a stream is seen. */
const contentBytes = 64 * 1024

const unhandled: unknown[] = []
const onUnhandled = (reason: unknown): void => void unhandled.push(reason)

process.on('unhandledRejection', onUnhandled)
const upstream = startUpstream(() => {})
const spare = startUpstream((_, reply) => reply.json(500, {}))
const gateway = await startGateway({ config: failoverConfig([upstream.url, spare.url]) })

beforeEach(() => {
  upstream.calls.length = 0
  unhandled.length = 0
})

afterAll(async () => {
  process.off('unhandledRejection', onUnhandled)
  await gateway.stop()
  upstream.stop()
  spare.stop()
})

/** The next call of the upstream, after `act` has been done to it. */
function nextCall(act: (call: UpstreamCall, reply: UpstreamReply) => void | Promise<void>): Promise<UpstreamCall> {
  return new Promise((resolve) => {
    upstream.handle(async (call, reply) => {
      await act(call, reply)
      resolve(call)
    })
  })
}

async function send(surface: TestSurface, stream: boolean): Promise<RawConnection> {
  const connection = await connect(gateway.url)
  const body = bodyOf(surface, { stream: String(stream) })
  await connection.send(requestBytes(surface, { key: gateway.key, body }))
  return connection
}

/** The records of generations logged since, once there are that many. */
async function recordsSince(before: number, count: number): Promise<Record<string, unknown>[]> {
  for (;;) {
    const records = requestRecords().slice(before)
    if (records.length >= count) return records
    await Bun.sleep(2)
  }
}

function requestRecords(): Record<string, unknown>[] {
  return gateway.logged().filter(({ message }) => message === 'request')
}

async function expectServing(surface: TestSurface): Promise<void> {
  upstream.handle((call, reply) => reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole))
  const connection = await send(surface, false)
  expect(await connection.response()).toMatchObject({ status: 200 })
  connection.leave()
}

interface Stage {
  readonly when: string
  readonly stream: boolean
  act(call: UpstreamCall, reply: UpstreamReply): void | Promise<void>
  /** What the client has received before it leaves. */
  readonly seen?: string
}

const stages: readonly Stage[] = [
  { when: 'before the provider said anything to a stream', stream: true, act: () => {} },
  { when: 'after the provider sent headers only', stream: true, act: (_, reply) => reply.startStream() },
  {
    when: 'before anything meaningful came',
    stream: true,
    async act(call, reply) {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening)
    },
  },
  {
    when: 'in mid-stream',
    stream: true,
    async act(call, reply) {
      await reply.startStream()
      await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello'))
    },
    seen: 'hello',
  },
  { when: 'while waiting for a whole reply', stream: false, act: () => {} },
  {
    when: 'in the middle of a whole reply',
    stream: false,
    act: (call, reply) =>
      reply.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n${wordsFor(call).whole}`,
      ),
  },
]

for (const surface of bothSurfaces) {
  describe(`a client of the ${surface.name} surface that leaves`, () => {
    test.each(stages)('$when', async ({ act, stream, seen }) => {
      const before = requestRecords().length
      for (let round = 0; round < 10; round++) {
        const called = nextCall(act)
        const connection = await send(surface, stream)
        const call = await called
        if (seen !== undefined) await connection.until(seen)
        connection.leave()
        await call.closed
      }
      const records = await recordsSince(before, 10)
      expect(records.map(({ status }) => status)).toEqual(Array(10).fill(499))
      expect(new Set(records.map(({ request_id }) => request_id)).size).toBe(10)
      expect(records.every(({ attempts }) => attempts === 1)).toBe(true)
      expect(spare.calls).toHaveLength(0)
      await expectServing(surface)
      expect(requestRecords()).toHaveLength(before + 11)
      expect(unhandled).toEqual([])
    })

    test('while its own body is on the way is recorded too, and no provider is called', async () => {
      const before = requestRecords().length
      const connection = await connect(gateway.url)
      const bytes = requestBytes(surface, { key: gateway.key, headers: { 'content-length': '5000' } })
      await connection.send(bytes)
      connection.leave()
      const [record] = await recordsSince(before, 1)
      expect(record).toMatchObject({ status: 499 })
      expect(upstream.calls).toHaveLength(0)
      await expectServing(surface)
    })

    test('after the end was served like any other', async () => {
      const before = requestRecords().length
      void nextCall(async (call, reply) => {
        await reply.startStream()
        await reply.chunk(wordsFor(call).opening + wordsFor(call).says('hello') + wordsFor(call).ending)
        await reply.finish()
      })
      const connection = await send(surface, true)
      expect(await connection.response()).toMatchObject({ status: 200 })
      connection.leave()
      expect(await recordsSince(before, 1)).toMatchObject([{ status: 200 }])
    })
  })
}

describe('five hundred streams cut off by their clients', () => {
  /** Kinds of objects of which each running stream has at least one. */
  const kinds = ['ReadableStream', 'Response', 'Request', 'AbortSignal', 'ReadableStreamDefaultReader']

  function measure(): { bytes: number; objects: number } {
    Bun.gc(true)
    const { objectTypeCounts, heapSize, extraMemorySize } = heapStats()
    const objects = kinds.reduce((sum, kind) => sum + (objectTypeCounts[kind] ?? 0), 0)
    return { bytes: heapSize + extraMemorySize, objects }
  }

  async function abortBatch(surface: TestSurface): Promise<void> {
    upstream.calls.length = 0
    const connections = await Promise.all(Array.from({ length: batchSize }, () => send(surface, true)))
    await Promise.all(connections.map((connection) => connection.until('midway')))
    for (const connection of connections) connection.leave()
    await Promise.all(upstream.calls.map(({ closed }) => closed))
    expect(upstream.calls).toHaveLength(batchSize)
  }

  test.each([...bothSurfaces])(
    'on the $name surface close every upstream and leave nothing behind',
    async (surface) => {
      const filler = 'x'.repeat(contentBytes)
      upstream.handle(async (call, reply) => {
        const { opening, says } = wordsFor(call)
        await reply.startStream()
        await reply.chunk(opening + says(filler) + says('midway'))
      })
      const before = requestRecords().length
      for (let warmUp = 0; warmUp < 3; warmUp++) await abortBatch(surface)
      // A stream is let go once its charge is on the disk.
      await recordsSince(before, 3 * batchSize)
      const atFirst = measure()
      for (let done = 0; done < streamCount; done += batchSize) await abortBatch(surface)
      const records = await recordsSince(before, streamCount + 3 * batchSize)
      const atLast = measure()
      expect(records).toHaveLength(streamCount + 3 * batchSize)
      expect(new Set(records.map(({ request_id }) => request_id)).size).toBe(records.length)
      expect(new Set(records.map(({ status }) => status))).toEqual(new Set([499]))
      expect(spare.calls).toHaveLength(0)
      expect(unhandled).toEqual([])
      // Kept streams would be 500 of each kind and 32 MB; the collector may hold on to a few.
      expect(atLast.objects - atFirst.objects).toBeLessThan(streamCount / 4)
      expect(atLast.bytes - atFirst.bytes).toBeLessThan((streamCount * contentBytes) / 4)
      await expectServing(surface)
    },
  )
})
