// A client's request: the only kind of request inside the gateway. The HTTP server receives them, and a page that reads the
// management API for its user makes one (app/admin.ts), as do the lines of batches (batches/line-request.ts).

import { randomUnit } from '../kernel/clock.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import type { BatchId } from '../kernel/ids.ts'
import type { CancelSignal } from '../providers/provider.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import type { BodyFault, Message } from '../wire/read-body.ts'

/** `readBody` in wire/read-body.ts reads its body, up to a limit. */
export interface ClientRequest extends Message {
  readonly method: string
  /** The target of the request line, each byte a character: a path with its query, or a URL as proxies are sent. */
  readonly url: string
  /** Names are in lower case. */
  readonly headers: RequestHeaders
  readonly bodyUsed: boolean
  /** Aborts when the client leaves. */
  readonly signal: CancelSignal
  /** `address`: of the peer, which may be a proxy; undefined = the connection is closed. */
  readonly connection: { readonly address: string | undefined }
  /** Set if the gateway made it itself, from a line of a batch. */
  readonly batchId?: BatchId
}

/** A request that the gateway makes of what a client sent in another form, such as a message on a WebSocket. */
export function madeRequest(
  parts: Pick<ClientRequest, 'url' | 'headers' | 'signal' | 'connection'>,
  body: Uint8Array,
): ClientRequest {
  const { url, headers, signal, connection } = parts
  const whole = () => body
  return {
    ...{ method: 'POST', url, headers, signal, connection },
    ...{ body: null, bodyUsed: false, bytes: async () => body, takeWhole: whole },
  }
}

/** Randomised, so that clients do not all come back at once. */
const retryMinMs = 1_000
const retrySpreadMs = 2_000

/** `tooLarge`: the message for a body over its limit. `random`: a number in [0, 1). */
export function bodyFailure({ reason }: BodyFault, tooLarge: string, random = randomUnit): Failure {
  switch (reason) {
    case 'too-large':
      return new Failure('PAYLOAD_TOO_LARGE', tooLarge)
    case 'aborted':
      return invalidRequest('The body ended before it was complete.')
    case 'too-slow':
      return new Failure(
        'REQUEST_TIMEOUT',
        'The body took too long to arrive: Tollgate waits a minute, and a second more for each 100 KB that it has received. Send it faster, or send less.',
      )
    case 'no-room': {
      const why = 'Tollgate is being sent too many large requests at once to take this one. Retry in a moment.'
      return new Failure('OVERLOADED', why, { retryAfterMs: Math.round(retryMinMs + random() * retrySpreadMs) })
    }
  }
}

/** The path that requests are matched and authorised by: as it was sent, up to the query. */
export function pathOf(url: string): string {
  const query = url.indexOf('?')
  const sent = query < 0 ? url : url.slice(0, query)
  return percentEncoded(sent.startsWith('/') ? sent : sent.replace(/^https?:\/\/[^/]+/i, '') || '/')
}

export function queryOf(url: string): URLSearchParams {
  const [, query = ''] = /\?([^#]*)/.exec(url) ?? []
  return new URLSearchParams(percentEncoded(query))
}

const beyondAscii = /[\x80-\xff]/

/** Clients should encode bytes beyond ASCII themselves. */
function percentEncoded(text: string): string {
  if (!beyondAscii.test(text)) return text
  return text.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
}
