import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { startSlowNetwork } from '../../test/parts/slow-network.ts'
import type { Database } from './database.ts'
import { insertList } from './insert-rows.ts'
import { openDatabase } from './open-database.ts'

async function createNotes(database: Database): Promise<void> {
  await database.schemaTransaction((_sql, runScript) =>
    runScript("CREATE TABLE notes (id TEXT PRIMARY KEY, amount BIGINT, text TEXT, kind TEXT NOT NULL DEFAULT 'plain')"),
  )
}

const idsIn = async ({ sql }: Database) =>
  (await sql<{ id: string }>`SELECT id FROM notes ORDER BY id`).map(({ id }) => id)

forEachEngine((engine, storeTest) => {
  storeTest(
    'a transaction at once commits all of its statements, or none when one of them fails',
    async ({ database }) => {
      await createNotes(database)
      const add = (...ids: string[]) =>
        database.transaction(
          (sql) =>
            Promise.all(ids.map((id) => sql<{ id: string }>`INSERT INTO notes (id) VALUES (${id}) RETURNING id`)),
          'at_once',
        )
      expect((await add('a', 'b')).flatMap((rows) => rows.map(({ id }) => id))).toEqual(['a', 'b'])
      await expect(add('c', 'a', 'd')).rejects.toThrow(/unique|duplicate/i)
      expect(await idsIn(database)).toEqual(['a', 'b'])
      // The connection is as good as before.
      await add('e')
      expect(await idsIn(database)).toEqual(['a', 'b', 'e'])
    },
  )

  if (engine.name !== 'postgres') return

  test('a transaction at once is one message to the server', async () => {
    await using store = await engine.openStore()
    await createNotes(store.database)
    const target = new URL(store.place.url ?? '')
    using network = startSlowNetwork(Number(target.port), 0)
    target.port = String(network.port)
    const database = await openDatabase({ url: target.href, dataFolder: '' })
    const add = (shape: 'at_once' | undefined) =>
      database.transaction((sql) => insertList(sql, 'notes', [{ id: crypto.randomUUID() }]), shape)
    /** Over many, because connections are opened and statements prepared in between. */
    const leastSends = async (shape: 'at_once' | undefined) => {
      let least = Number.POSITIVE_INFINITY
      for (let n = 0; n < 30; n++) {
        const before = network.sends
        await add(shape)
        least = Math.min(least, network.sends - before)
      }
      return least
    }
    expect(await leastSends('at_once')).toBe(1)
    // Begin, insert, commit.
    expect(await leastSends(undefined)).toBe(3)
    await database.close()
  })

  storeTest(
    'a list is inserted as its rows would be, with the defaults of columns that are not named',
    async ({ database }) => {
      await createNotes(database)
      await database.transaction(async (sql) => {
        await insertList(sql, 'notes', [])
        await insertList(sql, 'notes', [
          { id: 'a', amount: 9_007_199_254_740_993n, text: 'it\'s "so"; \\ \n é 🜁' },
          { id: 'b', amount: null, text: 'half of a pair: \ud83d' },
        ])
        await insertList(sql, 'notes', [
          { id: 'c', kind: 'other' },
          { id: 'd', kind: 'third' },
        ])
        const addAmounts = ' ON CONFLICT (id) DO UPDATE SET amount = notes.amount + excluded.amount'
        await insertList(sql, 'notes', [{ id: 'a', amount: -3n }], addAmounts)
      })
      expect([...(await database.sql`SELECT id, amount, text, kind FROM notes ORDER BY id`)]).toEqual([
        { id: 'a', amount: 9_007_199_254_740_990n, text: 'it\'s "so"; \\ \n é 🜁', kind: 'plain' },
        { id: 'b', amount: null, text: 'half of a pair: \ufffd', kind: 'plain' },
        { id: 'c', amount: null, text: null, kind: 'other' },
        { id: 'd', amount: null, text: null, kind: 'third' },
      ])
    },
  )
})
