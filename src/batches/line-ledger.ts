// The ledger for lines that ran in a batch of their provider: the hold of each line is a part of the hold of the whole batch.

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
