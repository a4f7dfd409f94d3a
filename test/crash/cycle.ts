// One crash: a gateway under load, into which money is paid meanwhile, is killed and started again on the same data, and
// every promise of the ledger is checked against what the clients saw.

import type { RequestFailpoint } from '../../src/kernel/failpoint.ts'
import type { Database } from '../../src/store/database.ts'
import { checkBooks, countCharges, countOpenHolds, openingCredit, withBooks } from '../parts/crash-books.ts'
import { type Ask, askForReceipt, askKinds, type Receipt } from '../parts/crash-client.ts'
import { type CrashData, type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { startLoad } from '../parts/crash-load.ts'
import type { Payer } from '../parts/crash-topups.ts'
import type { CrashUpstream } from '../parts/crash-upstream.ts'
import type { TakeTurn } from '../parts/turns.ts'

/** Data that goes from crash to crash, and what the outside world knows of it. */
export interface Site extends CrashData {
  readonly payer: Payer
  /** Its provider; no other site uses it. */
  readonly crashUpstream: CrashUpstream
  asked: number
  readonly receipts: Receipt[]
  /** Charges in its ledger after the last cycle. */
  transfers: number
  /** Violations that were reported before. */
  readonly known: Set<string>
}

export interface CycleResult {
  readonly failpoint: RequestFailpoint
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

/** Streams that must be running for a kill to count. */
export const runningLeast = 50
const streamPlaces = 72
/**
 * Streams that the provider keeps open, however slow the machine is. At most 10 of the 72 places are then between two
 * streams, so that at least 52 of the 62 have reached their client.
 */
const openLeast = 62
const wholePlaces = 8
/** A failpoint in a reap cannot be reached so early; then the test kills the gateway at a random moment within this time. */
const randomKillMs = 1500
/** Kills the gateway if neither the failpoint nor enough streams come. Long enough for a machine under heavy load. */
const patienceMs = 600_000
/** The silence after which the ledger declares a process dead on PostgreSQL, and a heartbeat. */
const silenceMs = 25_000n

/**
 * How many are let pass, and one in how many is killed then. A place that every call passes is passed by all places of
 * the load before enough streams run, and then some 100 times a second; an end is passed only by calls that got so far;
 * a stream has eight events. In a reap, every few: there are two places in each, and one round in ten seconds.
 */
const plans: Record<RequestFailpoint, { readonly passes: number; readonly oneIn: number }> = {
  after_hold: { passes: 100, oneIn: 30 },
  after_send: { passes: 100, oneIn: 30 },
  after_first_byte: { passes: 100, oneIn: 30 },
  mid_stream: { passes: 450, oneIn: 200 },
  before_settle: { passes: 40, oneIn: 30 },
  after_commit: { passes: 40, oneIn: 30 },
  after_terminal: { passes: 40, oneIn: 30 },
  in_reap: { passes: 0, oneIn: 3 },
  in_topup: { passes: 20, oneIn: 10 },
}

/** It lives for seconds, in which the optimizing compiler takes more processor time than its code saves. */
const withoutOptimizer = { BUN_JSC_useDFGJIT: '0' }

/** `failpoints`: as in TOLLGATE_FAILPOINTS; absent = none. */
export function startOn(site: CrashData, failpoints?: string): Promise<CrashGateway> {
  return startCrashGateway(site, { env: withoutOptimizer, ...(failpoints !== undefined && { failpoints }) })
}

function startArmed(site: Site, failpoint: RequestFailpoint): Promise<CrashGateway> {
  const { passes, oneIn } = plans[failpoint]
  return startOn(site, `${failpoint}=kill:${1 / oneIn}:${passes}`)
}

/**
 * The next gateway, killed for certain in its first reap, at either of the two places there. On SQLite holds die with
 * their process, so there would be nothing to reap.
 */
function startDoomed(site: Site): Promise<CrashGateway> {
  if (site.databaseUrl === undefined) return startOn(site)
  const passes = Math.floor(2 * Math.random())
  return startOn(site, `in_reap=kill:1:${passes}`)
}

export interface CycleOptions {
  readonly failpoint: RequestFailpoint
  /** Few cycles at a time may have this machine's cores. */
  readonly takeTurn: TakeTurn
  /**
   * How the silence passes after which a process counts as dead on PostgreSQL: sat out, or the dead one's last heartbeat
   * is made older from outside. What follows is the gateway's own doing either way.
   */
  readonly silence: 'sat out' | 'skipped'
  /** After this, holds of the dead process that are still open count as a violation. */
  readonly reapedWithinMs: number
}

export async function runCycle(site: Site, options: CycleOptions): Promise<CycleResult> {
  const { failpoint } = options
  const seen = site.receipts.length
  const endTurn = await options.takeTurn()
  let died: Awaited<ReturnType<typeof killUnderLoad>>
  let next: CrashGateway
  let holdsLeft: number
  try {
    died = await killUnderLoad(site, failpoint)
    site.asked += died.asked
    site.receipts.push(...died.receipts)
    holdsLeft = await withBooks(site, (database) => lookAtDead(database, options.silence))
    next = await (failpoint === 'in_reap' ? startDoomed(site) : startOn(site))
  } finally {
    endTurn()
  }
  const recovered = await recover(site, next, { ...options, diedAtMs: died.atMs })
  const violations = [...died.violations, ...recovered.violations]
  const { transfers, faults } = recovered.books
  violations.push(...faults.filter((fault) => !site.known.has(fault)), ...recovered.gateway.errors())
  for (const fault of faults) site.known.add(fault)
  const receipts = site.receipts.slice(seen)
  const complete = receipts.filter(({ end }) => end === 'complete').length
  const { killedBy, running } = died
  const asked = receipts.length
  const before = site.transfers
  site.transfers = transfers
  return {
    ...{ failpoint, killedBy, running, asked, complete, holdsLeft },
    transfers: transfers - before,
    reapedMs: recovered.reapedMs,
    topUpsLost: recovered.topUpsLost,
    laterKills: recovered.kills,
    violations,
  }
}

/** Returns the number of holds that the dead process left open. No other process uses this database. */
async function lookAtDead(database: Database, silence: CycleOptions['silence']): Promise<number> {
  const holds = await countOpenHolds(database.sql)
  if (database.engine === 'postgres' && silence === 'skipped')
    await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = heartbeat_at - ${silenceMs}`)
  return holds
}

async function killUnderLoad(site: Site, failpoint: RequestFailpoint) {
  const gateway = await startArmed(site, failpoint)
  site.crashUpstream.keepOpen(openLeast)
  const load = startLoad({ gateway, streams: streamPlaces, wholes: wholePlaces })
  let paying: Promise<void> | undefined
  let killedBy: CycleResult['killedBy'] = 'failpoint'
  // Looked at all the time: its death cuts the streams a moment before it is known here.
  const counts: number[] = []
  let killAtMs = performance.now() + patienceMs
  let ranEnough = false
  const count = setInterval(() => {
    counts.push(load.runningStreams())
    if (counts.length > 40) counts.shift()
    const now = performance.now()
    if (!ranEnough && load.runningStreams() >= runningLeast) {
      ranEnough = true
      // Not before: on a slow machine the failpoint in a top-up would kill the gateway too early.
      paying = site.payer.payWhileAlive(gateway)
      killAtMs = now + (failpoint === 'in_reap' ? Math.random() * randomKillMs : patienceMs)
    }
    if (now < killAtMs || killedBy === 'kill -9') return
    killedBy = 'kill -9'
    void gateway.kill()
  }, 5)
  const ended = await gateway.ended
  const atMs = performance.now()
  clearInterval(count)
  const running = Math.max(0, ...counts)
  site.crashUpstream.keepOpen(0)
  const receipts = await load.end()
  await paying
  const violations = [...gateway.errors()]
  if (ended !== 'SIGKILL') violations.push(`the gateway ended by itself (${ended}):\n${gateway.lastLines()}`)
  return { killedBy, running, asked: load.asked(), receipts, atMs, violations }
}

interface Recovery extends CycleOptions {
  readonly diedAtMs: number
}

/** The next gateway on the data: it ends what the dead one left, serves, and stops on SIGTERM. */
async function recover(site: Site, first: CrashGateway, { failpoint, diedAtMs, takeTurn, reapedWithinMs }: Recovery) {
  let gateway = first
  const violations: string[] = []
  let kills = 0
  const holdsEnd = await withBooks(site, async ({ sql }) => {
    for (;;) {
      // It may be killed in the middle of reaping; the one after it must get through.
      if (!gateway.isAlive()) {
        kills++
        gateway = await startOn(site)
      }
      if ((await countOpenHolds(sql)) === 0) return performance.now()
      if (performance.now() - diedAtMs > reapedWithinMs) return undefined
      await Bun.sleep(100)
    }
  })
  if (holdsEnd === undefined) violations.push(`holds of the dead process were open after ${reapedWithinMs / 1000} s`)
  const endTurn = await takeTurn()
  try {
    if (failpoint === 'in_reap') gateway = await replaced(site, gateway)
    const { lost, faults } = await site.payer.payAgain(gateway)
    violations.push(...faults, ...(await serves(site, gateway)))
    const books = await withBooks(site, async (database) => ({
      transfers: await countCharges(database.sql),
      faults: await checkBooks(database, { ...site, paidIn: openingCredit + site.payer.paidIn }),
    }))
    const ended = await gateway.stop()
    if (ended !== 0) violations.push(`the restarted gateway did not stop properly: ${ended}`)
    const reapedMs = Math.round((holdsEnd ?? performance.now()) - diedAtMs)
    return { gateway, violations, kills, reapedMs, topUpsLost: lost, books }
  } finally {
    endTurn()
  }
}

/** A gateway without failpoints in place of one that may still be killed. */
async function replaced(site: Site, gateway: CrashGateway): Promise<CrashGateway> {
  await gateway.kill()
  return await startOn(site)
}

async function serves(site: Site, gateway: CrashGateway): Promise<readonly string[]> {
  const order = { inputTokens: 7, outputTokens: 5, pieces: 2, pauseMs: 1 }
  const asks = askKinds.flatMap((kind) => [true, false].map((stream) => ({ ...kind, stream, order })))
  const askUntilTaken = async (ask: Ask): Promise<Receipt> => {
    for (;;) {
      const receipt = await askForReceipt(gateway, ask)
      site.asked++
      site.receipts.push(receipt)
      // On a busy machine a commit may be late, and calls are refused for a moment.
      if (receipt.status !== 503) return receipt
      await Bun.sleep(200)
    }
  }
  const receipts = await Promise.all(asks.map(askUntilTaken))
  return receipts
    .filter(({ end }) => end !== 'complete')
    .map(({ status, text }) => `after the restart a call came to nothing: ${status} ${text.slice(0, 200)}`)
}
