// The limits of keys, projects and workspaces as they are stored. Counting is done in limits/ and in the ledger.

import { tagRule } from '../kernel/attribution.ts'
import { isoTime } from '../kernel/clock.ts'
import { assert, Failure, invalidRequest } from '../kernel/failure.ts'
import { isId, type KeyId, type ProjectId, type WorkspaceId } from '../kernel/ids.ts'
import { formatUsd, type Nano } from '../kernel/money.ts'
import {
  isById,
  matchesModel,
  noFacts,
  type Period,
  parseSubject,
  parseWindow,
  periods,
  type SpendFacts,
  type SpendLimit,
  type Subject,
  subjectForms,
  subjectKinds,
  subjectText,
  windowWords,
} from '../kernel/spend-limit.ts'
import type { Column } from '../store/columns.ts'
import type { Sql } from '../store/sql.ts'
import { parsePattern, patternWords } from './allowlist.ts'
import { appendAudit, lockAudit } from './audit.ts'
import { namedIn, withSubjectIds } from './limit-subjects.ts'
import { type Act, checkManager, type ManagedBy, notFound } from './management.ts'

/** Absent = unlimited. */
export interface Limits {
  readonly requestsPerMinute?: number | undefined
  readonly tokensPerMinute?: number | undefined
  readonly concurrentRequests?: number | undefined
  readonly spend?: readonly SpendLimit[] | undefined
  /** The first moment of a UTC day: spend limits apply from then on, and what was spent before does not count. */
  readonly startsAt?: number | undefined
}

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
/** Enough for a limit of each person of a large workspace, and small enough to be read with every key. */
const spendLimitsMax = 500
/** Requests per minute. */
const slowDownMax = 10_000
/** A billion dollars. */
const spendMax = 10n ** 18n

/** Throws a Failure if one is wrong; `at` is their place in the request, such as `limits.`. */
export function checkLimits(limits: Limits, at = '', kind?: LimitScope['kind']): void {
  for (const { field, name, max } of counts) {
    const value = limits[field]
    if (value === undefined || (Number.isInteger(value) && value >= 1 && value <= max)) continue
    throw invalidRequest(
      `\`${at}${name}\` must be a whole number from 1 to ${max}; leave it out for no limit.`,
      at + name,
    )
  }
  const spend = limits.spend ?? []
  if (spend.length > spendLimitsMax) {
    const field = `${at}spend_limits`
    throw invalidRequest(`${spend.length} spend limits are set at once; at most ${spendLimitsMax} are possible.`, field)
  }
  const names = new Set<string>()
  for (const limit of spend) {
    const name = at + spendLimitName({ ...limit, then: undefined, slowDown: undefined })
    if (names.has(name)) throw invalidRequest(`\`${name}\` is set twice.`, name)
    names.add(name)
    if (limit.setBy !== undefined && !(isById(limit.subject.kind) && (kind ?? 'workspace') === 'workspace')) {
      throw invalidRequest(
        `\`${at}spend_limits\`: \`set_by\` is only for limits of people and groups in a workspace.`,
        `${at}spend_limits`,
      )
    }
    if (kind === 'key' && isById(limit.subject.kind)) {
      throw invalidRequest(
        `\`${at}spend_limits\`: a key belongs to one person; limit people and groups in a project or workspace.`,
        `${at}spend_limits`,
      )
    }
    if (limit.amount > 0n && limit.amount <= spendMax) continue
    throw invalidRequest(
      `\`${name}\` must be more than 0 and at most 1000000000 (USD); leave it out for no limit.`,
      name,
    )
  }
  checkNextModels(spend, at)
  if (limits.startsAt !== undefined && spend.length === 0) {
    throw invalidRequest(`\`${at}starts_at\` needs a spend limit that starts then.`, `${at}starts_at`)
  }
}

