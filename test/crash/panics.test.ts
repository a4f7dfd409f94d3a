// A PostgreSQL that cannot sync or write its log ends all of its processes at once (PANIC) and recovers from what it finds
// there, which may include the commit that it could not sync. Whenever that happens, nobody is told that nothing was charged
// and is charged, no answer is complete without its charge, and no idempotency key is paid for twice.

import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { checkBooks, openingCredit, withBooks } from '../parts/crash-books.ts'
import { askForReceipt, askKinds } from '../parts/crash-client.ts'
import { startCrashGateway } from '../parts/crash-gateway.ts'
import { startCrashPostgres } from '../parts/crash-postgres.ts'
import { startCrashUpstream } from '../parts/crash-upstream.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { until } from './outage.ts'
import { createSite } from './run-cycles.ts'
import { type Call, checkCalls, checkSums, insist, isReplayed, readCharges, stress } from './stress.ts'

const isPossible = Bun.which('strace') !== null && findPostgresPrograms() !== undefined

/** Whole and streamed, with and without an idempotency key. */
const variants = askKinds.map((kind, at) => ({ kind, stream: at % 2 === 1, isKeyed: at < 2 }))

/** A gateway on a server of its own. */
async function openScene({ restarts }: { readonly restarts: boolean }) {
  const crashUpstream = startCrashUpstream()
  const postgres = await startCrashPostgres({ syncs: true, restarts })
  const site = await createSite('postgres', crashUpstream, await postgres.createDatabase())
  const gateway = await startCrashGateway(site)
  const calls: Call[] = []
  return {
    crashUpstream,
    postgres,
    gateway,
    /** No two calls cost the same, so that the amount of a charge says which call it is for. */
    newCall(at: number): Call {
      const { kind, stream, isKeyed } = variants[at % variants.length] as (typeof variants)[number]
      const order = { inputTokens: 7, outputTokens: 1 + calls.length, pieces: 2, pauseMs: 1 }
      const call: Call = {
        ask: { ...kind, stream, order, ...(isKeyed && { idempotencyKey: `call ${calls.length}` }) },
        receipts: [],
      }
      calls.push(call)
      return call
    },
    /** By plain SQL, and by what the clients saw. */
    async expectSoundBooks(): Promise<void> {
      const all = calls.flatMap(({ receipts }) => receipts)
      const receipts = all.filter((receipt) => !isReplayed(receipt))
      expect(gateway.errors()).toEqual([])
      await withBooks(site, async (database) => {
        expect(await checkBooks(database, { paidIn: openingCredit, receipts, asked: all.length })).toEqual([])
        expect(checkCalls(calls, await readCharges(database.sql))).toEqual([])
        expect(await checkSums(database.sql)).toEqual([])
      })
    },
    async [Symbol.asyncDispose]() {
      await gateway.kill()
      crashUpstream.upstream.stop()
      await postgres[Symbol.asyncDispose]()
      rmSync(site.dataFolder, { recursive: true, force: true })
    },
  }
}

test.skipIf(!isPossible)(
  'postgres: after any sync of a call failed and the server recovered in place, the books agree with what the client saw (strace)',
  async () => {
    await using scene = await openScene({ restarts: true })
    const { crashUpstream, gateway, postgres } = scene
    let failed = 0
    for (const at of variants.keys()) {
      // The pool has all of its connections with the first call, and takes them in turn: the next call meets each process.
      await insist(() => gateway, scene.newCall(at))
      for (let from = 0; ; from++) {
        const [process] = (await postgres.processes()).slice(from)
        if (process === undefined) break
        const injection = await postgres.failSyncs([process])
        await insist(() => gateway, scene.newCall(at))
        await injection.end()
        if (injection.hits() > 0) failed++
        await postgres.recovered()
        await insist(() => gateway, scene.newCall(at))
      }
      crashUpstream.closeGate()
      const calling = insist(() => gateway, scene.newCall(at))
      await until(() => crashUpstream.atGate() === 1)
      const injection = await postgres.failSyncs()
      await expect(postgres.checkpoint()).rejects.toThrow()
      crashUpstream.openGate()
      await calling
      await injection.end()
      await postgres.recovered()
    }
    // At least its hold and its charge.
    expect(failed).toBeGreaterThanOrEqual(2 * variants.length)
    expect(await gateway.stop()).toBe(0)
    await scene.expectSoundBooks()
  },
)

const triesMax = 5

for (const what of ['a failed sync', 'a full disk'] as const) {
  test
    .skipIf(!isPossible)
    .concurrent(
      `postgres: charges are unknown while a server that ended with ${what} is away, and each call is paid for once when it is back (strace)`,
      async () => {
        await using scene = await openScene({ restarts: false })
        const { crashUpstream, gateway, postgres } = scene
        // The server may end before the first charge is committed; then none is unknown.
        for (let tries = 0, unknown = 0; unknown === 0; tries++) {
          expect(tries).toBeLessThan(triesMax)
          const calls = Array.from({ length: 2 * variants.length }, (_, at) => scene.newCall(at))
          crashUpstream.closeGate()
          const asking = calls.map(async (call) => {
            const receipt = await askForReceipt(gateway, call.ask)
            call.receipts.push(receipt)
            return receipt
          })
          await until(() => crashUpstream.atGate() === calls.length)
          const injection = await (what === 'a full disk' ? postgres.fillLog() : postgres.failSyncs())
          crashUpstream.openGate()
          const first = await Promise.all(asking)
          expect(injection.hits()).toBeGreaterThan(0)
          await injection.end()
          unknown = first.filter(({ text }) => text.includes('it is not known yet whether it was charged')).length

          await postgres.cut()
          await postgres.start()
          await Promise.all(
            calls.filter(({ ask }) => ask.idempotencyKey !== undefined).map((call) => insist(() => gateway, call)),
          )
        }
        expect(await gateway.stop()).toBe(0)
        await scene.expectSoundBooks()
      },
    )
}

test.skipIf(!isPossible).concurrent('postgres: under load, with panics of both kinds (strace)', async () => {
  const plan = [
    { after: 0.2, store: 'fails to sync' },
    { after: 0.4, store: 'is full' },
    { after: 0.6, store: 'fails to sync', isKilled: true },
    { after: 0.8, store: 'is full', isKilled: true },
  ] as const
  const { violations, complete } = await stress({ engine: 'postgres', calls: 300, stallSeconds: 2, plan })
  expect(violations).toEqual([])
  expect(complete).toBeGreaterThan(100)
})
