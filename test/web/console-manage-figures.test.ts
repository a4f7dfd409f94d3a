// Limits and balances as the console reckons them.

import { expect, test } from 'bun:test'
import { effectiveLimits } from '../../src/web/pages/console/manage/effective-limits.ts'
import type { Transfer } from '../../src/web/pages/console/manage/things.ts'
import { csvText, withBalances } from '../../src/web/pages/console/wallet/running-balance.ts'

const key = { who: 'this key', limits: { requests_per_minute: 100, spend_per_day: '2.50' } }
const project = { who: 'the project', limits: { requests_per_minute: 60, spend_per_day: '10.00' } }
const workspace = { who: 'the workspace', limits: { requests_per_minute: 60, spend_per_month: '9.00' } }

test('the tightest holds, each kind by itself, and its owner is named', () => {
  expect(effectiveLimits([key, project, workspace])).toEqual([
    { name: 'requests_per_minute', value: 60, who: 'the project' },
    { name: 'spend_per_day', value: '2.50', who: 'this key' },
    { name: 'spend_per_month', value: '9.00', who: 'the workspace' },
  ])
})

test('amounts are compared as amounts, not as text', () => {
  const holders = [
    { who: 'this key', limits: { spend_per_day: '10.00' } },
    { who: 'the project', limits: { spend_per_day: '9.999999999' } },
  ]
  expect(effectiveLimits(holders)).toEqual([{ name: 'spend_per_day', value: '9.999999999', who: 'the project' }])
})

test('what nobody limits is not listed, null included', () => {
  expect(effectiveLimits([{ who: 'this key', limits: { tokens_per_minute: null } }])).toEqual([])
})

const transfer = (part: Partial<Transfer>): Transfer => ({
  id: 'tr_1',
  kind: 'charge',
  direction: 'out',
  amount: '1.00',
  request_id: null,
  reference: null,
  price_version: null,
  estimated: false,
  created_at: '2026-11-15T00:00:00.000Z',
  ...part,
})

test('each row has the balance after it, to the last digit', () => {
  const rows = withBalances('3.999999999', [
    transfer({ amount: '0.000000001' }),
    transfer({ kind: 'writeoff', amount: '7.00' }),
    transfer({ kind: 'topup', direction: 'in', amount: '4.00' }),
  ])
  // 0 + 4.00 = 4.00; the write-off leaves the wallet alone; 4.00 − 0.000000001 = 3.999999999.
  expect(rows.map(({ balance }) => balance)).toEqual(['3.999999999', '4.00', '4.00'])
})

test('no cell of the file is a formula, and quotes stay inside their cell', () => {
  const [row] = withBalances('1.00', [transfer({ reference: '=HYPERLINK("http://x","y")' })])
  if (!row) throw new Error('a row went missing')
  const [head, line] = csvText([row]).split('\r\n')
  expect(head).toBe('created_at,id,kind,direction,amount,balance,request_id,reference,price_version,estimated')
  expect(line).toBe(`2026-11-15T00:00:00.000Z,tr_1,charge,out,1.00,1.00,,"'=HYPERLINK(""http://x"",""y"")",,false`)
})
