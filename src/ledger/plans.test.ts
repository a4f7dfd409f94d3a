// Plans: credit that is granted for every period, spent before other money and expires. Expectations are worked out by hand;
// the month is compared with a list of grants that the test keeps itself.

import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger, settlementOf } from '../../test/parts/ledger.ts'
import { startLedgerChild } from '../../test/parts/ledger-children.ts'
import { storyPlan } from '../../test/parts/ledger-story.ts'
import { openSteppedBooks, type SteppedBooks } from '../../test/parts/stepped-books.ts'
import { systemClock } from '../kernel/clock.ts'
import { firstIdAt, type RequestId, type WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { openDatabase } from '../store/open-database.ts'
import { createRetention } from '../telemetry/retention.ts'
import { listCredits, usesOf } from './credit.ts'
import { recordPlanPayment } from './plan-payments.ts'
import { type Plan, putPlan, readWorkspacePlan, setWorkspacePlan } from './plans.ts'
import { readStatement } from './statement.ts'
import { verify } from './verify.ts'

const hour = 60
const day = 24 * hour

const planOf = (id: string, credit: bigint, more: Partial<Plan> = {}): Plan => ({
  ...{ id, name: id, credit: credit as Nano, period: 'day', expiresDays: undefined, price: undefined },
  ...more,
})

function ledgerOf({ replicas }: SteppedBooks, at = 0) {
  const books = replicas[at % replicas.length]
  if (!books) throw new Error('no replica is open')
  return books.ledger
}

async function offer({ database }: SteppedBooks, ...plans: Plan[]): Promise<void> {
  await database.transaction(async (sql) => {
    for (const plan of plans) await putPlan(sql, plan, 0)
  })
}

async function choose(books: SteppedBooks, planId: string | undefined): Promise<void> {
  const { database, workspaceId } = books
  await database.transaction((sql) => setWorkspacePlan(sql, workspaceId, planId))
  expect(await ledgerOf(books).renewPlans(workspaceId)).toBe(true)
}

async function hold(books: SteppedBooks, amount: bigint): Promise<RequestId> {
  const request = { ...holdOf(books.workspaceId, amount), lifetimeMs: 400 * day * 60_000 }
  expect(await ledgerOf(books).hold(request)).toMatchObject({ kind: 'held' })
  return request.requestId
}

async function settle(books: SteppedBooks, id: RequestId, amount: bigint): Promise<void> {
  const startedAt = books.minute() * 60_000
  const outcome = await ledgerOf(books).settle(settlementOf(id, amount, { startedAt }))
  expect(outcome).toMatchObject({ kind: 'settled', charge: amount })
}

async function charge(books: SteppedBooks, amount: bigint): Promise<void> {
  await settle(books, await hold(books, amount), amount)
}

/** `other + plan:remaining …`, from the rows and from the ledger, which agree. */
async function moneyOf(books: SteppedBooks): Promise<string> {
  const { database, workspaceId } = books
  const credits = await listCredits(database.sql, workspaceId)
  const { posted } = await ledgerOf(books).wallet(workspaceId)
  const credit = credits.reduce((sum, { remaining }) => sum + remaining, 0n)
  await expectBooksRight(database)
  return [posted - credit, ...credits.map(({ planId, remaining }) => `${planId}:${remaining}`)].join(' ')
}

async function kindsOf({ database, workspaceId }: SteppedBooks): Promise<readonly string[]> {
  const rows = await database.sql<{ kind: string; amount: bigint; reference: string | null }>`
    SELECT kind, amount, reference FROM fundings WHERE workspace_id = ${workspaceId} ORDER BY id`
  return rows.map(({ kind, amount, reference }) => `${kind} ${amount} ${reference ?? ''}`.trim())
}

// The clock of these tests begins on Friday, 2027-01-15, at 08:00.
forEachEngine((engine) => {
  test('a plan begins at once, is spent before other money, and what is left expires at the end of its period', async () => {
    await using books = await openSteppedBooks(engine, 50n)
    await offer(books, planOf('pro', 100n))
    await choose(books, 'pro')
    expect(await moneyOf(books)).toBe('50 pro:100')
    await charge(books, 30n)
    expect(await moneyOf(books)).toBe('50 pro:70')
    await books.pass(16 * hour)
    expect(await moneyOf(books)).toBe('50 pro:100')
    await charge(books, 120n)
    expect(await moneyOf(books)).toBe('30')
    await books.pass(day)
    expect(await moneyOf(books)).toBe('30 pro:100')
    expect(await kindsOf(books)).toEqual([
      'topup 50',
      'plan_credit 100 pro, 2027-01-15',
      'expiry 70 pro, 2027-01-15',
      'plan_credit 100 pro, 2027-01-16',
      'plan_credit 100 pro, 2027-01-17',
    ])
  })

  test('the first credit to expire is spent first, and each charge names what it used', async () => {
    await using books = await openSteppedBooks(engine, 50n)
    const { database, workspaceId } = books
    await offer(books, planOf('daily', 10n, { expiresDays: 3 }))
    await choose(books, 'daily')
    await books.pass(2 * day)
    expect(await moneyOf(books)).toBe('50 daily:10 daily:10 daily:10')
    const request = holdOf(workspaceId, 25n, firstIdAt(books.minute() * 60_000))
    const id = request.requestId
    expect(await ledgerOf(books).hold(request)).toMatchObject({ kind: 'held' })
    await settle(books, id, 24n)
    expect(await moneyOf(books)).toBe('50 daily:6')
    const uses = await usesOf(database.sql, `tr_${id.slice('req_'.length)}`)
    expect(uses.map(({ window, amount }) => `${window} ${amount}`)).toEqual([
      'day:2027-01-15 10',
      'day:2027-01-16 10',
      'day:2027-01-17 4',
    ])
    const statement = await readStatement(database, workspaceId, '2027-01')
    expect(statement?.fundings.map(({ kind }) => kind)).toEqual(['topup', ...Array(3).fill('plan_credit')])
    // Old requests are removed; their charges are archived, with what they used.
    const retention = createRetention({
      ...{ database, clock: { now: () => Date.UTC(2027, 5), monotonicMs: () => 0 }, days: () => 1 },
      ...{ onFault: expect.unreachable, every: () => () => {}, pause: async () => {} },
    })
    expect(await retention.run()).toBe(1)
    expect(await usesOf(database.sql, `tr_${id.slice('req_'.length)}`)).toEqual(uses)
    expect(await readStatement(database, workspaceId, '2027-01')).toEqual(statement)
    expect(statement?.charges).toMatchObject([{ requests: 1, amount: 24n, planCredit: 24n }])
    expect(await moneyOf(books)).toBe('50 daily:6')
  })

  test('credit that grants, uses and payments do not explain is found', async () => {
    await using books = await openSteppedBooks(engine, 50n)
    const { database, workspaceId } = books
    await offer(books, planOf('pro', 100n))
    await choose(books, 'pro')
    await charge(books, 30n)
    await expectBooksRight(database)
    const [credit] = await listCredits(database.sql, workspaceId)
    const found = async () => (await verify(database)).findings.map(({ check, detail }) => `${check}: ${detail}`)
    await database.transaction(
      (sql) => sql`UPDATE credits SET remaining = remaining + 1 WHERE id = ${credit?.id ?? ''}`,
    )
    expect(await found()).toEqual([
      'credit of a plan = its grant - its uses: remaining 71, transfers say 70',
      "a wallet's credit = Σ remaining ≤ posted: credit 70 of 120, grants say 71",
    ])
    await database.transaction((sql) => sql`UPDATE credits SET remaining = 70, time_window = 'invoice:in_1'`)
    expect(await found()).toEqual(['credit of a payment = what was paid for: invoice:in_1 grants 100, paid for 0'])
    const use = { credit_id: credit?.id ?? '', transfer_id: 'tr_none', amount: 1n }
    await database.transaction((sql) => sql`INSERT INTO credit_uses ${sql([use])}`)
    await database.transaction((sql) => sql`UPDATE credits SET remaining = 69, time_window = 'day:2027-01-15'`)
    await database.transaction((sql) => sql`UPDATE balances SET credit = 69 WHERE account_id LIKE 'wallet:%'`)
    expect(await found()).toEqual(['credit is used by a transfer that moves as much: uses 1 of credit, and moves 0'])
  })

  test('a request that runs while credit expires may use it, up to what it holds', async () => {
    await using books = await openSteppedBooks(engine, 50n)
    await offer(books, planOf('pro', 100n))
    await choose(books, 'pro')
    await choose(books, undefined)
    const [first, second] = [await hold(books, 30n), await hold(books, 10n)]
    await books.pass(16 * hour)
    expect(await moneyOf(books)).toBe('50 pro:40')
    await settle(books, first, 25n)
    await books.pass(1)
    expect(await moneyOf(books)).toBe('50 pro:10')
    await settle(books, second, 4n)
    await books.pass(1)
    expect(await moneyOf(books)).toBe('50')
    expect((await kindsOf(books)).slice(2)).toEqual([60, 5, 6].map((amount) => `expiry ${amount} pro, 2027-01-15`))
  })

  test('another plan, other terms and the end of a plan begin with the next period', async () => {
    await using books = await openSteppedBooks(engine, 50n)
    const { database, workspaceId } = books
    await offer(books, planOf('small', 10n), planOf('large', 100n, { period: 'month' }))
    await choose(books, 'small')
    await choose(books, 'large')
    await offer(books, planOf('small', 11n))
    expect(await moneyOf(books)).toBe('50 small:10')
    await choose(books, 'small')
    await books.pass(16 * hour)
    expect(await moneyOf(books)).toBe('50 small:11')
    await choose(books, 'large')
    await books.pass(day)
    expect(await moneyOf(books)).toBe('50 large:100')
    await choose(books, undefined)
    expect(await readWorkspacePlan(database.sql, workspaceId)).toMatchObject({ planId: 'large', nextPlanId: undefined })
    await books.pass(14 * day)
    expect(await moneyOf(books)).toBe('50 large:100')
    await books.pass(day)
    expect(await moneyOf(books)).toBe('50')
    expect(await readWorkspacePlan(database.sql, workspaceId)).toBeUndefined()
  })

  test('a clock that is set by hours or by a year grants no period twice, and loses none', async () => {
    await using books = await openSteppedBooks(engine, 50n)
    await offer(books, planOf('daily', 10n, { expiresDays: 2 }))
    await choose(books, 'daily')
    for (const hours of [17, -17, 17, -9, 9, -17]) await books.set(hours * hour)
    await books.pass(16 * hour)
    const granted = async () => (await kindsOf(books)).filter((text) => text.startsWith('plan_credit'))
    const days = ['2027-01-15', '2027-01-16', '2027-01-17', '2027-01-18']
    expect(await granted()).toEqual(days.slice(0, 2).map((date) => `plan_credit 10 daily, ${date}`))
    // The year that never was has grants of its own; the days that follow have theirs all the same.
    await books.set(365 * day)
    await books.set(-365 * day)
    const before = await granted()
    await books.pass(day)
    await books.pass(day)
    expect((await granted()).slice(before.length)).toEqual(days.slice(2).map((date) => `plan_credit 10 daily, ${date}`))
    await expectBooksRight(books.database)
  })

  test('periods that passed while no gateway ran are granted as far as their credit has not expired', async () => {
    await using books = await openSteppedBooks(engine, 50n)
    await offer(books, planOf('daily', 10n, { expiresDays: 3 }))
    await choose(books, 'daily')
    await charge(books, 4n)
    await books.pass(10 * day)
    await books.restart()
    expect(await moneyOf(books)).toBe('50 daily:10 daily:10 daily:10')
    expect((await kindsOf(books)).slice(1)).toEqual([
      'plan_credit 10 daily, 2027-01-15',
      'expiry 6 daily, 2027-01-15',
      ...[23, 24, 25].map((date) => `plan_credit 10 daily, 2027-01-${date}`),
    ])
  })

  test('money that is taken back comes out of other money first', async () => {
    await using books = await openSteppedBooks(engine, 50n)
    const { workspaceId } = books
    await offer(books, planOf('pro', 100n))
    await choose(books, 'pro')
    const take = (amount: bigint) =>
      ledgerOf(books).correct({ workspaceId, direction: 'take', amount: amount as Nano, reason: 'wrong' })
    expect(await take(40n)).toMatchObject({ kind: 'corrected' })
    expect(await moneyOf(books)).toBe('10 pro:100')
    expect(await take(40n)).toMatchObject({ kind: 'corrected' })
    expect(await moneyOf(books)).toBe('0 pro:70')
    expect(await take(71n)).toMatchObject({ kind: 'insufficient' })
  })

  test('requests, grants and expiries at the same moment leave nothing out and count nothing twice', async () => {
    await using books = await openSteppedBooks(engine, 1000n)
    const { workspaceId, replicas } = books
    await offer(books, planOf('daily', 100n))
    await choose(books, 'daily')
    for (let round = 0; round < 6; round++) {
      const requests = Array.from({ length: 20 }, (_, at) => ({ at, request: holdOf(workspaceId, 7n) }))
      const run = async ({ at, request }: (typeof requests)[number]) => {
        const ledger = ledgerOf(books, at)
        if ((await ledger.hold(request)).kind === 'held') await ledger.settle(settlementOf(request.requestId, 5n))
      }
      const renewals = replicas.flatMap(({ ledger }) => [ledger.renewPlans(), ledger.renewPlans(workspaceId)])
      await Promise.all([...requests.map(run), books.pass(12 * hour), ...renewals])
      await expectBooksRight(books.database)
    }
    // Twenty charges of 5 in each round, 100 a round; three or four days of 100 each were granted before them.
    const charged = await books.database.sql<{
      total: bigint
    }>`SELECT CAST(SUM(charge) AS BIGINT) AS total FROM charges`
    expect(charged[0]?.total).toBe(600n)
    const granted = (await kindsOf(books)).filter((text) => text.startsWith('plan_credit'))
    expect(new Set(granted).size).toBe(granted.length)
    expect(granted).toHaveLength(4)
  })

  test('a month of a plan that is spent, renewed and changed is what a list of its grants says', async () => {
    await using books = await openSteppedBooks(engine, 200n)
    const { database, workspaceId } = books
    await offer(
      books,
      planOf('daily', 10n, { expiresDays: 3 }),
      planOf('weekly', 60n, { period: 'week' }),
      planOf('monthly', 300n, { period: 'month' }),
    )
    const expected: { planId: string; left: bigint; expiresAt: number }[] = []
    let other = 200n
    const now = () => books.minute() * 60_000
    const startOfDay = () => now() - (now() % 86_400_000)
    const grant = (planId: string, left: bigint, expiresAt: number) => expected.push({ planId, left, expiresAt })
    const spend = async (amount: bigint) => {
      await charge(books, amount)
      let due = amount
      for (const credit of expected.sort((a, b) => a.expiresAt - b.expiresAt)) {
        const used = due < credit.left ? due : credit.left
        credit.left -= used
        due -= used
      }
      other -= due
    }
    const check = async () => {
      const open = expected.filter(({ left, expiresAt }) => left > 0n && expiresAt > now())
      const credits = open.sort((a, b) => a.expiresAt - b.expiresAt).map(({ planId, left }) => `${planId}:${left}`)
      expect(await moneyOf(books)).toBe([other, ...credits].join(' '))
      for (const credit of expected) if (credit.expiresAt <= now()) credit.left = 0n
      // The balance by plain SQL, from the transfers alone.
      const [row] = await database.sql<{ posted: bigint; balance: bigint }>`SELECT posted, CAST((
          SELECT SUM(CASE WHEN credit_account = account_id THEN amount ELSE -amount END) FROM transfers
          WHERE account_id IN (credit_account, debit_account)) AS BIGINT) AS balance
        FROM balances WHERE account_id = ${`wallet:${workspaceId}`}`
      expect(row?.balance).toBe(row?.posted)
    }
    await choose(books, 'daily')
    grant('daily', 10n, now() + 3 * 86_400_000)
    const amounts = [3n, 0n, 25n, 1n, 14n, 8n, 31n]
    // To 2027-02-15; the plan changes to the weekly one on Monday the 25th, and with its week's end to the monthly one.
    for (let at = 0; at < 31; at++) {
      const amount = amounts[at % amounts.length] ?? 0n
      if (amount > 0n) await spend(amount)
      // To the day before, and to the present day again.
      if (at % 5 === 2) for (const hours of [-3, 3]) await books.set(hours * hour)
      if (at === 9) await choose(books, 'weekly')
      if (at === 13) await choose(books, 'monthly')
      if (at % 7 === 5) await books.restart()
      await books.pass(at === 0 ? 17 * hour : day)
      const start = startOfDay()
      const date = new Date(start).toISOString().slice(0, 10)
      if (date < '2027-01-25') grant('daily', 10n, start + 3 * 86_400_000)
      if (date === '2027-01-25') grant('weekly', 60n, Date.UTC(2027, 1, 1))
      if (date === '2027-02-01') grant('monthly', 300n, Date.UTC(2027, 2, 1))
      await check()
    }
    expect(await ledgerOf(books).wallet(workspaceId)).toMatchObject({ held: 0n })
  })

  test('a process that is killed while credit is granted and expires leaves all of it or nothing', async () => {
    // 1 and 2: before and after the money moved, inside the transaction; 3: after the commit; 4: not at all.
    for (const dieAt of [1, 2, 3, 4]) {
      await using store = await engine.openStore()
      const workspaceId = await addWorkspace(store.database)
      await beginYesterday(store.database, workspaceId)
      await store.database.close()
      const child = startLedgerChild(store.place, 'renew', workspaceId, String(dieAt))
      await child.exited
      expect(child.signalCode).toBe(dieAt < 4 ? 'SIGKILL' : null)
      const database = await openDatabase(store.place)
      const moves = () => database.sql<{ kind: string; amount: bigint }>`SELECT kind, amount FROM fundings ORDER BY id`
      const [first, renewed] = [
        { kind: 'plan_credit', amount: 100n },
        [
          { kind: 'expiry', amount: 70n },
          { kind: 'plan_credit', amount: 100n },
          // Of a payment.
          { kind: 'plan_credit', amount: 40n },
        ],
      ]
      expect(await moves()).toEqual(dieAt < 3 ? [first] : [first, ...renewed])
      await using books = await openLedger(database, { clock: systemClock })
      for (let round = 0; round < 2; round++) expect(await books.ledger.renewPlans()).toBe(true)
      expect(await moves()).toEqual([first, ...renewed])
      expect(await books.ledger.wallet(workspaceId)).toMatchObject({ posted: 140n, held: 0n })
      await expectBooksRight(database)
      await books.ledger.close()
      await database.close()
    }
  })

  test('a process that is killed while it spends credit that expires leaves books that are right', async () => {
    await using store = await engine.openStore()
    const workspaceId = await addWorkspace(store.database)
    {
      await using books = await openLedger(store.database, { clock: systemClock })
      const terms = { credit: 1000n, days: 300 }
      await storyPlan(store.database, workspaceId, systemClock.now(), terms).begin()
      await books.ledger.fund({ workspaceId, amount: 1_000_000n as Nano, kind: 'topup' })
      expect(await books.ledger.renewPlans()).toBe(true)
    }
    await store.database.close()
    const child = startLedgerChild(store.place, 'spend a plan', workspaceId)
    let told = ''
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      told += chunk
      if (countOf(told, '.') >= 50 && countOf(told, 'x') >= 5) child.kill('SIGKILL')
    }
    await child.exited
    const database = await openDatabase(store.place)
    await using books = await openLedger(database, { clock: systemClock })
    const [row] = await database.sql<{ charges: bigint; expiries: bigint; used: bigint }>`SELECT
      (SELECT COUNT(*) FROM charges) AS charges, (SELECT COUNT(*) FROM fundings WHERE kind = 'expiry') AS expiries,
      (SELECT CAST(SUM(u.amount) AS BIGINT) FROM credit_uses u JOIN transfers t ON t.id = u.transfer_id
        WHERE t.kind = 'charge') AS used`
    expect(Number(row?.charges)).toBeGreaterThanOrEqual(countOf(told, '.'))
    expect(row?.expiries).toBeGreaterThan(0n)
    // There was credit all the time.
    expect(row?.used).toBe(7n * (row?.charges ?? 0n))
    await expectBooksRight(database)
    await books.ledger.close()
    await database.close()
  })
})

