// A hold that follows its answer: more is held while it streams, and where no more is to be had the answer ends with an
// error that says so, paid as far as it got (row 10 of docs/reference/charges.md): for lack of money, or because the
// ledger went away, which is not said to be an empty wallet.

import { afterAll, describe, expect, test } from 'bun:test'
import { unavailable } from '../../src/ledger/account.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { stopAll } from '../parts/gateway.ts'
import { manage } from '../parts/manage.ts'
import type { UpstreamCall, UpstreamReply } from '../parts/upstream.ts'
import { answerWith, dialectOf, usageIn, wordsOf } from '../parts/upstream-words.ts'
import {
  costly,
  lastError,
  nanosIn,
  nanosOut,
  openTill,
  type Path,
  streamedPaths,
  type Till,
  terminal,
} from './till.ts'
import { type Purse, usd } from './wallets.ts'

/** The part of the ledger that does not answer, as a shared database can. */
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

const till = await openTill({ ...costly, wrapLedger })
afterAll(() => stopAll(till))

interface Growing {
  readonly call: UpstreamCall
  readonly reply: UpstreamReply
  /** Sends this many bytes of text, and waits until the client has them. */
  send(bytes: number): Promise<void>
  /** All that the client got, up to its end. */
  rest(): Promise<string>
}

/** A stream whose provider says as much as the test wants it to. The first byte of its text has passed. */
async function growStream(till: Till, path: Path, purse: Purse): Promise<Growing> {
  const arrived = Promise.withResolvers<{ call: UpstreamCall; reply: UpstreamReply }>()
  till.upstream.handle(async (call, reply) => {
    const words = wordsOf(dialectOf(call))
    await reply.startStream()
    await reply.chunk(words.opening({ usage: { input_tokens: 9, output_tokens: 1 } }) + words.text('x'))
    arrived.resolve({ call, reply })
  })
  const connection = await till.send(path, { max_tokens: 20_000 }, purse)
  const { call, reply } = await arrived.promise
  const { text } = wordsOf(dialectOf(call))
  let sent = 1
  return {
    call,
    reply,
    async send(bytes) {
      const mark = `[${sent}]`
      sent += bytes
      await reply.chunk(text('x'.repeat(bytes - mark.length) + mark))
      await connection.until(mark)
    },
    async rest() {
      const response = await connection.response()
      connection.leave()
      return response === 'closed' ? '' : response.body
    },
  }
}

describe.each([...streamedPaths])('$name, a hold that grows', (path) => {
  // Three bytes are taken for a token: 75 % of 4,096 tokens are 9,216 bytes.
  test('by 4,096 tokens when three quarters are used, up to the cap', async () => {
    const purse = await till.wallets.open('100000.00')
    const stream = await growStream(till, path, purse)
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

  test('not at all, because a correction has taken the rest: ends with an error that says so, and is paid as far as it got', async () => {
    const purse = await till.wallets.open('300.00')
    const stream = await growStream(till, path, purse)
    const { held } = await till.wallets.read(purse.workspaceId)
    // All but the hold and less than any slice costs.
    const amount = usd(300_000_000_000n - held - 40_000_000n)
    const correction = { direction: 'take', amount, reason: 'test' }
    await manage(till.gateway, 'POST', `/api/workspaces/${purse.workspaceId}/corrections`, correction)
    const text = await useUp(stream, path)
    expect(text).not.toMatch(terminal)
    // Codex does not repeat a request after this code.
    if (path.surface.name === 'responses') expect(text).toContain('"error":{"code":"insufficient_quota"')
    // 12,401 bytes passed: 3,101 tokens; the prompt is 9 as reported by Messages, or the estimate of "hi".
    const charge = (path.provider === 'messages' ? 9n : 8n) * nanosIn + 3101n * nanosOut
    expect(lastError(text)).toMatchObject({ code: 'INSUFFICIENT_BALANCE', metadata: { cost: usd(charge) } })
    expect(await till.wallets.read(purse.workspaceId)).toEqual({ posted: held + 40_000_000n - charge, held: 0n })
  })

  test('keeps what it may grow by from others: their caps are lowered', async () => {
    // The answer may cost $200.01 to $201.00; so far it holds $41 to $42.
    const purse = await till.wallets.open('250.00')
    const stream = await growStream(till, path, purse)
    till.upstream.handle(answerWith({ input: 9, output: 2 }))
    const other = await till.ask(path, { max_tokens: 20_000 }, { purse })
    // $1.00 for the prompt and at most $48.99 for the answer, of which it takes a step
    const lowered = Number(/lowered_by_balance=(\d+)/.exec(other.headers.get('x-tollgate-warnings') ?? '')?.[1])
    expect([other.status, lowered]).toEqual([200, 4_096])
    // Up to its cap, whatever it needs: 60,000 bytes are 20,000 tokens of three.
    for (let sent = 0; sent < 59_000; sent += 3_000) await stream.send(3_000)
    expect(stream.call.isClosed()).toBe(false)
    await stream.reply.chunk(
      wordsOf(path.provider).ending({ usage: usageIn(path.provider, { input: 9, output: 20_000 }) }),
    )
    if (path.provider === 'gemini') await stream.reply.finish()
    expect(await stream.rest()).toMatch(terminal)
  })
})

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

/** Sends 12,401 bytes of text; 4,096 tokens of three bytes were held for, 12,288 bytes, and no more can be. Returns the answer. */
async function useUp(stream: Awaited<ReturnType<typeof growStream>>, path: Path): Promise<string> {
  await stream.send(9_300)
  // The held part is passed on, whether more can be held or not.
  await stream.send(2_900)
  expect(stream.call.isClosed()).toBe(false)
  await stream.reply.chunk(wordsOf(path.provider).text('y'.repeat(200)))
  const text = await stream.rest()
  await stream.call.closed
  return text
}

async function streamUntilOver(path: Path) {
  const purse = await till.wallets.open('100000.00')
  const stream = await growStream(till, path, purse)
  gone.extensions = true
  return { text: await useUp(stream, path), purse }
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
    expect(await till.wallets.read(purse.workspaceId)).toEqual({ posted: 100_000_000_000_000n - charge, held: 0n })
  })

  test('and cannot be charged either: says so, and costs nothing', async () => {
    Object.assign(gone, { extensions: false, settlements: true })
    const { text, purse } = await streamUntilOver(path)
    expect(text).not.toMatch(/\[DONE\]|message_stop/)
    const { error } = lastEvent(path, text)
    expect(error).toMatchObject({ code: 'OVERLOADED' })
    expect(error.message).toContain('Nothing was charged')
    expect(await till.wallets.read(purse.workspaceId)).toEqual({ posted: 100_000_000_000_000n, held: 0n })
  })
})

describe.each([...streamedPaths])('$name, whose settlement is refused', (path) => {
  test('ends with an error and is over: its key has its place back', async () => {
    Object.assign(gone, { extensions: false, settlements: false, isRefusing: true })
    // A place that is not given back would refuse the second.
    const purse = await till.wallets.open('100000.00', { concurrent_requests: 1 })
    till.upstream.handle(answerWith({ input: 9, output: 2 }))
    for (let n = 0; n < 2; n++) {
      const { status, text, requestId } = await till.ask(path, { max_tokens: 20 }, { purse })
      expect([status, text]).toEqual([200, expect.stringMatching(/"(code|reason)":"INTERNAL"/)])
      expect(text).not.toMatch(/\[DONE\]|message_stop/)
      expect(await till.line(requestId)).toMatchObject({ status: 500n, code: 'INTERNAL', charge: null })
    }
    gone.isRefusing = false
  })
})
