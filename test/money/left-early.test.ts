// Rows 4 and 5 of docs/reference/charges.md, and promise M8: a client that leaves pays for what it was sent, token by token,
// and for nothing it was not; the provider is cut off at once. Every surface, both lanes, streamed or not.

import { afterAll, describe, expect, test } from 'bun:test'
import type { UpstreamCall, UpstreamReply } from '../parts/upstream.ts'
import { dialectOf, usageIn, wantsStream, wordsOf } from '../parts/upstream-words.ts'
import { allPaths, expectPaid, expectUnpaid, openTill, type Path, streamedPaths, wholePaths } from './till.ts'

let seen = 0

const till = await openTill()
afterAll(() => till[Symbol.asyncDispose]())

const tokens = 8
/** Four bytes, which count as one token. */
const token = (at: number): string => `t${String(at).padStart(2, '0')}.`
const usageAtStart = { input_tokens: 3, output_tokens: 1 }

/** On Messages the input is known from the start: 3 × 350. On Chat it is estimated: "hi" with its overhead, 8 × 350. */
function price({ provider }: Path, output: number): bigint {
  return (provider === 'messages' ? 1_050n : 2_800n) + BigInt(output) * 1_050n
}

/** The next call, once the provider has done that to it. */
function nextCall(act: (call: UpstreamCall, reply: UpstreamReply) => Promise<void>): Promise<UpstreamCall> {
  return new Promise((resolve) => {
    till.upstream.handle(async (call, reply) => {
      await act(call, reply)
      resolve(call)
    })
  })
}

/** The id of the request that has just ended. */
async function ended(): Promise<string> {
  seen += 1
  return (await till.over(seen)).at(-1) ?? ''
}

describe.each([...streamedPaths])('$name', (path) => {
  test.each(Array.from({ length: tokens }, (_, at) => at + 1))('left after token %i: pays for that many', async (k) => {
    const called = nextCall(async (call, reply) => {
      const words = wordsOf(dialectOf(call))
      await reply.startStream()
      await reply.chunk(words.opening({ usage: usageAtStart }))
      for (let at = 1; at <= k; at++) await reply.chunk(words.text(token(at)))
    })
    const connection = await till.send(path)
    await connection.until(token(k))
    connection.leave()
    await (await called).closed
    const requestId = await ended()
    await expectPaid(till, { requestId }, price(path, k), 'estimated')
    expect((await till.line(requestId)).status).toBe(499n)
  })

  test.each([1, 7, 40, 90])(
    'left at token %i of a stream that runs on: pays for what was on its way at most',
    async (k) => {
      let sent = 0
      const called = nextCall(async (call, reply) => {
        const words = wordsOf(dialectOf(call))
        await reply.startStream()
        await reply.chunk(words.opening({ usage: usageAtStart }))
        while (sent < 99) await reply.chunk(words.text(token(++sent)))
      })
      const connection = await till.send(path)
      await connection.until(token(k))
      connection.leave()
      await (await called).closed
      const requestId = await ended()
      const [charge] = till.charges(requestId)
      expect(charge?.isEstimated).toBe(true)
      expect(charge?.amount).toBeGreaterThanOrEqual(price(path, k))
      expect(charge?.amount).toBeLessThanOrEqual(price(path, sent))
      expect((await till.wallets.read()).held).toBe(0n)
    },
  )

  test('left when all was said but the end: pays for all of it, once', async () => {
    const called = nextCall(async (call, reply) => {
      const words = wordsOf(dialectOf(call))
      const usage = usageIn(path.provider, { input: 3, output: 9 })
      const [ending = ''] = words.ending({ usage }).split(/(?=data: \[DONE\]|event: message_stop)/)
      await reply.startStream()
      await reply.chunk(words.opening({ usage, usageAtStart }) + words.text(token(1)) + ending)
    })
    const connection = await till.send(path)
    await connection.until(token(1))
    connection.leave()
    await (await called).closed
    const [charge] = till.charges(await ended())
    expect(charge?.amount).toBeGreaterThanOrEqual(price(path, 1))
    expect(charge?.amount).toBeLessThanOrEqual(price(path, 9))
  })

  const silences: Record<string, (reply: UpstreamReply, opening: string) => Promise<void>> = {
    'before the provider answers': async () => {},
    'when the provider has answered with its head': (reply) => reply.startStream(),
    'before token 1': async (reply, opening) => {
      await reply.startStream()
      await reply.chunk(opening)
    },
  }
  test.each(Object.keys(silences))('left %s: pays nothing', async (when) => {
    const called = nextCall(
      (call, reply) =>
        silences[when]?.(reply, wordsOf(dialectOf(call)).opening({ usage: usageAtStart })) ?? Promise.reject(),
    )
    const connection = await till.send(path)
    const call = await called
    connection.leave()
    await call.closed
    expect(await expectUnpaid(till, await ended())).toMatchObject({ status: 499n })
  })
})

