import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine, testWith } from '../../test/parts/engines.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { KeyId, WorkspaceId } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { createVerifier } from './api-key.ts'
import { createAuthenticator } from './authenticate.ts'
import { putCredential, readSealed } from './credentials.ts'
import { createKey, revokeKey, rotateKey } from './keys.ts'
import { type RotationProgress, readRotationStatus, rotateSecrets } from './rotation.ts'
import { createKeyRing, type KeyRing, openEnvelope } from './sealing.ts'
import { deriveSubkey, type MasterSecret } from './secrets.ts'
import { insertProject, insertWorkspace } from './workspaces.ts'

const from: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => at), source: 'old' }
const to: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => 255 - at), source: 'new' }
const older: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => at * 3), source: 'older' }
const [onlyOld, onlyNew, both] = [createKeyRing(from), createKeyRing(to), createKeyRing(to, from)]

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  const { database } = store
  const workspaceId = await database.transaction((sql) => insertWorkspace(sql, { name: 'one', createdAt: 0 }))
  const put = (sql: Sql, provider: string, keys: KeyRing, owner: WorkspaceId = workspaceId) => {
    const apiKey = new Secret(`sk-for-${provider}`)
    return putCredential(sql, { workspaceId: owner, provider, apiKey, origin: 'https://a.test', storedAt: 0 }, keys)
  }
  return {
    database,
    workspaceId,
    put: (provider: string, keys: KeyRing) => database.transaction((sql) => put(sql, provider, keys)),
    fill: (count: number) =>
      database.transaction(async (sql) => {
        for (let at = 0; at < count; at++) await put(sql, `p${at}`, onlyOld)
      }),
    /** How many open with these keys, and to the right text. */
    async readable(keys: KeyRing): Promise<number> {
      const sealed = await readSealed(database.sql, workspaceId)
      return sealed.filter((credential) => {
        const opened = openEnvelope(credential, credential, keys)
        return opened instanceof Secret && opened.reveal() === `sk-for-${credential.provider}`
      }).length
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

/** A process that dies at its n-th statement; what its transaction did until then is undone. */
function dyingAt(database: Database, statements: number): Database {
  let left = statements
  const dying = (sql: Sql): Sql =>
    ((first: TemplateStringsArray, ...values: []) => {
      if (left-- <= 0) throw new Error('killed')
      return sql(first, ...values)
    }) as Sql
  return {
    ...database,
    sql: dying(database.sql),
    transaction: (work) => database.transaction((sql) => work(dying(sql))),
  }
}

forEachEngine((engine) => {
  const benchTest = testWith(() => createBench(engine))

  benchTest('K3: moves every credential, and the old secret is no longer needed', async (bench) => {
    await bench.fill(120)
    const progress: RotationProgress[] = []
    const outcome = await rotateSecrets({ database: bench.database, from, to, onProgress: (now) => progress.push(now) })
    expect(outcome).toEqual({ kind: 'rotated', rewrapped: 120, altered: [], remaining: 0 })
    expect(progress).toEqual([
      { done: 50, total: 120 },
      { done: 100, total: 120 },
      { done: 120, total: 120 },
    ])
    expect(await bench.readable(onlyNew)).toBe(120)
    expect(await bench.readable(onlyOld)).toBe(0)
  })

  benchTest('K3: a gateway with both secrets can read everything at any time', async (bench) => {
    await bench.fill(101)
    const readable: Promise<number>[] = [bench.readable(both)]
    const onProgress = () => readable.push(bench.readable(both))
    await rotateSecrets({ database: bench.database, from, to, onProgress })
    readable.push(bench.readable(both))
    expect(await Promise.all(readable)).toEqual([101, 101, 101, 101, 101])
  })

  benchTest('K3: killed at any statement, it loses nothing and can be continued', async (bench) => {
    await bench.fill(53)
    let deaths = 0
    for (let statements = 0; ; statements += 7) {
      const run = rotateSecrets({ database: dyingAt(bench.database, statements), from, to })
      const outcome = await run.catch((thrown: Error) => thrown.message)
      expect(await bench.readable(both)).toBe(53)
      if (outcome !== 'killed') {
        expect(outcome).toMatchObject({ kind: 'rotated', altered: [], remaining: 0 })
        break
      }
      deaths++
    }
    // One count, one portion, 50 updates (52), one portion, 3 updates (56), one portion, one count: 0, 7 … 49 die before
    // the first commit, 56 after the second, and then there is nothing left to do.
    expect(deaths).toBe(9)
    expect(await bench.readable(onlyNew)).toBe(53)
  })

  benchTest('two concurrent runs do the work once', async (bench) => {
    await bench.fill(60)
    const run = () => rotateSecrets({ database: bench.database, from, to })
    const outcomes = await Promise.all([run(), run()])
    const rewrapped = outcomes.map((outcome) => (outcome.kind === 'rotated' ? outcome.rewrapped : Number.NaN))
    expect(rewrapped[0] as number).toBeGreaterThanOrEqual(0)
    expect((rewrapped[0] as number) + (rewrapped[1] as number)).toBe(60)
    expect(await bench.readable(onlyNew)).toBe(60)
  })

  benchTest('includes what is stored meanwhile under the old secret, and skips what is replaced', async (bench) => {
    await bench.fill(51)
    // After the portion of 50 was read and before it is written.
    let interfered = false
    const database: Database = {
      ...bench.database,
      async transaction(work) {
        if (!interfered) {
          interfered = true
          await bench.put('p0', onlyNew)
          await bench.put('p1', onlyOld)
          await bench.put('late', onlyOld)
        }
        return bench.database.transaction(work)
      },
    }
    // p0 is no longer its business; p1 was replaced and is met again under its new id: 48 + p50 + p1 + late.
    const outcome = await rotateSecrets({ database, from, to })
    expect(outcome).toEqual({ kind: 'rotated', rewrapped: 51, altered: [], remaining: 0 })
    expect(await bench.readable(onlyNew)).toBe(52)
  })

  benchTest('reports a row that does not decrypt, skips it, and moves the rest', async (bench) => {
    await bench.fill(3)
    const { id } = await bench.put('broken', onlyOld)
    await bench.database.transaction((sql) => sql`UPDATE credentials SET origin = 'https://evil.test' WHERE id = ${id}`)
    const outcome = await rotateSecrets({ database: bench.database, from, to })
    expect(outcome).toEqual({ kind: 'rotated', rewrapped: 3, altered: [id], remaining: 0 })
    expect(await bench.readable(onlyNew)).toBe(3)
  })

  benchTest('counts rows of neither secret as remaining', async (bench) => {
    await bench.fill(2)
    await bench.put('forgotten', createKeyRing(older))
    const outcome = await rotateSecrets({ database: bench.database, from, to })
    expect(outcome).toEqual({ kind: 'rotated', rewrapped: 2, altered: [], remaining: 1 })
  })

  benchTest('does nothing when both secrets are the same', async (bench) => {
    await bench.fill(2)
    const copy: MasterSecret = { bytes: from.bytes.slice(), source: 'a copy' }
    expect(await rotateSecrets({ database: bench.database, from, to: copy })).toEqual({ kind: 'same_secret' })
    expect(await bench.readable(onlyOld)).toBe(2)
  })
})

const noon = Date.UTC(2026, 10, 8, 12)
const clock: Clock = { now: () => noon, monotonicMs: () => noon }
const act = { actor: 'test', at: noon }
const pepperOf = (secret: MasterSecret) => deriveSubkey(secret, 'api-key-pepper')

async function createKeyBench(engine: TestEngine) {
  const store = await engine.openStore()
  const { database } = store
  const projectId = await database.transaction(async (sql) => {
    const workspaceId = await insertWorkspace(sql, { name: 'acme', createdAt: noon })
    return await insertProject(sql, { workspaceId, name: 'web', createdAt: noon })
  })
  const underOld = createVerifier(pepperOf(from))
  return {
    database,
    addKey: (name: string, expiresAt?: number) =>
      database.transaction((sql) => createKey(sql, { projectId, name, expiresAt }, act, underOld)),
    rotate: (id: KeyId) => database.transaction((sql) => rotateKey(sql, id, { overlapSeconds: 3600 }, act, underOld)),
    /** A gateway that was started with these secrets: the name of the key, or the refusal. */
    async ask(secret: string, current: MasterSecret, previous?: MasterSecret): Promise<string> {
      const previousPepper = previous && pepperOf(previous)
      const { authenticate } = createAuthenticator({ database, pepper: pepperOf(current), previousPepper, clock })
      const verdict = await authenticate(new Headers({ authorization: `Bearer ${secret}` }))
      return verdict instanceof Failure ? verdict.code : verdict.keyName
    },
    status: (now = noon) => readRotationStatus(database.sql, to, now),
    /** Until what runs in the background has left so much. */
    async untilLeft(left: { readonly keys: number; readonly overlaps: number }) {
      for (;;) {
        const { keys, overlaps } = await readRotationStatus(database.sql, to, noon)
        if (keys === left.keys && overlaps === left.overlaps) return
        await Bun.sleep(5)
      }
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

test('the version of a pepper is distinct and fits a BIGINT', () => {
  const versions = [from, to].map((secret) => createVerifier(pepperOf(secret)).version)
  expect(versions[0]).toBe(createVerifier(pepperOf(from)).version)
  expect(versions[0]).not.toBe(versions[1] as bigint)
  for (const version of versions) expect(version >= 0n && version < 2n ** 62n).toBe(true)
})

forEachEngine((engine) => {
  const benchTest = testWith(() => createKeyBench(engine))

  benchTest('A4: both peppers are valid, and a key that was used no longer needs the old one', async (bench) => {
    const used = await bench.addKey('used')
    const idle = await bench.addKey('idle')
    expect(await bench.ask(used.secret, to)).toBe('UNAUTHORIZED')
    expect((await bench.status()).keys).toBe(2)
    expect(await bench.ask(used.secret, to, from)).toBe('used')
    await bench.untilLeft({ keys: 1, overlaps: 0 })
    expect((await bench.status()).firstKeys).toEqual([
      { id: idle.key.id, name: 'idle', last4: idle.key.last4, lastUsedAt: undefined },
    ])
    expect(await bench.ask(used.secret, to)).toBe('used')
    // Unused keys still depend on the old secret, and are not lost.
    expect(await bench.ask(idle.secret, to)).toBe('UNAUTHORIZED')
    expect(await bench.ask(idle.secret, to, from)).toBe('idle')
    await bench.untilLeft({ keys: 0, overlaps: 0 })
    expect(await bench.ask(idle.secret, to)).toBe('idle')
    // A replica that is restarted the other way round finds it too.
    expect(await bench.ask(idle.secret, from, to)).toBe('idle')
  })

  benchTest('A4: a secret in its overlap moves too, and an expired one does not count', async (bench) => {
    const first = await bench.addKey('ci')
    const second = await bench.rotate(first.key.id)
    expect(await bench.status()).toMatchObject({ keys: 1, overlaps: 1, credentials: 0 })
    expect(await bench.ask(first.secret, to, from)).toBe('ci')
    await bench.untilLeft({ keys: 1, overlaps: 0 })
    expect(await bench.ask(first.secret, to)).toBe('ci')
    expect(await bench.ask(second.secret, to, from)).toBe('ci')
    await bench.untilLeft({ keys: 0, overlaps: 0 })

    const other = await bench.addKey('other')
    await bench.rotate(other.key.id)
    expect((await bench.status(noon + 3_600_000 - 1)).overlaps).toBe(1)
    expect((await bench.status(noon + 3_600_000)).overlaps).toBe(0)
  })

  benchTest('revoked and expired keys do not need the old secret', async (bench) => {
    const { key } = await bench.addKey('revoked')
    await bench.addKey('short', noon + 1000)
    expect((await bench.status()).keys).toBe(2)
    await bench.database.transaction((sql) => revokeKey(sql, key.id, act))
    expect((await bench.status()).keys).toBe(1)
    expect((await bench.status(noon + 1000)).keys).toBe(0)
  })
})
