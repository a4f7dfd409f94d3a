// The lines of batches as requests under idempotency keys: `batch_…:17` is line 17. Its answer is kept before it is charged, in
// the row of the line, of which there can be one. So a line has one answer, and is charged for that one or not at all.

import { assert } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { StoredResult } from '../pipeline/stored-result.ts'
import type { KeyedRequest, RequestKeys } from '../tenancy/idempotency.ts'

/** `unresolved`: this process cannot find out whether it was charged. */
export type LineEnd = 'charged' | 'not charged' | 'unresolved'

/** A line that runs. */
export interface RunningLine {
  requestId: RequestId | undefined
  /** An answer may be stored for it. */
  isKept: boolean
  /** Resolves once it is certain, if an answer is kept. */
  readonly end: PromiseWithResolvers<LineEnd>
  /** Stores the answer; false = there is one already. */
  keep(requestId: RequestId, answer: Uint8Array): Promise<boolean>
  /** Takes the answer back. */
  forget(requestId: RequestId): Promise<void>
  /** Of a line that its provider has answered in a batch. */
  readonly result?: LineResult | undefined
}

/** What a line gets in place of a reply, and the money that is held for it. */
export interface LineResult {
  readonly stored: StoredResult
  /** The standing hold of its batch, and how much of that is for this line. */
  readonly holdId: RequestId
  readonly share: Nano
  /** Set once the request has got it: what ends it from then on is final. */
  isTaken: boolean
}

export type LineKeys = ReturnType<typeof createLineKeys>

export function createLineKeys() {
  const running = new Map<string, RunningLine>()
  const claimed = new Map<RequestId, RunningLine>()
  const find = ({ key }: KeyedRequest): RunningLine => {
    const line = running.get(key)
    assert(line, 'a line that is run is known')
    return line
  }
  const keys: RequestKeys = {
    async claim(request) {
      const line = find(request)
      line.requestId = request.requestId
      claimed.set(request.requestId, line)
      return { kind: 'claimed' }
    },
    confirm: async () => true,
    async keep(request, answer) {
      const line = find(request)
      // Also if it is not known whether it was stored.
      line.isKept = true
      line.isKept = await line.keep(request.requestId, answer)
      return line.isKept
    },
    async complete(request) {
      find(request).end.resolve('charged')
    },
    async abandon(request) {
      const line = find(request)
      try {
        if (line.isKept) await line.forget(request.requestId)
        line.end.resolve('not charged')
      } catch {
        line.end.resolve('unresolved')
      }
    },
    leaveUnresolved(request) {
      find(request).end.resolve('unresolved')
    },
  }
  return {
    keys,
    /** `key` must not be used again before the line has ended. */
    begin: (key: string, line: RunningLine) => void running.set(key, line),
    end(key: string): void {
      const requestId = running.get(key)?.requestId
      if (requestId) claimed.delete(requestId)
      running.delete(key)
    },
    /** What the request of a line gets in place of a reply. Whatever ends it from then on is final. */
    takeResult(requestId: RequestId): StoredResult {
      const result = claimed.get(requestId)?.result
      assert(result, 'a line that its provider has run has a result')
      result.isTaken = true
      return result.stored
    },
    /** What the provider has answered to the line whose request this is. */
    resultFor: (requestId: RequestId) => claimed.get(requestId)?.result,
  }
}
