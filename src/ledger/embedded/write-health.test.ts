import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { createThrowAwayFolder, testWith } from '../../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger, settlementOf } from '../../../test/parts/ledger.ts'
import { systemClock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import type { Journal } from '../../store/journal.ts'
import { migrate } from '../../store/migrate.ts'
import { openDatabase } from '../../store/open-database.ts'

interface Setup extends AsyncDisposable {
  readonly database: Database
  readonly workspaceId: WorkspaceId
}

async function setUp(): Promise<Setup> {
  const folder = createThrowAwayFolder()
  const database = await openDatabase({ url: undefined, dataFolder: folder.path })
  await migrate({ database, clock: systemClock })
  const workspaceId = await addWorkspace(database)
  return {
    database,
    workspaceId,
    async [Symbol.asyncDispose]() {
      await database.close()
      folder[Symbol.dispose]()
    },
  }
}

/** Stands before the real journal: lets commits wait, or fail before or after they are written. */
function createFaultyWriter(journal: Journal) {
  const faulty = {
    fault: 'none' as 'none' | 'before' | 'unsynced' | 'after' | 'defect',
    calls: 0,
    until: Promise.resolve(),
    apply: () => journal.apply(),
    async append(requests: Parameters<Journal['append']>[0]) {
      faulty.calls++
      await faulty.until
      if (faulty.fault === 'before') throw new SQL.SQLiteError('disk full', { code: 'SQLITE_FULL', errno: 13 })
      if (faulty.fault === 'unsynced')
        throw new SQL.SQLiteError('disk I/O error', { code: 'SQLITE_IOERR_FSYNC', errno: 1034 })
      if (faulty.fault === 'defect') throw new TypeError('cannot encode the batch')
      await journal.append(requests)
      if (faulty.fault === 'after')
        throw new SQL.SQLiteError('lost', { code: 'ERR_SQLITE_CONNECTION_CLOSED', errno: 0 })
    },
  }
  return faulty
}

async function setUpFaulty() {
  const setup = await setUp()
  if (!setup.database.journal) throw new Error('the embedded engine has a journal')
  const writer = createFaultyWriter(setup.database.journal)
  const faults: unknown[] = []
  const onFault = (_what: string, error: unknown) => void faults.push(error)
  const books = await openLedger({ ...setup.database, journal: writer }, { onFault })
  await books.ledger.fund({ workspaceId: setup.workspaceId, amount: 100n as Nano, kind: 'topup' })
  return { ...setup, ...books, writer, faults, [Symbol.asyncDispose]: () => setup[Symbol.asyncDispose]() }
}

/** Until the condition holds; the test's own time limit is the bound. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(1)
}

test('while the disk is full nothing is admitted, what runs is charged once there is room, and nothing is lost', async () => {
  await using setup = await setUp()
  const { database, workspaceId } = setup
  const allowPages = (count: number) =>
    database.schemaTransaction((_sql, run) => run(`PRAGMA max_page_count = ${count}`))
  await using books = await openLedger(database)
  const { ledger, timers } = books
  await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
  const running = holdOf(workspaceId, 10n)
  const requests = [holdOf(workspaceId, 10n), holdOf(workspaceId, 10n)]
  for (const request of [running, ...requests]) expect(ledger.hold(request)).toEqual({ kind: 'held' })
  await allowPages(1)
  // Much text, so that a page beyond the allowed ones is needed.
  const usage = 'x'.repeat(20_000)
  const settling = requests.map((request) => ledger.settle(settlementOf(request.requestId, 4n, { usage })))
  await until(() => !ledger.admits())
  expect(ledger.hold(holdOf(workspaceId, 1n))).toEqual({ kind: 'unavailable', retryAfterMs: 1000 })
  expect(ledger.extend(running.requestId, 5n as Nano)).toEqual({ kind: 'held' })
  expect(await database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(0)
  await allowPages(1_000_000)
  for (const outcome of await Promise.all(settling)) expect(outcome).toMatchObject({ kind: 'settled' })
  await timers.round()
  expect(ledger.hold(holdOf(workspaceId, 1n))).toEqual({ kind: 'held' })
  expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 92n, held: 16n })
  await expectBooksRight(database)
})

test('a top-up that cannot be committed is unavailable, credits nothing, and stops new holds until a probe succeeds', async () => {
  await using setup = await setUp()
  const { database, workspaceId } = setup
  let readOnly = true
  const transaction: Database['transaction'] = (work) =>
    database.transaction(async (sql) => {
      const result = await work(sql)
      if (readOnly) throw new SQL.SQLiteError('read-only', { code: 'SQLITE_READONLY', errno: 8 })
      return result
    })
  await using books = await openLedger({ ...database, transaction })
  const { ledger, timers } = books
  const funding = { workspaceId, amount: 100n as Nano, kind: 'topup', idempotencyKey: 'k' } as const
  expect(await ledger.fund(funding)).toEqual({ kind: 'unavailable', retryAfterMs: 1000 })
  readOnly = false
  expect(ledger.admits()).toBe(false)
  await timers.round()
  expect(ledger.admits()).toBe(true)
  expect(await ledger.fund(funding)).toMatchObject({ kind: 'funded', repeated: false, posted: 100n })
  expect((await ledger.wallet(workspaceId)).posted).toBe(100n as Nano)
})

const storeTest = testWith(setUpFaulty)

storeTest(
  'a commit that is outstanding for more than two seconds stops new holds until it has ended',
  async ({ ledger, workspaceId, writer, clock }) => {
    const request = holdOf(workspaceId, 10n)
    ledger.hold(request)
    let goOn = () => {}
    writer.until = new Promise((resolve) => {
      goOn = resolve
    })
    const settling = ledger.settle(settlementOf(request.requestId, 4n))
    await until(() => writer.calls === 1)
    clock.advance(2000)
    expect(ledger.admits()).toBe(true)
    clock.advance(1)
    expect(ledger.hold(holdOf(workspaceId, 1n))).toMatchObject({ kind: 'unavailable' })
    goOn()
    expect(await settling).toMatchObject({ kind: 'settled', repeated: false })
    expect(ledger.hold(holdOf(workspaceId, 1n))).toEqual({ kind: 'held' })
  },
)

storeTest(
  'a settlement is tried for thirty seconds, then the hold ends without a charge',
  async ({ ledger, workspaceId, writer, clock, timers, database }) => {
    const request = holdOf(workspaceId, 10n)
    ledger.hold(request)
    writer.fault = 'before'
    const settling = ledger.settle(settlementOf(request.requestId, 4n))
    await until(() => writer.calls >= 3)
    clock.advance(30_001)
    expect(await settling).toEqual({ kind: 'unavailable', retryAfterMs: 1000 })
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
    expect(await ledger.settle(settlementOf(request.requestId, 4n))).toEqual({ kind: 'gone' })
    writer.fault = 'none'
    await timers.round()
    expect(ledger.admits()).toBe(true)
    expect(await database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(0)
    await expectBooksRight(database)
  },
)

storeTest(
  'a defect of ours fails the settlement at once, is reported, and leaves no hold',
  async ({ ledger, workspaceId, writer, timers, database, faults }) => {
    const request = holdOf(workspaceId, 10n)
    ledger.hold(request)
    writer.fault = 'defect'
    const settling = ledger.settle(settlementOf(request.requestId, 4n))
    await expect(settling).rejects.toThrow('it was not charged: TypeError: cannot encode the batch')
    expect(writer.calls).toBe(1)
    expect(faults).toMatchObject([new TypeError('cannot encode the batch')])
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
    writer.fault = 'none'
    await timers.round()
    expect(ledger.admits()).toBe(true)
    await expectBooksRight(database)
  },
)

storeTest('the first failed commit of an outage is reported', async ({ ledger, workspaceId, writer, faults }) => {
  const request = holdOf(workspaceId, 10n)
  ledger.hold(request)
  writer.fault = 'before'
  const settling = ledger.settle(settlementOf(request.requestId, 4n))
  await until(() => writer.calls >= 3)
  writer.fault = 'none'
  expect(await settling).toMatchObject({ kind: 'settled' })
  expect(faults.map(String)).toEqual(['SQLiteError: disk full'])
})

storeTest(
  'a retry finds a commit whose success was not reported, and it is charged once',
  async ({ ledger, workspaceId, writer, database }) => {
    const request = holdOf(workspaceId, 10n)
    ledger.hold(request)
    writer.fault = 'after'
    const settling = ledger.settle(settlementOf(request.requestId, 4n))
    await until(() => writer.calls >= 1)
    writer.fault = 'none'
    expect(await settling).toMatchObject({ kind: 'settled', charge: 4n })
    expect(await database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(1)
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 96n, held: 0n })
  },
)

/** A settlement of 4 that is given up after thirty seconds of commits that may have been written. */
async function doubt(faulty: Awaited<ReturnType<typeof setUpFaulty>>, fault: 'unsynced' | 'after') {
  const { ledger, workspaceId, writer, clock } = faulty
  const request = holdOf(workspaceId, 10n)
  ledger.hold(request)
  writer.fault = fault
  const settling = ledger.settle(settlementOf(request.requestId, 4n))
  await until(() => writer.calls >= 2)
  clock.advance(30_001)
  const outcome = await settling
  if (outcome.kind !== 'unknown') throw new Error(`expected an unknown outcome, got ${outcome.kind}`)
  return { ...request, end: outcome.end }
}

storeTest(
  'a settlement that could not be synced is unknown, and not charged once a commit succeeds',
  async (faulty) => {
    const { ledger, workspaceId, writer, timers, database } = faulty
    const { requestId, end } = await doubt(faulty, 'unsynced')
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 10n })
    expect(ledger.release(requestId)).toEqual({ kind: 'gone' })
    expect(await ledger.settle(settlementOf(requestId, 4n))).toMatchObject({ kind: 'unknown' })
    writer.fault = 'none'
    await timers.round()
    expect(await end).toEqual({ kind: 'unavailable', retryAfterMs: 1000 })
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
    expect(await database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(0)
    await expectBooksRight(database)
  },
)

