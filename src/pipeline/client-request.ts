// A client's request: the only kind of request inside the gateway. The HTTP server receives them, and a page that reads the
// management API for its user makes one (app/admin.ts).

import type { CancelSignal } from '../providers/provider.ts'
import type { RequestHeaders } from '../wire/http-message.ts'
import type { Message } from '../wire/read-body.ts'

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
