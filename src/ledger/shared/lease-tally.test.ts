import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { addWorkspace, holdOf, openLedger, settlementOf } from '../../../test/parts/ledger.ts'
import type { Nano } from '../../kernel/money.ts'

forEachEngine((engine) => {
  test('the numbers of leases follow what happens to them, and are 0 where there are none', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const workspaceId = await addWorkspace(database)
    // Hot from the first hold on.
    await using books = await openLedger(database, { hotHoldsPerSecond: 1 })
    const { ledger } = books
    const leases = () => ledger.stats().leases
    await ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
    const first = holdOf(workspaceId, 10n)
    await ledger.hold(first)
    if (engine.name === 'sqlite') {
      expect(leases()).toMatchObject({ open: 0, leased: 0n, taken: 0, holds: 0 })
      return
    }
    // A slice for eight of its kind.
    while (leases().open === 0) await Bun.sleep(1)
    expect(leases()).toMatchObject({ open: 1, leased: 80n, inUse: 0n, taken: 1, returned: 0, lost: 0, holds: 0 })
    const [second, third] = [holdOf(workspaceId, 10n), holdOf(workspaceId, 20n)]
    expect([ledger.hold(second), ledger.hold(third)]).toEqual([{ kind: 'held' }, { kind: 'held' }])
    expect(leases()).toMatchObject({ leased: 80n, inUse: 30n, holds: 2 })
    await ledger.settle(settlementOf(second.requestId, 4n))
    expect(leases()).toMatchObject({ leased: 76n, inUse: 20n })

    // 1,000 less 4 charged, 10 in the first hold and 20 in the third: all of it, for which the slice has to come back.
    const all = holdOf(workspaceId, 966n)
    expect(await ledger.hold(all)).toEqual({ kind: 'held' })
    expect(leases()).toMatchObject({ open: 1, leased: 20n, inUse: 20n, refusalsJudged: 1, recalls: 1, returned: 0 })
    expect(await ledger.hold(holdOf(workspaceId, 1n))).toMatchObject({ kind: 'insufficient' })
    expect(leases()).toMatchObject({ refusalsJudged: 2, recalls: 1 })
    await ledger.settle(settlementOf(third.requestId, 20n))
    await books.pace.round()
    expect(leases()).toMatchObject({ open: 0, leased: 0n, inUse: 0n, taken: 1, returned: 1, lost: 0 })
  })

  if (engine.name !== 'postgres') return

  test('a slice that others have taken back is lost', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const workspaceId = await addWorkspace(database)
    await using books = await openLedger(database, { hotHoldsPerSecond: 1 })
    await books.ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
    await books.ledger.hold(holdOf(workspaceId, 10n))
    while (books.ledger.stats().leases.open === 0) await Bun.sleep(1)
    await database.transaction((sql) => sql`DELETE FROM leases`)
    await database.transaction((sql) => sql`UPDATE balances SET held = held - 80`)
    books.clock.advance(1000)
    await books.pace.round()
    expect(books.ledger.stats().leases).toMatchObject({ open: 0, leased: 0n, taken: 1, returned: 0, lost: 1 })
  })
})
