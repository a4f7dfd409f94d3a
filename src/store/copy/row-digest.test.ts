import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { type Row, RowDigest } from './row-digest.ts'

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