function countOf(text: string, letter: string): number {
  return text.split(letter).length - 1
}

/** A plan whose first day is over, with 70 of its 100 left, and a payment that has not granted its credit. */
async function beginYesterday(database: Database, workspaceId: WorkspaceId): Promise<void> {
  await using books = await openLedger(database, { clock: systemClock })
  await database.transaction(async (sql) => {
    await putPlan(sql, planOf('pro', 100n), 0)
    await setWorkspacePlan(sql, workspaceId, 'pro')
  })
  await books.ledger.renewPlans()
  const request = holdOf(workspaceId, 30n)
  await books.ledger.hold(request)
  await books.ledger.settle(settlementOf(request.requestId, 30n))
  await database.transaction(async (sql) => {
    await sql`UPDATE credits SET time_window = 'day:2020-01-01', expires_at = 1577923200000`
    await sql`UPDATE workspace_plans SET starts_at = 1, ends_at = 2`
    const [startsAt, endsAt] = [systemClock.now(), systemClock.now() + 86_400_000]
    const payment = { id: 'in_1', workspaceId, planId: 'max', paid: 30n as Nano, credit: 40n as Nano }
    await recordPlanPayment(sql, { ...payment, startsAt, endsAt, expiresDays: undefined, createdAt: startsAt })
  })
}
