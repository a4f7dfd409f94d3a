// The limiter of several processes that count in one store. The store decides. While it is unreachable, each process has
// a share, the limit divided by the live processes, and reports what it admitted once the store is back. Requests
// without limits never reach the store.

import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import type {
  AdmitAnswer,
  AdmitOperation,
  AnsweredLoad,
  Batch,
  BatchScope,
  LoadStore,
  Seed,
  SeedUnits,
} from './batch.ts'
import { Exchange } from './exchange.ts'
import {
  type Arrival,
  createAdmission,
  isLimited,
  type Limiter,
  type RateLimits,
  type RateScope,
  type Refused,
  unlimited,
  unlimitedArrival,
  type Verdict,
  wholeTokens,
} from './limiter.ts'
import {
  advanceLoad,
  type Bucket,
  type Correction,
  findRefusal,
  type Load,
  newLoad,
  statesOf,
  usedUnitsAt,
} from './load.ts'
import { admitHere, arriveHere, type Counted, type LocalScope, ScopeTable } from './memory-limiter.ts'

export type LimiterMode =
  | { readonly kind: 'shared' }
  /** The store is unreachable: this process admits its share of each limit. */
  | { readonly kind: 'share'; readonly since: number; readonly replicas: number; readonly why: string }

export interface SharedLimiterOptions {
  readonly store: LoadStore
  readonly clock: Clock
  /** Live processes, this one included, as far as known. Called while the store is unreachable. */
  liveReplicas(): number
  /** How long a request may wait for the store before it counts as unreachable. */
  readonly timeoutMs?: number | undefined
  /** The slots of a dead process are free after this; a live one renews them three times in it. */
  readonly leaseMs?: number | undefined
  onMode?: ((mode: LimiterMode) => void) | undefined
}

/**
 * A thousand times what Redis takes: as long as the store is only slow, it counts for all, and a share in addition to its
 * count would exceed the limit.
 */
const defaultTimeoutMs = 1000
const defaultLeaseMs = 15_000
type ScopeId = RateScope['id']

const sharedMode: LimiterMode = Object.freeze({ kind: 'shared' })

interface SharedScope extends LocalScope {
  readonly id: ScopeId
  /** The limits of the last request. */
  limits: RateLimits
  /** The last reading of the store, by the clock of this process. */
  readonly load: Load
  asking: number
  lastSlots: LastSlots | undefined
  share: Share | undefined
  /** The last loss of the store since which it was sent what it missed. */
  syncedLoss: number
}

/** How many requests were running where when the store last answered. */
interface LastSlots {
  readonly here: number
  readonly elsewhere: number
  readonly atMs: number
}

type Buckets = Pick<Load, 'requests' | 'tokens'>

interface Share {
  readonly load: Load
  /** The start of the share, or the part of it that was sent to the store: not to be sent again. */
  synced: Buckets
}

interface SyncDelta {
  readonly scope: SharedScope
  readonly seed: Seed
  readonly loss: number
  readonly sent: Buckets
}

type Entry = AdmitEntry | SyncEntry

interface AdmitEntry {
  readonly kind: 'admit'
  readonly counted: readonly Counted<SharedScope>[]
  readonly tokens: number
  /** Undefined once the request was answered, by the store or without it. */
  answer: ((decide: () => Verdict) => void) | undefined
}

/** Sends how many requests run in these scopes, what ended there, and what the store does not know of them. */
interface SyncEntry {
  readonly kind: 'sync'
  readonly ids: readonly ScopeId[]
  readonly corrections: readonly (Correction & { readonly id: ScopeId })[]
}

