import { expect } from 'bun:test'
import { SQL } from 'bun'
import { forEachEngine } from '../../../test/parts/engines.ts'
import {
  addWorkspace,
  createTestClock,
  expectBooksRight,
  holdOf,
  openFunded,
  openLedger,
  settlementOf,
} from '../../../test/parts/ledger.ts'
import { startLedgerChildren, sumCounts } from '../../../test/parts/ledger-children.ts'
import { systemClock } from '../../kernel/clock.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { CommitUnknown } from '../../store/sql-error.ts'

/** Stands before the real database: transactions fail before they begin, or after they were committed, or hang there. */
function createFaultyDatabase(database: Database) {
  const faulty = {
    ...database,
    fault: 'none' as 'none' | 'before' | 'after',
    code: '08006',
    calls: 0,
    /** Transactions wait for these before they begin, and after they were committed. */
    begins: Promise.resolve(),
    replies: Promise.resolve(),
  }
  const lost = () => new SQL.PostgresError('lost', { code: 'ERR_POSTGRES_SERVER_ERROR', errno: faulty.code })
  faulty.transaction = async (work) => {
    faulty.calls++
    const { fault, replies } = faulty
    await faulty.begins
    if (fault === 'before' || faulty.fault === 'before') throw lost()
    const result = await database.transaction(work)
    await replies
    if (fault === 'after') throw new CommitUnknown(lost())
    return result
  }
  return faulty
}

/** A wallet of 100 in a ledger whose database can misbehave. */
async function openFaulty(real: Database) {
  const database = createFaultyDatabase(real)
  const faults: string[] = []
  const books = await openFunded(database, 100n, { onFault: (what) => void faults.push(what) })
  return { ...books, database, faults }
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(1)
}

