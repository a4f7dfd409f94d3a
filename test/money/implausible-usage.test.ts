// A provider that reports far more tokens than a request allows costs its caller an estimate within the bound, keeps spend
// limits intact, and is reported to the operator: on both engines, surfaces and lanes, streamed or not, also where the
// answer ends early.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { forEachEngine, type Place } from '../parts/engines.ts'
import { type Gateway, startGateway } from '../parts/gateway.ts'
import { adminHeaders } from '../parts/manage.ts'
import { addressed, inWordsOf } from '../parts/surfaces.ts'
import { startUpstream, type Upstream } from '../parts/upstream.ts'
import { say, usageIn, wordsOf } from './provider-words.ts'
import { allPaths, type Path, streamedPaths } from './till.ts'
import { tillConfig } from './till-config.ts'
import { createWallets, nanos, type Wallets } from './wallets.ts'

/** $5.00 and $200.00 per million: 5,000 and 200,000 nano-dollars a token. */
const price = '{ input: "5", output: "200" }'

interface Explained {
  readonly notes: readonly string[]
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly source: string }
  readonly charge: { readonly total: string } | null
}

forEachEngine((engine) => {
  let place: Place
  let upstream: Upstream
  let gateway: Gateway
  let wallets: Wallets
  beforeAll(async () => {
    place = await engine.createPlace()
    upstream = startUpstream(() => {})
    // Neither the context window nor the longest answer of the model is known.
    const config = tillConfig(upstream.url, { price, models: 3 }).replaceAll('context_tokens: 100000, ', '')
    gateway = await startGateway({ config, env: place.url === undefined ? {} : { DATABASE_URL: place.url } })
    wallets = createWallets(gateway)
  })
  afterAll(async () => {
    await gateway.stop()
    upstream.stop()
    place[Symbol.dispose]()
  })

  const bodyOf = ({ surface, provider, stream }: Path, members: object): string =>
    JSON.stringify({
      model: `till/${provider}-0`,
      ...inWordsOf(surface, {
        messages: [{ role: 'user', content: 'hi' }],
        max_tokens: 16,
        ...(stream && { stream, ...(surface.name === 'chat' && { stream_options: { include_usage: true } }) }),
        ...members,
      }),
    })

  async function call(path: Path, key = gateway.key, members: object = {}) {
    const response = await ask({ url: gateway.url, key }, path.surface, bodyOf(path, members))
    const text = await response.text()
    return { response, text, requestId: response.headers.get('request-id') ?? '' }
  }

  /** Once the record is written. */
  async function explained(requestId: string): Promise<Explained> {
    for (;;) {
      const found = await wallets.explain(requestId).catch(() => undefined)
      if (found) return found as Explained
      await Bun.sleep(5)
    }
  }

  describe.each([...allPaths])('$name', (path) => {
    test('190,000 output tokens for "ok" with a cap of 16 cost the estimate, within a limit of $1.00 a day', async () => {
      const usage = usageIn(path.provider, { input: 9, output: 190_000 })
      const usageAtStart = usageIn(path.provider, { input: 9, output: 1 })
      upstream.handle((received, reply) => say(received, reply, { texts: ['ok'], usage, usageAtStart }))
      const purse = await wallets.open('100.00', { spend_per_day: '1.00' })
      const { response, text, requestId } = await call(path, purse.key)
      expect(response.status).toBe(200)
      // The plausible input as reported, and one token for two bytes: 9 × 5,000 + 1 × 200,000
      expect(text).toContain('"cost":0.000245')
      expect(text).not.toContain('190000')
      const { notes, usage: billed, charge } = await explained(requestId)
      expect(billed).toMatchObject({ input_tokens: 9, output_tokens: 1, source: 'estimated' })
      expect(nanos(charge?.total ?? '')).toBe(245_000n)
      expect(await wallets.read(purse.workspaceId)).toEqual({ posted: 100_000_000_000n - 245_000n, held: 0n })
      // 16 for the cap and 16 of tolerance.
      expect(notes).toEqual([
        'implausible usage: the provider reported 190000 output tokens, and this request allows 32 at most; an estimate was charged instead',
      ])
      // The limit has room for the next request.
      upstream.handle((received, reply) =>
        say(received, reply, { texts: ['ok'], usage: usageIn(path.provider, { input: 9, output: 1 }) }),
      )
      expect((await call(path, purse.key)).response.status).toBe(200)
    })

    test('an estimate of a long answer stops at the bound', async () => {
      // 4,000 bytes are 1,000 tokens, and 32 are allowed.
      const usage = usageIn(path.provider, { input: 9, output: 190_000 })
      upstream.handle((received, reply) => say(received, reply, { texts: ['long'.repeat(1000)], usage }))
      const { requestId } = await call(path)
      // 9 × 5,000 + 32 × 200,000 is more than was held, which is the most that an estimate costs beside known input.
      const { usage: billed, charge } = await explained(requestId)
      expect(billed.output_tokens).toBe(32)
      expect(nanos(charge?.total ?? '')).toBeLessThanOrEqual(45_000n + 32n * 200_000n)
    })

    test('190,000 input tokens for "hi" cost the estimate', async () => {
      const usage = usageIn(path.provider, { input: 190_000, output: 2 })
      upstream.handle((received, reply) => say(received, reply, { texts: ['ok'], usage }))
      const { requestId } = await call(path)
      // "hi" is eight tokens with what surrounds it: 8 × 5,000 + 2 × 200,000
      const { notes, usage: billed, charge } = await explained(requestId)
      expect(billed).toMatchObject({ input_tokens: 8, output_tokens: 2, source: 'estimated' })
      expect(nanos(charge?.total ?? '')).toBe(440_000n)
      expect(notes.join()).toContain('reported 190000 input tokens')
    })

    test('cached input counts as input', async () => {
      const usage = usageIn(path.provider, { input: 1, read: 190_000, output: 2 })
      upstream.handle((received, reply) => say(received, reply, { texts: ['ok'], usage }))
      const { usage: billed } = await explained((await call(path)).requestId)
      expect(billed).toMatchObject({ input_tokens: 8, output_tokens: 2, source: 'estimated' })
    })

    test('a report within the tolerance is billed as it is', async () => {
      const usage = usageIn(path.provider, { input: 9, output: 32 })
      upstream.handle((received, reply) => say(received, reply, { texts: ['ok'], usage }))
      const { notes, usage: billed, charge } = await explained((await call(path)).requestId)
      expect(billed).toMatchObject({ input_tokens: 9, output_tokens: 32, source: 'reported' })
      expect(nanos(charge?.total ?? '')).toBe(45_000n + 6_400_000n)
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
        upstream.handle((received, reply) =>
          say(received, reply, { texts: ['ok'], usage: usageIn('chat', { input: 9, output }) }),
        )
        const { requestId } = await call(path, undefined, { n: 2 })
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
      upstream.handle(async (_, reply) => {
        await reply.startStream()
        await reply.chunk(countedStart(path, 190_000))
        cut = () => reply.cut()
        seen.resolve()
        await isOver.promise
      })
      const leaving = new AbortController()
      const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' }
      const sent = addressed(path.surface, bodyOf(path, { model }))
      const response = await fetch(gateway.url + sent.path, {
        method: 'POST',
        headers: { ...headers, ...path.surface.headers },
        body: sent.body,
        signal: leaving.signal,
      })
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
      // Two bytes are one token; the input of the count is plausible.
      expect(billed).toMatchObject({ input_tokens: 9, output_tokens: 1, source: 'estimated' })
      expect(notes.join()).toContain('reported 190000 output tokens')
    })
  })

  test('the operator sees every case in a metric, and one warning for each route', async () => {
    const headers = adminHeaders(gateway.dataFolder)
    const counted = async (): Promise<number> => {
      const text = await (await fetch(`${gateway.url}/metrics`, { headers })).text()
      const lines = text.split('\n').filter((line) => line.startsWith('tollgate_implausible_usage_total{'))
      return lines
        .filter((line) => line.includes('model="till/chat-0"') && line.includes('count="output"'))
        .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
    }
    const [path] = allPaths.filter(({ surface, provider }) => surface.name === 'chat' && provider === 'chat')
    if (!path) throw new Error('no such path')
    const before = await counted()
    const usage = usageIn('chat', { input: 9, output: 190_000 })
    for (let i = 0; i < 3; i++) {
      upstream.handle((received, reply) => say(received, reply, { texts: ['ok'], usage }))
      await explained((await call(path)).requestId)
    }
    expect((await counted()) - before).toBe(3)
    const warned = gateway.logged().filter(({ message }) => String(message).includes('implausible usage'))
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
