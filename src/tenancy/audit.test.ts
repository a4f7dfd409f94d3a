import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine, testWith } from '../../test/parts/engines.ts'
import type { Database } from '../store/database.ts'
import { openDatabase } from '../store/open-database.ts'
import { appendAudit, auditHash, listAudit, verifyAudit } from './audit.ts'

function append(database: Database, object: string, at = 1): Promise<void> {
  const entry = { actor: 'cli', at, action: 'key.revoke', object, details: { overlap_seconds: 60 } } as const
  return database.transaction((sql) => appendAudit(sql, entry))
}

/** A log of five entries, and the hands of somebody who owns the database and is not kept from it by triggers. */
async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  const { database } = store
  for (let n = 1; n <= 5; n++) await append(database, `key_${n}`)
  const remove = engine.name === 'sqlite' ? '' : ' ON audit'
  const triggers = engine.name === 'sqlite' ? ['audit_not_updated', 'audit_not_deleted'] : ['audit_append_only']
  return {
    database,
    tamper: (text: string) =>
      database.schemaTransaction(async (_sql, runScript) => {
        for (const trigger of triggers) await runScript(`DROP TRIGGER IF EXISTS ${trigger}${remove}`)
        await runScript(text)
      }),
    wrongRows: async () => (await verifyAudit(database)).findings.map(({ sequence }) => sequence),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

test('the hash covers every column and its place in the chain', () => {
  const row = {
    sequence: 2n,
    at: 3n,
    actor: 'cli',
    action: 'key.revoke',
    object: 'key_1',
    details: '{}',
    request_id: null,
    previous_hash: 'ab',
  }
  // SHA-256 of ["2","3","cli","key.revoke","key_1","{}",null,"ab"], worked out with Python's hashlib.
  expect(auditHash(row)).toBe('08c7c263b041dd1b3d7d16526cc1020c98b1de059a07eb841599ecae053ec2ff')
  const others = [{ sequence: 3n }, { at: 4n }, { actor: 'c' }, { action: 'x.y' }, { object: 'k' }, { details: '[]' }]
  for (const change of [...others, { request_id: 'req_1' }, { previous_hash: 'cd' }]) {
    expect(auditHash({ ...row, ...change })).not.toBe(auditHash(row))
  }
})

forEachEngine((engine) => {
  const benchTest = testWith(() => createBench(engine))

  test('an unchanged log verifies, also an empty one', async () => {
    await using empty = await engine.openStore()
    expect(await verifyAudit(empty.database)).toEqual({ findings: [], rows: 0, head: { sequence: 0, hash: '' } })
    await using bench = await createBench(engine)
    const { items } = await listAudit(bench.database.sql, { limit: 1 })
    const hash = items[0]?.hash ?? ''
    expect(await verifyAudit(bench.database)).toEqual({ findings: [], rows: 5, head: { sequence: 5, hash } })
  })

  benchTest('G1: the database rejects changing or deleting an entry', async (bench) => {
    const { database } = bench
    const attempts = [
      database.transaction((sql) => sql`UPDATE audit SET actor = 'nobody'`),
      database.transaction((sql) => sql`DELETE FROM audit WHERE sequence = 5`),
    ]
    for (const attempt of await Promise.allSettled(attempts)) {
      expect(attempt.status).toBe('rejected')
      expect(String((attempt as PromiseRejectedResult).reason)).toContain('append-only')
    }
    expect(await bench.wrongRows()).toEqual([])
  })

  test('G1: a change of any column is found, as one finding', async () => {
    for (const change of [
      'actor = 1',
      'at = 2',
      "action = 'a.b'",
      "object = 'x'",
      "details = '{}'",
      "request_id = 'req_1'",
    ]) {
      await using bench = await createBench(engine)
      await bench.tamper(`UPDATE audit SET ${change} WHERE sequence = 3`)
      expect(await bench.wrongRows()).toEqual([3])
    }
  })

  benchTest('G1: a changed entry with a recomputed hash is found by the next one', async (bench) => {
    const { database } = bench
    await bench.tamper("UPDATE audit SET object = 'key_x' WHERE sequence = 3")
    const [row] = await database.sql<Parameters<typeof auditHash>[0]>`SELECT * FROM audit WHERE sequence = 3`
    await bench.tamper(`UPDATE audit SET hash = '${row ? auditHash(row) : ''}' WHERE sequence = 3`)
    expect(await bench.wrongRows()).toEqual([4])
  })

  test('G1: a deleted entry is found: the first, a middle one, the last, and all of them', async () => {
    for (const [condition, wrong] of [
      ['= 1', [2, 2]],
      ['= 3', [4, 4]],
      ['= 5', [4]],
      ['> 0', [0]],
    ] as const) {
      await using bench = await createBench(engine)
      await bench.tamper(`DELETE FROM audit WHERE sequence ${condition}`)
      expect(await bench.wrongRows()).toEqual([...wrong])
    }
  })

  benchTest('G1: a deleted entry is found even if the following ones are renumbered', async (bench) => {
    await bench.tamper(`DELETE FROM audit WHERE sequence = 3;
      UPDATE audit SET sequence = 3 WHERE sequence = 4; UPDATE audit SET sequence = 4 WHERE sequence = 5;
      UPDATE audit_head SET sequence = 4`)
    // The third does not follow the second and does not fit its hash, nor does the fourth.
    expect(await bench.wrongRows()).toEqual([3, 3, 4])
  })

  test('G1: an inserted entry is found, at the end and between others', async () => {
    const copy = `INSERT INTO audit SELECT 6, at, actor, action, object, details, request_id, hash, hash FROM audit
      WHERE sequence = 5`
    await using atEnd = await createBench(engine)
    await atEnd.tamper(copy)
    expect(await atEnd.wrongRows()).toEqual([6, 6])
    await using between = await createBench(engine)
    await between.tamper(`UPDATE audit SET sequence = 6 WHERE sequence = 5; UPDATE audit_head SET sequence = 6;
      INSERT INTO audit SELECT 5, at, actor, action, object, details, request_id, hash, hash FROM audit WHERE sequence = 4`)
    // The inserted one does not fit its hash; the one after it does not fit its number.
    expect(await between.wrongRows()).toEqual([5, 6])
  })

  test('concurrent appends do not fork the chain, and a rollback leaves no gap', async () => {
    await using store = await engine.openStore()
    const others =
      engine.name === 'postgres' ? await Promise.all([openDatabase(store.place), openDatabase(store.place)]) : []
    const databases = [store.database, ...others]
    const work = Array.from({ length: 60 }, async (_, n) => {
      const database = databases[n % databases.length] ?? store.database
      if (n % 10 !== 0) return await append(database, `key_${n}`)
      const undone = database.transaction(async (sql) => {
        await appendAudit(sql, { actor: 'cli', at: 1, action: 'key.revoke', object: 'undone' })
        throw new Error('undone')
      })
      return await undone.catch(() => {})
    })
    await Promise.all(work)
    for (const database of others) await database.close()
    expect(await verifyAudit(store.database)).toMatchObject({ findings: [], rows: 54, head: { sequence: 54 } })
    const { items } = await listAudit(store.database.sql, { limit: 100 })
    expect(items.some(({ object }) => object === 'undone')).toBe(false)
  })

  benchTest('entries are listed newest first, in pages, with their content', async (bench) => {
    const { sql } = bench.database
    const first = await listAudit(sql, { limit: 3 })
    expect(first.items.map(({ object }) => object)).toEqual(['key_5', 'key_4', 'key_3'])
    const second = await listAudit(sql, { limit: 3, cursor: first.nextCursor })
    expect(second.items.map(({ object }) => object)).toEqual(['key_2', 'key_1'])
    expect(second.nextCursor).toBeUndefined()
    expect(second.items[1]).toEqual({
      sequence: 1,
      at: 1,
      actor: 'cli',
      action: 'key.revoke',
      object: 'key_1',
      details: { overlap_seconds: 60 },
      requestId: undefined,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    for (const cursor of ['', 'x', '-1', '9'.repeat(30)])
      expect((await listAudit(sql, { limit: 3, cursor })).items).toEqual([])
  })
})
