// One round of stress: many mixed calls by clients that retry under an idempotency key, as the official SDKs do, on a
// gateway that is killed with kill -9, and whose store hangs, fails to sync or is full for longer than a settlement is
// tried. At the end the books are recomputed from the database with plain SQL and compared with what the clients saw.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Sql } from '../../src/store/sql.ts'
import { checkBooks, openingCredit, withBooks } from '../parts/crash-books.ts'
import { type Ask, askForReceipt, askKinds, type Receipt } from '../parts/crash-client.ts'
import { type CrashGateway, startCrashGateway } from '../parts/crash-gateway.ts'
import { injectSlowSync, injectSyncError, injectWriteError } from '../parts/crash-inject.ts'
import { startCrashPostgres } from '../parts/crash-postgres.ts'
import { costOf, startCrashUpstream } from '../parts/crash-upstream.ts'
import { createSite, type Engine } from './run-cycles.ts'

export interface StressOptions {
  readonly engine: Engine
  readonly calls: number
  readonly stallSeconds: number
  /** The event after each share of the calls; absent = each kind, with and without a kill. */
  readonly plan?: readonly Trouble[]
}

interface Trouble {
  readonly after: number
  /** The store: a commit hangs, no sync succeeds, or nothing can be written. Then the process is killed in it, or goes on. */
  readonly store?: 'hangs' | 'fails to sync' | 'is full'
  readonly isKilled?: boolean
}

export interface StressResult {
  readonly calls: number
  /** Answers of any kind, retries included. */
  readonly answers: number
  readonly complete: number
  readonly replayed: number
  /** Errors that said that the charge is unknown, or that nothing was charged. */
  readonly unknown: number
  readonly uncharged: number
  readonly charges: number
  /** The part of them for requests whose error said that the outcome is unknown. */
  readonly chargedUnknown: number
  readonly kills: number
  readonly seconds: number
  readonly violations: readonly string[]
}

/** Clients at the same time. */
const places = 60
/** Calls that may be on their way when an event comes; the next ones begin after it has closed the gate. */
const aheadMost = 30
/** Share of the calls with a key; the others are sent once. */
const keyedShare = 0.8
/** On PostgreSQL the keys of a dead process are taken until its death is known, after 20 s. */
const silenceMs = 25_000n
const usualPlan: readonly Trouble[] = [
  { after: 0.1, store: 'hangs' },
  { after: 0.2, isKilled: true },
  { after: 0.35, store: 'fails to sync' },
  { after: 0.5, store: 'hangs', isKilled: true },
  { after: 0.6, store: 'fails to sync', isKilled: true },
  { after: 0.75, store: 'is full' },
  { after: 0.9, isKilled: true },
]

export interface Call {
  readonly ask: Ask
  readonly receipts: Receipt[]
}

const unknownWords = 'it is not known yet whether it was charged'
const unchargedWords = 'Nothing was charged'

