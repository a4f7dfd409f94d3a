import { expect, test } from 'bun:test'
import { createThrowAwayFolder, forEachEngine } from '../../test/parts/engines.ts'
import type { Database } from './database.ts'
import { insertRows } from './insert-rows.ts'
import { openDatabase } from './open-database.ts'
import { isStoreUnavailable } from './sql-error.ts'
import { type BatchWriter, InsertSteps, type WriteStep } from './write-batch.ts'

interface Setup extends AsyncDisposable {
  readonly database: Database
  readonly batches: BatchWriter
}

async function setUp(): Promise<Setup> {
  const folder = createThrowAwayFolder()
  const database = await openDatabase({ url: undefined, dataFolder: folder.path })
  await database.schemaTransaction((_sql, run) =>
    run('CREATE TABLE wallets (id TEXT PRIMARY KEY, amount BIGINT NOT NULL CHECK (amount >= 0))'),
  )
  if (!database.batches) throw new Error('the embedded engine has a batch writer')
  return {
    database,
    batches: database.batches,
    async [Symbol.asyncDispose]() {
      await database.close()
      folder[Symbol.dispose]()
    },
  }
}

const inserts = new InsertSteps()
const add = (id: string, amount: bigint): WriteStep => inserts.of({ table: 'wallets', columns: { id, amount } })
const take = (id: string, amount: bigint): WriteStep => ({
  text: 'UPDATE wallets SET amount = amount - ? WHERE id = ?',
  values: [amount, id],
})

async function contents(database: Database): Promise<string> {
  const rows = await database.sql<{ id: string; amount: bigint }>`SELECT id, amount FROM wallets ORDER BY id`
  return rows.map(({ id, amount }) => `${id} ${amount}`).join(', ')
}

test('commits all operations of a batch', async () => {
  await using setup = await setUp()
  expect(await setup.batches.commitBatch([[add('a', 5n), take('a', 2n)], [add('b', 2n ** 62n)]])).toEqual([
    undefined,
    undefined,
  ])
  expect(await contents(setup.database)).toBe(`a 3, b ${2n ** 62n}`)
})

test('an operation that is refused leaves nothing of itself and does not spoil the others', async () => {
  await using setup = await setUp()
  const refusals = await setup.batches.commitBatch([
    [add('a', 5n)],
    [add('b', 1n), take('a', 6n)],
    [add('c', 1n), take('nobody', 1n)],
    [add('d', 1n), { text: 'INSERT INTO no_such_table VALUES (1)', values: [] }],
    [add('e', 1n), add('f', 2n ** 63n)],
    [add('a', 7n)],
    [add('g', 9n)],
  ])
  expect(refusals.map((refusal) => refusal?.message)).toEqual([
    undefined,
    'CHECK constraint failed: amount >= 0',
    'changed 0 rows instead of one: UPDATE wallets SET amount = amount - ? WHERE id = ?',
    'no such table: no_such_table',
    expect.stringContaining('out of range'),
    'UNIQUE constraint failed: wallets.id',
    undefined,
  ])
  expect(await contents(setup.database)).toBe('a 5, g 9')
})

test('steps that add up give the same with and without a refusal among the operations', async () => {
  const spend = (id: string, amount: bigint): WriteStep => ({ ...take(id, amount), addsUp: true })
  const operations = [
    [add('a', 2n ** 62n), spend('a', 3n)],
    [spend('a', 2n ** 61n), add('b', 10n), spend('b', 4n)],
    [spend('b', 6n)],
  ]
  const left = `a ${2n ** 61n - 3n}, b 0`
  await using together = await setUp()
  expect(await together.batches.commitBatch(operations)).toEqual([undefined, undefined, undefined])
  expect(await contents(together.database)).toBe(left)

  await using apart = await setUp()
  const [, , , refusal] = await apart.batches.commitBatch([...operations, [spend('b', 1n)]])
  expect(refusal?.message).toBe('CHECK constraint failed: amount >= 0')
  expect(await contents(apart.database)).toBe(left)

  await using nobody = await setUp()
  expect(await nobody.batches.commitBatch([[spend('nobody', 1n)], [add('c', 1n)]])).toEqual([
    { message: 'changed 0 rows instead of one: UPDATE wallets SET amount = amount - ? WHERE id = ?' },
    undefined,
  ])
  expect(await contents(nobody.database)).toBe('c 1')
})

test('integers cross to the writing thread as they are, whatever their size', async () => {
  await using setup = await setUp()
  const amounts = [0n, 1n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n]
  await setup.batches.commitBatch(amounts.map((amount, at) => [add(`w${at}`, amount)]))
  expect(await contents(setup.database)).toBe(amounts.map((amount, at) => `w${at} ${amount}`).join(', '))
  const types = await setup.database.sql<{ type: string }>`SELECT DISTINCT typeof(amount) AS type FROM wallets`
  expect([...types]).toEqual([{ type: 'integer' }])
})

test('text and integers of many rows arrive as they were, each in its own row', async () => {
  await using setup = await setUp()
  await setup.database.schemaTransaction((_sql, run) =>
    run('CREATE TABLE notes (id BIGINT PRIMARY KEY, a TEXT, n BIGINT, b TEXT)'),
  )
  const texts = ['', 'plain', '"quoted" \\ [1,-2]', 'line\nbreak', 'naïve', '水と金', '🙂', null]
  const integers = [0n, -1n, 7n, -(2n ** 53n) - 1n, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, null]
  // More than go in at once, and no power of two.
  const rows = Array.from({ length: 75 }, (_, at) => ({
    id: BigInt(at),
    a: texts[at % 8] ?? null,
    n: integers[(at >> 1) % 8] ?? null,
    b: texts[(at >> 3) % 8] ?? null,
  }))
  const one = (columns: (typeof rows)[number]) => [inserts.of({ table: 'notes', columns })]
  expect(await setup.batches.commitBatch(rows.map(one))).toEqual(rows.map(() => undefined))
  expect([...(await setup.database.sql`SELECT id, a, n, b FROM notes ORDER BY id`)]).toEqual(rows)
})

