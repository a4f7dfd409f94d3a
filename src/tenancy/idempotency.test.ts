import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createTestClock, createTestTimers, type TestClock } from '../../test/parts/ledger.ts'
import { createId, type ReplicaId } from '../kernel/ids.ts'
import { clean } from '../ledger/clean.ts'
import type { Database } from '../store/database.ts'
import { CommitUnknown } from '../store/sql-error.ts'
import {
  createGenerationKeys,
  createIdempotency,
  generationScope,
  type Idempotency,
  type KeyedRequest,
} from './idempotency.ts'

const keys = { current: new Uint8Array(32).fill(7) }
const request: KeyedRequest = { scope: 'api:/x', key: 'k-1', bodySha256: 'aa', requestId: 'req_1' }
const answer = { status: 201, body: '{"secret":"canary-secret"}' }

async function store(database: Database, idempotency: Idempotency, now: number): Promise<void> {
  await database.transaction(async (sql) => {
    expect(await idempotency.claim(sql, request, now)).toEqual({ kind: 'claimed' })
    await idempotency.complete(sql, request, answer)
  })
}

forEachEngine((engine) => {
  test('the first answer is replayed for a day, and then the key is free', async () => {
    await using opened = await engine.openStore()
    const clock = createTestClock()
    const idempotency = createIdempotency(keys)
    const claim = (sent: KeyedRequest) =>
      opened.database.transaction((sql) => idempotency.claim(sql, sent, clock.now()))
    await store(opened.database, idempotency, clock.now())
    expect(await claim({ ...request, requestId: 'req_2' })).toEqual({ kind: 'answered', answer })
    expect(await claim({ ...request, bodySha256: 'bb' })).toEqual({ kind: 'conflict' })
    const removeExpired = () => clean({ ...opened, clock, timers: createTestTimers() }, clock.now())
    clock.advance(24 * 60 * 60 * 1000 - 1)
    await removeExpired()
    expect(await claim(request)).toEqual({ kind: 'answered', answer })
    clock.advance(1)
    await removeExpired()
    expect(await claim({ ...request, bodySha256: 'bb' })).toEqual({ kind: 'claimed' })
  })

  test('a rolled-back transaction leaves the key free', async () => {
    await using opened = await engine.openStore()
    const idempotency = createIdempotency(keys)
    const failed = opened.database.transaction(async (sql) => {
      await idempotency.claim(sql, request, 0)
      await idempotency.complete(sql, request, answer)
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    await store(opened.database, idempotency, 0)
  })

  test('the same key in another scope is another key', async () => {
    await using opened = await engine.openStore()
    const idempotency = createIdempotency(keys)
    await store(opened.database, idempotency, 0)
    const elsewhere = { ...request, scope: 'api:/y' }
    expect(await opened.database.transaction((sql) => idempotency.claim(sql, elsewhere, 0))).toEqual({
      kind: 'claimed',
    })
  })

  test('K3: an answer from before a rotation of the master secret is replayed, for management and generation', async () => {
    await using opened = await engine.openStore()
    const { database } = opened
    const rotatedKeys = { current: new Uint8Array(32).fill(8), previous: keys.current }
    await store(database, createIdempotency(keys), 0)
    const rotated = createIdempotency(rotatedKeys)
    expect(await database.transaction((sql) => rotated.claim(sql, request, 0))).toEqual({ kind: 'answered', answer })

    const options = { database, clock: createTestClock(), isCharged: async () => false }
    const keyed = { ...request, scope: generationScope('ws_1') }
    const before = createGenerationKeys({ ...options, keys })
    await before.claim(keyed)
    await before.complete(keyed, Buffer.from('kept'))
    const after = createGenerationKeys({ ...options, keys: rotatedKeys })
    const claim = await after.claim({ ...keyed, requestId: 'req_2' })
    expect(claim).toMatchObject({ kind: 'answered', requestId: 'req_1' })
    expect(claim.kind === 'answered' && claim.body.toString()).toBe('kept')
  })

  test('a stored answer is encrypted, and opens neither under another secret nor in another row', async () => {
    await using opened = await engine.openStore()
    const idempotency = createIdempotency(keys)
    await store(opened.database, idempotency, 0)
    const rows = await opened.database.sql<{ response: string; body_sha256: string }>`SELECT * FROM idempotency`
    const shown = rows.map((row) => [
      JSON.stringify({ ...row }, texts),
      Buffer.from(row.response, 'base64url').toString(),
    ])
    expect(shown.flat().join()).not.toContain('canary')
    const other = createIdempotency({ current: new Uint8Array(32).fill(8) })
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

const minuteMs = 60_000

interface Process {
  readonly isCharged?: boolean
  /** Runs before it is known whether the request was charged. */
  readonly meanwhile?: () => Promise<void>
  readonly id?: ReplicaId
  /** Other replicas that this one considers dead. */
  readonly dead?: readonly ReplicaId[]
  readonly claimMaxMs?: number
}

/** A process whose timers run when the test says so. */
function startReplica(database: Database, clock: TestClock, process: Process = {}) {
  const { isCharged = false, meanwhile = async () => {}, id = 'rep_1', dead = [], claimMaxMs = 600_000 } = process
  const works: (() => unknown)[] = []
  const generationKeys = createGenerationKeys({
    ...{ database, clock, keys, claimMaxMs },
    isCharged: async () => {
      await meanwhile()
      return isCharged
    },
    replica: database.engine === 'sqlite' ? undefined : { id, isReplicaLive: async (other) => !dead.includes(other) },
    every(_, work) {
      works.push(work)
      return () => void works.splice(0)
    },
  })
  const renew = async () => {
    for (const work of works) await work()
  }
  return { ...generationKeys, renew }
}

const generation = (): KeyedRequest => ({
  scope: generationScope('ws_1'),
  key: 'k',
  bodySha256: 'same',
  requestId: createId('req'),
})

/** Far more than any condition takes. */
const triesMax = 1_000

/** Rejects every transaction while `isAway`. */
function createFaultyDatabase(database: Database) {
  const faulty = { ...database, isAway: false }
  faulty.transaction = (work, shape) =>
    faulty.isAway ? Promise.reject(new Error('away')) : database.transaction(work, shape)
  return faulty
}

forEachEngine((engine, storeTest) => {
  storeTest('a key is taken for as long as its request runs, even for more than a day', async ({ database }) => {
    const clock = createTestClock()
    const first = startReplica(database, clock)
    const request = generation()
    expect(await first.claim(request)).toEqual({ kind: 'claimed' })
    // On the embedded engine there is no other process.
    const second = engine.name === 'postgres' ? startReplica(database, clock, { id: 'rep_2' }) : first
    for (let minutes = 0; minutes < 30 * 60; minutes += 15) {
      clock.advance(15 * minuteMs)
      await first.renew()
    }
    expect(await second.claim(generation())).toEqual({ kind: 'running', requestId: request.requestId })
    await first.complete(request, Buffer.from('answer'))
    const answered = await second.claim(generation())
    expect(answered).toEqual({ kind: 'answered', requestId: request.requestId, body: Buffer.from('answer') })
  })

  storeTest('an answer that is stored while another claim asks the ledger is replayed', async ({ database }) => {
    const clock = createTestClock()
    const first = startReplica(database, clock)
    const request = generation()
    await first.claim(request)
    const meanwhile = () => first.complete(request, Buffer.from('answer'))
    const second = startReplica(database, clock, { id: 'rep_2', dead: ['rep_1'], isCharged: true, meanwhile })
    expect(await second.claim(generation())).toMatchObject({ kind: 'answered', requestId: request.requestId })
  })

  storeTest('a key that is freed between the two statements of a claim is claimed', async ({ database }) => {
    const first = startReplica(database, createTestClock())
    const request = generation()
    await first.claim(request)
    // Between the two statements of the second claim.
    const transaction: Database['transaction'] = (work, shape) =>
      database.transaction(async (sql) => {
        const found = await work(sql)
        if (found === 'claimed' || transactions++ > 0) return found
        await sql`DELETE FROM idempotency`
        return undefined as never
      }, shape)
    let transactions = 0
    const second = startReplica({ ...database, transaction }, createTestClock(), { id: 'rep_2' })
    expect(await second.claim(generation())).toEqual({ kind: 'claimed' })
  })

  test('the key of a dead process is free, unless its request was charged', async () => {
    for (const isCharged of [false, true]) {
      await using store = await engine.openStore()
      const clock = createTestClock()
      const request = generation()
      await startReplica(store.database, clock).claim(request)
      const second = startReplica(store.database, clock, { id: 'rep_2', dead: ['rep_1'], isCharged })
      const spent = { kind: 'spent' as const, requestId: request.requestId }
      expect(await second.claim(generation())).toEqual(isCharged ? spent : { kind: 'claimed' })
    }
  })

  test('an answer that could not be stored is stored later, and its key is not renewed', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    const database = createFaultyDatabase(store.database)
    const first = startReplica(database, clock, { isCharged: true })
    // On the embedded engine there is no other process.
    const second = engine.name === 'postgres' ? startReplica(store.database, clock, { id: 'rep_2' }) : first
    const request = generation()
    await first.claim(request)
    database.isAway = true
    await expect(first.complete(request, Buffer.from('answer'))).rejects.toThrow('away')
    database.isAway = false
    expect(await first.claim(generation())).toEqual({ kind: 'running', requestId: request.requestId })
    clock.advance(15 * minuteMs)
    await first.renew()
    const [row] = await store.database.sql<{ expires_at: bigint }>`SELECT expires_at FROM idempotency`
    expect(Number(row?.expires_at)).toBe(clock.now() - 15 * minuteMs + 24 * 60 * minuteMs)
    expect(await second.claim(generation())).toEqual({
      ...{ kind: 'answered', requestId: request.requestId, body: Buffer.from('answer') },
    })
  })

  test('a key that could not be freed is free at once in its process, and elsewhere after a retry', async () => {
    for (const isElsewhere of [false, true]) {
      await using store = await engine.openStore()
      const clock = createTestClock()
      const database = createFaultyDatabase(store.database)
      const first = startReplica(database, clock)
      // On the embedded engine there is no other process.
      const second = engine.name === 'postgres' ? startReplica(store.database, clock, { id: 'rep_2' }) : first
      const request = generation()
      await first.claim(request)
      database.isAway = true
      await first.abandon(request)
      await first.renew().catch(() => {})
      database.isAway = false
      if (isElsewhere) await first.renew()
      expect(await (isElsewhere ? second : first).claim(generation())).toEqual({ kind: 'claimed' })
      // The retry of the delete does not take the key from the request that claimed it since.
      await first.renew()
      expect((await first.claim(generation())).kind).toBe('running')
    }
  })

  test('a claim does not wait for a database that hangs, and leaves no key taken when it goes on', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    const hanging = Promise.withResolvers<void>()
    const commits = Promise.withResolvers<void>()
    const transaction: Database['transaction'] = (work, shape) =>
      store.database.transaction(async (sql) => {
        const result = await work(sql)
        commits.resolve()
        await hanging.promise
        return result
      }, shape)
    const database = { ...store.database, transaction }
    const first = startReplica(database, clock, { claimMaxMs: 100 })
    const request = generation()
    expect(await first.claim(request)).toEqual({ kind: 'unavailable' })
    await commits.promise
    // Others would wait as long.
    const others = Array.from({ length: 20 }, (_, at) => first.claim({ ...generation(), key: `other ${at}` }))
    expect((await Promise.all(others)).every(({ kind }) => kind === 'unavailable')).toBe(true)
    hanging.resolve()
    // It is claimed, and freed. On the embedded engine there is no other process.
    const second = engine.name === 'postgres' ? startReplica(store.database, clock, { id: 'rep_2' }) : first
    const keyOf = async () => await store.database.sql`SELECT key FROM idempotency`
    while ((await first.claim({ ...generation(), key: 'another' })).kind === 'unavailable') await Bun.sleep(5)
    expect(await keyOf()).toEqual([{ key: 'another' }])
    expect(await second.claim(generation())).toEqual({ kind: 'claimed' })
  })

  storeTest('exactly one of several simultaneous requests claims the key', async ({ database }) => {
    const replica = startReplica(database, createTestClock())
    const claims = await Promise.all(Array.from({ length: 8 }, () => replica.claim(generation())))
    expect(claims.filter(({ kind }) => kind === 'claimed')).toHaveLength(1)
    expect(claims.filter(({ kind }) => kind === 'running')).toHaveLength(7)
  })

  storeTest('a request that still has its key confirms it', async ({ database }) => {
    const replica = startReplica(database, createTestClock())
    const request = generation()
    await replica.claim(request)
    expect(await replica.confirm(request)).toBe(true)
    expect(await replica.confirm(request)).toBe(true)
    expect((await replica.claim(generation())).kind).toBe('running')
  })

  // The embedded engine has one process, which knows what runs in it.
  if (engine.name !== 'postgres') return

  storeTest('the key of a live replica stays taken, that of a dead one is free at once', async ({ database }) => {
    const clock = createTestClock()
    const request = generation()
    await startReplica(database, clock).claim(request)
    const hopeful = startReplica(database, clock, { id: 'rep_2' })
    clock.advance(60 * minuteMs)
    expect(await hopeful.claim(generation())).toEqual({ kind: 'running', requestId: request.requestId })
    const charged = startReplica(database, clock, { id: 'rep_2', dead: ['rep_1'], isCharged: true })
    expect(await charged.claim(generation())).toEqual({ kind: 'spent', requestId: request.requestId })
    const second = startReplica(database, clock, { id: 'rep_2', dead: ['rep_1'] })
    expect(await second.claim(generation())).toEqual({ kind: 'claimed' })
  })

  storeTest('a claim that is committed only after its reply was lost leaves no key taken', async (store) => {
    const clock = createTestClock()
    const database = { ...store.database }
    const first = startReplica(database, clock)
    const commit = Promise.withResolvers<void>()
    let placing: Promise<unknown> | undefined
    const usual = database.transaction
    let hasTried = false
    database.transaction = async (work) => {
      database.transaction = (free) => usual(free).finally(() => (hasTried = true))
      const worked = Promise.withResolvers<void>()
      placing = store.database.transaction(async (sql) => {
        await work(sql)
        await sql`SELECT set_config('idle_in_transaction_session_timeout', '0', true)`
        worked.resolve()
        await commit.promise
      })
      await Promise.race([worked.promise, placing])
      throw new CommitUnknown(new Error('the connection broke'))
    }
    await expect(first.claim(generation())).rejects.toThrow('the connection broke')
    const waits = async () =>
      (
        await store.database.sql`SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      ).length > 0
    for (let tries = 0; !hasTried && !(await waits()) && tries < triesMax; tries++) await Bun.sleep(5)
    commit.resolve()
    await placing
    const second = startReplica(store.database, clock, { id: 'rep_2' })
    let claim = await second.claim(generation())
    for (let tries = 0; claim.kind === 'running' && tries < triesMax; tries++) {
      await Bun.sleep(5)
      claim = await second.claim(generation())
    }
    expect(claim).toEqual({ kind: 'claimed' })
  })

  storeTest('a process that was suspended before its hold learns that its key was taken over', async ({ database }) => {
    const clock = createTestClock()
    const sleeper = startReplica(database, clock)
    const request = generation()
    await sleeper.claim(request)
    const other = startReplica(database, clock, { id: 'rep_2', dead: ['rep_1'] })
    const twin = generation()
    expect(await other.claim(twin)).toEqual({ kind: 'claimed' })
    expect(await sleeper.confirm(request)).toBe(false)
    expect(await other.confirm(twin)).toBe(true)
  })

  storeTest(
    'a request that is confirmed while another replica considers it dead keeps its key',
    async ({ database }) => {
      const clock = createTestClock()
      const sleeper = startReplica(database, clock)
      const request = generation()
      await sleeper.claim(request)
      const dead: ReplicaId[] = ['rep_1']
      // It resumes, holds and confirms when the other replica has just found neither a heartbeat nor a hold.
      const meanwhile = async () => {
        expect(await sleeper.confirm(request)).toBe(true)
        dead.pop()
      }
      const other = startReplica(database, clock, { id: 'rep_2', dead, meanwhile })
      expect(await other.claim(generation())).toEqual({ kind: 'running', requestId: request.requestId })
    },
  )
})
