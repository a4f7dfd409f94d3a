// The messages between a process and the shared store in one exchange. The same for every store; they travel
// as JSON. `applyBatch` is what a store does with them; limit-script.lua does the same inside Redis.

import type { RateLimits, RateScope } from './limiter.ts'
import {
  advanceLoad,
  type Bucket,
  beginRequest,
  type Correction,
  correct,
  findObstacle,
  type Load,
  type LoadReading,
  unitsPerWhole,
} from './load.ts'

export interface LoadStore {
  /** One answer for each of the `admits`, in their order. Rejects if it is unknown what was done. */
  exchange(batch: Batch): Promise<readonly AdmitAnswer[]>
  close?(): void
}

export interface Batch {
  readonly replica: string
  /** After this long without an exchange, the requests that the process has running no longer count. */
  readonly leaseMs: number
  /** Every scope once; `at` is an index into this list. */
  readonly scopes: readonly BatchScope[]
  readonly corrections: readonly (Correction & { readonly at: number })[]
  readonly admits: readonly AdmitOperation[]
}

export interface BatchScope {
  readonly id: RateScope['id']
  /** Requests running here before the first of `admits`: a total, not a difference, so none can be lost. */
  readonly running: number
  readonly seed?: Seed | undefined
}

/** State that the store may have missed while it was unreachable. */
export interface Seed {
  readonly limits: RateLimits
  readonly requests: SeedUnits
  readonly tokens: SeedUnits
}

export interface SeedUnits {
  /** The last reading of the store, drained since; for a store that has lost the scope. */
  readonly lostUnits: number
  /** Units admitted without the store. */
  readonly addedUnits: number
}

export interface AdmitOperation {
  readonly tokens: number
  readonly scopes: readonly { readonly at: number; readonly limits: RateLimits }[]
}

export interface AdmitAnswer {
  readonly admitted: boolean
  /** In the order of the operation's scopes, with the request if it was admitted. */
  readonly loads: readonly AnsweredLoad[]
}

export interface AnsweredLoad extends LoadReading {
  /** Number of the token reservation that was made. */
  readonly sequence?: number | undefined
}

/** `loads`: one for each scope of the batch, in their order. The caller has locked them and writes them back. */
export function applyBatch(loads: readonly Load[], batch: Batch, nowMs: number): readonly AdmitAnswer[] {
  for (const [at, { running }] of batch.scopes.entries()) setRunning(loads[at], batch, running, nowMs)
  // Ended requests make room for the seeds, and both come before anything is admitted.
  for (const correction of batch.corrections) {
    const load = loads[correction.at]
    if (load) correct(load, nowMs, correction)
  }
  for (const [at, { seed }] of batch.scopes.entries()) {
    const load = loads[at]
    if (load && seed) seedLoad(load, nowMs, seed)
  }
  return batch.admits.map((operation) => admit(loads, batch, operation, nowMs))
}

function admit(loads: readonly Load[], batch: Batch, operation: AdmitOperation, nowMs: number): AdmitAnswer {
  const { scopes, tokens } = operation
  const asked = scopes.flatMap(({ at, limits }) => {
    const load = loads[at]
    return load ? [{ load, limits }] : []
  })
  for (const { load, limits } of asked) advanceLoad(load, nowMs, limits)
  const admitted = asked.every(({ load, limits }) => !findObstacle(limits, readingOf(load, nowMs), tokens))
  if (!admitted) return { admitted, loads: asked.map(({ load }) => readingOf(load, nowMs)) }
  const answered = asked.map(({ load, limits }) => {
    const sequence = beginRequest(load, limits, tokens)
    setRunning(load, batch, (load.slots[batch.replica]?.running ?? 0) + 1, nowMs)
    return { ...readingOf(load, nowMs), sequence }
  })
  return { admitted, loads: answered }
}

function setRunning(load: Load | undefined, { replica, leaseMs }: Batch, running: number, nowMs: number): void {
  if (!load) return
  if (running > 0) load.slots[replica] = { running, untilMs: nowMs + leaseMs }
  else delete load.slots[replica]
}

function seedLoad(load: Load, nowMs: number, { limits, requests, tokens }: Seed): void {
  const lost = { requests: load.requests === undefined, tokens: load.tokens === undefined }
  advanceLoad(load, nowMs, limits)
  if (load.requests) seedBucket(load.requests, requests, lost.requests)
  if (load.tokens) seedBucket(load.tokens, tokens, lost.tokens)
}

/** Capped at the limit: an admitted request must not cause a longer wait than a refused one would have. */
function seedBucket(bucket: Bucket, { lostUnits, addedUnits }: SeedUnits, isLost: boolean): void {
  const units = bucket.usedUnits + (isLost ? lostUnits : 0) + addedUnits
  bucket.usedUnits = Math.max(bucket.usedUnits, Math.min(units, bucket.limit * unitsPerWhole))
}

/** Copies: later operations of the batch go on changing the load. */
function readingOf(load: Load, nowMs: number): LoadReading {
  let running = 0
  for (const slots of Object.values(load.slots)) if (slots.untilMs > nowMs) running += slots.running
  return { requests: load.requests && { ...load.requests }, tokens: load.tokens && { ...load.tokens }, running }
}
