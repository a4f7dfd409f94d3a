import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createTestClock } from '../../test/parts/ledger.ts'
import type { Database } from '../store/database.ts'
import { createIdempotency, type Idempotency, type KeyedRequest } from './idempotency.ts'
import { createReplays } from './replays.ts'

const sealKey = new Uint8Array(32).fill(7)
const request: KeyedRequest = { scope: 'api:/x', key: 'k-1', bodySha256: 'aa', requestId: 'req_1' }
const answer = { status: 201, body: '{"secret":"canary-secret"}' }

async function store(database: Database, idempotency: Idempotency, now: number): Promise<void> {
  await database.transaction(async (sql) => {
    expect(await idempotency.claim(sql, request, now)).toEqual({ kind: 'claimed' })
    await idempotency.remember(sql, request, answer)
  })
}

forEachEngine((engine) => {
  test('the first answer comes back for a day, and then the key is free', async () => {
    await using opened = await engine.openStore()
    const clock = createTestClock()
    const idempotency = createIdempotency(sealKey)
    const claim = (sent: KeyedRequest) =>
      opened.database.transaction((sql) => idempotency.claim(sql, sent, clock.now()))
    await store(opened.database, idempotency, clock.now())
    expect(await claim({ ...request, requestId: 'req_2' })).toEqual({ kind: 'answered', answer })
    expect(await claim({ ...request, bodySha256: 'bb' })).toEqual({ kind: 'conflict' })
    clock.advance(24 * 60 * 60 * 1000 - 1)
    expect(await claim(request)).toEqual({ kind: 'answered', answer })
    clock.advance(1)
    expect(await claim({ ...request, bodySha256: 'bb' })).toEqual({ kind: 'claimed' })
  })

  test('a transaction that is rolled back leaves the key free', async () => {
    await using opened = await engine.openStore()
    const idempotency = createIdempotency(sealKey)
    const failed = opened.database.transaction(async (sql) => {
      await idempotency.claim(sql, request, 0)
      await idempotency.remember(sql, request, answer)
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    await store(opened.database, idempotency, 0)
  })

  test('another scope is another key', async () => {
    await using opened = await engine.openStore()
    const idempotency = createIdempotency(sealKey)
    await store(opened.database, idempotency, 0)
    const elsewhere = { ...request, scope: 'api:/y' }
    expect(await opened.database.transaction((sql) => idempotency.claim(sql, elsewhere, 0))).toEqual({
      kind: 'claimed',
    })
  })

  test('K3: an answer from before a rotation of the master secret comes back, of either kind of request', async () => {
    await using opened = await engine.openStore()
    const { database } = opened
    const newKey = new Uint8Array(32).fill(8)
    await store(database, createIdempotency(sealKey), 0)
    const rotated = createIdempotency(newKey, sealKey)
    expect(await database.transaction((sql) => rotated.claim(sql, request, 0))).toEqual({ kind: 'answered', answer })

    const clock = createTestClock()
    const isCharged = () => Promise.resolve(false)
    const keyed = { workspaceId: 'ws_1', key: 'k-1', bodySha256: 'aa', requestId: 'req_1' } as const
    const before = createReplays({ database, clock, sealKey, isCharged })
    await before.claim(keyed)
    await before.keep(keyed, Buffer.from('kept'))
    const after = createReplays({ database, clock, sealKey: newKey, previousSealKey: sealKey, isCharged })
    const claim = await after.claim({ ...keyed, requestId: 'req_2' })
    expect(claim).toMatchObject({ kind: 'answered', requestId: 'req_1' })
    expect(claim.kind === 'answered' && claim.body.toString()).toBe('kept')
  })

  test('what is stored shows nothing, and opens neither under another secret nor in another row', async () => {
    await using opened = await engine.openStore()
    const idempotency = createIdempotency(sealKey)
    await store(opened.database, idempotency, 0)
    const rows = await opened.database.sql<{ response: string; body_sha256: string }>`SELECT * FROM idempotency`
    const shown = rows.map((row) => [
      JSON.stringify({ ...row }, texts),
      Buffer.from(row.response, 'base64url').toString(),
    ])
    expect(shown.flat().join()).not.toContain('canary')
    const other = createIdempotency(new Uint8Array(32).fill(8))
    await expect(opened.database.transaction((sql) => other.claim(sql, request, 0))).rejects.toThrow()
    const moved = { ...request, key: 'k-2' }
    await opened.database.transaction(async (sql) => {
      await idempotency.claim(sql, moved, 0)
      await sql`UPDATE idempotency SET status = 201, response = ${rows[0]?.response ?? ''} WHERE key = 'k-2'`
    })
    await expect(opened.database.transaction((sql) => idempotency.claim(sql, moved, 0))).rejects.toThrow()
  })
})

const texts = (_name: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
