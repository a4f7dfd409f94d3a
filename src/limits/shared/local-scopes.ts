// What this process knows of the scopes it has asked for: what it has running, what the store said last, and what it let
// through on its own while the store was away. Then each process has its share, a limit divided by those that live.

import type { LimitScope, Limits } from '../limit.ts'
import { applyBatch } from './apply-batch.ts'
import type { AdmitAnswer, LoadReading } from './batch.ts'
import { type BucketState, usedAt } from './bucket-state.ts'
import { advanceLoad, endReservation, type LoadState, newLoad, type Seed, type SeedUnits } from './load-state.ts'

export interface LocalScope {
  readonly id: LimitScope['id']
  /** As last asked with. */
  limits: Limits
  running: number
  /** Beside them, those whose body is still to come; the store is not told of them. */
  arriving: number
  /** What the store said, with the time it was heard here. */
  seen: Buckets
  places: Places | undefined
  share: Share | undefined
  /** The last loss of the store after which it has been told what it missed. */
  toldLoss: number
}

/** Who had how much running when the store last spoke of it. */
export interface Places {
  readonly here: number
  readonly elsewhere: number
  readonly atMs: number
}

type Buckets = Pick<LoadReading, 'requests' | 'tokens'>

interface Share {
  readonly load: LoadState
  /** What the share began with, or what the store was told of it: not to be told again. */
  begun: Buckets
}

export interface Telling {
  readonly scope: LocalScope
  readonly seed: Seed
  readonly loss: number
  readonly told: Buckets
}

/** Of a request that was let through on a share. */
export interface ShareReservation {
  readonly load: LoadState
  readonly sequence: number | undefined
}

interface Hearing {
  readonly nowMs: number
  readonly admitted: boolean
}

const self = 'here'
/** For each scope that may be added, two are looked at, so that a round ends before as many new ones are there. */
const looksPerScope = 2

export class LocalScopes {
  readonly #scopes = new Map<LimitScope['id'], LocalScope>()
  #round = this.#scopes.values()
  #losses = 0