/** The model that a limit names must not count in it as well, and must not lead back to one over other limits of the list. */
function checkNextModels(spend: readonly SpendLimit[], at: string): void {
  const field = `${at}spend_limits`
  const naming = spend.filter(({ then }) => then !== undefined)
  for (const { then = '', models } of naming) {
    if (models !== undefined && !matchesModel(models, then)) continue
    const message = `\`${field}\`: \`then\` names ${then}, which counts in the same limit, so it would be refused too. Give the limit \`models\` without it, such as "!${then}" for every other model.`
    throw invalidRequest(message, field)
  }
  const checked = new Set<string>()
  for (const { then = '' } of naming) {
    const loop = loopFrom(then, { before: [], naming, checked })
    if (!loop) continue
    throw invalidRequest(`\`${field}\`: \`then\` leads in a circle, ${loop.join(' → ')}. Remove one of them.`, field)
  }
}

interface LoopSearch {
  /** The models on the way. */
  readonly before: readonly string[]
  /** The limits that name a model. */
  readonly naming: readonly SpendLimit[]
  /** Models that lead into no circle. */
  readonly checked: Set<string>
}

/** The circle of models into which this one leads; undefined = none. */
function loopFrom(model: string, { before, naming, checked }: LoopSearch): readonly string[] | undefined {
  if (before.includes(model)) return [...before.slice(before.indexOf(model)), model]
  if (checked.has(model)) return undefined
  for (const { models = '', then = '' } of naming) {
    const loop = matchesModel(models, model) && loopFrom(then, { before: [...before, model], naming, checked })
    if (loop) return loop
  }
  checked.add(model)
  return undefined
}

/** `spend_per_day`, `tag_spend_per_month.team=web`, `spend_limits: group:grp_… acme/* day` */
function spendLimitName(limit: SpendLimit): string {
  const { subject, models, window, setBy } = limit
  const field = shortFieldOf(limit)
  if (field === undefined) {
    const words = [subjectText(subject), models, window, setBy && `set by ${setBy}`]
    return `spend_limits: ${words.filter(Boolean).join(' ')}`
  }
  return subject.name === undefined ? field : `${field}.${subject.name}`
}

export function hasLimits(limits: Limits): boolean {
  return counts.some(({ field }) => limits[field] !== undefined) || (limits.spend ?? []).length > 0
}

/** Without those of other people and groups, of which a workspace may have hundreds. */
export function limitsConcerning(limits: Limits, whose: Pick<SpendFacts, 'personId' | 'groupIds'>): Limits {
  const facts = { ...noFacts, ...whose }
  const concerns = ({ subject: { kind, name } }: SpendLimit) => {
    if (name === undefined || subjectKinds[kind].isOfRequest) return true
    const names: readonly string[] = subjectKinds[kind].names(facts)
    return names.includes(name)
  }
  if (!limits.spend || limits.spend.every(concerns)) return limits
  return Object.freeze({ ...limits, spend: Object.freeze(limits.spend.filter(concerns)) })
}

// The fields of the management API in which a kind of subject and a period are one name.

const shortPrefixes = { all: '', user: 'user_', tag: 'tag_' } as const

type ShortKind = keyof typeof shortPrefixes
type ShortField = `${(typeof shortPrefixes)[ShortKind]}spend_per_${Period}`

const shortFields = (Object.keys(shortPrefixes) as ShortKind[]).flatMap((kind) =>
  periods.map((window) => ({ kind, window, field: `${shortPrefixes[kind]}spend_per_${window}` as ShortField })),
)

/** undefined = it has no name of its own and is in `spend_limits`. */
function shortFieldOf({ subject: { kind }, window, models, then, slowDown }: SpendLimit): ShortField | undefined {
  if (models !== undefined || then !== undefined || slowDown !== undefined) return undefined
  return shortFields.find((short) => short.kind === kind && short.window === window)?.field
}

/** A spend limit of any kind. */
export interface GivenSpendLimit {
  /** As `parseSubject` reads it; absent = all requests. */
  readonly subject?: string | undefined
  readonly models?: string | null | undefined
  readonly window: string
  readonly limit: Nano
  readonly then?: string | null | undefined
  readonly slow_down?: number | null | undefined
  readonly set_by?: 'admin' | null | undefined
}

