import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import { refusalOf } from '../../test/parts/refused.ts'
import type { Clock } from '../kernel/clock.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { wholeSubject } from '../kernel/spend-limit.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { allowsSource } from './allowlist.ts'
import { createApiKey, createVerifier } from './api-key.ts'
import { createFindKey, createKeyCache, isKeyOf, type StoredKey } from './caller.ts'
import { getKey, insertKey, listKeys } from './keys.ts'
import { type Limits, putLimits } from './limits.ts'
import { insertProject, insertWorkspace } from './workspaces.ts'

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
  test('a caller has the limits of key, project and workspace; limits that a key does not set have the default', async () => {
    await using bench = await createBench(engine, { requestsPerMinute: 60 })
    const { database, keyId, projectId, workspaceId } = bench
    const ofProject: Limits = { tokensPerMinute: 200_000 }
    // More than a float holds exactly.
    const ofWorkspace: Limits = {
      spend: [
        { subject: wholeSubject, window: 'day', amount: 5n as Nano },
        { subject: wholeSubject, window: 'month', amount: 9_007_199_254_740_993n as Nano },
      ],
    }
    await database.transaction(async (sql) => {
      await putLimits(sql, { kind: 'project', id: projectId }, ofProject, act)
      await putLimits(sql, { kind: 'workspace', id: workspaceId }, ofWorkspace, act)
    })
    const findKey = createFindKey(database, () => ({ requestsPerMinute: 600, concurrentRequests: 50 }))
    expect((await findKey(bench.verifier))?.caller.limits).toEqual([
      { kind: 'key', id: keyId, name: 'ci', limits: { requestsPerMinute: 60, concurrentRequests: 50 } },
      { kind: 'project', id: projectId, name: 'web', limits: ofProject },
      { kind: 'workspace', id: workspaceId, name: 'acme', limits: ofWorkspace },
    ])
  })

  test('a caller without limits, allowlists and addresses has none to check', async () => {
    await using bench = await createBench(engine, {})
    const found = await createFindKey(bench.database, () => ({}))(bench.verifier)
    expect(found?.caller).toMatchObject({ allow: [], limits: [], sources: undefined })
  })

  test('T5: the caller of a key that is restricted to addresses has them', async () => {
    await using bench = await createBench(engine, {}, ['203.0.113.0/24', '2001:db8::1'])
    const found = await createFindKey(bench.database, () => ({}))(bench.verifier)
    const addresses = ['203.0.113.7', '203.0.114.7', '2001:db8::1', '2001:db8::2']
    const allowed = addresses.filter((address) => found && allowsSource(found.caller, address))
    expect(allowed).toEqual(['203.0.113.7', '2001:db8::1'])
  })

  test('keys are looked up and listed by indexes alone', async () => {
    await using bench = await createBench(engine, {})
    const { database, keyId, projectId, workspaceId, verifier } = bench
    const page = { limit: 10, cursor: keyId }
    const plans = await plansOf(database, async (explained) => {
      await createFindKey(explained, () => ({}))(verifier)
      // An explained statement returns no rows.
      await refusalOf(getKey(explained.sql, keyId))
      for (const filter of [{}, { projectId }, { workspaceId }]) await listKeys(explained.sql, { ...filter, page })
    })
    expect(plans).toMatch(engine.name === 'sqlite' ? /SEARCH/ : /Index/)
    // SQLite goes through the rows of the two-row union, never through a table; a sort would mean reading them all.
    const wholeTable = engine.name === 'sqlite' ? /SCAN (?!s\b)\w|B-TREE FOR ORDER/ : /Seq Scan|Sort/
    expect(plans).not.toMatch(wholeTable)
  })
})

const ttlMs = 5000

function stored(keyId: KeyId, projectId: ProjectId = 'prj_1', workspaceId: WorkspaceId = 'ws_1'): StoredKey {
  const caller = {
    keyId,
    keyName: 'k',
    projectId,
    projectName: 'p',
    workspaceId,
    workspaceName: 'w',
    allow: [],
    limits: [],
    sharesRoutes: false,
    priceList: undefined,
    sources: undefined,
  }
  return { caller, expiresAt: undefined, revokedAt: undefined, rotated: undefined }
}

