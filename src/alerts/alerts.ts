// Alerts for people: a low balance, a spend limit, credit that expires, a provider that is down or back, changed prices.
// Every replica reads the facts from the database every few seconds and compares them with the rules. An alert is one row
// with a unique `crossing`, so only the first replica raises it. Its deliveries are created in the same commit, so a crash
// loses none.

import { type ShownPrice, showPrice } from '../catalog/price.ts'
import { overrideSource, parseStoredPrice } from '../catalog/price-versions.ts'
import type { AlertKind } from '../kernel/alert.ts'
import { isoTime } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import { createId, isId, type PersonId, type WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano, zeroNano } from '../kernel/money.ts'
import {
  isById,
  minuteAt,
  parseScope,
  rollingMinutes,
  type SpendScope,
  scopeText,
  scopeTitle,
  subjectText,
  type WindowWord,
} from '../kernel/spend-limit.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import { periodOf, windowAt, windowEnd } from '../ledger/budget.ts'
import { periodShown } from '../ledger/credit.ts'
import { type ItemIn, json, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { portionsOf, templateOf } from '../store/insert-rows.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { readLabels } from '../tenancy/limit-subjects.ts'
import { labelled, limitsFromSql } from '../tenancy/limits.ts'
import {
  type AlertRule,
  limitRulesOf,
  type MailPolicy,
  reachedPercent,
  recipientsOf,
  ruleRow,
  rulesFor,
} from './rules.ts'

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
  /** Those whose threshold was crossed; absent = every rule for the kind. */
  readonly rules?: readonly AlertRule[]
}

export interface Raising {
  readonly now: number
  /** undefined = no mail server is configured, so no e-mails are created. */
  readonly mail: MailPolicy | undefined
}

/** Does nothing if it was raised before. */
export async function raiseAlert(sql: Sql, alert: NewAlert, { now, mail }: Raising): Promise<void> {
  const alertId = await insertAlert(sql, alert, now)
  if (alertId === undefined) return
  const rules = alert.rules ?? (await rulesFor(sql, alert.kind, alert.workspaceId))
  const named = new Set(rules.flatMap(({ webhooks }) => webhooks))
  const hooks = await sql<{ id: string; kinds: string | null }>`SELECT id, kinds FROM webhooks
    WHERE workspace_id IS NULL OR workspace_id = ${alert.workspaceId ?? ''}`
  for (const { id: webhookId, kinds } of hooks) {
    const isWanted = kinds === null || (JSON.parse(kinds) as string[]).includes(alert.kind)
    if (isWanted || named.has(webhookId)) await createDelivery(sql, { alertId, webhookId, now })
  }
  if (mail === undefined) return
  const { people, addresses } = await recipientsOf(sql, alert, { rules, policy: mail })
  for (const personId of people) await createDelivery(sql, { alertId, personId, now })
  for (const to of addresses) await createDelivery(sql, { alertId, ...to, now })
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
  /** One of these: */
  readonly webhookId?: string | null
  readonly personId?: PersonId | null
  readonly email?: string | null
  /** With an address: the rule that names it. */
  readonly ruleId?: string | null
  readonly now: number
}

