// Usage and charges summed up by the requested groups, for reports, a spreadsheet or a warehouse, from the hourly sums and the
// log (see read-log.ts). Only the sums are in memory. Money adds up exactly; token buckets never overlap.

import { shownEndUser, tagsFromText } from '../kernel/attribution.ts'
import { isoTime } from '../kernel/clock.ts'
import { formatUsd, type Nano, zeroNano } from '../kernel/money.ts'
import { wholeBuckets } from '../kernel/usage.ts'
import type { Engine } from '../store/sql.ts'
import { csvLine } from '../wire/csv.ts'
import {
  type LogDatabase,
  type Period,
  type RequestFilters,
  readPortions,
  readSums,
  type SourceQuery,
  sourceOf,
} from './read-log.ts'
import { groupOfSums } from './request-series.ts'

export interface UsageQuery extends RequestFilters, Period {
  readonly database: LogDatabase
  readonly groupBy: readonly UsageGroup[]
  /** By key: the person who owns it, the groups it is in. */
  readonly ofKeys?: OfKeys
  /** Also add up what providers bill to the operator, which takes a quarter longer. */
  readonly withProviderCosts?: boolean
}

export interface UsageExport extends UsageQuery {
  readonly format: 'csv' | 'jsonl'
  /** null = it does not exist any more. */
  nameOf(group: NamedGroup, id: string): Promise<string | null>
}

/** A request counts under each of the values that its key has. */
export type OfKeys = Readonly<Partial<Record<KeyGroup, ReadonlyMap<string, readonly string[]>>>>
export type KeyGroup = 'person' | 'group'

const namedGroups = ['workspace', 'project', 'key', 'person', 'group'] as const
/** Groups by id whose objects have names. */
export type NamedGroup = (typeof namedGroups)[number]

/** Yields the text in pieces. */
export async function* exportUsage(options: UsageExport): AsyncGenerator<string, void, undefined> {
  const isCsv = options.format === 'csv'
  const { columns: summed, list } = await sumUsage(options)
  // Beside each column of ids, one of names.
  const columns = summed.flatMap((column): readonly (ExportColumn | NameColumn)[] => {
    const group = namedGroups.find((each) => groupColumns[each].name === column.name)
    if (group === undefined) return [column]
    const value = async (sum: UsageSum) => {
      const id = column.value(sum)
      return id === null ? null : await options.nameOf(group, String(id))
    }
    return [column, { name: group, value }]
  })
  if (isCsv) yield `${csvLine(columns.map(({ name }) => name))}\n`
  for (const sum of list()) {
    const cells: (string | number | null)[] = []
    for (const { value } of columns) cells.push(await value(sum))
    const line = isCsv
      ? csvLine(cells)
      : JSON.stringify(Object.fromEntries(columns.map(({ name }, at) => [name, cells[at]])))
    yield `${line}\n`
  }
}

/** The sums by group, sorted by their groups, and over all of them. */
export async function sumUsage({ database, groupBy, ofKeys = {}, withProviderCosts, ...query }: UsageQuery) {
  const groups = groupBy.map((group) => columnOf(group, ofKeys))
  const sums = createSums(groups)
  const figures = Object.entries({ ...usageColumns, ...(withProviderCosts && costColumns) })
  const wanted = usageSource({ ...query, groupBy })
  const { sums: summed, logged } = sourceOf(wanted)
  if (summed) {
    const select = {
      groups: (subject: string) =>
        groupBy.map((group, at) => [`g${at}`, summedGroup(group, subject, database.engine)] as const),
      figures: figures.map(([name, { summed: expression }]) => [name, expression] as const),
    }
    for await (const rows of readSums<SummedRow>(database, wanted, summed, select)) {
      for (const row of rows) {
        const values = groupBy.map((_, at) => [`g${at}`, row[`g${at}`] || null])
        sums.add({ ...row, ...Object.fromEntries(values) })
      }
    }
  }
  const texts = [
    ...groups.map(({ sql }, at) => `${sql} AS g${at}`),
    ...figures.map(([name, { logged: expression }]) => `${expression} AS ${name}`),
  ]
  const places = groups.map((_, at) => at + 1).join(', ')
  const end = groups.length === 0 ? ' HAVING COUNT(*) > 0' : ` GROUP BY ${places}`
  for (const period of logged) {
    const portions = readPortions<SummedRow>(database, { ...query, ...period }, `SELECT ${texts.join(', ')}`, [end])
    for await (const rows of portions) for (const row of rows) sums.add(row)
  }
  return sums
}

