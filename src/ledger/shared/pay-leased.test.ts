import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger, settlementOf } from '../../../test/parts/ledger.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { walletOf } from '../account.ts'
import type { Ledger } from '../ledger.ts'

/** Every wallet is hot from its first hold on. */
const hot = { hotHoldsPerSecond: 1 }

async function leaseCount({ sql }: Database): Promise<number> {
  return (await sql`SELECT 1 FROM leases`).length
}

/** A wallet of 10,000 with a slice of 80. */
async function fundHot(database: Database, ledger: Ledger): Promise<WorkspaceId> {
  const workspaceId = await addWorkspace(database)
  await ledger.fund({ workspaceId, amount: 10_000n as Nano, kind: 'topup' })
  const [first, before] = [holdOf(workspaceId, 10n), await leaseCount(database)]
  await ledger.hold(first)
  while ((await leaseCount(database)) === before) await Bun.sleep(1)
  await ledger.release(first.requestId)
  return workspaceId
}

function holdMany(ledger: Ledger, workspaceId: WorkspaceId, count: number): RequestId[] {
  return Array.from({ length: count }, () => {
    const request = holdOf(workspaceId, 10n)
    expect(ledger.hold(request)).toEqual({ kind: 'held' })
    return request.requestId
  })
}

/** The handle, and what it was asked to commit. */
function counted(real: Database) {
  const counts = { transactions: 0, statements: 0 }
  const database: Database = {
    ...real,
    transaction(work, shape) {
      counts.transactions++
      return real.transaction((sql) => {
        const tag = (...args: unknown[]) => {
          if (Array.isArray(args[0]) && 'raw' in args[0]) counts.statements++
          return (sql as unknown as (...args: unknown[]) => unknown)(...args)
        }
        return work(tag as unknown as typeof sql)
      }, shape)
    },
  }
  return { database, counts }
}

forEachEngine((engine) => {
  if (engine.name !== 'postgres') return

  test('settlements of many requests from a lease are one statement, whatever they write', async () => {
    await using store = await engine.openStore()
    const { database, counts } = counted(store.database)
    await using books = await openLedger(database, hot)
    const { ledger } = books
    const workspaceId = await fundHot(database, ledger)
    const ids = holdMany(ledger, workspaceId, 7)
    const before = { ...counts }
    const settled = await Promise.all(
      ids.map((id) =>
        ledger.settle({
          ...settlementOf(id, 3n),
          rows: () => [{ table: 'changes', columns: { kind: 'test', object: id, at: 1n } }],
        }),
      ),
    )
    expect(settled.map((outcome) => outcome.kind === 'settled' && outcome.transfer.amount)).toEqual(
      ids.map(() => 3n as Nano),
    )
    expect(counts.transactions - before.transactions).toBe(1)
    expect(counts.statements - before.statements).toBe(1)
    expect(await database.sql`SELECT 1 FROM changes WHERE kind = 'test'`).toHaveLength(7)
    expect(await database.sql`SELECT spent FROM leases`).toEqual([{ spent: 21n }])
    await expectBooksRight(database)
  })

  test('while somebody locks the rows of all wallets, a lease admits and charges', async () => {
    await using store = await engine.openStore()
    const { database } = store
    await using books = await openLedger(database, hot)
    const { ledger } = books
    const workspaceId = await fundHot(database, ledger)
    await database.transaction(async (sql) => {
      await sql`SELECT 1 FROM balances FOR UPDATE`
      const ids = holdMany(ledger, workspaceId, 3)
      // A wallet's row would be waited for until the statement's time is over, and nothing were charged.
      const outcomes = await Promise.all(ids.map((id) => ledger.settle(settlementOf(id, 10n))))
      expect(outcomes.map(({ kind }) => kind)).toEqual(['settled', 'settled', 'settled'])
    })
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 9_970n, held: 0n })
    await expectBooksRight(database)
  })

  test('of two leases in one commit the one that is gone pays nothing, and its wallet pays instead', async () => {
    await using store = await engine.openStore()
    const { database } = store
    await using books = await openLedger(database, hot)
    const { ledger } = books
    const [kept, lost] = [await fundHot(database, ledger), await fundHot(database, ledger)]
    const [fromKept = '', fromLost = ''] = [...holdMany(ledger, kept, 1), ...holdMany(ledger, lost, 1)]
    await database.transaction(async (sql) => {
      const [row] = await sql<{
        amount: bigint
      }>`DELETE FROM leases WHERE wallet_id = ${walletOf(lost)} RETURNING amount`
      await sql`UPDATE balances SET held = held - ${row?.amount ?? 0n} WHERE account_id = ${walletOf(lost)}`
    })
    const settle = (id: string, charge: bigint) => ledger.settle(settlementOf(id as RequestId, charge))
    const outcomes = await Promise.all([settle(fromKept, 4n), settle(fromLost, 5n)])
    expect(outcomes).toMatchObject([{ transfer: { amount: 4n } }, { transfer: { amount: 5n } }])
    expect(await database.sql`SELECT spent FROM leases`).toEqual([{ spent: 4n }])
    expect(await ledger.wallet(lost)).toMatchObject({ posted: 9_995n, held: 0n })
    await expectBooksRight(database)
  })

  test('what the operator writes off is written with the charge', async () => {
    await using store = await engine.openStore()
    const { database } = store
    await using books = await openLedger(database, hot)
    const { ledger } = books
    const [id = ''] = holdMany(ledger, await fundHot(database, ledger), 1)
    const settlement = { ...settlementOf(id as RequestId, 9n), told: 6n as Nano }
    expect(await ledger.settle(settlement)).toMatchObject({ transfer: { amount: 6n }, writtenOff: 3n })
    expect(await database.sql`SELECT kind, amount FROM transfers WHERE request_id = ${id} ORDER BY kind`).toEqual([
      { kind: 'charge', amount: 6n },
      { kind: 'writeoff', amount: 3n },
    ])
    await expectBooksRight(database)
  })
})
