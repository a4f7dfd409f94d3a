import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import type { Nano } from '../kernel/money.ts'
import { amount, count, flag, json, optional, rowFormat, text, time } from './columns.ts'

const noteRow = rowFormat({
  id: text<`note_${string}`>(),
  createdAt: time,
  readCount: count,
  lowBalance: amount,
  isOpen: flag,
  tags: json<readonly string[]>(),
  ownerId: optional(text()),
})

const note = {
  id: 'note_1',
  createdAt: 1_700_000_000_000,
  readCount: 3,
  lowBalance: 9_007_199_254_740_993n as Nano,
  isOpen: true,
  tags: ['a', 'b'],
  ownerId: undefined,
} as const

const row = {
  id: 'note_1',
  created_at: 1_700_000_000_000n,
  read_count: 3n,
  low_balance: 9_007_199_254_740_993n,
  is_open: 1n,
  tags: '["a","b"]',
  owner_id: null,
}

test('writes an object as a row and reads it back, without columns that are not named', () => {
  expect(noteRow.write(note)).toEqual(row)
  expect(noteRow.read({ ...row, hash: 'secret' })).toStrictEqual(note)
  expect(noteRow.read({ ...row, is_open: 0n, owner_id: 'per_1' })).toStrictEqual({
    ...note,
    isOpen: false,
    ownerId: 'per_1',
  })
  expect(noteRow.first([])).toBeUndefined()
  expect(noteRow.all([row, row])).toStrictEqual([note, note])
})

forEachEngine((_engine, storeTest) => {
  storeTest('a row goes through the database unchanged', async ({ database }) => {
    await database.schemaTransaction((_sql, runScript) =>
      runScript(`CREATE TABLE notes (id TEXT, created_at BIGINT, read_count BIGINT, low_balance BIGINT,
        is_open BIGINT, tags TEXT, owner_id TEXT)`),
    )
    await database.transaction((sql) => sql`INSERT INTO notes ${sql([noteRow.write(note)])}`)
    expect(noteRow.all(await database.sql`SELECT * FROM notes`)).toStrictEqual([note])
  })
})
