// The limits of keys, projects and workspaces as they are stored. Counting is done in limits/ and in the ledger.

import { isTag, tagRule } from '../kernel/attribution.ts'
import { isoTime } from '../kernel/clock.ts'
import { assert, invalidRequest } from '../kernel/failure.ts'
import { isId, type KeyId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import type { Column } from '../store/columns.ts'
import type { Sql } from '../store/sql.ts'
import { appendAudit } from './audit.ts'
import { type Act, checkManager, type ManagedBy, notFound } from './management.ts'

/** Absent = unlimited. */
export interface Limits {
  readonly requestsPerMinute?: number | undefined
  readonly tokensPerMinute?: number | undefined
  readonly concurrentRequests?: number | undefined
  /** In a UTC day, in a week from Monday, in a UTC month. */
  readonly spendPerDay?: Nano | undefined
  readonly spendPerWeek?: Nano | undefined
  readonly spendPerMonth?: Nano | undefined
  /** The first moment of a UTC day: spend limits apply from then on, and what was spent before does not count. */
  readonly startsAt?: number | undefined
  /** Limit of each end user of the scope. */
  readonly userSpendPerDay?: Nano | undefined
  readonly userSpendPerWeek?: Nano | undefined
  readonly userSpendPerMonth?: Nano | undefined
  /** By tag, `name=value`: of all requests of the scope with that tag. */
  readonly tagSpendPerDay?: TagSpend | undefined
  readonly tagSpendPerWeek?: TagSpend | undefined
  readonly tagSpendPerMonth?: TagSpend | undefined
}

type TagSpend = Readonly<Record<string, Nano>>

/** A caller has up to three; the tightest applies. */
export type LimitScope =
  | (ScopeFacts & { readonly kind: 'key'; readonly id: KeyId })
  | (ScopeFacts & { readonly kind: 'project'; readonly id: ProjectId })
  | (ScopeFacts & { readonly kind: 'workspace'; readonly id: WorkspaceId })

interface ScopeFacts {
  readonly name: string
  readonly limits: Limits
}

/** With the name in the management API and in the database. The maximum keeps every sum exact. */
const counts = [
  { field: 'requestsPerMinute', name: 'requests_per_minute', max: 10_000_000 },
  { field: 'tokensPerMinute', name: 'tokens_per_minute', max: 10_000_000_000 },
  { field: 'concurrentRequests', name: 'concurrent_requests', max: 1_000_000 },
] as const
const spends = [
  { field: 'spendPerDay', name: 'spend_per_day' },
  { field: 'spendPerWeek', name: 'spend_per_week' },
  { field: 'spendPerMonth', name: 'spend_per_month' },
  { field: 'userSpendPerDay', name: 'user_spend_per_day' },
  { field: 'userSpendPerWeek', name: 'user_spend_per_week' },
  { field: 'userSpendPerMonth', name: 'user_spend_per_month' },
] as const
const tagSpends = [
  { field: 'tagSpendPerDay', name: 'tag_spend_per_day' },
  { field: 'tagSpendPerWeek', name: 'tag_spend_per_week' },
  { field: 'tagSpendPerMonth', name: 'tag_spend_per_month' },
] as const
export const limitNames = [...counts, ...spends, ...tagSpends, { field: 'startsAt', name: 'starts_at' }] as const
const limitedTagsMax = 50
/** A billion dollars. */
const spendMax = 10n ** 18n

/** Throws a Failure if one is wrong; `at` is their place in the request, such as `limits.`. */
export function checkLimits(limits: Limits, at = ''): void {
  for (const { field, name, max } of counts) {
    const value = limits[field]
    if (value === undefined || (Number.isInteger(value) && value >= 1 && value <= max)) continue
    throw invalidRequest(
      `\`${at}${name}\` must be a whole number from 1 to ${max}; leave it out for no limit.`,
      at + name,
    )
  }
  for (const { field, name } of spends) checkSpend(limits[field], at + name)
  for (const { field, name } of tagSpends) {
    const tags = Object.entries(limits[field] ?? {})
    if (tags.length > limitedTagsMax) {
      throw invalidRequest(`\`${at}${name}\` may name at most ${limitedTagsMax} tags.`, at + name)
    }
    for (const [tag, spend] of tags) {
      if (!isTag(tag)) {
        throw invalidRequest(
          `\`${at}${name}\`: "${tag.slice(0, 100)}" is not a tag such as team=web. ${tagRule}`,
          at + name,
        )
      }
      checkSpend(spend, `${at}${name}.${tag}`)
    }
  }
  if (limits.startsAt !== undefined && ![...spends, ...tagSpends].some(({ field }) => limits[field] !== undefined)) {
    throw invalidRequest(`\`${at}starts_at\` needs a spend limit that starts then.`, `${at}starts_at`)
  }
}

function checkSpend(value: Nano | undefined, name: string): void {
  if (value === undefined || (value > 0n && value <= spendMax)) return
  throw invalidRequest(`\`${name}\` must be more than 0 and at most 1000000000 (USD); leave it out for no limit.`, name)
}

export function hasLimits(limits: Limits): boolean {
  return (
    [...counts, ...spends].some(({ field }) => limits[field] !== undefined) ||
    tagSpends.some(({ field }) => Object.keys(limits[field] ?? {}).length > 0)
  )
}

/** The spend limits of a key, project or workspace, in the order of their periods. */
export function spendLimits({ spendPerDay, spendPerWeek, spendPerMonth }: Limits) {
  return [
    { period: 'day', cap: spendPerDay },
    { period: 'week', cap: spendPerWeek },
    { period: 'month', cap: spendPerMonth },
  ] as const
}

/** Amounts as strings, in nano-dollars. */
export function limitsToSql(limits: Limits): string | null {
  return hasLimits(limits) ? JSON.stringify(limitsByName(limits, String)) : null
}

/** For answers and the audit log: amounts in USD, such as `1.00`. */
export function shownLimits(limits: Limits): LimitsByName {
  return limitsByName(limits, formatUsd)
}

type LimitsByName = Record<string, number | string | Record<string, string>>

function limitsByName(limits: Limits, amountText: (amount: Nano) => string): LimitsByName {
  const byName: LimitsByName = {}
  for (const { field, name } of counts) {
    const value = limits[field]
    if (value !== undefined) byName[name] = value
  }
  for (const { field, name } of spends) {
    const value = limits[field]
    if (value !== undefined) byName[name] = amountText(value)
  }
  for (const { field, name } of tagSpends) {
    const tags = Object.entries(limits[field] ?? {})
    if (tags.length > 0) byName[name] = Object.fromEntries(tags.map(([tag, spend]) => [tag, amountText(spend)]))
  }
  if (limits.startsAt !== undefined) byName.starts_at = isoTime(limits.startsAt).slice(0, 10)
  return byName
}

const noLimits: Limits = Object.freeze({})

/** Throws if a limit cannot be read: it must not become "unlimited". */
export function limitsFromSql(json: string | null): Limits {
  if (json === null) return noLimits
  const stored: Record<string, unknown> = JSON.parse(json)
  const limits: { -readonly [Field in keyof Limits]: Limits[Field] } = {}
  for (const { field, name } of counts) {
    const value = stored[name]
    if (value === undefined) continue
    assert(typeof value === 'number', 'a stored count is a number')
    limits[field] = value
  }
  for (const { field, name } of spends) {
    const value = stored[name]
    if (value === undefined) continue
    assert(typeof value === 'string', 'a stored amount is a string')
    limits[field] = BigInt(value) as Nano
  }
  for (const { field, name } of tagSpends) {
    const value = stored[name]
    if (value === undefined) continue
    const tags = Object.entries(value as Record<string, string>)
    limits[field] = Object.freeze(Object.fromEntries(tags.map(([tag, spend]) => [tag, BigInt(spend) as Nano])))
  }
  if (typeof stored.starts_at === 'string') limits.startsAt = Date.parse(stored.starts_at)
  return Object.freeze(limits)
}

export const limitsColumn: Column<Limits> = {
  fromSql: (stored) => limitsFromSql(stored as string | null),
  toSql: limitsToSql,
}

const places = {
  workspace: { table: 'workspaces', prefix: 'ws' },
  project: { table: 'projects', prefix: 'prj' },
  key: { table: 'api_keys', prefix: 'key' },
} as const

/** Replaces all limits of a scope; omitted ones become unlimited. Returns the stored limits. */
export async function putLimits(
  sql: Sql,
  kind: LimitScope['kind'],
  id: string,
  limits: Limits,
  act: Act,
): Promise<Limits> {
  const { table, prefix } = places[kind]
  if (!isId(prefix, id)) throw notFound(kind, id)
  checkLimits(limits)
  const [found] = await sql<{ managed_by: ManagedBy }>`UPDATE ${sql(table)} SET limits = ${limitsToSql(limits)}
    WHERE id = ${id} RETURNING managed_by`
  if (!found) throw notFound(kind, id)
  checkManager(kind, { managedBy: found.managed_by }, act)
  await appendAudit(sql, { ...act, action: 'limits.put', object: id, details: shownLimits(limits) })
  return limits
}
