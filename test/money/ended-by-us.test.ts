// Row 11 of docs/reference/charges.md: answers that the gateway ends, because of a deadline, silence, a reader that takes
// nothing, or its own end. What was delivered is paid, what was not costs nothing.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createJumpClock, type JumpClock, passTimeUntil } from '../parts/jump-clock.ts'
import type { RawConnection } from '../parts/raw-client.ts'
import type { UpstreamCall, UpstreamReply } from '../parts/upstream.ts'
import { dialectOf, wordsOf } from '../parts/upstream-words.ts'
import { expectPaid, helloCharge, lastError, openTill, type Path, streamedPaths, type Till, terminal } from './till.ts'
import { usd } from './wallets.ts'

interface Running {
  readonly connection: RawConnection
  readonly call: UpstreamCall
  readonly reply: UpstreamReply
}

/** A stream of which the client has seen the beginning. */
async function begin(till: Till, path: Path, members: object): Promise<Running> {
  const begun = Promise.withResolvers<{ call: UpstreamCall; reply: UpstreamReply }>()
  till.upstream.handle(async (call, reply) => {
    const words = wordsOf(dialectOf(call))
    await reply.startStream()
    await reply.chunk(words.opening({ usage: { input_tokens: 3, output_tokens: 1 } }) + words.text('hello'))
    begun.resolve({ call, reply })
  })
  const connection = await till.send(path, members)
  await connection.until('hello')
  return { connection, ...(await begun.promise) }
}

async function endOf({ connection }: Running): Promise<{ id: string; error: object }> {
  const response = await connection.response()
  if (response === 'closed') throw new Error('closed without an end')
  expect(response.body).not.toMatch(terminal)
  connection.leave()
  return { id: response.headers.get('request-id') ?? '', error: lastError(response.body) }
}

describe('the clock', () => {
  let clock: JumpClock
  let till: Till
  beforeAll(async () => {
    clock = createJumpClock()
    // The gateway only knows the tick in which bytes arrived: all steps of an answer together are shorter than the idle timeout.
    till = await openTill({ clock, models: 10, route: 'timeouts: { total_ms: 60000, idle_ms: 58000 }' })
  })
  afterAll(() => till[Symbol.asyncDispose]())

  describe.each([...streamedPaths])('$name', (path) => {
    test('a provider that falls silent is cut off, and what it said is paid', async () => {
      const running = await begin(till, path, till.fresh(path))
      clock.jump(59)
      const { id, error } = await endOf(running)
      await running.call.closed
      const metadata = { cost: usd(helloCharge[path.provider]) }
      expect(error).toMatchObject({ code: 'STREAM_INTERRUPTED', metadata })
      await expectPaid(till, { requestId: id }, helloCharge[path.provider], 'estimated')
    })

    test('an answer beyond its deadline is cut off, and what came of it is paid', async () => {
      const running = await begin(till, path, till.fresh(path))
      const { text } = wordsOf(path.provider)
      for (let step = 1; step <= 4; step++) {
        clock.jump(14)
        await running.reply.chunk(text(`${step}...`))
        await running.connection.until(`${step}...`)
      }
      clock.jump(5)
      const { id, error } = await endOf(running)
      await running.call.closed
      // Four more tokens of four bytes each, and one that was cut in the five bytes before: 21 bytes.
      const charge = helloCharge[path.provider] + 4n * 1_050n
      expect(error).toMatchObject({ code: 'STREAM_INTERRUPTED', metadata: { cost: usd(charge) } })
      await expectPaid(till, { requestId: id }, charge, 'estimated')
    })
  })
})

describe('a client that takes nothing', () => {
  let clock: JumpClock
  let till: Till
  beforeAll(async () => {
    clock = createJumpClock()
    const route = 'timeouts: { total_ms: 3600000, idle_ms: 3600000, content_idle_ms: 3600000 }'
    till = await openTill({ clock, models: 5, route })
  })
  afterAll(() => till[Symbol.asyncDispose]())

  test.each([...streamedPaths])('$name: is let go, and pays for what was on its way', async (path) => {
    const seen = (await till.over(0)).length
    const running = await begin(till, path, till.fresh(path))
    running.connection.pause()
    const { text } = wordsOf(path.provider)
    let sent = 0
    const record = text('x'.repeat(64 * 1024))
    let isClosed = false
    void running.call.closed.finally(() => {
      isClosed = true
    })
    // The provider writes until the call is over: without an end, once no buffer takes any more.
    const write = async () => {
      while (!isClosed) {
        sent += 64 * 1024
        await running.reply.chunk(record)
      }
    }
    void write()
    await passTimeUntil(clock, running.call.closed)
    const [id = ''] = (await till.over(seen + 1)).slice(seen)
    expect((await till.line(id)).status).toBe(499n)
    const [charge] = till.charges(id)
    expect(charge?.amount).toBeGreaterThan(helloCharge[path.provider])
    expect(charge?.amount).toBeLessThanOrEqual(helloCharge[path.provider] + BigInt(sent / 4) * 1_050n)
    running.connection.leave()
  })
})

test.each([...streamedPaths])('$name: what runs when the gateway stops is paid as far as it got', async (path) => {
  const till = await openTill({ server: '{ drain_seconds: 0 }' })
  const running = await begin(till, path, {})
  const [ended] = await Promise.all([endOf(running), till.gateway.app.stop()])
  expect(ended.error).toMatchObject({ code: 'STREAM_INTERRUPTED', metadata: { cost: usd(helloCharge[path.provider]) } })
  expect(till.charges(ended.id)).toMatchObject([{ amount: helloCharge[path.provider], isEstimated: true }])
  expect((await till.line(ended.id)).charge).toBe(helloCharge[path.provider])
  till.close()
})
