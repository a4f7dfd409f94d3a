// A budget: how much one scope (a key, a project, a workspace) may spend within one window of time. Here are its names,
// on the way in and in the database; `BudgetCounters` counts. The cap is never stored, it comes with the hold.

import { isoTime } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import {
  isRolling,
  keptUntil,
  minuteAt,
  minuteWindow,
  type Period,
  periods,
  rollingMinutes,
  type WindowWord,
} from '../kernel/spend-limit.ts'
import { MinuteSums } from './minute-sums.ts'

export interface Budget {
  readonly scopeId: string
  /**
   * `day:2026-11-15`, `week:2026-11-09` (its Monday) or `month:2026-11`, UTC; `month:2026-11-15` if the limit starts then. `5h`,
   * `7d`: the last hours or days.
   */
  readonly window: string
  /** Spent and held together stay at or below it. */
  readonly cap: Nano
}

export interface BudgetState {
  readonly spent: Nano
  readonly held: Nano
}

/** A budget and what counts against it. */
export interface BudgetUse extends Budget, BudgetState {}

/** The first budget that has no room. Once `windowEnd` is over, or held money comes back, there may be. */
export interface OverBudget extends BudgetUse {
  readonly kind: 'over budget'
}

/** A spend limit as its caller sees it. */
export interface SpendState {
  /** Of a rolling window, the one that is as long or the next longer one: clients know these three. */
  readonly period: 'daily' | 'weekly' | 'monthly'
  /** Of a rolling window. */
  readonly windowMinutes?: number | undefined
  readonly limit: Nano
  /** Charged so far; running requests are not counted. */
  readonly spent: Nano
  /** The share of the limit that is spent, from 0; above 1 if the limit was lowered. */
  readonly used: number
  /** Epoch milliseconds. Of a rolling window: when nothing that counts now will count. */
  readonly resetsAt: number
}

export function spendState(
  { window, cap, spent }: Pick<BudgetUse, 'window' | 'cap' | 'spent'>,
  now: number,
): SpendState {
  const resetsAt = windowEnd(window, now)
  assert(resetsAt !== undefined, `a budget's window has an end: ${window}`)
  const windowMinutes = rollingMinutes(window)
  const period =
    windowMinutes === undefined
      ? ({ day: 'daily', week: 'weekly', month: 'monthly' } as const)[periodOf(window)]
      : periodFor(windowMinutes)
  // Six digits are exact for every amount and enough for a percentage.
  const state = { period, limit: cap, spent, used: Number((spent * 1_000_000n) / cap) / 1_000_000, resetsAt }
  return windowMinutes === undefined ? state : { ...state, windowMinutes }
}

function periodFor(minutes: number): SpendState['period'] {
  if (minutes <= 24 * 60) return 'daily'
  return minutes <= 7 * 24 * 60 ? 'weekly' : 'monthly'
}

/** The state of the tightest of spend limits: the one of which the largest share is spent. */
export function tightestSpend(budgets: readonly BudgetUse[], now: number): SpendState {
  const tightest = budgets.reduce((most, use) => (use.spent * most.cap > most.spent * use.cap ? use : most))
  return spendState(tightest, now)
}

/** `scope window` */
export type BudgetName = `${string} ${string}`

/** A wallet, by its workspace, or a budget. */
export type RoomName = WorkspaceId | BudgetName

/** What must stay free in a room for holds that will grow. */
export type Promised = ReadonlyMap<RoomName, bigint>

export const noBudgets: readonly Budget[] = []
const noNames: readonly BudgetName[] = []

export function budgetName(scopeId: string, window: string): BudgetName {
  const name = `${scopeId} ${window}` as const
  assert(/^[^ ,]+ [^ ,]+$/.test(name), `a budget's scope and window have no space or comma: ${name}`)
  return name
}

// Requests of one caller share their list of budgets, so what is made of a list is kept with it.

const namesByBudgets = new WeakMap<readonly Budget[], readonly BudgetName[]>()

export function budgetNames(budgets: readonly Budget[]): readonly BudgetName[] {
  if (budgets.length === 0) return noNames
  const known = namesByBudgets.get(budgets)
  if (known) return known
  const names = budgets.map(({ scopeId, window }) => budgetName(scopeId, window))
  namesByBudgets.set(budgets, names)
  return names
}

export function splitBudgetName(name: BudgetName): readonly [scopeId: string, window: string] {
  const [scopeId = '', window = ''] = name.split(' ')
  return [scopeId, window]
}

const chargedByNames = new WeakMap<
  readonly BudgetName[],
  { readonly minute: number; readonly charged: readonly BudgetName[] }
>()

/** The names under which a charge of this minute counts. In a rolling window that is its minute. */
export function chargedNames(
  names: readonly BudgetName[],
  countsIn: ((scopeId: string) => boolean) | undefined,
  minute: number,
): readonly BudgetName[] {
  if (countsIn) {
    return names.filter((name) => countsIn(splitBudgetName(name)[0])).map((name) => inMinute(name, minute))
  }
  const known = chargedByNames.get(names)
  if (known?.minute === minute) return known.charged
  const charged = names.some(isRollingName) ? names.map((name) => inMinute(name, minute)) : names
  chargedByNames.set(names, { minute, charged })
  return charged
}

