import { expect } from 'bun:test'
import { forEachEngine, type TestEngine, testWith } from '../../test/parts/engines.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { KeyId, SignInId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { allowsModel } from './allowlist.ts'
import { type ApiKey, createApiKey, createVerifier } from './api-key.ts'
import { createAuthenticator } from './authenticate.ts'
import type { Caller } from './caller.ts'
import { createKey, type KeyInput, revokeKey, rotateKey } from './keys.ts'
import { insertProject, insertWorkspace, updateProject } from './workspaces.ts'

const pepper = Uint8Array.from({ length: 32 }, (_, at) => at)
const computeVerifier = createVerifier(pepper)
const noon = Date.UTC(2026, 10, 8, 12)
const getOne = 'Create one: console → API keys, or `tollgate keys create`.'

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
  const act = () => ({ actor: 'test', at: nowMs })
  const used: (KeyId | SignInId)[] = []
  return {
    database,
    workspaceId,
    projectId,
    act,
    used,
    authenticator: createAuthenticator({
      database,
      pepper,
      clock,
      noteUse: (keyId) => used.push(keyId),
    }),
    advance(ms: number): void {
      nowMs += ms
    },
    addKey: async (name: string, input: Partial<KeyInput> = {}): Promise<{ id: KeyId; key: ApiKey }> => {
      const made = await database.transaction((sql) =>
        createKey(sql, { projectId, name, ...input }, act(), computeVerifier),
      )
      return { id: made.key.id, key: made.secret }
    },
    revoke: (id: KeyId) => database.transaction((sql) => revokeKey(sql, id, act())),
    rotate: async (id: KeyId, overlapSeconds?: number): Promise<ApiKey> => {
      const made = await database.transaction((sql) => rotateKey(sql, id, { overlapSeconds }, act(), computeVerifier))
      return made.secret
    },
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
  const benchTest = testWith(() => createBench(engine))

  benchTest('A5: both headers give the same caller, in any case of the scheme', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    const caller: Caller = {
      keyId: id,
      keyName: 'ci',
      projectId: bench.projectId,
      projectName: 'web',
      workspaceId: bench.workspaceId,
      workspaceName: 'acme',
      allow: [{ entries: new Set(['openai/', 'acme/large']), prefixes: [] }],
      limits: [],
      sharesRoutes: false,
      priceList: undefined,
      sources: undefined,
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
    for (const headers of forms) expect(await bench.authenticator.authenticate(headers)).toMatchObject(caller)
  })

  benchTest('a cached key needs no promise and no query', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    const first = bench.authenticator.authenticate(bearer(key))
    expect(first).toBeInstanceOf(Promise)
    await first
    const again = bench.authenticator.authenticate(bearer(key))
    expect(again).not.toBeInstanceOf(Promise)
    expect((again as Caller).keyId).toBe(id)
    expect(bench.database.queries).toBe(1)
  })

  benchTest('the error for a key without Bearer says that, and nothing of the key', async (bench) => {
    const { key } = await bench.addKey('ci')
    for (const authorization of [key, 'sk-proj-of-another-host']) {
      expect(refusalOf(await bench.authenticator.authenticate(new Headers({ authorization })))).toBe(
        'Tollgate found no `Bearer` before the key in `Authorization`: send `Authorization: Bearer sk-tg-…`.',
      )
    }
  })

  benchTest('the error for a management token in place of a key says what it is', async (bench) => {
    for (const token of ['CTpxqNdNqhAbCdEfGhIjKlMnOpQrStUvWxYz0123456', `tg-mt-${'a'.repeat(43)}`]) {
      for (const headers of [bearer(token), new Headers({ 'x-api-key': token })]) {
        expect(refusalOf(await bench.authenticator.authenticate(headers))).toBe(
          `Tollgate does not accept this key: it has the form of a management token, which works for \`/api/…\` and the command line only. Models need an API key (sk-tg-…). ${getOne}`,
        )
      }
    }
  })

  benchTest('the error for a missing key names both headers', async (bench) => {
    const message = `Tollgate needs an API key: send \`Authorization: Bearer sk-tg-…\` or \`x-api-key: sk-tg-…\`. ${getOne} Or sign in as a person: run \`tollgate login\`.`
    for (const headers of [new Headers(), new Headers({ authorization: 'Basic dXNlcjpwYXNz' }), bearer('')]) {
      expect(refusalOf(await bench.authenticator.authenticate(headers))).toBe(message)
    }
  })

  benchTest('A1, A8: a malformed key is refused without a query and not repeated', async (bench) => {
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

  benchTest('an unknown key is named by its last four characters and looked up once', async (bench) => {
    const key = createApiKey()
    const message = `Tollgate does not accept this key (…${key.slice(-4)}): there is no such key here. ${getOne}`
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toBe(message)
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toBe(message)
    expect(bench.database.queries).toBe(1)
  })

  benchTest('A9: a revoked key is refused with its date, at once where it is revoked', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    expect(await bench.authenticator.authenticate(bearer(key))).not.toBeInstanceOf(Failure)
    await bench.revoke(id)
    bench.authenticator.invalidate(id)
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toBe(
      `Tollgate does not accept this key (…${key.slice(-4)}): revoked 2026-11-08. ${getOne}`,
    )
  })

  benchTest('A9: a revocation made elsewhere takes effect within five seconds', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    await bench.authenticator.authenticate(bearer(key))
    await bench.revoke(id)
    bench.advance(4999)
    expect(await bench.authenticator.authenticate(bearer(key))).not.toBeInstanceOf(Failure)
    bench.advance(1)
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toContain('revoked 2026-11-08')
  })

  benchTest('A9: a cached key is refused from its expiry, to the millisecond', async (bench) => {
    const { key } = await bench.addKey('expiring', { expiresAt: noon + 2000 })
    bench.advance(1999)
    expect(await bench.authenticator.authenticate(bearer(key))).not.toBeInstanceOf(Failure)
    bench.advance(1)
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toContain('): expired 2026-11-08. ')
  })

  benchTest('A9: a rotated secret ends at once, and the new one is the same key', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    await bench.authenticator.authenticate(bearer(key))
    const secret = await bench.rotate(id)
    bench.authenticator.invalidate(id)
    expect(await bench.authenticator.authenticate(bearer(secret))).toMatchObject({ keyId: id, keyName: 'ci' })
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toBe(
      `Tollgate does not accept this key (…${key.slice(-4)}): replaced by a new secret 2026-11-08. ${getOne}`,
    )
  })

  benchTest('A9: a rotated secret is valid for exactly the overlap, also if it is cached', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    const secret = await bench.rotate(id, 2)
    bench.authenticator.invalidate(id)
    bench.advance(1999)
    for (const good of [key, secret]) {
      expect(await bench.authenticator.authenticate(bearer(good))).toMatchObject({ keyId: id })
    }
    bench.advance(1)
    expect(refusalOf(await bench.authenticator.authenticate(bearer(key)))).toContain('replaced by a new secret')
    expect(await bench.authenticator.authenticate(bearer(secret))).toMatchObject({ keyId: id })
  })

  benchTest('A9: a rotation without an overlap also ends earlier overlaps', async (bench) => {
    const { id, key: first } = await bench.addKey('ci')
    const second = await bench.rotate(id, 3600)
    bench.advance(1000)
    const third = await bench.rotate(id)
    bench.authenticator.invalidate(id)
    for (const ended of [first, second]) {
      expect(refusalOf(await bench.authenticator.authenticate(bearer(ended)))).toContain('replaced by a new secret')
    }
    expect(await bench.authenticator.authenticate(bearer(third))).toMatchObject({ keyId: id })
  })

  benchTest('A9: revoking a key ends all of its secrets, also those in their overlap', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    const secret = await bench.rotate(id, 3600)
    await bench.revoke(id)
    for (const ended of [key, secret]) {
      expect(refusalOf(await bench.authenticator.authenticate(bearer(ended)))).toContain('): revoked 2026-11-08. ')
    }
  })

  benchTest('A9: revocation and rotation without overlap apply on replicas whose clock is behind', async (bench) => {
    const revoked = await bench.addKey('revoked')
    const rotated = await bench.addKey('rotated')
    await bench.revoke(revoked.id)
    await bench.rotate(rotated.id)
    bench.advance(-60_000)
    for (const { key } of [revoked, rotated]) refusalOf(await bench.authenticator.authenticate(bearer(key)))
  })

  benchTest(
    'T5, T6: a key narrows what its project allows and never widens it; a narrowed project narrows its keys at once',
    async (bench) => {
      const { key } = await bench.addKey('ci', { models: ['openai/gpt-5.6', 'anthropic/*'] })
      const visible = async () => {
        const caller = await bench.authenticator.authenticate(bearer(key))
        if (caller instanceof Failure) throw new Error(caller.message)
        const ids = ['openai/gpt-5.6', 'openai/gpt-5.6-mini', 'anthropic/claude-opus-5.5', 'acme/large']
        return ids.filter((id) => allowsModel(caller.allow, id))
      }
      expect(await visible()).toEqual(['openai/gpt-5.6'])
      const change = (models: readonly string[] | null) =>
        bench.database.transaction((sql) => updateProject(sql, bench.projectId, { models }, bench.act()))
      await change(['acme/*'])
      bench.authenticator.invalidate(bench.projectId)
      expect(await visible()).toEqual([])
      await change(null)
      bench.authenticator.invalidate(bench.workspaceId)
      expect(await visible()).toEqual(['openai/gpt-5.6', 'anthropic/claude-opus-5.5'])
    },
  )

  benchTest('all requests of a key share one deeply frozen caller', async (bench) => {
    const { key } = await bench.addKey('ci', { limits: { requestsPerMinute: 1 }, sources: ['10.0.0.0/8'] })
    const caller = (await bench.authenticator.authenticate(bearer(key))) as Caller
    expect(bench.authenticator.authenticate(bearer(key))).toBe(caller)
    const parts = [caller, caller.allow, caller.limits, caller.limits[0], caller.limits[0]?.limits, caller.sources]
    for (const part of [...parts, caller.sources?.[0]]) expect(Object.isFrozen(part)).toBe(true)
  })

  benchTest('the use of a key is recorded only if it was accepted', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    await bench.authenticator.authenticate(bearer(createApiKey()))
    await bench.authenticator.authenticate(bearer(key))
    bench.authenticator.authenticate(bearer(key))
    await bench.revoke(id)
    bench.authenticator.invalidate(id)
    await bench.authenticator.authenticate(bearer(key))
    expect(bench.used).toEqual([id, id])
  })

  benchTest('A5: of two different keys the only valid one counts, two valid ones are refused', async (bench) => {
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
    // With two bad ones, the message is about the one that has the form of a Tollgate key.
    expect(refusalOf(await both('sk-ant-something', unknown))).toContain(`(…${unknown.slice(-4)})`)
    expect(refusalOf(await both(unknown, 'sk-ant-something'))).toContain(`(…${unknown.slice(-4)})`)
  })

  benchTest('A2, L1: no column of the database contains the key or the secret that it had before', async (bench) => {
    const { id, key } = await bench.addKey('ci')
    const secret = await bench.rotate(id, 60)
    const { sql } = bench.database
    const rows = [
      ...(await sql`SELECT * FROM api_keys`),
      ...(await sql`SELECT * FROM rotated_secrets`),
      ...(await sql`SELECT * FROM audit`),
    ]
    const dump = JSON.stringify(rows, (_name, value) => (typeof value === 'bigint' ? String(value) : value))
    for (const text of [key, secret]) {
      expect(dump).toContain(computeVerifier(text))
      expect(dump).not.toContain(text.slice(6, 34))
      expect(dump).not.toContain(text.slice(6, 20))
    }
  })

  benchTest('an unreachable database is a 503 with a retry time, never a 401', async (bench) => {
    const { key } = await bench.addKey('ci')
    await bench.database.close()
    const verdict = await bench.authenticator.authenticate(bearer(key))
    expect(verdict).toBeInstanceOf(Failure)
    expect((verdict as Failure).code).toBe('OVERLOADED')
    expect((verdict as Failure).facts.retryAfterMs).toBe(1000)
  })
})
