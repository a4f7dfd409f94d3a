import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { addWorkspace } from '../../../test/parts/ledger.ts'
import type { Nano } from '../../kernel/money.ts'
import { recordFunding } from '../../ledger/fund.ts'
import { readWallets } from './read-wallets.ts'

forEachEngine((engine) => {
  test('wallets are read one by one, the lowest first, and the rest together', async () => {
    await using store = await engine.openStore()
    const { database } = store
    expect(await readWallets(database)).toEqual([])
    const workspaces: string[] = []
    for (const amount of [50n, 10n, 30n, 20n]) {
      const workspaceId = await addWorkspace(database)
      workspaces.push(workspaceId)
      const funding = { workspaceId, amount: amount as Nano, kind: 'topup', reference: 't' } as const
      await database.transaction((sql) => recordFunding(sql, funding, 1))
    }
    const [fifty, ten, thirty, twenty] = workspaces
    expect(await readWallets(database)).toEqual([
      { workspace: ten ?? '', posted: 10n },
      { workspace: twenty ?? '', posted: 20n },
      { workspace: thirty ?? '', posted: 30n },
      { workspace: fifty ?? '', posted: 50n },
    ])
    expect(await readWallets(database, 2)).toEqual([
      { workspace: ten ?? '', posted: 10n },
      { workspace: twenty ?? '', posted: 20n },
      { workspace: 'other', posted: 80n },
    ])
  })
})