/** As the management API takes them. */
export type GivenLimits = {
  readonly [Name in (typeof counts)[number]['name'] | 'starts_at']?: number | null | undefined
} & {
  readonly [Field in ShortField]?: Nano | Readonly<Record<string, Nano>> | null | undefined
} & { readonly spend_limits?: readonly GivenSpendLimit[] | null | undefined }

/** `at` is their place in the request, such as `limits.`. */
export function limitsFrom(given: GivenLimits, at = ''): Limits {
  const limits: { -readonly [Field in keyof Limits]: Limits[Field] } = {}
  for (const { field, name } of counts) if (given[name] != null) limits[field] = given[name]
  const spend = shortFields.flatMap(({ kind, window, field }): readonly SpendLimit[] => {
    const value = given[field]
    if (value == null) return []
    if (typeof value === 'bigint') return [{ subject: { kind }, window, amount: value }]
    return Object.entries(value).map(([name, amount]) => ({
      subject: subjectOf(kind, name, at + field),
      window,
      amount,
    }))
  })
  spend.push(...(given.spend_limits ?? []).map((limit, index) => spendLimitFrom(limit, `${at}spend_limits[${index}]`)))
  if (spend.length > 0) limits.spend = spend
  if (given.starts_at != null) limits.startsAt = given.starts_at
  return limits
}

function subjectOf(kind: ShortKind, name: string, field: string): Subject {
  const subject = parseSubject(`${kind}:${name}`)
  if (subject) return subject
  throw invalidRequest(`\`${field}\`: "${name.slice(0, 100)}" is not a tag such as team=web. ${tagRule}`, field)
}

function spendLimitFrom(given: GivenSpendLimit, at: string): SpendLimit {
  const { subject = 'all', models, window, limit, then, slow_down: slowDown, set_by: setBy } = given
  const [whose, word] = [parseSubject(subject), parseWindow(window)]
  if (!whose) {
    const known = subjectForms.map(([text]) => `"${text}"`).join(', ')
    throw invalidRequest(`\`${at}.subject\` must be one of ${known}, not "${subject.slice(0, 100)}".`, `${at}.subject`)
  }
  if (!word)
    throw invalidRequest(`\`${at}.window\` must be ${windowWords}, not "${window.slice(0, 100)}".`, `${at}.window`)
  if (models != null && parsePattern(models.replace(/^!/, '')) === undefined) {
    const known = `${patternWords}, or \`!\` and one of these for every other model`
    throw invalidRequest(`\`${at}.models\` must be ${known}, not "${models.slice(0, 100)}".`, `${at}.models`)
  }
  if (then != null && (parsePattern(then) === undefined || then.endsWith('*'))) {
    const known = "a model's id (`creator/model`)"
    throw invalidRequest(`\`${at}.then\` must be ${known}, not "${then.slice(0, 100)}".`, `${at}.then`)
  }
  if (slowDown != null && !(Number.isInteger(slowDown) && slowDown >= 1 && slowDown <= slowDownMax)) {
    const message = `\`${at}.slow_down\` must be a whole number of requests per minute from 1 to ${slowDownMax}.`
    throw invalidRequest(message, `${at}.slow_down`)
  }
  return {
    ...{ subject: whose, ...(models != null && { models }), window: word, amount: limit },
    ...(then != null && { then }),
    ...(slowDown != null && { slowDown }),
    ...(setBy != null && { setBy }),
  }
}

/** Spend limits are one list; amounts are strings, in nano-dollars. */
export function limitsToSql(limits: Limits): string | null {
  if (!hasLimits(limits)) return null
  const spend = (limits.spend ?? []).map(({ subject, amount, ...others }) => ({
    ...{ subject: subjectText(subject), ...others, amount: String(amount) },
  }))
  return JSON.stringify({ ...shownCounts(limits), ...(spend.length > 0 && { spend }), ...shownStart(limits) })
}

interface ShownSpendLimit {
  readonly subject: string
  readonly models?: string
  readonly window: string
  readonly limit: string
  readonly then?: string
  readonly slow_down?: number
  readonly set_by?: 'admin'
}

