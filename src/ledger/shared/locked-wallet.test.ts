// A row of one wallet is locked by a session that says nothing more, as by a replica that froze in the middle of a
// transaction: everybody else is served and charged.

import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { forEachEngine, type Place } from '../../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, settlementOf } from '../../../test/parts/ledger.ts'
import { systemClock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Nano } from '../../kernel/money.ts'
import { walletOf } from '../account.ts'
import { createLedger } from '../create-ledger.ts'

/** A session of somebody else's, which no timeout of ours ends. */
async function lockWallet({ url }: Place, workspaceId: WorkspaceId) {
  const admin = new SQL({ adapter: 'postgres', url: url ?? '', max: 1 })
  const session = await admin.reserve()
  await session`BEGIN`
  await session`SELECT posted FROM balances WHERE account_id = ${walletOf(workspaceId)} FOR UPDATE`
  return {
    async [Symbol.asyncDispose]() {
      await session`ROLLBACK`
      session.release()
      await admin.close()
    },
  }
}

forEachEngine((engine) => {
  if (engine.name !== 'postgres') return

  test('a wallet whose row is locked keeps no other from being served and charged', async () => {
    await using store = await engine.openStore()
    const { database, place } = store
    const ledger = await createLedger({ database, clock: systemClock })
    const [locked, free] = [await addWorkspace(database), await addWorkspace(database)]
    for (const workspaceId of [locked, free]) {
      await ledger.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
    }
    const [lost, kept] = [holdOf(locked, 10n), holdOf(free, 10n)]
    for (const request of [lost, kept]) expect(await ledger.hold(request)).toEqual({ kind: 'held' })
    const begunMs = performance.now()
    const lock = await lockWallet(place, locked)
    const settling = ledger.settle(settlementOf(lost.requestId, 5n))
    const [settled, held, refused] = await Promise.all([
      ledger.settle(settlementOf(kept.requestId, 5n)),
      ledger.hold(holdOf(free, 20n)),
      ledger.hold(holdOf(locked, 20n)),
    ])
    expect([settled.kind, held.kind, refused.kind]).toEqual(['settled', 'held', 'unavailable'])
    expect([ledger.admits(), performance.now() - begunMs < 15_000]).toEqual([true, true])
    // Once it is known, the others hardly wait for it.
    for (let round = 0; round < 10; round++) expect(await ledger.hold(holdOf(free, 1n))).toEqual({ kind: 'held' })
    await lock[Symbol.asyncDispose]()
    expect((await settling).kind).toBe('settled')
    expect((await ledger.wallet(locked)).posted).toBe(995n as Nano)
    await ledger.close()
    await expectBooksRight(database)
  }, 120_000)

  test('the reaper ends what the dead held of other wallets', async () => {
    await using store = await engine.openStore()
    const { database, place } = store
    const dead = await createLedger({ database, clock: systemClock })
    const [locked, free] = [await addWorkspace(database), await addWorkspace(database)]
    for (const workspaceId of [locked, free]) {
      await dead.fund({ workspaceId, amount: 1000n as Nano, kind: 'topup' })
      expect(await dead.hold(holdOf(workspaceId, 10n))).toEqual({ kind: 'held' })
    }
    await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = 0`)
    const living = await createLedger({ database, clock: systemClock })
    const heldOf = async (workspaceId: WorkspaceId) => Number((await living.wallet(workspaceId)).held)
    {
      await using _ = await lockWallet(place, locked)
      expect(await living.reap()).toHaveLength(1)
      expect([await heldOf(locked), await heldOf(free)]).toEqual([10, 0])
    }
    expect(await living.reap()).toHaveLength(1)
    expect([await heldOf(locked), await heldOf(free)]).toEqual([0, 0])
    await dead.close()
    await living.close()
    await expectBooksRight(database)
  }, 120_000)

  test('the reaper ends in one round all that the dead held of a wallet that is only busy', async () => {
    await using store = await engine.openStore()
    const { database, place } = store
    const dead = await createLedger({ database, clock: systemClock })
    const workspaceId = await addWorkspace(database)
    await dead.fund({ workspaceId, amount: 10_000n as Nano, kind: 'topup' })
    // More than the reaper takes at once, with a budget that it has to free too.
    const budgets = [{ scopeId: workspaceId, window: 'day:2026-11-15', cap: 10_000n as Nano }]
    const requests = Array.from({ length: 600 }, () => ({ ...holdOf(workspaceId, 1n), budgets }))
    await Promise.all(requests.map((request) => dead.hold(request)))
    await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = 0`)
    const living = await createLedger({ database, clock: systemClock })
    const lock = await lockWallet(place, workspaceId)
    const reaping = living.reap()
    await Bun.sleep(400)
    await lock[Symbol.asyncDispose]()
    expect(await reaping).toHaveLength(600)
    expect((await living.wallet(workspaceId)).held).toBe(0n as Nano)
    await dead.close()
    await living.close()
    await expectBooksRight(database)
  }, 120_000)
})