export async function createDelivery(sql: Sql, { alertId, now, ...to }: NewDelivery): Promise<string> {
  const at = timeToSql(now)
  const mailed = { person_id: to.personId ?? null, email: to.email ?? null, rule_id: to.ruleId ?? null }
  const receiver = { webhook_id: to.webhookId ?? null, ...mailed }
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

/** How many crossings a process remembers as raised: a few megabytes. */
const knownMax = 20_000

/** Raises an alert for everything that the database shows now, except the crossings in `known`. */
export async function detectAlerts(database: Database, raising: Raising, known = new Set<string>()): Promise<void> {
  const { sql } = database
  const { now } = raising
  if (known.size > knownMax) known.clear()
  const found = [
    ...(await lowBalances(sql)),
    ...(await reachedLimits(sql, now)),
    ...(await expiringCredits(sql, now)),
    ...(await changedPrices(sql, now, known)),
    ...(await differingBills(sql, now)),
  ]
  for (const [crossing, [first, ...others]] of Map.groupBy(found, (alert) => alert.crossing)) {
    if (first === undefined || known.has(crossing)) continue
    // Rules with the same threshold raise one alert.
    const rules = first.rules && [first, ...others].flatMap((alert) => alert.rules ?? [])
    await database.transaction((write) => raiseAlert(write, { ...first, ...(rules && { rules }) }, raising))
    known.add(crossing)
  }
}

interface LowBalance {
  /** The id by which the rows are ordered. */
  readonly position: string
  readonly wallet_of: WorkspaceId
  readonly workspace_name: string
  readonly posted: bigint
  readonly funding: string | null
}

/** Wallets below the balance that a rule names: of the installation's rules, then of each workspace's own. */
async function lowBalances(sql: Sql): Promise<NewAlert[]> {
  const found: NewAlert[] = []
  for (const rule of await rulesFor(sql, 'balance.low')) {
    const below = (after: string) => sql<LowBalance>`SELECT w.id AS position, w.id AS wallet_of,
        w.name AS workspace_name, b.posted, (SELECT MAX(f.id) FROM fundings f WHERE f.workspace_id = w.id) AS funding
      FROM workspaces w JOIN accounts a ON a.workspace_id = w.id JOIN balances b ON b.account_id = a.id
      WHERE w.id > ${after} AND a.kind = 'wallet' AND b.posted < ${rule.below ?? null}
      ORDER BY w.id LIMIT ${BigInt(portionMax)}`
    for await (const row of inPortions(below)) found.push(...lowBalance(row, rule))
  }
  const belowOwn = (after: string) => sql<LowBalance>`SELECT r.*, r.id AS position, w.id AS wallet_of,
      w.name AS workspace_name, b.posted, (SELECT MAX(f.id) FROM fundings f WHERE f.workspace_id = w.id) AS funding
    FROM alert_rules r JOIN workspaces w ON w.id = r.workspace_id
      JOIN accounts a ON a.workspace_id = w.id JOIN balances b ON b.account_id = a.id
    WHERE r.id > ${after} AND r.kind = 'balance.low' AND a.kind = 'wallet' AND b.posted < r.below
    ORDER BY r.id LIMIT ${BigInt(portionMax)}`
  for await (const row of inPortions(belowOwn)) found.push(...lowBalance(row, ruleRow.read(row)))
  return found
}

async function* inPortions<Row extends { readonly position: string }>(
  read: (after: string) => Promise<readonly Row[]>,
): AsyncGenerator<Row> {
  for (let after = ''; ; ) {
    const rows = await read(after)
    yield* rows
    const last = rows.at(-1)
    if (!last || rows.length < portionMax) return
    after = last.position
    await yieldToEventLoop()
  }
}

/** The crossing names the last top-up, so there is one alert per top-up and threshold. */
function lowBalance({ wallet_of: id, workspace_name, posted, funding }: LowBalance, rule: AlertRule): NewAlert[] {
  // A wallet that was never funded cannot run low.
  if (funding === null) return []
  const [balance, below] = [formatUsd(posted as Nano), formatUsd(rule.below ?? zeroNano)]
  return [
    {
      ...ofRule(rule, `balance:${id}:${funding}:${rule.below}`),
      kind: 'balance.low',
      message: `The balance of workspace "${workspace_name}" is $${balance}, below $${below}. Calls are refused with 402 once it is used up.`,
      data: { workspace_id: id, workspace_name, balance, threshold: below },
    },
  ]
}

/** What a rule of the installation watches is of no concern to the people of the workspace. */
function ofRule(rule: AlertRule, crossing: string): Pick<NewAlert, 'crossing' | 'workspaceId' | 'rules'> {
  const { workspaceId } = rule
  return { crossing: workspaceId === undefined ? `all:${crossing}` : crossing, workspaceId, rules: [rule] }
}

const dayMs = 86_400_000

interface ExpiringCredit {
  readonly position: string
  readonly credit_id: string
  readonly credit_of: WorkspaceId
  readonly workspace_name: string
  readonly plan_id: string
  readonly time_window: string
  readonly remaining: bigint
  readonly expires_at: bigint
}

/** Credit of plans that is not used up. One that lives no longer than a rule looks ahead would be raised at its grant. */
async function expiringCredits(sql: Sql, now: number): Promise<NewAlert[]> {
  const at = timeToSql(now)
  const expiring = (after: string) => sql<ExpiringCredit>`SELECT r.*, r.id || c.id AS position, c.id AS credit_id,
      c.workspace_id AS credit_of, w.name AS workspace_name, c.plan_id, c.time_window, c.remaining, c.expires_at
    FROM alert_rules r JOIN credits c ON r.workspace_id IS NULL OR r.workspace_id = c.workspace_id
      JOIN fundings f ON f.id = c.id JOIN workspaces w ON w.id = c.workspace_id
    WHERE r.kind = 'credit.expiring' AND c.remaining > 0 AND c.expires_at > ${at}
      AND c.expires_at <= ${at} + r.days * ${BigInt(dayMs)} AND c.expires_at - f.created_at > r.days * ${BigInt(dayMs)}
      AND r.id || c.id > ${after} ORDER BY r.id || c.id LIMIT ${BigInt(portionMax)}`
  const found: NewAlert[] = []
  for await (const row of inPortions(expiring)) found.push(expiringCredit(row, ruleRow.read(row)))
  return found
}

function expiringCredit(row: ExpiringCredit, rule: AlertRule): NewAlert {
  const { credit_id: id, credit_of: workspaceId, workspace_name, plan_id: plan } = row
  const [remaining, period] = [formatUsd(row.remaining as Nano), periodShown(row.time_window)]
  const expires = isoTime(timeFromSql(row.expires_at))
  return {
    ...ofRule(rule, `credit:${id}:${rule.days}`),
    kind: 'credit.expiring',
    message: `$${remaining} of the credit of the plan "${plan}" (${period}) in workspace "${workspace_name}" expires on ${expires.slice(0, 10)}, ${expires.slice(11, 16)} UTC, unless it is spent before.`,
    data: { workspace_id: workspaceId, workspace_name, plan, period, remaining, expires_at: expires },
  }
}

interface Spent {
  readonly scope_id: string
  readonly time_window: string
  readonly spent: bigint
}

/**
 * Spend limits that reached a percentage of a rule in their current window. Those of end users raise no alerts: there may be
 * as many as a service has customers.
 */
async function reachedLimits(sql: Sql, now: number): Promise<NewAlert[]> {
  const found: NewAlert[] = await limitAlerts(sql, await recentRolling(sql, now), now)
  const today = windowAt('day', now)
  // Weeks and months are selected by prefix, because those that begin with their limit have many names. Past ones, which
  // are deleted some time later, are skipped below.
  for (let [after, afterWindow] = ['', '']; ; ) {
    const rows = await sql<Spent>`SELECT scope_id, time_window, spent FROM budgets
      WHERE (time_window = ${today} OR time_window LIKE 'week:%' OR time_window LIKE 'month:%') AND spent > 0
        AND scope_id NOT LIKE '%/user:%' AND (scope_id, time_window) > (${after}, ${afterWindow})
      ORDER BY scope_id, time_window LIMIT ${BigInt(portionMax)}`
    found.push(...(await limitAlerts(sql, rows, now)))
    const last = rows.at(-1)
    if (!last || rows.length < portionMax) return found
    ;[after, afterWindow] = [last.scope_id, last.time_window]
    await yieldToEventLoop()
  }
}

/** A rolling window can only reach a percentage with a charge, so those without a recent one need not be added up. */
const recentMinutes = 15

async function recentRolling(sql: Sql, now: number): Promise<readonly Spent[]> {
  const minute = minuteAt(now)
  const active = await sql<{ scope_id: string; time_window: string }>`SELECT DISTINCT scope_id, time_window
    FROM budget_minutes WHERE minute >= ${BigInt(minute - recentMinutes)} AND scope_id NOT LIKE '%/user:%'`
  const found: Spent[] = []
  for (const [word, all] of Map.groupBy(active, ({ time_window }) => time_window)) {
    const from = BigInt(minute - (rollingMinutes(word) ?? 0))
    for (const portion of portionsOf(all.map(({ scope_id }) => scope_id))) {
      const text = ['SELECT scope_id, CAST(SUM(spent) AS BIGINT) AS spent FROM budget_minutes WHERE time_window = ']
      text.push(' AND minute >= ', ' AND scope_id IN (', ...portion.slice(1).fill(', '), ') GROUP BY scope_id')
      const rows = await sql<Omit<Spent, 'time_window'>>(templateOf(text), word, from, ...portion)
      found.push(...rows.map((row) => ({ ...row, time_window: word })))
    }
  }
  return found
}

interface Owner {
  readonly id: string
  readonly kind: 'key' | 'project' | 'workspace'
  readonly name: string
  readonly limits: string | null
  readonly workspace_id: WorkspaceId
}

async function readOwners(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, Owner>> {
  const owners = new Map<string, Owner>()
  for (const portion of portionsOf(ids)) {
    const marks = portion.slice(1).fill(', ')
    const text = [
      "SELECT id, 'key' AS kind, name, limits, workspace_id FROM api_keys WHERE id IN (",
      ...[...marks, ") UNION ALL SELECT id, 'project', name, limits, workspace_id FROM projects WHERE id IN ("],
      ...[
        ...marks,
        ") UNION ALL SELECT id, 'workspace', name, limits, id FROM workspaces WHERE id IN (",
        ...marks,
        ')',
      ],
    ]
    const rows = await sql<Owner>(templateOf(text), ...portion, ...portion, ...portion)
    for (const row of rows) owners.set(row.id, row)
  }
  return owners
}

/** How much of a limit has been spent in its current window. */
interface LimitSpend extends Spent {
  readonly owner: Owner
  readonly scope: SpendScope
  readonly cap: Nano
}

async function limitAlerts(sql: Sql, rows: readonly Spent[], now: number): Promise<NewAlert[]> {
  const scopes = rows.map((row) => ({ ...row, scope: parseScope(row.scope_id) }))
  const owners = await readOwners(sql, [...new Set(scopes.map(({ scope }) => scope.owner))])
  const spends = scopes.flatMap((row): LimitSpend[] => {
    const owner = owners.get(row.scope.owner)
    const cap = owner && capOf(owner, row, now)
    return owner && cap !== undefined ? [{ ...row, owner, cap }] : []
  })
  const workspaceIds = [...new Set(spends.map(({ owner }) => owner.workspace_id))]
  const rules = await limitRulesOf(sql, workspaceIds)
  const reached = spends.flatMap((spend) => {
    const all = [...(rules.get(undefined) ?? []), ...(rules.get(spend.owner.workspace_id) ?? [])]
    return all.flatMap((rule) => {
      const percent = watches(rule, spend.scope) ? reachedPercent(rule, spend.spent, spend.cap) : undefined
      // Only the highest percentage that is reached raises an alert.
      return percent === undefined ? [] : [{ spend, rule, percent }]
    })
  })
  const named = reached.map(({ spend }) => spend.scope).filter(({ kind }) => isById(kind))
  const labels = await readLabels(sql, [...new Set(named.map(({ name }) => name))])
  return reached.map(({ spend, rule, percent }) => limitAlert(spend, rule, { percent, labels, now }))
}

function watches({ scopeId }: AlertRule, { owner, name }: SpendScope): boolean {
  return scopeId === undefined || scopeId === owner || scopeId === name
}

/** The lowest amount of the limits that this counter counts for; undefined = there is none in this window any more. */
function capOf(
  { limits: stored }: Owner,
  { scope, time_window: window }: Spent & { readonly scope: SpendScope },
  now: number,
): Nano | undefined {
  const { spend = [], startsAt = 0 } = limitsFromSql(stored)
  // A past window, or one that began with an earlier limit.
  const isCurrent = (word: WindowWord) => startsAt <= now && windowAt(word, now, startsAt) === window
  const amounts = spend.flatMap(({ subject: { kind, name }, models, window: word, amount }) => {
    const counts = kind === scope.kind && models === scope.models && (name === undefined || name === scope.name)
    return counts && isCurrent(word) ? [amount] : []
  })
  return amounts.length === 0 ? undefined : amounts.reduce((min, each) => (each < min ? each : min))
}

interface Reached {
  readonly percent: number
  readonly labels: ReadonlyMap<string, string>
  readonly now: number
}

function limitAlert(
  { owner, scope, time_window: window, spent, cap }: LimitSpend,
  rule: AlertRule,
  { percent, labels, now }: Reached,
): NewAlert {
  const { id, kind, name } = owner
  const rolling = rollingMinutes(window)
  const period = rolling === undefined ? periodOf(window) : window
  const resets = isoTime(windowEnd(window, now) ?? 0)
  const [used, limit] = [formatUsd(spent as Nano), formatUsd(cap)]
  const subject = labelled({ kind: scope.kind, ...(scope.name !== '' && { name: scope.name }) }, labels)
  const whole = scope.kind === 'all' && scope.models === undefined
  const title = scopeTitle(scope, subject.name) || `The ${kind} "${name}"${scope.models ? ` with ${scope.models}` : ''}`
  const of = whole || scope.kind === 'all' ? 'its limit' : `its limit in the ${kind} "${name}"`
  const per = rolling === undefined ? `a ${period}` : `in any ${window}`
  const ending = rolling === undefined ? ` It resets on ${resets.slice(0, 10)}, ${resets.slice(11, 16)} UTC.` : ''
  const which = whole
    ? {}
    : { subject: subjectText(subject), ...(scope.models !== undefined && { models: scope.models }) }
  // A rolling window has no end: its alert is raised at most once in the length of the window.
  const slot = rolling === undefined ? window : `${window}#${Math.floor(minuteAt(now) / rolling)}`
  return {
    // With the amount, because a limit that was raised can be reached again.
    ...ofRule(rule, `limit:${scopeText(scope)}:${slot}:${cap}:${percent}`),
    kind: 'limit.reached',
    message: `${title} has spent $${used} of ${of} of $${limit} ${per} (${percent} %).${ending}`,
    data: {
      workspace_id: owner.workspace_id,
      ...{ scope: kind, scope_id: id, name, period, percent, spent: used, limit, resets_at: resets, ...which },
    },
  }
}

/** How far back changes are searched, so that changes during an outage still raise an alert. */
const priceSpanMs = 86_400_000
const modelsMax = 20

interface PriceRow {
  /** `acme/large`, or `acme/large#list-retail` and `acme/large#own` for what follows from it. */
  readonly model_id: string
  readonly price: string
  readonly source: string
  readonly effective_from: bigint
  readonly before: string
  readonly before_at: bigint
}

/** Prices that replaced others; those that took effect together are one alert. */
async function changedPrices(sql: Sql, now: number, known: Set<string>): Promise<NewAlert[]> {
  const times = await sql<{ at: bigint }>`SELECT DISTINCT effective_from AS at FROM prices
    WHERE effective_from > ${timeToSql(now - priceSpanMs)} AND version NOT LIKE '%#1' ORDER BY effective_from`
  const found: NewAlert[] = []
  for (const { at } of times) {
    const crossing = `price:${at}`
    if (known.has(crossing)) continue
    const rows = await sql<PriceRow>`SELECT p.model_id, p.price, p.source, p.effective_from, b.price AS before,
        b.effective_from AS before_at FROM prices p JOIN prices b ON b.model_id = p.model_id
        AND b.effective_from = (SELECT MAX(e.effective_from) FROM prices e
          WHERE e.model_id = p.model_id AND e.effective_from < p.effective_from)
      WHERE p.effective_from = ${at} ORDER BY p.model_id`
    const changes: PriceChange[] = []
    for (const row of rows) if (!(await followsCatalog(sql, row))) changes.push(priceChange(row))
    if (changes.length > 0) found.push(priceAlert(crossing, at, changes))
    else known.add(crossing)
  }
  return found
}

/**
 * A price list's markup and the fee for own keys follow the catalog's price, a moment later. Such a change is part of that
 * one, unless its price is set by hand.
 */
async function followsCatalog(
  sql: Sql,
  { model_id: id, source, effective_from, before_at }: PriceRow,
): Promise<boolean> {
  const model = id.replace(/#.*/, '')
  if (model === id || source === overrideSource) return false
  const [cause] = await sql`SELECT 1 AS found FROM prices WHERE model_id = ${model}
    AND effective_from > ${before_at} AND effective_from <= ${effective_from} LIMIT 1`
  return cause !== undefined
}

interface PriceChange {
  readonly model: string
  /** The price list, if it is not the catalog's price. */
  readonly list?: string
  readonly old: ShownPrice
  readonly new: ShownPrice
}

function priceChange({ model_id: id, price, before }: PriceRow): PriceChange {
  const [model = id, place] = id.split('#')
  const list = place?.startsWith('list-') ? { list: place.slice('list-'.length) } : {}
  return { model, ...list, old: showPrice(parseStoredPrice(before)), new: showPrice(parseStoredPrice(price)) }
}

const namedMax = 3

function priceAlert(crossing: string, at: bigint, changes: readonly PriceChange[]): NewAlert {
  const named = changes.slice(0, namedMax).map((each) => `${each.model}${placeText(each)}: ${changeText(each)}`)
  const more = changes.length > namedMax ? `; and ${changes.length - namedMax} more` : ''
  const models = [...new Set(changes.map(({ model }) => model))]
  const facts = { models: models.slice(0, modelsMax), count: models.length, changes: changes.slice(0, modelsMax) }
  return {
    ...{ crossing, kind: 'price.changed', workspaceId: undefined },
    message: `${changes.length === 1 ? 'A price' : 'Prices'} changed. ${named.join('; ')}${more}.`,
    data: { ...facts, effective_from: isoTime(timeFromSql(at)) },
  }
}

function placeText({ list }: PriceChange): string {
  return list === undefined ? '' : ` in the price list ${list}`
}

/** `input $2.50 → $2.75, output $10.00 → $11.00 per million tokens`; of other prices, only that they changed. */
function changeText({ old: before, new: after }: PriceChange): string {
  if (before === 'free')
    return after === 'free' ? 'free' : `free → input $${after.input}, output $${after.output} per million tokens`
  if (after === 'free') return `input $${before.input}, output $${before.output} per million tokens → free`
  const named = (['input', 'output'] as const).filter((bucket) => before[bucket] !== after[bucket])
  if (named.length === 0) return 'other prices than input and output'
  return `${named.map((bucket) => `${bucket} $${before[bucket]} → $${after[bucket]}`).join(', ')} per million tokens`
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

/** How far back bills are watched: a day is compared again for some days, and then stays. */
const billDays = 40

interface Differing {
  readonly provider: string
  readonly day: bigint
  readonly billed: bigint
  readonly recorded: bigint
  readonly differences: bigint
  readonly unexplained: bigint
}

/** Days on which a provider billed another amount than was recorded, by a percentage of a rule. */
async function differingBills(sql: Sql, now: number): Promise<NewAlert[]> {
  const rules = await rulesFor(sql, 'bill.differs')
  if (rules.length === 0) return []
  const rows =
    await sql<Differing>`SELECT provider, day, billed, recorded, differences, unexplained FROM reconciliations
    WHERE missing IS NULL AND billed <> recorded AND day >= ${timeToSql(now - billDays * 86_400_000)}`
  return rows.flatMap((row) => rules.flatMap((rule) => differingBill(row, rule)))
}

function differingBill(
  { provider, day, billed, recorded, differences, unexplained }: Differing,
  rule: AlertRule,
): NewAlert[] {
  const difference = billed - recorded
  const percent = reachedPercent(rule, difference < 0n ? -difference : difference, (billed > 0n ? billed : 1n) as Nano)
  if (percent === undefined) return []
  const date = isoTime(timeFromSql(day)).slice(0, 10)
  const usd = (amount: bigint) => formatUsd(amount as Nano)
  const share = Number(((differences - unexplained) * 1000n) / (differences > 0n ? differences : 1n)) / 10
  return [
    {
      ...ofRule(rule, `bill:${provider}:${date}:${percent}`),
      kind: 'bill.differs',
      message: `${provider} billed $${usd(billed)} for ${date}, and $${usd(recorded)} was recorded: at least ${percent} % of the bill. ${share} % of the differences are explained: see Bills in the console, or tollgate reconcile report.`,
      data: { provider, day: date, percent, billed: usd(billed), recorded: usd(recorded), explained_percent: share },
    },
  ]
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

export async function cleanAlerts(database: Database, { now, mail }: Raising): Promise<void> {
  const before = timeToSql(now - keptMs)
  await database.transaction(async (sql) => {
    if (mail === undefined) await sql`DELETE FROM deliveries WHERE webhook_id IS NULL AND next_at IS NOT NULL`
    await sql`DELETE FROM deliveries WHERE created_at < ${before}`
    await sql`DELETE FROM alerts WHERE created_at < ${before}`
  })
}
