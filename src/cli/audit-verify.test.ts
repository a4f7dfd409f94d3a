import { expect, test } from 'bun:test'
import { type OfflinePlace, runOffline } from '../../test/parts/command-line.ts'
import { forEachEngine } from '../../test/parts/engines.ts'
import type { Database } from '../store/database.ts'
import { appendAudit, auditHash, listAudit, type StoredAudit } from '../tenancy/audit.ts'

const verify = (place: OfflinePlace, ...args: string[]) => runOffline(place, 'audit', 'verify', ...args)

function append(database: Database, object: string): Promise<void> {
  const entry = { actor: 'cli', at: 1, action: 'key.revoke', object, details: {} } as const
  return database.transaction((sql) => appendAudit(sql, entry))
}

/** Somebody who owns the database, knows how hashes are made, and makes the whole chain anew. */
async function rewrite(database: Database, engine: string): Promise<void> {
  const triggers = engine === 'sqlite' ? ['audit_not_updated', 'audit_not_deleted'] : ['audit_append_only ON audit']
  await database.schemaTransaction(async (sql, runScript) => {
    for (const trigger of triggers) await runScript(`DROP TRIGGER ${trigger}`)
    await sql`UPDATE audit SET object = 'key_innocent' WHERE sequence = 2`
    let last = ''
    for (const row of await sql<StoredAudit>`SELECT * FROM audit ORDER BY sequence`) {
      const hash = auditHash({ ...row, previous_hash: last })
      await sql`UPDATE audit SET previous_hash = ${last}, hash = ${hash} WHERE sequence = ${row.sequence}`
      last = hash
    }
    await sql`UPDATE audit_head SET hash = ${last}`
  })
}

forEachEngine((engine, storeTest) => {
  storeTest(
    'G1: reports an intact log and its end, and detects a rewritten log by an earlier end',
    async ({ database, place }) => {
      expect(await verify(place)).toEqual({ exit: 0, out: 'The audit log is empty.\n', err: '' })
      for (let n = 1; n <= 3; n++) await append(database, `key_${n}`)
      const { items } = await listAudit(database.sql, { limit: 1 })
      const head = `3:${items[0]?.hash}`
      const whole = { exit: 0, out: `The audit log is whole: 3 entries. It ends with ${head}\n`, err: '' }
      expect(await verify(place)).toEqual(whole)
      await append(database, 'key_4')
      expect((await verify(place, '--noted', head)).exit).toBe(0)

      await rewrite(database, engine.name)
      expect((await verify(place)).exit).toBe(0)
      const { exit, out, err } = await verify(place, '--noted', head, '--json')
      expect(exit).toBe(1)
      expect(JSON.parse(out)).toMatchObject({ ok: false, rows: 4, findings: [{ sequence: 3 }] })
      expect(JSON.parse(err).error).toEqual({
        message: 'the audit log was tampered with.',
        try: 'tollgate audit verify --json',
        exit_code: 1,
      })
      await database.transaction((sql) => sql`DELETE FROM audit WHERE sequence = 1`)
      const broken = await verify(place)
      expect([broken.exit, broken.out]).toEqual([1, expect.stringContaining('entries are missing')])
    },
  )
})

test('refuses a malformed --noted with its usage', async () => {
  const { exit, err } = await verify({ url: undefined, dataFolder: import.meta.dir }, '--noted', '54')
  expect([exit, err]).toEqual([2, expect.stringContaining('--noted takes the end of the chain')])
})
