import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { startCommitProxy } from '../parts/commit-proxy.ts'
import { checkBooks, countCharges, openingCredit, withBooks } from '../parts/crash-books.ts'
import { type Ask, askForReceipt, type Receipt } from '../parts/crash-client.ts'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { injectSlowSync, injectSyncError } from '../parts/crash-inject.ts'
import { startCrashUpstream } from '../parts/crash-upstream.ts'
import { findPostgresPrograms } from '../parts/postgres.ts'
import { chat, messages } from '../parts/surfaces.ts'
import { until } from './outage.ts'
import { createSite, type Engine } from './run-cycles.ts'
import { stress } from './stress.ts'

// A charge whose commit reaches the store and is not confirmed for more than thirty seconds, with the real gateway as
// a separate process: a sync of the disk that hangs (strace), and a PostgreSQL whose replies are lost behind a COMMIT. The
// error must not say that nothing was charged, and a retry under its idempotency key must not be charged again.

const order = { inputTokens: 7, outputTokens: 5, pieces: 2, pauseMs: 1 }
/** 7 × 1,000 + 5 × 2,000 nano-dollars. */
const price = 17_000n
const asks: readonly Ask[] = [
  { surface: chat, model: 'test/chat', stream: false, order, idempotencyKey: 'order-1' },
  { surface: messages, model: 'test/chat', stream: true, order, idempotencyKey: 'order-2' },
]
/** Longer than any test waits; the test ends it. */
const longSeconds = 600

/** A gateway on a store whose next commit of a charge hangs after `stall`. */
async function openScene(engine: Engine) {
  const crashUpstream = startCrashUpstream()
  const site = await createSite(engine, crashUpstream)
  const target = site.databaseUrl === undefined ? undefined : new URL(site.databaseUrl)
  const proxy = target && startCommitProxy(Number(target.port))
  if (target && proxy) target.port = String(proxy.port)
  const start = () => startCrashGateway({ ...site, databaseUrl: target?.href })
  return {
    crashUpstream,
    site,
    start,
    /** Resolves when the next charge will meet it; answers with how to end it. */
    async stall(gateway: CrashGateway): Promise<() => Promise<void>> {
      if (proxy) {
        void proxy.stallAtNextCharge()
        return async () => proxy.resume()
      }
      const injection = await injectSlowSync(gateway.pid, join(site.dataFolder, 'tollgate.db-wal'), longSeconds)
      return () => injection.end()
    },
    close() {
      proxy?.[Symbol.dispose]()
      crashUpstream.upstream.stop()
      rmSync(site.dataFolder, { recursive: true, force: true })
    },
  }
}

/** Sends it until it is over, as a patient client would. */
async function insist(gateway: CrashGateway, ask: Ask): Promise<Receipt> {
  for (;;) {
    const receipt = await askForReceipt(gateway, ask)
    if (receipt.status !== 429 && receipt.status !== 503) return receipt
    await Bun.sleep(100)
  }
}

const engines = [
  ['sqlite', Bun.which('strace') !== null, ' (strace)'],
  ['postgres', findPostgresPrograms() !== undefined, ''],
] as const