storeTest('a commit that was written and reported as failed is charged once another one succeeds', async (faulty) => {
  const { ledger, workspaceId, writer, database } = faulty
  const { end } = await doubt(faulty, 'after')
  writer.fault = 'none'
  const other = holdOf(workspaceId, 10n)
  // A top-up succeeds, so that new requests are admitted.
  await ledger.fund({ workspaceId, amount: 1n as Nano, kind: 'topup' })
  ledger.hold(other)
  expect(await ledger.settle(settlementOf(other.requestId, 3n))).toMatchObject({ kind: 'settled' })
  expect(await end).toMatchObject({ kind: 'settled', charge: 4n })
  expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 94n, held: 0n })
  await expectBooksRight(database)
})

storeTest('a process that ends in doubt leaves the outcome to the next one', async (faulty) => {
  const { end } = await doubt(faulty, 'unsynced')
  await faulty.ledger.close()
  expect(await end).toBeUndefined()
})

storeTest('operations queued during a commit share the next one', async ({ ledger, workspaceId, writer }) => {
  const requests = Array.from({ length: 50 }, () => holdOf(workspaceId, 1n))
  for (const request of requests) ledger.hold(request)
  const [first, ...others] = requests
  if (!first) throw new Error('no request')
  let goOn = () => {}
  writer.until = new Promise((resolve) => {
    goOn = resolve
  })
  const settling = [ledger.settle(settlementOf(first.requestId, 1n))]
  await until(() => writer.calls === 1)
  settling.push(...others.map(({ requestId }) => ledger.settle(settlementOf(requestId, 1n))))
  goOn()
  await Promise.all(settling)
  expect(writer.calls).toBe(2)
  expect((await ledger.wallet(workspaceId)).posted).toBe(50n as Nano)
})

