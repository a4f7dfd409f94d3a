// Alerts for people: a low balance, a spend limit, a provider that is down or back, changed prices. Every replica reads the
// facts from the database every few seconds. An alert is one row with a unique `crossing`, so only the first replica raises
// it. Its deliveries are created in the same commit, so a crash loses none.

import type { AlertKind } from '../kernel/alert.ts'
import { isoTime } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import { createId, isId, type PersonId, type WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import { periodOf, windowAt, windowEnd } from '../ledger/budget.ts'
import { type ItemIn, json, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { limitsFromSql, spendLimits } from '../tenancy/limits.ts'
import { mailedPeople } from './readers.ts'

export const alertRow = rowFormat({
  id: text(),
  kind: text<AlertKind>(),
  /** undefined = the whole installation. */
  workspaceId: optional(text<WorkspaceId>()),
  message: text(),
  data: json<Readonly<Record<string, unknown>>>(),
  createdAt: time,
})

export type Alert = ItemIn<typeof alertRow>

/** `crossing` identifies what happened, so that it is raised once. */
export interface NewAlert extends Omit<Alert, 'id' | 'createdAt'> {
  readonly crossing: string
}

export interface Raising {
  readonly now: number
  /** Whether a mail server is configured; otherwise no e-mails are created. */
  readonly hasMail: boolean
}

/** Does nothing if it was raised before. */
export async function raiseAlert(sql: Sql, alert: NewAlert, { now, hasMail }: Raising): Promise<void> {
  const id = await insertAlert(sql, alert, now)
  if (id === undefined) return
  const hooks = await sql<{ id: string; kinds: string | null }>`SELECT id, kinds FROM webhooks
    WHERE workspace_id IS NULL OR workspace_id = ${alert.workspaceId ?? ''}`
  for (const hook of hooks) {
    if (hook.kinds !== null && !(JSON.parse(hook.kinds) as string[]).includes(alert.kind)) continue
    await createDelivery(sql, { alertId: id, webhookId: hook.id, now })
  }
  if (!hasMail) return
  for (const personId of await mailedPeople(sql, alert)) await createDelivery(sql, { alertId: id, personId, now })
}

/** undefined = it was raised before. */
async function insertAlert(sql: Sql, alert: NewAlert, now: number): Promise<string | undefined> {
  const id = createId('alr')
  const row = { ...alertRow.write({ ...alert, id, createdAt: now }), crossing: alert.crossing }
  const added = await sql`INSERT INTO alerts ${sql([row])} ON CONFLICT DO NOTHING RETURNING id`
  return added.length === 0 ? undefined : id
}

/** Raises an alert for one webhook only, and returns its delivery. */
export async function raiseTest(
  sql: Sql,
  { id: webhookId, workspaceId }: { readonly id: string; readonly workspaceId: WorkspaceId | undefined },
  now: number,
): Promise<string> {
  const crossing = `test:${createId('alr')}`
  const message = 'This is a test of the webhook.'
  const alertId = await insertAlert(sql, { crossing, kind: 'test', workspaceId, message, data: {} }, now)
  assert(alertId, 'a new id is unique')
  return await createDelivery(sql, { alertId, webhookId, now })
}

export interface NewDelivery {
  readonly alertId: string
  /** Either this or `personId`. */
  readonly webhookId?: string | null
  readonly personId?: PersonId | null
  readonly now: number
}

export async function createDelivery(sql: Sql, { alertId, now, ...to }: NewDelivery): Promise<string> {
  const at = timeToSql(now)
  const receiver = { webhook_id: to.webhookId ?? null, person_id: to.personId ?? null }
  const row = { id: createId('dlv'), alert_id: alertId, ...receiver, created_at: at, next_at: at }
  await sql`INSERT INTO deliveries ${sql([row])}`
  return row.id
}

/** Newest first, starting after `cursor`. */
export async function listAlerts(
  sql: Sql,
  { workspaceId, cursor, limit }: { workspaceId?: string | undefined; cursor?: string | undefined; limit: number },
): Promise<{ readonly items: readonly Alert[]; readonly nextCursor: string | undefined }> {
  const before = cursor !== undefined && isId('alr', cursor) ? cursor : 'alr_z'
  const count = BigInt(limit + 1)
  const rows = await (workspaceId === undefined
    ? sql`SELECT * FROM alerts WHERE id < ${before} ORDER BY id DESC LIMIT ${count}`
    : sql`SELECT * FROM alerts WHERE workspace_id = ${workspaceId} AND id < ${before}
        ORDER BY id DESC LIMIT ${count}`)
  const items = alertRow.all(rows.slice(0, limit))
  return { items, nextCursor: rows.length > limit ? items.at(-1)?.id : undefined }
}

// ── Detecting ──

/** Rows read at a time: on the embedded engine, reads hold up running requests. */
const portionMax = 500
/** Percent of a spend limit, highest first: only the highest one that is reached is raised. */
const limitSteps = [100, 90, 75] as const

/** How many crossings a process remembers as raised: a few megabytes. */
const knownMax = 20_000

/** Raises an alert for everything that the database shows now, except the crossings in `known`. */
export async function detectAlerts(database: Database, raising: Raising, known = new Set<string>()): Promise<void> {
  const { sql } = database
  const { now } = raising
  const found = [...(await lowBalances(sql)), ...(await reachedLimits(sql, now)), ...(await changedPrices(sql, now))]
  if (known.size > knownMax) known.clear()
  for (const alert of found) {
    if (known.has(alert.crossing)) continue
    await database.transaction((write) => raiseAlert(write, alert, raising))
    known.add(alert.crossing)
  }
}

interface LowBalance {
  readonly id: WorkspaceId
  readonly name: string
  readonly low_balance: bigint
  readonly posted: bigint
  readonly funding: string | null
}

/** Wallets below their threshold. The crossing names the last top-up, so there is one alert per top-up. */
async function lowBalances(sql: Sql): Promise<NewAlert[]> {
  const found: NewAlert[] = []
  for (let after = ''; ; ) {
    const rows = await sql<LowBalance>`SELECT w.id, w.name, w.low_balance, b.posted,
        (SELECT MAX(f.id) FROM fundings f WHERE f.workspace_id = w.id) AS funding FROM workspaces w
        JOIN accounts a ON a.workspace_id = w.id JOIN balances b ON b.account_id = a.id
      WHERE w.id > ${after} AND a.kind = 'wallet' AND b.posted < w.low_balance
      ORDER BY w.id LIMIT ${BigInt(portionMax)}`
    for (const { id, name, low_balance: threshold, posted, funding } of rows) {
      // A wallet that was never funded cannot run low.
      if (funding === null) continue
      const [balance, below] = [formatUsd(posted as Nano), formatUsd(threshold as Nano)]
      found.push({
        crossing: `balance:${id}:${funding}`,
        kind: 'balance.low',
        workspaceId: id,
        message: `The balance of workspace "${name}" is $${balance}, below $${below}. Calls are refused with 402 once it is used up.`,
        data: { workspace_name: name, balance, threshold: below },
      })
    }
    const last = rows.at(-1)
    if (!last || rows.length < portionMax) return found
    after = last.id
    await yieldToEventLoop()
  }
}

interface Spent {
  readonly scope_id: string
  readonly time_window: string
  readonly spent: bigint
  /** null for end users and tags, whose limits raise no alerts. */
  readonly name: string | null
  readonly limits: string | null
  readonly workspace_id: WorkspaceId | null
}

/** Spend limits of keys, projects and workspaces that are used to 75, 90 or 100 % in the current day, week or month. */
async function reachedLimits(sql: Sql, now: number): Promise<NewAlert[]> {
  const found: NewAlert[] = []
  const today = windowAt('day', now)
  // Weeks and months are selected by prefix, because those that begin with their limit have many names. Past ones, which
  // are deleted some time later, are skipped below.
  for (let [after, afterWindow] = ['', '']; ; ) {
    const rows = await sql<Spent>`SELECT b.scope_id, b.time_window, b.spent, COALESCE(k.name, p.name, w.name) AS name,
        COALESCE(k.limits, p.limits, w.limits) AS limits,
        COALESCE(k.workspace_id, p.workspace_id, w.id) AS workspace_id FROM budgets b
        LEFT JOIN api_keys k ON k.id = b.scope_id LEFT JOIN projects p ON p.id = b.scope_id
        LEFT JOIN workspaces w ON w.id = b.scope_id
      WHERE (b.time_window = ${today} OR b.time_window LIKE 'week:%' OR b.time_window LIKE 'month:%') AND b.spent > 0
        AND (b.scope_id, b.time_window) > (${after}, ${afterWindow})
      ORDER BY b.scope_id, b.time_window LIMIT ${BigInt(portionMax)}`
    for (const row of rows) found.push(...reachedLimit(row, now))
    const last = rows.at(-1)
    if (!last || rows.length < portionMax) return found
    ;[after, afterWindow] = [last.scope_id, last.time_window]
    await yieldToEventLoop()
  }
}

const scopeKinds = { key_: 'key', prj_: 'project', ws_: 'workspace' } as const

function reachedLimit(
  { scope_id: id, time_window: window, spent, name, workspace_id, ...row }: Spent,
  now: number,
): NewAlert[] {
  const period = periodOf(window)
  const limits = limitsFromSql(row.limits)
  const cap = spendLimits(limits).find((each) => each.period === period)?.cap
  // A past window, or one that began with an earlier limit.
  if (windowAt(period, now, limits.startsAt) !== window || (limits.startsAt ?? 0) > now) return []
  const [, kind] = Object.entries(scopeKinds).find(([prefix]) => id.startsWith(prefix)) ?? []
  if (name === null || workspace_id === null || cap === undefined || kind === undefined) return []
  const step = limitSteps.find((percent) => spent * 100n >= cap * BigInt(percent))
  if (step === undefined) return []
  const resets = isoTime(windowEnd(window) ?? 0)
  const [used, limit] = [formatUsd(spent as Nano), formatUsd(cap)]
  return [
    {
      // With the amount, because a limit that was raised can be reached again.
      crossing: `limit:${id}:${window}:${cap}:${step}`,
      kind: 'limit.reached',
      workspaceId: workspace_id,
      message: `The ${kind} "${name}" has spent $${used} of its limit of $${limit} a ${period} (${step} %). It resets at ${resets}.`,
      data: { scope: kind, scope_id: id, name, period, percent: step, spent: used, limit, resets_at: resets },
    },
  ]
}

/** How far back changes are searched, so that changes during an outage still raise an alert. */
const priceSpanMs = 86_400_000
const modelsMax = 20

/** Prices that replaced others; those that took effect together are one alert. */
async function changedPrices(sql: Sql, now: number): Promise<NewAlert[]> {
  const rows = await sql<{ model_id: string; effective_from: bigint }>`SELECT model_id, effective_from FROM prices
    WHERE effective_from > ${timeToSql(now - priceSpanMs)} AND version NOT LIKE '%#1' ORDER BY effective_from`
  return [...Map.groupBy(rows, ({ effective_from }) => effective_from)].map(([at, changed]): NewAlert => {
    const models = changed.map(({ model_id }) => model_id.replace(/#.*/, '')).sort()
    const shown = [...new Set(models)]
    const named = shown.slice(0, 3).join(', ') + (shown.length > 3 ? ` and ${shown.length - 3} more` : '')
    return {
      crossing: `price:${at}`,
      kind: 'price.changed',
      workspaceId: undefined,
      message: `The price of ${named} changed.`,
      data: { models: shown.slice(0, modelsMax), count: shown.length, effective_from: isoTime(timeFromSql(at)) },
    }
  })
}

/** Raises an alert if the state differs from the last alert, so that an outage that several replicas see is raised once. */
export async function raiseProviderState(
  database: Database,
  { provider, isDown, why }: { provider: string; isDown: boolean; why: string | undefined },
  raising: Raising,
): Promise<void> {
  await database.transaction(async (sql) => {
    const earlier = await sql<{ kind: AlertKind }>`SELECT kind FROM alerts
      WHERE crossing LIKE ${`provider:${provider}:%`} ORDER BY id DESC`
    const kind = isDown ? 'provider.down' : 'provider.up'
    if ((earlier[0]?.kind ?? 'provider.up') === kind) return
    const cause = why === undefined ? '' : ` (${why})`
    const message = isDown
      ? `Provider ${provider} is failing${cause}. Its routes are avoided until they work again.`
      : `Provider ${provider} works again.`
    const data = { provider, ...(why !== undefined && { why }) }
    const crossing = `provider:${provider}:${earlier.length + 1}`
    await raiseAlert(sql, { crossing, kind, workspaceId: undefined, message, data }, raising)
  })
}

/** Raised once an hour for each host, which is how long its connections are not used again. */
export async function raiseStrayResponse(database: Database, host: string, raising: Raising): Promise<void> {
  const hour = Math.floor(raising.now / 3_600_000)
  const message = `${host} sent a response that no request asked for. For an hour each of its connections carries one request, so that nobody gets the answer to another request. Tell the provider, or look for a proxy in between.`
  const alert = { crossing: `stray:${host}:${hour}`, workspaceId: undefined, message, data: { provider: host } }
  await database.transaction((sql) => raiseAlert(sql, { ...alert, kind: 'provider.stray' }, raising))
}

/** Alerts and finished deliveries are deleted after this long. */
const keptMs = 90 * 86_400_000

export async function cleanAlerts(database: Database, { now, hasMail }: Raising): Promise<void> {
  const before = timeToSql(now - keptMs)
  await database.transaction(async (sql) => {
    if (!hasMail) await sql`DELETE FROM deliveries WHERE person_id IS NOT NULL AND next_at IS NOT NULL`
    await sql`DELETE FROM deliveries WHERE created_at < ${before}`
    await sql`DELETE FROM alerts WHERE created_at < ${before}`
  })
}
