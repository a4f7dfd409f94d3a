// Charges from before a spend limit was set, as far as they belong to its window.

import { hashOfEndUser } from '../kernel/attribution.ts'
import type { Clock } from '../kernel/clock.ts'
import { firstIdAt } from '../kernel/ids.ts'
import {
  isRolling,
  keptUntil,
  matchesModel,
  minuteAt,
  minuteWindow,
  rollingMinutes,
  type SpendFacts,
  type SpendLimit,
  scopesOf,
} from '../kernel/spend-limit.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import { grainMs } from '../store/request-rows.ts'
import type { Sql } from '../store/sql.ts'
import { isContention, isStoreUnavailable } from '../store/sql-error.ts'
import {
  type Budget,
  type BudgetName,
  budgetName,
  budgetOfCharge,
  isWindowPast,
  minuteMs,
  noBudgets,
  parseBudgetNames,
  splitBudgetName,
  windowAt,
  windowBefore,
  windowEnd,
  windowStart,
} from './budget.ts'
import type { Recount, Recounts } from './ledger.ts'

// A spend limit counts everything that its scope was charged in the window, also before the limit was set. The first hold
// that names a budget without a counter waits until the counter contains those charges. Requests that were running at that
// moment do not name the budget either, and are added once they have ended.

export interface BudgetSeeds {
  /** undefined = all budgets have counters already; otherwise whether they have now. */
  ensure(budgets: readonly Budget[] | undefined): Promise<boolean> | undefined
  /** The limits of the owner were set: adds what was charged while there was none. Retried with every round if it fails. */
  recount(owner: string, limits: readonly SpendLimit[], startsAt?: number): Promise<void>
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
  readonly recounts?: Recounts | undefined
  /** Whether other processes set limits too, which this one learns of later. */
  readonly isShared: boolean
  /** The raise is durable. */
  onRaised?(name: BudgetName, by: bigint): void
}

