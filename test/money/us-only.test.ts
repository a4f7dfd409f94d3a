// Work that the provider keeps in the United States costs a factor more where the price says so: held for when it is
// asked for, charged when the provider says that it was done, kept with the charge, and explained.

import { afterAll, describe, expect, test } from 'bun:test'
import { stopAll } from '../parts/gateway.ts'
import { say, usageIn, wordsOf } from '../parts/upstream-words.ts'
import { allPaths, type Explained, expectPaid, messagesPaths, openTill } from './till.ts'

const priced = await openTill({ price: '{ input: "1.00", output: "2.00", web_search: "10.00", us_only: "1.1" }' })
const unpriced = await openTill({ price: '{ input: "1.00", output: "2.00" }' })
afterAll(() => stopAll(priced, unpriced))

const workedIn = (place: string | null) => ({
  ...usageIn('messages', { input: 1000, output: 100 }),
  inference_geo: place,
})

describe.each([...messagesPaths])('$name', (path) => {
  test('inference in the US is charged with the factor, and the charge says why', async () => {
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], usage: workedIn('us') }))
    const answer = await priced.ask(path, { inference_geo: 'us' })
    expect(priced.upstream.calls.at(-1)?.json()).toMatchObject({ inference_geo: 'us' })
    // (1000 × 1 µ$ + 100 × 2 µ$) × 1.1
    expect(answer.cost).toBe('0.00132')
    await expectPaid(priced, answer, 1_320_000n)
    expect(priced.charges(answer.requestId)[0]?.usage).toMatchObject({ isUsOnly: true })
    const { usage, charge } = (await priced.wallets.explain(answer.requestId)) as Explained
    expect(usage).toMatchObject({ us_only: true })
    expect(charge.lines).toEqual([
      { kind: 'input', tokens: 1000, price_per_million: '1.10', amount: '0.0011' },
      { kind: 'output', tokens: 100, price_per_million: '2.20', amount: '0.00022' },
    ])
  })

  test('searches cost the same everywhere', async () => {
    const usage = { ...workedIn('us'), server_tool_use: { web_search_requests: 1 } }
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], usage }))
    const answer = await priced.ask(path, { inference_geo: 'us' })
    await expectPaid(priced, answer, 11_320_000n)
  })

  test('inference elsewhere costs no more, even if the US was requested', async () => {
    for (const place of ['global', null]) {
      priced.upstream.handle((call, reply) => say(call, reply, { texts: ['there'], usage: workedIn(place) }))
      const answer = await priced.ask(path, { inference_geo: 'us' })
      await expectPaid(priced, answer, 1_200_000n)
      expect((await priced.wallets.explain(answer.requestId)) as Explained).toMatchObject({
        usage: { us_only: false },
      })
    }
  })

  test('a model without a factor costs the same everywhere', async () => {
    unpriced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], usage: workedIn('us') }))
    const answer = await unpriced.ask(path, { inference_geo: 'us' })
    await expectPaid(unpriced, answer, 1_200_000n)
  })

  test('holds more only if it is requested', async () => {
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], usage: workedIn(null) }))
    const held = async (asked: object, max: number) => {
      const answer = await priced.ask(path, { ...asked, max_tokens: max })
      return (await priced.line(answer.requestId)).held ?? 0n
    }
    // The same request twice, so that only the output differs: a thousand tokens of it.
    const outputOf = async (asked: object) => (await held(asked, 2000)) - (await held(asked, 1000))
    expect(await outputOf({})).toBe(2_000_000n)
    expect(await outputOf({ inference_geo: 'us' })).toBe(2_200_000n)
  })
})

// An account may be set to it, without a member in the request.
describe.each(allPaths.filter(({ provider }) => provider === 'messages'))('unasked, $name', (path) => {
  test('inference in the US is charged with the factor', async () => {
    priced.upstream.handle((call, reply) => say(call, reply, { texts: ['here'], usage: workedIn('us') }))
    await expectPaid(priced, await priced.ask(path), 1_320_000n)
  })

  if (!path.stream) return
  test('an answer that breaks off costs the factor, too', async () => {
    const { opening, text } = wordsOf('messages')
    const usage = { ...usageIn('messages', { input: 1000, output: 1 }), inference_geo: 'us' }
    priced.upstream.handle(async (_, reply) => {
      await reply.startStream()
      await reply.chunk(opening({ usage, usageAtStart: usage }) + text('0123456789abcdef'))
      // Without a last event; a cut could overtake what was said.
      await reply.finish()
    })
    const { requestId } = await priced.ask(path)
    // (1000 × 1 µ$ + 4 × 2 µ$) × 1.1: sixteen bytes are taken for four tokens.
    expect(priced.charges(requestId)).toMatchObject([
      { amount: 1_108_800n, isEstimated: true, usage: { isUsOnly: true } },
    ])
  })
})
