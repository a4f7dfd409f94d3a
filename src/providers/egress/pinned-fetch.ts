// Calls a checked address. The runtime's fetch takes no resolver, so the address stands in the URL and the name in the
// Host header and in the TLS handshake, against which the certificate is verified. No redirect is ever followed.

import { isUnreachable } from '../call-endpoint.ts'
import type { Pinned } from './egress-guard.ts'

export interface PinnedInit {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer>
  readonly signal?: AbortSignal
  /** Over a connection of its own, because a pooled one may be dead. */
  readonly isFresh?: boolean
  /** PEM of the authorities to trust; absent = the runtime's own. */
  readonly ca?: string
}

/** Rejects as fetch does. Another address is tried only where nothing was sent to the one before. */
export async function pinnedFetch(pinned: Pinned, init: PinnedInit): Promise<Response> {
  let failure: unknown
  for (const url of pinned.dialUrls) {
    try {
      return await fetch(url, requestOptions(pinned, init))
    } catch (thrown) {
      if (init.signal?.aborted || !isUnreachable(thrown)) throw thrown
      failure = thrown
    }
  }
  throw failure
}

function requestOptions({ host, serverName }: Pinned, { method, headers, body, signal, isFresh, ca }: PinnedInit) {
  // A second Host in other letters would be joined to ours.
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'host')
  return {
    method,
    headers: { ...Object.fromEntries(others), host },
    redirect: 'manual',
    decompress: false,
    // The clocks are the gateway's, as for every call of a provider.
    timeout: false,
    ...(isFresh && { keepalive: false }),
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    // The runtime keeps connections apart by this name too: hosts that share an address share no connection.
    tls: { ...(serverName === undefined ? {} : { serverName }), ...(ca === undefined ? {} : { ca }) },
  } as const
}
