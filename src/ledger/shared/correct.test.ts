import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger, settlementOf } from '../../../test/parts/ledger.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'

const cold = { hotHoldsPerSecond: Number.POSITIVE_INFINITY }

/** A wallet with 1000 of which another replica has leased a slice, and runs a request of 10 from it. */
async function openLeased(database: Database) {
  const workspaceId = await addWorkspace(database)
  const other = await openLedger(database, { hotHoldsPerSecond: 1 })
  await other.ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
  const first = holdOf(workspaceId, 10n)
  await other.ledger.hold(first)
  while ((await database.sql`SELECT 1 FROM leases`).length === 0) await Bun.sleep(1)
  await other.ledger.release(first.requestId)
  const running = holdOf(workspaceId, 10n)
  // At once: from the slice.
  expect(other.ledger.hold(running)).toEqual({ kind: 'held' })
  return { workspaceId, other, running }
}

forEachEngine((engine) => {
  // Only replicas have leases.
  if (engine.name !== 'postgres') return

  test('what is idle in the slice of another replica is asked back and taken; what runs there stays paid for', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, other, running } = await openLeased(database)
    await using _ = other
    await using books = await openLedger(database, cold)
    const take = (amount: bigint) =>
      books.ledger.correct({ workspaceId, direction: 'take', amount: amount as Nano, reason: 'test' })
    // The other replica looks after its leases by itself, as it would by its timer.
    let isOver = false
    const rounds = (async () => {
      while (!isOver) {
        await other.pace.round()
        await Bun.sleep(5)
      }
    })()
    // Less than the running request holds is never free, asked back or not.
    expect(await take(991n)).toMatchObject({ kind: 'insufficient', posted: 1000n, held: 10n })
    expect(await take(990n)).toMatchObject({ kind: 'corrected', posted: 10n })
    expect(await other.ledger.settle(settlementOf(running.requestId, 10n))).toMatchObject({
      kind: 'settled',
      transfer: { amount: 10n },
      writtenOff: 0n,
    })
    isOver = true
    await rounds
    expect(await books.ledger.wallet(workspaceId)).toMatchObject({ posted: 0n, held: 0n })
    await expectBooksRight(database)
  })

  test('what is free beside the slices is taken without asking for them', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const { workspaceId, other } = await openLeased(database)
    await using _ = other
    await using books = await openLedger(database, cold)
    const correction = { workspaceId, direction: 'take', amount: 700n as Nano, reason: 'test' } as const
    expect(await books.ledger.correct(correction)).toMatchObject({ kind: 'corrected', posted: 300n })
    expect(await database.sql<{ state: string }>`SELECT state FROM leases`).toEqual([{ state: 'open' }])
    await expectBooksRight(database)
  })
})
