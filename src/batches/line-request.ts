// A line of a batch as a request: the gateway makes it itself, and it takes the path of every other request.

import type { BatchId, KeyId } from '../kernel/ids.ts'
import { type ClientRequest, madeRequest } from '../pipeline/client-request.ts'
import { Cancellation } from '../pipeline/deadline.ts'
import type { Connection } from '../pipeline/exchange.ts'
import type { BatchKind } from './kinds.ts'

/** Names the key that pays, in place of its secret, which nobody knows. Only requests that are made here are believed. */
export const payerHeader = 'x-tollgate-payer'

export interface LineFacts {
  readonly batchId: BatchId
  readonly keyId: KeyId
  /** Names the line: its answer is kept and charged once. */
  readonly lineKey: string
  readonly body: Uint8Array<ArrayBuffer>
}

export function lineRequest(kind: BatchKind, { batchId, keyId, lineKey, body }: LineFacts): ClientRequest {
  const headers = new Headers([...kind.headers])
  headers.set(payerHeader, keyId)
  headers.set('idempotency-key', lineKey)
  headers.set('user-agent', 'tollgate-batch')
  const parts = { url: kind.url, headers, signal: new Cancellation(), connection: { address: undefined } }
  return { ...madeRequest(parts, body), batchId }
}

/** There is no client that could leave or read slowly. */
export const noConnection: Connection = {
  keepOpen() {},
  rearm() {},
  drop() {},
  address: () => undefined,
}