type ShownLimits = Record<string, number | string | Record<string, string> | ShownSpendLimit[]>

/** For answers and the audit log: amounts in USD, such as `1.00`. `labels`: what to call people and groups instead of their ids. */
export function shownLimits(limits: Limits, labels?: ReadonlyMap<string, string>): ShownLimits {
  const shown: Record<string, string | Record<string, string> | ShownSpendLimit[]> = {}
  for (const { field } of shortFields) {
    for (const limit of limits.spend ?? []) {
      const { subject, amount } = limit
      if (shortFieldOf(limit) !== field) continue
      if (subject.name === undefined) shown[field] = formatUsd(amount)
      else shown[field] = { ...(shown[field] as Record<string, string>), [subject.name]: formatUsd(amount) }
    }
  }
  const others = (limits.spend ?? []).filter((limit) => shortFieldOf(limit) === undefined)
  if (others.length > 0) shown.spend_limits = others.map((limit) => shownSpendLimit(limit, labels))
  return { ...shownCounts(limits), ...shown, ...shownStart(limits) }
}

/** A person by address and a group by name, if they still exist. */
export function labelled({ kind, name }: Subject, labels?: ReadonlyMap<string, string>): Subject {
  return name === undefined ? { kind } : { kind, name: labels?.get(name) ?? name }
}

function shownSpendLimit(
  { subject, models, window, amount, then, slowDown, setBy }: SpendLimit,
  labels?: ReadonlyMap<string, string>,
): ShownSpendLimit {
  return {
    subject: subjectText(labelled(subject, labels)),
    ...(models !== undefined && { models }),
    window,
    limit: formatUsd(amount),
    ...(then !== undefined && { then }),
    ...(slowDown !== undefined && { slow_down: slowDown }),
    ...(setBy !== undefined && { set_by: setBy }),
  }
}

