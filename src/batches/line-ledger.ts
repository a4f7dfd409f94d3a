// The ledger as the lines of a batch see it that has run at its provider: what is held for each of them is a part of what has been
// held for the whole batch.

import type { Ledger } from '../ledger/ledger.ts'
import type { LineKeys } from './line-keys.ts'

export function lineLedger(ledger: Ledger, { resultFor }: Pick<LineKeys, 'resultFor'>): Ledger {
  return {
    ...ledger,
    async hold(request) {
      const result = resultFor(request.requestId)
      if (!result) return await ledger.hold(request)
      const part = await ledger.takePart(result.holdId, { ...request, amount: result.share })
      // It has ended before its time: the line holds for itself, or waits until it can.
      return part.kind === 'gone' ? await ledger.hold(request) : part
    },
  }
}
