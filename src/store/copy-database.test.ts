import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import { planCopy, type Row, RowDigest } from './copy-database.ts'

const engines: TestEngine[] = []
forEachEngine((engine) => {
  engines.push(engine)
  if (engine.name === 'sqlite') return

  test('every table of the migrations is in the plan, after the tables it refers to', async () => {
    const [embedded] = engines
    if (embedded === undefined) throw new Error('the embedded engine comes first')
    await using source = await embedded.openStore()
    await using target = await engine.openStore()
    const { tables, left } = await planCopy(source.database.sql, target.database.sql)
    expect(left).toEqual([])
    const names = tables.map(({ name }) => name)
    const known = await source.database.sql<{ name: string }>`SELECT name FROM sqlite_master
      WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_migrations'`
    expect(names.toSorted()).toEqual(known.map(({ name }) => name).sort())
    for (const [parent, child] of [
      ['workspaces', 'projects'],
      ['projects', 'api_keys'],
      ['api_keys', 'rotated_secrets'],
      ['workspaces', 'accounts'],
      ['accounts', 'balances'],
      ['workspaces', 'credentials'],
    ] as const) {
      expect([parent, names.indexOf(parent) < names.indexOf(child)]).toEqual([parent, true])
    }
  })

  test('every column of every table has one of the two types that can be compared', async () => {
    await using target = await engine.openStore()
    const odd = await target.database.sql`SELECT table_name, column_name, data_type FROM information_schema.columns
      WHERE table_schema = current_schema() AND data_type NOT IN ('text', 'bigint')`
    expect(odd).toEqual([])
  })

  test('a table that only the embedded database has is reported, and one that differs is refused', async () => {
    const [embedded] = engines
    if (embedded === undefined) throw new Error('the embedded engine comes first')
    await using source = await embedded.openStore()
    await using target = await engine.openStore()
    await source.database.transaction((sql) => sql`CREATE TABLE notes (text TEXT)`)
    expect((await planCopy(source.database.sql, target.database.sql)).left).toEqual(['notes'])
    await source.database.transaction((sql) => sql`ALTER TABLE prices ADD COLUMN note TEXT`)
    await expect(planCopy(source.database.sql, target.database.sql)).rejects.toThrow(
      'The table prices is not the same in both databases',
    )
    await source.database.transaction((sql) => sql`DELETE FROM schema_migrations`)
    await expect(planCopy(source.database.sql, target.database.sql)).rejects.toThrow('older version of Tollgate')
  })
})

describe('the digest of rows', () => {
  const columns = ['a', 'b']
  function digestOf(rows: readonly Row[]): string {
    const digest = new RowDigest(columns)
    for (const row of rows) digest.add(row)
    return `${digest.count} ${digest.text}`
  }

  test('is the SHA-256 of one row, with kinds and lengths', () => {
    const hash = createHash('sha256').update('i-7;s5:a;b:1;').digest('hex')
    expect(digestOf([{ a: -7n, b: 'a;b:1' }])).toBe(`1 ${hash}`)
  })

  test('does not depend on the order of rows or columns', () => {
    const rows: Row[] = [
      { a: 1n, b: 'x' },
      { a: 2n, b: null },
      { b: '', a: 3n },
    ]
    expect(digestOf(rows.toReversed())).toBe(digestOf(rows))
    expect(digestOf([{ b: 'x', a: 1n }, ...rows.slice(1)])).toBe(digestOf(rows))
  })

  test('tells apart what looks alike', () => {
    const alike: Row[][] = [
      [],
      [{ a: 'ab', b: 'c' }],
      [{ a: 'a', b: 'bc' }],
      [{ a: '1', b: null }],
      [{ a: 1n, b: null }],
      [{ a: null, b: 1n }],
      [{ a: null, b: '' }],
      [{ a: '', b: null }],
      [{ a: null, b: null }],
      // Twice the same row is not none, as it would be under an exclusive or.
      [
        { a: 1n, b: null },
        { a: 1n, b: null },
      ],
    ]
    expect(new Set(alike.map(digestOf)).size).toBe(alike.length)
  })

  test('refuses values that the engines could hand out differently', () => {
    const digest = new RowDigest(columns)
    for (const value of [1.5, new Uint8Array(1), undefined, true]) {
      expect(() => digest.add({ a: value as unknown as string, b: null })).toThrow('cannot be compared between engines')
    }
  })
})