  of({ id, limits }: LimitScope): LocalScope {
    let scope = this.#scopes.get(id)
    if (!scope) {
      scope = {
        ...{ id, limits, running: 0, arriving: 0, seen: {} },
        ...{ places: undefined, share: undefined, toldLoss: this.#losses },
      }
      this.#scopes.set(id, scope)
    }
    scope.limits = limits
    return scope
  }

  /** The one in force: another may have come in its place since it had nothing taken. */
  current(scope: LocalScope): LocalScope {
    return this.#scopes.get(scope.id) ?? scope
  }

  /** Those whose places have to be kept. */
  withPlaces(): LocalScope[] {
    return [...this.#scopes.values()].filter(keepsPlaces)
  }

  /** Those of which the store has to be told at once after a loss; of the others, when they are asked for. */
  untold(): LocalScope[] {
    return [...this.#scopes.values()].filter((scope) => keepsPlaces(scope) || scope.share)
  }

  /** The store could not be asked: it may forget, and does not know what happens meanwhile. */
  noteLoss(): void {
    this.#losses++
  }

  /** `admitted`: the reading counts a request that is not among those running here yet. */
  hear(scope: LocalScope, { requests, tokens, running }: LoadReading, { nowMs, admitted }: Hearing): void {
    const here = scope.running + (admitted ? 1 : 0)
    scope.places = { here, elsewhere: Math.max(0, running - here), atMs: nowMs }
    scope.seen = {
      requests: requests && { ...requests, atMs: nowMs },
      tokens: tokens && { ...tokens, atMs: nowMs },
    }
  }

  /** What the store has to be told before it is asked; undefined = it knows all. */
  tellingOf(scope: LocalScope, nowMs: number): Telling | undefined {
    const { limits, seen, share } = scope
    if (scope.toldLoss === this.#losses && !share) return undefined
    const requests = seedUnits(seen.requests, share?.load.requests, share?.begun.requests, nowMs)
    const tokens = seedUnits(seen.tokens, share?.load.tokens, share?.begun.tokens, nowMs)
    if (scope.toldLoss === this.#losses && requests.addedUnits + tokens.addedUnits === 0) {
      scope.share = undefined
      return undefined
    }
    return { scope, seed: { limits, requests, tokens }, loss: this.#losses, told: snapshot(share?.load) }
  }

  /** The store has taken it. What a share let through in the meantime is left for the next time. */
  noteTold({ scope, loss, told }: Telling): void {
    scope.toldLoss = loss
    if (scope.share) scope.share.begun = told
  }

  /** On the share of this process: `shares` are the scopes with limits that were divided. */
  admit(locals: readonly LocalScope[], shares: readonly LimitScope[], tokens: number, nowMs: number): AdmitAnswer {
    const loads = locals.map((scope, at) => openShare(scope, shares[at]?.limits ?? {}, nowMs))
    const [answer] = applyBatch(
      loads,
      {
        replica: self,
        leaseMs: Number.POSITIVE_INFINITY,
        scopes: locals.map(({ id, running }) => ({ id, running })),
        operations: [{ kind: 'admit', tokens, scopes: shares.map(({ limits }, at) => ({ at, limits })) }],
      },
      nowMs,
    )
    return answer ?? { admitted: false, loads: [] }
  }

  get size(): number {
    return this.#scopes.size
  }

  /** Makes up for as many scopes as may be added next; before they are, because a new one is idle too. */
  forgetIdle(nowMs: number, scopes: number): void {
    for (let look = 0; look < scopes * looksPerScope; look++) {
      const next = this.#round.next()
      if (next.done) {
        this.#round = this.#scopes.values()
        return
      }
      if (isIdle(next.value, nowMs)) this.#scopes.delete(next.value.id)
    }
  }
}

/**
 * `limit ÷ replicas`, at least 1: who has a limit of 2 shall not be shut out by three replicas. Of places that were free
 * when the store last spoke, after `sinceMs`, everyone has a part only: others may still be in theirs.
 */
export function shareOf(limits: Limits, replicas: number, places?: Places, sinceMs = 0): Limits {
  const part = (limit: number | undefined) =>
    limit === undefined || limit === 0 ? limit : Math.max(1, Math.floor(limit / replicas))
  const partOfPlaces = (share: number | undefined) => {
    if (share === undefined || !places || places.atMs < sinceMs) return share
    const free = Math.max(0, (limits.concurrentRequests ?? 0) - places.here - places.elsewhere)
    return Math.min(share, places.here + Math.max(Math.min(1, free), Math.floor(free / replicas)))
  }
  return {
    requestsPerMinute: part(limits.requestsPerMinute),
    tokensPerMinute: part(limits.tokensPerMinute),
    concurrentRequests: partOfPlaces(part(limits.concurrentRequests)),
  }
}

/** Ends what a share let through. */
export function endOnShare({ load, sequence }: ShareReservation, nowMs: number, tokens: TokenCounts): void {
  if (sequence === undefined) return
  endReservation(load, nowMs, { sequence, ...tokens, tokensPerMinute: load.tokens?.limit ?? 0 })
}

export interface TokenCounts {
  readonly reservedTokens: number
  readonly actualTokens: number
}

/** A new share is as empty as the whole was when the store last answered: of what was left, everyone has a part. */
function openShare(scope: LocalScope, limits: Limits, nowMs: number): LoadState {
  if (scope.share) return scope.share.load
  const load = newLoad(nowMs)
  advanceLoad(load, nowMs, limits)
  fillShare(load.requests, scope.seen.requests, nowMs)
  fillShare(load.tokens, scope.seen.tokens, nowMs)
  scope.share = { load, begun: snapshot(load) }
  return load
}

function fillShare(share: BucketState | undefined, seen: BucketState | undefined, nowMs: number): void {
  if (!share || !seen || seen.limit === 0) return
  share.usedUnits = Math.floor((usedAt(seen, nowMs) / seen.limit) * share.limit)
}

function snapshot(load: LoadState | undefined): Buckets {
  return { requests: load?.requests && { ...load.requests }, tokens: load?.tokens && { ...load.tokens } }
}

function seedUnits(
  seen: BucketState | undefined,
  share: BucketState | undefined,
  begun: BucketState | undefined,
  nowMs: number,
): SeedUnits {
  const addedUnits = share ? usedAt(share, nowMs) - (begun ? usedAt(begun, nowMs) : 0) : 0
  return { lostUnits: seen ? usedAt(seen, nowMs) : 0, addedUnits: Math.max(0, addedUnits) }
}

function keepsPlaces({ running, limits }: LocalScope): boolean {
  return running > 0 && limits.concurrentRequests !== undefined
}

function isIdle({ running, arriving, seen, share }: LocalScope, nowMs: number): boolean {
  if (running + arriving > 0) return false
  const buckets = [seen.requests, seen.tokens, share?.load.requests, share?.load.tokens]
  return buckets.every((bucket) => bucket === undefined || usedAt(bucket, nowMs) === 0)
}
