// Against a database that is only said, because only the order of times matters here; leases.test.ts has real ones.

import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import type { ReplicaId } from '../../kernel/ids.ts'
import type { Database } from '../../store/database.ts'
import type { WalletId } from '../account.ts'
import { createGate } from '../gate.ts'
import { createLeaseBook } from './lease-book.ts'
import { createLeaseKeeper } from './lease-keeper.ts'
import { createLeaseTally } from './lease-tally.ts'

const wallet = 'wallet:ws_1' as WalletId

/** `meet`: throws what a statement meets. */
function openKeeper(meet: (text: string) => void = () => {}) {
  let nowMs = 1000
  const sql = async (strings: TemplateStringsArray) => {
    const text = strings.join('?')
    meet(text)
    if (text.includes('FROM leases') && text.includes('FOR UPDATE'))
      return [{ amount: 1000n, spent: 0n, state: 'wanted' }]
    if (text.includes('FROM balances')) return [{ posted: 1_000_000n, held: 0n }]
    return text.includes('clock_timestamp') ? [{ now: BigInt(nowMs) }] : []
  }
  const database = { sql, transaction: (work: (given: unknown) => unknown) => work(sql) } as unknown as Database
  const clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const book = createLeaseBook(() => nowMs)
  const turns: Promise<void>[] = []
  const keeper = createLeaseKeeper({
    database,
    clock,
    gate: createGate(clock),
    queue: {
      alone(work) {
        const turn = work()
        turns.push(turn)
        return turn
      },
    },
    book,
    leaseTally: createLeaseTally(),
    hotHoldsPerSecond: 50,
    owner: () => ({ id: 'rep_1' as ReplicaId, epoch: 1n, now: 0n }),
    onFault(_, error) {
      throw error
    },
  })
  const heatAt = async (ms: number) => {
    nowMs = ms
    for (let n = 0; n < 60; n++) keeper.note(wallet, 1n)
    await Promise.all(turns.splice(0))
    return book.find(wallet) !== undefined
  }
  const setTime = (ms: number) => {
    nowMs = ms
  }
  return { keeper, book, heatAt, setTime }
}

test('a lease that others asked for is not taken again before its pause is over, though it closes later', async () => {
  const { keeper, book, heatAt, setTime } = openKeeper()
  expect(await heatAt(1000)).toBe(true)
  const part = book.take(wallet, 1n, 1n)
  setTime(1100)
  await keeper.close(wallet)
  // The last request ends, and with it the lease.
  setTime(1200)
  if (part) book.giveBack(part, 1n)
  await keeper.round()
  expect(await heatAt(1250)).toBe(false)
  expect(await heatAt(6000)).toBe(false)
  expect(await heatAt(6101)).toBe(true)
})

test('a wallet whose row is locked is not tried for again with every hold', async () => {
  let tries = 0
  const code = { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '55P03', detail: '', hint: '', severity: 'ERROR' }
  const { heatAt } = openKeeper((text) => {
    if (!text.includes('balances')) return
    tries++
    throw new SQL.PostgresError('locked', code)
  })
  for (const ms of [1000, 1100, 1200, 1900]) expect(await heatAt(ms)).toBe(false)
  expect(tries).toBe(1)
  await heatAt(2100)
  expect(tries).toBe(2)
})
