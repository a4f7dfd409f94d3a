import { expect, test } from 'bun:test'
import { answeredRequest } from '../../test/observe/observed-records.ts'
import { createId } from '../kernel/ids.ts'
import { firstIdAt, requestRow } from './request-row.ts'

test('a moment stands before the ids made then, and after those made before', () => {
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

test('a row takes nothing of its caller but the ids, so that it can cross to the writing thread as text', () => {
  const caller = { workspaceId: 'ws_1', projectId: 'prj_1', keyId: 'key_1', limits: { spendPerDay: 500n } } as const
  const counted = requestRow(answeredRequest({ caller }))?.counted
  expect(JSON.parse(JSON.stringify(counted))).toMatchObject({ workspaceId: 'ws_1', projectId: 'prj_1', keyId: 'key_1' })
})