/** Where the figures come from. */
export function usageSource({ groupBy, ...query }: RequestFilters & Period & Pick<UsageQuery, 'groupBy'>): SourceQuery {
  return { ...query, groups: groupBy, grain: 'day' }
}

function summedGroup(group: UsageGroup, subject: string, engine: Engine): string {
  return group === 'day' ? `CAST(start_at / ${dayMs} AS TEXT)` : groupOfSums(group, subject, engine)
}

type TokenName = (typeof tokenNames)[number]

const tokenNames = wholeBuckets.map(({ bucket }) => `${bucket}_tokens` as const)
const inputNames = wholeBuckets.flatMap(({ bucket, side }) => (side === 'input' ? (`${bucket}_tokens` as const) : []))
/** The column `input_tokens` includes the other input; a sum does not. */
const plainInput = ['input_tokens', ...inputNames.filter((name) => name !== 'input_tokens')].join(' - ')

/** Of the rows of the log, and of their sums. */
interface Expression {
  readonly logged: string
  readonly summed: string
}

const sumOf = (expression: string): Expression => ({
  logged: `CAST(COALESCE(SUM(${expression}), 0) AS BIGINT)`,
  summed: expression,
})

const usageColumns = {
  requests: { logged: 'COUNT(*)', summed: 'requests' },
  failed: { logged: 'COUNT(code)', summed: 'errors' },
  estimated: sumOf('estimated'),
  ...(Object.fromEntries(
    tokenNames.map((name) => [name, sumOf(name === 'input_tokens' ? plainInput : name)]),
  ) as Record<TokenName, Expression>),
  cost: sumOf('charge'),
  saved: sumOf('cache_saved'),
}

const uncosted = 'CASE WHEN upstream_cost IS NULL THEN charge END'
const costColumns = {
  upstream_cost: sumOf('upstream_cost'),
  uncosted: { logged: `COUNT(${uncosted})`, summed: 'uncosted' },
  uncosted_charges: { ...sumOf(uncosted), summed: 'uncosted_charges' },
  failed_cost: sumOf('failed_cost'),
}

type SummedRow = Readonly<Record<`g${number}`, string | null>> &
  Readonly<Record<keyof typeof usageColumns, bigint>> &
  Readonly<Partial<Record<keyof typeof costColumns, bigint>>>

interface ExportColumn {
  readonly name: string
  /** null = not known. */
  value(sum: UsageSum): string | number | null
}

interface NameColumn {
  readonly name: NamedGroup
  value(sum: UsageSum): Promise<string | null>
}

interface GroupColumn {
  readonly name: string
  readonly sql: string
  /** The text for a value of the column; null = the request has none. */
  shown?(value: string): string | null
  /** The values under which a request counts instead of the one of its column; none = it has none. */
  valuesOf?(value: string): readonly string[]
}

/** `tag:NAME`: by the value of that tag. */
export type UsageGroup = keyof typeof groupColumns | `tag:${string}`

const dayMs = 86_400_000
const groupColumns = {
  day: {
    name: 'day',
    sql: `CAST(started_at / ${dayMs} AS TEXT)`,
    shown: (day: string) => isoTime(Number(day) * dayMs).slice(0, 10),
  },
  workspace: { name: 'workspace_id', sql: 'workspace_id' },
  project: { name: 'project_id', sql: 'project_id' },
  key: { name: 'key_id', sql: 'key_id' },
  model: { name: 'model', sql: 'model' },
  provider: { name: 'provider', sql: 'provider' },
  route: { name: 'route', sql: "provider || ' ' || upstream_model" },
  session: { name: 'session', sql: 'session' },
  agent: { name: 'agent', sql: 'agent' },
  user: { name: 'end_user', sql: 'end_user', shown: shownEndUser },
  person: { name: 'person_id', sql: 'key_id' },
  group: { name: 'group_id', sql: 'key_id' },
} as const satisfies Readonly<Record<string, GroupColumn>>

function columnOf(group: UsageGroup, ofKeys: OfKeys): GroupColumn {
  if (group === 'person' || group === 'group') {
    return { ...groupColumns[group], valuesOf: (key) => ofKeys[group]?.get(key) ?? [] }
  }
  if (group in groupColumns) return groupColumns[group as keyof typeof groupColumns]
  const tag = group.slice('tag:'.length)
  return { name: group, sql: 'tags', shown: (tags) => tagsFromText(tags)[tag] ?? null }
}

