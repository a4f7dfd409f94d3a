// Rows 17, 18 and 20 of docs/reference/charges.md: the sandbox is paid like any other model, a free model costs nothing and
// leaves a transfer of nothing, and what generates nothing leaves none.

import { afterAll, describe, expect, test } from 'bun:test'
import { ask } from '../parts/ask.ts'
import { stopAll } from '../parts/gateway.ts'
import { chat, messages } from '../parts/surfaces.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { allPaths, expectPaid, openTill, streamedPaths, wholePaths } from './till.ts'

const till = await openTill()
const free = await openTill({ price: 'free' })
afterAll(() => stopAll(till, free))

const ownSurface = [...streamedPaths, ...wholePaths].filter(({ surface, provider }) => surface.name === provider)

test.each(ownSurface)('row 17: a sandbox call costs its catalog price: $name', async (path) => {
  // 12 tokens in at $1.00 and 8 out at $2.00 per million, as the first run prints it.
  const message = { role: 'user', content: 'hello from the other side of the gate' }
  const answer = await till.ask(path, { model: 'sandbox/echo', messages: [message] })
  expect(answer.cost).toBe('0.000028')
  await expectPaid(till, answer, 28_000n)
})

test.each(ownSurface.filter(({ stream }) => stream))(
  'row 17: a sandbox that breaks off is paid for as any provider is: $name',
  async (path) => {
    const message = { role: 'user', content: 'one two three four' }
    const answer = await till.ask(path, { model: 'sandbox/breaks-off', messages: [message] })
    expect(answer.text).toContain('STREAM_INTERRUPTED')
    const [charge] = till.charges(answer.requestId)
    expect(charge).toMatchObject({ isEstimated: true })
    // "one two", seven bytes: two tokens at $2.00 per million, and some input.
    expect(charge?.usage).toMatchObject({ outputTokens: 2 })
    expect(charge?.amount).toBeGreaterThan(4_000n)
  },
)

describe.each([...allPaths])('row 18, a free model: $name', (path) => {
  test('costs nothing, also to an empty wallet, and leaves a transfer of nothing', async () => {
    free.upstream.handle(answerWith({ input: 4_000, output: 100 }))
    const purse = await free.wallets.open()
    const answer = await free.ask(path, {}, { purse })
    expect(answer.status).toBe(200)
    expect(Number(answer.cost)).toBe(0)
    expect(answer.headers.get('x-tollgate-cost')).toBe(path.stream ? null : '0.00')
    await expectPaid(free, answer, 0n, 'reported', purse)
    expect(await free.wallets.read(purse.workspaceId)).toEqual({ posted: 0n, held: 0n })
  })
})

test('row 20: counting tokens and listing models moves no money', async () => {
  till.upstream.handle((_, reply) => reply.json(200, { input_tokens: 9 }))
  const before = { wallet: await till.wallets.read(), charges: till.chargeCount() }
  const body = { model: 'till/messages-0', messages: [{ role: 'user', content: 'hi' }] }
  const counted = await ask(till.gateway, { ...messages, path: '/v1/messages/count_tokens' }, body)
  expect(counted.status).toBe(200)
  expect(await counted.json()).toMatchObject({ input_tokens: expect.any(Number) })
  for (const { headers } of [chat, messages]) {
    const authorization = `Bearer ${till.gateway.key}`
    expect((await fetch(`${till.gateway.url}/v1/models`, { headers: { authorization, ...headers } })).status).toBe(200)
  }
  expect({ wallet: await till.wallets.read(), charges: till.chargeCount() }).toEqual(before)
})

test('row 20: an empty wallet can count and list', async () => {
  till.upstream.handle((_, reply) => reply.json(200, { input_tokens: 9 }))
  const { key } = await till.wallets.open()
  const body = { model: 'till/messages-0', messages: [{ role: 'user', content: 'hi' }] }
  const asked = { url: till.gateway.url, key }
  expect((await ask(asked, { ...messages, path: '/v1/messages/count_tokens' }, body)).status).toBe(200)
  const models = await fetch(`${till.gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  expect(models.status).toBe(200)
})
