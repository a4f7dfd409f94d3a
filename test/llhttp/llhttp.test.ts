// A share of what `bun run test/llhttp/differences.ts` compares. The seed is fixed; other seeds are for nights.

import { expect, test } from 'bun:test'
import { compare, differenceOf, listed } from './differences.ts'

test('requests are read as llhttp reads them, but for the listed differences', async () => {
  const { counts, unlisted } = await compare(30_000, 20_261_118)
  expect([...unlisted]).toEqual([])
  // A row that no input needs is out of date.
  const unused = listed.filter(({ difference }) => !counts.has(difference)).map(({ difference }) => difference)
  expect(unused).toEqual([])
  // Most inputs are read to their end by both; otherwise the comparison would see little.
  expect(counts.get('none')).toBeGreaterThan(20_000)
})

const next = 'GET /next HTTP/1.1\r\nHost: n\r\n\r\n'
const field = (name: string, value: string) => [name, value]
const read = { method: 'GET', target: '/next', minor: 1, fields: field('Host', 'n'), body: '', isKept: true }

test.each([
  ['a body that was read as another', { requests: [{ ...read, body: 'x' }] }, 'another request'],
  ['another header', { requests: [{ ...read, fields: field('Host', 'm') }] }, 'another request'],
  ['a request that was not seen', { requests: [] }, 'we read a request more'],
  ['a request that was seen twice', { requests: [read, read] }, 'we read a request less'],
  ['a refusal', { requests: [], fault: 'HPE_X' }, 'we accept HPE_X'],
  ['a refusal of what follows', { requests: [read], fault: 'HPE_X' }, 'we accept HPE_X'],
  ['the end of the connection', { requests: [{ ...read, isKept: false }] }, 'we keep the connection'],
  ['the same', { requests: [read] }, undefined],
])('the comparison sees %s', (_, theirs, difference) => {
  expect(differenceOf([next], theirs)).toBe(difference)
})
