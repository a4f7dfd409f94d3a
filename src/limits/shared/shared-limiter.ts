// The limiter of several processes that count in one store. It decides nothing itself: the store does, or, while that is
// away, the share of each limit that falls to this process. Requests without limits never reach the store.

import type { Clock } from '../../kernel/clock.ts'
import { createId } from '../../kernel/ids.ts'
import { isLimited } from '../limit.ts'
import type { Admission, Arrival, Limiter } from '../limiter.ts'
import { admitAlone, answerAlone, answerShared, type Desk, wholeTokens } from './admissions.ts'
import { arrive, type Door } from './arrivals.ts'
import type { LoadStore } from './batch.ts'
import { buildBatch, type Entry } from './build-batch.ts'
import { createExchange } from './exchange.ts'
import { LocalScopes } from './local-scopes.ts'

export interface SharedLimiter extends Limiter {
  readonly mode: LimiterMode
  /** How many scopes are remembered here; for a gauge. */
  readonly scopeCount: number
  /** Resolves when the store knows all that was said so far, or is away. */
  settled(): Promise<void>
  close(): Promise<void>
}

export type LimiterMode =
  | { readonly kind: 'shared' }
  /** The store is away: this process lets through its share of each limit. */
  | { readonly kind: 'share'; readonly since: number; readonly replicas: number; readonly why: string }

export interface SharedLimiterOptions {
  readonly store: LoadStore
  readonly clock: Clock
  /** Processes that live, this one included, as far as known; at least 1. Asked while the store is away. */
  liveReplicas(): number
  /** How long a request may wait for the store, before that counts as away. */
  readonly patienceMs: number
  /** Places of a process that died are free after this; a process says three times in it that it lives. */
  readonly leaseMs?: number | undefined
  onMode?: ((mode: LimiterMode) => void) | undefined
}

const defaultLeaseMs = 15_000

/** Shared by all requests without limits, so that they cost nothing. */
const unlimited: Admission = Object.freeze({ kind: 'admitted', state: Object.freeze({}), end() {} })
const unlimitedArrival: Arrival = Object.freeze({ kind: 'arrived', admit: () => unlimited, end() {} })
const sharedMode: LimiterMode = Object.freeze({ kind: 'shared' })

export function createSharedLimiter(options: SharedLimiterOptions): SharedLimiter {
  const { store, clock, liveReplicas, patienceMs, leaseMs = defaultLeaseMs, onMode = () => {} } = options
  const replica = createId('rep')
  const readMs = () => Math.floor(clock.monotonicMs())
  const locals = new LocalScopes()
  let mode: LimiterMode = sharedMode
  const enter = (next: LimiterMode): void => {
    mode = next
    onMode(next)
  }

  const exchange = createExchange<Entry>({
    patienceMs,
    async send(entries) {
      const { batch, tellings } = buildBatch(entries, locals, { replica, leaseMs, nowMs: readMs() })
      const answers = await store.exchange(batch)
      for (const telling of tellings) locals.noteTold(telling)
      return answers
    },
    done(entries, answers) {
      for (const [at, entry] of entries.filter((each) => each.kind === 'admit').entries()) {
        const answer = answers[at]
        if (answer) answerShared(desk, entry, answer)
      }
    },
    giveUp(entry, sent) {
      if (entry.kind === 'admit') answerAlone(desk, entry)
      // A correction that may have been made must not be made twice.
      return entry.kind === 'end' && !sent
    },
    onLoss(why) {
      locals.noteLoss()
      enter({ kind: 'share', since: clock.now(), replicas: liveReplicas(), why })
    },
    onReturn() {
      enter(sharedMode)
      for (const scope of locals.untold()) exchange.submit({ kind: 'tell', scope })
    },
    probe: () => locals.untold().map((scope) => ({ kind: 'tell', scope })),
  })

  const desk: Desk = { locals, readMs, liveReplicas, knownMs: leaseMs, submit: (entry) => exchange.submit(entry) }
  const renew = (): void => {
    if (exchange.isAway) return
    for (const scope of locals.withPlaces()) exchange.submit({ kind: 'tell', scope })
  }
  const renewal = setInterval(renew, leaseMs / 3)
  renewal.unref()

  const admit: Door['admit'] = (limited, estimatedTokens) => {
    const tokens = wholeTokens(estimatedTokens)
    locals.forgetIdle(readMs(), limited.length)
    if (exchange.isAway) return admitAlone(desk, limited, tokens)
    return new Promise((resolve) => {
      exchange.submit({ kind: 'admit', scopes: limited, tokens, resolve, answered: false })
    })
  }

  return {
    arrive: (scopes) =>
      scopes.some(isLimited) ? arrive({ locals, readMs, admit }, scopes.filter(isLimited)) : unlimitedArrival,
    admit: (scopes, estimatedTokens) =>
      scopes.some(isLimited) ? admit(scopes.filter(isLimited), estimatedTokens) : unlimited,
    get mode() {
      return mode
    },
    get scopeCount() {
      return locals.size
    },
    settled: () => exchange.settled(),
    async close() {
      clearInterval(renewal)
      await exchange.close()
    },
  }
}
