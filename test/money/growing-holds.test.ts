// A hold that follows its answer: more is held while it streams, and where no more is to be had the answer ends with an
// error that says so, paid as far as it got (row 10 of docs/reference/charges.md).

import { afterAll, describe, expect, test } from 'bun:test'
import { addressed } from '../parts/surfaces.ts'
import { growStream } from './growing-stream.ts'
import { usageIn, wordsOf } from './provider-words.ts'
import { lastError, openTill, streamedPaths, terminal } from './till.ts'
import { usd } from './wallets.ts'

/** A tenth of a cent in, a cent out; no prompt counts for more than the thousand tokens that the model takes. */
const price = '{ input: "1000", output: "10000" }'
const nanosIn = 1_000_000n
const nanosOut = 10_000_000n
const strictInput = 1000n * nanosIn

const till = await openTill({
  price,
  more: 'context_tokens: 1000, max_output_tokens: 64000, default_max_tokens: 64000',
})
afterAll(() => till[Symbol.asyncDispose]())

describe.each([...streamedPaths])('$name, a hold that grows', (path) => {
  // Three bytes are taken for a token: 75 % of 4,096 tokens are 9,216 bytes.
  const members = { max_tokens: 20_000 }

  test('by 4,096 tokens when three quarters are used, up to the cap', async () => {
    const purse = await till.wallets.open('100000.00')
    const stream = await growStream(till, path, members, purse)
    const held = async () => (await till.wallets.read(purse.workspaceId)).held
    const atFirst = await held()
    await stream.send(9_000)
    expect(await held()).toBe(atFirst)
    await stream.send(300)
    expect(await held()).toBe(atFirst + 4096n * nanosOut)
    // Three quarters of 8,192 tokens: 18,432 bytes
    await stream.send(9_000)
    expect(await held()).toBe(atFirst + 4096n * nanosOut)
    await stream.send(300)
    expect(await held()).toBe(atFirst + 8192n * nanosOut)
    await stream.reply.chunk(
      wordsOf(path.provider).ending({ usage: usageIn(path.provider, { input: 9, output: 6000 }) }),
    )
    // The end of Gemini's streams is the end of the body.
    if (path.provider === 'gemini') await stream.reply.finish()
    expect(await stream.rest()).toMatch(terminal)
    expect(await till.wallets.read(purse.workspaceId)).toEqual({
      posted: 100_000_000_000_000n - 9n * nanosIn - 6000n * nanosOut,
      held: 0n,
    })
  })

  test('not at all, because others hold the rest: ends with an error that says so, and is paid as far as it got', async () => {
    // Enough for 19,900 tokens by itself; but another one holds what lies beyond the first slice.
    const purse = await till.wallets.open('200.00')
    const stream = await growStream(till, path, members, purse)
    const { held: first } = await till.wallets.read(purse.workspaceId)
    expect(first).toBe(strictInput + 4096n * nanosOut)
    const other = Promise.withResolvers<void>()
    till.upstream.handle(() => other.resolve())
    const holding = new AbortController()
    const sent = addressed(path.surface, till.bodyFor({ ...path, stream: false }, { max_tokens: 15_700 }))
    const blocked = fetch(till.gateway.url + sent.path, {
      method: 'POST',
      headers: { authorization: `Bearer ${purse.key}`, 'content-type': 'application/json', ...path.surface.headers },
      body: sent.body,
      signal: holding.signal,
    }).catch(() => undefined)
    await other.promise
    // 200.00 − 41.96 − 1.00 − 157.00 leaves 0.04: no slice is that small.
    await stream.send(9_300)
    await stream.send(2_900)
    expect(stream.call.isClosed()).toBe(false)
    await stream.reply.chunk(wordsOf(path.provider).text('y'.repeat(200)))
    const text = await stream.rest()
    await stream.call.closed
    expect(text).not.toMatch(terminal)
    // Codex does not repeat a request after this code.
    if (path.surface.name === 'responses') expect(text).toContain('"error":{"code":"insufficient_quota"')
    // 12,401 bytes passed: 3,101 tokens; the prompt is 9 as reported by Messages, or the estimate of "hi".
    const charge = (path.provider === 'messages' ? 9n : 8n) * nanosIn + 3101n * nanosOut
    expect(lastError(text)).toMatchObject({ code: 'INSUFFICIENT_BALANCE', metadata: { cost: usd(charge) } })
    holding.abort()
    await blocked
    for (;;) {
      const { posted, held } = await till.wallets.read(purse.workspaceId)
      expect(posted).toBe(200_000_000_000n - charge)
      if (held === 0n) break
    }
  })
})
