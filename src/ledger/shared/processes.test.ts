import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { forEachEngine, type Place } from '../../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, openLedger } from '../../../test/parts/ledger.ts'
import { systemClock } from '../../kernel/clock.ts'
import type { Nano } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'

const calls = 1500

function startChild(place: Place, workspaceId: string) {
  const script = join(import.meta.dir, '../../../test/parts/spend-child.ts')
  const child = Bun.spawn([process.execPath, script, place.url ?? '', place.dataFolder, workspaceId], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const output = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  return { child, output }
}

async function startThree(place: Place, workspaceId: string) {
  const children = [1, 2, 3].map(() => startChild(place, workspaceId))
  for (const { output } of children) expect((await output.read()).value).toBe('ready\n')
  for (const { child } of children) child.stdin.end()
  return children
}

async function chargesIn({ sql }: Database): Promise<number> {
  const [row] = await sql<{ n: bigint }>`SELECT COUNT(*) AS n FROM transfers WHERE kind = 'charge'`
  return Number(row?.n ?? 0n)
}

forEachEngine((engine) => {
  if (engine.name !== 'postgres') return

  test('three processes spend a wallet to the last nano-dollar, and not one more', async () => {
    await using store = await engine.openStore()
    const { database, place } = store
    const workspaceId = await addWorkspace(database)
    await using books = await openLedger(database, { clock: systemClock })
    await books.ledger.fund({ workspaceId, amount: BigInt(10 * calls + 5) as Nano, kind: 'topup' })
    let charged = 0
    for (const { child, output } of await startThree(place, workspaceId)) {
      charged += JSON.parse((await output.read()).value ?? '{}').charged
      await child.exited
    }
    expect(charged).toBe(calls)
    expect(await chargesIn(database)).toBe(calls)
    expect(await books.ledger.wallet(workspaceId)).toEqual({
      posted: 5n as Nano,
      held: 0n as Nano,
      available: 5n as Nano,
    })
    await expectBooksRight(database)
  }, 120_000)

  test('the holds of a process that is killed are released, and the rest of the wallet can be spent', async () => {
    await using store = await engine.openStore()
    const { database, place } = store
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
    const last = startChild(place, workspaceId)
    last.child.stdin.end()
    await last.child.exited
    expect(await chargesIn(database)).toBe(calls)
    expect(await books.ledger.wallet(workspaceId)).toEqual({
      posted: 0n as Nano,
      held: 0n as Nano,
      available: 0n as Nano,
    })
    await expectBooksRight(database)
  }, 120_000)
})
