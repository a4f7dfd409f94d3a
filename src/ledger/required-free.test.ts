import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger } from '../../test/parts/ledger.ts'
import type { Nano } from '../kernel/money.ts'

// A hold that is only granted where there is more room than it takes.

forEachEngine((_, storeTest) => {
  storeTest(
    'a hold that wants room is refused to a wallet without, to the last unit, and takes no more than its amount',
    async ({ database }) => {
      await using books = await openLedger(database)
      const { ledger } = books
      const workspaceId = await addWorkspace(database)
      await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
      const ask = (amount: bigint, room: bigint) =>
        ledger.hold({ ...holdOf(workspaceId, amount), requiredFree: room as Nano })
      expect(await ask(10n, 101n)).toEqual({ kind: 'insufficient', posted: 100n as Nano, held: 0n as Nano })
      expect(await ask(10n, 100n)).toMatchObject({ kind: 'held' })
      expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 10n })
      expect(await ask(10n, 91n)).toMatchObject({ kind: 'insufficient', held: 10n })
      expect(await ask(10n, 90n)).toMatchObject({ kind: 'held' })
      // Less room than the amount is no room.
      expect(await ask(81n, 5n)).toMatchObject({ kind: 'insufficient' })
      expect(await ask(80n, 5n)).toMatchObject({ kind: 'held' })
      await expectBooksRight(database)
    },
  )

  storeTest('judges each of several simultaneous holds by what the earlier ones left', async ({ database }) => {
    await using books = await openLedger(database)
    const { ledger } = books
    const workspaceId = await addWorkspace(database)
    await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
    const asked = Array.from({ length: 10 }, () =>
      ledger.hold({ ...holdOf(workspaceId, 10n), requiredFree: 50n as Nano }),
    )
    const outcomes = await Promise.all(asked)
    // 100, 90, 80, 70, 60 and 50 are room enough.
    expect(outcomes.filter(({ kind }) => kind === 'held')).toHaveLength(6)
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 60n })
  })

  storeTest('a spend limit must have the room too, and is reported as a limit', async ({ database }) => {
    await using books = await openLedger(database)
    const { ledger } = books
    const workspaceId = await addWorkspace(database)
    await ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
    const budgets = [{ scopeId: 'key_1', window: 'day:2100-01-01', cap: 100n as Nano }]
    const ask = (amount: bigint, room: bigint) =>
      ledger.hold({ ...holdOf(workspaceId, amount), requiredFree: room as Nano, budgets })
    expect(await ask(10n, 101n)).toMatchObject({ kind: 'over budget', spent: 0n, held: 0n, cap: 100n })
    expect(await ask(10n, 100n)).toMatchObject({ kind: 'held' })
    expect(await ask(10n, 91n)).toMatchObject({ kind: 'over budget', held: 10n })
    expect(await ask(90n, 5n)).toMatchObject({ kind: 'held' })
    expect(await ledger.budget('key_1', 'day:2100-01-01')).toMatchObject({ spent: 0n, held: 100n })
    await expectBooksRight(database)
  })
})
