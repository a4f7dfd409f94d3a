// Which operations share a batch, and, against a scripted database, who is served when a statement meets a lock or a
// fault. locked-wallet.test.ts does the same with a real lock.

import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { settlementOf } from '../../../test/parts/ledger.ts'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import { yieldToEventLoop } from '../../kernel/timers.ts'
import type { Database } from '../../store/database.ts'
import type { HoldRequest } from '../ledger.ts'
import { createWriteHealth } from '../settlement.ts'
import { createBatchQueue, type Entry, takeBatch } from './batch-queue.ts'
import type { SharedOperation } from './holds.ts'
import type { Owner } from './replica.ts'

const sqlError = (errno: string) =>
  new SQL.PostgresError(errno, { code: 'ERR_POSTGRES_SERVER_ERROR', errno, detail: '', hint: '', severity: 'ERROR' })

/** Throws what the statement meets; the texts of its parameters are given. */
type Meet = (text: string, values: string) => void

function openQueue(meet: (advance: (milliseconds: number) => void) => Meet) {
  let nowMs = 0
  const waits = new Map<() => void, number>()
  const advance = (milliseconds: number): void => {
    nowMs += milliseconds
    for (const [end, dueMs] of waits) if (dueMs <= nowMs && waits.delete(end)) end()
  }
  /** Over when its time is, by whatever took that long; where nothing does, at once. */
  const wait = (milliseconds: number) =>
    new Promise<void>((end) => {
      const dueMs = nowMs + milliseconds
      waits.set(end, dueMs)
      void Bun.sleep(0).then(() => advance(Math.max(0, dueMs - nowMs)))
    })
  const met = meet(advance)
  const sql = async (strings: TemplateStringsArray, ...values: readonly unknown[]) => {
    const text = strings.join('?').replace(/\s+/g, ' ')
    const texts = values.filter((value) => typeof value === 'string')
    met(text, texts.join(' '))
    if (text.startsWith('UPDATE holds SET state')) {
      const ids = String(values[1]).split(',')
      return ids.map((id) => ({ request_id: id, amount: 10n, budgets: null }))
    }
    const ids = [...texts.join(' ').matchAll(/wallet:\w+/g)].map(([id]) => id)
    return text.includes('balances') ? ids.map((id) => ({ id, posted: 1000n, held: 100n })) : []
  }
  const database = { sql, transaction: (work: (given: unknown) => unknown) => work(sql) } as unknown as Database
  const clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const writeHealth = createWriteHealth(clock)
  const queue = createBatchQueue({
    database,
    clock,
    writeHealth,
    // Operations that need not wait are done first.
    timers: { wait, endOfTurn: yieldToEventLoop, every: () => () => {} },
    random: () => 0,
    owner: () => ({ id: 'rep_1', epoch: 1n, now: 0n }) as Owner,
  })
  const submit = (rest: Partial<SharedOperation>, workspace: string, request: string) =>
    new Promise<{ readonly kind: string }>((answer, fail) => {
      const ids = { requestId: `req_${request}` as RequestId, workspaceId: `ws_${workspace}` as WorkspaceId }
      queue.submit({ ...rest, ...ids, answer, fail } as unknown as SharedOperation)
    })
  return {
    writeHealth,
    nowMs: () => nowMs,
    settle(workspace: string, request: string) {
      const rest = { settlement: settlementOf(`req_${request}`, 5n), retryMs: 30_000 }
      return submit({ kind: 'settle', ...rest }, workspace, request)
    },
    hold(workspace: string, request: string) {
      const ids = { requestId: `req_${request}`, workspaceId: `ws_${workspace}`, keyId: 'key_1', projectId: 'prj_1' }
      const asked = { ...ids, amount: 5n } as HoldRequest
      return submit({ kind: 'hold', request: asked, retryMs: 0, lifetimeMs: 1000 }, workspace, request)
    },
  }
}

/** The wallet's row is locked until that time: a try waits for as long as it may, and has met the lock then. */
const lockedUntil =
  (freeMs: number, errno: string, now: () => number, which = () => /ws_locked/) =>
  (advance: (milliseconds: number) => void): Meet => {
    let waitMs = 900
    return (text, values) => {
      if (text.includes('lock_timeout')) waitMs = Number(values.split(' ').at(-1))
      if (!text.includes('balances') || !which().test(values) || now() >= freeMs) return
      advance(waitMs)
      waitMs = 900
      throw sqlError(errno)
    }
  }

for (const errno of ['55P03', '57014']) {
  test(`a wallet whose row is locked keeps no other from being served and charged (${errno})`, async () => {
    let now = () => 0
    const queue = openQueue(lockedUntil(Number.POSITIVE_INFINITY, errno, () => now()))
    now = queue.nowMs
    const ends: string[] = []
    const note = (name: string) => (outcome: { readonly kind: string }) =>
      void ends.push(`${name} ${outcome.kind} ${now() < 2000 ? 'soon' : now() < 30_000 ? 'later' : 'at last'}`)
    await Promise.all([
      queue.settle('locked', '1').then(note('settle locked')),
      queue.settle('free', '2').then(note('settle free')),
      queue.hold('other', '3').then(note('hold other')),
      queue.hold('locked', '4').then(note('hold locked')),
    ])
    expect(ends.toSorted()).toEqual([
      'hold locked unavailable later',
      'hold other held soon',
      'settle free settled soon',
      'settle locked unavailable at last',
    ])
    // A lock says nothing of the store; a statement that takes too long may.
    expect(queue.writeHealth.failed()).toBe(errno === '57014')
  })
}