/** A budget that was seeded while requests may have been running. */
interface RecentSeed {
  /** The key, project or workspace. */
  readonly owner: string
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
/** Every so many rounds: recounts of processes that have died, or of other ones that do not get on with them. */
const pendingEveryRounds = 12

export function createBudgetSeeds(options: BudgetSeedsOptions): BudgetSeeds {
  const { database, clock, holdLifetimeMs, isShared, recounts, onRaised = () => {} } = options
  if (!options.seedsBudgets) {
    return {
      ensure: () => undefined,
      recount: async () => {},
      round: async () => {},
    }
  }
  /** Windows by scope. */
  const known = new Map<string, Set<string>>()
  /** Requests of one caller share their list of budgets. */
  const ensured = new WeakSet<readonly Budget[]>()
  const running = new Map<BudgetName, Promise<boolean>>()
  const recent = new Map<BudgetName, RecentSeed>()
  /** Recounts that failed. */
  const failed = new Map<string, () => Promise<void>>()
  /** Recounts from the database that this process does too, by owner. */
  const taken = new Map<string, Recount>()
  /** Owners whose limits were set in this process. */
  const own = new Set<string>()
  let rounds = 0

  /** Those whose charges are only found in the log are counted when their limit is set. */
  const isKnown = (budget: Budget) =>
    !isPlain(budget.scopeId) || isRolling(budget.window) || known.get(budget.scopeId)?.has(budget.window) === true
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
  const seed = async (owner: string, window: string): Promise<void> => {
    await raise(owner, window)
    remember(owner, budgetName(owner, window), () => raise(owner, window))
  }
  const remember = (owner: string, name: BudgetName, again: () => Promise<void>) =>
    recent.set(name, { owner, again, seededMs: clock.monotonicMs(), passes: 0 })
  /** Once for all of these limits. What is read again is what requests were charged that may still have been running. */
  const seedFromLog = async (owner: string, limits: readonly LoggedLimit[]): Promise<void> => {
    const now = clock.now()
    const runningFrom = now - holdLifetimeMs - marginMs
    // Later requests name the budgets, so what is read does not grow.
    const before = firstIdAt(now + (isShared ? namedAfterMs : 0))
    let ended: Sums | undefined
    const again = async () => {
      const asked = ended ? limits.map((limit) => ({ ...limit, from: Math.max(limit.from, runningFrom) })) : limits
      const [old, late]: [Sums, Sums] = [new Map(), new Map()]
      for await (const { startedAt, name, charge } of logUncounted(database.sql, owner, asked, before)) {
        const sums = startedAt < runningFrom ? old : late
        sums.set(name, (sums.get(name) ?? 0n) + charge)
      }
      ended ??= old
      for (const [name, sum] of ended) late.set(name, (late.get(name) ?? 0n) + sum)
      await raiseTo(late)
    }
    await again()
    remember(owner, budgetName(`${owner}/`, 'log'), again)
  }
  const raiseTo = async (sums: Sums): Promise<void> => {
    for (const [budget, names] of Map.groupBy(sums.keys(), (name) => budgetOfCharge(name).budget)) {
      const [scope, window] = splitBudgetName(budget)
      if (!isRolling(window)) {
        await raise(scope, window, sums.get(budget))
        continue
      }
      const minutes = new Map(names.map((name) => [budgetOfCharge(name).minute ?? 0, sums.get(name) ?? 0n]))
      const raised = await database.transaction((sql) => raiseMinuteSeeds(sql, scope, window, minutes))
      for (const [minute, by] of raised) onRaised(budgetName(scope, minuteWindow(window, minute)), by)
    }
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
  const recount = async (owner: string, limits: readonly SpendLimit[], startsAt = 0): Promise<void> => {
    const now = clock.now()
    try {
      const begun = startsAt <= now ? limits : []
      for (const word of new Set(begun.filter(isPlainLimit).map((limit) => limit.window))) {
        if (!isRolling(word)) await seed(owner, windowAt(word, now, startsAt))
      }
      const logged = begun.filter((limit) => isRolling(limit.window) || !isPlainLimit(limit))
      if (logged.length > 0)
        await seedFromLog(
          owner,
          logged.map((limit) => loggedLimit(limit, now, startsAt)),
        )
      failed.delete(owner)
    } catch (thrown) {
      failed.set(owner, () => recount(owner, limits, startsAt))
      throw thrown
    }
  }

  const takePending = async (): Promise<void> => {
    for (const pending of (await recounts?.pending()) ?? []) {
      const { owner, limits, startsAt, setAt } = pending
      if (taken.get(owner)?.setAt === setAt) continue
      taken.set(owner, pending)
      if (isShared || !own.has(owner)) await recount(owner, limits, startsAt)
    }
  }
  /** Those of which every pass is over. */
  const finishTaken = async (): Promise<void> => {
    const unfinished = new Set([...[...recent.values()].map(({ owner }) => owner), ...failed.keys()])
    for (const [owner, one] of taken) {
      if (unfinished.has(owner)) continue
      await recounts?.finish(one)
      taken.delete(owner)
    }
  }

  return {
    ensure(budgets = noBudgets) {
      if (ensured.has(budgets)) return undefined
      for (const budget of budgets) if (continues(budget)) learn(budget.scopeId, budget.window)
      const unknown = budgets.filter((budget) => !isKnown(budget))
      if (unknown.length === 0) {
        ensured.add(budgets)
        return undefined
      }
      const all = unknown.map(({ scopeId, window }) => ensureOne(scopeId, window))
      return Promise.all(all).then((done) => done.every(Boolean))
    },
    recount(owner, limits, startsAt) {
      own.add(owner)
      return recount(owner, limits, startsAt)
    },
    async round() {
      const times = passesMs(holdLifetimeMs)
      for (const [name, one] of recent) {
        if (clock.monotonicMs() - one.seededMs < (times[one.passes] ?? 0)) continue
        await one.again()
        if (++one.passes === times.length) recent.delete(name)
      }
      for (const again of failed.values()) await again()
      if (rounds++ % pendingEveryRounds === 0) await takePending()
      if (taken.size > 0) await finishTaken()
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

// Charges whose budget was not named at the time, of which there are no sums: the log of the window is read once, backwards and
// page by page.

function isPlain(scopeId: string): boolean {
  return !/[/?]/.test(scopeId)
}

function isPlainLimit({ subject, models }: SpendLimit): boolean {
  return subject.kind === 'all' && models === undefined
}

interface ChargeRow {
  readonly id: string
  readonly started_at: bigint
  readonly total_ms: bigint
  readonly project_id: string
  readonly key_id: string
  readonly model: string | null
  readonly charge: bigint | null
  readonly end_user: string | null
  readonly tags: string | null
  readonly budgets: string | null
}

/** A few milliseconds: the embedded database is read on the thread that serves requests. */
const pageMax = 200
/** Ids ascend with time but for the clocks of several replicas. */
const marginMs = 60_000
/** Once limits have been set for so long, every replica knows them, and ids of earlier requests are behind even if its clock is ahead. */
const namedAfterMs = 2 * marginMs

/** By the names under which the charges count. A row never changes, so each sum is exact however long the reading takes, and never falls. */
type Sums = Map<BudgetName, bigint>

/** A limit, and the moments in which a request began that counts in it. */
interface LoggedLimit {
  readonly limit: SpendLimit
  readonly window: string
  readonly from: number
  readonly until: number
}

function loggedLimit(limit: SpendLimit, now: number, startsAt: number): LoggedLimit {
  const window = windowAt(limit.window, now, startsAt)
  const span = rollingMinutes(window)
  if (span !== undefined) return { limit, window, from: Math.max(startsAt, now - span * minuteMs), until: Infinity }
  return { limit, window, from: windowStart(window) ?? 0, until: windowEnd(window) ?? 0 }
}

/** Charges in the scopes of these limits, as far as they do not name them in the window. */
async function* logUncounted(sql: Sql, owner: string, limits: readonly LoggedLimit[], before: string) {
  const factsOf = await readMembers(sql, owner)
  const first = Math.min(...limits.map(({ from }) => from))
  for await (const row of readLog(sql, owner, { from: first, before })) {
    const { charge, model } = row
    if (charge === null) continue
    const startedAt = Number(row.started_at)
    const minute = minuteAt(startedAt + Number(row.total_ms))
    const named = new Set(parseBudgetNames(row.budgets).map((name) => budgetOfCharge(name).budget))
    const facts = factsOf(row)
    for (const { limit, window, from, until } of limits) {
      if (startedAt < from || startedAt >= until) continue
      if (limit.models !== undefined && !(model && matchesModel(limit.models, model))) continue
      for (const scope of scopesOf(owner, limit, facts)) {
        const budget = budgetName(scope, window)
        if (named.has(budget)) continue
        // Two limits may have one counter.
        named.add(budget)
        const name = isRolling(window) ? budgetName(scope, minuteWindow(window, minute)) : budget
        yield { startedAt, name, charge }
      }
    }
  }
}

/** Returns what each minute was raised by. */
async function raiseMinuteSeeds(
  sql: Sql,
  scopeId: string,
  word: string,
  minutes: ReadonlyMap<number, bigint>,
): Promise<readonly (readonly [minute: number, by: bigint])[]> {
  // Locks the counter of replicas, and has the next hold add it up again.
  await sql`INSERT INTO budgets (scope_id, time_window, spent, held) VALUES (${scopeId}, ${word}, 0, 0)
    ON CONFLICT (scope_id, time_window) DO UPDATE SET spent = 0, counted_from = NULL`
  const known = await sql<{ minute: bigint; seeded: bigint }>`SELECT minute, seeded FROM budget_minutes
    WHERE scope_id = ${scopeId} AND time_window = ${word}`
  const seeded = new Map(known.map((row) => [Number(row.minute), row.seeded]))
  const raised: [minute: number, by: bigint][] = []
  for (const [minute, uncounted] of minutes) {
    const by = uncounted - (seeded.get(minute) ?? 0n)
    if (by <= 0n) continue
    await sql`INSERT INTO budget_minutes (scope_id, time_window, minute, spent, seeded, kept_until)
      VALUES (${scopeId}, ${word}, ${BigInt(minute)}, ${uncounted}, ${uncounted}, ${BigInt(keptUntil(word, minute))})
      ON CONFLICT (scope_id, time_window, minute) DO UPDATE
        SET spent = budget_minutes.spent + excluded.seeded - budget_minutes.seeded, seeded = excluded.seeded`
    raised.push([minute, by])
  }
  return raised
}

/** Whose key each one is, and the groups of each key and person, as they are now. */
async function readMembers(sql: Sql, owner: string): Promise<(row: ChargeRow) => SpendFacts> {
  const [workspace] = await sql<{ id: string }>`SELECT workspace_id AS id FROM projects WHERE id = ${owner}
    UNION ALL SELECT workspace_id FROM api_keys WHERE id = ${owner}`
  const workspaceId = workspace?.id ?? owner
  const keys = await sql<{ id: string; owner_id: string }>`SELECT id, owner_id FROM api_keys
    WHERE workspace_id = ${workspaceId} AND owner_id IS NOT NULL`
  const members = await sql<{ group_id: string; member_id: string }>`SELECT m.group_id, m.member_id
    FROM group_members m JOIN groups g ON g.id = m.group_id WHERE g.workspace_id = ${workspaceId}`
  const owners = new Map(keys.map((key) => [key.id, key.owner_id]))
  const groups = Map.groupBy(members, ({ member_id }) => member_id)
  return ({ key_id, end_user, tags }) => {
    const personId = owners.get(key_id)
    const member = [...(groups.get(key_id) ?? []), ...(groups.get(personId ?? '') ?? [])]
    return {
      endUser: end_user === null ? undefined : hashOfEndUser(end_user),
      tags: tags === null ? [] : tags.split(','),
      personId,
      groupIds: [...new Set(member.map(({ group_id }) => group_id))],
    }
  }
}

/** Requests of the owner with ids before that one that began at that moment or later, newest first. */
async function* readLog(
  sql: Sql,
  owner: string,
  { from, before: first }: { readonly from: number; readonly before: string },
): AsyncGenerator<ChargeRow> {
  const isProject = owner.startsWith('prj_')
  const column = owner.startsWith('key_') ? 'key_id' : 'workspace_id'
  const [project] = isProject
    ? await sql<{ id: string }>`SELECT workspace_id AS id FROM projects WHERE id = ${owner}`
    : []
  const value = project?.id ?? owner
  // SQLite does not look up a comparison of rows in the index: it would read all newer requests again for every page.
  const text = [
    `SELECT id, started_at, total_ms, project_id, key_id, model, charge, end_user, tags, budgets FROM requests WHERE ${column} = `,
    ...[' AND id < ', ` AND (${column}, id) < (`, ', ', `) ORDER BY ${column} DESC, id DESC LIMIT ${pageMax}`],
  ]
  for (let before = first; ; ) {
    const rows = await sql<ChargeRow>(templateOf(text), value, before, value, before)
    for (const row of rows) if (row.started_at >= from && (!isProject || row.project_id === owner)) yield row
    const last = rows.at(-1)
    if (!last || rows.length < pageMax || last.started_at < from - marginMs) return
    before = last.id
    await yieldToEventLoop()
  }
}
