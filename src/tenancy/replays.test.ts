import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createTestClock, type TestClock } from '../../test/parts/ledger.ts'
import { createId, type WorkspaceId } from '../kernel/ids.ts'
import type { Database } from '../store/database.ts'
import { createReplays, type KeyedGeneration } from './replays.ts'

const minuteMs = 60_000

/** A process, which renews when it is told to. */
function startReplica(database: Database, clock: TestClock, isCharged = false) {
  const works: (() => Promise<void>)[] = []
  const replays = createReplays({
    database,
    clock,
    sealKey: new Uint8Array(32).fill(7),
    isCharged: async () => isCharged,
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

  test('the key of a process that died is free again, unless its request was charged', async () => {
    for (const isCharged of [false, true]) {
      await using store = await engine.openStore()
      const clock = createTestClock()
      const request = wish()
      await startReplica(store.database, clock).claim(request)
      const second = startReplica(store.database, clock, isCharged)
      clock.advance(21 * minuteMs)
      const spent = { kind: 'spent' as const, requestId: request.requestId }
      expect(await second.claim(wish())).toEqual(isCharged ? spent : { kind: 'claimed' })
    }
  })

  test('a request that is over is not renewed, also where its answer could not be kept', async () => {
    await using store = await engine.openStore()
    const clock = createTestClock()
    let isAway = false
    const database: Database = {
      ...store.database,
      transaction: (work, shape) =>
        isAway ? Promise.reject(new Error('away')) : store.database.transaction(work, shape),
    }
    const first = startReplica(database, clock)
    const request = wish()
    await first.claim(request)
    isAway = true
    await expect(first.keep(request, Buffer.from('answer'))).rejects.toThrow('away')
    isAway = false
    clock.advance(15 * minuteMs)
    await first.renew()
    clock.advance(6 * minuteMs)
    const second = startReplica(store.database, clock, true)
    expect(await second.claim(wish())).toEqual({ kind: 'spent', requestId: request.requestId })
  })
})
