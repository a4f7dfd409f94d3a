import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import {
  addWorkspace,
  createTestTimers,
  expectBooksRight,
  holdOf,
  openFunded,
  openLedger,
  settlementOf,
} from '../../test/parts/ledger.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { insertRows } from '../store/insert-rows.ts'
import { windowAt } from './budget.ts'
import { clean } from './clean.ts'
import { verify } from './verify.ts'

async function countOf(database: Database, table: 'idempotency' | 'budgets' | 'holds'): Promise<bigint | undefined> {
  const [row] = await database.sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM ${database.sql(table)}`
  return row?.n
}

const dayMs = 24 * 60 * 60_000

forEachEngine((engine, storeTest) => {
  storeTest('stored responses whose time is over are removed', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    const sealed = { ciphertext: '', wrapped_key: '', key_version: '' }
    const row = (at: number) => ({ workspace_id: workspaceId, id: `resp_${at}`, ...sealed, expires_at: BigInt(at) })
    const rows = Array.from({ length: 45 }, (_, at) => row(at))
    await database.transaction((sql) => insertRows(sql, 'stored_responses', rows))
    await clean({ database, clock: { now: () => 42, monotonicMs: () => 0 }, timers: createTestTimers() }, 42)
    const left = await database.sql<{ id: string }>`SELECT id FROM stored_responses ORDER BY id`
    expect(left.map(({ id }) => id)).toEqual(['resp_43', 'resp_44'])
  })

  storeTest(
    'keys whose day is over are removed, in as many portions as it takes, and the others stay',
    async ({ database }) => {
      const row = (at: number) => ({
        scope: 'test',
        key: `k${at}`,
        body_sha256: '',
        state: 'done',
        expires_at: BigInt(at),
      })
      const rows = Array.from({ length: 1203 }, (_, at) => row(at))
      await database.transaction((sql) => insertRows(sql, 'idempotency', rows))
      const timers = createTestTimers()
      let waits = 0
      const wait = async () => void waits++
      await clean({ database, clock: { now: () => 0, monotonicMs: () => 0 }, timers: { ...timers, wait } }, 1200)
      const left = await database.sql<{ key: string }>`SELECT key FROM idempotency ORDER BY key`
      expect(left.map(({ key }) => key)).toEqual(['k1201', 'k1202'])
      // 500, 500 and 201
      expect(waits).toBe(2)
    },
  )

  storeTest(
    'the ledger cleans by itself: old keys and the budgets of windows long past, nothing that counts',
    async ({ database }) => {
      const workspaceId = await addWorkspace(database)
      await using books = await openLedger(database)
      const { ledger, clock, timers } = books
      await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup', idempotencyKey: 'k' })
      const budgetNow = () => [{ scopeId: 'key_1', window: windowAt('day', clock.now()), cap: 50n as Nano }]
      const [first] = budgetNow()
      const request = { ...holdOf(workspaceId, 10n), budgets: budgetNow() }
      await ledger.hold(request)
      await ledger.settle(settlementOf(request.requestId, 10n))
      clock.advance(7 * dayMs)
      await timers.round()
      expect(await countOf(database, 'idempotency')).toBe(0n)
      expect(await countOf(database, 'budgets')).toBe(1n)
      expect((await ledger.budget('key_1', first?.window ?? '')).spent).toBe(10n as Nano)
      clock.advance(2 * dayMs)
      await timers.round()
      expect(await countOf(database, 'budgets')).toBe(0n)
      // No call since: the counter is gone because its time is over, and the books are right.
      expect((await verify(database, { now: clock.now() })).findings).toEqual([])
      const later = { ...holdOf(workspaceId, 10n), budgets: budgetNow() }
      await ledger.hold(later)
      await ledger.settle(settlementOf(later.requestId, 3n, { startedAt: clock.now() }))
      await timers.round()
      expect(await countOf(database, 'budgets')).toBe(1n)
      expect((await ledger.budget('key_1', first?.window ?? '')).spent).toBe(0n as Nano)
      expect((await ledger.budget('key_1', windowAt('day', clock.now()))).spent).toBe(3n as Nano)
      await expectBooksRight(database)
    },
  )

  if (engine.name !== 'postgres') return

  storeTest('ended holds are removed an hour after their lifetime, open ones never', async ({ database }) => {
    await using books = await openFunded(database, 100n)
    const { ledger, timers, workspaceId } = books
    const [settled, released, fresh] = [holdOf(workspaceId, 1n), holdOf(workspaceId, 2n), holdOf(workspaceId, 3n)]
    for (const request of [settled, released, fresh]) await ledger.hold(request)
    await ledger.settle(settlementOf(settled.requestId, 1n))
    await ledger.release(released.requestId)
    const age = (milliseconds: bigint) =>
      database.transaction(
        (sql) => sql`UPDATE holds SET expires_at = expires_at - ${milliseconds} WHERE state <> 'open'`,
      )
    await age(20n * 60_000n + 55n * 60_000n)
    await timers.round()
    expect(await countOf(database, 'holds')).toBe(3n)
    await age(6n * 60_000n)
    await timers.round()
    expect(await countOf(database, 'holds')).toBe(1n)
    expect(await ledger.settle(settlementOf(settled.requestId, 9n))).toMatchObject({ repeated: true })
    expect(await ledger.settle(settlementOf(fresh.requestId, 3n))).toMatchObject({ kind: 'settled', repeated: false })
    await expectBooksRight(database)
  })
})