test('many wallets whose rows are locked take turns with everybody else, and with each other', async () => {
  let now = () => 0
  const which = () => (now() < 5000 ? /ws_locked/ : /ws_locked[1-9]/)
  const queue = openQueue(lockedUntil(Number.POSITIVE_INFINITY, '55P03', () => now(), which))
  now = queue.nowMs
  const unlocked = queue.settle('locked0', '0').then(({ kind }) => [kind, now() < 10_000])
  const locked = Array.from({ length: 9 }, (_, at) => queue.settle(`locked${at + 1}`, `l${at}`))
  const waits: number[] = []
  for (let at = 0; now() < 20_000; at++) {
    const begunMs = now()
    expect((await queue.hold('free', `f${at}`)).kind).toBe('held')
    waits.push(now() - begunMs)
    // As long as a try at a locked wallet takes.
    while (now() < begunMs + 250) await Bun.sleep(0)
  }
  expect(await unlocked).toEqual(['settled', true])
  // The first ones arrive before it is known which wallets are locked.
  expect(Math.max(...waits.slice(1))).toBeLessThanOrEqual(500)
  expect(waits[0]).toBeLessThan(4000)
  expect((await Promise.all(locked)).every(({ kind }) => kind === 'unavailable')).toBe(true)
})

test('a wallet that is free again is charged, and goes with the others from then on', async () => {
  let now = () => 0
  const queue = openQueue(lockedUntil(5000, '55P03', () => now()))
  now = queue.nowMs
  const [locked, free] = await Promise.all([queue.settle('locked', '1'), queue.settle('free', '2')])
  expect([locked.kind, free.kind, now() < 6000]).toEqual(['settled', 'settled', true])
  const together = await Promise.all([queue.settle('locked', '3'), queue.settle('free', '4')])
  expect(together.map(({ kind }) => kind)).toEqual(['settled', 'settled'])
})

test('the fault of one operation is only its own', async () => {
  const queue = openQueue(() => (text, values) => {
    if (text.startsWith('INSERT INTO requests') && values.includes('req_1')) throw sqlError('23514')
  })
  const ends = await Promise.allSettled([queue.settle('free', '1'), queue.settle('free', '2'), queue.hold('b', '3')])
  expect(ends.map((end) => (end.status === 'fulfilled' ? end.value.kind : 'failed'))).toEqual([
    'failed',
    'settled',
    'held',
  ])
})

/** `hold a`: an operation and its request, of the workspace of the same name in capitals; `hold a!` is tried alone. */
function entriesOf(answered: string[], ...texts: readonly string[]): Entry[] {
  return texts.map((text) => {
    const [kind, name = ''] = text.replace('!', '').split(' ')
    const ids = { requestId: `req_${name}` as RequestId, workspaceId: `ws_${name.toUpperCase()}` as WorkspaceId }
    const operation = { kind, ...ids, answer: () => answered.push(text) } as unknown as SharedOperation
    return { operation, submittedMs: 0, isAlone: text.endsWith('!'), mayBeCommitted: false }
  })
}

const textOf = ({ operation: { kind, requestId } }: Entry) => `${kind} ${requestId.slice('req_'.length)}`

function take(texts: readonly string[], { waiting, apart }: { waiting?: string; apart?: string } = {}) {
  const answered: string[] = []
  const queue = entriesOf(answered, ...texts)
  const isWaiting = (id: WorkspaceId) => id === `ws_${waiting}`
  const isApart = (id: WorkspaceId) => apart?.includes(id.slice('ws_'.length)) ?? false
  const batch = takeBatch(queue, { isWaiting, isApart }).map(textOf)
  return { batch, left: queue.map(textOf), answered }
}

test('a batch is what comes first, up to a request that is in it already', () => {
  expect(take(['hold a', 'settle b', 'extend a', 'hold c'])).toEqual({
    batch: ['hold a', 'settle b'],
    left: ['extend a', 'hold c'],
    answered: [],
  })
})

test('the mark that a body was sent gives way to the end of its request', () => {
  expect(take(['sent a', 'sent b', 'hold c', 'settle a', 'release b'])).toEqual({
    batch: ['settle a', 'release b', 'hold c'],
    left: [],
    answered: ['sent a', 'sent b'],
  })
  // To nothing else: a hold that grows has still been sent.
  expect(take(['sent a', 'extend a', 'settle a'])).toEqual({
    batch: ['sent a'],
    left: ['extend a', 'settle a'],
    answered: [],
  })
})

test('while a wallet waits, its operations keep their places', () => {
  expect(take(['hold a', 'hold b', 'settle a'], { waiting: 'A' })).toEqual({
    batch: ['hold b'],
    left: ['hold a', 'settle a'],
    answered: [],
  })
})

test('a wallet that goes apart has a separate batch, in its turn', () => {
  expect(take(['hold b', 'hold a', 'settle c', 'hold d'], { apart: 'AD' })).toEqual({
    batch: ['hold b', 'settle c'],
    left: ['hold a', 'hold d'],
    answered: [],
  })
  expect(take(['hold a', 'settle b', 'hold d', 'sent a'], { apart: 'AD' })).toEqual({
    batch: ['hold a'],
    left: ['settle b', 'hold d', 'sent a'],
    answered: [],
  })
})

test('an operation that is tried alone has a separate batch', () => {
  expect(take(['hold a!', 'hold b!', 'hold c']).batch).toEqual(['hold a'])
  expect(take(['hold a', 'hold b!', 'hold c'])).toEqual({ batch: ['hold a'], left: ['hold b', 'hold c'], answered: [] })
})

test('commits at most 256 operations at a time', () => {
  const { batch, left } = take(Array.from({ length: 300 }, (_, n) => `hold ${n}`))
  expect([batch.length, left.length, left[0]]).toEqual([256, 44, 'hold 256'])
})