test('a row that is refused among many leaves the others in, in this batch and the next', async () => {
  await using setup = await setUp()
  const wallet = (at: number) => [add(`w${String(at).padStart(2, '0')}`, BigInt(at))]
  const numbers = Array.from({ length: 40 }, (_, at) => at)
  for (const first of [0, 40]) {
    const batch = numbers.map((at) => wallet(first + (at === 21 ? 20 : at)))
    const refusals = await setup.batches.commitBatch(batch)
    const refused = refusals.flatMap((refusal, at) => (refusal ? [`${at} ${refusal.message}`] : []))
    expect(refused).toEqual(['21 UNIQUE constraint failed: wallets.id'])
  }
  expect(await setup.database.sql`SELECT id FROM wallets`).toHaveLength(78)
})

test('a step whose values do not fit its statement is refused alone, and no value moves to another row', async () => {
  await using setup = await setUp()
  const { text, row = '' } = add('', 0n)
  const refusals = await setup.batches.commitBatch([
    [add('a', 1n)],
    [{ text, row, values: ['b', 2n, 'c'] }],
    [{ text, row, values: ['d'] }],
    [add('e', 5n)],
  ])
  expect(refusals.map((refusal) => refusal !== undefined)).toEqual([false, true, true, false])
  expect(await contents(setup.database)).toBe('a 1, e 5')
})

test('steps that only work in their order are made in their order', async () => {
  await using setup = await setUp()
  // Put together by statement, the second `take` would come before its wallet.
  const operations = [
    [add('a', 5n), take('a', 1n)],
    [take('a', 1n), { ...add('b', 1n), text: `${add('b', 1n).text} ` }, take('b', 1n)],
  ]
  expect(await setup.batches.commitBatch(operations)).toEqual([undefined, undefined])
  expect(await contents(setup.database)).toBe('a 3, b 0')
})

test('a full disk fails the batch as a whole, and the next one works once there is room', async () => {
  await using setup = await setUp()
  const { database, batches } = setup
  const allowPages = (count: number) =>
    database.schemaTransaction((_sql, run) => run(`PRAGMA max_page_count = ${count}`))
  await allowPages(1)
  const many = Array.from({ length: 500 }, (_, at) => [add(`w${at}`, 1n)])
  const fault = await batches.commitBatch(many).catch((thrown: unknown) => thrown)
  expect(isStoreUnavailable(fault)).toBe(true)
  expect(await contents(database)).toBe('')
  await allowPages(1_000_000)
  await batches.commitBatch(many)
  expect(await database.sql`SELECT id FROM wallets`).toHaveLength(500)
})

test('batches and transactions take turns, and see what was committed before them', async () => {
  await using setup = await setUp()
  const { database, batches } = setup
  await batches.commitBatch([[add('a', 0n)]])
  const work: Promise<unknown>[] = []
  for (let round = 0; round < 50; round++) {
    work.push(
      database.transaction(async (sql) => {
        const [row] = await sql<{ amount: bigint }>`SELECT amount FROM wallets`
        await sql`UPDATE wallets SET amount = ${(row?.amount ?? 0n) + 1n}`
      }),
      batches.commitBatch([[take('a', -1n)]]),
    )
  }
  await Promise.all(work)
  expect(await contents(database)).toBe('a 100')
})

test('a statement that comes after the end of its transaction is refused', async () => {
  await using setup = await setUp()
  let late: Promise<unknown> | undefined
  await setup.database.transaction(async (sql) => {
    late = Bun.sleep(1).then(() => sql`INSERT INTO wallets (id, amount) VALUES ('late', 1)`)
    late.catch(() => {})
  })
  expect(await late?.catch((thrown: Error) => thrown.message)).toBe('a statement came after the end of its transaction')
  expect(await contents(setup.database)).toBe('')
})

test('a closed database refuses batches and transactions as unavailable, and closes twice', async () => {
  await using setup = await setUp()
  const { database, batches } = setup
  const last = batches.commitBatch([[add('a', 1n)]])
  await database.close()
  expect(await last).toEqual([undefined])
  for (const call of [batches.commitBatch([[add('b', 1n)]]), database.transaction(async () => 1)]) {
    expect(isStoreUnavailable(await call.catch((thrown: unknown) => thrown))).toBe(true)
  }
})

forEachEngine((engine) => {
  test('inserts any number of rows', async () => {
    await using store = await engine.openStore()
    const { database } = store
    await database.schemaTransaction((_sql, run) => run('CREATE TABLE numbers (id TEXT PRIMARY KEY, n BIGINT)'))
    const rows = Array.from({ length: 301 }, (_, n) => ({ id: `row ${n}`, n: BigInt(n) }))
    await database.transaction((sql) => insertRows(sql, 'numbers', rows))
    const [sums] = await database.sql<{ sum: bigint }>`SELECT CAST(SUM(n) AS BIGINT) AS sum FROM numbers`
    // 0 + 1 + … + 300 = 300 × 301 / 2.
    expect(sums).toEqual({ sum: 45_150n })
  })

  test('a snapshot shows one moment, and cannot write', async () => {
    await using store = await engine.openStore()
    const { database } = store
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
})
