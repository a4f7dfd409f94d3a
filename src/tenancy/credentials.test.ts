import { expect, test } from 'bun:test'
import { inspect } from 'node:util'
import { forEachEngine, type TestEngine, testWith } from '../../test/parts/engines.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import {
  apiKeyFault,
  createCredentialCache,
  deleteCredential,
  listCredentials,
  mayBeSentTo,
  type NewCredential,
  type OpenedCredential,
  putCredential,
  type WorkspaceCredentials,
} from './credentials.ts'
import { createKeyRing } from './sealing.ts'
import type { MasterSecret } from './secrets.ts'
import { insertWorkspace } from './workspaces.ts'

const noon = Date.UTC(2026, 10, 8, 12)
const master: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => at), source: 'test' }
const keys = createKeyRing(master)
const canary = 'sk-canary-0123456789-records-9f3e'

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  const { database } = store
  const addWorkspace = (name: string) => database.transaction((sql) => insertWorkspace(sql, { name, createdAt: noon }))
  const put = (workspaceId: WorkspaceId, more: Partial<NewCredential> = {}) =>
    database.transaction((sql) => {
      const origin = 'https://api.acme.test'
      const base = { workspaceId, provider: 'acme', apiKey: new Secret(canary), origin, storedAt: noon }
      return putCredential(sql, { ...base, ...more }, keys)
    })
  return {
    database,
    put,
    workspaces: [await addWorkspace('one'), await addWorkspace('two')] as const,
    list: (workspaceId: WorkspaceId) => listCredentials(database.sql, workspaceId),
    remove: (workspaceId: WorkspaceId, provider: string) =>
      database.transaction((sql) => deleteCredential(sql, workspaceId, provider)),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

forEachEngine((engine) => {
  const benchTest = testWith(() => createBench(engine))

  benchTest('K4: only the last four characters, the base URL and the dates can be read', async (bench) => {
    const [one] = bench.workspaces
    const plain = await bench.put(one)
    const custom = await bench.put(one, {
      provider: 'a-proxy',
      origin: 'https://llm.example.test:8443',
      baseUrl: 'https://llm.example.test:8443/v1',
      storedAt: noon + 1,
    })
    const listed = await bench.list(one)
    expect(listed).toEqual([
      {
        id: custom.id,
        provider: 'a-proxy',
        last4: '9f3e',
        baseUrl: 'https://llm.example.test:8443/v1',
        createdAt: noon + 1,
        updatedAt: noon + 1,
      },
      { id: plain.id, provider: 'acme', last4: '9f3e', baseUrl: undefined, createdAt: noon, updatedAt: noon },
    ])
    expect(listed).toEqual([custom, plain])
    expect(plain.id).toMatch(/^cred_[0-9a-f]{32}$/)
    expect(inspect(listed) + JSON.stringify(listed)).not.toContain('canary')
  })

  benchTest('K1: no column of the table contains the secret, nor the master secret', async (bench) => {
    await bench.put(bench.workspaces[0])
    const rows = await bench.database.sql<Record<string, unknown>>`SELECT * FROM credentials`
    expect(rows).toHaveLength(1)
    const columns = Object.values(rows[0] ?? {}).map(String)
    expect(columns).toHaveLength(11)
    // As text, and as what a text column would hold if the bytes were only encoded.
    const decoded = columns.flatMap((text) => [
      text,
      Buffer.from(text, 'base64url').toString('latin1'),
      Buffer.from(text, 'hex').toString('latin1'),
    ])
    const masterText = Buffer.from(master.bytes).toString('latin1')
    for (const text of decoded) {
      expect(text).not.toContain('sk-canary')
      expect(text).not.toContain('records')
      expect(text).not.toContain(masterText)
    }
  })

  benchTest(
    'a second key for a provider replaces the first under a new id and keeps the date of creation',
    async (bench) => {
      const [one, two] = bench.workspaces
      const first = await bench.put(one)
      const elsewhere = await bench.put(two)
      const second = await bench.put(one, { apiKey: new Secret('sk-another-one-77aa'), storedAt: noon + 5000 })
      expect(second.id).not.toBe(first.id)
      const expected = { provider: 'acme', last4: '77aa', baseUrl: undefined, createdAt: noon, updatedAt: noon + 5000 }
      expect(second).toEqual({ id: second.id, ...expected })
      expect(await bench.list(one)).toEqual([second])
      expect(await bench.list(two)).toEqual([elsewhere])
    },
  )

  benchTest('T2: a delete affects its own workspace only and returns whether there was a credential', async (bench) => {
    const [one, two] = bench.workspaces
    const kept = await bench.put(one)
    expect(await bench.remove(two, 'acme')).toBe(false)
    expect(await bench.remove(one, 'other')).toBe(false)
    expect(await bench.list(one)).toEqual([kept])
    expect(await bench.remove(one, 'acme')).toBe(true)
    expect(await bench.remove(one, 'acme')).toBe(false)
    expect(await bench.list(one)).toEqual([])
  })

  benchTest('nothing of a key shorter than eight characters is shown', async (bench) => {
    const [one] = bench.workspaces
    expect((await bench.put(one, { apiKey: new Secret('1234567') })).last4).toBe('')
    expect((await bench.put(one, { apiKey: new Secret('12345678') })).last4).toBe('5678')
  })

  benchTest(
    'S6: is not stored for an origin that is not its base URL’s, and the error does not show it',
    async (bench) => {
      const wrong = bench.put(bench.workspaces[0], { baseUrl: 'https://other.test/v1' })
      const thrown = await wrong.catch((error: unknown) => error)
      expect(thrown).toBeInstanceOf(Error)
      expect(inspect(thrown)).not.toContain(canary)
      expect(await bench.list(bench.workspaces[0])).toEqual([])
    },
  )

  benchTest('L1: an error of the database does not show the secret', async (bench) => {
    const thrown = await bench.put('ws_nobody').catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(Error)
    expect(inspect(thrown, { depth: 9 })).not.toContain(canary)
  })
})

test('K6: a key must fit into one header, and the error does not repeat it', () => {
  for (const good of ['x', 'sk-ant-api03-A_b-9', 'AKIA:secret/+=', 'k'.repeat(4096)]) {
    expect(apiKeyFault(good)).toBeUndefined()
  }
  const bad = ['', ' ', 'a b', 'secret\n', 'secret\r\nhost: evil', '\u0000', 'schlüssel', '“quoted”', 'k'.repeat(4097)]
  for (const text of bad) {
    const fault = apiKeyFault(text)
    expect(fault).toMatch(/^must /)
    if (text.length > 3) expect(fault).not.toContain(text)
  }
})

test('S6: a credential may be sent to its own origin only', () => {
  const credential = {
    id: 'cred_1',
    apiKey: new Secret(canary),
    baseUrl: undefined,
    origin: 'https://api.acme.test',
  } as const
  expect(mayBeSentTo(credential, 'https://api.acme.test/v1/chat/completions')).toBe(true)
  expect(mayBeSentTo(credential, 'https://API.ACME.test:443/')).toBe(true)
  for (const url of [
    'http://api.acme.test/v1',
    'https://api.acme.test:8443/v1',
    'https://api.acme.test.evil.test/v1',
    'https://api.acme.test@evil.test/v1',
    'https://evil.test/https://api.acme.test/',
    'not a url',
  ]) {
    expect(mayBeSentTo(credential, url)).toBe(false)
  }
})

const stranger: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => 200 - at), source: 'test' }
const acmeOrigin = 'https://api.acme.test'

