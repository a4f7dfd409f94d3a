import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger, settlementOf } from '../../../test/parts/ledger.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'

/** Every wallet is hot from its first hold on. */
const hot = { hotHoldsPerSecond: 1 }

interface LeaseRow {
  readonly amount: bigint
  readonly spent: bigint
  readonly state: string
}

async function leasesOf(database: Database): Promise<LeaseRow[]> {
  return [...(await database.sql<LeaseRow>`SELECT amount, spent, state FROM leases ORDER BY owner`)]
}

function holdRows(database: Database): Promise<unknown[]> {
  return database.sql`SELECT 1 FROM holds`
}

async function expire(database: Database): Promise<void> {
  await database.transaction((sql) => sql`UPDATE leases SET expires_at = 0`)
}

type Books = Awaited<ReturnType<typeof openLedger>>

/** The first hold is exact and makes the wallet hot: a slice for eight of its kind, 80. */
async function warm({ ledger }: Books, database: Database, workspaceId: WorkspaceId): Promise<void> {
  const first = holdOf(workspaceId, 10n)
  await ledger.hold(first)
  while ((await leasesOf(database)).length === 0) await Bun.sleep(1)
  await ledger.release(first.requestId)
}

async function openHot(database: Database, funds: bigint) {
  const workspaceId = await addWorkspace(database)
  const books = await openLedger(database, hot)
  await books.ledger.fund({ workspaceId, amount: funds as Nano, kind: 'topup' })
  return { workspaceId, books, ledger: books.ledger }
}

