// One run: reads the bills of the configured providers, a month at a time, stores them, and compares each day with what was
// recorded. It only reads from providers. What a failed run has stored stays; the next one reads the days again.

import { type BillSource, billFileFormats } from '../kernel/bill.ts'
import type { Clock } from '../kernel/clock.ts'
import { firstIdAt } from '../kernel/ids.ts'
import type { Secret } from '../kernel/secret.ts'
import { yieldToEventLoop } from '../kernel/timers.ts'
import type { Database } from '../store/database.ts'
import { oldestRequest } from '../telemetry/read-log.ts'
import { type ApiSource, anthropicUrl, readAnthropicAnalytics, readAnthropicReports } from './anthropic.ts'
import { BillFault, type BillLine, type BillReport, type DayRange, dayMs, daysOf, dayText } from './bill.ts'
import { readCsvBill, readFocusBill } from './bill-files.ts'
import { compareBill } from './compare.ts'
import { openaiUrl, readOpenaiReports } from './openai.ts'
import { openrouterUrl, readOpenrouterActivity } from './openrouter.ts'
import { type Recorded, readRecorded } from './recorded.ts'
import { claimSource, endRun, readBill, storeBill, storeComparison, storeMissing } from './rows.ts'

export type ConfiguredBill = BillSource<Secret>

export interface ReconcileDependencies {
  readonly database: Database
  readonly clock: Clock
  /** For tests. */
  readonly pause?: (milliseconds: number) => Promise<void>
}

export interface RunOutcome {
  readonly provider: string
  /** How many days were compared, and how many the report does not have yet. */
  readonly compared: number
  readonly missing: number
  /** Why not everything was read. */
  readonly fault: string | undefined
}

/** Reports take a month at most. */
const daysAtOnce = 31

export async function reconcile(
  deps: ReconcileDependencies,
  source: ConfiguredBill,
  range: DayRange,
): Promise<RunOutcome> {
  const { database, clock } = deps
  const { provider } = source
  if (!(await claimSource(database, provider, clock.now()))) {
    const fault = `The bill of ${provider} is being read already, by this gateway or another replica. Try again in some minutes.`
    return { provider, compared: 0, missing: 0, fault }
  }
  const done = { compared: 0, missing: 0 }
  let fault: string | undefined
  try {
    const parts: Part[] = []
    try {
      for (const part of await partsOf(database, range)) parts.push(await readPart(deps, source, part))
    } catch (error) {
      if (!(error instanceof BillFault)) throw error
      fault = error.message
    }
    // After all bills were read: the last day of a part is compared with the first one of the next part.
    for (const part of parts) {
      await comparePart(deps, source, part)
      done.compared += part.known.length
      done.missing += part.missing.size
      await yieldToEventLoop()
    }
  } finally {
    await endRun(database, provider, clock.now(), fault)
  }
  return { provider, ...done, fault }
}

/** Without requests there is nothing to compare with, and with a part of a day's requests nothing that is true. */
async function partsOf(database: Database, range: DayRange): Promise<readonly DayRange[]> {
  const oldest = await oldestRequest(database)
  if (oldest === undefined) return []
  const day = oldest - (oldest % dayMs)
  const from = Math.max(range.from, (await isCut(database, day)) ? day + dayMs : day)
  const starts = daysOf({ from, to: range.to }).filter((_, at) => at % daysAtOnce === 0)
  return starts.map((start) => ({ from: start, to: Math.min(range.to, start + daysAtOnce * dayMs) }))
}

/** The retention deletes by the millisecond, and archives charges. */
async function isCut({ sql }: Database, day: number): Promise<boolean> {
  const found = await sql`SELECT id FROM archived_charges
    WHERE id >= ${firstIdAt(day)} AND id < ${firstIdAt(day + dayMs)} LIMIT 1`
  return found.length > 0
}

/** The days of one report, of which the bill is stored. */
interface Part {
  readonly range: DayRange
  readonly known: readonly number[]
  /** Why the report does not have a day. */
  readonly missing: ReadonlyMap<number, string>
}

async function readPart(deps: ReconcileDependencies, source: ConfiguredBill, range: DayRange): Promise<Part> {
  const report = await readReport(deps, source, range)
  const days = daysOf(range)
  const missing = new Map(
    days.flatMap((day) => {
      const reason = report.missing(day)
      return reason === undefined ? [] : [[day, reason] as const]
    }),
  )
  const known = days.filter((day) => !missing.has(day))
  await deps.database.transaction((sql) => storeBill(sql, source.provider, { days: known, lines: report.lines }))
  return { range, known, missing }
}

async function comparePart(
  { database, clock }: ReconcileDependencies,
  { provider, keys }: ConfiguredBill,
  { range, known, missing }: Part,
): Promise<void> {
  // With a day on each side, where requests around midnight may be.
  const around = { from: range.from - dayMs, to: range.to + dayMs }
  const recorded = await readRecorded(database, provider, around)
  const stored = await readBill(database, provider, around)
  const billed = new Set(stored.map(({ day }) => day))
  const days = daysOf(range)
  const comparable = daysOf(around).filter((day) => known.includes(day) || (billed.has(day) && !days.includes(day)))
  for (const each of compareBill(stored, recorded, { days: comparable, keys })) {
    // The day on each side is compared by the run that reads it, with its own neighbours.
    if (!days.includes(each.day)) continue
    await database.transaction((sql) => storeComparison(sql, provider, each, clock.now()))
  }
  await database.transaction(async (sql) => {
    for (const [day, reason] of missing) await storeMissing(sql, provider, day, reason, clock.now())
  })
}

const defaultUrls = {
  anthropic: anthropicUrl,
  'anthropic-reports': anthropicUrl,
  openai: openaiUrl,
  openrouter: openrouterUrl,
}

async function readReport(
  { database, clock, pause = (milliseconds) => Bun.sleep(milliseconds) }: ReconcileDependencies,
  source: ConfiguredBill,
  range: DayRange,
): Promise<BillReport> {
  const { provider, format, adminKey, baseUrl, path, models } = source
  if (format === 'replies') return saidInReplies(await readRecorded(database, provider, range), range)
  if (billFileFormats.has(format)) {
    const file = { provider, path: path ?? '', models }
    return format === 'csv' ? readCsvBill(file, range) : readFocusBill(file, range)
  }
  const api: ApiSource = {
    reader: { provider, pause },
    baseUrl: baseUrl ?? defaultUrls[format as keyof typeof defaultUrls],
    adminKey: adminKey?.reveal() ?? '',
  }
  switch (format) {
    case 'anthropic':
      return await readAnthropicAnalytics(api, range)
    case 'anthropic-reports':
      return await readAnthropicReports(api, range)
    case 'openai':
      return await readOpenaiReports(api, range)
    default:
      return await readOpenrouterActivity(api, range, clock.now())
  }
}

/** What the provider said in its answers. An answer that says nothing counts as it was recorded. */
function saidInReplies({ days }: Recorded, { from, to }: DayRange): BillReport {
  const lines: BillLine[] = []
  for (const [day, models] of days) {
    if (day < from || day >= to) continue
    for (const [model, { said, requests, buckets }] of models) {
      if (said.requests === 0n) continue
      let pico = said.billed - said.recorded
      for (const amount of buckets.values()) pico += amount.pico
      lines.push({ day, model, key: '', bucket: '', tier: '', region: '', quantity: undefined, pico, requests })
    }
  }
  const known = new Set(lines.map(({ day }) => day))
  return {
    lines,
    missing: (day) => (known.has(day) ? undefined : `no answer of ${dayText(day)} says what the provider bills`),
  }
}
