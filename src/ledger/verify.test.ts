import { expect } from 'bun:test'
import { forEachEngine, type TestEngine, testWith } from '../../test/parts/engines.ts'
import { addWorkspace, chargedRowOf, holdOf, openLedger, settlementOf } from '../../test/parts/ledger.ts'
import { createId, type WorkspaceId } from '../kernel/ids.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { insertRows } from '../store/insert-rows.ts'
import { type RequestRow, writeRequests } from '../store/request-rows.ts'
import type { SqlValue } from '../store/sql.ts'
import { verify } from './verify.ts'

/** One wallet with 100, of which 7 were charged at price pv_1 for usage "7". */
async function setUp(engine: TestEngine) {
  const store = await engine.openStore()
  const { database } = store
  const workspaceId = await addWorkspace(database)
  await database.transaction(
    (sql) => sql`INSERT INTO prices (version, model_id, price, source, effective_from)
      VALUES ('pv_1', 'acme/large', '{}', 'file', 0)`,
  )
  const books = await openLedger(database)
  await books.ledger.fund({ workspaceId, amount: 100n as Nano, kind: 'topup' })
  const request = holdOf(workspaceId, 10n)
  await books.ledger.hold(request)
  const facts = { priceVersion: 'pv_1', usage: '7', startedAt: books.clock.now() }
  expect(await books.ledger.settle(settlementOf(request.requestId, 7n, facts))).toMatchObject({ kind: 'settled' })
  return {
    database,
    workspaceId,
    requestId: request.requestId,
    async [Symbol.asyncDispose]() {
      await books[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

async function findingsOf(database: Database, price?: (version: string, usage: string) => Nano | undefined) {
  const { findings } = await verify(database, price ? { price } : {})
  return findings.map(({ check, id, detail }) => `${check}: ${id}: ${detail}`)
}

const startedAt = 1_800_000_000_000

/** A charge of nothing, unless the columns say otherwise. */
function addCharge(database: Database, workspaceId: WorkspaceId, columns: Partial<RequestRow>): Promise<unknown> {
  const charge = { workspaceId, charge: zeroNano, writtenOff: zeroNano, budgets: null }
  const row = { ...chargedRowOf('req_Z1', charge, { startedAt }), ...columns }
  return database.transaction((sql) => writeRequests(sql, database.engine, [row]))
}

function addFunding(database: Database, columns: Record<string, SqlValue>): Promise<unknown> {
  const row = { id: 'tr_Z1', kind: 'correction', workspace_id: 'ws_1', debit_account: 'funding', ...columns }
  const rest = { credit_account: 'revenue', amount: 0n, created_at: BigInt(startedAt) }
  return database.transaction((sql) => sql`INSERT INTO fundings ${sql([{ ...rest, ...row }])}`)
}

forEachEngine((engine) => {
  const storeTest = testWith(() => setUp(engine))

  storeTest('right books have no findings, and their rows are counted', async (books) => {
    const priced = await verify(books.database, { price: (_version, usage) => BigInt(usage) as Nano })
    expect(priced).toEqual({ findings: [], warnings: [], wallets: 1n, transfers: 2n })
  })

  storeTest(
    'a request long after a top-up, and a top-up long after that, are no warning',
    async ({ database, workspaceId }) => {
      const later = startedAt + 3_600_000
      await addCharge(database, workspaceId, { id: createId('req'), started_at: later })
      await addFunding(database, { id: createId('tr'), created_at: BigInt(later + 3_600_000) })
      expect((await verify(database)).warnings).toEqual([])
      // Written by a clock that is behind by two hours.
      const behind = createId('req')
      await addCharge(database, workspaceId, { id: behind, started_at: startedAt })
      expect((await verify(database)).warnings).toMatchObject([{ id: behind }])
    },
  )

  storeTest('a balance that the transfers do not explain is found', async (books) => {
    await books.database.transaction((sql) => sql`UPDATE balances SET posted = posted + 1`)
    expect(await findingsOf(books.database)).toEqual([
      `balance = Σ transfers: wallet:${books.workspaceId}: posted 94, transfers say 93`,
    ])
  })

  storeTest('held money without an open hold is found', async (books) => {
    await books.database.transaction((sql) => sql`UPDATE balances SET held = 3`)
    expect(await findingsOf(books.database)).toEqual([
      `held = Σ open holds: wallet:${books.workspaceId}: held 3, open holds say 0`,
    ])
  })

  storeTest('a transfer between accounts that do not fit, or do not exist, is found', async ({ database }) => {
    await addFunding(database, { id: 'tr_Z1', debit_account: 'wallet:ws_none', credit_account: 'funding' })
    await addFunding(database, { id: 'tr_Z3' })
    await addCharge(database, 'ws_none', { id: 'req_Z2', charge: 1 })
    // A workspace that was never funded has no wallet, and can still make calls that cost nothing.
    await addCharge(database, 'ws_none', { id: 'req_Z4' })
    expect(await findingsOf(database)).toEqual([
      'accounts fit the transfer: tr_Z1: correction from no account to funding',
      'accounts fit the transfer: tr_Z2: charge from no account to revenue',
      'accounts fit the transfer: tr_Z3: correction from funding to revenue',
    ])
  })

  storeTest('a second charge of a request is found', async ({ database, workspaceId, requestId }) => {
    const archived = { id: requestId, workspace_id: workspaceId, created_at: 0n, charge: 0n, estimated: 0n }
    await database.transaction((sql) => sql`INSERT INTO archived_charges ${sql([archived])}`)
    expect(await findingsOf(database)).toEqual([
      `one charge per request: ${requestId}: charged in the log and in the archive`,
    ])
  })

  storeTest('a wallet without a balance is found', async ({ database, workspaceId }) => {
    await database.transaction(
      (sql) =>
        sql`INSERT INTO accounts (id, kind, workspace_id, created_at) VALUES ('lost', 'wallet', ${workspaceId}, 0)`,
    )
    expect(await findingsOf(database)).toEqual(['every wallet has a balance: lost: no row in balances'])
  })

  storeTest('a hold that contradicts the charges is found', async ({ database, requestId, workspaceId }) => {
    const hold = {
      wallet_id: `wallet:${workspaceId}`,
      key_id: 'key_1',
      project_id: 'prj_1',
      amount: 1n,
      owner: 'rep_1',
      epoch: 1n,
      expires_at: 9_000_000_000_000n,
    }
    await database.transaction(async (sql) => {
      await sql`DELETE FROM holds`
      const rows = [
        { ...hold, request_id: requestId, state: 'released' },
        { ...hold, request_id: 'req_ZZ', state: 'settled' },
      ]
      await sql`INSERT INTO holds ${sql(rows)}`
    })
    const rule = 'a hold is settled if and only if it was charged'
    expect(await findingsOf(database)).toEqual([
      `${rule}: ${requestId}: the hold is released, the charge is tr_${requestId.slice(4)}`,
      `${rule}: req_ZZ: the hold is settled, there is no charge`,
    ])
  })

  storeTest(
    'a price version that does not exist is found, and a time that goes back is a warning',
    async ({ database, workspaceId }) => {
      await addCharge(database, workspaceId, { price_version: 'pv_9', started_at: 1_799_999_000_000 })
      expect(await findingsOf(database)).toEqual(['every price version exists: tr_Z1: pv_9'])
      const { warnings } = await verify(database)
      expect(warnings).toMatchObject([{ check: 'ids and times ascend', id: 'req_Z1' }])
      // 1,799,999,000 s after 1970; the request before it started 1,000 s later than that.
      expect(warnings[0]?.detail).toMatch(
        /^written at 2027-01-15T07:43:20\.000Z, 1000 s earlier than req_\w+ before it: a clock/,
      )
    },
  )

  storeTest(
    'a charge that its usage does not give is found, with what was written off counted in',
    async ({ database, requestId, workspaceId }) => {
      const priceOf = (price: bigint | undefined) => findingsOf(database, () => price as Nano | undefined)
      const rule = 'charge = price of the usage'
      expect(await priceOf(8n)).toEqual([`${rule}: ${requestId}: charged 7, pv_1 says 8`])
      expect(await priceOf(undefined)).toEqual([`${rule}: ${requestId}: charged 7, pv_1 says nothing`])
      await addCharge(database, workspaceId, { price_version: 'pv_1', written_off: 7 })
      expect(await priceOf(7n)).toEqual([])
      // An estimate may have been capped by its hold.
      await addCharge(database, workspaceId, { id: 'req_Z2', price_version: 'pv_1', usage: '', estimated: 1 })
      expect(await priceOf(7n)).toEqual([])
    },
  )

  storeTest(
    'a budget that the charges of its window do not explain is found, also one without a row',
    async ({ database, workspaceId }) => {
      const grant = { kind: 'grant', debit_account: 'grants', credit_account: `wallet:${workspaceId}`, amount: 5n }
      expect(await findingsOf(database)).toEqual([])
      const day = 'day:2027-01-15'
      await database.transaction(
        (sql) => sql`INSERT INTO budgets (scope_id, time_window, spent, held)
        VALUES ('key_1', ${day}, 7, 0), ('key_2', ${day}, 0, 2), ('key_3', 'day:2026-01-01', 5, 0)`,
      )
      await addFunding(database, grant)
      await addCharge(database, workspaceId, { charge: 3, budgets: `key_1 ${day},prj_1 ${day}` })
      await database.transaction((sql) => sql`UPDATE balances SET posted = posted + 2`)
      // Old rows were removed, or will be.
      expect((await findingsOf(database)).sort()).toEqual([
        `a budget's held = Σ open holds: key_2 ${day}: held 2, open holds say 0`,
        `a budget's spent = Σ charges of its window: key_1 ${day}: spent 7, charges say 3`,
        `a budget's spent = Σ charges of its window: prj_1 ${day}: spent 0, charges say 3`,
      ])
    },
  )

  storeTest('charges are read in pages, and the progress is reported', async ({ database, workspaceId }) => {
    const rows = Array.from({ length: 4500 }, (_, at) => ({
      id: `req_Z${String(at).padStart(5, '0')}`,
      workspace_id: workspaceId,
      created_at: BigInt(startedAt),
      charge: 0n,
      price_version: 'pv_1',
      usage: at === 4400 ? 'wrong' : 'right',
      estimated: 0n,
    }))
    await database.transaction((sql) => insertRows(sql, 'archived_charges', rows))
    const reported: string[] = []
    const { findings } = await verify(database, {
      readPrice: async () => (_version, usage) => (usage === 'wrong' ? 1n : usage === '7' ? 7n : 0n) as Nano,
      onProgress: (done, total) => reported.push(`${done} of ${total}`),
    })
    expect(findings).toEqual([
      { check: 'charge = price of the usage', id: 'req_Z04400', detail: 'charged 0, pv_1 says 1' },
    ])
    expect(reported).toEqual(['1 of 4501', '2001 of 4501', '4001 of 4501', '4501 of 4501'])
  })

  if (engine.name !== 'postgres') return

  storeTest('an open hold that is late by more than a minute is found', async ({ database, workspaceId }) => {
    await using other = await openLedger(database)
    const request = holdOf(workspaceId, 5n)
    await other.ledger.hold(request)
    expect(await findingsOf(database)).toEqual([])
    await database.transaction((sql) => sql`UPDATE holds SET expires_at = expires_at - ${21n * 60_000n}`)
    expect((await findingsOf(database)).join()).toMatch(
      new RegExp(`^no open hold past its lifetime: ${request.requestId}: 6[0-9]{4} ms late$`),
    )
  })
})