function isRollingName(name: BudgetName): boolean {
  return isRolling(splitBudgetName(name)[1])
}

function inMinute(name: BudgetName, minute: number): BudgetName {
  const [scopeId, window] = splitBudgetName(name)
  return isRolling(window) ? budgetName(scopeId, minuteWindow(window, minute)) : name
}

interface ChargedBudget {
  readonly budget: BudgetName
  readonly minute?: number
}

const budgetsByCharged = new WeakMap<readonly BudgetName[], readonly ChargedBudget[]>()

function budgetsOfCharge(names: readonly BudgetName[]): readonly ChargedBudget[] {
  const known = budgetsByCharged.get(names)
  if (known) return known
  const budgets = names.map(budgetOfCharge)
  budgetsByCharged.set(names, budgets)
  return budgets
}

/** The budget of a name under which a charge counts, and its minute in a rolling window. */
export function budgetOfCharge(name: BudgetName): ChargedBudget {
  const hash = name.lastIndexOf('#')
  if (hash === -1) return { budget: name }
  return { budget: name.slice(0, hash) as BudgetName, minute: Number(name.slice(hash + 1)) }
}

const textByNames = new WeakMap<readonly BudgetName[], string>()

/** As in the column `budgets` of holds and transfers. */
export function renderBudgetNames(names: readonly BudgetName[]): string | null {
  if (names.length === 0) return null
  const known = textByNames.get(names)
  if (known !== undefined) return known
  const text = names.join(',')
  textByNames.set(names, text)
  return text
}

export function parseBudgetNames(column: string | null): readonly BudgetName[] {
  return column === null ? [] : (column.split(',') as BudgetName[])
}

export const minuteMs = 60_000
const dayMs = 86_400_000
/** 1970-01-01 was a Thursday. */
const firstMonday = 4 * dayMs

/**
 * The window of a period that a moment is in. Weeks begin on Monday. `startsAt` is the first moment of a day: a week or month
 * in which it lies begins there.
 */
export function windowAt(period: WindowWord, epochMs: number, startsAt?: number): string {
  if (isRolling(period)) return period
  const whole = wholeWindowAt(period, epochMs)
  return startsAt === undefined || startsAt <= (windowStart(whole) ?? 0)
    ? whole
    : `${period}:${isoTime(startsAt).slice(0, 10)}`
}

function wholeWindowAt(period: Period, epochMs: number): string {
  if (period === 'month') return `month:${isoTime(epochMs).slice(0, 7)}`
  const start = period === 'day' ? epochMs : Math.max(0, epochMs - sinceMonday(epochMs))
  return `${period}:${isoTime(start).slice(0, 10)}`
}

function sinceMonday(epochMs: number): number {
  return (((epochMs - firstMonday) % (7 * dayMs)) + 7 * dayMs) % (7 * dayMs)
}

export function periodOf(window: string): Period {
  const period = periods.find((each) => window.startsWith(`${each}:`))
  assert(period, `a budget's window names its period: ${window}`)
  return period
}

/** The moment at which the window is over, for a rolling one that of `now`; undefined for text that names none. */
export function windowEnd(window: string, now?: number): number | undefined {
  const rolling = now === undefined ? undefined : rollingMinutes(window)
  if (rolling !== undefined) return (minuteAt(now ?? 0) + rolling + 1) * minuteMs
  const parts = partsOf(window)
  if (parts === undefined) return undefined
  const { period, year, month, day } = parts
  if (period === 'month') return Date.UTC(year, month, 1)
  const start = Date.UTC(year, month - 1, day)
  return period === 'day' ? start + dayMs : start - sinceMonday(start) + 7 * dayMs
}

export function windowStart(window: string): number | undefined {
  const parts = partsOf(window)
  return parts && Date.UTC(parts.year, parts.month - 1, parts.day)
}

/** undefined also for a window that begins with its limit. */
export function windowBefore(window: string): string | undefined {
  const parts = partsOf(window)
  if (parts === undefined || windowAt(parts.period, windowStart(window) ?? 0) !== window) return undefined
  const before = Date.UTC(parts.year, parts.month - 1, parts.day) - 1
  return windowAt(parts.period, before)
}

function partsOf(window: string) {
  const [, kind, year, month, day] = /^(day|week|month):(\d{4})-(\d\d)(?:-(\d\d))?$/.exec(window) ?? []
  if (kind === undefined || (kind !== 'month' && day === undefined)) return undefined
  return { period: kind as Period, year: Number(year), month: Number(month), day: Number(day ?? 1) }
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
  /** Of a rolling window that is counted here; `spent` is then not used. */
  readonly minutes: MinuteSums | undefined
}

/** `minute`: the current one, if rolling windows are counted here. */
function spentIn(counter: Counter | undefined, minute: number | undefined): bigint {
  if (counter === undefined) return 0n
  return counter.minutes && minute !== undefined ? counter.minutes.at(minute) : counter.spent
}

