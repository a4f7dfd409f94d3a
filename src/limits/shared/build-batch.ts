// Puts what waits in a process into one batch: every scope once, with what the process has running there and what the
// store has to be told of it first.

import type { LimitScope } from '../limit.ts'
import type { Admission, Refused } from '../limiter.ts'
import type { Batch, BatchScope, Operation, Reserved } from './batch.ts'
import type { LocalScope, LocalScopes, Telling } from './local-scopes.ts'

export type Entry = AdmitEntry | EndEntry | TellEntry

export interface AdmitEntry {
  readonly kind: 'admit'
  /** Limited ones only. */
  readonly scopes: readonly LimitScope[]
  readonly tokens: number
  resolve(verdict: Admission | Refused): void
  /** Once only: by the store, or without it. */
  answered: boolean
}

/** Comes after the process has taken the request from what it has running. */
export interface EndEntry {
  readonly kind: 'end'
  readonly scopes: readonly { readonly scope: LocalScope; readonly reservation?: Reserved }[]
  readonly reservedTokens: number
  readonly actualTokens: number
}

/** Says that the process lives, where it has something running, and what the store does not know. */
export interface TellEntry {
  readonly kind: 'tell'
  readonly scope: LocalScope
}

export interface BatchContext {
  readonly replica: string
  readonly leaseMs: number
  readonly nowMs: number
}

export interface BuiltBatch {
  readonly batch: Batch
  /** To be noted when the store has taken the batch. */
  readonly tellings: readonly Telling[]
}

export function buildBatch(
  entries: readonly Entry[],
  locals: LocalScopes,
  { replica, leaseMs, nowMs }: BatchContext,
): BuiltBatch {
  const places = new Map<LocalScope['id'], number>()
  const listed: { readonly scope: LocalScope; running: number }[] = []
  const list = (named: LocalScope): number => {
    const known = places.get(named.id)
    if (known !== undefined) return known
    places.set(named.id, listed.length)
    const scope = locals.current(named)
    return listed.push({ scope, running: scope.running }) - 1
  }
  /** The store takes it away again when it comes to the end. */
  const listEnding = (scope: LocalScope): number => {
    const at = list(scope)
    const entry = listed[at]
    if (entry) entry.running++
    return at
  }
  const operations: Operation[] = []
  for (const entry of entries) {
    if (entry.kind === 'admit') {
      const scopes = entry.scopes.map((scope) => ({ at: list(locals.of(scope)), limits: scope.limits }))
      operations.push({ kind: 'admit', tokens: entry.tokens, scopes })
    } else if (entry.kind === 'end') {
      const { reservedTokens, actualTokens } = entry
      const scopes = entry.scopes.map(({ scope, reservation }) => ({ at: listEnding(scope), reservation }))
      operations.push({ kind: 'end', reservedTokens, actualTokens, scopes })
    } else {
      list(entry.scope)
    }
  }
  const tellings = listed.flatMap(({ scope }) => locals.tellingOf(scope, nowMs) ?? [])
  const seeds = new Map(tellings.map(({ scope, seed }) => [scope.id, seed]))
  const scopes = listed.map(({ scope: { id }, running }): BatchScope => ({ id, running, seed: seeds.get(id) }))
  return { batch: { replica, leaseMs, scopes, operations }, tellings }
}
