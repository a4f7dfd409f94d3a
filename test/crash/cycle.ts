// One crash: a gateway under load, into which money is paid meanwhile, is killed and started again on the same data, and
// every promise of the ledger is checked against what the clients saw.

import type { FailpointName } from '../../src/kernel/failpoint.ts'
import { checkBooks, countCharges, countOpenHolds, openingCredit, withBooks } from '../parts/crash-books.ts'
import { askForReceipt, askKinds, type Receipt } from '../parts/crash-client.ts'
import { type CrashData, type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { startLoad } from '../parts/crash-load.ts'
import type { Payer } from '../parts/crash-topups.ts'

/** Data that goes from crash to crash, and what the outside world knows of it. */
export interface Site extends CrashData {
  readonly payer: Payer
  asked: number
  readonly receipts: Receipt[]
  /** What was found before and is still so: told once. */
  readonly known: Set<string>
}

export interface CycleResult {
  readonly failpoint: FailpointName
  /** The failpoint, or our own kill -9 where it was not reached in time. */
  readonly killedBy: 'failpoint' | 'kill -9'
  /** Streams in the middle of their answer when it died. */
  readonly running: number
  readonly asked: number
  readonly complete: number
  readonly transfers: number
  /** Open holds that the dead process left, and how long until the last was gone. */
  readonly holdsLeft: number
  readonly reapedMs: number
  /** Top-ups whose answer was lost with it. */
  readonly topUpsLost: number
  /** Kills of the next gateway, while it reaped. */
  readonly laterKills: number
  readonly violations: readonly string[]
}

/** Streams that must be running for a kill to count; a few more places, because some are always between two calls. */
export const runningLeast = 50
const streamPlaces = 72
const wholePlaces = 8
/** Our own kill comes at a random moment between these, where the failpoint did not come first. */
const ownKillMs = { least: 1500, most: 5000 }
/** M5. */
const reapedWithinMs = 60_000

/**
 * One in so many who come by is killed, by how often the place is passed: some 200 calls a second, most of them streams
 * of a dozen events. In a reap, every few: there are two places in each, and one round in ten seconds.
 */
const shares: Record<FailpointName, number> = {
  after_hold: 1 / 400,
  after_send: 1 / 400,
  after_first_byte: 1 / 300,
  mid_stream: 1 / 2500,
  before_settle: 1 / 300,
  after_commit: 1 / 300,
  after_terminal: 1 / 200,
  in_reap: 1 / 3,
  in_topup: 1 / 60,
}

export interface CycleOptions {
  readonly failpoint: FailpointName
  /** Only one cycle at a time may have this machine's cores; answers with how to give them back. */
  takeTurn(): Promise<() => void>
}

export async function runCycle(site: Site, { failpoint, takeTurn }: CycleOptions): Promise<CycleResult> {
  const before = await withBooks(site, ({ sql }) => countCharges(sql))
  const seen = site.receipts.length
  const endTurn = await takeTurn()
  let died: Awaited<ReturnType<typeof killUnderLoad>>
  try {
    died = await killUnderLoad(site, failpoint)
  } finally {
    endTurn()
  }
  const violations = [...died.violations]
  site.asked += died.asked
  site.receipts.push(...died.receipts)
  const holdsLeft = await withBooks(site, ({ sql }) => countOpenHolds(sql))

  const recovered = await recover(site, failpoint, died.atMs)
  violations.push(...recovered.violations)
  const { transfers, faults } = await withBooks(site, async (database) => ({
    transfers: (await countCharges(database.sql)) - before,
    faults: await checkBooks(database, { ...site, paidIn: openingCredit + site.payer.paidIn }),
  }))
  const ended = await recovered.gateway.stop()
  if (ended !== 0) violations.push(`the restarted gateway did not stop properly: ${ended}`)
  violations.push(...faults.filter((fault) => !site.known.has(fault)), ...recovered.gateway.errors())
  for (const fault of faults) site.known.add(fault)
  const receipts = site.receipts.slice(seen)
  const complete = receipts.filter(({ end }) => end === 'complete').length
  const { killedBy, running } = died
  const asked = receipts.length
  return {
    ...{ failpoint, killedBy, running, asked, complete, transfers, holdsLeft },
    reapedMs: recovered.reapedMs,
    topUpsLost: recovered.topUpsLost,
    laterKills: recovered.kills,
    violations,
  }
}

async function killUnderLoad(site: Site, failpoint: FailpointName) {
  const gateway = await startCrashGateway(site, { failpoints: `${failpoint}=kill:${shares[failpoint]}` })
  const load = startLoad({ gateway, streams: streamPlaces, wholes: wholePlaces })
  const paying = site.payer.payWhileAlive(gateway)
  let killedBy: CycleResult['killedBy'] = 'failpoint'
  // Looked at all the time: its death cuts the streams a moment before it is known here.
  const counts: number[] = []
  const count = setInterval(() => {
    counts.push(load.runningStreams())
    if (counts.length > 40) counts.shift()
  }, 5)
  const ownKill = setTimeout(
    () => {
      killedBy = 'kill -9'
      void gateway.kill()
    },
    ownKillMs.least + Math.random() * (ownKillMs.most - ownKillMs.least),
  )
  const ended = await gateway.ended
  const atMs = performance.now()
  clearInterval(count)
  clearTimeout(ownKill)
  const running = Math.max(0, ...counts)
  const receipts = await load.end()
  await paying
  const violations = [...gateway.errors()]
  if (ended !== 'SIGKILL') violations.push(`the gateway ended by itself (${ended}):\n${gateway.lastLines()}`)
  return { killedBy, running, asked: load.asked(), receipts, atMs, violations }
}

/** The next gateway on the data: it ends what the dead one left, and serves. */
async function recover(site: Site, failpoint: FailpointName, diedAtMs: number) {
  let gateway = await startCrashGateway(
    site,
    failpoint === 'in_reap' ? { failpoints: `in_reap=kill:${shares.in_reap}` } : {},
  )
  const violations: string[] = []
  let kills = 0
  const holdsEnd = await withBooks(site, async ({ sql }) => {
    for (;;) {
      // It may be killed in the middle of reaping; the one after it must get through.
      if (!gateway.isAlive()) {
        kills++
        gateway = await startCrashGateway(site)
      }
      if ((await countOpenHolds(sql)) === 0) return performance.now()
      if (performance.now() - diedAtMs > reapedWithinMs) return undefined
      await Bun.sleep(100)
    }
  })
  if (holdsEnd === undefined) violations.push('holds of the dead process were open after 60 s')
  if (failpoint === 'in_reap') gateway = await replaced(site, gateway)
  const { lost, faults } = await site.payer.payAgain(gateway)
  violations.push(...faults, ...(await serves(site, gateway)))
  const reapedMs = Math.round((holdsEnd ?? performance.now()) - diedAtMs)
  return { gateway, violations, kills, reapedMs, topUpsLost: lost }
}

/** A gateway without failpoints in place of one that may still be killed. */
async function replaced(site: Site, gateway: CrashGateway): Promise<CrashGateway> {
  await gateway.kill()
  return await startCrashGateway(site)
}

async function serves(site: Site, gateway: CrashGateway): Promise<readonly string[]> {
  const order = { inputTokens: 7, outputTokens: 5, pieces: 2, pauseMs: 1 }
  const asks = askKinds.flatMap((kind) => [true, false].map((stream) => ({ ...kind, stream, order })))
  const receipts = await Promise.all(asks.map((ask) => askForReceipt(gateway, ask)))
  site.asked += asks.length
  site.receipts.push(...receipts)
  return receipts
    .filter(({ end }) => end !== 'complete')
    .map(({ status, text }) => `after the restart a call came to nothing: ${status} ${text.slice(0, 200)}`)
}
