import { expect } from 'bun:test'
import { forEachEngine, type TestEngine, testWith } from '../../test/parts/engines.ts'
import { refusalOf } from '../../test/parts/refused.ts'
import type { Clock } from '../kernel/clock.ts'
import { createId, type KeyId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { wholeSubject } from '../kernel/spend-limit.ts'
import type { Database } from '../store/database.ts'
import { openDatabase } from '../store/open-database.ts'
import { createVerifier, hasApiKeyForm } from './api-key.ts'
import { listAudit } from './audit.ts'
import { createLastUsed } from './authenticate.ts'
import { createFindKey } from './caller.ts'
import { createKey, getKey, type KeyInput, type KeyWithSecret, listKeys, revokeKey, rotateKey } from './keys.ts'
import type { Act } from './management.ts'
import { insertProject, insertWorkspace } from './workspaces.ts'

const computeVerifier = createVerifier(new Uint8Array(32))
const noon = Date.UTC(2026, 10, 8, 12)
const act: Act = { actor: 'console', at: noon }

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  const { database, place } = store
  const ids = await database.transaction(async (sql) => {
    const workspaceId = await insertWorkspace(sql, { name: 'w', createdAt: noon })
    return { workspaceId, projectId: await insertProject(sql, { workspaceId, name: 'p', createdAt: noon }) }
  })
  const tryKey = (input: Partial<KeyInput>) =>
    database.transaction((sql) =>
      createKey(sql, { projectId: ids.projectId, name: 'ci', ...input }, act, computeVerifier),
    )
  return {
    ...ids,
    database,
    place,
    sql: database.sql,
    tryKey,
    addKey: async (input: Partial<KeyInput> = {}): Promise<KeyWithSecret> => await tryKey(input),
    rotate: (id: string, overlapSeconds?: number, at = noon) =>
      database.transaction((sql) => rotateKey(sql, id, { overlapSeconds }, { ...act, at }, computeVerifier)),
    revoke: (id: string, at = noon) => database.transaction((sql) => revokeKey(sql, id, { ...act, at })),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

forEachEngine((engine) => {
  const benchTest = testWith(() => createBench(engine))

  benchTest('a key is read as it was created, and its secret is returned once', async (bench) => {
    const { key, secret } = await bench.addKey({
      models: ['openai/*'],
      limits: {
        requestsPerMinute: 60,
        spend: [{ subject: wholeSubject, window: 'day', amount: 1_500_000_000n as Nano }],
      },
      expiresAt: noon + 1,
      sources: ['10.0.0.0/8'],
    })
    expect(hasApiKeyForm(secret)).toBe(true)
    expect(key).toEqual({
      id: key.id,
      projectId: bench.projectId,
      workspaceId: bench.workspaceId,
      name: 'ci',
      kind: 'secret',
      last4: secret.slice(-4),
      models: ['openai/*'],
      limits: {
        requestsPerMinute: 60,
        spend: [{ subject: wholeSubject, window: 'day', amount: 1_500_000_000n as Nano }],
      },
      sources: ['10.0.0.0/8'],
      createdAt: noon,
      expiresAt: noon + 1,
      revokedAt: undefined,
      lastUsedAt: undefined,
      managedBy: 'api',
      ownerId: undefined,
    })
    expect(await getKey(bench.sql, key.id)).toEqual(key)
    expect(await listKeys(bench.sql, { page: { limit: 1 } })).toEqual({ items: [key], nextCursor: undefined })
  })

  benchTest('a key without options has none', async (bench) => {
    const { key } = await bench.addKey()
    expect(key).toMatchObject({ models: undefined, limits: {}, sources: undefined, expiresAt: undefined })
  })

  benchTest('T4: an invalid field is refused by name, and nothing is written', async (bench) => {
    const wrong: [input: Partial<KeyInput>, param: string][] = [
      [{ name: '' }, 'name'],
      [{ models: ['*'] }, 'models[0]'],
      [{ limits: { requestsPerMinute: 0 } }, 'limits.requests_per_minute'],
      [{ expiresAt: noon }, 'expires_at'],
      [{ expiresAt: Number.NaN }, 'expires_at'],
      [{ sources: ['10.0.0.1/8'] }, 'sources[0]'],
      [{ sources: [] }, 'sources'],
    ]
    for (const [input, param] of wrong) {
      expect(await refusalOf(bench.tryKey(input))).toMatchObject({ code: 'INVALID_REQUEST', facts: { param } })
    }
    expect((await listKeys(bench.sql, { page: { limit: 1 } })).items).toEqual([])
    expect((await listAudit(bench.sql, { limit: 1 })).items).toEqual([])
  })

  benchTest('T2: an unknown id and one of another kind are not found', async (bench) => {
    expect(await refusalOf(bench.tryKey({ projectId: bench.workspaceId }))).toMatchObject({ code: 'NOT_FOUND' })
    expect(await refusalOf(bench.tryKey({ projectId: createId('prj') }))).toMatchObject({ code: 'NOT_FOUND' })
    for (const id of [createId('key'), bench.projectId, 'key_\u0000', '']) {
      expect(await refusalOf(getKey(bench.sql, id))).toMatchObject({ code: 'NOT_FOUND' })
      expect(await refusalOf(bench.rotate(id))).toMatchObject({ code: 'NOT_FOUND' })
      expect(await refusalOf(bench.revoke(id))).toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  benchTest('a key is revoked once; the first date stays', async (bench) => {
    const { key } = await bench.addKey()
    expect(await bench.revoke(key.id, noon + 5)).toEqual({ ...key, revokedAt: noon + 5 })
    expect(await bench.revoke(key.id, noon + 9)).toEqual({ ...key, revokedAt: noon + 5 })
    const { items } = await listAudit(bench.sql, { limit: 10 })
    expect(items.map(({ action }) => action)).toEqual(['key.revoke', 'key.create'])
  })

  benchTest('a rotation changes the secret and nothing else', async (bench) => {
    const before = await bench.addKey({ limits: { concurrentRequests: 3 }, models: ['a/*'] })
    const after = await bench.rotate(before.key.id)
    expect(after.secret).not.toBe(before.secret)
    expect(after.key).toEqual({ ...before.key, last4: after.secret.slice(-4) })
  })

  benchTest('a revoked or expired key cannot be rotated, and the overlap is bounded', async (bench) => {
    const revoked = await bench.addKey()
    await bench.revoke(revoked.key.id)
    const expiring = await bench.addKey({ expiresAt: noon + 1000 })
    expect(await refusalOf(bench.rotate(revoked.key.id))).toMatchObject({ code: 'INVALID_REQUEST' })
    const late = bench.rotate(expiring.key.id, 0, noon + 1000)
    expect(await refusalOf(late)).toMatchObject({ code: 'INVALID_REQUEST' })
    const { key } = await bench.addKey()
    for (const overlap of [-1, 0.5, Number.NaN, 30 * 86_400 + 1]) {
      expect(await refusalOf(bench.rotate(key.id, overlap))).toMatchObject({ facts: { param: 'overlap_seconds' } })
    }
    expect((await bench.rotate(key.id, 30 * 86_400)).key.id).toBe(key.id)
  })

  benchTest('L1, G2: creation, rotation and revocation are in the audit log, without secrets', async (bench) => {
    const { key, secret } = await bench.addKey({
      limits: { spend: [{ subject: wholeSubject, window: 'day', amount: 7n as Nano }] },
      sources: ['10.0.0.0/8'],
    })
    const rotated = await bench.rotate(key.id, 60)
    await bench.revoke(key.id)
    const { items } = await listAudit(bench.sql, { limit: 10 })
    expect(items.map(({ action, object, details }) => ({ action, object, details }))).toEqual([
      { action: 'key.revoke', object: key.id, details: {} },
      { action: 'key.rotate', object: key.id, details: { overlap_seconds: 60 } },
      {
        action: 'key.create',
        object: key.id,
        details: {
          project: bench.projectId,
          models: null,
          limits: { spend_per_day: '0.000000007' },
          expires_at: null,
          from_anywhere: false,
        },
      },
    ])
    for (const text of [secret, rotated.secret]) {
      expect(JSON.stringify(items)).not.toContain(text.slice(6, 20))
      expect(JSON.stringify(items)).not.toContain(computeVerifier(text))
    }
  })

  benchTest('after concurrent rotations only the last secret is valid', async (bench) => {
    const { key, secret } = await bench.addKey()
    const another = engine.name === 'postgres' ? await openDatabase(bench.place) : bench.database
    const rotations = await Promise.all(
      Array.from({ length: 8 }, async (_, at) => {
        const database = at % 2 === 0 ? bench.database : another
        return (await database.transaction((sql) => rotateKey(sql, key.id, {}, act, computeVerifier))).secret
      }),
    )
    if (another !== bench.database) await another.close()
    const findKey = createFindKey(bench.database, () => ({}))
    const stored = await Promise.all([secret, ...rotations].map((text) => findKey(computeVerifier(text))))
    expect(stored.map((found) => found?.caller.keyId)).toEqual(Array<KeyId>(9).fill(key.id))
    const current = [secret, ...rotations].filter((_, at) => stored[at]?.rotated === undefined)
    expect(current.map((text) => text.slice(-4))).toEqual([(await getKey(bench.sql, key.id)).last4])
  })

  benchTest('T1: keys are listed by project, by workspace, or all, page by page', async (bench) => {
    const { sql, database, workspaceId, projectId } = bench
    const [sibling, foreign] = await database.transaction(async (tx) => {
      const elsewhere = await insertWorkspace(tx, { name: 'other', createdAt: noon })
      return [
        await insertProject(tx, { workspaceId, name: 'sibling', createdAt: noon }),
        await insertProject(tx, { workspaceId: elsewhere, name: 'foreign', createdAt: noon }),
      ]
    })
    for (const [project, name] of [
      [projectId, 'a'],
      [foreign, 'b'],
      [sibling, 'c'],
      [projectId, 'd'],
    ] as const) {
      await bench.addKey({ projectId: project, name })
    }
    const names = async (filter: { workspaceId?: typeof workspaceId; projectId?: typeof projectId }) => {
      const first = await listKeys(sql, { ...filter, page: { limit: 1 } })
      const rest = await listKeys(sql, { ...filter, page: { limit: 9, cursor: first.nextCursor } })
      return [...first.items, ...rest.items].map(({ name }) => name).join('')
    }
    expect(await names({})).toBe('abcd')
    expect(await names({ workspaceId })).toBe('acd')
    expect(await names({ projectId })).toBe('ad')
  })
})

async function createLastUsedBench(engine: TestEngine) {
  const store = await engine.openStore()
  let nowMs = 1000
  const clock: Clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const faults: unknown[] = []
  let transactions = 0
  let isDown = false
  const database: Database = {
    ...store.database,
    transaction: (work) => {
      transactions++
      return isDown ? Promise.reject(new Error('down')) : store.database.transaction(work)
    },
  }
  return {
    lastUsed: createLastUsed({ database, clock, onFault: (thrown) => faults.push(thrown) }),
    faults,
    setNow(ms: number): void {
      nowMs = ms
    },
    setDown(down: boolean): void {
      isDown = down
    },
    transactions: () => transactions,
    stored: async (): Promise<Map<KeyId, number>> => {
      const rows = await store.database.sql<{ key_id: KeyId; last_used_at: bigint }>`SELECT * FROM key_uses`
      return new Map(rows.map((row) => [row.key_id, Number(row.last_used_at)]))
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

forEachEngine((engine) => {
  const benchTest = testWith(() => createLastUsedBench(engine))

  benchTest('many uses of a key are one row, written by the flush', async (bench) => {
    const [one, two] = [createId('key'), createId('key')]
    bench.lastUsed.note(one)
    bench.lastUsed.note(two)
    bench.setNow(2000)
    bench.lastUsed.note(one)
    expect(bench.transactions()).toBe(0)
    await bench.lastUsed.flush()
    expect(await bench.stored()).toEqual(
      new Map([
        [one, 2000],
        [two, 1000],
      ]),
    )
  })

  benchTest('a later use replaces an earlier one only, and without uses nothing is written', async (bench) => {
    const key = createId('key')
    for (const [at, expected] of [
      [2000, 2000],
      [3000, 3000],
      [2500, 3000],
    ] as const) {
      bench.setNow(at)
      bench.lastUsed.note(key)
      await bench.lastUsed.flush()
      expect((await bench.stored()).get(key)).toBe(expected)
    }
    const before = bench.transactions()
    await bench.lastUsed.flush()
    expect(bench.transactions()).toBe(before)
  })

  benchTest('a failed write is reported and retried, and does not hide a later use', async (bench) => {
    const [one, two] = [createId('key'), createId('key')]
    bench.lastUsed.note(one)
    bench.lastUsed.note(two)
    bench.setDown(true)
    const flushing = bench.lastUsed.flush()
    bench.setNow(5000)
    bench.lastUsed.note(one)
    await flushing
    expect(bench.faults).toEqual([new Error('down')])
    bench.setDown(false)
    await bench.lastUsed.flush()
    expect(await bench.stored()).toEqual(
      new Map([
        [one, 5000],
        [two, 1000],
      ]),
    )
  })

  benchTest('any number of keys is written, in small transactions', async (bench) => {
    const keys = Array.from({ length: 300 }, () => createId('key'))
    for (const key of keys) bench.lastUsed.note(key)
    await bench.lastUsed.flush()
    expect((await bench.stored()).size).toBe(300)
    // 128 + 128 + 32 + 8 + 4
    expect(bench.transactions()).toBe(5)
  })
})
