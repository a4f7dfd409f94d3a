// Two calls that settle one request at the same time are one settlement: the second waits for the first and hears the
// same transfer. What was settled earlier is found in the database instead.

import type { RequestId } from '../kernel/ids.ts'
import type { SettleEnd, Settlement, SettleOutcome } from './ledger.ts'

type Settle = (settlement: Settlement) => Promise<SettleOutcome>

export function settleOnce(settle: Settle): Settle {
  const running = new Map<RequestId, Promise<SettleOutcome>>()
  return (settlement) => {
    const { requestId } = settlement
    const first = running.get(requestId)
    if (first) return first.then(repeated)
    const forget = () => void running.delete(requestId)
    const outcome = settle(settlement)
    running.set(requestId, outcome)
    // Until an unknown outcome is certain, the database does not say yet what it will be.
    outcome.then((heard) => (heard.kind === 'unknown' ? heard.end.then(forget) : forget()), forget)
    return outcome
  }
}

function repeated(outcome: SettleOutcome): SettleOutcome {
  if (outcome.kind !== 'unknown') return repeatedEnd(outcome)
  return { ...outcome, end: outcome.end.then((end) => end && repeatedEnd(end)) }
}

function repeatedEnd(end: SettleEnd): SettleEnd {
  return end.kind === 'settled' ? { ...end, repeated: true } : end
}
