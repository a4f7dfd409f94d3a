import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { createApiKey, createVerifier } from './api-key.ts'
import { createFindKey } from './find-key.ts'
import { getKey, listKeys } from './keys.ts'
import { type Limits, putLimits } from './limits.ts'
import { insertKey, insertProject, insertWorkspace } from './records.ts'
import { allowsSource } from './sources.ts'

const computeVerifier = createVerifier(new Uint8Array(32))
const act = { actor: 'test', at: 0 }

async function createBench(engine: TestEngine, limits: Limits, sources?: readonly string[]) {
  const store = await engine.openStore()
  const key = createApiKey()
  const ids = await store.database.transaction(async (sql) => {
    const workspaceId = await insertWorkspace(sql, { name: 'acme', createdAt: 0 })
    const projectId = await insertProject(sql, { workspaceId, name: 'web', createdAt: 0 })
    const keyId = await insertKey(sql, { projectId, name: 'ci', key, createdAt: 0, limits, sources }, computeVerifier)
    return { workspaceId, projectId, keyId }
  })
  return {
    ...ids,
    database: store.database,
    verifier: computeVerifier(key),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

/** Asks for the plan of every statement instead of running it. Small tables are read whole, unless that is forbidden. */
async function plansOf(database: Database, work: (database: Database) => Promise<unknown>): Promise<string> {
  const plans: unknown[] = []
  const explain = database.engine === 'sqlite' ? 'EXPLAIN QUERY PLAN ' : 'EXPLAIN '
  await database.transaction(async (sql) => {
    if (database.engine === 'postgres') await sql`SET LOCAL enable_seqscan = off`
    const explaining = async (text: TemplateStringsArray, ...values: []) => {
      const [first = '', ...rest] = text
      const asked = [explain + first, ...rest]
      // Bun takes only what looks like a template: `raw` must not be enumerable.
      const template = Object.defineProperty(asked, 'raw', { value: asked }) as unknown as TemplateStringsArray
      plans.push(...(await sql(template, ...values)))
      return []
    }
    await work({ ...database, sql: explaining as unknown as Sql })
  })
  return JSON.stringify(plans, (_name, value) => (typeof value === 'bigint' ? String(value) : value))
}

forEachEngine((engine) => {
  test('a caller carries the limits of key, project and workspace by name; what a key leaves open is the default', async () => {
    await using bench = await createBench(engine, { requestsPerMinute: 60 })
    const { database, keyId, projectId, workspaceId } = bench
    const ofProject: Limits = { tokensPerMinute: 200_000 }
    // More than a float holds exactly.
    const ofWorkspace: Limits = { spendPerDay: 5n as Nano, spendPerMonth: 9_007_199_254_740_993n as Nano }
    await database.transaction(async (sql) => {
      await putLimits(sql, 'project', projectId, ofProject, act)
      await putLimits(sql, 'workspace', workspaceId, ofWorkspace, act)
    })
    const findKey = createFindKey(database, () => ({ requestsPerMinute: 600, concurrentRequests: 50 }))
    expect((await findKey(bench.verifier))?.caller.limits).toEqual([
      { kind: 'key', id: keyId, name: 'ci', limits: { requestsPerMinute: 60, concurrentRequests: 50 } },
      { kind: 'project', id: projectId, name: 'web', limits: ofProject },
      { kind: 'workspace', id: workspaceId, name: 'acme', limits: ofWorkspace },
    ])
  })

  test('a caller without limits, lists and addresses has none to check', async () => {
    await using bench = await createBench(engine, {})
    const found = await createFindKey(bench.database, () => ({}))(bench.verifier)
    expect(found?.caller).toMatchObject({ allow: [], limits: [], sources: undefined })
  })

  test('T5: a key that is bound to addresses carries them', async () => {
    await using bench = await createBench(engine, {}, ['203.0.113.0/24', '2001:db8::1'])
    const found = await createFindKey(bench.database, () => ({}))(bench.verifier)
    const addresses = ['203.0.113.7', '203.0.114.7', '2001:db8::1', '2001:db8::2']
    const allowed = addresses.filter((address) => found && allowsSource(found.caller, address))
    expect(allowed).toEqual(['203.0.113.7', '2001:db8::1'])
  })

  test('keys are looked up and listed by indexes alone, however many there are', async () => {
    await using bench = await createBench(engine, {})
    const { database, keyId, projectId, workspaceId, verifier } = bench
    const page = { limit: 10, cursor: keyId }
    const plans = await plansOf(database, async (explained) => {
      await createFindKey(explained, () => ({}))(verifier)
      await getKey(explained.sql, keyId)
      for (const filter of [{}, { projectId }, { workspaceId }]) await listKeys(explained.sql, { ...filter, page })
    })
    expect(plans).toMatch(engine.name === 'sqlite' ? /SEARCH/ : /Index/)
    // SQLite goes through the rows of the two-row union, never through a table; a sort would mean reading them all.
    const wholeTable = engine.name === 'sqlite' ? /SCAN (?!s\b)\w|B-TREE FOR ORDER/ : /Seq Scan|Sort/
    expect(plans).not.toMatch(wholeTable)
  })
})
