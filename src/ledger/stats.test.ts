import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace, holdOf, openLedger, settlementOf } from '../../test/parts/ledger.ts'
import type { Nano } from '../kernel/money.ts'

forEachEngine((_, storeTest) => {
  storeTest('the numbers for metrics follow what happens', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    await using books = await openLedger(database)
    const { ledger, clock } = books
    expect(ledger.stats()).toMatchObject({
      openHolds: 0,
      heldTotal: 0n,
      oldestHoldAt: undefined,
      charges: 0,
      reaped: 0,
    })
    await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
    const startedAt = clock.now()
    const [first, second, third] = [holdOf(workspaceId, 10n), holdOf(workspaceId, 20n), holdOf(workspaceId, 30n)]
    await ledger.hold(first)
    clock.advance(5)
    await ledger.hold(second)
    await ledger.hold({ ...third, lifetimeMs: 0 })
    await ledger.extend(second.requestId, 2n as Nano)
    await ledger.hold(holdOf(workspaceId, 1000n))
    expect(ledger.stats()).toMatchObject({ openHolds: 3, heldTotal: 62n, oldestHoldAt: startedAt })

    const { commits } = ledger.stats()
    await ledger.settle(settlementOf(first.requestId, 4n))
    expect(ledger.stats()).toMatchObject({ openHolds: 2, heldTotal: 52n, oldestHoldAt: startedAt + 5, charges: 1 })
    expect(ledger.stats()).toMatchObject({ estimated: 0, overruns: 0, writtenOff: 0n, commits: commits + 1 })
    await ledger.settle({ ...settlementOf(second.requestId, 1000n), estimated: true })
    // Its own 22, and the 44 of no replica.
    expect(ledger.stats()).toMatchObject({ charges: 2, estimated: 1, overruns: 1, writtenOff: 934n })

    clock.advance(1)
    // The database's own clock must have moved too.
    await Bun.sleep(2)
    await ledger.reap()
    expect(ledger.stats()).toMatchObject({ openHolds: 0, heldTotal: 0n, oldestHoldAt: undefined })
    expect(ledger.stats()).toMatchObject({ reaped: 1, reapedSent: 0, commitsFailed: 0 })
  })
})
