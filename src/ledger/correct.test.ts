import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import {
  addWorkspace,
  expectBooksRight,
  holdOf,
  openFunded,
  openLedger,
  settlementOf,
} from '../../test/parts/ledger.ts'
import { runTable } from '../../test/parts/ledger-table.ts'
import { createId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import type { Correction } from './fund.ts'

const tables: Record<string, string> = {
  'a correction adds like a top-up, and takes what is free to the last unit': `
    topup 100             → funded, posted 100
    add 5                 → corrected, posted 105
    take 30               → corrected, posted 75
    wallet                → posted 75 held 0 free 75
    take 76               → insufficient, posted 75 held 0
    take 75               → corrected, posted 0
    take 1                → insufficient, posted 0 held 0
    hold a 1              → insufficient, posted 0 held 0`,

  'what running requests hold is not taken, and is there when they are charged': `
    topup 100             → funded, posted 100
    hold a 60             → held
    take 41               → insufficient, posted 100 held 60
    take 40               → corrected, posted 60
    extend a 1            → insufficient, posted 60 held 60
    settle a 60           → charged 60
    wallet                → posted 0 held 0 free 0`,

  'what a request costs beyond its hold is paid as far as a correction has left it': `
    topup 100             → funded, posted 100
    hold a 30             → held
    take 50               → corrected, posted 50
    settle a 70           → charged 50, lost 20`,

  'nothing can be taken from a wallet that was never funded, and adding makes it': `
    take 1                → insufficient, posted 0 held 0
    add 7                 → corrected, posted 7
    hold a 7              → held
    settle a 3            → charged 3
    wallet                → posted 4 held 0 free 4`,

  'an amount of nothing, or of more than a million dollars, is no correction': `
    topup 5               → funded, posted 5
    take 0                → out_of_range
    add 0                 → out_of_range
    add 1000000000000001  → out_of_range
    take 1000000000000001 → out_of_range
    wallet                → posted 5 held 0 free 5`,

  'a correction counts in no spend limit': `
    topup 100             → funded, posted 100
    hold a 10 day<=50     → held
    take 80               → corrected, posted 20
    settle a 10           → charged 10
    budget day            → spent 10 held 0`,
}

forEachEngine((_, storeTest) => {
  for (const [name, table] of Object.entries(tables)) {
    storeTest(name, async ({ database }) => {
      await runTable(database, table)
    })
  }

  storeTest(
    'B2: a correction is a separate transfer between wallet and funding, with its reason',
    async ({ database }) => {
      const workspaceId = await addWorkspace(database)
      await using books = await openLedger(database)
      const { ledger } = books
      await ledger.fund({ workspaceId, amount: 2500n as Nano, kind: 'topup', reference: 'invoice 17' })
      await ledger.correct({ workspaceId, direction: 'take', amount: 2475n as Nano, reason: '25 was meant' })
      await ledger.correct({ workspaceId, direction: 'add', amount: 1n as Nano, reason: 'goodwill' })
      const { transfers } = await ledger.transfers(workspaceId, { limit: 10 })
      const wallet = `wallet:${workspaceId}` as const
      expect(transfers).toMatchObject([
        { kind: 'correction', debitAccount: 'funding', creditAccount: wallet, amount: 1n, reference: 'goodwill' },
        {
          kind: 'correction',
          debitAccount: wallet,
          creditAccount: 'funding',
          amount: 2475n,
          reference: '25 was meant',
        },
        { kind: 'topup', amount: 2500n },
      ])
      expect((await ledger.wallet(workspaceId)).posted).toBe(26n as Nano)
      await expectBooksRight(database)
    },
  )

  storeTest(
    'the same key corrects once, with the first answer, whatever the wallet has by then',
    async ({ database }) => {
      const workspaceId = await addWorkspace(database)
      await using books = await openLedger(database)
      const { ledger, clock, timers } = books
      await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup', idempotencyKey: 'k' })
      // The key of a top-up is another one.
      const correction: Correction = {
        workspaceId,
        direction: 'take',
        amount: 60n as Nano,
        reason: 'refund 7',
        idempotencyKey: 'k',
      }
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => ledger.correct(correction)))
      expect(outcomes.filter((outcome) => outcome.kind === 'corrected' && !outcome.repeated)).toHaveLength(1)
      expect(outcomes.every((outcome) => outcome.kind === 'corrected' && outcome.posted === 40n)).toBe(true)
      await ledger.correct({ ...correction, amount: 40n as Nano, idempotencyKey: 'another' })
      expect(await ledger.correct(correction)).toMatchObject({ kind: 'corrected', repeated: true, posted: 40n })
      const conflict = { kind: 'conflict' } as const
      expect(await ledger.correct({ ...correction, direction: 'add' })).toEqual(conflict)
      expect(await ledger.correct({ ...correction, amount: 61n as Nano })).toEqual(conflict)
      expect(await ledger.correct({ ...correction, reason: 'refund 8' })).toEqual(conflict)
      // A refusal leaves its key free.
      const other = { ...correction, idempotencyKey: 'later' }
      expect(await ledger.correct(other)).toMatchObject({ kind: 'insufficient', posted: 0n, held: 0n })
      await ledger.fund({ workspaceId, amount: 60n as Nano, kind: 'topup' })
      expect(await ledger.correct(other)).toMatchObject({ kind: 'corrected', repeated: false, posted: 0n })
      clock.set(25 * 60 * 60_000)
      await timers.round()
      expect(await ledger.correct(correction)).toMatchObject({ kind: 'corrected', repeated: true })
      clock.set(-25 * 60 * 60_000)
      clock.advance(24 * 60 * 60_000)
      await timers.round()
      expect(await ledger.correct(correction)).toMatchObject({ kind: 'insufficient' })
      expect((await ledger.wallet(workspaceId)).posted).toBe(0n as Nano)
      await expectBooksRight(database)
    },
  )

  storeTest('many that take at once, beside holds, take no more than there is', async ({ database }) => {
    await using books = await openFunded(database, 100n)
    const { ledger, workspaceId } = books
    const requests = Array.from({ length: 20 }, () => holdOf(workspaceId, 10n))
    const takes = Array.from({ length: 20 }, () =>
      ledger.correct({ workspaceId, direction: 'take', amount: 10n as Nano, reason: 'race' }),
    )
    const held = await Promise.all(requests.map((request) => ledger.hold(request)))
    const taken = await Promise.all(takes)
    const granted = requests.filter((_, at) => held[at]?.kind === 'held')
    expect(granted.length + taken.filter(({ kind }) => kind === 'corrected').length).toBe(10)
    expect(taken.every(({ kind }) => kind === 'corrected' || kind === 'insufficient')).toBe(true)
    for (const { requestId } of granted) {
      const outcome = await ledger.settle(settlementOf(requestId, 10n))
      expect(outcome).toMatchObject({ kind: 'settled', charge: 10n, writtenOff: 0n })
    }
    expect(await ledger.wallet(workspaceId)).toEqual({ posted: 0n, held: 0n, available: 0n } as never)
    await expectBooksRight(database)
  })

  storeTest('one that fails on the way leaves the wallet as it was, and its key free', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    let reached = 0
    await using books = await openLedger(database, {
      failpoint: (name) => {
        // The fourth is after the money has moved, and before the commit: two were the top-up's.
        if (name === 'in_topup' && ++reached === 4) throw new Error('cut')
        return undefined
      },
    })
    const { ledger } = books
    await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
    const correction: Correction = {
      workspaceId,
      direction: 'take',
      amount: 100n as Nano,
      reason: 'test',
      idempotencyKey: 'k',
    }
    await expect(ledger.correct(correction)).rejects.toThrow('cut')
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 0n })
    expect(ledger.stats().openHolds).toBe(0)
    expect(await ledger.correct(correction)).toMatchObject({ kind: 'corrected', repeated: false, posted: 0n })
    await expectBooksRight(database)
  })

  storeTest(
    'a workspace that does not exist cannot be corrected, and nothing is left of the try',
    async ({ database }) => {
      await using books = await openLedger(database)
      const correction: Correction = {
        workspaceId: createId('ws'),
        direction: 'take',
        amount: 5n as Nano,
        reason: 'test',
        idempotencyKey: 'k',
      }
      const fault = await books.ledger.correct(correction).catch((thrown: Error) => thrown.message)
      expect(String(fault).toLowerCase()).toContain('foreign key')
      expect(await database.sql`SELECT key FROM idempotency`).toHaveLength(0)
      expect(books.ledger.admits()).toBe(true)
    },
  )
})
