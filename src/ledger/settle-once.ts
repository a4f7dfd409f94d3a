// Two calls that settle one request at the same time are one settlement: the second waits for the first and hears the
// same transfer. What was settled earlier is found in the database instead.

import type { RequestId } from '../kernel/ids.ts'
import type { Settlement, SettleOutcome } from './ledger.ts'

type Settle = (settlement: Settlement) => Promise<SettleOutcome>

export function settleOnce(settle: Settle): Settle {
  const running = new Map<RequestId, Promise<SettleOutcome>>()
  return (settlement) => {
    const { requestId } = settlement
    const first = running.get(requestId)
    if (first) return first.then((outcome) => (outcome.kind === 'settled' ? { ...outcome, repeated: true } : outcome))
    const outcome = settle(settlement).finally(() => running.delete(requestId))
    running.set(requestId, outcome)
    return outcome
  }
}
