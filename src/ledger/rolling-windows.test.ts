// Rolling windows: the spend of the last hours or days, by the minute of the charge. Every expectation is worked out by hand;
// the last test compares a random life with a list of charges that is added up anew each time.

import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { holdOf, settlementOf } from '../../test/parts/ledger.ts'
import { openSteppedBooks, type SteppedBooks } from '../../test/parts/stepped-books.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { wholeSubject } from '../kernel/spend-limit.ts'
import type { Budget } from './budget.ts'
import type { HoldRequest } from './ledger.ts'
import { verify } from './verify.ts'

const scopeId = 'key_1'
const budget = (cap: bigint, window = '5h'): Budget => ({ scopeId, window, cap: cap as Nano })
/** Longer than the tests take. */
const lifetimeMs = 400 * 24 * 60 * 60_000

function ledgerOf({ replicas }: SteppedBooks, at = 0) {
  const books = replicas[at % replicas.length]
  if (!books) throw new Error('no replica is open')
  return books.ledger
}

function requestOf({ workspaceId }: SteppedBooks, amount: bigint, budgets: readonly Budget[]): HoldRequest {
  return { ...holdOf(workspaceId, amount), lifetimeMs, budgets }
}

async function hold(books: SteppedBooks, amount: bigint, ...budgets: Budget[]): Promise<string> {
  const outcome = await ledgerOf(books).hold(requestOf(books, amount, budgets))
  return outcome.kind === 'over budget' ? `over, spent ${outcome.spent} held ${outcome.held}` : outcome.kind
}

async function charge(books: SteppedBooks, amount: bigint, ...budgets: Budget[]): Promise<void> {
  const request = requestOf(books, amount, budgets)
  expect(await ledgerOf(books).hold(request)).toMatchObject({ kind: 'held' })
  await settle(books, request.requestId, amount)
}

async function settle(books: SteppedBooks, id: RequestId, amount: bigint): Promise<void> {
  const startedAt = books.minute() * 60_000
  expect(await ledgerOf(books).settle(settlementOf(id, amount, { startedAt }))).toMatchObject({ kind: 'settled' })
}

async function spentOf(books: SteppedBooks, at = 0): Promise<bigint> {
  return (await ledgerOf(books, at).budget(scopeId, '5h')).spent
}

