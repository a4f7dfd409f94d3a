// The transport to a base URL that a tenant chose: the guard looks at every call, where the socket is about to be
// opened, and not only when the URL was stored.

import { unlessAborted } from '../call-endpoint.ts'
import type { Transport } from '../provider.ts'
import type { EgressGuard } from './egress-guard.ts'
import { EgressRefusal } from './egress-refusal.ts'
import { pinnedFetch } from './pinned-fetch.ts'

/** Rejects with an EgressRefusal where the URL may not be called, and as fetch does otherwise. */
export function createGuardedTransport(guard: EgressGuard, baseUrl: string): Transport {
  return async ({ path, headers, body, signal, isFresh }) => {
    // A name server may take long.
    const pinned = await unlessAborted(guard.check(baseUrl + path), signal)
    if (pinned instanceof EgressRefusal) throw pinned
    return pinnedFetch(pinned, { method: 'POST', headers, body, signal, isFresh: isFresh ?? false })
  }
}