export class SharedLimiter implements Limiter {
  readonly #options: SharedLimiterOptions
  readonly #leaseMs: number
  readonly #replica = createId('rep')
  readonly #exchange: Exchange<Entry>
  readonly #renewal: ReturnType<typeof setInterval>
  readonly #scopes = new ScopeTable<SharedScope>(({ id, limits }, nowMs) => ({
    ...{ id, limits, load: newLoad(nowMs), running: 0, arriving: 0, asking: 0 },
    ...{ lastSlots: undefined, share: undefined, syncedLoss: this.#losses },
  }))
  #losses = 0
  #mode: LimiterMode = sharedMode

  constructor(options: SharedLimiterOptions) {
    this.#options = options
    this.#leaseMs = options.leaseMs ?? defaultLeaseMs
    const handlers = {
      send: (entries: readonly Entry[]) => this.#send(entries),
      done: (entries: readonly Entry[], answers: readonly AdmitAnswer[]) => this.#done(entries, answers),
      giveUp: (entry: Entry, sent: boolean) => this.#giveUp(entry, sent),
      onLoss: (why: string) => this.#onLoss(why),
      onReturn: () => this.#onReturn(),
      probe: () => this.#unsynced(),
    }
    this.#exchange = new Exchange<Entry>(handlers, options.timeoutMs ?? defaultTimeoutMs)
    this.#renewal = setInterval(() => this.#renewSlots(), this.#leaseMs / 3)
    this.#renewal.unref()
  }

  get mode(): LimiterMode {
    return this.#mode
  }

  /** How many scopes are remembered here; for a gauge. */
  get scopeCount(): number {
    return this.#scopes.size
  }

  /**
   * The store is not asked: what this process knows is enough to refuse what the store would refuse, and the store
   * decides about the rest when the body is there.
   */
  arrive(scopes: readonly RateScope[]): Arrival | Refused {
    if (!scopes.some(isLimited)) return unlimitedArrival
    return arriveHere(this.#count(scopes), this.#nowMs(), (tokens) => this.admit(scopes, tokens))
  }

  admit(scopes: readonly RateScope[], estimatedTokens: number): Verdict | Promise<Verdict> {
    if (!scopes.some(isLimited)) return unlimited
    const tokens = wholeTokens(estimatedTokens)
    this.#scopes.forgetIdle(this.#nowMs(), scopes.length)
    const counted = this.#count(scopes)
    if (this.#exchange.isAway) return this.#admitOnShare(counted, tokens)
    for (const { local } of counted) local.asking++
    return new Promise((resolve) => {
      const answer = (decide: () => Verdict): void => {
        entry.answer = undefined
        for (const { local } of counted) local.asking--
        resolve(decide())
      }
      const entry: AdmitEntry = { kind: 'admit', counted, tokens, answer }
      this.#exchange.submit(entry)
    })
  }

  /** Resolves when the store has everything sent so far, or is unreachable. */
  settled(): Promise<void> {
    return this.#exchange.settled()
  }

  async close(): Promise<void> {
    clearInterval(this.#renewal)
    await this.#exchange.close()
    this.#options.store.close?.()
  }

  #nowMs(): number {
    return Math.floor(this.#options.clock.monotonicMs())
  }

  #count(scopes: readonly RateScope[]): Counted<SharedScope>[] {
    const nowMs = this.#nowMs()
    return scopes.filter(isLimited).map((scope) => {
      const local = this.#scopes.of(scope, nowMs)
      local.limits = scope.limits
      return { scope, local, load: local.load }
    })
  }

  #admitOnShare(counted: readonly Counted<SharedScope>[], tokens: number): Verdict {
    const nowMs = this.#nowMs()
    const replicas = Math.max(1, this.#options.liveReplicas())
    const shares = counted.map(({ scope, local }) => {
      // How many slots others use is known for as long as their slots last.
      const lastSlots = local.lastSlots && local.lastSlots.atMs >= nowMs - this.#leaseMs ? local.lastSlots : undefined
      const limits = shareOf(scope.limits, replicas, lastSlots)
      return { scope: { ...scope, limits }, local, load: openShare(local, limits, nowMs) }
    })
    return admitHere(shares, tokens, () => this.#nowMs())
  }

  // Exchanges with the store.

  async #send(entries: readonly Entry[]): Promise<readonly AdmitAnswer[]> {
    const { batch, deltas } = this.#buildBatch(entries)
    const answers = await this.#options.store.exchange(batch)
    for (const { scope, loss, sent } of deltas) {
      scope.syncedLoss = loss
      // Requests that the share admitted meanwhile are sent with the next exchange.
      if (scope.share) scope.share.synced = sent
    }
    return answers
  }

  #buildBatch(entries: readonly Entry[]): { readonly batch: Batch; readonly deltas: readonly SyncDelta[] } {
    const nowMs = this.#nowMs()
    const indexes = new Map<ScopeId, number>()
    const indexOf = (id: ScopeId): number => {
      const index = indexes.get(id) ?? indexes.size
      indexes.set(id, index)
      return index
    }
    const corrections: Batch['corrections'][number][] = []
    const admits: AdmitOperation[] = []
    for (const entry of entries) {
      if (entry.kind === 'admit') {
        const scopes = entry.counted.map(({ scope: { id, limits } }) => ({ at: indexOf(id), limits }))
        admits.push({ tokens: entry.tokens, scopes })
      } else {
        for (const id of entry.ids) indexOf(id)
        for (const { id, ...correction } of entry.corrections) corrections.push({ at: indexOf(id), ...correction })
      }
    }
    const deltas: SyncDelta[] = []
    const scopes = [...indexes.keys()].map((id): BatchScope => {
      // A scope with nothing taken may have been forgotten.
      const scope = this.#scopes.get(id)
      const delta = scope && this.#deltaOf(scope, nowMs)
      if (delta) deltas.push(delta)
      return { id, running: scope?.running ?? 0, seed: delta?.seed }
    })
    return { batch: { replica: this.#replica, leaseMs: this.#leaseMs, scopes, corrections, admits }, deltas }
  }

  #done(entries: readonly Entry[], answers: readonly AdmitAnswer[]): void {
    for (const [at, entry] of entries.filter((each) => each.kind === 'admit').entries()) {
      const answer = answers[at]
      if (answer) this.#answer(entry, answer)
    }
  }

  #answer(entry: AdmitEntry, { admitted, loads }: AdmitAnswer): void {
    const { counted, tokens } = entry
    const nowMs = this.#nowMs()
    for (const [at, { local }] of counted.entries()) applyReading(local, loads[at], nowMs, admitted)
    const end = (actualTokens: number): void => this.#exchange.submit(endOf(entry, loads, actualTokens))
    if (!entry.answer) {
      // The caller was answered without the store: what the store took goes back.
      if (admitted) end(0)
      return
    }
    const scopes = counted.map(({ scope }) => scope)
    entry.answer(() => {
      if (!admitted) {
        const refused = findRefusal(scopes, loads, tokens)
        assert(refused, 'what the store refused meets an obstacle')
        return refused
      }
      for (const { local } of counted) local.running++
      return createAdmission(statesOf(scopes, loads), (actualTokens) => {
        for (const { local } of counted) local.running--
        end(actualTokens)
      })
    })
  }

  #giveUp(entry: Entry, sent: boolean): boolean {
    if (entry.kind === 'admit') entry.answer?.(() => this.#admitOnShare(entry.counted, entry.tokens))
    // A correction that may have been made must not be made twice.
    return entry.kind === 'sync' && !sent
  }

  #onLoss(why: string): void {
    // The store may lose its counts, and does not know what happens from now on.
    this.#losses++
    const { clock, liveReplicas } = this.#options
    this.#enter({ kind: 'share', since: clock.now(), replicas: liveReplicas(), why })
  }

  #onReturn(): void {
    this.#enter(sharedMode)
    for (const entry of this.#unsynced()) this.#exchange.submit(entry)
  }

  #enter(mode: LimiterMode): void {
    this.#mode = mode
    this.#options.onMode?.(mode)
  }

  #renewSlots(): void {
    if (this.#exchange.isAway) return
    for (const scope of this.#scopes.all()) if (hasSlots(scope)) this.#exchange.submit(syncOf(scope))
  }

  /** Scopes to sync at once after a loss. The others follow with their next request. */
  #unsynced(): SyncEntry[] {
    return this.#scopes
      .all()
      .filter((scope) => hasSlots(scope) || scope.share)
      .map(syncOf)
  }

  /** The state that the store needs before it decides; undefined = it has everything. */
  #deltaOf(scope: SharedScope, nowMs: number): SyncDelta | undefined {
    const { limits, load, share } = scope
    const isSynced = scope.syncedLoss === this.#losses
    if (isSynced && !share) return undefined
    const requests = seedUnits(load.requests, share?.load.requests, share?.synced.requests, nowMs)
    const tokens = seedUnits(load.tokens, share?.load.tokens, share?.synced.tokens, nowMs)
    if (isSynced && requests.addedUnits + tokens.addedUnits === 0) {
      scope.share = undefined
      return undefined
    }
    return { scope, seed: { limits, requests, tokens }, loss: this.#losses, sent: snapshot(share?.load) }
  }
}

