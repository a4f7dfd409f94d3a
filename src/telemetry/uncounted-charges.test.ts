import { expect, test } from 'bun:test'
import { storeRequests } from '../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace } from '../../test/parts/ledger.ts'
import type { KeyId, ProjectId } from '../kernel/ids.ts'
import { insertRows } from '../store/insert-rows.ts'
import { sumUncountedCharges } from './uncounted-charges.ts'

const start = Date.UTC(2027, 0, 15)
const end = Date.UTC(2027, 0, 16)

forEachEngine((engine) => {
  test('a day of more than one page is added up by key, project and workspace, without what is counted already', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const workspaceId = await addWorkspace(database)
    await database.transaction(
      (sql) =>
        sql`INSERT INTO projects (id, workspace_id, name, created_at) VALUES ('prj_1', ${workspaceId}, 'web', 0)`,
    )
    // From a second before the day on, one each 20 seconds: the first is yesterday's.
    const count = 2500
    const projects: readonly ProjectId[] = ['prj_1', 'prj_2']
    const keys: readonly KeyId[] = ['key_1', 'key_2', 'key_3', 'key_4', 'key_5']
    const facts = Array.from({ length: count }, (_, at) => ({
      startedAt: start - 1000 + at * 20_000,
      caller: { workspaceId, projectId: projects[at % 2] as ProjectId, keyId: keys[at % 5] as KeyId },
    }))
    const ids = await storeRequests(database, facts)
    // Those of key_1 at the tens (at = 10, 20 …) were counted in its day; one request has no charge at all.
    const rows = ids.flatMap((id, at) => {
      const budgets = at % 10 === 0 ? 'ws_9 day:2027-01-15,key_1 day:2027-01-15' : null
      const legs = { debit_account: `wallet:${workspaceId}`, credit_account: 'revenue', amount: 3n, estimated: 0n }
      const facts = { id: `tr_${id}`, kind: 'charge', request_id: id, seq: 0n, created_at: 0n, budgets }
      return at === 3 ? [] : [{ ...facts, ...legs }]
    })
    await database.transaction((sql) => insertRows(sql, 'transfers', rows))
    const sum = (scopeId: string, budget = `${scopeId} day:2027-01-15`) =>
      sumUncountedCharges(database.sql, { scopeId, budget, from: start, until: end })
    // 2,500 less yesterday's and the one without a charge.
    expect(await sum(workspaceId)).toBe(2498n * 3n)
    // The even ones, of which yesterday's is one.
    expect(await sum('prj_1')).toBe(1249n * 3n)
    // Every fifth is 500; half of them are counted.
    expect(await sum('key_1')).toBe(250n * 3n)
    expect(await sum('key_1', 'key_1 month:2027-01')).toBe(499n * 3n)
    expect(await sum('key_none')).toBe(0n)
    const noon = { scopeId: workspaceId, budget: 'x day:2027-01-15', from: start, until: start + 39_000 }
    // At 19 s; the next is at 39 s, which is not in it.
    expect(await sumUncountedCharges(database.sql, noon)).toBe(3n)
  })
})
