// A budget: how much one scope (a key, a project, a workspace) may spend within one window of time. Here are its names,
// on the way in and in the database; `BudgetCounters` counts. The cap is never stored, it comes with the hold.

import { assert } from '../kernel/assert.ts'
import { type Clock, isoTime } from '../kernel/clock.ts'
import type { Nano } from '../kernel/money.ts'
import type { Database } from '../store/database.ts'
import { grainMs } from '../store/request-rows.ts'
import type { Sql } from '../store/sql.ts'
import { isContention, isStoreUnavailable } from '../store/sql-error.ts'

export interface Budget {
  readonly scopeId: string
  /** `day:2026-11-15` or `month:2026-11`, UTC: see dayWindow and monthWindow. */
  readonly window: string
  /** Spent and held together stay at or below it. */
  readonly cap: Nano
}

export interface BudgetState {
  readonly spent: Nano
  readonly held: Nano
}

/** The first budget that has no room. Once `windowEnd` is over, or held money comes back, there may be. */
export interface OverBudget extends BudgetState {
  readonly kind: 'over budget'
  readonly scopeId: string
  readonly window: string
  readonly cap: Nano
}

/** `scope window` */
export type BudgetName = `${string} ${string}`

export const noBudgets: readonly Budget[] = []

export function budgetName(scopeId: string, window: string): BudgetName {
  const name = `${scopeId} ${window}` as const
  assert(/^[^ ,]+ [^ ,]+$/.test(name), `a budget's scope and window have no space or comma: ${name}`)
  return name
}

export function budgetNames(budgets: readonly Budget[]): readonly BudgetName[] {
  return budgets.map(({ scopeId, window }) => budgetName(scopeId, window))
}

export function splitBudgetName(name: BudgetName): readonly [scopeId: string, window: string] {
  const [scopeId = '', window = ''] = name.split(' ')
  return [scopeId, window]
}

/** As it stands in the column `budgets` of holds and transfers. */
export function renderBudgetNames(names: readonly BudgetName[]): string | null {
  return names.length === 0 ? null : names.join(',')
}

export function parseBudgetNames(column: string | null): readonly BudgetName[] {
  return column === null ? [] : (column.split(',') as BudgetName[])
}

export function dayWindow(epochMs: number): string {
  return `day:${isoTime(epochMs).slice(0, 10)}`
}

export function monthWindow(epochMs: number): string {
  return `month:${isoTime(epochMs).slice(0, 7)}`
}

/** The moment at which the window is over; undefined for text that names none. */
export function windowEnd(window: string): number | undefined {
  const parts = partsOf(window)
  if (parts === undefined) return undefined
  const { isDay, year, month, day } = parts
  return isDay ? Date.UTC(year, month - 1, day + 1) : Date.UTC(year, month, 1)
}

export function windowStart(window: string): number | undefined {
  const parts = partsOf(window)
  return parts && Date.UTC(parts.year, parts.month - 1, parts.day)
}

export function windowBefore(window: string): string | undefined {
  const parts = partsOf(window)
  if (parts === undefined) return undefined
  const before = Date.UTC(parts.year, parts.month - 1, parts.day) - 1
  return parts.isDay ? dayWindow(before) : monthWindow(before)
}

function partsOf(window: string) {
  const [, kind, year, month, day] = /^(day|month):(\d{4})-(\d\d)(?:-(\d\d))?$/.exec(window) ?? []
  if (kind === undefined || (kind === 'day') !== (day !== undefined)) return undefined
  return { isDay: kind === 'day', year: Number(year), month: Number(month), day: Number(day ?? 1) }
}

/** Far longer than a hold can live, so that nothing is counted in the window any more. */
const keptMs = 7 * 24 * 60 * 60 * 1000

/** Whether the counters of the window may be thrown away. */
export function isWindowPast(window: string, now: number): boolean {
  const end = windowEnd(window)
  return end !== undefined && end + keptMs < now
}

interface Counter {
  spent: bigint
  held: bigint
}

/** Counts budgets in memory: of the whole process on the embedded engine, of the locked rows of one batch on PostgreSQL. */
export class BudgetCounters {
  readonly #counters = new Map<BudgetName, Counter>()

  constructor(rows: Iterable<readonly [BudgetName, BudgetState]> = []) {
    for (const [name, { spent, held }] of rows) this.#counters.set(name, { spent, held })
  }

  state(name: BudgetName): BudgetState {
    const { spent, held } = this.#counters.get(name) ?? { spent: 0n, held: 0n }
    return { spent: spent as Nano, held: held as Nano }
  }