describe('chat from chat (bytes), left between the end of the answer and its count', () => {
  const [path] = streamedPaths
  if (!path) throw new Error('there is no path')
  const usage = usageIn('chat', { input: 3, output: 4000 })
  const { opening, text, ending } = wordsOf('chat')
  /** The end that clients see, and the count with the terminal marker, which come apart. */
  const [finish = '', count = ''] = ending({ usage }).split(/(?=data: [^\n]*"choices":\[\])/)

  test('pays what was counted: leaving there does not make hidden reasoning free', async () => {
    const mayCount = Promise.withResolvers<void>()
    const called = nextCall(async (_, reply) => {
      await reply.startStream()
      await reply.chunk(opening({ usage }) + text(token(1)) + finish)
      await mayCount.promise
      await reply.chunk(count)
      await reply.finish()
    })
    const connection = await till.send(path)
    await connection.until('"finish_reason":"stop"')
    connection.leave()
    // The gateway has noticed by the time it has nothing more to send to this client.
    await Bun.sleep(50)
    mayCount.resolve()
    await called
    // 3 × 350 and 4,000 × 1,050, beyond a thousand tokens of input neither.
    await expectPaid(till, { requestId: await ended() }, 4_201_050n, 'reported')
  })

  test('pays what it was sent where the count never comes, and is not waited for long', async () => {
    const called = nextCall(async (_, reply) => {
      await reply.startStream()
      await reply.chunk(opening({ usage }) + text(token(1)) + finish)
    })
    const connection = await till.send(path)
    await connection.until('"finish_reason":"stop"')
    connection.leave()
    await (await called).closed
    await expectPaid(till, { requestId: await ended() }, price(path, 1), 'estimated')
  })
})

describe.each([...wholePaths])('$name', (path) => {
  test.each(['nothing', 'half of it'])('left when the provider has sent %s: pays nothing', async (what) => {
    const called = nextCall(async (call, reply) => {
      const words = wordsOf(dialectOf(call))
      if (what === 'nothing') return
      if (wantsStream(call)) {
        await reply.startStream()
        await reply.chunk(words.opening({ usage: usageAtStart }) + words.text(token(1)))
        return
      }
      const whole = JSON.stringify(words.whole({ texts: [token(1)], usage: usageAtStart }))
      await reply.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n${whole}`)
    })
    const connection = await till.send(path)
    const call = await called
    connection.leave()
    await call.closed
    expect(await expectUnpaid(till, await ended())).toMatchObject({ status: 499n })
  })
})

test('clients that left paid exactly their transfers', async () => {
  const { posted, held } = await till.wallets.read()
  const ids = await till.over(seen)
  const paid = ids.reduce((sum, id) => sum + (till.charges(id)[0]?.amount ?? 0n), 0n)
  expect({ posted, held }).toEqual({ posted: 5_000_000_000n - paid, held: 0n })
  expect(new Set(ids).size).toBe(seen)
})

test('left while the hold is made: no provider is called and nothing is paid, on every path', async () => {
  let holding = Promise.withResolvers<void>()
  let left = Promise.withResolvers<void>()
  const slow = await openTill({
    wrapLedger: (real) => ({
      ...real,
      async hold(request) {
        holding.resolve()
        await left.promise
        return await real.hold(request)
      },
    }),
  })
  for (const [at, path] of allPaths.entries()) {
    holding = Promise.withResolvers<void>()
    left = Promise.withResolvers<void>()
    const connection = await slow.send(path)
    await holding.promise
    connection.halfClose()
    // The runtime closes its side once it has noticed.
    await connection.closed
    left.resolve()
    const requestId = (await slow.over(at + 1))[at] ?? ''
    expect(await expectUnpaid(slow, requestId)).toMatchObject({ status: 499n, attempts: '[]' })
  }
  expect(slow.upstream.calls).toHaveLength(0)
  await slow[Symbol.asyncDispose]()
})
