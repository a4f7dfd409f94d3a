// A budget: how much one scope (a key, a project, a workspace) may spend within one window of time. Here are its names,
// on the way in and in the database; `BudgetCounters` counts. The cap is never stored, it comes with the hold.

import { hashOfEndUser } from '../kernel/attribution.ts'
import { type Clock, isoTime } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import { grainMs } from '../store/request-rows.ts'
import type { Sql } from '../store/sql.ts'
import { isContention, isStoreUnavailable } from '../store/sql-error.ts'

export interface Budget {
  readonly scopeId: string
  /** `day:2026-11-15`, `week:2026-11-09` (its Monday) or `month:2026-11`, UTC; `month:2026-11-15` if the limit starts then. */
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
  readonly period: 'daily' | 'weekly' | 'monthly'
  readonly limit: Nano
  /** Charged so far; running requests are not counted. */
  readonly spent: Nano
  /** The share of the limit that is spent, from 0; above 1 if the limit was lowered. */
  readonly used: number
  /** Epoch milliseconds. */
  readonly resetsAt: number
}

export function spendState({ window, cap, spent }: Pick<BudgetUse, 'window' | 'cap' | 'spent'>): SpendState {
  const resetsAt = windowEnd(window)
  assert(resetsAt !== undefined, `a budget's window has an end: ${window}`)
  const period = ({ day: 'daily', week: 'weekly', month: 'monthly' } as const)[periodOf(window)]
  // Six digits are exact for every amount and enough for a percentage.
  return { period, limit: cap, spent, used: Number((spent * 1_000_000n) / cap) / 1_000_000, resetsAt }
}

/** The state of a caller's tightest spend limit: the one of which the largest share is spent. undefined = it has none. */
export function tightestSpend(budgets: readonly BudgetUse[]): SpendState | undefined {
  return budgets.map(spendState).sort((a, b) => b.used - a.used)[0]
}

// End users and tags have separate budgets within a key, project or workspace.

export function userScope(scopeId: string, endUserHash: string): string {
  return `${scopeId}/user:${endUserHash}`
}

export function tagScope(scopeId: string, tag: string): string {
  return `${scopeId}/tag:${tag}`
}

/** The owner of a scope, and which of its end users or tags it is. */
export function splitScope(scopeId: string): { readonly owner: string; readonly user?: string; readonly tag?: string } {
  const [, owner = scopeId, kind, name = ''] = /^([^/]+)\/(user|tag):(.*)$/.exec(scopeId) ?? []
  return kind === undefined ? { owner } : kind === 'user' ? { owner, user: name } : { owner, tag: name }
}