/** Counts budgets in memory: of the whole process on the embedded engine, of the locked rows of one batch on PostgreSQL. */
export class BudgetCounters {
  readonly #counters = new Map<BudgetName, Counter>()
  /** What was charged in minutes of rolling windows, by the names of the charges. */
  readonly #inMinutes = new Map<BudgetName, bigint>()

  /** `minute`: the current one. Without it rolling windows are counted by the caller, who gets what was charged in them. */
  constructor(
    rows: Iterable<readonly [BudgetName, BudgetState]> = [],
    private readonly minute?: () => number,
  ) {
    for (const [name, { spent, held }] of rows) {
      const isSum = this.minute !== undefined && isRollingName(name)
      if (budgetOfCharge(name).minute !== undefined) this.spend([name], spent)
      else if (!isSum) this.#counters.set(name, { spent, held, minutes: undefined })
    }
  }

  state(name: BudgetName): BudgetState {
    const counter = this.#counters.get(name)
    return { spent: spentIn(counter, this.minute?.()) as Nano, held: (counter?.held ?? 0n) as Nano }
  }

  uses(budgets: readonly Budget[]): readonly BudgetUse[] {
    const names = budgetNames(budgets)
    const minute = this.minute?.()
    return budgets.map(({ scopeId, window, cap }, at) => {
      const counter = this.#counters.get(names[at] as BudgetName)
      return { scopeId, window, cap, spent: spentIn(counter, minute) as Nano, held: (counter?.held ?? 0n) as Nano }
    })
  }

  /** undefined = all of them have that much room beside what is promised. What costs nothing needs none. */
  refusal(budgets: readonly Budget[], room: bigint, promised?: Promised): OverBudget | undefined {
    if (room === 0n) return undefined
    const names = budgetNames(budgets)
    const minute = this.minute?.()
    // Once for each limit of every request: no iterator, and as few bigints as can be.
    for (let at = 0; at < budgets.length; at++) {
      const name = names[at] as BudgetName
      const counter = this.#counters.get(name)
      const spent = spentIn(counter, minute)
      const needed = promised ? room + (promised.get(name) ?? 0n) : room
      const { scopeId, window, cap } = budgets[at] as Budget
      const held = counter?.held ?? 0n
      if (spent + held + needed > cap)
        return { kind: 'over budget', scopeId, window, spent: spent as Nano, held: held as Nano, cap }
    }
    return undefined
  }

  /** At most `amount`: what all of them still have room for. */
  within(budgets: readonly Budget[], amount: bigint): bigint {
    const names = budgetNames(budgets)
    const minute = this.minute?.()
    let room = amount
    for (const [at, { cap }] of budgets.entries()) {
      const counter = this.#counters.get(names[at] as BudgetName)
      const left = cap - spentIn(counter, minute) - (counter?.held ?? 0n)
      if (left < room) room = left > 0n ? left : 0n
    }
    return room
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

  /** By the names of the charge. */
  spend(names: readonly BudgetName[], amount: bigint): void {
    const budgets = budgetsOfCharge(names)
    for (let at = 0; at < budgets.length; at++) {
      const { budget, minute } = budgets[at] as ChargedBudget
      const counter = this.#counterOf(budget)
      if (minute !== undefined && counter.minutes) {
        counter.minutes.add(minute, amount)
        continue
      }
      counter.spent += amount
      if (minute === undefined) continue
      const name = names[at] as BudgetName
      this.#inMinutes.set(name, (this.#inMinutes.get(name) ?? 0n) + amount)
    }
  }

  /** When at least so much of what counts in a rolling window now counts no more. */
  leavesAt(name: BudgetName, amount: bigint): number {
    const minutes = this.#counters.get(name)?.minutes
    const now = this.minute?.() ?? 0
    return (minutes?.leavesBy(amount, now) ?? now) * minuteMs
  }

  names(): readonly BudgetName[] {
    return [...this.#counters.keys()]
  }

  inMinutes(): ReadonlyMap<BudgetName, bigint> {
    return this.#inMinutes
  }

  forget(isPast: (window: string) => boolean): void {
    for (const [name, counter] of this.#counters) {
      const { spent, held, minutes } = counter
      const [, window] = splitBudgetName(name)
      if (minutes && this.minute) {
        minutes.at(this.minute())
        // As long as in the database, in case the clock is set back.
        minutes.forgetBefore(this.minute() - (keptUntil(window, 0) - 1))
      }
      const isOver = minutes ? minutes.isEmpty : spent === 0n || isPast(window)
      // Clients may invent end users; those that were never charged are not kept.
      if (held === 0n && isOver) this.#counters.delete(name)
    }
  }

  #counterOf(name: BudgetName): Counter {
    const known = this.#counters.get(name)
    if (known) return known
    const span = this.minute && rollingMinutes(splitBudgetName(name)[1])
    const fresh = { spent: 0n, held: 0n, minutes: span === undefined ? undefined : new MinuteSums(span) }
    this.#counters.set(name, fresh)
    return fresh
  }
}