function shownCounts(limits: Limits): Record<string, number> {
  const set = counts.flatMap(({ field, name }) => {
    const value = limits[field]
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(set)
}

function shownStart({ startsAt }: Limits): { readonly starts_at?: string } {
  return startsAt === undefined ? {} : { starts_at: isoTime(startsAt).slice(0, 10) }
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
  if (stored.spend !== undefined) {
    assert(Array.isArray(stored.spend), 'stored spend limits are a list')
    limits.spend = Object.freeze(stored.spend.map(spendLimitFromStored))
  }
  if (typeof stored.starts_at === 'string') limits.startsAt = Date.parse(stored.starts_at)
  return Object.freeze(limits)
}

function spendLimitFromStored(stored: Readonly<Record<string, unknown>>): SpendLimit {
  const [subject, window] = [parseSubject(String(stored.subject)), parseWindow(String(stored.window))]
  assert(
    subject && window && typeof stored.amount === 'string',
    'a stored spend limit has a subject, a window, an amount',
  )
  const { models, then, slowDown, setBy } = stored
  return Object.freeze({
    subject: Object.freeze(subject),
    ...(typeof models === 'string' && { models }),
    window,
    amount: BigInt(stored.amount) as Nano,
    ...(typeof then === 'string' && { then }),
    ...(typeof slowDown === 'number' && { slowDown }),
    ...(setBy === 'admin' && { setBy }),
  })
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

export interface LimitPlace {
  readonly kind: LimitScope['kind']
  readonly id: string
  /** Whether an admin of the workspace sets them, who cannot change what the operator set for the workspace. */
  readonly isByAdmin?: boolean
}

/** Replaces all limits of a scope that the caller may change; omitted ones become unlimited. Returns the stored limits. */
export async function putLimits(
  sql: Sql,
  { kind, id, isByAdmin = false }: LimitPlace,
  given: Limits,
  act: Act,
): Promise<Limits> {
  const { table, prefix } = places[kind]
  if (!isId(prefix, id)) throw notFound(kind, id)
  const workspace = kind === 'workspace' ? 'id' : 'workspace_id'
  const [before] = await sql<{ managed_by: ManagedBy; limits: string | null; workspace_id: WorkspaceId }>`
    SELECT managed_by, limits, ${sql(workspace)} AS workspace_id FROM ${sql(table)} WHERE id = ${id} FOR NO KEY UPDATE`
  if (!before) throw notFound(kind, id)
  checkManager(kind, { managedBy: before.managed_by }, act)
  // Before the groups are looked up: the deletion of one at the same moment is finished, or will find this limit.
  await lockAudit(sql)
  const has = limitsFromSql(before.limits)
  const limits = isByAdmin && kind === 'workspace' ? await besideOperators(sql, before.workspace_id, given, has) : given
  checkLimits(limits, '', kind)
  const stored = await withIds(sql, before.workspace_id, limits, has)
  await sql`UPDATE ${sql(table)} SET limits = ${limitsToSql(stored)} WHERE id = ${id}`
  await noteRecount(sql, id, stored, act.at)
  await appendAudit(sql, { ...act, action: 'limits.put', object: id, details: shownLimits(stored) })
  return stored
}

/** The limits that an admin gives, of people and groups, beside those of the operator, which stay as they are. */
async function besideOperators(sql: Sql, workspaceId: WorkspaceId, given: Limits, has: Limits): Promise<Limits> {
  const others: readonly (keyof Limits)[] = [...counts.map(({ field }) => field), 'startsAt']
  const operators = (has.spend ?? []).filter(({ setBy }) => setBy === undefined)
  const wanted = await withSubjectIds(sql, workspaceId, given.spend ?? [], has.spend)
  const own = wanted.filter((limit) => !operators.some((each) => Bun.deepEquals(each, limit)))
  const isOperators =
    own.some(({ subject }) => !isById(subject.kind)) ||
    others.some((field) => given[field] !== undefined && given[field] !== has[field])
  if (isOperators) {
    throw new Failure(
      'FORBIDDEN',
      'Admins of a workspace limit its people and groups; its other limits are set by the operator. Limit projects and keys, or ask the operator.',
    )
  }
  for (const limit of own) {
    const name = spendLimitName({ ...limit, setBy: undefined })
    const least = operators.find((each) => spendLimitName(each) === name)
    if (!least || limit.amount < least.amount) continue
    throw invalidRequest(
      `\`${name}\` is limited to $${formatUsd(least.amount)} by the operator: a limit of the same must be lower.`,
      'spend_limits',
    )
  }
  return { ...has, spend: [...operators, ...own.map((limit) => ({ ...limit, setBy: 'admin' as const }))] }
}

/** What was charged before has to be counted in them: `limit-recounts.ts`. */
async function noteRecount(sql: Sql, owner: string, { spend = [] }: Limits, setAt: number): Promise<void> {
  if (spend.length === 0) await sql`DELETE FROM limit_recounts WHERE owner = ${owner}`
  else {
    await sql`INSERT INTO limit_recounts (owner, set_at) VALUES (${owner}, ${BigInt(setAt)})
      ON CONFLICT (owner) DO UPDATE SET set_at = excluded.set_at`
  }
}

/** As they are stored: people and groups by id. */
export async function withIds(sql: Sql, workspaceId: WorkspaceId, limits: Limits, before?: Limits): Promise<Limits> {
  if (limits.spend === undefined) return limits
  const stored = { ...limits, spend: await withSubjectIds(sql, workspaceId, limits.spend, before?.spend) }
  // A person may have been named by address and by id.
  checkLimits(stored)
  return stored
}

/** The people and groups that are named. */
export function namedSubjects({ spend = [] }: Limits): readonly string[] {
  return namedIn(spend)
}

export async function readLimits(sql: Sql, kind: LimitScope['kind'], id: string): Promise<Limits> {
  const [row] = await sql<{ limits: string | null }>`SELECT limits FROM ${sql(places[kind].table)} WHERE id = ${id}`
  if (!row) throw notFound(kind, id)
  return limitsFromSql(row.limits)
}