/** A cache over a database whose queries the test answers. */
function createCacheBench() {
  let nowMs = 0
  const clock: Clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const asked: { verifier: string; answer: (key: StoredKey | undefined) => void; fail: (error: Error) => void }[] = []
  const load = (verifier: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<StoredKey | undefined>()
    asked.push({ verifier, answer: resolve, fail: reject })
    return promise
  }
  const cache = createKeyCache(clock, ttlMs, load)
  const find = (verifier: string) => cache.find(verifier)
  const invalidate = (id: KeyId | ProjectId | WorkspaceId) => cache.deleteWhere((key) => isKeyOf(key, id))
  /** Looks the key up and answers the query that this must cause. */
  async function fill(verifier: string, key: StoredKey | undefined) {
    const found = find(verifier)
    expect(found).toBeInstanceOf(Promise)
    asked.at(-1)?.answer(key)
    expect(await found).toBe(key)
  }
  const advance = (ms: number): void => {
    nowMs += ms
  }
  return { find, invalidate, asked, fill, advance }
}

test('A9: a key is cached for five seconds, then loaded again', async () => {
  const bench = createCacheBench()
  const key = stored('key_1')
  await bench.fill('v1', key)
  bench.advance(ttlMs - 1)
  expect(bench.find('v1')).toBe(key)
  expect(bench.asked).toHaveLength(1)
  bench.advance(1)
  await bench.fill('v1', undefined)
  expect(bench.find('v1')).toBeUndefined()
  expect(bench.asked).toHaveLength(2)
})

test('A9: the age counts from the query, so a slow result is not cached for longer', async () => {
  const bench = createCacheBench()
  const found = bench.find('v1')
  bench.advance(4000)
  bench.asked[0]?.answer(stored('key_1'))
  await found
  bench.advance(1000)
  expect(bench.find('v1')).toBeInstanceOf(Promise)
})

test('one query serves all requests that wait for the same key', async () => {
  const bench = createCacheBench()
  const waiting = Array.from({ length: 100 }, () => bench.find('v1'))
  expect(bench.asked).toHaveLength(1)
  const key = stored('key_1')
  bench.asked[0]?.answer(key)
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => key))
})

test('a failed query is not cached', async () => {
  const bench = createCacheBench()
  const found = bench.find('v1') as Promise<unknown>
  bench.asked[0]?.fail(new Error('gone'))
  await expect(found).rejects.toThrow('gone')
  await bench.fill('v1', stored('key_1'))
})

test('A9: an invalidated key is loaded at the next request, the others are not', async () => {
  const bench = createCacheBench()
  await bench.fill('v1', stored('key_1'))
  await bench.fill('v2', stored('key_2'))
  bench.invalidate('key_1')
  expect(bench.find('v2')).not.toBeInstanceOf(Promise)
  await bench.fill('v1', stored('key_1'))
})

test('T6: all keys of a changed project or workspace are loaded again, and no others', async () => {
  const bench = createCacheBench()
  const remembered = () => ['v1', 'v2', 'v3'].filter((verifier) => !(bench.find(verifier) instanceof Promise))
  await bench.fill('v1', stored('key_1', 'prj_1', 'ws_1'))
  await bench.fill('v2', stored('key_2', 'prj_2', 'ws_1'))
  await bench.fill('v3', stored('key_3', 'prj_3', 'ws_2'))
  bench.invalidate('prj_1')
  expect(remembered()).toEqual(['v2', 'v3'])
  bench.invalidate('ws_1')
  expect(remembered()).toEqual(['v3'])
})

test('A9: the result of a query that ran while the key was invalidated is neither cached nor shared', async () => {
  const bench = createCacheBench()
  const before = bench.find('v1')
  bench.invalidate('key_1')
  const after = bench.find('v1')
  expect(bench.asked).toHaveLength(2)
  const [old, revoked] = [stored('key_1'), { ...stored('key_1'), revokedAt: 1 }]
  bench.asked[1]?.answer(revoked)
  expect(await after).toBe(revoked)
  bench.asked[0]?.answer(old)
  expect(await before).toBe(old)
  expect(bench.find('v1')).toBe(revoked)
})

test('A9: unknown keys are bounded and do not push out known ones', async () => {
  const bench = createCacheBench()
  await bench.fill('known', stored('key_1'))
  for (let n = 0; n < 10_001; n++) await bench.fill(`invented ${n}`, undefined)
  expect(bench.find('known')).not.toBeInstanceOf(Promise)
  expect(bench.find('invented 1')).toBeUndefined()
  expect(bench.find('invented 0')).toBeInstanceOf(Promise)
})

test('A9: known keys are bounded too, and the oldest is removed', async () => {
  const bench = createCacheBench()
  for (let n = 0; n < 100_001; n++) await bench.fill(`v${n}`, stored(`key_${n}`))
  expect(bench.find('v1')).not.toBeInstanceOf(Promise)
  expect(bench.find('v0')).toBeInstanceOf(Promise)
})
