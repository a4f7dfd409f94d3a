// The ledger goes away while an answer streams, as a shared database can: the hold cannot grow, and the answer ends with
// an error in its surface's own form, not as a wallet that is empty, and not as an answer that is whole.

import { afterAll, describe, expect, test } from 'bun:test'
import { unavailable } from '../../src/ledger/account.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { growStream } from './growing-stream.ts'
import { say, usageIn, wordsOf } from './provider-words.ts'
import { lastError, openTill, type Path, streamedPaths } from './till.ts'
import { usd } from './wallets.ts'

const price = '{ input: "1000", output: "10000" }'
const nanosIn = 1_000_000n
const nanosOut = 10_000_000n
const funds = 100_000_000_000_000n

/** The part of the ledger that does not answer. */
const gone = { extensions: false, settlements: false, isRefusing: false }

function wrapLedger(real: Ledger): Ledger {
  return {
    ...real,
    extend: (requestId, more) => (gone.extensions ? Promise.resolve(unavailable) : real.extend(requestId, more)),
    async settle(settlement) {
      if (gone.isRefusing) throw new Error('the database refused it')
      if (!gone.settlements) return await real.settle(settlement)
      // As after thirty seconds of trying.
      await real.release(settlement.requestId)
      return unavailable
    },
  }
}

const more = 'context_tokens: 1000, max_output_tokens: 64000, default_max_tokens: 64000'
const till = await openTill({ price, more, wrapLedger })
afterAll(() => till[Symbol.asyncDispose]())

/** The error in the last event of a stream, by the surface's own rules; it must be the only error in it. */
function lastEvent({ surface }: Path, text: string): { readonly error: Record<string, unknown> } {
  const event = text.trimEnd().split('\n\n').at(-1) ?? ''
  const lines = event.split('\n')
  const name = { chat: undefined, messages: 'error', responses: 'response.failed', gemini: undefined }[surface.name]
  if (name) expect(lines.shift()).toBe(`event: ${name}`)
  expect(lines).toHaveLength(1)
  const data = JSON.parse(lines[0]?.replace(/^data: /, '') ?? '')
  expect(data.type).toBe(name)
  const error = lastError(text)
  expect(error).toMatchObject(surface.name === 'gemini' ? { status: 'UNAVAILABLE' } : { type: 'overloaded_error' })
  expect(text.match(/"error":(?!null)/g)).toHaveLength(1)
  return { error }
}

/** 12,401 bytes of text; 4,096 tokens of three bytes were held for, 12,288 bytes, and no more can be. */
async function streamUntilOver(path: Path) {
  const purse = await till.wallets.open('100000.00')
  const stream = await growStream(till, path, { max_tokens: 20_000 }, purse)
  gone.extensions = true
  await stream.send(9_300)
  // The held part is passed on, whether more can be held or not.
  await stream.send(2_900)
  expect(stream.call.isClosed()).toBe(false)
  await stream.reply.chunk(wordsOf(path.provider).text('y'.repeat(200)))
  const text = await stream.rest()
  await stream.call.closed
  return { text, purse }
}

describe.each([...streamedPaths])('$name, while no ledger answers', (path) => {
  test('ends when what is held is used up, says why, and is paid as far as it got', async () => {
    Object.assign(gone, { extensions: false, settlements: false })
    const { text, purse } = await streamUntilOver(path)
    expect(text).not.toMatch(/\[DONE\]|message_stop|finish_reason":"|stop_reason":"/)
    const { error } = lastEvent(path, text)
    expect(error).toMatchObject({ code: 'OVERLOADED' })
    expect(error.message).toContain('cannot reach its ledger')
    expect(error.message).toContain('The answer ends here')
    // 3,101 tokens of four bytes passed; the prompt is 9 as reported by Messages, or the estimate of "hi".
    const charge = (path.provider === 'messages' ? 9n : 8n) * nanosIn + 3101n * nanosOut
    expect(error.metadata).toMatchObject({ cost: usd(charge) })
    expect(await till.wallets.read(purse.workspaceId)).toEqual({ posted: funds - charge, held: 0n })
  })

  test('and cannot be charged either: says so, and costs nothing', async () => {
    Object.assign(gone, { extensions: false, settlements: true })
    const { text, purse } = await streamUntilOver(path)
    expect(text).not.toMatch(/\[DONE\]|message_stop/)
    const { error } = lastEvent(path, text)
    expect(error).toMatchObject({ code: 'OVERLOADED' })
    expect(error.message).toContain('Nothing was charged')
    expect(await till.wallets.read(purse.workspaceId)).toEqual({ posted: funds, held: 0n })
  })
})

describe.each([...streamedPaths])('$name, whose settlement is refused', (path) => {
  test('ends with an error and is over: its key has its place back', async () => {
    Object.assign(gone, { extensions: false, settlements: false, isRefusing: true })
    // A place that is not given back would refuse the second.
    const purse = await till.wallets.open('100000.00', { concurrent_requests: 1 })
    till.upstream.handle((call, reply) =>
      say(call, reply, { texts: ['hello'], usage: usageIn(path.provider, { input: 9, output: 2 }) }),
    )
    for (let n = 0; n < 2; n++) {
      const { status, text, requestId } = await till.ask(path, { max_tokens: 20 }, { purse })
      expect([status, text]).toEqual([200, expect.stringMatching(/"(code|reason)":"INTERNAL"/)])
      expect(text).not.toMatch(/\[DONE\]|message_stop/)
      expect(await till.line(requestId)).toMatchObject({ status: 500n, code: 'INTERNAL', charge: null })
    }
    gone.isRefusing = false
  })
})