for (const [engine, isPossible, needs] of engines) {
  for (const ask of asks) {
    const what = `${engine}, ${ask.surface.name}, ${ask.stream ? 'streamed' : 'whole'}`
    for (const end of ['the stall ends', 'the process is killed'] as const) {
      test
        .skipIf(!isPossible)
        .concurrent(
          `${what}: a charge that is not confirmed in thirty seconds is unknown, and paid for once when ${end}${needs}`,
          async () => {
            const scene = await openScene(engine)
            const { crashUpstream, site } = scene
            const { calls } = crashUpstream.upstream
            let gateway = await scene.start()
            try {
              crashUpstream.closeGate()
              const asking = askForReceipt(gateway, ask)
              await until(() => calls.length === 1)
              const endStall = await scene.stall(gateway)
              crashUpstream.openGate()
              const unknown = await asking
              expect(unknown.end).toBe(ask.stream ? 'failed' : 'refused')
              expect(unknown.text).toContain('it is not known yet whether it was charged')
              expect(unknown.text).not.toMatch(/Nothing was charged|\[DONE\]|message_stop/)
              if (!ask.stream) {
                expect(unknown.status).toBe(503)
                expect(unknown.headers?.get('retry-after')).toBe('1')
                expect(unknown.headers?.get('x-should-retry')).toBe('true')
              }
              // A process under strace is not gone before strace has let go of it.
              const dying = end === 'the process is killed' ? gateway.kill() : undefined
              await endStall()
              await dying
              if (dying) gateway = await scene.start()

              const again = await insist(gateway, ask)
              const isKept = end === 'the stall ends' && !ask.stream
              expect([again.status, again.headers?.get('x-tollgate-replayed') ?? null]).toEqual(
                isKept ? [200, 'true'] : [400, null],
              )
              if (!isKept) expect(again.text).toContain(unknown.requestId ?? 'no id')
              expect(calls).toHaveLength(1)
              expect(await gateway.stop()).toBe(0)
              await withBooks(site, async (database) => {
                const receipts = [unknown]
                expect(await countCharges(database.sql)).toBe(1)
                expect(await checkBooks(database, { paidIn: openingCredit, receipts, asked: 1 })).toEqual([])
                const rows = await database.sql<{ status: bigint; charge: bigint }>`SELECT status, charge FROM requests
                WHERE id = ${unknown.requestId ?? ''}`
                // The process that would correct the row was killed.
                const status = end === 'the stall ends' ? 503n : 200n
                expect(rows).toEqual([{ status, charge: price }])
              })
              expect(gateway.errors()).toEqual([])
            } finally {
              await gateway.kill()
              scene.close()
            }
          },
        )
    }
  }
}

for (const ask of asks) {
  test
    .skipIf(Bun.which('strace') === null)
    .concurrent(
      `sqlite, ${ask.surface.name}, ${ask.stream ? 'streamed' : 'whole'}: an answer that is paid for goes out though the disk hangs right after its charge (strace)`,
      async () => {
        const scene = await openScene('sqlite')
        const { crashUpstream, site } = scene
        const gateway = await scene.start()
        try {
          crashUpstream.closeGate()
          const asking = askForReceipt(gateway, ask)
          await until(() => crashUpstream.upstream.calls.length === 1)
          // The first is that of the charge.
          const injection = await injectSlowSync(gateway.pid, join(site.dataFolder, 'tollgate.db-wal'), longSeconds, 2)
          crashUpstream.openGate()
          const paid = await asking
          expect(paid.end).toBe('complete')
          await injection.end()
          const again = await insist(gateway, ask)
          expect([again.status, again.headers?.get('x-tollgate-replayed') ?? null]).toEqual(
            ask.stream ? [400, null] : [200, 'true'],
          )
          expect(await gateway.stop()).toBe(0)
          await withBooks(site, async (database) => {
            expect(await checkBooks(database, { paidIn: openingCredit, receipts: [paid], asked: 1 })).toEqual([])
          })
        } finally {
          await gateway.kill()
          scene.close()
        }
      },
    )
}

