// Promise M3 where an answer ends before its end: what a provider has counted by then is paid as it was counted, however
// many bytes that was, and only what has passed since is estimated.

import { afterAll, describe, expect, test } from 'bun:test'
import type { RawConnection } from '../parts/raw-client.ts'
import type { UpstreamReply } from '../parts/upstream.ts'
import { type DialectName, usageIn, wordsOf } from '../parts/upstream-words.ts'
import { costIn, expectPaid, openTill, type Path, streamedPaths } from './till.ts'
import { usd } from './wallets.ts'

const till = await openTill({ models: 20 })
afterAll(() => till[Symbol.asyncDispose]())

/** 420 bytes, which would be estimated at 105 tokens; the provider counts 40. */
const text = 'internationalisation '.repeat(20)
/** 3 × 350 + 40 × 1,050 */
const counted = 43_050n

const chunk = (members: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'up', ...members })}\n\n`

/** A text and its count, and not the end: Messages counts in message_delta, some hosts of Chat in every chunk. */
const countedText: Partial<Record<DialectName, string>> = {
  chat: chunk({
    choices: [{ index: 0, delta: { content: text }, finish_reason: null }],
    usage: usageIn('chat', { input: 3, output: 40 }),
  }),
  messages:
    wordsOf('messages').text(text) +
    wordsOf('messages')
      .ending({ usage: usageIn('messages', { input: 3, output: 40 }) })
      .replace(/event: message_stop\n.*\n\n/, ''),
}

interface Running {
  readonly connection: RawConnection
  readonly reply: UpstreamReply
  readonly id: Promise<string>
}

/** A stream of which the client has the text, and the gateway the count. */
async function begin(path: Path): Promise<Running> {
  const begun = Promise.withResolvers<UpstreamReply>()
  const before = (await till.over(0)).length
  till.upstream.handle(async (_, reply) => {
    const usageAtStart = { input_tokens: 3, output_tokens: 1 }
    await reply.startStream()
    await reply.chunk(
      wordsOf(path.provider).opening({ usage: undefined, usageAtStart }) + (countedText[path.provider] ?? ''),
    )
    begun.resolve(reply)
  })
  const connection = await till.send(path, till.fresh(path))
  await connection.until(text)
  const id = async (): Promise<string> => (await till.over(before + 1)).at(-1) ?? ''
  return { connection, reply: await begun.promise, id: id() }
}

/** Responses counts only at its end. */
describe.each(streamedPaths.filter(({ provider }) => countedText[provider]))('$name', (path) => {
  const isQuoted = path.surface.name === path.provider

  test('a client that leaves behind a count pays what was counted', async () => {
    const { connection, id } = await begin(path)
    if (isQuoted) expect(costIn(await connection.until('"cost"'))).toBe(usd(counted))
    connection.leave()
    await expectPaid(till, { requestId: await id }, counted)
  })

  test('charges the reported count if a provider closes after it, and quotes the client the same figure', async () => {
    const { connection, reply, id } = await begin(path)
    await reply.finish()
    const seen = await connection.until('STREAM_INTERRUPTED')
    connection.leave()
    const costs = [...seen.matchAll(/"cost":"?([0-9.]+)/g)].map(([, cost]) => cost)
    expect(costs).toEqual(isQuoted ? [usd(counted), usd(counted)] : [usd(counted)])
    expect(seen).toContain('after 40 output tokens')
    await expectPaid(till, { requestId: await id }, counted)
  })

  test('text after the last count is estimated at four bytes per token and added', async () => {
    const { connection, reply, id } = await begin(path)
    await reply.chunk(wordsOf(path.provider).text('and so on'))
    await connection.until('and so on')
    connection.leave()
    // Nine bytes are three tokens.
    await expectPaid(till, { requestId: await id }, counted + 3n * 1_050n, 'estimated')
  })
})

test('charges an answer of only hidden reasoning once its count was reported', async () => {
  const path = streamedPaths.find(({ surface, provider }) => surface.name === 'messages' && provider === 'messages')
  if (!path) throw new Error('there is no path')
  const before = (await till.over(0)).length
  till.upstream.handle(async (_, reply) => {
    await reply.startStream()
    const [delta = ''] = wordsOf('messages')
      .ending({ usage: usageIn('messages', { input: 3, output: 40 }), stop: 'length' })
      .split(/(?=event: message_stop)/)
    await reply.chunk(wordsOf('messages').opening({ usage: { input_tokens: 3, output_tokens: 1 } }) + delta)
  })
  const connection = await till.send(path, till.fresh(path))
  await connection.until('"cost"')
  connection.leave()
  const [requestId = ''] = (await till.over(before + 1)).slice(before)
  await expectPaid(till, { requestId }, counted)
})
