import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import {
  addWorkspace,
  createTestClock,
  expectBooksRight,
  holdOf,
  openLedger,
  settlementOf,
  type TestLedger,
} from '../../test/parts/ledger.ts'
import { until } from '../../test/tenancy/tenancy.ts'
import { firstIdAt, type KeyId, type RequestId, type WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { wholeSubject } from '../kernel/spend-limit.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import type { Sql } from '../store/sql.ts'
import { type Budget, windowAt } from './budget.ts'
import { seedRoundMs } from './budget-seeds.ts'

/** 15 January 2027, 08:00 UTC. */
const now = createTestClock().now()
const dayMs = 24 * 60 * 60_000
const project = 'prj_1'
/** The amounts do not matter here. */
const limits = (['day', 'week', 'month'] as const).map((window) => ({
  subject: wholeSubject,
  window,
  amount: 1n as Nano,
}))

const today = (scopeId: string, cap: bigint): Budget => ({ scopeId, window: windowAt('day', now), cap: cap as Nano })
const thisMonth = (scopeId: string, cap: bigint): Budget => ({
  scopeId,
  window: windowAt('month', now),
  cap: cap as Nano,
})

interface Books extends TestLedger {
  readonly database: Database
  readonly workspaceId: WorkspaceId
  /** A request that began then and is charged now, counted in the budgets. */
  charge(amount: bigint, startedAt: number, facts?: { keyId?: KeyId; budgets?: readonly Budget[] }): Promise<void>
  hold(amount: bigint, ...budgets: Budget[]): Promise<{ readonly kind: string }>
}

async function openBooks(database: Database): Promise<Books> {
  const workspaceId = await addWorkspace(database)
  await database.transaction(
    (sql) =>
      sql`INSERT INTO projects (id, workspace_id, name, created_at) VALUES (${project}, ${workspaceId}, 'web', 0)`,
  )
  const books = await openLedger(database)
  const { ledger } = books
  await ledger.fund({ workspaceId, amount: 10_000n as Nano, kind: 'topup' })
  return {
    ...books,
    database,
    workspaceId,
    async charge(amount, startedAt, { keyId = 'key_1', budgets } = {}) {
      const request = { ...holdOf(workspaceId, amount), budgets }
      expect(await ledger.hold(request)).toMatchObject({ kind: 'held' })
      await settle(books, request.requestId, { amount, startedAt, keyId })
    },
    hold: async (amount, ...budgets) => await ledger.hold({ ...holdOf(workspaceId, amount), budgets }),
    [Symbol.asyncDispose]: () => books[Symbol.asyncDispose](),
  }
}

interface Charged {
  readonly amount: bigint
  readonly startedAt: number
  readonly keyId?: KeyId
}

async function settle({ ledger }: TestLedger, id: RequestId, { amount, startedAt, keyId }: Charged) {
  expect(await ledger.settle(settlementOf(id, amount, { startedAt, keyId }))).toMatchObject({ kind: 'settled' })
}

forEachEngine((_, storeTest) => {
  storeTest('a limit that is set in the middle of its window counts what was charged before', async ({ database }) => {
    await using books = await openBooks(database)
    await books.charge(30n, now - 1000)
    await books.charge(12n, now - 2000)
    // Yesterday's is the month's, and last month's is neither.
    await books.charge(100n, now - dayMs)
    await books.charge(1000n, now - 20 * dayMs)
    await books.charge(7n, now - 3000, { keyId: 'key_2' })
    expect(await books.hold(9n, today('key_1', 50n))).toMatchObject({ kind: 'over budget', spent: 42n, held: 0n })
    expect(await books.hold(8n, today('key_1', 50n))).toMatchObject({ kind: 'held' })
    expect(await books.hold(1n, thisMonth('key_1', 100n))).toMatchObject({ kind: 'over budget', spent: 142n })
    expect(await books.hold(1n, today(project, 10n))).toMatchObject({ kind: 'over budget', spent: 49n })
    expect(await books.hold(1n, thisMonth(books.workspaceId, 10n))).toMatchObject({ kind: 'over budget', spent: 149n })
    await expectBooksRight(database)
  })

  storeTest('a limit that starts on a day counts nothing from before', async ({ database }) => {
    await using books = await openBooks(database)
    // The 14th, the 13th and the 3rd of January; now is the 15th.
    await books.charge(30n, now - dayMs)
    await books.charge(12n, now - 2 * dayMs)
    await books.charge(100n, now - 12 * dayMs)
    const startsAt = Date.UTC(2027, 0, 14)
    const started = { scopeId: 'key_1', window: windowAt('month', now, startsAt), cap: 50n as Nano }
    expect(await books.hold(1n, thisMonth('key_1', 10n))).toMatchObject({ kind: 'over budget', spent: 142n })
    expect(await books.hold(21n, started)).toMatchObject({ kind: 'over budget', spent: 30n })
    expect(await books.hold(20n, started)).toMatchObject({ kind: 'held' })
    // Charged while the limit was lifted.
    await books.charge(4n, now - 1000)
    books.ledger.recount('key_1', limits, startsAt)
    await until(async () => (await books.ledger.budget('key_1', started.window)).spent === 34n)
    await expectBooksRight(database)
  })

  storeTest('counts nothing twice, neither after a restart nor in another process', async ({ database }) => {
    await using books = await openBooks(database)
    await books.charge(30n, now - 5000)
    await books.charge(5n, now - 4000, { budgets: [today('key_1', 50n)] })
    await books.charge(4n, now - 3000, { budgets: [today('key_1', 50n)] })
    await using again = await openLedger(database)
    const request = { ...holdOf(books.workspaceId, 12n), budgets: [today('key_1', 50n)] }
    expect(await again.ledger.hold(request)).toMatchObject({ kind: 'over budget', spent: 39n, held: 0n })
    await expectBooksRight(database)
  })

  storeTest('requests that ran when the limit was set are counted when they have ended', async ({ database }) => {
    await using books = await openBooks(database)
    const { ledger, clock, timers, workspaceId } = books
    await books.charge(30n, now - 2 * 60 * 60_000)
    const running = holdOf(workspaceId, 15n)
    await ledger.hold(running)
    expect(await books.hold(1n, today('key_1', 40n))).toMatchObject({ kind: 'held' })
    await settle(books, running.requestId, { amount: 15n, startedAt: now - 1000 })
    expect(await ledger.budget('key_1', windowAt('day', now))).toEqual({ spent: 30n as Nano, held: 1n as Nano })
    clock.advance(seedRoundMs)
    await timers.round()
    expect(await ledger.budget('key_1', windowAt('day', now))).toEqual({ spent: 45n as Nano, held: 1n as Nano })
    expect(await books.hold(1n, today('key_1', 40n))).toMatchObject({ kind: 'over budget', spent: 45n })
    await expectBooksRight(database)
    for (let rounds = 0; rounds < 5; rounds++) {
      clock.advance(30 * 60_000)
      await timers.round()
    }
    expect((await ledger.budget('key_1', windowAt('day', now))).spent).toBe(45n as Nano)
    await expectBooksRight(database)
  })

  storeTest('adds charges between two limits when the second one is set', async ({ database }) => {
    await using books = await openBooks(database)
    await books.charge(5n, now - 5000, { budgets: [today('key_1', 50n)] })
    await books.charge(30n, now - 4000)
    expect((await books.ledger.budget('key_1', windowAt('day', now))).spent).toBe(5n as Nano)
    books.ledger.recount('key_1', limits)
    await until(async () => (await books.ledger.budget('key_1', windowAt('day', now))).spent === 35n)
    expect(await books.hold(16n, today('key_1', 50n))).toMatchObject({ kind: 'over budget', spent: 35n, held: 0n })
    await expectBooksRight(database)
  })

  storeTest('a recount counts each charge once where two limits have one counter', async ({ database }) => {
    await using books = await openBooks(database)
    const { ledger, clock, timers, workspaceId } = books
    await books.charge(30n, now - 2 * 60 * 60_000)
    const running = holdOf(workspaceId, 15n)
    await ledger.hold(running)
    const rolling = { subject: wholeSubject, window: '5h' } as const
    ledger.recount('key_1', [
      { ...rolling, amount: 100n as Nano },
      { ...rolling, amount: 50n as Nano, setBy: 'admin' },
    ])
    const spent = async () => {
      const used = await books.hold(1n, { scopeId: 'key_1', window: '5h', cap: 1n as Nano })
      return used.kind === 'over budget' && 'spent' in used ? used.spent : 0n
    }
    await until(async () => (await spent()) === 30n)
    await settle(books, running.requestId, { amount: 15n, startedAt: now - 1000 })
    // Earlier charges are not read again, and still count.
    for (let rounds = 0; rounds < 5; rounds++) {
      clock.advance(10 * 60_000)
      await timers.round()
      expect(await spent()).toBe(45n)
    }
    await expectBooksRight(database)
  })

  storeTest(
    'a recount reads by the index, and no requests that began after the limit was set',
    async ({ database }) => {
      const read: { readonly text: string; readonly ids: readonly string[] }[] = []
      const reading = (async (text: TemplateStringsArray, ...values: []) => {
        const rows = await database.sql<{ id: string }>(text, ...values)
        if (text[0]?.includes('FROM requests WHERE')) read.push({ text: text.join('?'), ids: rows.map(({ id }) => id) })
        return rows
      }) as Sql
      await using books = await openBooks({ ...database, sql: reading })
      const { ledger, workspaceId, clock, timers } = books
      await books.charge(30n, now - 1000)
      const rolling = [{ subject: wholeSubject, window: '5h', amount: 1n as Nano }] as const
      ledger.recount('key_1', rolling)
      await until(async () => read.length > 0)
      const later = holdOf(workspaceId, 15n, firstIdAt(now + 10 * 60_000))
      await ledger.hold(later)
      await settle(books, later.requestId, { amount: 15n, startedAt: now + 10 * 60_000 })
      const before = read.length
      for (let rounds = 0; rounds < 3; rounds++) {
        clock.advance(30 * 60_000)
        await timers.round()
      }
      expect(read.length).toBeGreaterThan(before)
      expect(read.every(({ ids }) => ids.length === 1)).toBe(true)
      if (database.engine === 'postgres') return
      const plan = await database.sql<{ detail: string }>(templateOf([`EXPLAIN QUERY PLAN ${read[0]?.text}`]))
      expect(plan.map(({ detail }) => detail)).toEqual([
        'SEARCH requests USING INDEX requests_by_key (key_id=? AND id<?)',
      ])
    },
  )

  storeTest(
    'a recount that its process did not finish is done by the next one, and then forgotten',
    async ({ database }) => {
      await using books = await openBooks(database)
      await books.charge(30n, now - 4000)
      const user = { subject: { kind: 'user' }, window: 'day', amount: 1n as Nano } as const
      const pending = { owner: 'key_1', limits: [...limits, user], startsAt: undefined, setAt: now }
      const left = [pending]
      const recounts = { pending: async () => left, finish: async () => void left.pop() }
      await using next = await openLedger(database, { recounts })
      await next.timers.round()
      expect((await next.ledger.budget('key_1', windowAt('day', now))).spent).toBe(30n as Nano)
      expect(left).toEqual([pending])
      // Requests that ran when the limits were set are over by the last of the passes.
      for (let rounds = 0; rounds < 8; rounds++) {
        next.clock.advance(30 * 60_000)
        await next.timers.round()
      }
      expect(left).toEqual([])
      expect((await next.ledger.budget('key_1', windowAt('day', now))).spent).toBe(30n as Nano)
      await expectBooksRight(database)
    },
  )

  storeTest(
    'adds charges in the next round if they could not be added when the second limit was set',
    async ({ database }) => {
      const faults = createFaults(database)
      await using books = await openBooks(faults.database)
      await books.charge(5n, now - 5000, { budgets: [today('key_1', 50n)] })
      await books.charge(30n, now - 4000)
      faults.fault = new Error('away')
      faults.seeds = 0
      books.ledger.recount('key_1', limits)
      await until(async () => faults.seeds > 0)
      faults.fault = undefined
      // The recount may not have noticed its failure yet.
      await until(async () => {
        await books.timers.round()
        return (await books.ledger.budget('key_1', windowAt('day', now))).spent === 35n
      })
      await expectBooksRight(database)
    },
  )

  storeTest(
    'many at once wait for one seed, and a failed seed is not taken for an empty counter',
    async ({ database }) => {
      const faults = createFaults(database)
      await using books = await openBooks(faults.database)
      await books.charge(30n, now - 1000)
      faults.fault = await database.sql`SELECT 1 FROM no_such_table`.then(
        () => undefined,
        (thrown: Error) => thrown,
      )
      const failed = await books.hold(1n, today('key_1', 50n)).catch((thrown: Error) => thrown)
      expect(failed).toBe(faults.fault as Error)
      faults.fault = undefined
      faults.seeds = 0
      const outcomes = await Promise.all(Array.from({ length: 30 }, () => books.hold(10n, today('key_1', 50n))))
      expect(outcomes.filter(({ kind }) => kind === 'held')).toHaveLength(2)
      expect(faults.seeds).toBe(1)
      // A limit that existed the day before has counted everything of the next day: nothing is read.
      const tomorrow = { ...today('key_1', 50n), window: windowAt('day', now + dayMs) }
      expect(await books.hold(10n, tomorrow)).toMatchObject({ kind: 'held' })
      expect(faults.seeds).toBe(1)
      await expectBooksRight(database)
    },
  )
})

/** Counts the transactions that read the sums of earlier charges, and lets them fail. */
function createFaults(real: Database) {
  const faults = {
    seeds: 0,
    fault: undefined as Error | undefined,
    database: {
      ...real,
      transaction: (work, shape) =>
        real.transaction((sql) => {
          const watched = ((first: TemplateStringsArray, ...values: never[]) => {
            if (!Array.isArray(first) || !first.join('').includes('CROSS JOIN request_sums'))
              return sql(first, ...values)
            faults.seeds++
            return faults.fault ? Promise.reject(faults.fault) : sql(first, ...values)
          }) as Sql
          return work(watched)
        }, shape),
    } as Database,
  }
  return faults
}