async function stopHeartOf(database: Database): Promise<void> {
  await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = heartbeat_at - 20001`)
}

forEachEngine((engine, storeTest) => {
  if (engine.name !== 'postgres') return

  storeTest(
    'the holds of a dead replica are released, and one that only slept cannot charge afterwards',
    async ({ database }) => {
      const workspaceId = await addWorkspace(database)
      await using sleeper = await openLedger(database)
      await sleeper.ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
      const lost = holdOf(workspaceId, 55n)
      expect(await sleeper.ledger.hold(lost)).toEqual({ kind: 'held' })
      expect(await sleeper.ledger.extend(lost.requestId, 5n as Nano)).toEqual({ kind: 'held' })
      await stopHeartOf(database)
      await using living = await openLedger(database)
      const kept = holdOf(workspaceId, 40n)
      expect(await living.ledger.hold(kept)).toEqual({ kind: 'held' })

      expect(await living.ledger.reap()).toEqual([{ requestId: lost.requestId, amount: 60n as Nano, sent: false }])
      expect(await living.ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 40n })
      expect(await sleeper.ledger.extend(lost.requestId, 5n as Nano)).toEqual({ kind: 'gone' })
      expect(await sleeper.ledger.settle(settlementOf(lost.requestId, 50n))).toEqual({ kind: 'gone' })
      await expectBooksRight(database)

      // It learns of its new epoch with the next heartbeat, and what it holds then is its own again.
      await sleeper.timers.round()
      const next = holdOf(workspaceId, 60n)
      expect(await sleeper.ledger.hold(next)).toEqual({ kind: 'held' })
      expect(await living.ledger.reap()).toEqual([])
      expect(await sleeper.ledger.settle(settlementOf(next.requestId, 50n))).toMatchObject({ kind: 'settled' })
      expect(await living.ledger.settle(settlementOf(kept.requestId, 40n))).toMatchObject({ kind: 'settled' })
      expect(await living.ledger.wallet(workspaceId)).toMatchObject({ posted: 10n, held: 0n })
      await expectBooksRight(database)
    },
  )

  storeTest('a replica cannot settle what another one holds', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    await using first = await openLedger(database)
    await using second = await openLedger(database)
    await first.ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
    const request = holdOf(workspaceId, 60n)
    await first.ledger.hold(request)
    expect(await second.ledger.settle(settlementOf(request.requestId, 5n))).toEqual({ kind: 'gone' })
    expect(await second.ledger.release(request.requestId)).toEqual({ kind: 'gone' })
    expect(await first.ledger.settle(settlementOf(request.requestId, 5n))).toMatchObject({ kind: 'settled' })
    expect(await second.ledger.settle(settlementOf(request.requestId, 5n))).toMatchObject({ repeated: true })
    expect(await second.ledger.wallet(workspaceId)).toMatchObject({ posted: 95n, held: 0n })
  })

  storeTest('a correction cannot take what another replica holds', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    await using holding = await openLedger(database)
    await using correcting = await openLedger(database)
    await holding.ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
    const running = holdOf(workspaceId, 10n)
    expect(await holding.ledger.hold(running)).toEqual({ kind: 'held' })
    const take = (amount: bigint) =>
      correcting.ledger.correct({ workspaceId, direction: 'take', amount: amount as Nano, reason: 'test' })
    expect(await take(991n)).toMatchObject({ kind: 'insufficient', posted: 1000n, held: 10n })
    expect(await take(990n)).toMatchObject({ kind: 'corrected', posted: 10n })
    expect(await holding.ledger.settle(settlementOf(running.requestId, 10n))).toMatchObject({
      kind: 'settled',
      charge: 10n,
      writtenOff: 0n,
    })
    expect(await correcting.ledger.wallet(workspaceId)).toMatchObject({ posted: 0n, held: 0n })
    await expectBooksRight(database)
  })

  storeTest('settlements submitted together share one transaction, with the rows of each', async (store) => {
    await using books = await openFaulty(store.database)
    const { ledger, database, workspaceId } = books
    const requests = Array.from({ length: 7 }, () => holdOf(workspaceId, 10n))
    await Promise.all(requests.map((request) => ledger.hold(request)))
    const { calls } = database
    const settled = await Promise.all(requests.map(({ requestId }) => ledger.settle(settlementOf(requestId, 3n))))
    expect(settled.map((outcome) => outcome.kind === 'settled' && outcome.charge)).toEqual(
      requests.map(() => 3n as Nano),
    )
    expect(database.calls - calls).toBe(1)
    expect(await database.sql`SELECT 1 FROM requests`).toHaveLength(7)
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 79n, held: 0n })
    await expectBooksRight(store.database)
  })

  storeTest('a replica that left leaves nothing held', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    await using staying = await openLedger(database)
    const leaving = await openLedger(database)
    await leaving.ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
    const request = holdOf(workspaceId, 60n)
    await leaving.ledger.hold(request)
    await leaving.ledger.close()
    expect(await staying.ledger.reap()).toMatchObject([{ requestId: request.requestId }])
    expect(await staying.ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
  })

  storeTest('without a heartbeat for fifteen seconds nothing more is admitted', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    const clock = createTestClock()
    await using books = await openLedger(database, {}, clock)
    const { ledger, timers } = books
    clock.advance(15_000)
    expect(await ledger.hold(holdOf(workspaceId, 0n))).toEqual({ kind: 'held' })
    clock.advance(1)
    expect(await ledger.hold(holdOf(workspaceId, 0n))).toMatchObject({ kind: 'unavailable' })
    await timers.round()
    expect(await ledger.hold(holdOf(workspaceId, 0n))).toEqual({ kind: 'held' })
  })

  storeTest(
    'while the database is gone nothing is admitted, and what runs is charged once it is back',
    async (store) => {
      await using books = await openFaulty(store.database)
      const { ledger, timers, database, workspaceId, faults } = books
      const request = holdOf(workspaceId, 10n)
      await ledger.hold(request)
      database.fault = 'before'
      expect(await ledger.hold(holdOf(workspaceId, 10n))).toEqual({ kind: 'unavailable', retryAfterMs: 1000 })
      expect(ledger.admits()).toBe(false)
      expect(faults).toContain('cannot commit charges, so new requests are refused')
      const { calls } = database
      expect(ledger.hold(holdOf(workspaceId, 10n))).toMatchObject({ kind: 'unavailable' })
      const settling = ledger.settle(settlementOf(request.requestId, 4n))
      await until(() => database.calls >= calls + 3)
      database.fault = 'none'
      expect(await settling).toMatchObject({ kind: 'settled' })
      await timers.round()
      expect(ledger.admits()).toBe(true)
      await until(async () => (await ledger.wallet(workspaceId)).held === 0n)
      expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 96n, held: 0n })
      await expectBooksRight(store.database)
    },
  )

  storeTest(
    'a settlement is tried for thirty seconds, then the hold ends without a charge once the database is back',
    async (store) => {
      await using books = await openFaulty(store.database)
      const { ledger, clock, timers, database, workspaceId } = books
      const request = holdOf(workspaceId, 10n)
      await ledger.hold(request)
      database.fault = 'before'
      const settling = ledger.settle(settlementOf(request.requestId, 4n))
      const { calls } = database
      await until(() => database.calls >= calls + 3)
      clock.advance(30_000)
      expect(await settling).toMatchObject({ kind: 'unavailable' })
      database.fault = 'none'
      await timers.round()
      await until(async () => (await ledger.wallet(workspaceId)).held === 0n)
      expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
      expect(await ledger.settle(settlementOf(request.requestId, 4n))).toEqual({ kind: 'gone' })
      await expectBooksRight(store.database)
    },
  )

  storeTest(
    'an answer that is lost after the commit changes nothing: held money is given back, a charge is made once',
    async (store) => {
      await using books = await openFaulty(store.database)
      const { ledger, timers, database, workspaceId } = books
      const request = holdOf(workspaceId, 10n)
      await ledger.hold(request)
      database.fault = 'after'
      const unanswered = holdOf(workspaceId, 30n)
      expect(await ledger.hold(unanswered)).toMatchObject({ kind: 'unavailable' })
      const { calls } = database
      const settling = ledger.settle(settlementOf(request.requestId, 4n))
      await until(() => database.calls >= calls + 2)
      database.fault = 'none'
      expect(await settling).toMatchObject({ kind: 'settled', charge: 4n })
      await timers.round()
      await until(async () => (await ledger.wallet(workspaceId)).held === 0n)
      expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 96n, held: 0n })
      expect(await store.database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(1)
      await expectBooksRight(store.database)
    },
  )

  /** A hold of 10 on a wallet of 100, and its settlement for 4 after the database was made to misbehave. */
  async function settleBadly(faulty: Awaited<ReturnType<typeof openFaulty>>, misbehave: () => void) {
    const { ledger, clock, database, workspaceId } = faulty
    const request = holdOf(workspaceId, 10n)
    await ledger.hold(request)
    const { calls } = database
    misbehave()
    const settling = ledger.settle(settlementOf(request.requestId, 4n))
    await until(() => database.calls > calls)
    return {
      workspaceId,
      requestId: request.requestId,
      async givenUp() {
        clock.advance(30_000)
        const outcome = await settling
        if (outcome.kind !== 'unknown') throw new Error(`expected an unknown outcome, got ${outcome.kind}`)
        return outcome
      },
      charges: () => database.sql`SELECT id FROM transfers WHERE kind = 'charge'`,
    }
  }

  storeTest(
    'a commit that has not been confirmed after thirty seconds is unknown, and charged once if it was made',
    async (store) => {
      await using books = await openFaulty(store.database)
      const { ledger, database } = books
      const reply = Promise.withResolvers<void>()
      const bad = await settleBadly(books, () => {
        database.replies = reply.promise
      })
      await until(async () => (await bad.charges()).length === 1)
      const { end } = await bad.givenUp()
      // A second call meanwhile gets the same outcome.
      expect(await ledger.settle(settlementOf(bad.requestId, 4n))).toMatchObject({ kind: 'unknown' })
      database.replies = Promise.resolve()
      reply.resolve()
      expect(await end).toMatchObject({ kind: 'settled', charge: 4n })
      expect(ledger.stats()).toMatchObject({ charges: 1, openHolds: 0 })
      expect(await ledger.wallet(bad.workspaceId)).toMatchObject({ posted: 96n, held: 0n })
      expect(await ledger.settle(settlementOf(bad.requestId, 4n))).toMatchObject({ kind: 'settled', repeated: true })
      expect(await bad.charges()).toHaveLength(1)
      await expectBooksRight(store.database)
    },
  )

  storeTest(
    'a commit whose reply was lost stays unknown while the database is gone, and is found when it is back',
    async (store) => {
      await using books = await openFaulty(store.database)
      const { ledger, timers, database } = books
      const bad = await settleBadly(books, () => {
        database.fault = 'after'
      })
      await until(async () => (await bad.charges()).length === 1)
      database.fault = 'before'
      const { end } = await bad.givenUp()
      const { calls } = database
      await until(() => database.calls >= calls + 2)
      database.fault = 'none'
      expect(await end).toMatchObject({ kind: 'settled', charge: 4n })
      await timers.round()
      expect(await ledger.wallet(bad.workspaceId)).toMatchObject({ posted: 96n, held: 0n })
      expect(await bad.charges()).toHaveLength(1)
      await expectBooksRight(store.database)
    },
  )

  storeTest(
    'an unknown outcome whose commit fails is not charged: the hold is released and it is not tried again',
    async (store) => {
      await using books = await openFaulty(store.database)
      const { ledger, database } = books
      const begin = Promise.withResolvers<void>()
      const bad = await settleBadly(books, () => {
        database.begins = begin.promise
      })
      const { end } = await bad.givenUp()
      database.fault = 'before'
      begin.resolve()
      database.begins = Promise.resolve()
      const { calls } = database
      await until(() => database.calls > calls)
      database.fault = 'none'
      expect(await end).toMatchObject({ kind: 'unavailable' })
      expect(await ledger.wallet(bad.workspaceId)).toMatchObject({ posted: 100n, held: 0n })
      expect(await ledger.settle(settlementOf(bad.requestId, 4n))).toEqual({ kind: 'gone' })
      expect(await bad.charges()).toHaveLength(0)
      await expectBooksRight(store.database)
    },
  )

  storeTest(
    'a commit that is still running after its reply was lost is waited for, also by a replica that was fenced since',
    async (store) => {
      await using books = await openFaulty(store.database)
      const { ledger, timers, database } = books
      const worked = Promise.withResolvers<void>()
      const commit = Promise.withResolvers<void>()
      const usual = database.transaction
      const bad = await settleBadly(books, () => {
        database.transaction = async (work) => {
          database.transaction = usual
          database.calls++
          const running = store.database.transaction(async (sql) => {
            const result = await work(sql)
            await sql`SELECT set_config('idle_in_transaction_session_timeout', '0', true)`
            worked.resolve()
            await commit.promise
            return result
          })
          await Promise.race([worked.promise, running])
          await store.database.transaction((sql) => sql`UPDATE replicas SET epoch = epoch + 1`)
          await timers.round()
          void Bun.sleep(300).then(() => commit.resolve())
          throw new CommitUnknown(new Error('the connection broke'))
        }
      })
      expect(await ledger.settle(settlementOf(bad.requestId, 4n))).toMatchObject({
        kind: 'settled',
        charge: 4n,
      })
      expect(await bad.charges()).toHaveLength(1)
      expect(await ledger.wallet(bad.workspaceId)).toMatchObject({ posted: 96n, held: 0n })
    },
  )

  storeTest('a hold that is committed only after its release was tried ends all the same', async (store) => {
    const books = await openFaulty(store.database)
    const { ledger, database, workspaceId } = books
    const commit = Promise.withResolvers<void>()
    let placing: Promise<unknown> | undefined
    let hasTried = false
    const usual = database.transaction
    database.transaction = async (work) => {
      database.transaction = (release) => usual(release).finally(() => (hasTried = true))
      const worked = Promise.withResolvers<void>()
      placing = store.database.transaction(async (sql) => {
        await work(sql)
        await sql`SELECT set_config('idle_in_transaction_session_timeout', '0', true)`
        worked.resolve()
        await commit.promise
      })
      await Promise.race([worked.promise, placing])
      throw new CommitUnknown(new Error('the connection broke'))
    }
    expect(await ledger.hold(holdOf(workspaceId, 40n))).toMatchObject({ kind: 'unavailable' })
    const waits = async () =>
      (
        await database.sql`SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      ).length > 0
    await until(async () => hasTried || (await waits()))
    commit.resolve()
    await placing
    await ledger.close()
    expect(await database.sql`SELECT state FROM holds`).toEqual([{ state: 'released' }])
    expect(await database.sql`SELECT posted, held FROM balances`).toEqual([{ posted: 100n, held: 0n }])
  })

  storeTest(
    'an unknown outcome that cannot be found out before the ledger closes is left to the next settlement',
    async (store) => {
      const books = await openFaulty(store.database)
      const { database } = books
      const bad = await settleBadly(books, () => {
        database.fault = 'after'
      })
      await until(async () => (await bad.charges()).length === 1)
      database.fault = 'before'
      const { end } = await bad.givenUp()
      const closing = books.ledger.close()
      books.clock.advance(30_000)
      expect(await end).toBeUndefined()
      await closing
      expect(await bad.charges()).toHaveLength(1)
    },
  )

  storeTest('a deadlock is tried again, at most three times', async (store) => {
    await using books = await openFaulty(store.database)
    const { database, workspaceId } = books
    database.code = '40P01'
    database.fault = 'before'
    const { calls } = database
    expect(await books.ledger.hold(holdOf(workspaceId, 0n))).toMatchObject({ kind: 'unavailable' })
    // The four tries of the hold; behind them the release of what may have been committed has begun.
    expect(database.calls).toBeGreaterThanOrEqual(calls + 4)
    // It says nothing about the database, so new holds are still admitted.
    expect(books.ledger.admits()).toBe(true)
    database.fault = 'none'
    expect(await books.ledger.hold(holdOf(workspaceId, 0n))).toEqual({ kind: 'held' })
  })

  storeTest(
    'three processes on a wallet that can pay seven: seven are held and charged, and the remainder is exact',
    async ({ database, place }) => {
      const workspaceId = await addWorkspace(database)
      // The clock of the children.
      await using books = await openLedger(database, { clock: systemClock })
      await books.ledger.fund({ workspaceId, amount: 75n as Nano, kind: 'topup' })
      const children = await startLedgerChildren(place, 'hold', workspaceId, [['334'], ['333'], ['333']])
      expect(await sumCounts(children)).toMatchObject({ held: 7, insufficient: 993 })
      expect(await books.ledger.wallet(workspaceId)).toMatchObject({ posted: 5n, held: 0n })
      await expectBooksRight(database)
    },
  )
})
