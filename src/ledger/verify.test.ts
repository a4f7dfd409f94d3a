import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import { addWorkspace, holdOf, openLedger, settlementOf } from '../../test/parts/ledger.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { insertRows } from '../store/insert-rows.ts'
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
  const outcome = await books.ledger.settle({
    ...settlementOf(request.requestId, 7n),
    priceVersion: 'pv_1',
    usage: '7',
  })
  if (outcome.kind !== 'settled') throw new Error('not settled')
  return {
    database,
    workspaceId,
    requestId: request.requestId,
    charge: outcome.transfer,
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

function addTransfer(database: Database, columns: Record<string, SqlValue>): Promise<unknown> {
  const row = { id: 'tr_Z1', kind: 'charge', request_id: 'req_x', seq: 0n, debit_account: 'funding', ...columns }
  const rest = { credit_account: 'revenue', amount: 0n, estimated: 0n, created_at: 1_800_000_000_000n }
  return database.transaction((sql) => sql`INSERT INTO transfers ${sql([{ ...rest, ...row }])}`)
}

forEachEngine((engine) => {
  test('right books have no findings, and their rows are counted', async () => {
    await using books = await setUp(engine)
    const priced = await verify(books.database, { price: (_version, usage) => BigInt(usage) as Nano })
    expect(priced).toEqual({ findings: [], wallets: 1n, transfers: 2n })
  })

  test('a balance that the transfers do not explain is found', async () => {
    await using books = await setUp(engine)
    await books.database.transaction((sql) => sql`UPDATE balances SET posted = posted + 1`)
    expect(await findingsOf(books.database)).toEqual([
      `balance = Σ transfers: wallet:${books.workspaceId}: posted 94, transfers say 93`,
    ])
  })

  test('held money without an open hold is found', async () => {
    await using books = await setUp(engine)
    await books.database.transaction((sql) => sql`UPDATE balances SET held = 3`)
    expect(await findingsOf(books.database)).toEqual([
      `held = Σ open holds: wallet:${books.workspaceId}: held 3, open holds say 0`,
    ])
  })

  test('a transfer between accounts that do not fit, or do not exist, is found', async () => {
    await using books = await setUp(engine)
    await addTransfer(books.database, { id: 'tr_Z1', request_id: 'req_1' })
    await addTransfer(books.database, { id: 'tr_Z2', request_id: 'req_2', debit_account: 'wallet:ws_none' })
    await addTransfer(books.database, { id: 'tr_Z3', kind: 'correction' })
    expect(await findingsOf(books.database)).toEqual([
      'accounts fit the transfer: tr_Z1: charge from funding to revenue',
      'accounts fit the transfer: tr_Z2: charge from no account to revenue',
      'accounts fit the transfer: tr_Z3: correction from funding to revenue',
    ])
  })

  test('a second charge of a request is found', async () => {
    await using books = await setUp(engine)
    const { database, workspaceId, requestId } = books
    await addTransfer(database, { request_id: requestId, seq: 1n, debit_account: `wallet:${workspaceId}` })
    expect(await findingsOf(database)).toEqual([`one charge per request: ${requestId}: 2 charges`])
  })

  test('a wallet without a balance is found', async () => {
    await using books = await setUp(engine)
    const { database, workspaceId } = books
    await database.transaction(
      (sql) =>
        sql`INSERT INTO accounts (id, kind, workspace_id, created_at) VALUES ('lost', 'wallet', ${workspaceId}, 0)`,
    )
    expect(await findingsOf(database)).toEqual(['every wallet has a balance: lost: no row in balances'])
  })

  test('a hold that contradicts the charges is found', async () => {
    await using books = await setUp(engine)
    const { database, charge, requestId, workspaceId } = books
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
      `${rule}: ${requestId}: the hold is released, the charge is ${charge.id}`,
      `${rule}: req_ZZ: the hold is settled, there is no charge`,
    ])
  })

  test('a price version that does not exist, and a time that goes back, are found', async () => {
    await using books = await setUp(engine)
    const { database, workspaceId } = books
    const debit = { debit_account: `wallet:${workspaceId}` }
    await addTransfer(database, { ...debit, price_version: 'pv_9', created_at: 1_799_999_000_000n })
    expect(await findingsOf(database)).toEqual([
      'every price version exists: tr_Z1: pv_9',
      'ids and times ascend: tr_Z1: 1000000 ms before the one before',
    ])
  })

  test('a charge that its usage does not give is found, with what was written off counted in', async () => {
    await using books = await setUp(engine)
    const { database, charge, workspaceId } = books
    const priceOf = (price: bigint | undefined) => findingsOf(database, () => price as Nano | undefined)
    const rule = 'charge = price of the usage'
    expect(await priceOf(8n)).toEqual([`${rule}: ${charge.id}: charged 7, pv_1 says 8`])
    expect(await priceOf(undefined)).toEqual([`${rule}: ${charge.id}: charged 7, pv_1 says nothing`])
    await addTransfer(database, {
      kind: 'writeoff',
      request_id: charge.requestId ?? null,
      debit_account: 'writeoff',
      amount: 2n,
    })
    expect(await priceOf(9n)).toEqual([])
    // An estimate may have been capped by its hold.
    const estimate = { price_version: 'pv_1', usage: '', estimated: 1n, debit_account: `wallet:${workspaceId}` }
    await addTransfer(database, { ...estimate, id: 'tr_Z2', request_id: 'req_e' })
    expect(await priceOf(9n)).toEqual([])
  })

  test('a budget that the charges of its window do not explain is found, also one without a row', async () => {
    await using books = await setUp(engine)
    const { database, workspaceId } = books
    const columns = { debit_account: 'grants', credit_account: `wallet:${workspaceId}`, kind: 'grant' }
    expect(await findingsOf(database)).toEqual([])
    const day = 'day:2027-01-15'
    await database.transaction(
      (sql) => sql`INSERT INTO budgets (scope_id, time_window, spent, held)
        VALUES ('key_1', ${day}, 7, 0), ('key_2', ${day}, 0, 2), ('key_3', 'day:2026-01-01', 5, 0)`,
    )
    await addTransfer(database, { ...columns, request_id: null, amount: 5n })
    const charge = { debit_account: `wallet:${workspaceId}`, amount: 3n, budgets: `key_1 ${day},prj_1 ${day}` }
    await addTransfer(database, { ...charge, id: 'tr_Z2', request_id: 'req_1' })
    await database.transaction((sql) => sql`UPDATE balances SET posted = posted + 2`)
    // What is long past was cleaned away, or will be.
    expect((await findingsOf(database)).sort()).toEqual([
      `a budget's held = Σ open holds: key_2 ${day}: held 2, open holds say 0`,
      `a budget's spent = Σ charges of its window: key_1 ${day}: spent 7, charges say 3`,
      `a budget's spent = Σ charges of its window: prj_1 ${day}: spent 0, charges say 3`,
    ])
  })

  test('charges are looked at in pages, and the progress is told', async () => {
    await using books = await setUp(engine)
    const { database, workspaceId } = books
    const rows = Array.from({ length: 4500 }, (_, at) => ({
      id: `tr_Z${String(at).padStart(5, '0')}`,
      kind: 'charge',
      request_id: `req_${at}`,
      seq: 0n,
      debit_account: `wallet:${workspaceId}`,
      credit_account: 'revenue',
      amount: 0n,
      price_version: 'pv_1',
      usage: at === 4400 ? 'wrong' : 'right',
      estimated: 0n,
      created_at: 1_800_000_000_000n,
    }))
    await database.transaction((sql) => insertRows(sql, 'transfers', rows))
    const told: string[] = []
    const { findings } = await verify(database, {
      readPrice: async () => (_version, usage) => (usage === 'wrong' ? 1n : usage === '7' ? 7n : 0n) as Nano,
      onProgress: (done, total) => told.push(`${done} of ${total}`),
    })
    expect(findings).toEqual([
      { check: 'charge = price of the usage', id: 'tr_Z04400', detail: 'charged 0, pv_1 says 1' },
    ])
    expect(told).toEqual(['2000 of 4501', '4000 of 4501', '4501 of 4501'])
  })

  if (engine.name !== 'postgres') return

  test('an open hold that is late by more than a minute is found', async () => {
    await using books = await setUp(engine)
    const { database, workspaceId } = books
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
