import { expect, test } from 'bun:test'
import { createEngine } from '../../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger, settlementOf } from '../../../test/parts/ledger.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'

async function openFunded(database: Database, amount: bigint) {
  const workspaceId = await addWorkspace(database)
  const books = await openLedger(database)
  await books.ledger.fund({ workspaceId, amount: amount as Nano, kind: 'topup' })
  return { ...books, workspaceId }
}

test('a charge above what was held is counted, also where the hold was raised when the charge was told', async () => {
  await using store = await createEngine('sqlite').openStore()
  await using books = await openFunded(store.database, 1000n)
  const { ledger, workspaceId } = books
  const [covered, extended] = [holdOf(workspaceId, 10n), holdOf(workspaceId, 10n)]
  for (const request of [covered, extended]) await ledger.hold(request)
  expect(ledger.cover(covered.requestId, 90n as Nano)).toBe(90n as Nano)
  await ledger.extend(extended.requestId, 90n as Nano)
  await ledger.settle(settlementOf(covered.requestId, 100n))
  expect(ledger.stats()).toMatchObject({ charges: 1, overruns: 1, writtenOff: 0n })
  await ledger.settle(settlementOf(extended.requestId, 100n))
  expect(ledger.stats()).toMatchObject({ charges: 2, overruns: 1, writtenOff: 0n })
  await expectBooksRight(store.database)
})

test('a defect in the rows of other parts charges nothing, and leaves no hold', async () => {
  await using store = await createEngine('sqlite').openStore()
  await using books = await openFunded(store.database, 100n)
  const { ledger, workspaceId } = books
  const request = holdOf(workspaceId, 60n)
  await ledger.hold(request)
  const rows = (): never => {
    throw new Error('a defect of another part')
  }
  await expect(ledger.settle({ ...settlementOf(request.requestId, 10n), rows })).rejects.toThrow('a defect')
  expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
  expect(ledger.stats().openHolds).toBe(0)
  await expectBooksRight(store.database)
})
