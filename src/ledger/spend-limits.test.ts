import { expect, test } from 'bun:test'
import { forEachEngine, type Place } from '../../test/parts/engines.ts'
import {
  addWorkspace,
  expectBooksRight,
  holdOf,
  openFunded,
  openLedger,
  settlementOf,
} from '../../test/parts/ledger.ts'
import { startLedgerChild, startLedgerChildren, sumCounts } from '../../test/parts/ledger-children.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Nano } from '../kernel/money.ts'
import type { Journal } from '../store/journal.ts'
import { openDatabase } from '../store/open-database.ts'
import type { Budget } from './budget.ts'

const window = 'month:2100-01'
const budgetOf = (cap: bigint): readonly Budget[] => [{ scopeId: 'key_1', window, cap: cap as Nano }]
const state = (spent: bigint, held: bigint) => ({ spent: spent as Nano, held: held as Nano })

forEachEngine((engine, storeTest) => {
  storeTest(
    'a thousand holds at once in a budget with room for seven: seven are held, and the room left is exact',
    async ({ database }) => {
      await using books = await openFunded(database, 1_000_000n)
      const { ledger, workspaceId } = books
      const requests = Array.from({ length: 1000 }, () => ({ ...holdOf(workspaceId, 10n), budgets: budgetOf(75n) }))
      const outcomes = await Promise.all(requests.map((request) => ledger.hold(request)))
      const held = requests.filter((_, at) => outcomes[at]?.kind === 'held')
      expect(held).toHaveLength(7)
      expect(outcomes.filter(({ kind }) => kind === 'over budget')).toHaveLength(993)
      await Promise.all(held.map(({ requestId }) => ledger.settle(settlementOf(requestId, 10n))))
      expect(await ledger.budget('key_1', window)).toEqual(state(70n, 0n))
      expect(await ledger.hold({ ...holdOf(workspaceId, 6n), budgets: budgetOf(75n) })).toEqual({
        kind: 'over budget',
        scopeId: 'key_1',
        window,
        cap: 75n as Nano,
        ...state(70n, 0n),
      })
      expect(await ledger.hold({ ...holdOf(workspaceId, 5n), budgets: budgetOf(75n) })).toMatchObject({ kind: 'held' })
      await expectBooksRight(database)
    },
  )

  storeTest(
    'a charge above its hold is paid as far as the limit has room, and the rest is written off',
    async ({ database }) => {
      await using books = await openFunded(database, 1000n)
      const { ledger, workspaceId } = books
      const [low, other] = [10n, 20n].map((amount) => ({ ...holdOf(workspaceId, amount), budgets: budgetOf(75n) }))
      if (!low || !other) throw new Error('there are two')
      for (const request of [low, other]) expect(await ledger.hold(request)).toMatchObject({ kind: 'held' })
      // Its 10, and the 45 that the limit has left beside both holds.
      expect(await ledger.settle(settlementOf(low.requestId, 70n))).toMatchObject({ charge: 55n, writtenOff: 15n })
      expect(await ledger.budget('key_1', window)).toEqual(state(55n, 20n))
      expect(await ledger.settle(settlementOf(other.requestId, 21n))).toMatchObject({ charge: 20n, writtenOff: 1n })
      expect(await ledger.budget('key_1', window)).toEqual(state(75n, 0n))
      expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 925n, held: 0n })
      await expectBooksRight(database)
    },
  )

  storeTest('a reaped hold gives back what it held in its budgets', async ({ database }) => {
    await using books = await openFunded(database, 100n)
    const { ledger, clock, workspaceId } = books
    await ledger.hold({ ...holdOf(workspaceId, 10n), budgets: budgetOf(50n), lifetimeMs: 0 })
    await ledger.hold({ ...holdOf(workspaceId, 7n), budgets: budgetOf(50n), lifetimeMs: 0 })
    await ledger.hold({ ...holdOf(workspaceId, 20n), budgets: budgetOf(50n) })
    clock.advance(1)
    // The database's own clock must have moved too.
    await Bun.sleep(2)
    expect(await ledger.budget('key_1', window)).toEqual(state(0n, 37n))
    expect(await ledger.reap()).toHaveLength(2)
    expect(await ledger.budget('key_1', window)).toEqual(state(0n, 20n))
    await expectBooksRight(database)
  })

  storeTest('knows the spend after a restart, and does not count holds for ever', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    const settled = { ...holdOf(workspaceId, 10n), budgets: budgetOf(30n) }
    {
      await using books = await openLedger(database)
      await books.ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
      await books.ledger.hold(settled)
      await books.ledger.hold({ ...holdOf(workspaceId, 20n), budgets: budgetOf(30n) })
      await books.ledger.settle(settlementOf(settled.requestId, 9n))
    }
    await using again = await openLedger(database)
    await again.ledger.reap()
    expect(await again.ledger.budget('key_1', window)).toEqual(state(9n, 0n))
    const tooMuch = { ...holdOf(workspaceId, 22n), budgets: budgetOf(30n) }
    expect(await again.ledger.hold(tooMuch)).toMatchObject({ kind: 'over budget', spent: 9n, held: 0n })
    expect(await again.ledger.hold({ ...holdOf(workspaceId, 21n), budgets: budgetOf(30n) })).toMatchObject({
      kind: 'held',
    })
    await expectBooksRight(database)
  })

  test('killed in the middle of spending, the budget has exactly what the transfers say', async () => {
    await using store = await engine.openStore()
    const workspaceId = await addWorkspace(store.database)
    {
      await using books = await openLedger(store.database, { clock: systemClock })
      await books.ledger.fund({ workspaceId, amount: 1_000_000_000n as Nano, kind: 'topup' })
    }
    if (engine.name === 'sqlite') await store.database.close()
    const confirmed = await spendInChild(store.place, workspaceId)
    const database = engine.name === 'sqlite' ? await openDatabase(store.place) : store.database
    const [row] = await database.sql<{ n: bigint; spent: bigint }>`SELECT COUNT(*) AS n,
      CAST(COALESCE(SUM(amount), 0) AS BIGINT) AS spent FROM transfers WHERE kind = 'charge'`
    expect(Number(row?.n)).toBeGreaterThanOrEqual(confirmed)
    await using books = await openLedger(database, { clock: systemClock })
    expect((await books.ledger.budget('key_1', window)).spent as bigint).toBe(row?.spent ?? -1n)
    await expectBooksRight(database)
    await books.ledger.close()
    await database.close()
  })

  if (engine.name === 'sqlite') {
    storeTest('a charge whose commit was not confirmed is counted in its budget once', async ({ database }) => {
      const workspaceId = await addWorkspace(database)
      const { journal } = database
      if (!journal) throw new Error('the embedded engine has a journal')
      let lost = true
      const forgetful: Journal = {
        apply: () => journal.apply(),
        async append(requests) {
          await journal.append(requests)
          if (!lost) return
          lost = false
          throw new Error('lost the answer')
        },
      }
      await using books = await openLedger({ ...database, journal: forgetful })
      const { ledger } = books
      await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
      const request = { ...holdOf(workspaceId, 10n), budgets: budgetOf(30n) }
      await ledger.hold(request)
      expect(await ledger.settle(settlementOf(request.requestId, 4n))).toMatchObject({ kind: 'settled' })
      expect(await ledger.budget('key_1', window)).toEqual(state(4n, 0n))
      await expectBooksRight(database)
    })
    return
  }

  test('three processes on one budget with room for seven: seven are held and charged', async () => {
    await using store = await engine.openStore()
    await using books = await openFunded(store.database, 1_000_000n, { clock: systemClock })
    const { workspaceId } = books
    const each = ['334', '333', '333'].map((count) => [count, '75'])
    const counts = await sumCounts(await startLedgerChildren(store.place, 'hold', workspaceId, each))
    expect(counts).toMatchObject({ held: 7, 'over budget': 993 })
    expect(await books.ledger.budget(workspaceId, window)).toEqual(state(70n, 0n))
    expect(await books.ledger.wallet(workspaceId)).toMatchObject({ posted: 999_930n, held: 0n })
    await expectBooksRight(store.database)
  })
})

/** Kills it once it has reported fifty charges; returns how many it reported. */
async function spendInChild(place: Place, workspaceId: string): Promise<number> {
  const child = startLedgerChild(place, 'spend in a budget', workspaceId)
  let confirmed = 0
  for await (const chunk of child.stdout) {
    confirmed += chunk.length
    if (confirmed >= 50) child.kill('SIGKILL')
  }
  await child.exited
  return confirmed
}