async function createCacheBench(engine: TestEngine) {
  const store = await engine.openStore()
  let nowMs = 0
  const clock: Clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const counts = { queries: 0 }
  /** Holds back the answer of a query from its caller. */
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
  const benchTest = testWith(() => createCacheBench(engine))

  benchTest('opens the credentials of one workspace, each with its origin', async (bench) => {
    const [one, two] = bench.workspaces
    const { id } = await bench.put(one, 'acme', 'sk-of-one')
    await bench.put(one, 'other', 'sk-other-of-one')
    await bench.put(two, 'acme', 'sk-of-two')
    const credentials = await bench.cache.find(one)
    expect(revealed(credentials)).toEqual({ acme: 'sk-of-one', other: 'sk-other-of-one' })
    const { apiKey: _, ...rest } = credentials.get('acme') as OpenedCredential
    expect(rest).toEqual({ id, baseUrl: undefined, origin: acmeOrigin })
    expect(revealed(await bench.cache.find(two))).toEqual({ acme: 'sk-of-two' })
  })

  benchTest('a cached workspace needs no promise and no query, also without credentials', async (bench) => {
    const [one, two] = bench.workspaces
    await bench.put(one, 'acme', 'sk-of-one')
    await Promise.all([bench.cache.find(one), bench.cache.find(one), bench.cache.find(two)])
    expect(bench.counts.queries).toBe(2)
    bench.advance(4999)
    expect(revealed(bench.cache.find(one) as WorkspaceCredentials)).toEqual({ acme: 'sk-of-one' })
    expect(bench.cache.find(two)).toEqual(new Map())
    expect(bench.counts.queries).toBe(2)
  })

  benchTest('a change here is seen at once after forget, one made elsewhere within five seconds', async (bench) => {
    const [one] = bench.workspaces
    await bench.put(one, 'acme', 'sk-first')
    await bench.cache.find(one)
    await bench.put(one, 'acme', 'sk-second')
    bench.cache.delete(one)
    expect(revealed(await bench.cache.find(one))).toEqual({ acme: 'sk-second' })
    await bench.remove(one, 'acme')
    bench.advance(4999)
    expect(revealed(await bench.cache.find(one))).toEqual({ acme: 'sk-second' })
    bench.advance(1)
    expect(revealed(await bench.cache.find(one))).toEqual({})
  })

  benchTest('the result of a query that ran while the credential changed is not cached', async (bench) => {
    const [one] = bench.workspaces
    await bench.put(one, 'acme', 'sk-first')
    const { promise, resolve } = Promise.withResolvers<void>()
    bench.delay.until = promise
    const early = bench.cache.find(one)
    // The same statement, answered: the one of the cache was sent before it.
    await bench.database.sql`SELECT id FROM credentials`
    bench.delay.until = Promise.resolve()
    await bench.put(one, 'acme', 'sk-second')
    bench.cache.delete(one)
    resolve()
    await early
    expect(revealed(await bench.cache.find(one))).toEqual({ acme: 'sk-second' })
  })

  benchTest('K1: a row copied to another workspace or provider does not decrypt there', async (bench) => {
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
    expect(revealed(await bench.cache.find(two))).toEqual({ acme: 'altered', other: 'sk-other-of-two' })
    expect(revealed(await bench.cache.find(one))).toEqual({ acme: 'sk-canary-of-one' })
    // The whole row, its id too, given to the other workspace.
    await bench.remove(two, 'acme')
    await bench.database.transaction(
      (sql) => sql`UPDATE credentials SET workspace_id = ${two} WHERE workspace_id = ${one}`,
    )
    bench.cache.delete(one)
    bench.cache.delete(two)
    expect(revealed(await bench.cache.find(two))).toEqual({ acme: 'altered', other: 'sk-other-of-two' })
    expect(revealed(await bench.cache.find(one))).toEqual({})
  })

  benchTest('S6: a row whose address was changed in the database does not decrypt', async (bench) => {
    const [one] = bench.workspaces
    const columns = ['base_url', 'origin'] as const
    for (const column of columns) {
      await bench.put(one, 'acme', 'sk-canary-of-one')
      bench.cache.delete(one)
      expect(revealed(await bench.cache.find(one))).toEqual({ acme: 'sk-canary-of-one' })
      await bench.database.transaction((sql) => sql`UPDATE credentials SET ${sql(column)} = 'https://evil.test'`)
      bench.cache.delete(one)
      expect(revealed(await bench.cache.find(one))).toEqual({ acme: 'altered' })
    }
  })

  benchTest('a credential under an unknown master secret is reported as such', async (bench) => {
    const [one] = bench.workspaces
    const { id } = await bench.put(one, 'acme', 'sk-of-one')
    expect(await bench.strangersCache.find(one)).toEqual(new Map([['acme', { id, fault: 'unknown_secret' }]]))
  })

  benchTest('K5: opened secrets are kept for a minute at most', async (bench) => {
    const create = (ttlMs: number) =>
      createCredentialCache({ database: bench.database, keys, clock: systemClock, ttlMs })
    expect(() => create(60_000)).not.toThrow()
    expect(() => create(60_001)).toThrow('a minute at most')
  })

  benchTest('K4: nothing of an opened credential is printed but its last four characters', async (bench) => {
    const [one] = bench.workspaces
    await bench.put(one, 'acme', 'sk-canary-0123456789-1a2b')
    const credentials = await bench.cache.find(one)
    for (const text of [inspect(credentials, { depth: 9 }), JSON.stringify([...credentials]), inspect(bench.cache)]) {
      expect(text).not.toContain('canary')
    }
    expect(inspect(credentials)).toContain('[secret …1a2b]')
  })
})