function syncOf({ id }: SharedScope): SyncEntry {
  return { kind: 'sync', ids: [id], corrections: [] }
}

/** For a request that no longer counts as running here. */
function endOf({ counted, tokens }: AdmitEntry, loads: readonly AnsweredLoad[], actualTokens: number): SyncEntry {
  const corrections = counted.flatMap(({ scope: { id, limits } }, at) => {
    const sequence = loads[at]?.sequence
    const { tokensPerMinute } = limits
    if (sequence === undefined || tokensPerMinute === undefined) return []
    return [{ id, sequence, tokensPerMinute, reservedTokens: tokens, actualTokens }]
  })
  return { kind: 'sync', ids: counted.map(({ scope }) => scope.id), corrections }
}

/** `admitted`: the reading counts a request that does not run here yet. */
function applyReading(scope: SharedScope, reading: AnsweredLoad | undefined, nowMs: number, admitted: boolean): void {
  if (!reading) return
  const here = scope.running + (admitted ? 1 : 0)
  scope.lastSlots = { here, elsewhere: Math.max(0, reading.running - here), atMs: nowMs }
  scope.load.requests = reading.requests && { ...reading.requests, atMs: nowMs }
  scope.load.tokens = reading.tokens && { ...reading.tokens, atMs: nowMs }
}

