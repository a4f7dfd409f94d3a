import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../../test/parts/postgres.ts'
import { openPostgresStore } from '../../../test/replicas/postgres-store.ts'
import { databaseNow, snapshotNow } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { verify } from '../verify.ts'

describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
  test('judges a snapshot by its own time, however long the verification takes', async () => {
    await using store = await openPostgresStore()
    const { database } = store
    await database.transaction(async (sql) => {
      await sql`INSERT INTO accounts (id, kind, created_at) VALUES ('wallet:ws_1', 'wallet', 0)`
      await sql`INSERT INTO balances (account_id, posted, held) VALUES ('wallet:ws_1', 0, 0)`
      await sql`INSERT INTO holds (request_id, wallet_id, key_id, project_id, amount, state, owner, epoch, expires_at)
        VALUES ('req_1', 'wallet:ws_1', 'key_1', 'prj_1', 0, 'open', 'rep_1', 1, 0)`
    })
    // Less than 60 s late when the snapshot is taken, and more while it is read. On a slow machine it may be taken too
    // late to show this; then it is taken again, with more time before.
    let isTakenInTime = false
    for (let marginMs = 1000n; !isTakenInTime; marginMs *= 2n) {
      const lateAt = (await databaseNow(database.sql)) + marginMs
      await database.transaction(async (sql) => {
        await sql`UPDATE holds SET expires_at = ${lateAt - 60_000n}`
      })
      const readPrice = async (sql: Sql) => {
        isTakenInTime = (await snapshotNow(sql)) < lateAt
        while ((await databaseNow(database.sql)) <= lateAt) await Bun.sleep(20)
        return () => undefined
      }
      const { findings } = await verify(database, { readPrice })
      if (isTakenInTime) expect(findings).toEqual([])
    }
    const checks = (await verify(database)).findings.map(({ check }) => check)
    expect(checks).toEqual(['no open hold past its lifetime'])
  })
})
