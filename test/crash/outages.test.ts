import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { startCrashApp } from '../parts/crash-app.ts'
import { countCharges, withBooks } from '../parts/crash-books.ts'
import type { Receipt } from '../parts/crash-client.ts'
import { mayMount, mountSmallDisk } from '../parts/crash-disk.ts'
import { startLoad } from '../parts/crash-load.ts'
import { type CrashPostgres, startCrashPostgres } from '../parts/crash-postgres.ts'
import { startCrashUpstream } from '../parts/crash-upstream.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { upstreamConfig } from '../parts/gateway.ts'
import { createJumpClock, type JumpClock, passTimeUntil } from '../parts/jump-clock.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import {
  allAsks,
  expectSoundBooks,
  loseStore,
  type Outage,
  probeUntilRefused,
  type Scene,
  until,
  untilServed,
} from './outage.ts'

// The store goes away under a running gateway and comes back; the gateway is never restarted.

interface Store extends Outage, AsyncDisposable {
  /** Where the gateway's data is to be. */
  readonly folder: string
  readonly databaseUrl: string | undefined
}

async function openFullDisk(): Promise<Store> {
  const disk = mountSmallDisk()
  if (disk === undefined) throw new Error('no file system could be mounted')
  return {
    folder: disk.path,
    databaseUrl: undefined,
    begin: async () => disk.fill(),
    end: async () => disk.empty(),
    [Symbol.asyncDispose]: async () => disk[Symbol.dispose](),
  }
}

async function openPostgres(outage: (server: CrashPostgres) => Outage): Promise<Store> {
  const server = await startCrashPostgres()
  const folder = createThrowAwayFolder()
  return {
    ...outage(server),
    folder: folder.path,
    databaseUrl: await server.createDatabase(),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

const openStoppedPostgres = () => openPostgres((server) => ({ begin: () => server.cut(), end: () => server.start() }))
const openFrozenPostgres = () => openPostgres((server) => ({ begin: () => server.freeze(), end: () => server.thaw() }))

interface StoreCase {
  readonly name: string
  open(): Promise<Store>
  readonly isMissing: boolean
  /** A commit that does not come back is only known by the time it takes. */
  readonly isSlow?: boolean
}

const withoutPostgres = findPostgresPrograms() === undefined
const stores: readonly StoreCase[] = [
  { name: 'a full disk', open: openFullDisk, isMissing: !mayMount() },
  { name: 'PostgreSQL stopped', open: openStoppedPostgres, isMissing: withoutPostgres },
  { name: 'PostgreSQL frozen', open: openFrozenPostgres, isMissing: withoutPostgres, isSlow: true },
]

async function inScene(store: Store, clock: Clock | JumpClock, play: (scene: Scene) => Promise<void>): Promise<void> {
  const crashUpstream = startCrashUpstream()
  const dataFolder = join(store.folder, 'data')
  mkdirSync(dataFolder, { mode: 0o700 })
  const configPath = join(store.folder, 'tollgate.yaml')
  writeFileSync(configPath, upstreamConfig(crashUpstream.upstream.url))
  const data = { dataFolder, databaseUrl: store.databaseUrl, configPath }
  const gateway = await startCrashApp(data, clock)
  try {
    await play({ gateway, crashUpstream, data, outage: store })
  } finally {
    // After a failed expectation the store may be away still; then the charges are only given up by the clock.
    await ('jump' in clock ? passTimeUntil(clock, gateway.stop()) : gateway.stop())
    crashUpstream.upstream.stop()
  }
}

function dispatched(receipts: readonly Receipt[]): number {
  return receipts.filter(({ end }) => end !== 'refused').length
}

for (const { name, open, isMissing, isSlow = false } of stores) {
  describe.skipIf(isMissing)(name, () => {
    test('refuses calls with 503 without calling a provider; running requests are completed and charged afterwards', async () => {
      await using store = await open()
      // The clock stands still, so that nothing is given up however slow this machine is.
      await inScene(store, isSlow ? systemClock : createJumpClock(), async (scene) => {
        const { running, probes } = await loseStore(scene)
        await store.end()
        const receipts = await Promise.all(running)
        expect(receipts.map(({ end }) => end)).toEqual(allAsks.map(() => 'complete'))
        const all = [...receipts, ...(await Promise.all(probes)), ...(await untilServed(scene.gateway))]
        expect(scene.crashUpstream.upstream.calls.length).toBe(dispatched(all))
        await expectSoundBooks(scene, all)
      })
    })

    test('under load nothing is lost and nothing is unpaid', async () => {
      await using store = await open()
      await inScene(store, systemClock, async (scene) => {
        const load = startLoad({ gateway: { ...scene.gateway, isAlive: () => true }, streams: 30, wholes: 4 })
        const count = (wanted: Receipt['end']) => load.receipts.filter(({ end }) => end === wanted).length
        await until(() => load.runningStreams() >= 20 && count('complete') >= 20)
        await store.begin()
        const probes = await probeUntilRefused(scene.gateway)
        await store.end()
        const before = count('complete')
        await until(() => count('complete') >= before + 50)
        const receipts = [...(await load.end()), ...(await Promise.all(probes))]
        expect(receipts.filter(({ end }) => end === 'failed' || end === 'cut')).toEqual([])
        expect(scene.crashUpstream.upstream.calls.length).toBe(dispatched(receipts))
        await expectSoundBooks(scene, receipts)
      })
    })

    // Half a minute by the clock on the wall would be too long for a test.
    if (isSlow) return
    test('running requests end with an error and without a charge in an outage of over 30 seconds', async () => {
      await using store = await open()
      const clock = createJumpClock()
      await inScene(store, clock, async (scene) => {
        const { running, probes } = await loseStore(scene)
        // Who reaches the end of an answer late waits from then on.
        const receipts = await passTimeUntil(clock, Promise.all(running))
        for (const [at, { end, status, text }] of receipts.entries()) {
          const isStream = allAsks[at]?.stream
          expect({ end, status }).toEqual(isStream ? { end: 'failed', status: 200 } : { end: 'refused', status: 503 })
          expect(text).toContain('OVERLOADED')
        }
        const early = await passTimeUntil(clock, Promise.all(probes))
        await store.end()
        const served = await untilServed(scene.gateway)
        await expectSoundBooks(scene, [...receipts, ...early, ...served])
        // The one that was served afterwards.
        expect(await withBooks(scene.data, ({ sql }) => countCharges(sql))).toBe(1)
      })
    })
  })
}
