// A stream whose provider says as much as the test wants it to, so that its hold grows when the test wants it to.

import { connect } from '../parts/raw-client.ts'
import { requestBytes } from '../parts/surfaces.ts'
import type { UpstreamCall, UpstreamReply } from '../parts/upstream.ts'
import { dialectOf, wordsOf } from './provider-words.ts'
import type { Path, Till } from './till.ts'
import type { Purse } from './wallets.ts'

export interface Growing {
  readonly call: UpstreamCall
  readonly reply: UpstreamReply
  /** Sends this many bytes of text, and waits until the client has them. */
  send(bytes: number): Promise<void>
  /** All that the client got, up to its end. */
  rest(): Promise<string>
}

/** The first byte of its text has passed. */
export async function growStream(till: Till, path: Path, members: object, purse: Purse): Promise<Growing> {
  const arrived = Promise.withResolvers<{ call: UpstreamCall; reply: UpstreamReply }>()
  till.upstream.handle(async (call, reply) => {
    const words = wordsOf(dialectOf(call))
    await reply.startStream()
    await reply.chunk(words.opening({ usage: { input_tokens: 9, output_tokens: 1 } }) + words.text('x'))
    arrived.resolve({ call, reply })
  })
  const connection = await connect(till.gateway.url)
  await connection.send(requestBytes(path.surface, { key: purse.key, body: till.bodyFor(path, members) }))
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
