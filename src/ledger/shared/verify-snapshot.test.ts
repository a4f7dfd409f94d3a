import { describe, expect, test } from 'bun:test'
import { findPostgresPrograms } from '../../../test/parts/postgres.ts'
import { openPostgresStore } from '../../../test/replicas/postgres-store.ts'
import { databaseNow } from '../../store/store-now.ts'
import { verify } from '../verify.ts'

describe.skipIf(findPostgresPrograms() === undefined)('on postgres', () => {
  test('what is seen in a snapshot is judged by its time, however long the books take', async () => {
    await using store = await openPostgresStore()
    const { database } = store
    // Renewed while the books are read, which the snapshot does not show: 59 s late when it is taken, 61 s at the end.
    const expiresAt = (await databaseNow(database.sql)) - 59_000n
    await database.transaction(async (sql) => {
      await sql`INSERT INTO accounts (id, kind, created_at) VALUES ('wallet:ws_1', 'wallet', 0)`
      await sql`INSERT INTO balances (account_id, posted, held) VALUES ('wallet:ws_1', 0, 0)`
      await sql`INSERT INTO holds (request_id, wallet_id, key_id, project_id, amount, state, owner, epoch, expires_at)
        VALUES ('req_1', 'wallet:ws_1', 'key_1', 'prj_1', 0, 'open', 'rep_1', 1, ${expiresAt})`
    })
    const readPrice = async () => {
      await Bun.sleep(2000)
      return () => undefined
    }
    expect((await verify(database, { readPrice })).findings).toEqual([])
    const checks = (await verify(database)).findings.map(({ check }) => check)
    expect(checks).toEqual(['no open hold past its lifetime'])
  }, 120_000)
})
