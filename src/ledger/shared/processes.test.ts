import { expect } from 'bun:test'
import { forEachEngine, type Place } from '../../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, openLedger } from '../../../test/parts/ledger.ts'
import { startLedgerChildren, sumCounts } from '../../../test/parts/ledger-children.ts'
import { systemClock } from '../../kernel/clock.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'

const calls = 1500

const startThree = (place: Place, workspaceId: string) => startLedgerChildren(place, 'spend', workspaceId, [[], [], []])

async function chargesIn({ sql }: Database): Promise<number> {
  const [row] = await sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM transfers WHERE kind = 'charge'`
  return Number(row?.n ?? 0n)
}

forEachEngine((engine, storeTest) => {
  if (engine.name !== 'postgres') return

  storeTest('three processes spend a wallet to the last nano-dollar, and not one more', async ({ database, place }) => {
    const workspaceId = await addWorkspace(database)
    await using books = await openLedger(database, { clock: systemClock })
    await books.ledger.fund({ workspaceId, amount: BigInt(10 * calls + 5) as Nano, kind: 'topup' })
    expect((await sumCounts(await startThree(place, workspaceId))).charged).toBe(calls)
    expect(await chargesIn(database)).toBe(calls)
    expect(await books.ledger.wallet(workspaceId)).toEqual({
      posted: 5n as Nano,
      held: 0n as Nano,
      available: 5n as Nano,
    })
    await expectBooksRight(database)
  })

  storeTest(
    'the holds of a process that is killed are released, and the rest of the wallet can be spent',
    async ({ database, place }) => {
      const workspaceId = await addWorkspace(database)
      await using books = await openLedger(database, { clock: systemClock })
      await books.ledger.fund({ workspaceId, amount: BigInt(10 * calls) as Nano, kind: 'topup' })
      const [victim, ...others] = await startThree(place, workspaceId)
      while ((await chargesIn(database)) === 0) await Bun.sleep(1)
      victim?.child.kill('SIGKILL')
      for (const { child } of others) expect(await child.exited).toBe(0)
      await expectBooksRight(database)
      // Only what the victim held is left.
      const { posted, held } = await books.ledger.wallet(workspaceId)
      expect(posted).toBe(held)
      await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = 0`)
      await books.ledger.reap()
      expect((await books.ledger.wallet(workspaceId)).held).toBe(0n as Nano)
      await sumCounts(await startLedgerChildren(place, 'spend', workspaceId, [[]]))
      expect(await chargesIn(database)).toBe(calls)
      expect(await books.ledger.wallet(workspaceId)).toEqual({
        posted: 0n as Nano,
        held: 0n as Nano,
        available: 0n as Nano,
      })
      await expectBooksRight(database)
    },
  )
})
