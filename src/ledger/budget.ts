// A budget: how much one scope (a key, a project, a workspace) may spend within one window of time. Here are its names,
// on the way in and in the database; `BudgetCounters` counts. The cap is never stored, it comes with the hold.

import { assert } from '../kernel/assert.ts'
import { isoTime } from '../kernel/clock.ts'
import type { Nano } from '../kernel/money.ts'

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
