// Applies a batch to the states of its scopes, which the caller has locked and will write back. limit-script.lua does
// the same inside Redis; a change here is a change there.

import type { AdmitAnswer, AdmitOperation, Batch, EndOperation, LoadReading } from './batch.ts'
import {
  advanceLoad,
  beginRequest,
  endReservation,
  hasRoom,
  type LoadState,
  runningIn,
  seedLoad,
  setPlace,
} from './load-state.ts'

/** `loads`: one for each scope of the batch, in their order. */
export function applyBatch(loads: readonly LoadState[], batch: Batch, nowMs: number): readonly AdmitAnswer[] {
  const desk = { loads, nowMs, replica: batch.replica, untilMs: nowMs + batch.leaseMs }
  for (const [at, { running }] of batch.scopes.entries()) {
    const load = loads[at]
    if (load) setPlace(load, batch.replica, { running, untilMs: desk.untilMs })
  }
  // What ended makes room for what is told, and both come before anyone is let in.
  for (const operation of batch.operations) if (operation.kind === 'end') end(desk, operation)
  for (const [at, { seed }] of batch.scopes.entries()) {
    const load = loads[at]
    if (load && seed) seedLoad(load, nowMs, seed)
  }
  return batch.operations.flatMap((operation) => (operation.kind === 'admit' ? [admit(desk, operation)] : []))
}

interface Desk {
  readonly loads: readonly LoadState[]
  readonly nowMs: number
  readonly replica: string
  readonly untilMs: number
}

function admit({ loads, nowMs, replica, untilMs }: Desk, { scopes, tokens }: AdmitOperation): AdmitAnswer {
  const asked = scopes.flatMap(({ at, limits }) => {
    const load = loads[at]
    return load ? [{ load, limits }] : []
  })
  for (const { load, limits } of asked) advanceLoad(load, nowMs, limits)
  const admitted = asked.every(({ load, limits }) => hasRoom(load, limits, tokens, nowMs))
  if (!admitted) return { admitted, loads: asked.map(({ load }) => readingOf(load, nowMs)) }
  const readings = asked.map(({ load, limits }) => {
    const sequence = beginRequest(load, limits, tokens)
    setPlace(load, replica, { running: placeOf(load, replica) + 1, untilMs })
    return readingOf(load, nowMs, sequence)
  })
  return { admitted, loads: readings }
}

function end({ loads, nowMs, replica, untilMs }: Desk, operation: EndOperation): void {
  const { reservedTokens, actualTokens } = operation
  for (const { at, reservation } of operation.scopes) {
    const load = loads[at]
    if (!load) continue
    setPlace(load, replica, { running: Math.max(0, placeOf(load, replica) - 1), untilMs })
    if (reservation) endReservation(load, nowMs, { reservedTokens, actualTokens, ...reservation })
  }
}

function placeOf(load: LoadState, replica: string): number {
  return load.places[replica]?.running ?? 0
}

/** Copies: later operations of the batch go on changing the load. */
function readingOf(load: LoadState, nowMs: number, sequence?: number): LoadReading {
  return {
    requests: load.requests && { ...load.requests },
    tokens: load.tokens && { ...load.tokens },
    running: runningIn(load, nowMs),
    sequence,
  }
}
