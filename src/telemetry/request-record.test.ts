import { expect, test } from 'bun:test'
import { answeredRequest } from '../../test/observe/observed-records.ts'
import { createId, firstIdAt } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { RequestRow } from '../store/request-rows.ts'
import {
  chargedRequestRow,
  onlyRoute,
  type RequestRecord,
  requestFromRow,
  requestRow,
  type StoredRow,
} from './request-record.ts'

test('the first id of a moment sorts before ids made then and after ids made earlier', () => {
  const before = Date.now()
  const id = createId('req')
  const after = Date.now()
  expect(firstIdAt(before) <= id).toBe(true)
  expect(firstIdAt(after + 1) > id).toBe(true)
})

test('the time is the first 48 of 128 bits, written in 26 digits of 5', () => {
  expect(firstIdAt(0)).toBe(`req_${'0'.repeat(26)}`)
  // One millisecond is 2^80 = 32^16: a 1 with sixteen digits behind it.
  expect(firstIdAt(1)).toBe(`req_${'0'.repeat(9)}1${'0'.repeat(16)}`)
  expect(firstIdAt(32 * 31 + 10)).toBe(`req_${'0'.repeat(8)}ZA${'0'.repeat(16)}`)
})

/** As the database returns it. */
function stored(row: RequestRow | undefined): StoredRow {
  const entries = Object.entries(row ?? {}).map(([name, value]) => [
    name,
    typeof value === 'number' ? BigInt(value) : value,
  ])
  return Object.fromEntries(entries)
}

const route = { provider: 'acme', upstreamModel: 'large-v1' }
const attempt = { ...route, outcome: 'ok', ms: 200, startMs: 3 }
const only = { ...route, why: onlyRoute }

test.each<[string, Partial<RequestRecord>, string | null]>([
  ['one answer of the only route', { candidates: [only], attempts: [attempt] }, null],
  ['nothing was planned', { candidates: [], attempts: [] }, null],
  ['no plan is known', { candidates: [], attempts: [attempt] }, '{"candidates":[]}'],
  ['a refusal before the only route was tried', { candidates: [only], attempts: [] }, expect.any(String)],
  ['another reason', { candidates: [{ ...route, why: 'cheapest' }], attempts: [attempt] }, expect.any(String)],
  ['a failed attempt', { candidates: [only], attempts: [{ ...attempt, outcome: '503' }] }, expect.any(String)],
  ['two attempts', { candidates: [only], attempts: [{ ...attempt, outcome: '503' }, attempt] }, expect.any(String)],
  [
    'a warning',
    { candidates: [only], attempts: [attempt], warnings: ['dropped seed'] },
    '{"warnings":["dropped seed"]}',
  ],
  ['a note', { candidates: [only], attempts: [attempt], notes: ['late'] }, '{"notes":["late"]}'],
])('a row keeps the route and its attempts, and nothing twice: %s', (_name, facts, details) => {
  const record = answeredRequest({ warnings: [], notes: [], ...facts })
  const row = requestRow(record)
  expect(row?.details).toEqual(details)
  const { candidates, attempts, warnings, notes } = requestFromRow(stored(row))
  expect({ candidates, attempts, warnings, notes }).toEqual({
    candidates: record.candidates,
    attempts: record.attempts,
    warnings: record.warnings,
    notes: record.notes,
  })
})

test('only a charged row has a charge', () => {
  const record = answeredRequest({ charge: 5n as Nano })
  expect(requestRow(record)).toMatchObject({ charge: null, written_off: null, budgets: null })
  const charge = { charge: 5n as Nano, writtenOff: 2n as Nano, budgets: 'key_1 day:2026-11-15' }
  expect(chargedRequestRow(record, charge)).toMatchObject({
    charge: 5,
    written_off: 2,
    budgets: 'key_1 day:2026-11-15',
  })
  expect(requestRow(answeredRequest({ caller: undefined }))).toBeUndefined()
})