test('after a restart the wallets are as the transfers say, and open holds are gone without a charge', async () => {
  await using setup = await setUp()
  const { database, workspaceId } = setup
  const [settled, lost] = [holdOf(workspaceId, 10n), holdOf(workspaceId, 20n)]
  {
    await using books = await openLedger(database)
    await books.ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
    for (const request of [settled, lost]) books.ledger.hold(request)
    await books.ledger.settle(settlementOf(settled.requestId, 7n))
  }
  await using again = await openLedger(database)
  expect(await again.ledger.wallet(workspaceId)).toEqual({
    posted: 93n as Nano,
    held: 0n as Nano,
    available: 93n as Nano,
  })
  expect(await again.ledger.settle(settlementOf(lost.requestId, 7n))).toEqual({ kind: 'gone' })
  expect(await again.ledger.settle(settlementOf(settled.requestId, 9n))).toMatchObject({
    kind: 'settled',
    repeated: true,
    charge: 7n,
  })
})

/** A settlement of 4 whose commit does not come back from the disk; `disk` lets it go on. */
async function stall(faulty: Awaited<ReturnType<typeof setUpFaulty>>) {
  const { ledger, workspaceId, writer, clock } = faulty
  const request = holdOf(workspaceId, 10n)
  ledger.hold(request)
  const disk = Promise.withResolvers<void>()
  writer.until = disk.promise
  const settling = ledger.settle(settlementOf(request.requestId, 4n))
  await until(() => writer.calls === 1)
  clock.advance(30_001)
  const outcome = await settling
  if (outcome.kind !== 'unknown') throw new Error(`expected an unknown outcome, got ${outcome.kind}`)
  return { ...request, end: outcome.end, disk }
}

