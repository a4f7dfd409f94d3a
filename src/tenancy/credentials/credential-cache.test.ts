import { expect, test } from 'bun:test'
import { inspect } from 'node:util'
import { forEachEngine, type TestEngine } from '../../../test/parts/engines.ts'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { insertWorkspace } from '../records.ts'
import type { MasterSecret } from '../secrets.ts'
import type { OpenedCredential, WorkspaceCredentials } from './credential.ts'
import { createCredentialCache } from './credential-cache.ts'
import { deleteCredential, putCredential } from './credential-records.ts'
import { createKeyRing } from './key-ring.ts'

const master: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => at), source: 'test' }
const stranger: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => 200 - at), source: 'test' }
const keys = createKeyRing(master)
const acmeOrigin = 'https://api.acme.test'

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  let nowMs = 0
  const clock: Clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const counts = { queries: 0 }
  /** What a query waits for after it was answered, before its asker hears of it. */
  const delay = { until: Promise.resolve() }
  const counted: Database = {
    ...store.database,
    sql: (async (first: TemplateStringsArray, ...values: []) => {
      counts.queries++
      const { until } = delay
      const rows = await store.database.sql(first, ...values)
      await until
      return rows
    }) as unknown as Sql,
  }
  const addWorkspace = (name: string) =>
    store.database.transaction((sql) => insertWorkspace(sql, { name, createdAt: 0 }))
  return {
    database: store.database,
    counts,
    delay,
    workspaces: [await addWorkspace('one'), await addWorkspace('two')] as const,
    cache: createCredentialCache({ database: counted, keys, clock }),
    strangersCache: createCredentialCache({ database: counted, keys: createKeyRing(stranger), clock }),
    advance: (ms: number) => {
      nowMs += ms
    },
    put: (workspaceId: WorkspaceId, provider: string, apiKey: string) =>
      store.database.transaction((sql) => {
        const credential = { workspaceId, provider, apiKey: new Secret(apiKey), origin: acmeOrigin, storedAt: 0 }
        return putCredential(sql, credential, keys)
      }),
    remove: (workspaceId: WorkspaceId, provider: string) =>
      store.database.transaction((sql) => deleteCredential(sql, workspaceId, provider)),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

function revealed(credentials: WorkspaceCredentials): Record<string, string> {
  return Object.fromEntries(
    [...credentials].map(([provider, held]) => [provider, 'fault' in held ? held.fault : held.apiKey.reveal()]),
  )
}

forEachEngine((engine) => {
  test('opens the credentials of one workspace, each with where it may go', async () => {
    await using bench = await createBench(engine)
    const [one, two] = bench.workspaces
    const { id } = await bench.put(one, 'acme', 'sk-of-one')
    await bench.put(one, 'other', 'sk-other-of-one')
    await bench.put(two, 'acme', 'sk-of-two')
    const credentials = await bench.cache.open(one)
    expect(revealed(credentials)).toEqual({ acme: 'sk-of-one', other: 'sk-other-of-one' })
    const { apiKey: _, ...rest } = credentials.get('acme') as OpenedCredential
    expect(rest).toEqual({ id, baseUrl: undefined, origin: acmeOrigin })
    expect(revealed(await bench.cache.open(two))).toEqual({ acme: 'sk-of-two' })
  })

  test('answers a workspace it knows without a promise and without a query, also one that has none', async () => {
    await using bench = await createBench(engine)
    const [one, two] = bench.workspaces
    await bench.put(one, 'acme', 'sk-of-one')
    await Promise.all([bench.cache.open(one), bench.cache.open(one), bench.cache.open(two)])
    expect(bench.counts.queries).toBe(2)
    bench.advance(4999)
    expect(revealed(bench.cache.open(one) as WorkspaceCredentials)).toEqual({ acme: 'sk-of-one' })
    expect(bench.cache.open(two)).toEqual(new Map())
    expect(bench.counts.queries).toBe(2)
  })

  test('a change here is seen at once after forget, one made elsewhere within five seconds', async () => {
    await using bench = await createBench(engine)
    const [one] = bench.workspaces
    await bench.put(one, 'acme', 'sk-first')
    await bench.cache.open(one)
    await bench.put(one, 'acme', 'sk-second')
    bench.cache.forget(one)
    expect(revealed(await bench.cache.open(one))).toEqual({ acme: 'sk-second' })
    await bench.remove(one, 'acme')
    bench.advance(4999)
    expect(revealed(await bench.cache.open(one))).toEqual({ acme: 'sk-second' })
    bench.advance(1)
    expect(revealed(await bench.cache.open(one))).toEqual({})
  })

  test('an answer that was on its way when the credential changed is not remembered', async () => {
    await using bench = await createBench(engine)
    const [one] = bench.workspaces
    await bench.put(one, 'acme', 'sk-first')
    const { promise, resolve } = Promise.withResolvers<void>()
    bench.delay.until = promise
    const early = bench.cache.open(one)
    // The same statement, answered: the one of the cache was sent before it.
    await bench.database.sql`SELECT id FROM credentials`
    bench.delay.until = Promise.resolve()
    await bench.put(one, 'acme', 'sk-second')
    bench.cache.forget(one)
    resolve()
    await early
    expect(revealed(await bench.cache.open(one))).toEqual({ acme: 'sk-second' })
  })

  test('K1: a row copied to another workspace or provider is altered there and fine where it was', async () => {
    await using bench = await createBench(engine)
    const [one, two] = bench.workspaces
    await bench.put(one, 'acme', 'sk-canary-of-one')
    await bench.put(two, 'acme', 'sk-of-two')
    await bench.put(two, 'other', 'sk-other-of-two')
    const [row] = await bench.database.sql<{ ciphertext: string; wrapped_key: string }>`
      SELECT ciphertext, wrapped_key FROM credentials WHERE workspace_id = ${one}`
    await bench.database.transaction(
      (sql) => sql`UPDATE credentials SET ciphertext = ${row?.ciphertext ?? ''}, wrapped_key = ${row?.wrapped_key ?? ''}
        WHERE workspace_id = ${two} AND provider = 'acme'`,
    )
    expect(revealed(await bench.cache.open(two))).toEqual({ acme: 'altered', other: 'sk-other-of-two' })
    expect(revealed(await bench.cache.open(one))).toEqual({ acme: 'sk-canary-of-one' })
    // The whole row, its id too, given to the other workspace.
    await bench.remove(two, 'acme')
    await bench.database.transaction(
      (sql) => sql`UPDATE credentials SET workspace_id = ${two} WHERE workspace_id = ${one}`,
    )
    bench.cache.forget(one)
    bench.cache.forget(two)
    expect(revealed(await bench.cache.open(two))).toEqual({ acme: 'altered', other: 'sk-other-of-two' })
    expect(revealed(await bench.cache.open(one))).toEqual({})
  })

  test('S6: a row pointed at another address in the database does not open', async () => {
    await using bench = await createBench(engine)
    const [one] = bench.workspaces
    const columns = ['base_url', 'origin'] as const
    for (const column of columns) {
      await bench.put(one, 'acme', 'sk-canary-of-one')
      bench.cache.forget(one)
      expect(revealed(await bench.cache.open(one))).toEqual({ acme: 'sk-canary-of-one' })
      await bench.database.transaction((sql) => sql`UPDATE credentials SET ${sql(column)} = 'https://evil.test'`)
      bench.cache.forget(one)
      expect(revealed(await bench.cache.open(one))).toEqual({ acme: 'altered' })
    }
  })

  test('a credential under a master secret that is not here is told as such', async () => {
    await using bench = await createBench(engine)
    const [one] = bench.workspaces
    const { id } = await bench.put(one, 'acme', 'sk-of-one')
    expect(await bench.strangersCache.open(one)).toEqual(new Map([['acme', { id, fault: 'unknown_secret' }]]))
  })

  test('K5: opened secrets are kept for a minute at most', async () => {
    await using bench = await createBench(engine)
    const create = (ttlMs: number) =>
      createCredentialCache({ database: bench.database, keys, clock: systemClock, ttlMs })
    expect(() => create(60_000)).not.toThrow()
    expect(() => create(60_001)).toThrow('a minute at most')
  })

  test('K4: nothing of an opened credential is printed but its last four characters', async () => {
    await using bench = await createBench(engine)
    const [one] = bench.workspaces
    await bench.put(one, 'acme', 'sk-canary-0123456789-1a2b')
    const credentials = await bench.cache.open(one)
    for (const text of [inspect(credentials, { depth: 9 }), JSON.stringify([...credentials]), inspect(bench.cache)]) {
      expect(text).not.toContain('canary')
    }
    expect(inspect(credentials)).toContain('[secret …1a2b]')
  })
})
