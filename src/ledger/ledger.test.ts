import { expect } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import {
  addWorkspace,
  chargedRowOf,
  expectBooksRight,
  holdOf,
  openFunded,
  openLedger,
  settlementOf,
} from '../../test/parts/ledger.ts'
import { runTable } from '../../test/parts/ledger-table.ts'
import { createId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import { writeRequests } from '../store/request-rows.ts'

const tables: Record<string, string> = {
  'a charge below the hold frees the rest': `
    topup 100      → funded, posted 100
    hold a 30      → held
    wallet         → posted 100 held 30 free 70
    settle a 12    → charged 12
    wallet         → posted 88 held 0 free 88
    transfers a    → charge wallet>revenue 12`,

  'a hold is refused beyond the free part, and granted up to its last unit': `
    topup 100      → funded, posted 100
    hold a 61      → held
    hold b 40      → insufficient, posted 100 held 61
    hold c 39      → held
    hold d 1       → insufficient, posted 100 held 100
    release a      → released
    hold d 1       → held
    wallet         → posted 100 held 40 free 60`,

  'a wallet that was never funded is empty': `
    wallet         → posted 0 held 0 free 0
    hold a 1       → insufficient, posted 0 held 0
    settle a 1     → gone
    transfers a    → none`,

  'what costs nothing needs no money, and leaves its transfer': `
    hold a 0       → held
    settle a 0     → charged 0
    settle a 0     → found 0
    transfers a    → charge wallet>revenue 0
    wallet         → posted 0 held 0 free 0`,

  'an extension counts like a hold': `
    grant 100      → funded, posted 100
    hold a 60      → held
    extend a 41    → insufficient, posted 100 held 60
    extend a 40    → held
    hold b 1       → insufficient, posted 100 held 100
    settle a 95    → charged 95
    wallet         → posted 5 held 0 free 5
    extend a 1     → gone`,

  'calls resume with the first request after a top-up': `
    topup 5        → funded, posted 5
    hold a 6       → insufficient, posted 5 held 0
    topup 1        → funded, posted 6
    hold a 6       → held
    settle a 6     → charged 6
    wallet         → posted 0 held 0 free 0`,

  'a charge beyond the hold is taken from the free part': `
    topup 100      → funded, posted 100
    hold a 30      → held
    hold b 20      → held
    settle a 80    → charged 80
    wallet         → posted 20 held 20 free 0
    settle b 20    → charged 20
    wallet         → posted 0 held 0 free 0`,

  'what was delivered is paid as far as the free part goes, and the rest is written off': `
    topup 100      → funded, posted 100
    hold a 30      → held
    hold b 20      → held
    settle a 81    → charged 80, lost 1
    transfers a    → charge wallet>revenue 80, writeoff writeoff>revenue 1
    settle a 81    → found 80, lost 1
    wallet         → posted 20 held 20 free 0
    settle b 25    → charged 20, lost 5
    wallet         → posted 0 held 0 free 0`,

  'a hold is settled once, whatever is called later': `
    topup 100      → funded, posted 100
    hold a 30      → held
    settle a 10    → charged 10
    settle a 25    → found 10
    release a      → gone
    extend a 5     → gone
    settle a 0     → found 10
    wallet         → posted 90 held 0 free 90`,

  'a released hold cannot be charged': `
    topup 100      → funded, posted 100
    hold a 30      → held
    release a      → released
    release a      → gone
    settle a 10    → gone
    transfers a    → none
    wallet         → posted 100 held 0 free 100`,

  'nothing is known of a request that never held': `
    topup 100      → funded, posted 100
    settle a 10    → gone
    release a      → gone
    extend a 10    → gone
    wallet         → posted 100 held 0 free 100`,
}

forEachEngine((engine, storeTest) => {
  for (const [name, table] of Object.entries(tables)) {
    storeTest(name, async ({ database }) => {
      await runTable(database, table)
    })
  }

  storeTest(
    'a thousand holds at once on a wallet that can pay seven: seven are held, and the remainder is exact',
    async ({ database }) => {
      await using books = await openFunded(database, 75n)
      const { ledger, workspaceId } = books
      const requests = Array.from({ length: 1000 }, () => holdOf(workspaceId, 10n))
      const outcomes = await Promise.all(requests.map((request) => ledger.hold(request)))
      const held = requests.filter((_, at) => outcomes[at]?.kind === 'held')
      expect(held).toHaveLength(7)
      expect(outcomes.filter(({ kind }) => kind === 'insufficient')).toHaveLength(993)
      const settled = await Promise.all(held.map(({ requestId }) => ledger.settle(settlementOf(requestId, 10n))))
      expect(settled.map(({ kind }) => kind)).toEqual(Array(7).fill('settled'))
      expect(await ledger.wallet(workspaceId)).toEqual({ posted: 5n as Nano, held: 0n as Nano, available: 5n as Nano })
      await expectBooksRight(database)
    },
  )

  storeTest(
    'settling one request many times at once charges once, and every caller gets the charge',
    async ({ database }) => {
      await using books = await openFunded(database, 100n)
      const { ledger, workspaceId } = books
      const request = holdOf(workspaceId, 10n)
      await ledger.hold(request)
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, () => ledger.settle(settlementOf(request.requestId, 7n))),
      )
      expect(outcomes.map((outcome) => (outcome.kind === 'settled' ? outcome.charge : outcome.kind))).toEqual(
        outcomes.map(() => 7n as Nano),
      )
      expect(outcomes.filter((outcome) => outcome.kind === 'settled' && !outcome.repeated)).toHaveLength(1)
      expect((await ledger.wallet(workspaceId)).posted).toBe(93n as Nano)
    },
  )

  storeTest(
    'a transfer keeps usage and price version as they were given, and lists newest first in pages',
    async ({ database }) => {
      const workspaceId = await addWorkspace(database)
      await using books = await openLedger(database)
      const { ledger, clock } = books
      const other = await addWorkspace(database)
      await ledger.fund({ workspaceId: other, amount: 100n as Nano, kind: 'topup' })
      await ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'grant', reference: 'welcome' })
      for (const charge of [1n, 2n, 3n]) {
        clock.advance(1000)
        const request = holdOf(workspaceId, 10n)
        await ledger.hold(request)
        const facts = {
          priceVersion: `pv_${charge}`,
          usage: `{"n":${charge}}`,
          estimated: true,
          startedAt: clock.now(),
        }
        await ledger.settle(settlementOf(request.requestId, charge, facts))
      }
      const first = await ledger.transfers(workspaceId, { limit: 3 })
      expect(first.transfers.map(({ kind, amount }) => `${kind} ${amount}`)).toEqual([
        'charge 3',
        'charge 2',
        'charge 1',
      ])
      expect(first.transfers[0]).toMatchObject({
        priceVersion: 'pv_3',
        usage: '{"n":3}',
        estimated: true,
        debitAccount: `wallet:${workspaceId}`,
        creditAccount: 'revenue',
        createdAt: clock.now(),
      })
      const cursor = first.nextCursor ?? ''
      const second = await ledger.transfers(workspaceId, { limit: 3, cursor })
      expect(second.transfers.map(({ kind, amount, reference }) => `${kind} ${amount} ${reference}`)).toEqual([
        'grant 100 welcome',
      ])
      expect(second.nextCursor).toBeUndefined()
    },
  )

  storeTest('the row of the request log is written and counted with the charge', async ({ database }) => {
    await using books = await openFunded(database, 100n)
    const { ledger, workspaceId } = books
    const settle = async (id: string, cost = 4n) => {
      const request = holdOf(workspaceId, 10n, `req_${id}`)
      await ledger.hold(request)
      return ledger.settle(settlementOf(request.requestId, cost))
    }
    expect(await settle('first')).toMatchObject({ kind: 'settled' })
    const nothing = { workspaceId, charge: zeroNano, writtenOff: zeroNano, budgets: null }
    const logged = { ...chargedRowOf('req_logged', nothing), charge: null }
    await database.transaction((sql) => writeRequests(sql, engine.name, [logged]))
    // All at once: the one whose row exists already must not spoil the others, nor be charged. The embedded engine finds such
    // a row when it applies its journal: see the test there.
    const settling = [settle('second'), settle('third'), ...(engine.name === 'postgres' ? [settle('logged')] : [])]
    const outcomes = await Promise.allSettled(settling)
    const expected = ['fulfilled', 'fulfilled', 'rejected'].slice(0, settling.length)
    expect(outcomes.map(({ status }) => status as string)).toEqual(expected)
    const rows = await database.sql<{ id: string }>`SELECT id FROM requests WHERE charge = 4 ORDER BY id`
    expect(rows.map(({ id }) => id)).toEqual(['req_first', 'req_second', 'req_third'])
    // The row says what was paid: of a thousand the 88 that are left.
    await settle('fourth', 1000n)
    expect([
      ...(await database.sql`SELECT id, charge FROM requests WHERE charge > 4 OR id = 'req_third' ORDER BY id`),
    ]).toEqual([
      { id: 'req_fourth', charge: 88n },
      { id: 'req_third', charge: 4n },
    ])
    const sums = await database.sql`SELECT requests, charge FROM request_hours
      WHERE workspace_id = ${workspaceId}`
    expect([...sums]).toEqual([{ requests: 5n, charge: 100n }])
    await books.timers.round()
    expect(await ledger.wallet(workspaceId)).toEqual({
      posted: 0n as Nano,
      held: 0n as Nano,
      available: 0n as Nano,
    })
    await expectBooksRight(database)
  })

  storeTest(
    'the wallet pays no more than the caller was quoted, and the rest is written off with the charge',
    async ({ database }) => {
      await using books = await openFunded(database, 100n)
      const { ledger, workspaceId } = books
      // A quote below the hold, and one above it.
      for (const [charge, quoted, posted] of [
        [9n, 6n, 94n],
        [30n, 20n, 74n],
      ] as const) {
        const request = holdOf(workspaceId, 10n)
        await ledger.hold(request)
        const settlement = { ...settlementOf(request.requestId, charge), quoted: quoted as Nano }
        expect(await ledger.settle(settlement)).toMatchObject({
          charge: quoted,
          writtenOff: charge - quoted,
        })
        const transfers = await ledger.transfersOf(request.requestId)
        expect(transfers.map(({ kind, amount }) => `${kind} ${amount}`)).toEqual([
          `charge ${quoted}`,
          `writeoff ${charge - quoted}`,
        ])
        expect(await ledger.wallet(workspaceId)).toMatchObject({ posted, held: 0n })
      }
      await expectBooksRight(database)
    },
  )

  storeTest('amounts near the limits stay exact', async ({ database }) => {
    const workspaceId = await addWorkspace(database)
    const posted = 8_999_999_999_999_999_999n
    await database.transaction(async (sql) => {
      const id = `wallet:${workspaceId}`
      await sql`INSERT INTO accounts (id, kind, workspace_id, created_at) VALUES (${id}, 'wallet', ${workspaceId}, 0)`
      await sql`INSERT INTO balances (account_id, posted, held) VALUES (${id}, ${posted}, 0)`
    })
    await using books = await openLedger(database)
    const { ledger } = books
    const fund = (amount: bigint) => ledger.fund({ workspaceId, amount: amount as Nano, kind: 'topup' })
    expect(await fund(2n)).toEqual({ kind: 'out_of_range', max: 9_000_000_000_000_000_000n as Nano })
    expect(await fund(1_000_000_000_000_001n)).toEqual({ kind: 'out_of_range', max: 1_000_000_000_000_000n as Nano })
    expect(await fund(0n)).toMatchObject({ kind: 'out_of_range' })
    expect(await fund(-5n)).toMatchObject({ kind: 'out_of_range' })
    expect(await fund(1n)).toMatchObject({ kind: 'funded', posted: 9_000_000_000_000_000_000n })
    const whole = holdOf(workspaceId, 9_000_000_000_000_000_000n)
    expect(await ledger.hold(whole)).toEqual({ kind: 'held' })
    expect(await ledger.hold(holdOf(workspaceId, 1n))).toMatchObject({ kind: 'insufficient' })
    expect(await ledger.hold(holdOf(workspaceId, 2n ** 63n - 1n))).toMatchObject({ kind: 'insufficient' })
    await ledger.settle(settlementOf(whole.requestId, 999_999_999_999_999n))
    expect((await ledger.wallet(workspaceId)).posted).toBe(8_999_000_000_000_000_001n as Nano)
    const [row] = await database.sql<{ posted: bigint }>`SELECT posted FROM balances`
    expect(row?.posted).toBe(8_999_000_000_000_000_001n)
  })

  storeTest(
    'the database refuses to change or remove a charge, a funding or a price, and to overdraw a wallet',
    async ({ database }) => {
      await using books = await openFunded(database, 100n)
      const { workspaceId } = books
      await database.transaction(
        (sql) => sql`INSERT INTO prices (version, model_id, price, source, effective_from)
        VALUES ('pv_1', 'acme/large', '{}', 'file', 0)`,
      )
      const refusal = (work: Parameters<typeof database.transaction>[0]) =>
        database.transaction(work).then(
          () => 'done',
          (thrown: Error) => thrown.message,
        )
      const request = holdOf(workspaceId, 10n)
      await books.ledger.hold(request)
      await books.ledger.settle(settlementOf(request.requestId, 4n))
      expect(await refusal((sql) => sql`UPDATE fundings SET amount = 1`)).toContain('fundings are append-only')
      expect(await refusal((sql) => sql`DELETE FROM fundings`)).toContain('fundings are append-only')
      expect(await refusal((sql) => sql`UPDATE requests SET charge = 1`)).toContain('charges are append-only')
      expect(await refusal((sql) => sql`UPDATE requests SET usage = ''`)).toContain('charges are append-only')
      expect(await refusal((sql) => sql`DELETE FROM requests`)).toContain('charges are append-only')
      expect(await refusal((sql) => sql`UPDATE prices SET price = ''`)).toContain('prices are append-only')
      expect(await refusal((sql) => sql`DELETE FROM prices`)).toContain('prices are append-only')
      expect(await refusal((sql) => sql`UPDATE balances SET posted = -1`)).toMatch(/check/i)
      expect(await refusal((sql) => sql`UPDATE balances SET held = 101`)).toMatch(/check/i)
      expect(await refusal((sql) => sql`UPDATE balances SET held = -1`)).toMatch(/check/i)
      expect(await refusal((sql) => sql`UPDATE balances SET posted = 9000000000000000001`)).toMatch(/check/i)
      await expectBooksRight(database)
    },
  )

  storeTest('a hold past its lifetime is reaped, and its late settlement charges nothing', async ({ database }) => {
    await using books = await openFunded(database, 100n)
    const { ledger, clock, workspaceId } = books
    const [old, sent, young] = [createId('req'), createId('req'), createId('req')]
    await ledger.hold({ ...holdOf(workspaceId, 10n, old), lifetimeMs: 0 })
    await ledger.hold({ ...holdOf(workspaceId, 20n, sent), lifetimeMs: 0 })
    await ledger.hold(holdOf(workspaceId, 30n, young))
    ledger.markSent(sent)
    clock.advance(1)
    // The database's own clock must have moved too; and the mark is written behind the next operation of the wallet.
    await Bun.sleep(2)
    await ledger.extend(young, 1n as Nano)
    expect([...(await ledger.reap())].sort((a, b) => (a.amount < b.amount ? -1 : 1))).toEqual([
      { requestId: old, amount: 10n as Nano, sent: false },
      { requestId: sent, amount: 20n as Nano, sent: true },
    ])
    expect(await ledger.settle(settlementOf(old, 5n))).toEqual({ kind: 'gone' })
    expect(await ledger.reap()).toEqual([])
    expect(await ledger.wallet(workspaceId)).toMatchObject({ posted: 100n, held: 31n })
    await expectBooksRight(database)
  })
})
