// A provider that streams though it was asked for a whole answer: on the lane of bytes the stream is then collected, as it
// always is on the other, so that both surfaces are served alike.

import type { StreamRelay } from '../dialects/byte-lane/relay.ts'
import { replyFault } from '../dialects/canonical/faults.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { openBrace, space } from '../wire/ascii.ts'
import type { Call } from './call.ts'

export function isEventStream({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') ?? false
}

/** Some hosts call a whole answer a stream. And of several answers in one only the first would be collected. */
export function isUnaskedStream({ envelope }: Call, response: Response, body: Uint8Array): boolean {
  return isEventStream(response) && envelope.choices === 1 && body.find((byte) => byte > space) !== openBrace
}

export function collectReply(relay: StreamRelay, stream: Uint8Array): ReturnType<Dialect['relayReply']> {
  relay.push(stream)
  if (!relay.finished && relay.fault === undefined) relay.end()
  const { fault = replyFault('an empty answer'), usage, finished, terminal } = relay
  return finished && usage ? { body: terminal, usage } : { fault }
}