export async function stress(options: StressOptions): Promise<StressResult> {
  const { engine, calls, stallSeconds, plan = usualPlan } = options
  const startedMs = performance.now()
  const crashUpstream = startCrashUpstream()
  await using postgres = engine === 'postgres' ? await startCrashPostgres({ syncs: true }) : undefined
  const site = await createSite(engine, crashUpstream, await postgres?.createDatabase())
  const errors: string[] = []
  let kills = 0
  let gateway = await startCrashGateway(site)
  let next = 0
  let done = 0
  let begunMost = (plan[0]?.after ?? 1) * calls + aheadMost
  const all = Array.from({ length: calls }, (_, at) => ({ ask: askOf(at), receipts: [] }) as Call)

  /** Returns how to mend it. */
  const breakStore = async (pid: number, how: NonNullable<Trouble['store']>): Promise<() => Promise<void>> => {
    if (postgres && how === 'hangs') {
      await postgres.freeze()
      return () => postgres.thaw()
    }
    const log = join(site.dataFolder, 'tollgate.db-wal')
    const injecting = {
      hangs: () => injectSlowSync(pid, log, stallSeconds),
      // PostgreSQL panics in both cases.
      'fails to sync': () => postgres?.failSyncs() ?? injectSyncError([pid], log),
      'is full': () => postgres?.fillLog() ?? injectWriteError([pid], log, 'ENOSPC'),
    }
    const injection = await injecting[how]()
    return () => injection.end()
  }
  const restart = async (victim: CrashGateway) => {
    await victim.ended
    errors.push(...victim.errors())
    await postgres?.recovered()
    await withBooks(site, async (database) => {
      if (database.engine === 'postgres')
        await database.transaction((sql) => sql`UPDATE replicas SET heartbeat_at = heartbeat_at - ${silenceMs}`)
    })
    gateway = await startCrashGateway(site)
  }
  const cause = async ({ store, isKilled }: Trouble) => {
    const victim = gateway
    let mend: (() => Promise<void>) | undefined
    if (store) {
      while (crashUpstream.atGate() === 0) await Bun.sleep(5)
      mend = await breakStore(victim.pid, store)
      crashUpstream.openGate()
      await Bun.sleep(stallSeconds * 1000)
    }
    // Under strace it is gone when strace is; PostgreSQL does not mind.
    if (isKilled) await Promise.race([victim.kill(), Bun.sleep(100)])
    await mend?.()
    if (!isKilled) return
    kills++
    await restart(victim)
  }
  const trouble = async () => {
    for (const [at, one] of plan.entries()) {
      while (done < one.after * calls) await Bun.sleep(20)
      // At least one answer is to be charged while the store is broken, however slow or fast the machine is.
      if (one.store) crashUpstream.closeGate()
      begunMost = (plan[at + 1]?.after ?? 1) * calls + aheadMost
      await cause(one)
    }
  }
  const client = async () => {
    for (let at = next++; at < calls; at = next++) {
      while (at >= begunMost) await Bun.sleep(20)
      await insist(() => gateway, all[at] as Call)
      done++
    }
  }
  try {
    await Promise.all([trouble(), ...Array.from({ length: places }, client)])
    const ended = await gateway.stop()
    if (ended !== 0) errors.push(`the gateway did not stop properly: ${ended}`)
    errors.push(...gateway.errors())
    const receipts = all.flatMap((call) => call.receipts)
    const books = await withBooks(site, async (database) => ({
      faults: await checkBooks(database, {
        paidIn: openingCredit,
        // A replayed answer has another id and is not charged; it is checked with its call.
        receipts: receipts.filter((receipt) => !isReplayed(receipt)),
        asked: receipts.length,
      }),
      charges: await readCharges(database.sql),
      sums: await checkSums(database.sql),
    }))
    const charged = new Set(books.charges.map(({ request_id }) => request_id))
    const saying = (words: string) => receipts.filter(({ text }) => text.includes(words))
    return {
      calls,
      answers: receipts.length,
      complete: receipts.filter(({ end }) => end === 'complete').length,
      replayed: receipts.filter(isReplayed).length,
      unknown: saying(unknownWords).length,
      uncharged: saying(unchargedWords).length,
      charges: books.charges.length,
      chargedUnknown: saying(unknownWords).filter(({ requestId }) => charged.has(requestId ?? '')).length,
      kills,
      seconds: Math.round((performance.now() - startedMs) / 1000),
      violations: [...errors, ...books.faults, ...books.sums, ...checkCalls(all, books.charges)],
    }
  } finally {
    await gateway.kill()
    crashUpstream.upstream.stop()
    rmSync(site.dataFolder, { recursive: true, force: true })
  }
}

/** No two cost the same, so that the amount of a charge says which call it is for. */
function askOf(at: number): Ask {
  const kind = askKinds[at % askKinds.length] as (typeof askKinds)[number]
  const stream = Math.random() < 0.6
  const order = {
    inputTokens: 7,
    outputTokens: 1 + at,
    pieces: stream ? 2 + Math.floor(Math.random() * 8) : 1,
    pauseMs: Math.floor(Math.random() * 60),
  }
  return { ...kind, stream, order, ...(Math.random() < keyedShare && { idempotencyKey: `call ${at}` }) }
}