test
  .skipIf(Bun.which('strace') === null)
  .concurrent(
    'sqlite: calls whose idempotency key cannot be claimed because the disk hangs get an answer, and are paid for once when they are sent again (strace)',
    async () => {
      const scene = await openScene('sqlite')
      const { crashUpstream, site } = scene
      const gateway = await scene.start()
      try {
        const injection = await injectSlowSync(gateway.pid, join(site.dataFolder, 'tollgate.db-wal'), longSeconds)
        // The second of each does not wait behind the first.
        const refused = [
          ...(await Promise.all(asks.map((ask) => askForReceipt(gateway, ask)))),
          ...(await Promise.all(asks.map((ask) => askForReceipt(gateway, ask)))),
        ]
        for (const { status, headers, text } of refused) {
          expect([status, headers?.get('retry-after')]).toEqual([503, '1'])
          expect(text).toContain('Tollgate cannot reach its database.')
        }
        expect(crashUpstream.upstream.calls).toHaveLength(0)
        await injection.end()
        const again = await Promise.all(asks.map((ask) => insist(gateway, ask)))
        expect(again.map(({ end }) => end)).toEqual(['complete', 'complete'])
        expect(await gateway.stop()).toBe(0)
        await withBooks(site, async (database) => {
          const receipts = [...refused, ...again]
          expect(await checkBooks(database, { paidIn: openingCredit, receipts, asked: receipts.length })).toEqual([])
          expect(await countCharges(database.sql)).toBe(asks.length)
          const keys = await database.sql<{ state: string }>`SELECT state FROM idempotency`
          expect(keys.map(({ state }) => state)).toEqual(['done', 'done'])
        })
        expect(gateway.errors()).toEqual([])
      } finally {
        await gateway.kill()
        scene.close()
      }
    },
  )

// A log that cannot be synced: SQLite reports the commit as failed, and what it wrote may all the same be in the log that
// the next process reads. So it is unknown, too: charged if the process is killed, and not charged if it goes on.
for (const ask of asks) {
  for (const end of ['the disk recovers', 'the process is killed'] as const) {
    test
      .skipIf(Bun.which('strace') === null)
      .concurrent(
        `sqlite, ${ask.surface.name}, ${ask.stream ? 'streamed' : 'whole'}: a charge that cannot be synced is unknown until ${end} (strace)`,
        async () => {
          const scene = await openScene('sqlite')
          const { crashUpstream, site } = scene
          const { calls } = crashUpstream.upstream
          let gateway = await scene.start()
          try {
            crashUpstream.closeGate()
            const asking = askForReceipt(gateway, ask)
            await until(() => calls.length === 1)
            const injection = await injectSyncError([gateway.pid], join(site.dataFolder, 'tollgate.db-wal'))
            crashUpstream.openGate()
            const unknown = await asking
            expect(unknown.end).toBe(ask.stream ? 'failed' : 'refused')
            expect(unknown.text).toContain('it is not known yet whether it was charged')
            const isKilled = end === 'the process is killed'
            const dying = isKilled ? gateway.kill() : undefined
            await injection.end()
            await dying
            if (isKilled) gateway = await scene.start()

            const again = await insist(gateway, ask)
            expect(again.status).toBe(isKilled ? 400 : 200)
            if (isKilled) expect(again.text).toContain(unknown.requestId ?? 'no id')
            expect(calls).toHaveLength(isKilled ? 1 : 2)
            expect(await gateway.stop()).toBe(0)
            await withBooks(site, async (database) => {
              const receipts = isKilled ? [unknown] : [unknown, again]
              expect(await checkBooks(database, { paidIn: openingCredit, receipts, asked: receipts.length })).toEqual(
                [],
              )
              const rows = await database.sql<{ status: bigint; charge: bigint | null }>`SELECT status, charge
                FROM requests WHERE id = ${unknown.requestId ?? ''}`
              // The process that would correct the row was killed.
              expect(rows).toEqual([isKilled ? { status: 200n, charge: price } : { status: 503n, charge: null }])
              expect(await countCharges(database.sql)).toBe(1)
            })
          } finally {
            await gateway.kill()
            scene.close()
          }
        },
      )
  }
}

// The short version of `npm run stress`.
for (const [engine, isPossible, needs] of engines) {
  test
    .skipIf(!isPossible)
    .concurrent(
      `${engine}: under load with a stall and a kill no call is paid for twice and every keyed call is paid for once${needs}`,
      async () => {
        const plan = [
          { after: 0.3, store: 'hangs' },
          { after: 0.6, isKilled: true },
        ] as const
        const { violations, unknown, uncharged, complete } = await stress({
          engine,
          calls: 150,
          stallSeconds: 35,
          plan,
        })
        expect(violations).toEqual([])
        // Otherwise the stall affected no request.
        expect(unknown + uncharged).toBeGreaterThan(0)
        expect(complete).toBeGreaterThan(50)
      },
    )
}
