// A spend limit counts all that its scope was charged in the window, also what came before it was set: the first hold that
// names a budget nobody has counted in yet waits until that much stands in its counter. Requests that were running then
// name it neither, and are added once they have ended.

import type { Clock } from '../kernel/clock.ts'
import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { isContention, isStoreUnavailable } from '../store/sql-error.ts'
import {
  type Budget,
  type BudgetName,
  budgetName,
  dayWindow,
  isWindowPast,
  monthWindow,
  noBudgets,
  windowBefore,
  windowEnd,
  windowStart,
} from './budget.ts'

/** What a scope's requests that began in a span of time were charged without being counted in the budget. */
export interface UncountedCharges {
  readonly scopeId: string
  readonly budget: BudgetName
  /** Epoch milliseconds; `from` is in it, `until` is not. */
  readonly from: number
  readonly until: number
}

export type SumUncounted = (asked: UncountedCharges) => Promise<bigint>

export interface BudgetSeeds {
  /** undefined = all of them are counted in already; otherwise whether they are now. */
  ensure(budgets: readonly Budget[] | undefined): Promise<boolean> | undefined
  /**
   * A limit of the scope was set, perhaps not for the first time: what was charged while there was none is added. If that
   * fails, it is tried again with every round.
   */
  recount(scopeId: string): Promise<void>
  /** Adds what has ended since. To be called now and then. */
  round(): Promise<void>
}

export interface BudgetSeedsOptions {
  readonly database: Database
  readonly clock: Clock
  /** undefined = nobody knows what was charged before: every budget begins with nothing. */
  readonly sumUncounted: SumUncounted | undefined
  /** No request runs for longer. */
  readonly holdLifetimeMs: number
  /** Is durable. */
  onRaised?(name: BudgetName, by: bigint): void
}

/** A budget that was seeded a while ago, whose requests of then may still be running. */
interface Late {
  readonly scopeId: string
  readonly window: string
  /** What began before `cut` has ended. */
  readonly cut: number
  readonly base: bigint
  readonly seededMs: number
  passes: number
}

/** When what was running is looked at again; the last time, none of it can be. */
const passesMs = (holdLifetimeMs: number) => [
  5000,
  20_000,
  ...[1, 2, 4, 8, 16].map((minutes) => minutes * 60_000),
  holdLifetimeMs + 60_000,
]

export const seedRoundMs = 5000

export function createBudgetSeeds(options: BudgetSeedsOptions): BudgetSeeds {
  const { database, clock, sumUncounted, holdLifetimeMs, onRaised = () => {} } = options
  if (sumUncounted === undefined) return { ensure: () => undefined, recount: async () => {}, round: async () => {} }
  /** Windows by scope. */
  const known = new Map<string, Set<string>>()
  const running = new Map<BudgetName, Promise<boolean>>()
  const late = new Map<BudgetName, Late>()
  /** Scopes that could not be counted again when they should have been. */
  const owed = new Set<string>()

  const isKnown = ({ scopeId, window }: Budget) => known.get(scopeId)?.has(window) === true
  /** The limit was there in the window before: nothing of this one can have been charged without it. */
  const goesOn = ({ scopeId, window }: Budget) => known.get(scopeId)?.has(windowBefore(window) ?? '') === true
  const learn = (scopeId: string, window: string) => {
    const windows = known.get(scopeId) ?? new Set()
    for (const old of windows) if (isWindowPast(old, clock.now())) windows.delete(old)
    known.set(scopeId, windows.add(window))
  }
  const raise = async (scopeId: string, window: string, total: bigint): Promise<void> => {
    if (total === 0n) return
    const by = await database.transaction((sql) => raiseSeed(sql, { scopeId, window, total }))
    if (by > 0n) onRaised(budgetName(scopeId, window), by)
  }

  const seed = async (scopeId: string, window: string): Promise<void> => {
    const [from, until] = [windowStart(window), windowEnd(window)]
    const name = budgetName(scopeId, window)
    if (from === undefined || until === undefined) return
    const cut = Math.min(Math.max(from, clock.now() - holdLifetimeMs), until)
    const base = await sumUncounted({ scopeId, budget: name, from, until: cut })
    const rest = await sumUncounted({ scopeId, budget: name, from: cut, until })
    await raise(scopeId, window, base + rest)
    late.set(name, { scopeId, window, cut, base, seededMs: clock.monotonicMs(), passes: 0 })
  }
  const ensureOne = (scopeId: string, window: string): Promise<boolean> => {
    const name = budgetName(scopeId, window)
    const twin = running.get(name)
    if (twin) return twin
    const first = hasRow(database.sql, scopeId, window)
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
      owed.delete(scopeId)
    } catch (thrown) {
      owed.add(scopeId)
      throw thrown
    }
  }

  return {
    ensure(budgets = noBudgets) {
      if (budgets.every(isKnown)) return undefined
      for (const budget of budgets) if (goesOn(budget)) learn(budget.scopeId, budget.window)
      const unknown = budgets.filter((budget) => !isKnown(budget))
      if (unknown.length === 0) return undefined
      const all = unknown.map(({ scopeId, window }) => ensureOne(scopeId, window))
      return Promise.all(all).then((done) => done.every(Boolean))
    },
    recount,
    async round() {
      const times = passesMs(holdLifetimeMs)
      for (const [name, one] of late) {
        const { scopeId, window, cut, base, seededMs, passes } = one
        if (clock.monotonicMs() - seededMs < (times[passes] ?? 0)) continue
        const rest = await sumUncounted({ scopeId, budget: name, from: cut, until: windowEnd(window) ?? cut })
        await raise(scopeId, window, base + rest)
        if (++one.passes === times.length) late.delete(name)
      }
      for (const scopeId of owed) await recount(scopeId)
    },
  }
}

/** A budget with a row was seeded, or has counted everything from the begin of its window. */
async function hasRow(sql: Sql, scopeId: string, window: string): Promise<boolean> {
  const [row] = await sql`SELECT 1 FROM budgets WHERE scope_id = ${scopeId} AND time_window = ${window}`
  return row !== undefined
}

interface Seed {
  readonly scopeId: string
  readonly window: string
  readonly total: bigint
}

/** Sets the seed to the total, unless another replica has found as much; answers by how much it was raised. */
async function raiseSeed(sql: Sql, { scopeId, window, total }: Seed): Promise<bigint> {
  const [before] = await sql<{ seeded: bigint }>`SELECT seeded FROM budgets
    WHERE scope_id = ${scopeId} AND time_window = ${window}`
  await sql`INSERT INTO budgets (scope_id, time_window, spent, held, seeded)
    VALUES (${scopeId}, ${window}, ${total}, 0, ${total})
    ON CONFLICT (scope_id, time_window) DO UPDATE
      SET spent = budgets.spent + excluded.seeded - budgets.seeded, seeded = excluded.seeded
      WHERE excluded.seeded > budgets.seeded`
  return total - (before?.seeded ?? 0n)
}