forEachEngine((engine) => {
  test('a charge counts for the whole window, and at most a minute longer', async () => {
    await using books = await openSteppedBooks(engine)
    await charge(books, 60n, budget(100n))
    expect(await hold(books, 41n, budget(100n))).toBe('over, spent 60 held 0')
    await books.pass(100)
    await charge(books, 30n, budget(100n))
    expect(await hold(books, 11n, budget(100n))).toBe('over, spent 90 held 0')
    // The first charge is 300 minutes old.
    await books.pass(200)
    expect(await hold(books, 11n, budget(100n))).toBe('over, spent 90 held 0')
    await books.pass(1)
    expect(await hold(books, 71n, budget(100n))).toBe('over, spent 30 held 0')
    expect(await hold(books, 70n, budget(100n))).toBe('held')
    await expectRight(books)
  })

  test('a hold counts at once and as long as it is open; its charge counts from the minute of its settlement', async () => {
    await using books = await openSteppedBooks(engine)
    const request = requestOf(books, 80n, [budget(100n)])
    expect(await ledgerOf(books).hold(request)).toMatchObject({ kind: 'held' })
    expect(await hold(books, 21n, budget(100n))).toBe('over, spent 0 held 80')
    await books.pass(400)
    expect(await hold(books, 21n, budget(100n))).toBe('over, spent 0 held 80')
    await settle(books, request.requestId, 50n)
    expect(await hold(books, 51n, budget(100n))).toBe('over, spent 50 held 0')
    await books.pass(300)
    expect(await spentOf(books)).toBe(50n)
    await books.pass(1)
    expect(await spentOf(books)).toBe(0n)
    await expectRight(books)
  })

  test('a charge counts only in the scopes that it belongs to, and its hold ends in all of them', async () => {
    await using books = await openSteppedBooks(engine)
    const both = ['key_1?acme/*', 'key_1?other/*'].map((scope) => ({ ...budget(100n), scopeId: scope }))
    const request = requestOf(books, 80n, both)
    expect(await ledgerOf(books).hold(request)).toMatchObject({ kind: 'held' })
    const countsIn = (scope: string) => scope.endsWith('?acme/*')
    const settlement = { ...settlementOf(request.requestId, 60n), countsIn }
    expect(await ledgerOf(books).settle(settlement)).toMatchObject({ kind: 'settled', charge: 60n })
    const states = await Promise.all(both.map((one) => ledgerOf(books).budget(one.scopeId, '5h')))
    expect(states.map(({ spent, held }) => [spent, held])).toEqual([
      [60n as Nano, 0n as Nano],
      [0n as Nano, 0n as Nano],
    ])
    await expectRight(books)
  })

  test('windows of one scope are counted separately, and each says when enough has left', async () => {
    await using books = await openSteppedBooks(engine)
    const both = [budget(100n, '5h'), budget(1000n, '7d')]
    const start = books.minute()
    await charge(books, 10n, ...both)
    await books.pass(7)
    await charge(books, 20n, ...both)
    await books.pass(3)
    await charge(books, 30n, ...both)
    const leaves = async (window: string, amount: bigint) =>
      books.minute() + (await ledgerOf(books).leavesInMs(scopeId, window, amount)) / 60_000 - start
    expect(await leaves('5h', 1n)).toBe(301)
    expect(await leaves('5h', 10n)).toBe(301)
    expect(await leaves('5h', 11n)).toBe(308)
    expect(await leaves('5h', 31n)).toBe(311)
    // More than is there: when nothing is left.
    expect(await leaves('5h', 500n)).toBe(311)
    expect(await leaves('7d', 1n)).toBe(7 * 24 * 60 + 1)
    await books.pass(300)
    expect(await spentOf(books)).toBe(30n)
    expect<bigint>((await ledgerOf(books).budget(scopeId, '7d')).spent).toBe(60n)
    await expectRight(books)
  })

  test('a clock that is set forth lets charges leave, and set back brings them back; no sum is negative', async () => {
    await using books = await openSteppedBooks(engine)
    await charge(books, 40n, budget(100n))
    await books.set(400)
    expect(await hold(books, 100n, budget(100n))).toBe('held')
    await charge(books, 7n, { ...budget(200n) })
    // 800 minutes back: the first charge is 400 minutes in the future, the second 800. Both count.
    await books.set(-800)
    expect(await hold(books, 1n, budget(100n))).toBe('over, spent 47 held 100')
    await charge(books, 3n, budget(200n))
    await books.set(400)
    expect(await spentOf(books)).toBe(47n)
    await books.pass(400)
    expect(await spentOf(books)).toBe(7n)
    await expectRight(books)
  })

  test('a restart, and another replica, count the same', async () => {
    await using books = await openSteppedBooks(engine)
    await charge(books, 40n, budget(100n))
    await books.pass(30)
    await charge(books, 50n, budget(100n))
    await books.restart()
    expect([await spentOf(books, 0), await spentOf(books, 1)]).toEqual([90n, 90n])
    expect(await hold(books, 11n, budget(100n))).toBe('over, spent 90 held 0')
    await books.pass(271)
    expect([await spentOf(books, 0), await spentOf(books, 1)]).toEqual([50n, 50n])
    expect(await hold(books, 50n, budget(100n))).toBe('held')
    await expectRight(books)
  })

  test('of 200 holds at once exactly those that fit are granted, on every replica together', async () => {
    await using books = await openSteppedBooks(engine)
    await charge(books, 9n, budget(100n))
    const asked = Array.from({ length: 200 }, (_, at) => ({
      ledger: ledgerOf(books, at),
      request: requestOf(books, 5n, [budget(100n)]),
    }))
    const outcomes = await Promise.all(asked.map(async ({ ledger, request }) => await ledger.hold(request)))
    // 9 + 18 × 5 = 99.
    expect(outcomes.filter(({ kind }) => kind === 'held')).toHaveLength(18)
    expect(outcomes.filter(({ kind }) => kind === 'over budget')).toHaveLength(182)
    const granted = asked.filter((_, at) => outcomes[at]?.kind === 'held')
    const settlements = granted.map(({ ledger, request }) => ledger.settle(settlementOf(request.requestId, 4n)))
    for (const end of await Promise.all(settlements)) expect(end).toMatchObject({ kind: 'settled', charge: 4n })
    expect(await spentOf(books)).toBe(81n)
    await expectRight(books)
  })

  test('a limit counts what was charged in its window before it was set', async () => {
    await using books = await openSteppedBooks(engine)
    await charge(books, 1000n)
    await books.pass(290)
    await charge(books, 40n)
    await books.pass(20)
    await charge(books, 2n)
    const limit = { subject: wholeSubject, window: '5h', amount: 100n as Nano } as const
    for (const { ledger } of books.replicas) ledger.recount(scopeId, [limit])
    await untilSpent(books, 42n)
    // Read again a while later: nothing is counted twice.
    await books.pass(1)
    expect(await spentOf(books)).toBe(42n)
    await charge(books, 50n, budget(100n))
    expect(await hold(books, 9n, budget(100n))).toBe('over, spent 92 held 0')
    await books.pass(280)
    expect(await spentOf(books)).toBe(52n)
    await expectRight(books)
  })

  test('minutes are kept for a day after their window, and then removed with their counters', async () => {
    await using books = await openSteppedBooks(engine)
    await charge(books, 5n, budget(100n))
    const rows = async () =>
      (await books.database.sql`SELECT minute FROM budget_minutes`).length +
      (await books.database.sql`SELECT scope_id FROM budgets WHERE time_window = '5h'`).length
    const before = await rows()
    await books.pass(300 + 24 * 60 + 1)
    expect(await rows()).toBe(before)
    await books.pass(1)
    expect(await rows()).toBe(0)
    expect(await hold(books, 100n, budget(100n))).toBe('held')
    await expectRight(books)
  })

  test('verify names a minute, and a sum, that differ from the charges', async () => {
    await using books = await openSteppedBooks(engine)
    await charge(books, 5n, budget(100n))
    const minute = books.minute()
    await books.database.transaction((sql) => sql`UPDATE budget_minutes SET spent = spent + 1`)
    const { findings } = await verify(books.database, { now: minute * 60_000 })
    expect(findings.map(({ check, id }) => [check, id])).toEqual([
      ["a minute's spent = Σ charges of it", `key_1 5h#${minute}`],
      ...(engine.name === 'postgres' ? [["a rolling window's spent = Σ its minutes", 'key_1 5h']] : []),
    ])
  })

  test('a random life never has more in a window than its limit, and counts what a list of its charges says', async () => {
    await using books = await openSteppedBooks(engine)
    const random = createRandom(7)
    const charges: { readonly minute: number; readonly amount: bigint }[] = []
    const open: { readonly id: RequestId; readonly amount: bigint }[] = []
    const cap = 50n
    let granted = 0
    for (let step = 0; step < 150; step++) {
      const held = open.reduce((sum, { amount }) => sum + amount, 0n)
      const spent = charges
        .filter(({ minute }) => minute >= books.minute() - 300)
        .reduce((sum, { amount }) => sum + amount, 0n)
      expect(await spentOf(books, step)).toBe(spent)
      const choice = random(10)
      if (choice < 5) {
        const request = requestOf(books, BigInt(1 + random(12)), [budget(cap)])
        const outcome = await ledgerOf(books, step).hold(request)
        expect(outcome.kind).toBe(spent + held + request.amount <= cap ? 'held' : 'over budget')
        if (outcome.kind === 'held') open.push({ id: request.requestId, amount: request.amount })
        granted += outcome.kind === 'held' ? 1 : 0
        // A replica ends its own holds only.
        if (outcome.kind === 'held') await end(step, open.pop(), BigInt(random(13)))
      } else if (choice < 9) await books.pass(random(90))
      else await books.set(random(200) - 100)
    }
    expect(granted).toBeGreaterThan(20)
    await expectRight(books)

    async function end(step: number, one: (typeof open)[number] | undefined, cost: bigint): Promise<void> {
      if (!one) return
      const amount = cost < one.amount ? cost : one.amount
      const settled = await ledgerOf(books, step).settle(settlementOf(one.id, amount))
      expect(settled).toMatchObject({ kind: 'settled', charge: amount })
      charges.push({ minute: books.minute(), amount })
    }
  })
})

async function expectRight({ database, minute }: SteppedBooks): Promise<void> {
  const { findings } = await verify(database, { now: minute() * 60_000 })
  expect(findings).toEqual([])
}

async function untilSpent(books: SteppedBooks, spent: bigint): Promise<void> {
  for (let tries = 0; (await spentOf(books)) !== spent; tries++) {
    if (tries === 20_000) throw new Error(`never were ${spent} spent: ${await spentOf(books)}`)
    await Bun.sleep(1)
  }
}

/** Whole numbers from 0, below the bound. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}
