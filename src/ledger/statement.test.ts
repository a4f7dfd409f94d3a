import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { addWorkspace, expectBooksRight, holdOf, openLedger, settlementOf } from '../../test/parts/ledger.ts'
import { firstIdAt, type RequestId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { putPlan, setWorkspacePlan } from './plans.ts'
import { readStatement, signedAmount } from './statement.ts'

const dayMs = 86_400_000

forEachEngine((_, storeTest) => {
  storeTest('statements add up from month to month, to the balance and to what verify finds', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    const other = await addWorkspace(database)
    await using books = await openLedger(database)
    const { ledger, clock, timers } = books
    let requests = 0
    const charge = async (amount: bigint, startedAt: number, payer = workspaceId, totalMs = 0) => {
      const id = `${firstIdAt(startedAt).slice(0, -6)}${String(++requests).padStart(6, '0')}` as RequestId
      const request = holdOf(payer, amount, id)
      expect(await ledger.hold(request)).toMatchObject({ kind: 'held' })
      const settlement = settlementOf(request.requestId, amount, { startedAt, totalMs })
      expect(await ledger.settle(settlement)).toMatchObject({ kind: 'settled' })
    }
    // 15 January 2027: 10,000 come in, 30 are charged. 4 February: 500 come in, 70 are taken back, 12 and 8 are charged.
    await ledger.fund({ workspaceId, amount: 10_000n as Nano, kind: 'topup' })
    await ledger.fund({ workspaceId: other, amount: 999n as Nano, kind: 'topup' })
    await charge(30n, clock.now())
    clock.advance(20 * dayMs)
    // With a heartbeat: a replica that was silent for long is taken for dead.
    await timers.round()
    await ledger.fund({ workspaceId, amount: 500n as Nano, kind: 'topup', reference: 'invoice 17' })
    await ledger.correct({ workspaceId, amount: 70n as Nano, direction: 'take', reason: 'refund' })
    await charge(12n, clock.now())
    await charge(8n, clock.now())
    // The other workspace pays 4 of its 5 from the credit of a plan.
    await database.transaction(async (sql) => {
      const terms = { id: 'pro', name: 'Pro', credit: 4n as Nano, period: 'month' } as const
      await putPlan(sql, { ...terms, expiresDays: undefined, price: undefined }, clock.now())
      await setWorkspacePlan(sql, other, 'pro')
    })
    expect(await ledger.renewPlans(other)).toBe(true)
    await charge(5n, clock.now(), other)
    const paid = await readStatement(database, other, '2027-02')
    expect(paid?.charges).toMatchObject([{ requests: 1, amount: 5n, planCredit: 4n }])

    const seen = async (month: string) => {
      const { opening, closing, fundings, charges } = (await readStatement(database, workspaceId, month)) ?? {}
      const came = fundings?.map((funding) => [funding.kind, signedAmount(funding, workspaceId), funding.reference])
      return [opening, came, charges?.map(({ requests, amount }) => [requests, amount]), closing] as unknown[]
    }
    expect(await seen('2026-12')).toEqual([0n, [], [], 0n])
    expect(await seen('2027-01')).toEqual([0n, [['topup', 10_000n, undefined]], [[1, 30n]], 9970n])
    const came = [
      ['topup', 500n, 'invoice 17'],
      ['correction', -70n, 'refund'],
    ]
    expect(await seen('2027-02')).toEqual([9970n, came, [[2, 20n]], 10_380n])
    expect(await seen('2027-03')).toEqual([10_380n, [], [], 10_380n])
    expect((await ledger.wallet(workspaceId)).posted).toBe(10_380n as Nano)
    // 6 March: a dispute of 12,000 takes the 10,380 and writes off the rest. Then 90 come in, and the dispute is won.
    clock.advance(30 * dayMs)
    await timers.round()
    const dispute = { workspaceId, reason: 'dispute' } as const
    const lost = {
      ...dispute,
      amount: 12_000n as Nano,
      direction: 'take',
      paymentId: 'du_1',
      writeOff: 'rest',
    } as const
    expect(await ledger.correct(lost)).toMatchObject({ kind: 'corrected', posted: 0n })
    await ledger.fund({ workspaceId, amount: 90n as Nano, kind: 'topup' })
    expect(await seen('2027-03')).toEqual([
      10_380n,
      [
        ['correction', -10_380n, 'dispute'],
        ['topup', 90n, undefined],
      ],
      [],
      90n,
    ])
    clock.advance(31 * dayMs)
    await timers.round()
    // Began in March, which its id says, and ended in April.
    await charge(40n, Date.UTC(2027, 3, 1) - 10_000, workspaceId, 20_000)
    const won = { ...dispute, amount: 10_380n as Nano, direction: 'add', paymentId: 'du_1:returned' } as const
    expect(await ledger.correct({ ...won, writeOff: 1620n as Nano })).toMatchObject({ kind: 'corrected' })
    expect(await seen('2027-04')).toEqual([90n, [['correction', 10_380n, 'dispute']], [[1, 40n]], 10_430n])
    // Months before are as they were.
    expect((await seen('2027-03')).at(-1)).toBe(90n)
    expect(await seen('2027-02')).toEqual([9970n, came, [[2, 20n]], 10_380n])
    expect(await seen('2027-01')).toEqual([0n, [['topup', 10_000n, undefined]], [[1, 30n]], 9970n])
    expect((await ledger.wallet(workspaceId)).posted).toBe(10_430n as Nano)
    expect(await readStatement(database, workspaceId, '2027-13')).toBeUndefined()
    await expectBooksRight(database)
  })
})