  /** undefined = all of them have that much room. What costs nothing needs none. */
  refusal(budgets: readonly Budget[], room: bigint): OverBudget | undefined {
    if (room === 0n) return undefined
    for (const { scopeId, window, cap } of budgets) {
      const { spent, held } = this.state(budgetName(scopeId, window))
      if (spent + held + room > cap) return { kind: 'over budget', scopeId, window, spent, held, cap }
    }
    return undefined
  }

  hold(names: readonly BudgetName[], amount: bigint): void {
    for (const name of names) this.#counterOf(name).held += amount
  }

  free(names: readonly BudgetName[], amount: bigint): void {
    for (const name of names) {
      const counter = this.#counterOf(name)
      counter.held -= amount
      assert(counter.held >= 0n, `the holds of the budget ${name} do not add up`)
    }
  }

  /** Whatever the cap says: it was delivered. */
  spend(names: readonly BudgetName[], amount: bigint): void {
    for (const name of names) this.#counterOf(name).spent += amount
  }

  names(): readonly BudgetName[] {
    return [...this.#counters.keys()]
  }

  forget(isPast: (window: string) => boolean): void {
    for (const [name, { held }] of this.#counters) {
      if (held === 0n && isPast(splitBudgetName(name)[1])) this.#counters.delete(name)
    }
  }

  #counterOf(name: BudgetName): Counter {
    const known = this.#counters.get(name)
    if (known) return known
    const fresh = { spent: 0n, held: 0n }
    this.#counters.set(name, fresh)
    return fresh
  }
}

// A spend limit counts everything that its scope was charged in the window, also before the limit was set. The first hold
// that names a budget without a counter waits until the counter contains those charges. Requests that were running at that
// moment do not name the budget either, and are added once they have ended.

export interface BudgetSeeds {
  /** undefined = all budgets have counters already; otherwise whether they have now. */
  ensure(budgets: readonly Budget[] | undefined): Promise<boolean> | undefined
  /** A limit of the scope was set: adds what was charged while there was none. Retried with every round if it fails. */
  recount(scopeId: string): Promise<void>
  /** Adds charges of requests that have ended since. To be called every `seedRoundMs`. */
  round(): Promise<void>
}

export interface BudgetSeedsOptions {
  readonly database: Database
  readonly clock: Clock
  /** No request runs for longer. */
  readonly holdLifetimeMs: number
  /** False: every budget begins with nothing. */
  readonly seedsBudgets: boolean
  /** The raise is durable. */
  onRaised?(name: BudgetName, by: bigint): void
}

/** A budget that was seeded while requests may have been running. */
interface RecentSeed {
  readonly scopeId: string
  readonly window: string
  readonly seededMs: number
  passes: number
}

/** When the charges are read again. By the last time, every request of then has ended. */
const passesMs = (holdLifetimeMs: number) => [
  5000,
  20_000,
  ...[1, 2, 4, 8, 16].map((minutes) => minutes * 60_000),
  holdLifetimeMs + 60_000,
]

export const seedRoundMs = 5000

export function createBudgetSeeds(options: BudgetSeedsOptions): BudgetSeeds {
  const { database, clock, holdLifetimeMs, onRaised = () => {} } = options
  if (!options.seedsBudgets) return { ensure: () => undefined, recount: async () => {}, round: async () => {} }
  /** Windows by scope. */
  const known = new Map<string, Set<string>>()
  const running = new Map<BudgetName, Promise<boolean>>()
  const recent = new Map<BudgetName, RecentSeed>()
  /** Scopes whose recount failed. */
  const failed = new Set<string>()

  const isKnown = ({ scopeId, window }: Budget) => known.get(scopeId)?.has(window) === true
  /** The limit existed in the window before, so nothing of this window can have been charged without it. */
  const continues = ({ scopeId, window }: Budget) => known.get(scopeId)?.has(windowBefore(window) ?? '') === true
  const learn = (scopeId: string, window: string) => {
    const windows = known.get(scopeId) ?? new Set()
    for (const old of windows) if (isWindowPast(old, clock.now())) windows.delete(old)
    known.set(scopeId, windows.add(window))
  }
  const raise = async (scopeId: string, window: string): Promise<void> => {
    const by = await database.transaction((sql) => raiseSeed(sql, scopeId, window))
    if (by > 0n) onRaised(budgetName(scopeId, window), by)
  }
  const seed = async (scopeId: string, window: string): Promise<void> => {
    await raise(scopeId, window)
    recent.set(budgetName(scopeId, window), { scopeId, window, seededMs: clock.monotonicMs(), passes: 0 })
  }
  const ensureOne = (scopeId: string, window: string): Promise<boolean> => {
    const name = budgetName(scopeId, window)
    const first =
      running.get(name) ??
      hasRow(database, scopeId, window)
        .then(async (isSeeded) => {
          if (!isSeeded) await seed(scopeId, window)
          learn(scopeId, window)
          return true
        })
        .catch((thrown: unknown) => {
          if (isStoreUnavailable(thrown) || isContention(thrown)) return false
          throw thrown
        })
        .finally(() => running.delete(name))
    running.set(name, first)
    return first
  }
  const recount = async (scopeId: string): Promise<void> => {
    try {
      for (const window of [dayWindow(clock.now()), monthWindow(clock.now())]) await seed(scopeId, window)
      failed.delete(scopeId)
    } catch (thrown) {
      failed.add(scopeId)
      throw thrown
    }
  }

  return {
    ensure(budgets = noBudgets) {
      if (budgets.every(isKnown)) return undefined
      for (const budget of budgets) if (continues(budget)) learn(budget.scopeId, budget.window)
      const unknown = budgets.filter((budget) => !isKnown(budget))
      if (unknown.length === 0) return undefined
      const all = unknown.map(({ scopeId, window }) => ensureOne(scopeId, window))
      return Promise.all(all).then((done) => done.every(Boolean))
    },
    recount,
    async round() {
      const times = passesMs(holdLifetimeMs)
      for (const [name, one] of recent) {
        if (clock.monotonicMs() - one.seededMs < (times[one.passes] ?? 0)) continue
        await raise(one.scopeId, one.window)
        if (++one.passes === times.length) recent.delete(name)
      }
      for (const scopeId of failed) await recount(scopeId)
    },
  }
}

