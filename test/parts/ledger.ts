// Shared by tests of the ledger: a workspace to pay with, a clock and a timers that only the test moves, and ids.

import { expect } from 'bun:test'
import type { Clock } from '../../src/kernel/clock.ts'
import { createId, type KeyId, type RequestId, type WorkspaceId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { yieldToEventLoop } from '../../src/kernel/timers.ts'
import { type CreateLedgerOptions, createLedger } from '../../src/ledger/create-ledger.ts'
import type { Charge, HoldRequest, Ledger, Settlement, Timers } from '../../src/ledger/ledger.ts'
import { verify } from '../../src/ledger/verify.ts'
import type { Database } from '../../src/store/database.ts'
import type { RequestRow } from '../../src/store/request-rows.ts'
import { chargedRequestRow, RequestRecord } from '../../src/telemetry/request-record.ts'

export interface TestClock extends Clock {
  advance(milliseconds: number): void
  /** Sets the wall clock by so much, while no time passes. */
  set(milliseconds: number): void
}

export function createTestClock(): TestClock {
  let now = 1_800_000_000_000
  let monotonic = 0
  return {
    now: () => now,
    monotonicMs: () => monotonic,
    advance(milliseconds) {
      now += milliseconds
      monotonic += milliseconds
    },
    set(milliseconds) {
      now += milliseconds
    },
  }
}

export interface TestTimers extends Timers {
  /** One round of everything that runs by itself. */
  round(): Promise<void>
}

/** Waits are over at once, and nothing runs by itself. */
export function createTestTimers(): TestTimers {
  const works = new Set<() => Promise<unknown>>()
  return {
    wait: () => Bun.sleep(0),
    endOfTurn: yieldToEventLoop,
    every(_milliseconds, work) {
      works.add(work)
      return () => works.delete(work)
    },
    async round() {
      for (const work of works) await work()
    },
  }
}

export async function addWorkspace(database: Database): Promise<WorkspaceId> {
  const id = createId('ws')
  await database.transaction(
    (sql) => sql`INSERT INTO workspaces (id, name, created_at) VALUES (${id}, ${'test'}, ${0n})`,
  )
  return id
}

export interface TestLedger extends AsyncDisposable {
  readonly ledger: Ledger
  readonly clock: TestClock
  readonly timers: TestTimers
}

/** `await using books = await openLedger(store.database)` */
export async function openLedger(
  database: Database,
  options: Partial<CreateLedgerOptions> = {},
  clock = createTestClock(),
): Promise<TestLedger> {
  const timers = createTestTimers()
  const ledger = await createLedger({ database, clock, timers, ...options })
  return { ledger, clock, timers, [Symbol.asyncDispose]: () => ledger.close() }
}

/** A ledger with a workspace whose wallet was topped up. */
export async function openFunded(
  database: Database,
  amount: bigint,
  options?: Partial<CreateLedgerOptions>,
): Promise<TestLedger & { readonly workspaceId: WorkspaceId }> {
  const workspaceId = await addWorkspace(database)
  const books = await openLedger(database, options)
  await books.ledger.fund({ workspaceId, amount: amount as Nano, kind: 'topup' })
  return { ...books, workspaceId }
}

export function holdOf(workspaceId: WorkspaceId, amount: bigint, requestId: RequestId = createId('req')): HoldRequest {
  return { requestId, workspaceId, keyId: 'key_1', projectId: 'prj_1', amount: amount as Nano }
}

interface ChargedFacts {
  readonly startedAt?: number
  readonly totalMs?: number
  readonly keyId?: KeyId | undefined
  readonly priceVersion?: string | undefined
  /** JSON. */
  readonly usage?: string
  readonly estimated?: boolean
}

/** The row that is written with a charge. */
export function chargedRowOf(id: RequestId, charge: Charge, facts: ChargedFacts = {}): RequestRow {
  const { startedAt = 0, totalMs = 0, keyId = 'key_1', priceVersion, usage = '{}', estimated = false } = facts
  const caller = { workspaceId: charge.workspaceId, projectId: 'prj_1', keyId } as const
  const record = { ...new RequestRecord(id, startedAt, '/v1/messages'), caller, status: 200, totalMs, priceVersion }
  return { ...chargedRequestRow(record, charge), usage, estimated: estimated ? 1 : 0 }
}

export function settlementOf(requestId: RequestId, cost: bigint, facts: ChargedFacts = {}): Settlement {
  const { estimated = false } = facts
  return { requestId, cost: cost as Nano, estimated, row: (charge) => chargedRowOf(requestId, charge, facts) }
}

/** M1, M3, M4 and the rest of the books. */
export async function expectBooksRight(database: Database): Promise<void> {
  const { findings } = await verify(database)
  expect(findings).toEqual([])
}
