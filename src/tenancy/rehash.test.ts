import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/failure.ts'
import type { KeyId } from '../kernel/ids.ts'
import { createVerifier } from './api-key.ts'
import { createAuthenticator } from './authenticate.ts'
import { createKey, type KeyWithSecret, revokeKey, rotateKey } from './keys.ts'
import { insertProject, insertWorkspace } from './records.ts'
import { readRotationStatus } from './rotation-status.ts'
import { deriveSubkey, type MasterSecret } from './secrets.ts'

const noon = Date.UTC(2026, 10, 8, 12)
const clock: Clock = { now: () => noon, monotonicMs: () => noon }
const act = { actor: 'test', at: noon }
const old = secretOf(1)
const fresh = secretOf(101)

function secretOf(first: number): MasterSecret {
  return { bytes: Uint8Array.from({ length: 32 }, (_, at) => first + at), source: 'TOLLGATE_SECRET' }
}

const pepperOf = (secret: MasterSecret) => deriveSubkey(secret, 'api-key-pepper')

async function createBench(engine: TestEngine) {
  const store = await engine.openStore()
  const { database } = store
  const projectId = await database.transaction(async (sql) => {
    const workspaceId = await insertWorkspace(sql, { name: 'acme', createdAt: noon })
    return await insertProject(sql, { workspaceId, name: 'web', createdAt: noon })
  })
  const underOld = createVerifier(pepperOf(old))
  const made = (key: KeyWithSecret | 'not found' | Failure): KeyWithSecret => {
    if (key === 'not found' || key instanceof Failure) throw new Error('no key was made')
    return key
  }
  return {
    database,
    addKey: async (name: string, expiresAt?: number) =>
      made(
        await database.transaction((sql) =>
          createKey(sql, { projectId, name, ...(expiresAt === undefined ? {} : { expiresAt }) }, act, underOld),
        ),
      ),
    rotate: async (id: KeyId) =>
      made(await database.transaction((sql) => rotateKey(sql, id, { overlapSeconds: 3600 }, act, underOld))),
    /** A gateway that was started with these secrets: the name of the key, or the refusal. */
    async ask(secret: string, current: MasterSecret, previous?: MasterSecret): Promise<string> {
      const previousPepper = previous && pepperOf(previous)
      const { authenticate } = createAuthenticator({ database, pepper: pepperOf(current), previousPepper, clock })
      const verdict = await authenticate(new Headers({ authorization: `Bearer ${secret}` }))
      return verdict instanceof Failure ? verdict.code : verdict.keyName
    },
    status: (now = noon) => readRotationStatus(database.sql, fresh, now),
    /** Until what runs in the background has left so much. */
    async untilLeft(left: { readonly keys: number; readonly overlaps: number }) {
      for (;;) {
        const { keys, overlaps } = await readRotationStatus(database.sql, fresh, noon)
        if (keys === left.keys && overlaps === left.overlaps) return
        await Bun.sleep(5)
      }
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

test('the version of a pepper is a number of its own that a BIGINT holds', () => {
  const versions = [old, fresh].map((secret) => createVerifier(pepperOf(secret)).version)
  expect(versions[0]).toBe(createVerifier(pepperOf(old)).version)
  expect(versions[0]).not.toBe(versions[1] as bigint)
  for (const version of versions) expect(version >= 0n && version < 2n ** 62n).toBe(true)
})

forEachEngine((engine) => {
  test('A4: both peppers are good, and a key that is used needs the old one no more', async () => {
    await using bench = await createBench(engine)
    const used = await bench.addKey('used')
    const idle = await bench.addKey('idle')
    expect(await bench.ask(used.secret, fresh)).toBe('UNAUTHORIZED')
    expect((await bench.status()).keys).toBe(2)
    expect(await bench.ask(used.secret, fresh, old)).toBe('used')
    await bench.untilLeft({ keys: 1, overlaps: 0 })
    expect((await bench.status()).firstKeys).toEqual([
      { id: idle.key.id, name: 'idle', last4: idle.key.last4, lastUsedAt: undefined },
    ])
    expect(await bench.ask(used.secret, fresh)).toBe('used')
    // What was not used hangs on the old one still, and is not lost.
    expect(await bench.ask(idle.secret, fresh)).toBe('UNAUTHORIZED')
    expect(await bench.ask(idle.secret, fresh, old)).toBe('idle')
    await bench.untilLeft({ keys: 0, overlaps: 0 })
    expect(await bench.ask(idle.secret, fresh)).toBe('idle')
    // A replica that is restarted the other way round finds it too.
    expect(await bench.ask(idle.secret, old, fresh)).toBe('idle')
  })

  test('A4: a secret in its overlap moves as well, and one that is over does not count', async () => {
    await using bench = await createBench(engine)
    const first = await bench.addKey('ci')
    const second = await bench.rotate(first.key.id)
    expect(await bench.status()).toMatchObject({ keys: 1, overlaps: 1, credentials: 0 })
    expect(await bench.ask(first.secret, fresh, old)).toBe('ci')
    await bench.untilLeft({ keys: 1, overlaps: 0 })
    expect(await bench.ask(first.secret, fresh)).toBe('ci')
    expect(await bench.ask(second.secret, fresh, old)).toBe('ci')
    await bench.untilLeft({ keys: 0, overlaps: 0 })

    const other = await bench.addKey('other')
    await bench.rotate(other.key.id)
    expect((await bench.status(noon + 3_600_000 - 1)).overlaps).toBe(1)
    expect((await bench.status(noon + 3_600_000)).overlaps).toBe(0)
  })

  test('keys that are revoked or expired do not keep the old secret alive', async () => {
    await using bench = await createBench(engine)
    const { key } = await bench.addKey('revoked')
    await bench.addKey('short', noon + 1000)
    expect((await bench.status()).keys).toBe(2)
    await bench.database.transaction((sql) => revokeKey(sql, key.id, act))
    expect((await bench.status()).keys).toBe(1)
    expect((await bench.status(noon + 1000)).keys).toBe(0)
  })
})
