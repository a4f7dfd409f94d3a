// Clients that read slowly or not at all: the provider is slowed down instead of our memory being filled, and one that
// takes nothing for long is let go.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { failoverConfig, type Gateway, requestRecords, startGateway, stopAll } from './parts/gateway.ts'
import { createJumpClock, type JumpClock, passTimeUntil } from './parts/jump-clock.ts'
import { connect, type RawConnection } from './parts/raw-client.ts'
import { bodyOf, bothSurfaces, requestBytes, type TestSurface } from './parts/surfaces.ts'
import { startUpstream, type Upstream } from './parts/upstream.ts'
import { wordsFor } from './parts/upstream-words.ts'

const mebibyte = 1024 * 1024
const offeredBytes = 200 * mebibyte
/** The maximum that the sockets of the system hold on two hops, which is not ours to bound, and what we read ahead. */
const takenBytesMax = 48 * mebibyte
const rssGrowthMax = 40 * mebibyte

let clock: JumpClock
let upstream: Upstream
let gateway: Gateway
/** Bytes that the provider could send. */
let taken = 0

beforeEach(async () => {
  taken = 0
  clock = createJumpClock()
  upstream = startUpstream(async (call, reply) => {
    const { opening, says } = wordsFor(call)
    const record = Buffer.from(says('x'.repeat(64 * 1024)))
    await reply.startStream()
    await reply.chunk(opening + says('hello'))
    while (taken < offeredBytes && !call.isClosed()) {
      await reply.chunk(record)
      taken += record.length
    }
  })
  gateway = await startGateway({ config: failoverConfig([upstream.url]), clock })
})

afterEach(() => stopAll(gateway, upstream))

/** A client that has seen the beginning and reads no further, once nothing more moves. */
async function stalledClient(surface: TestSurface): Promise<RawConnection> {
  const connection = await connect(gateway.url)
  await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: 'true' }) }))
  await connection.until('hello')
  connection.pause()
  let before = -1
  for (let still = 0; still < 10; still = taken === before ? still + 1 : 0) {
    before = taken
    await Bun.sleep(20)
  }
  return connection
}

function residentBytes(): number {
  Bun.gc(true)
  return process.memoryUsage.rss()
}

describe.each([...bothSurfaces])('a client of the $name surface that stops reading', (surface) => {
  test('stops the provider, and costs no more memory than a few reads', async () => {
    // Once without measuring, so that what any first stream needs is there already.
    const first = await stalledClient(surface)
    first.leave()
    await upstream.calls[0]?.closed
    taken = 0

    const before = residentBytes()
    const connection = await stalledClient(surface)
    expect(residentBytes() - before).toBeLessThan(rssGrowthMax)
    expect(taken).toBeLessThan(takenBytesMax)

    connection.leave()
    await upstream.calls[1]?.closed
    expect(taken).toBeLessThan(takenBytesMax)
  })

  test('is let go after thirty seconds, and so is the provider', async () => {
    const connection = await stalledClient(surface)
    expect(upstream.calls[0]?.isClosed()).toBe(false)
    await passTimeUntil(clock, upstream.calls[0]?.closed ?? Promise.reject())
    const records = await requestRecords(gateway, 1)
    expect(records).toMatchObject([{ status: 499 }])
    // Whatever lies in the system's buffers comes first, then the end; the runtime takes some seconds for it.
    connection.resume()
    await connection.closed
  })

  test('and reads on in time gets every byte', async () => {
    const records = 400
    upstream.handle(async (call, reply) => {
      const { opening, says, ending } = wordsFor(call)
      const record = Buffer.from(says('y'.repeat(64 * 1024)))
      await reply.startStream()
      await reply.chunk(opening + says('hello'))
      for (let sent = 0; sent < records; sent++) {
        await reply.chunk(record)
        taken += record.length
      }
      await reply.chunk(ending)
      await reply.finish()
    })
    const connection = await stalledClient(surface)
    clock.jump(20)
    connection.resume()
    const response = await connection.response()
    if (response === 'closed') throw new Error('closed before the end')
    expect(response.body.match(/y{65536}/g)).toHaveLength(records)
    expect(response.body).toContain(surface.name === 'chat' ? 'data: [DONE]' : 'event: message_stop')
    connection.leave()
  })
})
