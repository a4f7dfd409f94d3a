import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { SQL } from 'bun'
import { systemClock } from '../../src/kernel/clock.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../../src/kernel/ids.ts'
import { type Nano, zeroNano } from '../../src/kernel/money.ts'
import { encodeRequests } from '../../src/store/journal.ts'
import { chargedRequestRow } from '../../src/telemetry/request-record.ts'
import { answeredRequest } from '../observe/observed-records.ts'
import { findPostgresPrograms, sharedPostgres } from '../parts/postgres.ts'
import { ask, createSite } from './site.ts'

type Read = (text: string) => Promise<readonly object[]>

/** What the sums have of each group, and the same of the rows. */
const compared = ['session', 'agent', 'cause'].map((series) => {
  const group = series === 'cause' ? "COALESCE(cause, LOWER(code), 'ok')" : series
  const figures = (requests: string) =>
    `CAST(${requests} AS BIGINT) AS n, CAST(SUM(COALESCE(charge, 0)) AS BIGINT) AS charge,
      CAST(SUM(COALESCE(output_tokens, 0)) AS BIGINT) AS output`
  const places = `grain = 'hour' AND series = '${series}' AND workspace_id <> ''`
  const hours = `SELECT ${series} AS g, requests, charge, output_tokens FROM request_hours`
  const more = series === 'session' ? '' : ` UNION ALL ${hours}`
  return {
    sums: `SELECT g, ${figures('SUM(requests)')} FROM (
      SELECT subject AS g, requests, charge, output_tokens FROM request_sums WHERE ${places}${more}) AS parts
      WHERE g <> '' GROUP BY g ORDER BY g`,
    rows: `SELECT ${group} AS g, ${figures('COUNT(*)')} FROM requests WHERE ${group} IS NOT NULL GROUP BY 1 ORDER BY 1`,
  }
})

async function expectRightSums(read: Read): Promise<void> {
  for (const { sums, rows } of compared) {
    const expected = await read(rows)
    expect(expected.length).toBeGreaterThan(0)
    expect(await read(sums)).toEqual(expected)
  }
}

test.skipIf(findPostgresPrograms() === undefined)(
  'a backup and migrate-to-postgres keep the sums of reports, also of charges that are still in the journal',
  async () => {
    using site = createSite()
    const gateway = await site.start()
    for (let call = 0; call < 3; call++) {
      expect((await ask(gateway.url, gateway.key, 'sandbox/echo')).status).toBe(200)
    }
    expect(await gateway.stop()).toBe(0)
    const file = join(site.dataFolder, 'tollgate.db')
    {
      using sqlite = new Database(file)
      const [key] = sqlite
        .query<{ id: KeyId; project_id: ProjectId; workspace_id: WorkspaceId }, []>(
          'SELECT k.id, k.project_id, p.workspace_id FROM api_keys k JOIN projects p ON p.id = k.project_id',
        )
        .all()
      if (!key) throw new Error('the gateway made no key')
      for (const [at, session] of ['one', 'two', 'two'].entries()) {
        const record = answeredRequest({
          id: `req_${'0'.repeat(21)}${at}` as `req_${string}`,
          startedAt: systemClock.now(),
          caller: { workspaceId: key.workspace_id, projectId: key.project_id, keyId: key.id },
          session,
          agent: 'codex',
        })
        const row = chargedRequestRow(record, { charge: 7n as Nano, writtenOff: zeroNano, budgets: null })
        sqlite.run('INSERT INTO journal (requests) VALUES (?)', [encodeRequests([{ ...row, price_version: null }])])
      }
    }

    const backup = join(site.folder, 'backup.db')
    expect((await site.run(['backup', backup])).exit).toBe(0)
    {
      using copy = new Database(backup, { readonly: true })
      expect(copy.query('SELECT COUNT(*) AS n FROM requests').get()).toEqual({ n: 6 })
      await expectRightSums(async (text) => copy.query<object, []>(text).all())
    }

    const url = await (await sharedPostgres()).createDatabase()
    const moved = await site.run(['migrate-to-postgres', '--to', url, '--json'])
    expect([moved.exit, moved.err]).toEqual([0, ''])
    await using sql = new SQL({ adapter: 'postgres', url, max: 1 })
    await expectRightSums(async (text) => [...(await sql.unsafe(text))])
    const sessions = await sql`SELECT subject, requests::int AS n, charge::int FROM request_sums
      WHERE series = 'session' ORDER BY subject`
    expect([...sessions]).toEqual([
      { subject: 'one', n: 1, charge: 7 },
      { subject: 'two', n: 2, charge: 14 },
    ])
  },
)
