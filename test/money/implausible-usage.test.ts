// A provider that reports far more tokens than a request allows costs its caller an estimate within the bound, keeps spend
// limits intact, and is reported to the operator: on both engines, surfaces and lanes, streamed or not, also where the
// answer ends early.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { stopAll } from '../parts/gateway.ts'
import { adminHeaders } from '../parts/manage.ts'
import { answerWith, usageIn, wordsOf } from '../parts/upstream-words.ts'
import { allPaths, type Explained, openTill, type Path, streamedPaths, type Till } from './till.ts'
import { nanos, type Purse } from './wallets.ts'

/** $5.00 and $200.00 per million: 5,000 and 200,000 nano-dollars a token. */
const price = '{ input: "5", output: "200" }'

forEachEngine((engine) => {
  let place: Place
  let till: Till
  beforeAll(async () => {
    place = await engine.createPlace()
    // Neither the context window nor the longest answer of the model is known.
    till = await openTill({ price, models: 3, size: '', databaseUrl: place.url })
  })
  afterAll(() => stopAll(till, place))

  const capped = { max_tokens: 16 }
  const call = (path: Path, purse?: Purse) => till.ask(path, capped, purse ? { purse } : {})

  /** Once the record is written. */
  async function explained(requestId: string): Promise<Explained> {
    for (;;) {
      const found = await till.wallets.explain(requestId).catch(() => undefined)
      if (found) return found as Explained
      await Bun.sleep(5)
    }
  }

  describe.each([...allPaths])('$name', (path) => {
    test('190,000 output tokens for "ok" with a cap of 16 cost the estimate, within a limit of $1.00 a day', async () => {
      const usageAtStart = usageIn(path.provider, { input: 9, output: 1 })
      till.upstream.handle(answerWith({ input: 9, output: 190_000 }, ['ok'], { usageAtStart }))
      const purse = await till.wallets.open('100.00', { spend_per_day: '1.00' })
      const { status, text, requestId } = await call(path, purse)
      expect(status).toBe(200)
      // Nothing of the report: "hi" is eight tokens with what surrounds it, and two bytes are one: 8 × 5,000 + 1 × 200,000.
      // A stream of Messages has reported its input before: 9.
      const isCountedBefore = path.provider === 'messages' && path.stream
      const [input, cost, amount] = isCountedBefore ? [9, '0.000245', 245_000n] : [8, '0.00024', 240_000n]
      expect(text).toContain(`"cost":${cost}`)
      expect(text).not.toContain('190000')
      const { notes, usage: billed, charge } = await explained(requestId)
      expect(billed).toMatchObject({ input_tokens: input, output_tokens: 1, source: 'estimated' })
      expect(nanos(charge.total)).toBe(amount)
      expect(await till.wallets.read(purse.workspaceId)).toEqual({ posted: 100_000_000_000n - amount, held: 0n })
      // 16 for the cap and 16 of tolerance.
      expect(notes).toEqual([
        'implausible usage: the provider reported 190000 output tokens, and this request allows 32 at most; an estimate was charged instead',
      ])
      // The limit has room for the next request.
      till.upstream.handle(answerWith({ input: 9, output: 1 }, ['ok']))
      expect((await call(path, purse)).status).toBe(200)
    })

    test('an estimate of a long answer stops at the bound', async () => {
      // 4,000 bytes are 1,000 tokens, and 32 are allowed.
      till.upstream.handle(answerWith({ input: 9, output: 190_000 }, ['long'.repeat(1000)]))
      const { requestId } = await call(path)
      // 9 × 5,000 + 32 × 200,000 is more than was held, which is the most that an estimate costs beside known input.
      const { usage: billed, charge } = await explained(requestId)
      expect(billed.output_tokens).toBe(32)
      expect(nanos(charge.total)).toBeLessThanOrEqual(45_000n + 32n * 200_000n)
    })

    test('190,000 input tokens for "hi" cost the estimate', async () => {
      till.upstream.handle(answerWith({ input: 190_000, output: 2 }, ['ok']))
      const { requestId } = await call(path)
      // "hi" is eight tokens with what surrounds it, and "ok" one: 8 × 5,000 + 1 × 200,000
      const { notes, usage: billed, charge } = await explained(requestId)
      expect(billed).toMatchObject({ input_tokens: 8, output_tokens: 1, source: 'estimated' })
      expect(nanos(charge.total)).toBe(240_000n)
      expect(notes.join()).toContain('reported 190000 input tokens')
    })

    test('cached input counts as input', async () => {
      till.upstream.handle(answerWith({ input: 1, read: 190_000, output: 2 }, ['ok']))
      const { usage: billed } = await explained((await call(path)).requestId)
      expect(billed).toMatchObject({ input_tokens: 8, output_tokens: 1, source: 'estimated' })
    })

    test('a report within the tolerance is billed as it is', async () => {
      till.upstream.handle(answerWith({ input: 9, output: 32 }, ['ok']))
      const { notes, usage: billed, charge } = await explained((await call(path)).requestId)
      expect(billed).toMatchObject({ input_tokens: 9, output_tokens: 32, source: 'reported' })
      expect(nanos(charge.total)).toBe(45_000n + 6_400_000n)
      expect(notes).toEqual([])
    })
  })

  // Two answers of 16 tokens, with 16 of tolerance each.
  describe.each([...allPaths].filter(({ surface, provider }) => surface.name === 'chat' && provider === 'chat'))(
    '$name',
    (path) => {
      test.each([
        [64, 'reported'],
        [65, 'estimated'],
      ])('two choices may have twice as much: %i is %s', async (output, source) => {
        till.upstream.handle(answerWith({ input: 9, output }, ['ok']))
        const { requestId } = await till.ask(path, { ...capped, n: 2 })
        expect((await explained(requestId)).usage.source).toBe(source)
      })
    },
  )

  // Responses counts only at its end.
  describe.each(streamedPaths.filter(({ provider }) => provider !== 'responses'))('$name', (path) => {
    /** Streams up to the text, has the answer end in some way, and gives the request's record. */
    async function endEarly(model: string, end: (leaving: AbortController, cut: () => void) => void) {
      const seen = Promise.withResolvers<void>()
      const isOver = Promise.withResolvers<void>()
      let cut = () => {}
      till.upstream.handle(async (_, reply) => {
        await reply.startStream()
        await reply.chunk(countedStart(path, 190_000))
        cut = () => reply.cut()
        seen.resolve()
        await isOver.promise
      })
      const leaving = new AbortController()
      const response = await ask(
        till.gateway,
        path.surface,
        till.bodyFor(path, { ...capped, model }),
        {},
        leaving.signal,
      )
      const reader = response.body?.getReader()
      let text = ''
      while (!text.includes('ok')) text += new TextDecoder().decode((await reader?.read())?.value)
      await seen.promise
      end(leaving, cut)
      const record = await explained(response.headers.get('request-id') ?? '')
      isOver.resolve()
      return record
    }

    // A route that breaks off is skipped for a while, so each path has a separate model.
    const broken = `till/${path.provider}-${path.surface.name === 'chat' ? 1 : 2}`
    test.each([
      ['a stream that breaks off', broken, (_: AbortController, cut: () => void) => cut()],
      ['a client that leaves', `till/${path.provider}-0`, (leaving: AbortController) => leaving.abort()],
    ])('%s behind an implausible count pays the estimate', async (_, model, end) => {
      const { usage: billed, notes } = await endEarly(model, end)
      // Two bytes are one token. Only Messages has reported its input before the implausible count.
      const input = path.provider === 'messages' ? 9 : 8
      expect(billed).toMatchObject({ input_tokens: input, output_tokens: 1, source: 'estimated' })
      expect(notes.join()).toContain('reported 190000 output tokens')
    })
  })

  test('the operator sees every case in a metric, and one warning for each route', async () => {
    const headers = adminHeaders(till.gateway.dataFolder)
    const counted = async (): Promise<number> => {
      const text = await (await fetch(`${till.gateway.url}/metrics`, { headers })).text()
      const lines = text.split('\n').filter((line) => line.startsWith('tollgate_implausible_usage_total{'))
      return lines
        .filter((line) => line.includes('model="till/chat-0"') && line.includes('count="output"'))
        .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
    }
    const [path] = allPaths.filter(({ surface, provider }) => surface.name === 'chat' && provider === 'chat')
    if (!path) throw new Error('no such path')
    const before = await counted()
    for (let i = 0; i < 3; i++) {
      till.upstream.handle(answerWith({ input: 9, output: 190_000 }, ['ok']))
      await explained((await call(path)).requestId)
    }
    expect((await counted()) - before).toBe(3)
    const warned = till.gateway.logged().filter(({ message }) => String(message).includes('implausible usage'))
    expect(warned.map(({ level }) => level)).toEqual(warned.map(() => 'warn'))
    const byProvider = Object.groupBy(warned, ({ provider }) => String(provider))
    expect(byProvider['chat-0-0']).toHaveLength(1)
    expect(byProvider['chat-0-0']?.[0]).toMatchObject({ model: 'till/chat-0', upstream_model: 'up' })
  })
})

/** The start of an answer that says "ok" and has counted this many output tokens by then. */
function countedStart({ provider }: Path, output: number): string {
  const { opening, text } = wordsOf(provider)
  const usage = usageIn(provider, { input: 9, output })
  if (provider === 'chat')
    return opening({ usage }) + text('ok').replace('"model"', `"usage":${JSON.stringify(usage)},"model"`)
  if (provider === 'gemini')
    return opening({ usage }) + text('ok').replace('"modelVersion"', `"usageMetadata":${JSON.stringify(usage)},$&`)
  return (
    opening({ usage, usageAtStart: usageIn(provider, { input: 9, output: 1 }) }) +
    text('ok') +
    `event: message_delta\ndata: ${JSON.stringify({ type: 'message_delta', delta: { stop_reason: null }, usage })}\n\n`
  )
}
