import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { KeyId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { type ApiKey, createApiKey, createVerifier } from './api-key.ts'
import { createAuthenticator } from './authenticate.ts'
import type { Caller } from './caller.ts'
import { insertKey, insertProject, insertWorkspace } from './records.ts'

const pepper = Uint8Array.from({ length: 32 }, (_, at) => at)
const computeVerifier = createVerifier(pepper)
const noon = Date.UTC(2026, 10, 8, 12)
const getOne = 'Create one: console → Keys, or `tollgate keys create`.'

/** Counts statements that reach the database. */
function counted(database: Database): Database & { queries: number } {
  const counter = {
    ...database,
    queries: 0,
    sql: ((first: TemplateStringsArray, ...values: []) => {
      counter.queries++
      return database.sql(first, ...values)
    }) as Sql,
  }
  return counter
}

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  let nowMs = noon
  const clock: Clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const [workspaceId, projectId] = await store.database.transaction(async (sql) => {
    const workspace = await insertWorkspace(sql, { name: 'acme', createdAt: noon })
    const models = ['openai/*', 'acme/large']
    return [
      workspace,
      await insertProject(sql, { workspaceId: workspace, name: 'web', models, createdAt: noon }),
    ] as const
  })
  const database = counted(store.database)
  return {
    database,
    workspaceId,
    projectId,
    authenticator: createAuthenticator({ database, pepper, clock }),
    advance(ms: number): void {
      nowMs += ms
    },
    addKey: async (name: string, expiresAt?: number): Promise<{ id: KeyId; key: ApiKey }> => {
      const key = createApiKey()
      const row = { projectId, name, key, createdAt: noon, ...(expiresAt === undefined ? {} : { expiresAt }) }
      return { key, id: await database.transaction((sql) => insertKey(sql, row, computeVerifier)) }
    },
    revoke: (id: KeyId, at: number) =>
      database.transaction((sql) => sql`UPDATE api_keys SET revoked_at = ${timeToSql(at)} WHERE id = ${id}`),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

function bearer(key: string): Headers {
  return new Headers({ authorization: `Bearer ${key}` })
}

function refusalOf(verdict: Caller | Failure): string {
  expect(verdict).toBeInstanceOf(Failure)
  const failure = verdict as Failure
  expect(failure.code).toBe('UNAUTHORIZED')
  return failure.message
}

forEachEngine((engine) => {
  test('A5: both headers give the same caller, in any case of the scheme', async () => {
    await using bench = await createBench(engine)
    const { id, key } = await bench.addKey('ci')
    const caller: Caller = {
      keyId: id,
      keyName: 'ci',
      projectId: bench.projectId,
      workspaceId: bench.workspaceId,
      workspaceName: 'acme',
      models: ['openai/*', 'acme/large'],
    }
    const forms = [
      bearer(key),
      new Headers({ authorization: `bearer ${key}` }),
      new Headers({ authorization: `BEARER   ${key}` }),
      new Headers({ 'x-api-key': key }),
      new Headers({ 'x-api-key': ` ${key} ` }),
      new Headers({ 'x-api-key': key, authorization: `Bearer ${key}` }),
      new Headers({ 'x-api-key': key, authorization: 'Basic dXNlcjpwYXNz' }),
      new Headers({ 'x-api-key': '', authorization: `Bearer ${key}` }),
      new Headers({ 'x-api-key': key, authorization: 'Bearer ' }),
    ]
    for (const headers of forms) expect(await bench.authenticator.authenticate(headers)).toEqual(caller)
  })

  test('answers a key it has just seen without a promise and without a query', async () => {
    await using bench = await createBench(engine)
    const { id, key } = await bench.addKey('ci')
    const first = bench.authenticator.authenticate(bearer(key))
    expect(first).toBeInstanceOf(Promise)
    await first
    const again = bench.authenticator.authenticate(bearer(key))
    expect(again).not.toBeInstanceOf(Promise)
    expect((again as Caller).keyId).toBe(id)
    expect(bench.database.queries).toBe(1)
  })

  test('a missing key is asked for by the names of both headers', async () => {
    await using bench = await createBench(engine)
    const message = `Tollgate needs an API key: send \`Authorization: Bearer sk-tg-…\` or \`x-api-key: sk-tg-…\`. ${getOne}`
    for (const headers of [new Headers(), new Headers({ authorization: 'Basic dXNlcjpwYXNz' }), bearer('')]) {
      expect(refusalOf(await bench.authenticator.authenticate(headers))).toBe(message)
    }
  })

  test('A1, A8: what is not a key is refused without a query and without an echo', async () => {
    await using bench = await createBench(engine)
    const { key } = await bench.addKey('ci')
    const notKeys = [
      'sk-proj-abcdefghijklmnopqrstuvwxyz',
      key.slice(0, -1),
      `${key}0`,
      `${key}, ${key}`,
      key.toLowerCase() === key ? key.toUpperCase() : key.toLowerCase(),
      "' OR 1=1 --",
      '"; DROP TABLE api_keys; --',
      '\u00ff\u00fe',
      'x'.repeat(15_000),
      computeVerifier(key),
    ]
    for (const text of notKeys) {
      for (const headers of [bearer(text), new Headers({ 'x-api-key': text })]) {
        const message = refusalOf(await bench.authenticator.authenticate(headers))
        expect(message).toStartWith('Tollgate does not accept this key: it is not a Tollgate key')
        expect(message).not.toContain(text)
        expect(message).not.toContain(text.slice(-4))
      }
    }
    expect(bench.database.queries).toBe(0)
  })

  test('an unknown key is named by its last four characters and asked for once', async () => {
    await using bench = await createBench(engine)
    const key = createApiKey()
    const message = `Tollgate does not accept this key (…${key.slice(-4)}): there is no such key here. ${getOne}`
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toBe(message)
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toBe(message)
    expect(bench.database.queries).toBe(1)
  })

  test('A9: a revoked key is refused with its date, at once where it is revoked', async () => {
    await using bench = await createBench(engine)
    const { id, key } = await bench.addKey('ci')
    expect(await bench.authenticator.authenticate(bearer(key))).not.toBeInstanceOf(Failure)
    await bench.revoke(id, noon)
    bench.authenticator.invalidate(id)
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toBe(
      `Tollgate does not accept this key (…${key.slice(-4)}): revoked 2026-11-08. ${getOne}`,
    )
  })

  test('A9: a revocation made elsewhere takes effect within five seconds', async () => {
    await using bench = await createBench(engine)
    const { id, key } = await bench.addKey('ci')
    await bench.authenticator.authenticate(bearer(key))
    await bench.revoke(id, noon)
    bench.advance(4999)
    expect(await bench.authenticator.authenticate(bearer(key))).not.toBeInstanceOf(Failure)
    bench.advance(1)
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toContain('revoked 2026-11-08')
  })

  test('A9: a remembered key ends at its expiry, and a rotated one at the end of its overlap, to the millisecond', async () => {
    await using bench = await createBench(engine)
    const expiring = await bench.addKey('expiring', noon + 2000)
    const rotated = await bench.addKey('rotated')
    await bench.revoke(rotated.id, noon + 2000)
    bench.advance(1999)
    for (const { key } of [expiring, rotated]) {
      expect(await bench.authenticator.authenticate(bearer(key))).not.toBeInstanceOf(Failure)
    }
    bench.advance(1)
    const verdicts = [expiring, rotated].map(({ key }) => bench.authenticator.authenticate(bearer(key)))
    expect(refusalOf(verdicts[0] as Failure)).toContain('): expired 2026-11-08. ')
    expect(refusalOf(verdicts[1] as Failure)).toContain('): revoked 2026-11-08. ')
  })

  test('A5: of two different keys the only good one counts, two good ones are refused', async () => {
    await using bench = await createBench(engine)
    const { id, key } = await bench.addKey('one')
    const other = await bench.addKey('two')
    const unknown = createApiKey()
    const both = async (authorization: string, apiKey: string) =>
      await bench.authenticator.authenticate(
        new Headers({ authorization: `Bearer ${authorization}`, 'x-api-key': apiKey }),
      )
    for (const bad of ['sk-ant-something', unknown]) {
      expect(await both(key, bad)).toMatchObject({ keyId: id })
      expect(await both(bad, key)).toMatchObject({ keyId: id })
    }
    expect(refusalOf(await both(key, other.key))).toBe(
      'Tollgate got two different keys, in Authorization and in x-api-key. Send one of them.',
    )
    // Of two bad ones, the message is about the one that is at least a Tollgate key.
    expect(refusalOf(await both('sk-ant-something', unknown))).toContain(`(…${unknown.slice(-4)})`)
    expect(refusalOf(await both(unknown, 'sk-ant-something'))).toContain(`(…${unknown.slice(-4)})`)
  })

  test('A2: no column of the database contains the key', async () => {
    await using bench = await createBench(engine)
    const { key } = await bench.addKey('ci')
    const rows = await bench.database.sql`SELECT * FROM api_keys`
    const dump = JSON.stringify(rows, (_name, value) => (typeof value === 'bigint' ? String(value) : value))
    expect(dump).toContain(computeVerifier(key))
    expect(dump).not.toContain(key.slice(6, 34))
    expect(dump).not.toContain(key.slice(6, 20))
  })

  test('a store that does not answer is a 503 to come back from, never a 401', async () => {
    await using bench = await createBench(engine)
    const { key } = await bench.addKey('ci')
    await bench.database.close()
    const verdict = await bench.authenticator.authenticate(bearer(key))
    expect(verdict).toBeInstanceOf(Failure)
    expect((verdict as Failure).code).toBe('OVERLOADED')
    expect((verdict as Failure).facts.retryAfterMs).toBe(1000)
  })
})