storeTest(
  'a commit that has not come back after thirty seconds is unknown: hold and claim stay open',
  async (faulty) => {
    const { ledger, workspaceId, clock, timers } = faulty
    const { requestId, end, disk } = await stall(faulty)
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 10n })
    expect(ledger.release(requestId)).toEqual({ kind: 'gone' })
    clock.advance(24 * 60 * 60_000)
    await timers.round()
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 10n })
    expect(await ledger.settle(settlementOf(requestId, 4n))).toMatchObject({ kind: 'unknown' })
    expect(ledger.stats()).toMatchObject({ charges: 0, openHolds: 1 })
    disk.resolve()
    await end
  },
)

storeTest('an unknown outcome whose commit succeeds is charged once', async (faulty) => {
  const { ledger, workspaceId, database } = faulty
  const { requestId, end, disk } = await stall(faulty)
  disk.resolve()
  expect(await end).toMatchObject({ kind: 'settled', charge: 4n, posted: 96n, repeated: false })
  expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 96n, held: 0n })
  expect(ledger.stats()).toMatchObject({ charges: 1, openHolds: 0 })
  expect(await ledger.settle(settlementOf(requestId, 4n))).toMatchObject({ kind: 'settled', repeated: true })
  expect(await database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(1)
  await expectBooksRight(database)
})

storeTest('an unknown outcome whose commit fails is not charged and not tried again', async (faulty) => {
  const { ledger, workspaceId, writer, database, timers } = faulty
  const { requestId, end, disk } = await stall(faulty)
  writer.fault = 'before'
  disk.resolve()
  expect(await end).toEqual({ kind: 'unavailable', retryAfterMs: 1000 })
  writer.fault = 'none'
  await timers.round()
  expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
  expect(ledger.stats()).toMatchObject({ charges: 0, openHolds: 0 })
  expect(await ledger.settle(settlementOf(requestId, 4n))).toEqual({ kind: 'gone' })
  expect(await database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(0)
  await expectBooksRight(database)
})

storeTest(
  'gives up operations behind a hanging commit after thirty seconds, and does not charge them',
  async ({ ledger, workspaceId, clock, database, writer }) => {
    const [first, second] = [holdOf(workspaceId, 10n), holdOf(workspaceId, 10n)]
    for (const request of [first, second]) ledger.hold(request)
    const disk = Promise.withResolvers<void>()
    writer.until = disk.promise
    const settlings = [ledger.settle(settlementOf(first.requestId, 4n))]
    await until(() => writer.calls === 1)
    settlings.push(ledger.settle(settlementOf(second.requestId, 4n)))
    // It is queued a few microtasks later.
    await Bun.sleep(0)
    clock.advance(30_001)
    const [unknown, givenUp] = await Promise.all(settlings)
    expect([unknown?.kind, givenUp?.kind]).toEqual(['unknown', 'unavailable'])
    disk.resolve()
    if (unknown?.kind === 'unknown') expect(await unknown.end).toMatchObject({ kind: 'settled' })
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 96n, held: 0n })
    expect(await database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(1)
  },
)
