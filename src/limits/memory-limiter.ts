// The limiter of one process. It decides and counts in one turn of the event loop, with nothing awaited between, which
// makes it exact: a limit of N admits N however many requests come at once. The shared limiter uses the same functions
// for what it knows of its scopes, and for its share of each limit while the store is unreachable.

import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import {
  type Arrival,
  createAdmission,
  isLimited,
  type Limiter,
  type RateScope,
  type Refused,
  unlimited,
  unlimitedArrival,
  type Verdict,
  wholeTokens,
} from './limiter.ts'
import {
  advanceLoad,
  beginRequest,
  correct,
  findRefusal,
  type Load,
  type LoadReading,
  newLoad,
  statesOf,
  usedUnitsAt,
} from './load.ts'

export interface MemoryLimiter extends Limiter {
  admit(scopes: readonly RateScope[], estimatedTokens: number): Verdict
  /** How many scopes are remembered; for a gauge. */
  readonly scopeCount: number
}

export function createMemoryLimiter(clock: Clock): MemoryLimiter {
  const table = new ScopeTable((_, nowMs): LocalScope => ({ load: newLoad(nowMs), running: 0, arriving: 0, asking: 0 }))
  // Buckets are exact in whole milliseconds. Monotonic, because wall time steps.
  const readMs = () => Math.floor(clock.monotonicMs())

  const find = (scopes: readonly RateScope[], nowMs: number): Counted[] => {
    table.forgetIdle(nowMs, scopes.length)
    return scopes.filter(isLimited).map((scope) => {
      const local = table.of(scope, nowMs)
      return { scope, local, load: local.load }
    })
  }
  const admit = (scopes: readonly RateScope[], estimatedTokens: number): Verdict =>
    scopes.some(isLimited) ? admitHere(find(scopes, readMs()), wholeTokens(estimatedTokens), readMs) : unlimited

  return {
    arrive: (scopes) =>
      scopes.some(isLimited)
        ? arriveHere(find(scopes, readMs()), readMs(), (tokens) => admit(scopes, tokens))
        : unlimitedArrival,
    admit,
    get scopeCount() {
      return table.size
    },
  }
}

/** The running requests of this process in a scope, and the known load there. */
export interface LocalScope {
  readonly load: Load
  running: number
  /** Requests with a slot whose body has not been read. */
  arriving: number
  /** Requests that wait for the answer of a shared store. */
  asking: number
  /** The part of the limits that this process has while a shared store is unreachable. */
  share?: { readonly load: Load } | undefined
}

export interface Counted<Local extends LocalScope = LocalScope> {
  readonly scope: RateScope
  readonly local: Local
  /** The load of the scope, or of this process's share of it. */
  readonly load: Load
}

export function arriveHere(
  counted: readonly Counted[],
  nowMs: number,
  admit: (tokens: number) => Verdict | Promise<Verdict>,
): Arrival | Refused {
  const refused = refusalHere(counted, 0, nowMs, ({ local, load }) => {
    const running = local.running + local.arriving + local.asking
    return { requests: load.requests, tokens: load.tokens, running }
  })
  if (refused) return refused
  for (const { local } of counted) local.arriving++
  let ended = false
  const leave = (): void => {
    assert(!ended, 'an arrival ends once')
    ended = true
    for (const { local } of counted) local.arriving--
  }
  return {
    kind: 'arrived',
    admit(tokens) {
      leave()
      return admit(tokens)
    },
    end() {
      leave()
      const verdict = admit(0)
      // Not awaited where it is known: the slot must be free for the next request at once.
      if (verdict instanceof Promise) void verdict.then(endUnused)
      else endUnused(verdict)
    },
  }
}

/** Ends a request that could not be served. A refused one counted nothing. */
function endUnused(verdict: Verdict): void {
  if (verdict.kind === 'admitted') verdict.end(0)
}

/** Counts a request in all of its scopes, or in none. */
export function admitHere(counted: readonly Counted[], tokens: number, readMs: () => number): Verdict {
  const refused = refusalHere(counted, tokens, readMs())
  if (refused) return refused
  const sequences = counted.map(({ scope, local, load }) => {
    local.running++
    return beginRequest(load, scope.limits, tokens)
  })
  return createAdmission(statesOf(counted.map(scopeOf), counted.map(readingOf)), (actualTokens) => {
    const nowMs = readMs()
    for (const [at, { scope, local, load }] of counted.entries()) {
      local.running--
      const sequence = sequences[at]
      if (sequence === undefined) continue
      const { tokensPerMinute = 0 } = scope.limits
      correct(load, nowMs, { sequence, reservedTokens: tokens, actualTokens, tokensPerMinute })
    }
  })
}

function refusalHere(
  counted: readonly Counted[],
  tokens: number,
  nowMs: number,
  read = readingOf,
): Refused | undefined {
  for (const { scope, load } of counted) advanceLoad(load, nowMs, scope.limits)
  return findRefusal(counted.map(scopeOf), counted.map(read), tokens)
}

function scopeOf({ scope }: Counted): RateScope {
  return scope
}

function readingOf({ local, load }: Counted): LoadReading {
  return { requests: load.requests, tokens: load.tokens, running: local.running + local.arriving }
}

/**
 * The scopes in use. Those with nothing taken are forgotten bit by bit as others come, without a timer: a forgotten scope
 * and one that has drained are the same.
 */
export class ScopeTable<Local extends LocalScope> {
  // Ids have prefixes: a key's is never a project's.
  readonly #scopes = new Map<RateScope['id'], Local>()
  #round = this.#scopes.entries()
  readonly #create: (scope: RateScope, nowMs: number) => Local

  constructor(create: (scope: RateScope, nowMs: number) => Local) {
    this.#create = create
  }

  of(scope: RateScope, nowMs: number): Local {
    let local = this.#scopes.get(scope.id)
    if (!local) {
      local = this.#create(scope, nowMs)
      this.#scopes.set(scope.id, local)
    }
    return local
  }

  get(id: RateScope['id']): Local | undefined {
    return this.#scopes.get(id)
  }

  all(): Local[] {
    return [...this.#scopes.values()]
  }

  get size(): number {
    return this.#scopes.size
  }

  /**
   * Call before scopes are added: a new one is idle too. For each that may be added, two are checked, so that a round
   * over M of them ends before M/2 new ones are there, and the table holds at most about twice as many as were in use
   * during a round.
   */
  forgetIdle(nowMs: number, added: number): void {
    for (let check = 0; check < added * 2; check++) {
      const next = this.#round.next()
      if (next.done) {
        // A map's iterator sees additions and survives deletions, but once done it stays done.
        this.#round = this.#scopes.entries()
        return
      }
      const [id, local] = next.value
      if (isIdle(local, nowMs)) this.#scopes.delete(id)
    }
  }
}

function isIdle({ running, arriving, asking, load, share }: LocalScope, nowMs: number): boolean {
  if (running + arriving + asking > 0) return false
  const buckets = [load.requests, load.tokens, share?.load.requests, share?.load.tokens]
  return buckets.every((bucket) => usedUnitsAt(bucket, nowMs) === 0)
}
