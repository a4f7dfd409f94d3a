// Settles a request that was attempted (settlement.ts), and learns from its reply for later requests: the health and speed of
// the route, where a conversation has its prompt cache, how many tokens a model makes of a byte, and how long answers are.

import type { Usage } from '../kernel/usage.ts'
import type { Health } from '../routing/health.ts'
import type { StickyRoutes } from '../routing/sticky.ts'
import { captureReply } from './capture-content.ts'
import type { InputRatios } from './estimate.ts'
import type { PreviousTurns, UsualOutputs } from './learned.ts'
import { sessionOf } from './place-hold.ts'
import { type End, type ReadReply, type Settled, type SettlementDependencies, settle } from './settlement.ts'
import type { Held } from './stages.ts'
import { createUsageWarnings } from './usage.ts'

export interface SettleReplyDependencies extends SettlementDependencies {
  readonly health: Pick<Health, 'recordInterrupted' | 'recordSpeed'>
  readonly sticky: Pick<StickyRoutes, 'remember'>
  readonly ratios: InputRatios
  readonly turns: PreviousTurns
  readonly outputs: UsualOutputs
}

export type SettleReply = (held: Held, end: End, read: ReadReply | undefined) => Promise<Settled>

/** Settles a request that a provider was called for, and learns from its reply. */
export function createSettleReply(deps: SettleReplyDependencies): SettleReply {
  const warnUsage = createUsageWarnings(deps)
  return (held, end, read) => {
    const { record, attempts } = held.exchange
    if (end.why !== undefined) attempts.interrupted(end.why)
    if (read && record.content) captureReply(held, end.failure, read)
    if (read) {
      learnTokens(held, read)
      learnRoute(held, end.why, read)
    }
    // `settle` completes the record before its first `await`; the warning need not wait for the commit.
    const settled = settle(deps, held, end, read)
    if (read) warnUsage(record, read.reply.candidate)
    return settled
  }

  function learnRoute({ admitted }: Held, why: End['why'], { reply, measured }: ReadReply): void {
    const { candidate, repliedMs } = reply
    const usage: Usage | undefined = measured.usage
    const { envelope, conversationKey } = admitted
    // A sandbox that fails on purpose breaks off every time.
    if (why !== undefined && !candidate.provider.ignoresHealth) {
      deps.health.recordInterrupted(candidate.health, repliedMs, why)
    } else if (usage && envelope.stream) {
      deps.health.recordSpeed(candidate.health, usage.outputTokens, deps.clock.monotonicMs() - repliedMs)
    }
    if (usage && conversationKey !== undefined) {
      deps.sticky.remember(conversationKey, candidate.health, usage.cacheWriteLongTokens > 0 ? 'long' : 'short')
    }
  }

  function learnTokens({ admitted }: Held, { reply, measured }: ReadReply): void {
    const { candidate, meter } = reply
    // The counts of a workspace's own endpoint must not affect the holds of others.
    if (candidate.isOwn) return
    const { model } = candidate
    const { usage } = measured
    if (usage) deps.outputs.learn(admitted.caller.keyId, model.id, usage.outputTokens / admitted.envelope.choices)
    const counted = meter.reportedInput(measured)
    if (!counted) return
    const { promptBytes, mayHaveMoreThanText } = admitted.content
    deps.ratios.learn(model.id, promptBytes, counted, mayHaveMoreThanText)
    const session = sessionOf(admitted, model)
    if (session !== undefined) deps.turns.learn(session, promptBytes, counted)
  }
}
