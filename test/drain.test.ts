// A gateway that stops: running streams of both surfaces are finished, new requests get a retryable error, and
// after the drain time the remaining requests are cut off.

import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { failoverConfig, type Gateway, startGateway } from './parts/gateway.ts'
import { connect, type RawConnection } from './parts/raw-client.ts'
import { bodyOf, bothSurfaces, expectFailure, requestBytes, type TestSurface } from './parts/surfaces.ts'
import { startUpstream, type UpstreamReply } from './parts/upstream.ts'
import { type Words, wordsFor } from './parts/upstream-words.ts'

interface Running {
  readonly surface: TestSurface
  readonly connection: RawConnection
  readonly reply: UpstreamReply
  readonly words: Words
}

/** An upstream that begins each stream and leaves the rest to the test. */
function startHesitant() {
  let next: PromiseWithResolvers<{ reply: UpstreamReply; words: Words }> | undefined
  const upstream = startUpstream(async (call, reply) => {
    const words = wordsFor(call)
    await reply.startStream()
    await reply.chunk(words.opening + words.says('hello'))
    next?.resolve({ reply, words })
  })
  return {
    upstream,
    async begin(gateway: Gateway, surface: TestSurface): Promise<Running> {
      next = Promise.withResolvers()
      const connection = await connect(gateway.url)
      await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: 'true' }) }))
      const { reply, words } = await next.promise
      await connection.until('hello')
      return { surface, connection, reply, words }
    },
  }
}

/** A connection whose first request has begun to arrive. */
async function begun(gateway: Gateway, bytes: Buffer): Promise<{ connection: RawConnection; rest: Buffer }> {
  const connection = await connect(gateway.url)
  await connection.send(bytes.subarray(0, 5))
  // When a connection opened after this one has been answered, these bytes have been read.
  await fetch(`${gateway.url}/healthz`, { headers: { connection: 'close' } })
  return { connection, rest: bytes.subarray(5) }
}

test('running streams are finished, new requests are refused with a time to come back', async () => {
  const { upstream, begin } = startHesitant()
  const gateway = await startGateway({ config: failoverConfig([upstream.url]) })
  const running: Running[] = []
  for (const surface of bothSurfaces) {
    for (let count = 0; count < 5; count++) running.push(await begin(gateway, surface))
  }
  const late = await Promise.all(
    bothSurfaces.map(async (surface) => ({
      surface,
      ...(await begun(gateway, requestBytes(surface, { key: gateway.key }))),
    })),
  )
  const probe = await begun(gateway, Buffer.from('GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n'))
  const calls = upstream.calls.length

  const stopped = gateway.app.stop()
  for (const { surface, connection, rest } of late) {
    await connection.send(rest)
    const response = await connection.response()
    expectFailure(surface, response, { code: 'OVERLOADED' })
    const headers = response === 'closed' ? undefined : response.headers
    expect(headers?.get('retry-after')).toMatch(/^[1-9][0-9]*$/)
    expect(headers?.get('retry-after-ms')).toMatch(/^[1-9][0-9]*$/)
    await connection.closed
  }
  await probe.connection.send(probe.rest)
  expect(await probe.connection.response()).toMatchObject({ status: 503 })
  await expect(connect(gateway.url)).rejects.toThrow()
  expect(upstream.calls).toHaveLength(calls)

  for (const { reply, words } of running) {
    await reply.chunk(words.says('and goodbye') + words.ending)
    await reply.finish()
  }
  for (const { connection, words } of running) {
    const response = await connection.response()
    if (response === 'closed') throw new Error('cut off')
    expect(response.body).toContain('and goodbye')
    expect(response.body).toContain(words.terminal)
  }
  expect(await stopped).toBe(true)
  const records = gateway.logged().filter(({ message }) => message === 'request')
  expect(records.filter(({ status }) => status === 200)).toHaveLength(running.length)
  upstream.stop()
  rmSync(dirname(gateway.dataFolder), { recursive: true, force: true })
})

test('a stream that does not end in the time given is cut off, and its provider with it', async () => {
  const { upstream, begin } = startHesitant()
  const config = `server: { drain_seconds: 0.2 }\n${failoverConfig([upstream.url])}`
  const gateway = await startGateway({ config })
  const running: Running[] = []
  for (const surface of bothSurfaces) running.push(await begin(gateway, surface))
  expect(await gateway.app.stop()).toBe(false)
  for (const { connection } of running) await connection.closed
  await Promise.all(upstream.calls.map(({ closed }) => closed))
  const records = gateway.logged().filter(({ message }) => message === 'request')
  expect(records).toHaveLength(running.length)
  upstream.stop()
  rmSync(dirname(gateway.dataFolder), { recursive: true, force: true })
})

test('an open page that comes back while a gateway stops does not keep it from stopping', async () => {
  const gateway = await startGateway({
    env: { TOLLGATE_DRAIN_DELAY_SECONDS: '1' },
    config: 'server: { drain_seconds: 60, catalog: public }',
  })
  const follow = async () => {
    const answer = await fetch(`${gateway.url}/catalog/events`)
    await answer.text()
    return answer.status
  }
  const first = follow()
  await fetch(`${gateway.url}/healthz`)
  const stopped = gateway.app.stop()
  expect(await first).toBe(200)
  // Still within the delay, in which requests are served.
  expect(await follow()).toBe(503)
  expect(await stopped).toBe(true)
})

test('a gateway that leaves serves kept connections once more, and asks their clients to connect elsewhere', async () => {
  const gateway = await startGateway({ env: { TOLLGATE_DRAIN_DELAY_SECONDS: '60' } })
  const kept = await connect(gateway.url)
  const closingOf = async (connection: RawConnection) => {
    await connection.send('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
    const response = await connection.response()
    return response === 'closed' ? response : response.headers.get('connection')
  }
  expect(await closingOf(kept)).toBeNull()
  const stopped = gateway.app.stop()
  expect(await closingOf(kept)).toBe('close')
  await kept.closed
  expect(await closingOf(await connect(gateway.url))).toBe('close')
  gateway.app.shortenDrain()
  await stopped
})