/**
 * `limit ÷ replicas`, at least 1: three replicas shall not lock out a limit of 2. Of the slots that were free when the
 * store last answered, each process takes a part only: others may still use theirs.
 */
function shareOf(limits: RateLimits, replicas: number, lastSlots: LastSlots | undefined): RateLimits {
  const part = (limit: number | undefined) =>
    limit === undefined || limit === 0 ? limit : Math.max(1, Math.floor(limit / replicas))
  let concurrentRequests = part(limits.concurrentRequests)
  if (concurrentRequests !== undefined && lastSlots) {
    const { here, elsewhere } = lastSlots
    const free = Math.max(0, (limits.concurrentRequests ?? 0) - here - elsewhere)
    concurrentRequests = Math.min(concurrentRequests, here + Math.max(Math.min(1, free), Math.floor(free / replicas)))
  }
  return {
    requestsPerMinute: part(limits.requestsPerMinute),
    tokensPerMinute: part(limits.tokensPerMinute),
    concurrentRequests,
  }
}

/** A new share is as full as the whole was when the store last answered; each process gets a part of what was left. */
function openShare(scope: SharedScope, limits: RateLimits, nowMs: number): Load {
  if (scope.share) return scope.share.load
  const load = newLoad(nowMs)
  advanceLoad(load, nowMs, limits)
  fillShare(load.requests, scope.load.requests, nowMs)
  fillShare(load.tokens, scope.load.tokens, nowMs)
  scope.share = { load, synced: snapshot(load) }
  return load
}

function fillShare(share: Bucket | undefined, whole: Bucket | undefined, nowMs: number): void {
  if (!share || !whole || whole.limit === 0) return
  share.usedUnits = Math.floor((usedUnitsAt(whole, nowMs) / whole.limit) * share.limit)
}

function snapshot(load: Load | undefined): Buckets {
  return { requests: load?.requests && { ...load.requests }, tokens: load?.tokens && { ...load.tokens } }
}

function seedUnits(
  whole: Bucket | undefined,
  share: Bucket | undefined,
  synced: Bucket | undefined,
  nowMs: number,
): SeedUnits {
  const addedUnits = usedUnitsAt(share, nowMs) - usedUnitsAt(synced, nowMs)
  return { lostUnits: usedUnitsAt(whole, nowMs), addedUnits: Math.max(0, addedUnits) }
}

function hasSlots({ running, limits }: SharedScope): boolean {
  return running > 0 && limits.concurrentRequests !== undefined
}