/** A budget with a row was seeded, or has counted everything since its window began. */
async function hasRow({ sql }: Database, scopeId: string, window: string): Promise<boolean> {
  const [row] = await sql`SELECT 1 FROM budgets WHERE scope_id = ${scopeId} AND time_window = ${window}`
  return row !== undefined
}

/** Sets the seed to the charges that the budget has not counted, unless it is as high already. Returns the difference. */
async function raiseSeed(sql: Sql, scopeId: string, window: string): Promise<bigint> {
  const { uncounted, seeded } = await readUncounted(sql, scopeId, window)
  if (uncounted <= seeded) return 0n
  await sql`INSERT INTO budgets (scope_id, time_window, spent, held, seeded)
    VALUES (${scopeId}, ${window}, ${uncounted}, 0, ${uncounted})
    ON CONFLICT (scope_id, time_window) DO UPDATE
      SET spent = budgets.spent + excluded.seeded - budgets.seeded, seeded = excluded.seeded
      WHERE excluded.seeded > budgets.seeded`
  return uncounted - seeded
}

interface Uncounted {
  /** Charged in the window without the budget being named. Never falls. */
  readonly uncounted: bigint
  readonly seeded: bigint
}

/** In one statement: a charge changes the sums and the counter in one commit, so their difference is exact. */
async function readUncounted(sql: Sql, scopeId: string, window: string): Promise<Uncounted> {
  const [from, until] = [windowStart(window), windowEnd(window)]
  if (from === undefined || until === undefined) return { uncounted: 0n, seeded: 0n }
  const isWorkspace = scopeId.startsWith('ws_')
  const series = isWorkspace ? 'total' : scopeId.startsWith('key_') ? 'key' : 'project'
  const [workspace, subject] = isWorkspace ? [scopeId, ''] : ['', scopeId]
  // Each day by its full key: between the first and the last are the rows of all other scopes. SQLite keeps the order of a
  // CROSS JOIN.
  const [row] = await sql<{ charged: bigint; counted: bigint; seeded: bigint }>`
    WITH RECURSIVE days(start_at) AS (SELECT CAST(${BigInt(from)} AS BIGINT)
      UNION ALL SELECT start_at + ${BigInt(grainMs.day)} FROM days WHERE start_at + ${BigInt(grainMs.day)} < ${BigInt(until)})
    SELECT COALESCE((SELECT CAST(SUM(charge) AS BIGINT) FROM days CROSS JOIN request_sums
        WHERE request_sums.start_at = days.start_at AND grain = 'day' AND series = ${series} AND workspace_id = ${workspace} AND subject = ${subject}), 0)
      + COALESCE((SELECT CAST(SUM(charge) AS BIGINT) FROM request_hours WHERE start_at >= ${BigInt(from)}
        AND start_at < ${BigInt(until)} AND ${scopeId} IN (key_id, project_id, workspace_id)), 0) AS charged,
      COALESCE((SELECT spent - seeded FROM budgets WHERE scope_id = ${scopeId} AND time_window = ${window}), 0) AS counted,
      COALESCE((SELECT seeded FROM budgets WHERE scope_id = ${scopeId} AND time_window = ${window}), 0) AS seeded`
  const { charged = 0n, counted = 0n, seeded = 0n } = row ?? {}
  return { uncounted: charged - counted, seeded }
}
