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
  const { database, clock, holdLifetimeMs, recounts, onRaised = () => {} } = options
  if (!options.seedsBudgets) {
    return {
      ensure: () => undefined,
      recount: async () => {},
      round: async () => {},
    }
  }
  /** Windows by scope. */
  const known = new Map<string, Set<string>>()
  const running = new Map<BudgetName, Promise<boolean>>()
  const recent = new Map<BudgetName, RecentSeed>()
  /** Recounts that failed. */
  const failed = new Map<string, () => Promise<void>>()
  /** Recounts from the database that this process does too, by owner. */
  const taken = new Map<string, Recount>()
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
  const raiseFromLog = async (
    owner: string,
    window: string,
    { limits, before }: Pick<Uncountable, 'limits' | 'before'>,
  ): Promise<void> => {
    const sums = await sumUncounted(database, owner, window, { limits, before })
    for (const [scope, uncounted] of sums) await raise(scope, window, uncounted)
  }
  const raiseMinutes = async (owner: string, asked: Uncountable) => {
    const { word } = asked
    const from = Math.max(asked.from, clock.now() - (rollingMinutes(word) ?? 0) * minuteMs)
    for (const [scope, minutes] of await sumUncountedMinutes(database, owner, { ...asked, from })) {
      const raised = await database.transaction((sql) => raiseMinuteSeeds(sql, scope, word, minutes))
      for (const [minute, by] of raised) onRaised(budgetName(scope, minuteWindow(word, minute)), by)
    }
  }
  /** `fromLog`: those limits of the owner in the window whose charges have no sums. `since`: the first moment that counts. */
  const seed = async (owner: string, window: string, fromLog?: readonly SpendLimit[], since = 0): Promise<void> => {
    // Later requests name the budget, so what is read again does not grow.
    const before = firstIdAt(clock.now() + namedAfterMs)
    const again = () => {
      if (fromLog === undefined) return raise(owner, window)
      const asked = { word: window, from: since, before, limits: fromLog }
      return isRolling(window) ? raiseMinutes(owner, asked) : raiseFromLog(owner, window, asked)
    }
    await again()
    const name = budgetName(fromLog ? `${owner}/` : owner, window)
    recent.set(name, { owner, again, seededMs: clock.monotonicMs(), passes: 0 })
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
      const isCounted = startsAt <= now
      for (const [word, all] of isCounted ? Map.groupBy(limits, (limit) => limit.window) : []) {
        const window = windowAt(word, now, startsAt)
        const fromLog = all.filter((limit) => isRolling(word) || !isPlainLimit(limit))
        if (fromLog.length < all.length) await seed(owner, window)
        if (fromLog.length > 0) await seed(owner, window, fromLog, startsAt)
      }
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
      await recount(owner, limits, startsAt)
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

/** By scope. A row never changes, so each sum is exact however long the reading takes, and never falls. */
async function sumUncounted(
  { sql }: Pick<Database, 'sql'>,
  owner: string,
  window: string,
  asked: Pick<Uncountable, 'limits' | 'before'>,
): Promise<ReadonlyMap<string, bigint>> {
  const [from, until] = [windowStart(window) ?? 0, windowEnd(window) ?? 0]
  const sums = new Map<string, bigint>()
  for await (const { row, scope, charge } of logUncounted(sql, owner, { ...asked, word: window, from })) {
    if (row.started_at < until) sums.set(scope, (sums.get(scope) ?? 0n) + charge)
  }
  return sums
}

interface Uncountable {
  /** The window, or the word of a rolling one. */
  readonly word: string
  readonly from: number
  /** The id of a request: only earlier ones. */
  readonly before: string
  readonly limits: readonly SpendLimit[]
}

/** By scope and minute. */
async function sumUncountedMinutes(
  { sql }: Pick<Database, 'sql'>,
  owner: string,
  asked: Uncountable,
): Promise<ReadonlyMap<string, ReadonlyMap<number, bigint>>> {
  const sums = new Map<string, Map<number, bigint>>()
  for await (const { row, scope, charge } of logUncounted(sql, owner, asked)) {
    const minutes = sums.get(scope) ?? new Map<number, bigint>()
    const minute = minuteAt(Number(row.started_at + row.total_ms))
    sums.set(scope, minutes.set(minute, (minutes.get(minute) ?? 0n) + charge))
  }
  return sums
}

/** Charges of the scopes of these limits, as far as they do not name them in the window. */
async function* logUncounted(sql: Sql, owner: string, { word, from, before, limits }: Uncountable) {
  const factsOf = await readMembers(sql, owner)
  for await (const row of readLog(sql, owner, { from, before })) {
    const { charge, model } = row
    if (charge === null) continue
    const named = parseBudgetNames(row.budgets).map((name) => budgetOfCharge(name).budget)
    const facts = factsOf(row)
    for (const limit of limits) {
      if (limit.models !== undefined && !(model && matchesModel(limit.models, model))) continue
      for (const scope of scopesOf(owner, limit, facts)) {
        if (!named.includes(budgetName(scope, word))) yield { row, scope, charge }
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
  { from, before: first }: Pick<Uncountable, 'from' | 'before'>,
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
