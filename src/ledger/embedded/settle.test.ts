import { expect, test } from 'bun:test'
import { createEngine } from '../../../test/parts/engines.ts'
import { expectBooksRight, holdOf, openFunded, settlementOf } from '../../../test/parts/ledger.ts'
import type { Nano } from '../../kernel/money.ts'
import { WalletBook } from './embedded-ledger.ts'

test('a charge above what was held is counted, also if the hold was raised when the charge was quoted', async () => {
  await using store = await createEngine('sqlite').openStore()
  await using books = await openFunded(store.database, 1000n)
  const { ledger, workspaceId } = books
  const [covered, extended] = [holdOf(workspaceId, 10n), holdOf(workspaceId, 10n)]
  for (const request of [covered, extended]) await ledger.hold(request)
  expect(ledger.coverOverrun(covered.requestId, 90n as Nano)).toBe(90n as Nano)
  await ledger.extend(extended.requestId, 90n as Nano)
  await ledger.settle(settlementOf(covered.requestId, 100n))
  expect(ledger.stats()).toMatchObject({ charges: 1, overruns: 1, writtenOff: 0n })
  await ledger.settle(settlementOf(extended.requestId, 100n))
  expect(ledger.stats()).toMatchObject({ charges: 2, overruns: 1, writtenOff: 0n })
  await expectBooksRight(store.database)
})

test('a defect in the row of another part charges nothing, and leaves no hold', async () => {
  await using store = await createEngine('sqlite').openStore()
  await using books = await openFunded(store.database, 100n)
  const { ledger, workspaceId } = books
  const request = holdOf(workspaceId, 60n)
  await ledger.hold(request)
  const row = (): never => {
    throw new Error('a defect of another part')
  }
  await expect(ledger.settle({ ...settlementOf(request.requestId, 10n), row })).rejects.toThrow('a defect')
  expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
  expect(ledger.stats().openHolds).toBe(0)
  await expectBooksRight(store.database)
})

test('if the wallets in memory cannot follow a commit, its caller is still answered, and nothing more is admitted', async () => {
  await using store = await createEngine('sqlite').openStore()
  const broken: unknown[] = []
  await using books = await openFunded(store.database, 100n, { onBroken: (error) => void broken.push(error) })
  const { ledger, workspaceId } = books
  const [spoiled, other] = [holdOf(workspaceId, 10n), holdOf(workspaceId, 10n)]
  for (const request of [spoiled, other]) ledger.hold(request)
  const { commit } = WalletBook.prototype
  const defect = new Error('assertion failed')
  WalletBook.prototype.commit = function (claim) {
    if (claim.requestId === spoiled.requestId) throw defect
    commit.call(this, claim)
  }
  try {
    const outcomes = await Promise.all(
      [spoiled, other].map(({ requestId }) => ledger.settle(settlementOf(requestId, 4n))),
    )
    expect(outcomes).toMatchObject([{ kind: 'settled' }, { kind: 'settled' }])
  } finally {
    WalletBook.prototype.commit = commit
  }
  expect(broken).toEqual([defect])
  expect(ledger.admits()).toBe(false)
  expect(ledger.hold(holdOf(workspaceId, 1n))).toMatchObject({ kind: 'unavailable' })
  expect(await store.database.sql`SELECT id FROM transfers WHERE kind = 'charge'`).toHaveLength(2)
})