/**
 * With a key: until it was answered to its end, or is known to be paid for and not kept. Without one it is sent again only
 * after an answer that allows it: an error before the end of which it is certain that nothing was charged.
 */
export async function insist(gateway: () => CrashGateway, { ask, receipts }: Call): Promise<void> {
  for (;;) {
    const receipt = await askForReceipt(gateway(), ask)
    receipts.push(receipt)
    const { status, end, headers } = receipt
    if (end === 'complete') return
    const mayRetry = headers?.get('x-should-retry') !== 'false'
    const isRefused = status === 429 || status === 503 || status === 500
    if (ask.idempotencyKey === undefined ? !(isRefused && mayRetry) : status === 400) return
    await Bun.sleep(Number(headers?.get('retry-after-ms') ?? 200))
  }
}

export function isReplayed({ headers }: Receipt): boolean {
  return headers?.get('x-tollgate-replayed') === 'true'
}

interface ChargeRow {
  readonly request_id: string
  readonly amount: bigint
}

export function readCharges(sql: Sql): Promise<ChargeRow[]> {
  return sql<ChargeRow>`SELECT request_id, amount FROM transfers WHERE kind = 'charge'`
}

/** The wallet and every charge from the transfers alone. */
export async function checkSums(sql: Sql): Promise<string[]> {
  const twice = await sql<{ amount: bigint }>`SELECT amount FROM transfers WHERE kind = 'charge'
    GROUP BY amount HAVING COUNT(*) > 1`
  const again = await sql<{ request_id: string }>`SELECT request_id FROM transfers WHERE kind = 'charge'
    GROUP BY request_id HAVING COUNT(*) > 1`
  const [sums] = await sql<{ credited: bigint; charged: bigint; posted: bigint; held: bigint }>`SELECT
    (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM transfers WHERE kind IN ('topup', 'grant')) AS credited,
    (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM transfers WHERE kind = 'charge') AS charged,
    (SELECT CAST(COALESCE(SUM(posted), 0) AS BIGINT) FROM balances) AS posted,
    (SELECT CAST(COALESCE(SUM(held), 0) AS BIGINT) FROM balances) AS held`
  const faults = twice.map(({ amount }) => `two charges of ${amount}: one call was paid for twice`)
  faults.push(...again.map(({ request_id }) => `${request_id} has two charges`))
  if (sums && sums.credited - sums.charged !== sums.posted)
    faults.push(`the wallet has ${sums.posted}, credited ${sums.credited}, charged ${sums.charged}`)
  if (sums && sums.held !== 0n) faults.push(`${sums.held} is still held`)
  return faults
}

/** Compares what every client saw of its call with the charge of the call. */
export function checkCalls(calls: readonly Call[], charges: readonly ChargeRow[]): string[] {
  const byAmount = new Map(charges.map((charge) => [charge.amount, charge.request_id]))
  const faults: string[] = []
  for (const { ask, receipts } of calls) {
    const name = ask.idempotencyKey ?? `a call without a key (${ask.order.outputTokens} tokens)`
    const charge = byAmount.get(costOf(ask.order))
    const complete = receipts.filter(({ end }) => end === 'complete')
    const generated = complete.filter((receipt) => !isReplayed(receipt))
    if (generated.length > 1) faults.push(`${name}: two complete answers were generated`)
    const last = receipts.at(-1)
    if (ask.idempotencyKey !== undefined && charge === undefined)
      faults.push(`${name}: ended with ${last?.status} and was never charged`)
    if (complete.length > 0 && charge === undefined) faults.push(`${name}: complete and not charged`)
    for (const { requestId, text } of receipts) {
      if (text.includes(unchargedWords) && requestId === charge)
        faults.push(`${name}: charged after "${unchargedWords}"`)
    }
    for (const { text } of complete.filter(isReplayed)) {
      if (generated[0] && generated[0].text !== text) faults.push(`${name}: replayed another answer than the first`)
    }
  }
  return faults
}
