// A line of a batch as a request: the gateway makes it itself, and it takes the path of every other request.

import type { BatchId, KeyId } from '../kernel/ids.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import { Cancellation } from '../pipeline/deadline.ts'
import type { Connection } from '../pipeline/exchange.ts'
import type { BatchKind } from './kinds.ts'

/** Names the key that pays, in place of its secret, which nobody knows. Only requests of this class are believed. */
export const payerHeader = 'x-tollgate-payer'

export interface LineFacts {
  readonly batchId: BatchId
  readonly keyId: KeyId
  /** Names the line: its answer is kept and charged once. */
  readonly lineKey: string
  readonly body: Uint8Array<ArrayBuffer>
}

export class LineRequest implements ClientRequest {
  readonly method = 'POST'
  readonly url: string
  readonly headers: Headers
  readonly body = null
  readonly signal = new Cancellation()
  readonly connection = { address: undefined }
  readonly batchId: BatchId
  bodyUsed = false
  readonly #bytes: Uint8Array<ArrayBuffer>

  constructor(kind: BatchKind, { batchId, keyId, lineKey, body }: LineFacts) {
    this.url = kind.url
    this.batchId = batchId
    this.#bytes = body
    this.headers = new Headers([...kind.headers])
    this.headers.set(payerHeader, keyId)
    this.headers.set('idempotency-key', lineKey)
    this.headers.set('user-agent', 'tollgate-batch')
  }

  takeWhole(): Uint8Array {
    this.bodyUsed = true
    return this.#bytes
  }

  async bytes(): Promise<Uint8Array> {
    return this.takeWhole()
  }
}

/** There is no client that could leave or read slowly. */
export const noConnection: Connection = {
  keepOpen() {},
  rearm() {},
  drop() {},
  address: () => undefined,
}
