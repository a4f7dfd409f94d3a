import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createTestClock, type TestClock } from '../../test/parts/ledger.ts'
import { createId, type ReplicaId, type WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import type { KeyedGeneration } from './replay-rows.ts'
import { createReplays } from './replays.ts'

const minuteMs = 60_000

interface Process {
  readonly isCharged?: boolean
  /** What happens before it is said whether the request was charged. */
  readonly meanwhile?: () => Promise<void>
  /** Absent = of a version that does not say whose a key is. */
  readonly id?: ReplicaId
  /** Of the others. */
  readonly dead?: readonly ReplicaId[]
}

/** A process, which renews and tries again when it is told to. */
function startReplica(database: Database, clock: TestClock, process: Process = {}) {
  const { isCharged = false, meanwhile = async () => {}, id, dead = [] } = process
  const works: (() => Promise<void>)[] = []
  const replays = createReplays({
    database,
    clock,
    sealKey: new Uint8Array(32).fill(7),
    isCharged: async () => {
      await meanwhile()
      return isCharged
    },
    replica: id && { id, isLive: async (other) => !dead.includes(other) },
    every(_, work) {
      works.push(work)
      return () => void works.splice(0)
    },
  })
  const renew = async () => {
    for (const work of works) await work()
  }
  return { ...replays, renew }
}

const wish = (): KeyedGeneration => ({
  workspaceId: 'ws_1' as WorkspaceId,
  key: 'k',
  bodySha256: 'same',
  requestId: createId('req'),
})

/** Stands before the real one, and can be taken away. */
function createFaultyDatabase(database: Database) {
  const faulty = { ...database, isAway: false }
  faulty.transaction = (work, shape) =>
    faulty.isAway ? Promise.reject(new Error('away')) : database.transaction(work, shape)
  return faulty
}

forEachEngine((engine) => {
  test('a key is taken for as long as its request runs, though that be a day', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    const first = startReplica(store.database, clock)
    const request = wish()
    expect(await first.claim(request)).toEqual({ kind: 'claimed' })
    // On the embedded engine there is no other process.
    const second = engine.name === 'postgres' ? startReplica(store.database, clock) : first
    for (let minutes = 0; minutes < 30 * 60; minutes += 15) {
      clock.advance(15 * minuteMs)
      await first.renew()
    }
    expect(await second.claim(wish())).toEqual({ kind: 'running', requestId: request.requestId })
    await first.keep(request, Buffer.from('answer'))
    const answered = await second.claim(wish())
    expect(answered).toEqual({ kind: 'answered', requestId: request.requestId, body: Buffer.from('answer') })
  })

  test('an answer that is kept while somebody asks what became of it is given', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    const [one, other] = [createId('rep'), createId('rep')]
    const first = startReplica(store.database, clock, { id: one })
    const request = wish()
    await first.claim(request)
    const meanwhile = () => first.keep(request, Buffer.from('answer'))
    const second = startReplica(store.database, clock, { id: other, dead: [one], isCharged: true, meanwhile })
    expect(await second.claim(wish())).toMatchObject({ kind: 'answered', requestId: request.requestId })
  })

  test('a key that is freed in the moment in which it is found taken is claimed', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const first = startReplica(database, createTestClock())
    const request = wish()
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
    const second = startReplica({ ...database, transaction }, createTestClock())
    expect(await second.claim(wish())).toEqual({ kind: 'claimed' })
  })

  test('the key of a process that died is free again, unless its request was charged', async () => {
    for (const isCharged of [false, true]) {
      await using store = await engine.openStore()
      const clock = createTestClock()
      const request = wish()
      await startReplica(store.database, clock).claim(request)
      const second = startReplica(store.database, clock, { isCharged })
      clock.advance(21 * minuteMs)
      const spent = { kind: 'spent' as const, requestId: request.requestId }
      expect(await second.claim(wish())).toEqual(isCharged ? spent : { kind: 'claimed' })
    }
  })

  test('a request that is over is not renewed, also where its answer could not be kept', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    const database = createFaultyDatabase(store.database)
    const first = startReplica(database, clock)
    const request = wish()
    await first.claim(request)
    database.isAway = true
    await expect(first.keep(request, Buffer.from('answer'))).rejects.toThrow('away')
    database.isAway = false
    clock.advance(15 * minuteMs)
    await first.renew()
    clock.advance(6 * minuteMs)
    const second = startReplica(store.database, clock, { isCharged: true })
    expect(await second.claim(wish())).toEqual({ kind: 'spent', requestId: request.requestId })
  })

  test('a key that could not be freed is free at once where its request ran, and soon everywhere', async () => {
    for (const isElsewhere of [false, true]) {
      await using store = await engine.openStore()
      const clock = createTestClock()
      const database = createFaultyDatabase(store.database)
      const first = startReplica(database, clock, { id: 'rep_1' })
      // On the embedded engine there is no other process.
      const second = engine.name === 'postgres' ? startReplica(store.database, clock, { id: 'rep_2' }) : first
      const request = wish()
      await first.claim(request)
      database.isAway = true
      await first.free(request)
      await first.renew().catch(() => {})
      database.isAway = false
      if (isElsewhere) await first.renew()
      expect(await (isElsewhere ? second : first).claim(wish())).toEqual({ kind: 'claimed' })
      // The twin's key is its own: nothing that was to be freed before takes it away.
      await first.renew()
      expect((await first.claim(wish())).kind).toBe('running')
    }
  })

  test('of two that come at once one is claimed', async () => {
    await using store = await engine.openStore()
    const replays = startReplica(store.database, createTestClock(), { id: 'rep_1' })
    const claims = await Promise.all(Array.from({ length: 8 }, () => replays.claim(wish())))
    expect(claims.filter(({ kind }) => kind === 'claimed')).toHaveLength(1)
    expect(claims.filter(({ kind }) => kind === 'running')).toHaveLength(7)
  })

  test("a key is confirmed for as long as it is the request's own", async () => {
    await using store = await engine.openStore()
    const replays = startReplica(store.database, createTestClock(), { id: 'rep_1' })
    const request = wish()
    await replays.claim(request)
    expect(await replays.confirm(request)).toBe(true)
    expect(await replays.confirm(request)).toBe(true)
    expect((await replays.claim(wish())).kind).toBe('running')
  })

  // The embedded engine has one process, which knows what runs in it.
  if (engine.name !== 'postgres') return

  test('the key of a replica that is known to be dead is free at once, of one that lives it is taken', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    const request = wish()
    await startReplica(store.database, clock, { id: 'rep_1' }).claim(request)
    const hopeful = startReplica(store.database, clock, { id: 'rep_2' })
    clock.advance(60 * minuteMs)
    expect(await hopeful.claim(wish())).toEqual({ kind: 'running', requestId: request.requestId })
    const charged = startReplica(store.database, clock, { id: 'rep_2', dead: ['rep_1'], isCharged: true })
    expect(await charged.claim(wish())).toEqual({ kind: 'spent', requestId: request.requestId })
    const second = startReplica(store.database, clock, { id: 'rep_2', dead: ['rep_1'] })
    expect(await second.claim(wish())).toEqual({ kind: 'claimed' })
  })

  test('one that stood still before it was held for learns that its key was taken over', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    const sleeper = startReplica(store.database, clock, { id: 'rep_1' })
    const request = wish()
    await sleeper.claim(request)
    const other = startReplica(store.database, clock, { id: 'rep_2', dead: ['rep_1'] })
    const twin = wish()
    expect(await other.claim(twin)).toEqual({ kind: 'claimed' })
    expect(await sleeper.confirm(request)).toBe(false)
    expect(await other.confirm(twin)).toBe(true)
  })

  test('one that is confirmed while another takes it for dead keeps its key', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    const sleeper = startReplica(store.database, clock, { id: 'rep_1' })
    const request = wish()
    await sleeper.claim(request)
    const dead: ReplicaId[] = ['rep_1']
    // It wakes, is held for and confirmed when the other has just found neither a heartbeat nor a hold.
    const meanwhile = async () => {
      expect(await sleeper.confirm(request)).toBe(true)
      dead.pop()
    }
    const other = startReplica(store.database, clock, { id: 'rep_2', dead, meanwhile })
    expect(await other.claim(wish())).toEqual({ kind: 'running', requestId: request.requestId })
  })
})