function isAttributed({ scopeId }: Budget): boolean {
  return scopeId.includes('/')
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

export function budgetNames(budgets: readonly Budget[]): readonly BudgetName[] {
  return budgets.length === 0 ? noNames : budgets.map(({ scopeId, window }) => budgetName(scopeId, window))
}

export function splitBudgetName(name: BudgetName): readonly [scopeId: string, window: string] {
  const [scopeId = '', window = ''] = name.split(' ')
  return [scopeId, window]
}

/** As in the column `budgets` of holds and transfers. */
export function renderBudgetNames(names: readonly BudgetName[]): string | null {
  return names.length === 0 ? null : names.join(',')
}

export function parseBudgetNames(column: string | null): readonly BudgetName[] {
  return column === null ? [] : (column.split(',') as BudgetName[])
}

export const periods = ['day', 'week', 'month'] as const
export type Period = (typeof periods)[number]

const dayMs = 86_400_000
/** 1970-01-01 was a Thursday. */
const firstMonday = 4 * dayMs

/**
 * The window of a period that a moment is in. Weeks begin on Monday. `startsAt` is the first moment of a day: a week or month
 * in which it lies begins there.
 */
export function windowAt(period: Period, epochMs: number, startsAt?: number): string {
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

/** The moment at which the window is over; undefined for text that names none. */
export function windowEnd(window: string): number | undefined {
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

  uses(budgets: readonly Budget[]): readonly BudgetUse[] {
    return budgets.map((budget) => ({ ...budget, ...this.state(budgetName(budget.scopeId, budget.window)) }))
  }

  /** undefined = all of them have that much room beside what is promised. What costs nothing needs none. */
  refusal(budgets: readonly Budget[], room: bigint, promised?: Promised): OverBudget | undefined {
    if (room === 0n) return undefined
    for (const { scopeId, window, cap } of budgets) {
      const name = budgetName(scopeId, window)
      const { spent, held } = this.state(name)
      if (spent + held + room + (promised?.get(name) ?? 0n) > cap)
        return { kind: 'over budget', scopeId, window, spent, held, cap }
    }
    return undefined
  }

  /** At most `amount`: what all of them still have room for. */
  within(budgets: readonly Budget[], amount: bigint): bigint {
    let room = amount
    for (const { scopeId, window, cap } of budgets) {
      const { spent, held } = this.state(budgetName(scopeId, window))
      const left = cap - spent - held
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

  spend(names: readonly BudgetName[], amount: bigint): void {
    for (const name of names) this.#counterOf(name).spent += amount
  }

  names(): readonly BudgetName[] {
    return [...this.#counters.keys()]
  }

  forget(isPast: (window: string) => boolean): void {
    for (const [name, { spent, held }] of this.#counters) {
      // Clients may invent end users; those that were never charged are not kept.
      if (held === 0n && (spent === 0n || isPast(splitBudgetName(name)[1]))) this.#counters.delete(name)
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
  recount(scopeId: string, startsAt?: number): Promise<void>
  /** The same for limits of end users and tags. */
  recountAttributed(scopeId: string, limited: Attributed, startsAt?: number): Promise<void>
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
  /** Reads the charges again. */
  readonly again: () => Promise<void>
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
  if (!options.seedsBudgets) {
    return {
      ensure: () => undefined,
      recount: async () => {},
      recountAttributed: async () => {},
      round: async () => {},
    }
  }
  /** Windows by scope. */
  const known = new Map<string, Set<string>>()
  const running = new Map<BudgetName, Promise<boolean>>()
  const recent = new Map<BudgetName, RecentSeed>()
  /** Recounts that failed. */
  const failed = new Map<string, () => Promise<void>>()

  /** Budgets of end users and tags are counted when their limit is set: their charges are only found in the log. */
  const isKnown = (budget: Budget) => isAttributed(budget) || known.get(budget.scopeId)?.has(budget.window) === true
  /** The limit existed in the window before, so nothing of this window can have been charged without it. */
  const continues = ({ scopeId, window }: Budget) => known.get(scopeId)?.has(windowBefore(window) ?? '') === true
  const learn = (scopeId: string, window: string) => {
    const windows = known.get(scopeId) ?? new Set()
    for (const old of windows) if (isWindowPast(old, clock.now())) windows.delete(old)
    known.set(scopeId, windows.add(window))
  }
  const raise = async (scopeId: string, window: string, attributed?: bigint): Promise<void> => {
    const by = await database.transaction((sql) => raiseSeed(sql, scopeId, window, attributed))
    if (by > 0n) onRaised(budgetName(scopeId, window), by)
  }
  const raiseAttributed = async (scopeId: string, window: string, limited: Attributed): Promise<void> => {
    const sums = await sumUncounted(database, scopeId, window, limited)
    for (const [scope, uncounted] of sums) await raise(scope, window, uncounted)
  }
  const seed = async (scopeId: string, window: string, limited?: Attributed): Promise<void> => {
    const again = () => (limited ? raiseAttributed(scopeId, window, limited) : raise(scopeId, window))
    await again()
    const name = budgetName(limited ? `${scopeId}/` : scopeId, window)
    recent.set(name, { again, seededMs: clock.monotonicMs(), passes: 0 })
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
  const recount = async (scopeId: string, limited?: Attributed, startsAt = 0): Promise<void> => {
    const name = limited ? `${scopeId}/` : scopeId
    const now = clock.now()
    try {
      if (startsAt <= now) for (const period of periods) await seed(scopeId, windowAt(period, now, startsAt), limited)
      failed.delete(name)
    } catch (thrown) {
      failed.set(name, () => recount(scopeId, limited, startsAt))
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
    recount: (scopeId, startsAt) => recount(scopeId, undefined, startsAt),
    recountAttributed: recount,
    async round() {
      const times = passesMs(holdLifetimeMs)
      for (const [name, one] of recent) {
        if (clock.monotonicMs() - one.seededMs < (times[one.passes] ?? 0)) continue
        await one.again()
        if (++one.passes === times.length) recent.delete(name)
      }
      for (const again of failed.values()) await again()
    },
  }
}

/**
 * A budget with a row was seeded, or has counted everything since its window began. In a transaction: on the embedded engine it
 * then comes after a recount that has just written the row, whose charges are in the counter by then.
 */
async function hasRow(database: Database, scopeId: string, window: string): Promise<boolean> {
  const [row] = await database.transaction(
    (sql) => sql`SELECT 1 FROM budgets WHERE scope_id = ${scopeId} AND time_window = ${window}`,
  )
  return row !== undefined
}

/** Sets the seed to the charges that the budget has not counted, unless it is as high already. Returns the difference. */
async function raiseSeed(sql: Sql, scopeId: string, window: string, attributed?: bigint): Promise<bigint> {
  const { uncounted, seeded } =
    attributed === undefined
      ? await readUncounted(sql, scopeId, window)
      : { uncounted: attributed, seeded: await readSeeded(sql, scopeId, window) }
  if (uncounted <= seeded) return 0n
  await sql`INSERT INTO budgets (scope_id, time_window, spent, held, seeded)
    VALUES (${scopeId}, ${window}, ${uncounted}, 0, ${uncounted})
    ON CONFLICT (scope_id, time_window) DO UPDATE
      SET spent = budgets.spent + excluded.seeded - budgets.seeded, seeded = excluded.seeded
      WHERE excluded.seeded > budgets.seeded`
  return uncounted - seeded
}

async function readSeeded(sql: Sql, scopeId: string, window: string): Promise<bigint> {
  const [row] = await sql<{ seeded: bigint }>`SELECT seeded FROM budgets
    WHERE scope_id = ${scopeId} AND time_window = ${window}`
  return row?.seeded ?? 0n
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

// Charges of end users and tags whose budget was not named at the time. There is no sum of them: the log of the window is
// read once, backwards and page by page.

/** The scopes with a limit: every end user, and these tags. */
export interface Attributed {
  readonly hasUsers: boolean
  readonly tags: readonly string[]
}

interface ChargeRow {
  readonly id: string
  readonly started_at: bigint
  readonly project_id: string
  readonly charge: bigint | null
  readonly end_user: string | null
  readonly tags: string | null
  readonly budgets: string | null
}

/** A few milliseconds: the embedded database is read on the thread that serves requests. */
const pageMax = 200
/** Ids ascend with time but for the clocks of several replicas. */
const marginMs = 60_000
/** Sorts after every id. */
const endOfLog = 'req_~'

/** By scope. A row never changes, so each sum is exact however long the reading takes, and never falls. */
export async function sumUncounted(
  { sql }: Pick<Database, 'sql'>,
  scopeId: string,
  window: string,
  { hasUsers, tags }: Attributed,
): Promise<ReadonlyMap<string, bigint>> {
  const [from, until] = [windowStart(window) ?? 0, windowEnd(window) ?? 0]
  const sums = new Map<string, bigint>()
  const isProject = scopeId.startsWith('prj_')
  const column = scopeId.startsWith('key_') ? 'key_id' : 'workspace_id'
  const [owner] = isProject
    ? await sql<{ id: string }>`SELECT workspace_id AS id FROM projects WHERE id = ${scopeId}`
    : []
  const value = owner?.id ?? scopeId
  const add = (scope: string, { charge, budgets }: ChargeRow) => {
    if (charge === null || parseBudgetNames(budgets).includes(budgetName(scope, window))) return
    sums.set(scope, (sums.get(scope) ?? 0n) + charge)
  }
  const text = [
    `SELECT id, started_at, project_id, charge, end_user, tags, budgets FROM requests WHERE (${column}, id) < (`,
    ...[', ', `) AND ${column} = `, ` ORDER BY ${column} DESC, id DESC LIMIT ${pageMax}`],
  ]
  for (let before = endOfLog; ; ) {
    const rows = await sql<ChargeRow>(templateOf(text), value, before, value)
    for (const row of rows) {
      if (row.started_at < from || row.started_at >= until || (isProject && row.project_id !== scopeId)) continue
      if (hasUsers && row.end_user !== null) add(userScope(scopeId, hashOfEndUser(row.end_user)), row)
      const own = row.tags === null ? [] : row.tags.split(',')
      for (const tag of tags) if (own.includes(tag)) add(tagScope(scopeId, tag), row)
    }
    const last = rows.at(-1)
    if (!last || rows.length < pageMax || last.started_at < from - marginMs) return sums
    before = last.id
    await yieldToEventLoop()
  }
}
