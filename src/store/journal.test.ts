import { Database as File } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { copyFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { answeredRequest } from '../../test/observe/observed-records.ts'
import { createThrowAwayFolder, forEachEngine, type TestStore } from '../../test/parts/engines.ts'
import { type Nano, zeroNano } from '../kernel/money.ts'
import { verify } from '../ledger/verify.ts'
import { chargedRequestRow } from '../telemetry/request-record.ts'
import { backUp } from './backup.ts'
import type { Database } from './database.ts'
import { insertRows } from './insert-rows.ts'
import { encodeRequests, type Journal, type JournalStatement, JournalTable } from './journal.ts'
import { openDatabase } from './open-database.ts'
import { type RequestRow, requestValues, writeRequests } from './request-rows.ts'
import { isStoreUnavailable } from './sql-error.ts'

const startedAt = Date.UTC(2026, 10, 15, 12)
const wallet = 'wallet:ws_1'
const caller = { workspaceId: 'ws_1', projectId: 'prj_1', keyId: 'key_1' } as const

interface Facts {
  readonly amount?: bigint
  readonly workspaceId?: 'ws_1' | 'ws_2'
  readonly budgets?: string
}

function charged(id: string, { amount = 1n, workspaceId = 'ws_1', budgets }: Facts = {}): RequestRow {
  const record = answeredRequest({ id: `req_${id}`, startedAt, caller: { ...caller, workspaceId } })
  return chargedRequestRow(record, { charge: amount as Nano, writtenOff: zeroNano, budgets: budgets ?? null })
}

async function addWallet({ database }: TestStore, posted: bigint): Promise<Journal> {
  await database.transaction(async (sql) => {
    await sql`INSERT INTO workspaces (id, name, created_at) VALUES ('ws_1', 'one', 0), ('ws_2', 'two', 0)`
    await sql`INSERT INTO accounts (id, kind, workspace_id, created_at) VALUES (${wallet}, 'wallet', 'ws_1', 0)`
    await sql`INSERT INTO balances (account_id, posted, held) VALUES (${wallet}, ${posted}, 0)`
  })
  if (!database.journal) throw new Error('the embedded engine has a journal')
  return database.journal
}

/** A statement of a process that dies as soon as it may not run another one. */
function dying(statement: JournalStatement, mayRun: () => boolean): JournalStatement {
  const orDie = () => {
    if (!mayRun()) throw new Error('killed')
  }
  return {
    run(...values) {
      orDie()
      return statement.run(...values)
    },
    get(...values) {
      orDie()
      return statement.get(...values)
    },
    finalize: () => statement.finalize(),
  }
}

async function contents({ sql }: Database) {
  const ids = async (table: string) => {
    const rows = await sql<{ id: string }>`SELECT id FROM ${sql(table)} ORDER BY id`
    return rows.map(({ id }) => id.replace(/^[a-z]+_/, '')).join(' ')
  }
  const balances = await sql<{ account_id: string; posted: bigint }>`SELECT account_id, posted FROM balances ORDER BY 1`
  const budgets = await sql<{ scope_id: string; spent: bigint }>`SELECT scope_id, spent FROM budgets ORDER BY 1`
  const [sum] = await sql<{ requests: bigint; charge: bigint }>`SELECT requests, charge FROM request_hours`
  return {
    requests: await ids('requests'),
    balances: balances.map((row) => `${row.account_id} ${row.posted}`).join(', '),
    budgets: budgets.map((row) => `${row.scope_id} ${row.spent}`).join(', '),
    sum: `${sum?.requests ?? 0} requests, ${sum?.charge ?? 0} nano`,
  }
}

forEachEngine((engine, storeTest) => {
  storeTest('inserts any number of rows', async ({ database }) => {
    await database.schemaTransaction((_sql, run) => run('CREATE TABLE numbers (id TEXT PRIMARY KEY, n BIGINT)'))
    const rows = Array.from({ length: 301 }, (_, n) => ({ id: `row ${n}`, n: BigInt(n) }))
    await database.transaction((sql) => insertRows(sql, 'numbers', rows))
    const [sums] = await database.sql<{ sum: bigint }>`SELECT CAST(SUM(n) AS BIGINT) AS sum FROM numbers`
    // 0 + 1 + … + 300 = 300 × 301 / 2.
    expect(sums).toEqual({ sum: 45_150n })
  })

  storeTest('a snapshot shows one moment, and cannot write', async ({ database }) => {
    await database.schemaTransaction((_sql, run) => run('CREATE TABLE wallets (id TEXT PRIMARY KEY, n BIGINT)'))
    const count = await database.snapshot(async (sql) => {
      const before = await sql`SELECT id FROM wallets`
      await database.transaction((writing) => writing`INSERT INTO wallets (id, n) VALUES ('a', 1)`)
      const after = await sql`SELECT id FROM wallets`
      return [before.length, after.length]
    })
    expect(count).toEqual([0, 0])
    expect(await database.sql`SELECT id FROM wallets`).toHaveLength(1)
    const fault = await database
      .snapshot((sql) => sql`INSERT INTO wallets (id, n) VALUES ('b', 1)`)
      .catch((thrown: Error) => thrown.message)
    expect(String(fault)).toMatch(/read-?only/)
  })

  if (engine.name !== 'sqlite') return

  storeTest('applies requests with all that belongs to their charges', async (store) => {
    const journal = await addWallet(store, 100n)
    await journal.append([
      charged('a', { amount: 3n, budgets: 'key_1 day:2026-11-15,ws_1 day:2026-11-15' }),
      charged('b', { amount: 4n, budgets: 'key_1 day:2026-11-15' }),
      // A workspace that was never funded has no wallet, and can still make calls that cost nothing.
      charged('c', { amount: 0n, workspaceId: 'ws_2' }),
    ])
    expect(await contents(store.database)).toEqual({
      requests: 'a b c',
      balances: 'wallet:ws_1 93',
      budgets: 'key_1 7, ws_1 3',
      sum: '3 requests, 7 nano',
    })
  })

  storeTest('a charge that the database refuses is kept and reported, and does not spoil the others', async (store) => {
    await store.database.close()
    const lines: string[] = []
    const database = await openDatabase({ ...store.place, report: (line) => void lines.push(line) })
    const journal = await addWallet({ ...store, database }, 10n)
    const budgets = 'key_1 day:2026-11-15'
    await database.transaction((sql) => writeRequests(sql, 'sqlite', [{ ...charged('d'), charge: null }]))
    await journal.append([
      charged('a', { amount: 5n, budgets }),
      charged('b', { amount: 6n, budgets }),
      charged('c', { workspaceId: 'ws_2', budgets }),
      charged('d', { amount: 0n }),
      charged('e', { amount: 5n, budgets }),
    ])
    await journal.apply()
    const books = { requests: 'a d e', balances: 'wallet:ws_1 0', budgets: 'key_1 10', sum: '3 requests, 10 nano' }
    expect(await contents(database)).toEqual(books)
    const refused = [
      ['req_b', 'CHECK constraint failed'],
      ['req_c', 'there is no balance of wallet:ws_2'],
      ['req_d', 'it is among the requests without a charge'],
    ] as const
    const kept = await database.sql<{ requests: string; refusal: string }>`SELECT requests, refusal FROM journal`
    const check = 'the database accepted every charge'
    const findings = (await verify(database)).findings.filter((finding) => finding.check === check)
    for (const [at, [id, message]] of refused.entries()) {
      expect(kept[at]?.requests).toContain(`[["${id}",`)
      expect(kept[at]?.refusal).toContain(message)
      expect(findings[at]?.detail).toContain(message)
      expect(lines[at]).toContain(`The database refused the charge of ${id}: ${message}`)
    }
    expect([kept.length, findings.length, lines.length]).toEqual([3, 3, 3])
    // They are not tried again, and the next charge is applied as usual.
    await journal.append([charged('f', { amount: 0n })])
    expect(await contents(database)).toEqual({ ...books, requests: 'a d e f', sum: '4 requests, 10 nano' })
    expect(lines).toHaveLength(3)
    await database.close()
  })

  storeTest('a request without a charge that the database refuses is reported, and nothing else', async (store) => {
    await store.database.close()
    const lines: string[] = []
    const database = await openDatabase({ ...store.place, report: (line) => void lines.push(line) })
    const journal = await addWallet({ ...store, database }, 10n)
    const nobody = { ...charged('b'), charge: null, workspace_id: null as never }
    await journal.append([charged('a', { amount: 4n }), nobody, { ...charged('c'), charge: null }])
    const books = { requests: 'a c', balances: 'wallet:ws_1 6', budgets: '', sum: '2 requests, 4 nano' }
    expect(await contents(database)).toEqual(books)
    expect(lines).toEqual([
      'The database refused req_b: NOT NULL constraint failed: requests.workspace_id. It has no charge, and is not in the request log. Please report this.',
    ])
    expect(await database.sql`SELECT 1 FROM journal`).toHaveLength(0)
    await database.close()
  })

  storeTest('a request that is appended without a charge later keeps the charge that it has', async (store) => {
    const journal = await addWallet(store, 10n)
    const late = { ...charged('a'), charge: null, status: 503, code: 'OVERLOADED', total_ms: 1 }
    await journal.append([charged('a', { amount: 4n }), late])
    await journal.apply()
    await journal.append([late])
    expect(await contents(store.database)).toMatchObject({ requests: 'a', balances: 'wallet:ws_1 6' })
    const [row] = await store.database.sql`SELECT status, code, charge, total_ms FROM requests`
    expect(row).toEqual({ status: 503n, code: 'OVERLOADED', charge: 4n, total_ms: BigInt(charged('a').total_ms) })
    const hours = await store.database.sql`SELECT cause, requests, errors FROM request_hours WHERE requests > 0`
    expect([...hours]).toEqual([{ cause: 'overloaded', requests: 1n, errors: 1n }])
  })

  storeTest('a request that is appended twice is charged once', async (store) => {
    const journal = await addWallet(store, 10n)
    const budgets = 'key_1 day:2026-11-15'
    await journal.append([charged('a', { amount: 3n, budgets })])
    await journal.append([charged('b', { amount: 1n }), charged('a', { amount: 3n, budgets })])
    await journal.apply()
    await journal.append([charged('a', { amount: 3n, budgets })])
    expect(await contents(store.database)).toEqual({
      requests: 'a b',
      balances: 'wallet:ws_1 6',
      budgets: 'key_1 3',
      sum: '2 requests, 4 nano',
    })
  })

  storeTest('killed between any two statements, nothing is lost and nothing is charged twice', async (store) => {
    await addWallet(store, 100n)
    await store.database.close()
    const budgets = 'key_1 day:2026-11-15'
    const requests = [charged('a', { amount: 3n, budgets }), charged('b', { amount: 4n, budgets })]
    for (let statements = 0, isOver = false; !isOver; statements++) {
      using copy = createThrowAwayFolder()
      const file = join(copy.path, 'tollgate.db')
      copyFileSync(join(store.place.dataFolder, 'tollgate.db'), file)
      const killed = new File(file)
      killed.run('PRAGMA journal_mode = WAL')
      let left = statements
      const journal = new JournalTable((text) => dying(killed.prepare(text), () => left-- > 0))
      let isDurable = false
      try {
        journal.append(encodeRequests(requests))
        isDurable = true
        journal.apply()
        isOver = true
      } catch (thrown) {
        expect(thrown).toEqual(new Error('killed'))
      }
      using next = createThrowAwayFolder()
      for (const name of ['tollgate.db', 'tollgate.db-wal']) {
        copyFileSync(join(copy.path, name), join(next.path, name))
      }
      killed.close()
      const database = await openDatabase({ url: undefined, dataFolder: next.path })
      // A read waits for this for a second at most, and a busy machine may need longer.
      await database.journal?.apply()
      expect(await contents(database)).toEqual(
        isDurable
          ? { requests: 'a b', balances: 'wallet:ws_1 93', budgets: 'key_1 7', sum: '2 requests, 7 nano' }
          : { requests: '', balances: 'wallet:ws_1 100', budgets: '', sum: '0 requests, 0 nano' },
      )
      await database.close()
      // Append, two looks into the journal, begin, two rows, wallet, budget, hour, removal, commit, a last look.
      if (isOver) expect(statements).toBe(12)
    }
  })

  storeTest('a journal of an older version has no values of newer columns', async (store) => {
    await addWallet(store, 100n)
    const values = requestValues(charged('old', { amount: 5n }))
    // The version before the last column, which is the budgets of the charge.
    const older = JSON.stringify([values.slice(0, -1)])
    await store.database.schemaTransaction((sql) => sql`INSERT INTO journal (requests) VALUES (${older})`)
    expect(await contents(store.database)).toMatchObject({ requests: 'old', balances: 'wallet:ws_1 95', budgets: '' })
  })

  storeTest('a closed database has an empty journal', async (store) => {
    const journal = await addWallet(store, 100n)
    await journal.append([charged('a', { amount: 7n })])
    await store.database.close()
    const raw = new File(join(store.place.dataFolder, 'tollgate.db'), { readonly: true })
    expect(raw.query('SELECT COUNT(*) AS n FROM journal').get()).toEqual({ n: 0 })
    expect(raw.query('SELECT charge FROM requests').all()).toEqual([{ charge: 7 }])
    raw.close()
  })

  storeTest('the tables of a backup have the charges that were still in the journal', async (store) => {
    await addWallet(store, 10n)
    const { dataFolder } = store.place
    const journal = new File(join(dataFolder, 'tollgate.db'))
    journal.run('INSERT INTO journal (requests) VALUES (?)', [encodeRequests([charged('a', { amount: 7n })])])
    journal.close()
    const file = join(dataFolder, 'backup.db')
    backUp({ dataFolder, file, secretFiles: [] })
    const copy = new File(file, { readonly: true })
    expect(copy.query('SELECT charge FROM requests').all()).toEqual([{ charge: 7 }])
    expect(copy.query('SELECT posted FROM balances').all()).toEqual([{ posted: 3 }])
    expect(copy.query('SELECT 1 FROM journal').all()).toEqual([])
    copy.close()
  })

  storeTest('texts and amounts cross to the writing thread as they are', async (store) => {
    const journal = await addWallet(store, 9_000_000_000_000_000_000n)
    const texts = ['', 'plain', '"quoted" \\ [1,-2]', 'line\nbreak', 'naïve', '水と金', '🙂']
    const amounts = [1n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n + 1n, 10n ** 15n - 1n, 10n ** 15n, 0n]
    await journal.append(
      texts.map((text, at) => ({ ...charged(`t${at}`, { amount: amounts[at] ?? 0n }), client: text, details: text })),
    )
    const rows = await store.database.sql<{ client: string; charge: bigint; details: string; type: string }>`
      SELECT client, charge, details, typeof(charge) AS type FROM requests ORDER BY id`
    expect([...rows]).toEqual(
      texts.map((text, at) => ({ client: text, charge: amounts[at] ?? 0n, details: text, type: 'integer' })),
    )
    const paid = amounts.reduce((sum, amount) => sum + amount, 0n)
    expect((await contents(store.database)).balances).toBe(`wallet:ws_1 ${9_000_000_000_000_000_000n - paid}`)
  })

  storeTest('a full disk fails the commit as a whole, and the next one works once there is room', async (store) => {
    const journal = await addWallet(store, 1000n)
    const { database } = store
    const allowPages = (count: number) =>
      database.schemaTransaction((_sql, run) => run(`PRAGMA max_page_count = ${count}`))
    await allowPages(1)
    const many = Array.from({ length: 500 }, (_, at) => charged(`w${at}`))
    const fault = await journal.append(many).catch((thrown: unknown) => thrown)
    expect(isStoreUnavailable(fault)).toBe(true)
    expect(await contents(database)).toMatchObject({ requests: '', balances: 'wallet:ws_1 1000' })
    await allowPages(1_000_000)
    await journal.append(many)
    // Reads wait for the writing thread only so long.
    await journal.apply()
    expect(await contents(database)).toMatchObject({ balances: 'wallet:ws_1 500', sum: '500 requests, 500 nano' })
  })

  storeTest('a full disk on which the journal cannot be applied delays reads, and loses nothing', async (store) => {
    const journal = await addWallet(store, 1000n)
    const { database } = store
    const allowPages = (count: number) =>
      database.schemaTransaction((_sql, run) => run(`PRAGMA max_page_count = ${count}`))
    // The journal needs about 65 pages for them, the table as many again and its indexes some.
    const details = 'x'.repeat(2000)
    const many = Array.from({ length: 100 }, (_, at) => ({ ...charged(`w${at}`), details }))
    const [pages] = await database.sql<{ page_count: bigint }>`PRAGMA page_count`
    await allowPages(Number(pages?.page_count) + 80)
    await journal.append(many)
    const fault = await journal.apply().catch((thrown: unknown) => thrown)
    expect(isStoreUnavailable(fault)).toBe(true)
    expect(await contents(database)).toMatchObject({ requests: '', balances: 'wallet:ws_1 1000' })
    await allowPages(1_000_000)
    expect(await contents(database)).toMatchObject({ balances: 'wallet:ws_1 900', sum: '100 requests, 100 nano' })
  })

  storeTest('charges and transactions take turns, and see what was committed before them', async (store) => {
    const journal = await addWallet(store, 100n)
    const { database } = store
    const work: Promise<unknown>[] = []
    for (let round = 0; round < 50; round++) {
      work.push(
        database.transaction(async (sql) => {
          const [row] = await sql<{ posted: bigint }>`SELECT posted FROM balances`
          await sql`UPDATE balances SET posted = ${(row?.posted ?? 0n) - 1n}`
        }),
        journal.append([charged(`r${round}`)]),
      )
    }
    await Promise.all(work)
    expect((await contents(database)).balances).toBe('wallet:ws_1 0')
  })

  test('the write-ahead log is moved into the database as it grows, and is gone after closing', async () => {
    using folder = createThrowAwayFolder()
    const database = await openDatabase({ url: undefined, dataFolder: folder.path })
    await database.schemaTransaction((_sql, run) => run('CREATE TABLE texts (text TEXT)'))
    const text = 'x'.repeat(200_000)
    // 32 MB; the log of 4,000 pages is 16 MB, and it is looked at every sixteenth statement.
    for (let at = 0; at < 160; at++) await database.transaction((sql) => sql`INSERT INTO texts (text) VALUES (${text})`)
    expect(statSync(join(folder.path, 'tollgate.db-wal')).size).toBeLessThan(20_000_000)
    await database.close()
    expect(readdirSync(folder.path)).toEqual(['tollgate.db'])
  })

  storeTest('a statement that comes after the end of its transaction is refused', async ({ database }) => {
    let late: Promise<unknown> | undefined
    await database.transaction(async (sql) => {
      late = Bun.sleep(1).then(() => sql`INSERT INTO workspaces (id, name, created_at) VALUES ('late', '', 1)`)
      late.catch(() => {})
    })
    const message = await late?.catch((thrown: Error) => thrown.message)
    expect(message).toBe('a statement came after the end of its transaction')
    expect(await database.sql`SELECT id FROM workspaces`).toHaveLength(0)
  })

  storeTest('a closed database refuses charges and transactions as unavailable, and closes twice', async (store) => {
    const journal = await addWallet(store, 10n)
    const { database } = store
    const last = journal.append([charged('a')])
    await database.close()
    await last
    for (const call of [journal.append([charged('b')]), database.transaction(async () => 1)]) {
      expect(isStoreUnavailable(await call.catch((thrown: unknown) => thrown))).toBe(true)
    }
  })
})