/** Sum over the requests with the same values in all groups. */
export interface UsageSum {
  /** null = the request has none. */
  readonly groups: readonly (string | null)[]
  requests: number
  /** With a code, also of a failure inside a stream. */
  failed: number
  /** Charged by estimated usage. */
  estimated: number
  readonly tokens: Record<TokenName, number>
  cost: Nano
  /** Savings by the prompt cache; negative if writing to it cost more. */
  saved: bigint
  /** The providers' bill to the operator, as far as it is known. This and the rest only `withProviderCosts`. */
  upstreamCost: Nano
  /** What attempts without an answer probably cost. */
  failedCost: Nano
  /** Charged requests for which it is not known, and their charges. */
  uncosted: number
  uncostedCharges: Nano
}

/** All input, and the part of it that was read from a cache or written to one. */
export function inputOf({ tokens }: UsageSum) {
  return {
    input: inputNames.reduce((sum, name) => sum + tokens[name], 0),
    cacheRead: tokens.cache_read_tokens,
    cacheWrite: tokens.cache_write_tokens + tokens.cache_write_1h_tokens,
    output: tokens.output_tokens,
  }
}

function createSums(groups: readonly GroupColumn[]) {
  const sums = new Map<string, UsageSum>()
  const total = emptySum([])
  const columns: readonly ExportColumn[] = [
    ...groups.map(({ name }, at) => ({ name, value: (sum: UsageSum) => sum.groups[at] ?? null })),
    { name: 'requests', value: (sum) => sum.requests },
    { name: 'failed_requests', value: (sum) => sum.failed },
    { name: 'estimated_requests', value: (sum) => sum.estimated },
    ...tokenNames.map((name) => ({ name, value: (sum: UsageSum) => sum.tokens[name] })),
    { name: 'cost_usd', value: (sum) => formatUsd(sum.cost) },
    { name: 'cache_saved_usd', value: (sum) => formatUsd(sum.saved as Nano) },
  ]
  return {
    total,
    columns,
    add(row: SummedRow): void {
      let combinations: readonly UsageSum['groups'][] = [[]]
      for (const [at, column] of groups.entries()) {
        const values = valuesIn(column, row[`g${at}`] ?? null)
        combinations = combinations.flatMap((before) => values.map((value) => [...before, value]))
      }
      for (const values of combinations) {
        const name = JSON.stringify(values)
        const sum = sums.get(name) ?? emptySum(values)
        sums.set(name, sum)
        addRow(sum, row)
      }
      // Once, in however many groups it counts.
      addRow(total, row)
    },
    /** Sorted by their groups. */
    list: () =>
      Array.from(sums)
        // A request that was moved to another group leaves zeros in its first one.
        .filter(([, { requests }]) => requests !== 0)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, sum]) => sum),
  }
}

function valuesIn({ shown, valuesOf }: GroupColumn, value: string | null): readonly (string | null)[] {
  if (value === null) return [null]
  if (!valuesOf) return [shown ? shown(value) : value]
  const values = valuesOf(value)
  return values.length === 0 ? [null] : values
}

function addRow(sum: UsageSum, row: SummedRow): void {
  sum.requests += Number(row.requests)
  sum.failed += Number(row.failed)
  sum.estimated += Number(row.estimated)
  for (const name of tokenNames) sum.tokens[name] += Number(row[name])
  sum.cost = (sum.cost + row.cost) as Nano
  sum.saved += row.saved
  sum.upstreamCost = (sum.upstreamCost + (row.upstream_cost ?? 0n)) as Nano
  sum.failedCost = (sum.failedCost + (row.failed_cost ?? 0n)) as Nano
  sum.uncosted += Number(row.uncosted ?? 0n)
  sum.uncostedCharges = (sum.uncostedCharges + (row.uncosted_charges ?? 0n)) as Nano
}

function emptySum(groups: UsageSum['groups']): UsageSum {
  return {
    groups,
    requests: 0,
    failed: 0,
    estimated: 0,
    tokens: Object.fromEntries(tokenNames.map((name) => [name, 0])) as Record<TokenName, number>,
    cost: zeroNano,
    saved: 0n,
    upstreamCost: zeroNano,
    failedCost: zeroNano,
    uncosted: 0,
    uncostedCharges: zeroNano,
  }
}
