// Providers that are alive and yet get nowhere: keep-alives keep a connection open and no more. Time is pushed ahead, a
// little less than the silence that would end the stream in each step.

import { afterEach, describe, expect, test } from 'bun:test'
import { failoverConfig, type Gateway, startGateway } from '../parts/gateway.ts'
import { createJumpClock } from '../parts/jump-clock.ts'
import { connect, type RawConnection } from '../parts/raw-client.ts'
import { bodyOf, bothSurfaces, requestBytes, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../parts/upstream.ts'
import { chatWords, messagesWords, wordsFor } from '../parts/upstream-words.ts'

/** The gateway looks at its clocks ten times a second. */
const tickMs = 120

let gateway: Gateway | undefined
let upstream: Upstream | undefined
afterEach(async () => {
  await gateway?.stop()
  upstream?.stop()
})

interface Scene {
  readonly connection: RawConnection
  readonly reply: UpstreamReply
  jump(seconds: number): Promise<void>
}

/** A stream that has said one word. `timeouts` goes into the only route. */
async function startScene(surface: TestSurface, { timeouts = '' } = {}): Promise<Scene> {
  const clock = createJumpClock()
  const begun = Promise.withResolvers<UpstreamReply>()
  upstream = startUpstream(async (call, reply) => {
    const { opening, says } = wordsFor(call)
    await reply.startStream()
    await reply.chunk(opening + says('hello'))
    begun.resolve(reply)
  })
  const config = failoverConfig([upstream.url], { route: () => `timeouts: { ${timeouts} }` })
  gateway = await startGateway({ config, clock })
  const connection = await connect(gateway.url)
  await connection.send(requestBytes(surface, { key: gateway.key, body: bodyOf(surface, { stream: 'true' }) }))
  const reply = await begun.promise
  await connection.until('hello')
  const jump = async (seconds: number): Promise<void> => {
    clock.jump(seconds)
    await Bun.sleep(tickMs)
  }
  return { connection, reply, jump }
}

/** A sign of life has come through. */
async function ping({ connection, reply }: Scene, name: string): Promise<void> {
  await reply.chunk(`: ${name}\n\n`)
  await connection.until(`: ${name}\n\n`)
}

async function expectCut({ connection }: Scene, why: string): Promise<void> {
  const response = await connection.response()
  if (response === 'closed') throw new Error('cut off without a word')
  expect(response.status).toBe(200)
  expect(response.body).toContain('"code":"STREAM_INTERRUPTED"')
  expect(response.body).toContain(why)
}

describe.each([...bothSurfaces])('a stream of the $name surface', (surface) => {
  test('may send only keep-alives for 300 s', async () => {
    const scene = await startScene(surface)
    for (let seconds = 99; seconds <= 297; seconds += 99) {
      await scene.jump(99)
      await ping(scene, `at ${seconds}`)
    }
    expect(scene.connection.received()).not.toContain('STREAM_INTERRUPTED')
    await scene.jump(4)
    await expectCut(scene, `${surface.name}-0 sent only keep-alives`)
    await upstream?.calls[0]?.closed
  })

  test('starts anew with every word', async () => {
    const scene = await startScene(surface)
    const { says } = surface.name === 'chat' ? chatWords : messagesWords
    for (let round = 1; round <= 2; round++) {
      for (let n = 1; n <= 2; n++) {
        await scene.jump(140)
        await ping(scene, `${round} ${n}`)
      }
      await scene.reply.chunk(says(`word ${round}`))
      await scene.connection.until(`word ${round}`)
    }
    expect(scene.connection.received()).not.toContain('STREAM_INTERRUPTED')
    scene.connection.leave()
  })

  test('may be given another limit by its route', async () => {
    const scene = await startScene(surface, { timeouts: 'content_idle_ms: 20000' })
    await scene.jump(19)
    await ping(scene, 'one')
    await scene.jump(2)
    await expectCut(scene, `${surface.name}-0 sent only keep-alives`)
  })

  test('that says nothing at all ends after 300 s', async () => {
    const scene = await startScene(surface)
    await scene.jump(299)
    expect(scene.connection.received()).not.toContain('STREAM_INTERRUPTED')
    await scene.jump(2)
    await expectCut(scene, `${surface.name}-0 fell silent`)
  })

  test('ends after a quarter of an hour whatever comes', async () => {
    const scene = await startScene(surface, { timeouts: 'idle_ms: 900000, content_idle_ms: 900000' })
    await scene.jump(899)
    await ping(scene, 'almost')
    await scene.jump(2)
    await expectCut(scene, `${surface.name}-0 took too long`)
  })
})
