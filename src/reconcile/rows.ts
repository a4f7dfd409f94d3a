// The tables of bills and comparisons. A day is replaced as a whole, in one transaction, so that reading it again changes
// nothing, and a run that fails leaves the day before it as it was.

import type { BillCause } from '../kernel/bill.ts'
import type { Nano } from '../kernel/money.ts'
import { amount, count, type ItemIn, json, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { insertRows } from '../store/insert-rows.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import { type BillLine, type DayRange, mergedLines, nanoOf } from './bill.ts'
import type { ComparedDay } from './compare.ts'

export const reconciliationRow = rowFormat({
  provider: text(),
  day: time,
  comparedAt: time,
  missing: optional(text()),
  billed: amount,
  recorded: amount,
  differences: amount,
  unexplained: amount,
  foreignBilled: amount,
})
export type Reconciliation = ItemIn<typeof reconciliationRow>

const lineRow = rowFormat({
  provider: text(),
  day: time,
  model: text(),
  bucket: text(),
  billedQuantity: count,
  recordedQuantity: count,
  billed: amount,
  recorded: amount,
})
export type ReconciliationLine = ItemIn<typeof lineRow>

const causeRow = rowFormat({
  provider: text(),
  day: time,
  place: count,
  model: text(),
  cause: text<BillCause>(),
  amount,
  quantity: count,
  requests: count,
  requestIds: json<readonly string[]>(),
  foreignKey: optional(text()),
  detail: optional(text()),
})
export type ReconciliationCause = ItemIn<typeof causeRow>

interface StoredLine extends Pick<BillLine, 'model' | 'bucket' | 'tier' | 'region'> {
  readonly day: bigint
  readonly provider_key: string
  readonly quantity: bigint | null
  readonly pico: bigint | null
  readonly requests: bigint | null
}

// ── Bills ──

/** Replaces the lines of these days. */
export async function storeBill(
  sql: Sql,
  provider: string,
  { days, lines }: { readonly days: readonly number[]; readonly lines: readonly BillLine[] },
): Promise<void> {
  for (const day of days) await sql`DELETE FROM bill_lines WHERE provider = ${provider} AND day = ${timeToSql(day)}`
  const rows = mergedLines(lines.filter(({ day }) => days.includes(day))).map(
    ({ day, model, key, bucket, tier, region, quantity, pico, requests }) => ({
      ...{ provider, day: timeToSql(day), model, provider_key: key, bucket, tier, region },
      ...{ quantity: quantity ?? null, pico: pico ?? null, requests: requests ?? null },
    }),
  )
  await insertRows(sql, 'bill_lines', rows)
}

export async function readBill({ sql }: Database, provider: string, { from, to }: DayRange): Promise<BillLine[]> {
  const rows = await sql<StoredLine>`SELECT * FROM bill_lines WHERE provider = ${provider}
    AND day >= ${timeToSql(from)} AND day < ${timeToSql(to)} ORDER BY day, model, provider_key, bucket, tier, region`
  return rows.map(({ day, provider_key: key, quantity, pico, requests, ...row }) => ({
    ...{ ...row, day: timeFromSql(day), key },
    ...{ quantity: quantity ?? undefined, pico: pico ?? undefined, requests: requests ?? undefined },
  }))
}

// ── Comparisons ──

const idsMax = 100

export async function storeComparison(
  sql: Sql,
  provider: string,
  { day, lines, parts, unexplained }: ComparedDay,
  now: number,
): Promise<void> {
  await removeDay(sql, provider, day)
  const stored = lines.map((line) => ({ ...line, billed: nanoOf(line.billed), recorded: nanoOf(line.recorded) }))
  const total = (name: 'billed' | 'recorded') => stored.reduce((sum, line) => sum + line[name], 0n) as Nano
  const differences = stored.reduce((sum, { billed, recorded }) => sum + size(billed - recorded), 0n)
  const foreign = parts.filter(({ foreignKey }) => foreignKey !== undefined)
  const reconciliation = {
    ...{ provider, day, comparedAt: now, missing: undefined, billed: total('billed'), recorded: total('recorded') },
    differences: differences as Nano,
    unexplained: nanoOf(unexplained) as Nano,
    foreignBilled: foreign.reduce((sum, { pico }) => sum + nanoOf(pico), 0n) as Nano,
  }
  await sql`INSERT INTO reconciliations ${sql([reconciliationRow.write(reconciliation)])}`
  await insertRows(
    sql,
    'reconciliation_lines',
    stored.map(({ model, bucket, billedQuantity, recordedQuantity, billed, recorded }) => ({
      ...{ provider, day: timeToSql(day), model, bucket },
      ...{ billed_quantity: billedQuantity, recorded_quantity: recordedQuantity, billed, recorded },
    })),
  )
  const causes = parts
    // Reports that add up floats are off by less than a nano-dollar.
    .filter(({ pico, quantity }) => nanoOf(pico) !== 0n || quantity !== 0n)
    .sort((a, b) => Number(size(b.pico) - size(a.pico)))
    .map(({ model, cause, pico, quantity, requests, foreignKey, detail }, place) => ({
      ...{ provider, day: timeToSql(day), place: BigInt(place), model, cause, amount: nanoOf(pico), quantity },
      ...{ requests: BigInt(requests.size), request_ids: JSON.stringify([...requests].sort().slice(0, idsMax)) },
      ...{ foreign_key: foreignKey ?? null, detail: detail ?? null },
    }))
  await insertRows(sql, 'reconciliation_causes', causes)
}

/** A day that the report does not have. What an earlier report had stays. */
export async function storeMissing(
  sql: Sql,
  provider: string,
  day: number,
  missing: string,
  now: number,
): Promise<void> {
  const none = { billed: 0n as Nano, recorded: 0n as Nano, differences: 0n as Nano, unexplained: 0n as Nano }
  const row = { provider, day, comparedAt: now, missing, ...none, foreignBilled: 0n as Nano }
  await sql`INSERT INTO reconciliations ${sql([reconciliationRow.write(row)])} ON CONFLICT DO NOTHING`
}

async function removeDay(sql: Sql, provider: string, day: number): Promise<void> {
  const at = timeToSql(day)
  await sql`DELETE FROM reconciliation_causes WHERE provider = ${provider} AND day = ${at}`
  await sql`DELETE FROM reconciliation_lines WHERE provider = ${provider} AND day = ${at}`
  await sql`DELETE FROM reconciliations WHERE provider = ${provider} AND day = ${at}`
}

function size(value: bigint): bigint {
  return value < 0n ? -value : value
}

// ── Reading ──

export interface ReconciliationQuery extends DayRange {
  /** undefined = all. */
  readonly provider?: string | undefined
}

/** By provider and day. */
export async function listReconciliations(sql: Sql, query: ReconciliationQuery): Promise<Reconciliation[]> {
  return reconciliationRow.all(await rowsOf(sql, 'reconciliations', query))
}

export async function listReconciliationLines(sql: Sql, query: ReconciliationQuery): Promise<ReconciliationLine[]> {
  return lineRow.all(await rowsOf(sql, 'reconciliation_lines', query))
}

/** Of each day, largest first. */
export async function listReconciliationCauses(sql: Sql, query: ReconciliationQuery): Promise<ReconciliationCause[]> {
  return causeRow.all(await rowsOf(sql, 'reconciliation_causes', query))
}

const orderOf = {
  reconciliations: 'provider, day',
  reconciliation_lines: 'provider, day, model, bucket',
  reconciliation_causes: 'provider, day, place',
} as const

async function rowsOf(sql: Sql, table: keyof typeof orderOf, { provider, from, to }: ReconciliationQuery) {
  const rows = await (provider === undefined
    ? sql<{ provider: string }>`SELECT * FROM ${sql(table)} WHERE day >= ${timeToSql(from)} AND day < ${timeToSql(to)}`
    : sql<{
        provider: string
      }>`SELECT * FROM ${sql(table)} WHERE provider = ${provider} AND day >= ${timeToSql(from)} AND day < ${timeToSql(to)}`)
  const names = orderOf[table].split(', ')
  const compare = (a: object, b: object): number => {
    for (const name of names) {
      const [left, right] = [a[name as keyof typeof a], b[name as keyof typeof b]]
      if (left !== right) return left < right ? -1 : 1
    }
    return 0
  }
  return rows.sort(compare)
}

// ── Runs ──

export interface SourceState {
  readonly provider: string
  readonly claimedUntil: number
  readonly endedAt: number | undefined
  readonly fault: string | undefined
}

const sourceRow = rowFormat({ provider: text(), claimedUntil: time, endedAt: optional(time), fault: optional(text()) })

export async function listSources(sql: Sql): Promise<SourceState[]> {
  return sourceRow.all(await sql`SELECT * FROM bill_sources ORDER BY provider`)
}

/** Longer than a report of a month takes, with all its pauses. */
const claimMs = 30 * 60_000

/** False: another replica is reading it. */
export async function claimSource(database: Database, provider: string, now: number): Promise<boolean> {
  return await database.transaction(async (sql) => {
    await sql`INSERT INTO bill_sources (provider, claimed_until) VALUES (${provider}, 0) ON CONFLICT DO NOTHING`
    const claimed = await sql`UPDATE bill_sources SET claimed_until = ${timeToSql(now + claimMs)}
      WHERE provider = ${provider} AND claimed_until < ${timeToSql(now)} RETURNING provider`
    return claimed.length > 0
  })
}

export async function endRun(
  database: Database,
  provider: string,
  now: number,
  fault: string | undefined,
): Promise<void> {
  await database.transaction(
    (sql) => sql`UPDATE bill_sources SET claimed_until = 0, ended_at = ${timeToSql(now)}, fault = ${fault ?? null}
      WHERE provider = ${provider}`,
  )
}
