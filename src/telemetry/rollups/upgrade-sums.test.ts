import { expect, test } from 'bun:test'
import { storeRequests } from '../../../test/observe/stored-requests.ts'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { systemClock } from '../../kernel/clock.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../../kernel/ids.ts'
import { migrate } from '../../store/migrate.ts'
import { allMigrations } from '../../store/migrations/registry.ts'
import { openDatabase } from '../../store/open-database.ts'
import type { SqlValue } from '../../store/sql.ts'
import { firstIdAt } from '../id-at.ts'
import { listRequests } from '../list-requests.ts'
import { hourMs } from './count-requests.ts'
import { firstEventColumns } from './first-event.ts'
import { readStats } from './read-stats.ts'

const noon = Date.UTC(2026, 10, 15, 12)
const midnight = noon - 12 * hourMs

/** A row of the counts as they were kept before. */
function counted(grain: string, startAt: number, workspace: string, key: string, model: string, charge: bigint) {
  const places = firstEventColumns.map((column): [string, SqlValue] => [column, column === 'first_100' ? 1n : 0n])
  return {
    grain,
    start_at: BigInt(startAt),
    workspace_id: workspace,
    project_id: key === '' ? '' : 'prj_1',
    key_id: key,
    model,
    requests: 1n,
    errors: 0n,
    input_tokens: 3n,
    output_tokens: 5n,
    charge,
    ...Object.fromEntries(places),
  }
}

forEachEngine((engine) => {
  test('what was counted before is in the new sums, and in the lists', async () => {
    using place = await engine.createPlace()
    await using database = Object.assign(await openDatabase(place), {
      [Symbol.asyncDispose]: async () => await database.close(),
    })
    const before = allMigrations.slice(
      0,
      allMigrations.findIndex(({ name }) => name === '0011-request-sums'),
    )
    await migrate({ database, clock: systemClock, migrations: before })
    const caller = { workspaceId: 'ws_1' as WorkspaceId, projectId: 'prj_1' as ProjectId, keyId: 'key_1' as KeyId }
    await storeRequests(database, [
      { startedAt: noon, caller, model: 'acme/large', code: 'PROVIDER_ERROR' },
      { startedAt: noon + 1, caller, model: 'acme/large' },
    ])
    await database.transaction(async (sql) => {
      const rows = [
        counted('hour', noon, 'ws_1', 'key_1', 'acme/large', 7n),
        counted('hour', noon, 'ws_2', 'key_2', 'acme/large', 100n),
        counted('day', midnight, 'ws_1', 'key_1', 'acme/large', 7n),
        counted('day', midnight, 'ws_2', 'key_2', 'acme/large', 100n),
        counted('total', noon, 'ws_1', '', '', 7n),
        counted('total', noon, 'ws_2', '', '', 100n),
      ]
      await sql`INSERT INTO request_rollups ${sql(rows)}`
      // The first of the two requests was counted.
      await sql`UPDATE rollup_cursors SET last_id = ${firstIdAt(noon + 1)}`
    })
    await migrate({ database, clock: systemClock })
    const clock = { now: () => noon + hourMs, monotonicMs: () => 0 }
    const span = { from: midnight, to: noon + hourMs }
    const read = async (workspaceId?: WorkspaceId) => {
      const query = { ...span, group: 'model' as const, ...(workspaceId && { workspaceId }) }
      const { total, hours, groups } = await readStats(database, clock, query)
      return [total.requests, total.charge, hours.length, groups.map(({ id, figures }) => `${id} ${figures.charge}`)]
    }
    // The other request costs 450,000 and is added on the spot.
    expect(await read()).toEqual([3n, 450_107n, 1, ['acme/large 450107']])
    expect(await read('ws_2')).toEqual([1n, 100n, 1, ['acme/large 100']])
    const times = async (query: object) =>
      (await listRequests(database.sql, { limit: 10, ...query })).map(({ startedAt }) => startedAt - noon)
    expect(await times({ model: 'acme/large' })).toEqual([1, 0])
    expect(await times({ outcome: 'failed' })).toEqual([0])
    const lists = await database.sql<{ list: string }>`SELECT list FROM request_lists ORDER BY list`
    expect(lists.length).toBe(5)
  })
})
