import { expect, test } from 'bun:test'
import { forEachEngine, type Place } from '../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, openLedger } from '../../test/parts/ledger.ts'
import { startLedgerChild } from '../../test/parts/ledger-children.ts'
import { createId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { openDatabase } from '../store/open-database.ts'
import type { Funding } from './fund.ts'

const hourMs = 60 * 60_000

forEachEngine((engine, storeTest) => {
  storeTest(
    'the same key funds once, with the first answer, however often and however fast it comes',
    async ({ database }) => {
      const workspaceId = await addWorkspace(database)
      await using books = await openLedger(database)
      const { ledger } = books
      const funding: Funding = {
        workspaceId,
        amount: 50n as Nano,
        kind: 'topup',
        reference: 'inv 7',
        idempotencyKey: 'k',
      }
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => ledger.fund(funding)))
      expect(outcomes.filter((outcome) => outcome.kind === 'funded' && !outcome.repeated)).toHaveLength(1)
      await ledger.fund({ ...funding, idempotencyKey: 'another', amount: 5n as Nano })
      const again = await ledger.fund(funding)
      expect(again).toMatchObject({ kind: 'funded', repeated: true, posted: 50n, transfer: { reference: 'inv 7' } })
      expect((await ledger.wallet(workspaceId)).posted).toBe(55n as Nano)
      await expectBooksRight(database)
    },
  )

  storeTest(
    'a key that was used for another funding is a conflict, in its workspace, for a day',
    async ({ database }) => {
      const workspaceId = await addWorkspace(database)
      const other = await addWorkspace(database)
      await using books = await openLedger(database)
      const { ledger, clock, timers } = books
      const funding: Funding = { workspaceId, amount: 50n as Nano, kind: 'topup', idempotencyKey: 'k' }
      await ledger.fund(funding)
      const conflict = { kind: 'conflict', with: 'idempotency_key' } as const
      expect(await ledger.fund({ ...funding, amount: 51n as Nano })).toEqual(conflict)
      expect(await ledger.fund({ ...funding, kind: 'grant' })).toEqual(conflict)
      expect(await ledger.fund({ ...funding, reference: 'x' })).toEqual(conflict)
      expect(await ledger.fund({ ...funding, workspaceId: other })).toMatchObject({ kind: 'funded', repeated: false })
      clock.advance(24 * hourMs - 1)
      await timers.round()
      expect(await ledger.fund(funding)).toMatchObject({ repeated: true })
      clock.advance(1)
      await timers.round()
      expect(await ledger.fund(funding)).toMatchObject({ kind: 'funded', repeated: false, posted: 100n })
      await expectBooksRight(database)
    },
  )

  storeTest('a payment funds once for ever, under any key', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    await using books = await openLedger(database)
    const { ledger, clock } = books
    const funding: Funding = { workspaceId, amount: 50n as Nano, kind: 'topup', paymentId: 'cs_1' }
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => ledger.fund(funding)))
    expect(outcomes.filter((outcome) => outcome.kind === 'funded' && !outcome.repeated)).toHaveLength(1)
    clock.advance(1000 * hourMs)
    expect(await ledger.fund({ ...funding, idempotencyKey: 'k' })).toMatchObject({ kind: 'funded', repeated: true })
    const conflict = { kind: 'conflict', with: 'payment' } as const
    expect(await ledger.fund({ ...funding, amount: 51n as Nano, idempotencyKey: 'l' })).toEqual(conflict)
    // A refused funding leaves its key free.
    const next = await ledger.fund({ ...funding, amount: 51n as Nano, paymentId: 'cs_2', idempotencyKey: 'l' })
    expect(next).toMatchObject({ kind: 'funded', repeated: false, posted: 101n })
    expect((await ledger.wallet(workspaceId)).posted).toBe(101n as Nano)
    await expectBooksRight(database)
  })

  storeTest(
    'a workspace that does not exist cannot be funded, and nothing is left of the try',
    async ({ database }) => {
      await using books = await openLedger(database)
      const { ledger } = books
      const fault = await ledger
        .fund({ workspaceId: createId('ws'), amount: 5n as Nano, kind: 'topup', idempotencyKey: 'k' })
        .catch((thrown: Error) => thrown.message)
      expect(String(fault).toLowerCase()).toContain('foreign key')
      expect(await database.sql`SELECT id FROM transfers`).toHaveLength(0)
      expect(await database.sql`SELECT key FROM idempotency`).toHaveLength(0)
      expect(ledger.admits()).toBe(true)
    },
  )

  test('a top-up killed at any step and asked for again credits once', async () => {
    // 1 and 2: before and after the money moved, inside the transaction; 3: after the commit; 4: not at all.
    for (const dieAt of [1, 2, 3, 4]) {
      await using store = await engine.openStore()
      const workspaceId = await addWorkspace(store.database)
      await store.database.close()
      expect(await fundInChild(store.place, workspaceId, dieAt)).toBe(dieAt < 4 ? 'killed' : 'done')
      const database = await openDatabase(store.place)
      const [before] = await database.sql<{ posted: bigint }>`SELECT posted FROM balances`
      expect(before?.posted).toBe(dieAt < 3 ? undefined : 70n)
      await using books = await openLedger(database)
      const outcome = await books.ledger.fund({
        workspaceId,
        amount: 70n as Nano,
        kind: 'topup',
        idempotencyKey: 'once',
        paymentId: 'cs_1',
      })
      expect(outcome).toMatchObject({ kind: 'funded', posted: 70n, repeated: dieAt >= 3 })
      expect((await books.ledger.wallet(workspaceId)).posted).toBe(70n as Nano)
      await expectBooksRight(database)
      await books.ledger.close()
      await database.close()
    }
  })
})

async function fundInChild(place: Place, workspaceId: string, dieAt: number): Promise<'killed' | 'done'> {
  const child = startLedgerChild(place, 'fund', workspaceId, String(dieAt))
  await child.exited
  return child.signalCode === 'SIGKILL' ? 'killed' : 'done'
}