forEachEngine((engine) => {
  if (engine.name !== 'postgres') return

  test('a hot wallet is admitted from in memory, charged in the lease, and comes home when the lease is given back', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, books, ledger } = await openHot(database, 10_000n)
    await using _ = books
    await warm(books, database, workspaceId)
    const rows = (await holdRows(database)).length
    const request = holdOf(workspaceId, 10n)
    // At once, without a promise: nothing was asked of the database.
    expect(ledger.hold(request)).toEqual({ kind: 'held' })
    expect(ledger.extend(request.requestId, 5n as Nano)).toEqual({ kind: 'held' })
    expect(await holdRows(database)).toHaveLength(rows)
    expect(await ledger.wallet(workspaceId)).toEqual({
      posted: 10_000n as Nano,
      held: 15n as Nano,
      available: 9_985n as Nano,
    })
    expect(await ledger.settle(settlementOf(request.requestId, 7n))).toMatchObject({ kind: 'settled', writtenOff: 0n })
    expect(await leasesOf(database)).toMatchObject([{ spent: 7n, state: 'open' }])
    expect(await ledger.wallet(workspaceId)).toEqual({
      posted: 9_993n as Nano,
      held: 0n as Nano,
      available: 9_993n as Nano,
    })
    expect(await ledger.fund({ workspaceId, amount: 7n as Nano, kind: 'topup' })).toMatchObject({ posted: 10_000n })
    await expectBooksRight(database)
    expect(await ledger.settle(settlementOf(request.requestId, 7n))).toMatchObject({ kind: 'settled', repeated: true })

    books.clock.advance(1000)
    await books.pace.round()
    expect(await leasesOf(database)).toMatchObject([{ spent: 0n }])
    await expectBooksRight(database)
    books.clock.advance(2000)
    await books.pace.round()
    expect(await leasesOf(database)).toEqual([])
    expect(await database.sql`SELECT posted, held FROM balances`).toEqual([{ posted: 10_000n, held: 0n }])
    await expectBooksRight(database)
  })

  test('a wallet that is thin for its holds is not leased', async () => {
    await using store = await engine.openStore()
    const { workspaceId, books, ledger } = await openHot(store.database, 1000n)
    await using _ = books
    // A quarter of it is 250, and eight of them are 320.
    for (let n = 0; n < 5; n++) {
      const request = holdOf(workspaceId, 40n)
      expect(await ledger.hold(request)).toEqual({ kind: 'held' })
      await ledger.release(request.requestId)
    }
    expect(await leasesOf(store.database)).toEqual([])
  })

  test('nobody is refused while another replica sits on an idle slice; what runs there stays paid for', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, books: first } = await openHot(database, 1000n)
    await using _ = first
    await using second = await openLedger(database, { hotHoldsPerSecond: Number.POSITIVE_INFINITY })
    await warm(first, database, workspaceId)
    const running = holdOf(workspaceId, 10n)
    expect(first.ledger.hold(running)).toEqual({ kind: 'held' })
    // Hopeless whatever comes back: told at once, with the numbers that are true, and nobody gives anything up.
    expect(await second.ledger.hold(holdOf(workspaceId, 1001n))).toMatchObject({ kind: 'insufficient', posted: 1000n })
    expect(await leasesOf(database)).toMatchObject([{ state: 'open' }])
    // 990 are there, though 80 of the 1,000 are in the slice.
    const all = holdOf(workspaceId, 990n)
    const asking = second.ledger.hold(all)
    const giving = setInterval(() => void first.pace.round(), 20)
    expect(await asking).toEqual({ kind: 'held' })
    expect(await leasesOf(database)).toEqual([{ amount: 10n, spent: 0n, state: 'closing' }])
    await expectBooksRight(database)
    expect(await second.ledger.hold(holdOf(workspaceId, 1n))).toEqual({
      kind: 'insufficient',
      posted: 1000n as Nano,
      held: 1000n as Nano,
    })
    // What the running one leaves over goes back to the wallet with its charge.
    expect(await first.ledger.settle(settlementOf(running.requestId, 4n))).toMatchObject({ transfer: { amount: 4n } })
    expect(await second.ledger.hold(holdOf(workspaceId, 6n))).toEqual({ kind: 'held' })
    clearInterval(giving)
    expect(await second.ledger.settle(settlementOf(all.requestId, 990n))).toMatchObject({ transfer: { amount: 990n } })
    await expectBooksRight(database)
  })

  test('a lease that was taken back cannot be charged against: the wallet pays, once, and the rest is written off', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, books: sleeper } = await openHot(database, 1000n)
    await using _ = sleeper
    await using other = await openLedger(database, { hotHoldsPerSecond: Number.POSITIVE_INFINITY })
    await warm(sleeper, database, workspaceId)
    const [paid, short] = [holdOf(workspaceId, 30n), holdOf(workspaceId, 30n)]
    expect(sleeper.ledger.hold(paid)).toEqual({ kind: 'held' })
    expect(sleeper.ledger.hold(short)).toEqual({ kind: 'held' })
    await expire(database)
    // Its time is over, and it says nothing: the slice is taken, together with what it had admitted.
    const most = holdOf(workspaceId, 960n)
    expect(await other.ledger.hold(most)).toEqual({ kind: 'held' })
    expect(await leasesOf(database)).toEqual([])
    await expectBooksRight(database)
    // 40 are free, from which both are paid as far as they go.
    expect(await sleeper.ledger.settle(settlementOf(paid.requestId, 25n))).toMatchObject({ transfer: { amount: 25n } })
    const end = await sleeper.ledger.settle(settlementOf(short.requestId, 25n))
    expect(end).toMatchObject({ kind: 'settled', transfer: { amount: 15n }, writtenOff: 10n })
    expect(await sleeper.ledger.settle(settlementOf(short.requestId, 25n))).toMatchObject({ repeated: true })
    expect(await other.ledger.wallet(workspaceId)).toMatchObject({ posted: 960n, held: 960n })
    await expectBooksRight(database)
  })

  test('what must not be paid once its replica was taken for dead has a row of its own, also on a hot wallet', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, books: sleeper } = await openHot(database, 1000n)
    await using _ = sleeper
    await using other = await openLedger(database, { hotHoldsPerSecond: Number.POSITIVE_INFINITY })
    await warm(sleeper, database, workspaceId)
    const request = { ...holdOf(workspaceId, 30n), isFenced: true }
    expect(await sleeper.ledger.hold(request)).toEqual({ kind: 'held' })
    expect(await sleeper.ledger.extend(request.requestId, 5n as Nano)).toEqual({ kind: 'held' })
    const id = sleeper.ledger.replica?.id ?? ''
    await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = 0 WHERE id = ${id}`)
    expect(await other.ledger.reap()).toMatchObject([{ requestId: request.requestId, amount: 35n }])
    expect(await sleeper.ledger.settle(settlementOf(request.requestId, 25n))).toEqual({ kind: 'gone' })
    expect(await database.sql`SELECT 1 FROM transfers WHERE kind = 'charge'`).toEqual([])
    expect(await other.ledger.wallet(workspaceId)).toMatchObject({ posted: 1000n })
    await expectBooksRight(database)
  })

  test.each([
    [60n, 60n],
    [95n, 95n],
    [150n, 130n],
  ])('what was delivered is paid from idle slices too: of %i it pays %i', async (due, paid) => {
    await using store = await engine.openStore()
    const { database } = store
    const workspaceId = await addWorkspace(database)
    await using leasing = await openLedger(database, { hotHoldsPerSecond: 1 })
    await using exact = await openLedger(database, { hotHoldsPerSecond: Number.POSITIVE_INFINITY })
    await leasing.ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
    const warming = holdOf(workspaceId, 10n)
    await leasing.ledger.hold(warming)
    while ((await leasesOf(database)).length === 0) await Bun.sleep(1)
    await leasing.ledger.release(warming.requestId)
    // A slice of 80 is idle; of the rest 870 are somebody else's, 10 are held and 40 free: 130 in all.
    await exact.ledger.hold(holdOf(workspaceId, 870n))
    const asked = holdOf(workspaceId, 10n)
    expect(await exact.ledger.hold(asked)).toEqual({ kind: 'held' })
    const giving = setInterval(() => void leasing.pace.round(), 20)
    const end = await exact.ledger.settle(settlementOf(asked.requestId, due))
    clearInterval(giving)
    expect(end).toMatchObject({ kind: 'settled', transfer: { amount: paid }, writtenOff: due - paid })
    await expectBooksRight(database)
  })

  test('the slice of a dead replica is taken back by the reaper, and what it had charged stays charged', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, books: dead } = await openHot(database, 1000n)
    await using living = await openLedger(database)
    await warm(dead, database, workspaceId)
    const [charged, lost] = [holdOf(workspaceId, 10n), holdOf(workspaceId, 20n)]
    dead.ledger.hold(charged)
    dead.ledger.hold(lost)
    await dead.ledger.settle(settlementOf(charged.requestId, 9n))
    await living.ledger.reap()
    expect(await leasesOf(database)).toHaveLength(1)
    await expire(database)
    await living.ledger.reap()
    expect(await leasesOf(database)).toEqual([])
    expect(await living.ledger.wallet(workspaceId)).toEqual({
      posted: 991n as Nano,
      held: 0n as Nano,
      available: 991n as Nano,
    })
    await expectBooksRight(database)
    await dead.ledger.close()
  })

  test('a replica that leaves gives its slices back', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, books } = await openHot(database, 1000n)
    await warm(books, database, workspaceId)
    books.ledger.hold(holdOf(workspaceId, 10n))
    await books.ledger.close()
    expect(await leasesOf(database)).toEqual([])
    expect(await database.sql`SELECT posted, held FROM balances`).toEqual([{ posted: 1000n, held: 0n }])
  })

  test('what does not fit into the slice is held beside it, and one settlement ends both', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, books, ledger } = await openHot(database, 1000n)
    await using _ = books
    await warm(books, database, workspaceId)
    const request = holdOf(workspaceId, 50n)
    expect(ledger.hold(request)).toEqual({ kind: 'held' })
    expect(await ledger.extend(request.requestId, 200n as Nano)).toEqual({ kind: 'held' })
    expect(await ledger.wallet(workspaceId)).toMatchObject({ held: 250n })
    await expectBooksRight(database)
    expect(await ledger.settle(settlementOf(request.requestId, 240n))).toMatchObject({ transfer: { amount: 240n } })
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 760n, held: 0n })
    await expectBooksRight(database)
  })

  test('a charge from a lease whose answer was lost is made once', async () => {
    await using store = await engine.openStore()
    const workspaceId = await addWorkspace(store.database)
    const database = { ...store.database, isDeaf: false, calls: 0 }
    database.transaction = async (work) => {
      const result = await store.database.transaction(work)
      database.calls++
      if (database.isDeaf) throw new SQL.PostgresError('lost', { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '08006' })
      return result
    }
    await using books = await openLedger(database, hot)
    const { ledger } = books
    await ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
    await warm(books, database, workspaceId)
    const request = holdOf(workspaceId, 10n)
    expect(ledger.hold(request)).toEqual({ kind: 'held' })
    database.isDeaf = true
    const { calls } = database
    const settling = ledger.settle(settlementOf(request.requestId, 4n))
    while (database.calls < calls + 2) await Bun.sleep(1)
    database.isDeaf = false
    expect(await settling).toMatchObject({ kind: 'settled', transfer: { amount: 4n } })
    expect(await leasesOf(database)).toMatchObject([{ spent: 4n }])
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 996n, held: 0n })
    await expectBooksRight(store.database)
  })

  test('a hold from a lease that is past its lifetime is reaped', async () => {
    await using store = await engine.openStore()
    const { workspaceId, books, ledger } = await openHot(store.database, 1000n)
    await using _ = books
    await warm(books, store.database, workspaceId)
    const request = { ...holdOf(workspaceId, 10n), lifetimeMs: 500 }
    expect(ledger.hold(request)).toEqual({ kind: 'held' })
    ledger.markSent(request.requestId)
    books.clock.advance(501)
    expect(await ledger.reap()).toEqual([{ requestId: request.requestId, amount: 10n as Nano, sent: true }])
    expect(await ledger.settle(settlementOf(request.requestId, 5n))).toEqual({ kind: 'gone' })
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 1000n, held: 0n })
  })
})
