// 402 as the official clients read it: the class, the code, why, what is needed, whether to come back; and that the
// first request after a top-up is served.

import { afterAll, describe, expect, test } from 'bun:test'
import { createTalk } from '../clients/talk.ts'
import {
  type ClientName,
  chatClientNames,
  isChatClient,
  messageClientNames,
  readError,
} from '../parts/official-clients.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { createStepClock } from '../tenancy/step-clock.ts'
import { costly, openTill } from './till.ts'
import type { Purse } from './wallets.ts'

const clock = createStepClock('2027-01-15T08:00:00Z')
/** The largest prompt costs $1.00. */
const till = await openTill({ ...costly, clock })
afterAll(() => till[Symbol.asyncDispose]())

const answer = answerWith({ input: 9, output: 2 })

const sender = (name: ClientName, { key }: Purse) => {
  const talk = createTalk(name, { url: till.gateway.url, key })
  const model = isChatClient(name) ? 'till/chat-0' : 'till/messages-0'
  return {
    send: (stream: boolean) => talk({ model, turns: ['hi'], maxTokens: 300 }, stream ? 'streamed' : 'whole'),
  }
}

/** `error.metadata` of the body, where each family keeps it. */
async function metadataOf(name: ClientName, call: PromiseLike<unknown>): Promise<unknown> {
  const error = await call.then(
    () => undefined,
    (thrown: { error: Record<string, unknown> }) => thrown.error,
  )
  const inner = isChatClient(name) ? error : (error?.error as Record<string, unknown> | undefined)
  return inner?.metadata
}

/** No client has a class for 402. */
const refused = (name: ClientName) => ({
  exception: 'APIError',
  status: 402,
  code: 'INSUFFICIENT_BALANCE',
  type: isChatClient(name) ? 'insufficient_quota' : 'billing_error',
  requestId: expect.stringMatching(/^req_/),
})

describe.each([...chatClientNames, ...messageClientNames])('%s', (name) => {
  test.each([false, true])(
    'the error for a low balance says what the wallet has and needs (streamed: %p)',
    async (stream) => {
      till.upstream.handle(answer, 'stay unasked')
      const calls = till.upstream.calls.length
      const purse = await till.wallets.open('0.50')
      const { send } = sender(name, purse)
      const error = await readError(name, send(stream))
      expect(error).toMatchObject(refused(name))
      expect(error.text).toContain('has $0.50; this request needs at least $3.56')
      expect(error.text).toContain('tollgate wallet topup')
      expect(error.headers?.get('x-should-retry')).toBe('false')
      expect(error.headers?.get('retry-after')).toBeNull()
      // $1.00 for the prompt and 256 cents
      const wallet = { reason: 'empty', balance: '0.50', held: '0.00', needed: '3.56' }
      expect(await metadataOf(name, send(stream))).toEqual(wallet)
      expect(till.upstream.calls).toHaveLength(calls)
    },
  )

  test('a wallet that was never filled is refused too', async () => {
    const purse = await till.wallets.open()
    expect(await readError(name, sender(name, purse).send(false))).toMatchObject(refused(name))
  })

  test('the first request after a top-up is served', async () => {
    till.upstream.handle(answer)
    const purse = await till.wallets.open('3.55')
    const { send } = sender(name, purse)
    expect(await readError(name, send(false))).toMatchObject({ status: 402 })
    await till.wallets.topUp(purse.workspaceId, '0.01')
    await send(false)
    // $3.56 − 9 × $0.001 − 2 × $0.01
    expect(await till.wallets.read(purse.workspaceId)).toEqual({ posted: 3_531_000_000n, held: 0n })
  })

  test.each([false, true])('money that running requests hold is worth waiting for (streamed: %p)', async (stream) => {
    const arrived = Promise.withResolvers<() => void>()
    till.upstream.handle(async (call, reply) => {
      await new Promise<void>((goOn) => arrived.resolve(goOn))
      await answer(call, reply)
    })
    const purse = await till.wallets.open('6.00')
    const { send } = sender(name, purse)
    // $1.00 and 300 cents are held by the first.
    const first = send(false)
    const goOn = await arrived.promise
    // It waits for the first one to end, until its patience is over.
    const impatient = setInterval(() => clock.pass(5_000), 100)
    const waiting = Promise.resolve(send(stream))
    const [error, metadata] = await Promise.all([readError(name, waiting), metadataOf(name, waiting)])
    clearInterval(impatient)
    expect(error).toMatchObject(refused(name))
    expect(error.headers?.get('x-should-retry')).toBe('true')
    expect(Number(error.headers?.get('retry-after'))).toBeWithin(1, 31)
    expect(Number(error.headers?.get('retry-after-ms'))).toBeWithin(1, 30_001)
    expect(metadata).toEqual({
      reason: 'in_flight',
      balance: '6.00',
      held: '4.00',
      // It would begin with a cap of 256 tokens.
      needed: '3.56',
    })
    till.upstream.handle(answer)
    const second = send(stream)
    goOn()
    await Promise.all([first, second])
  })
})
