// Handlers of providers' bills and of FOCUS files.

import { fileTypeOf } from '../../api/fields.ts'
import { billCauses } from '../../kernel/bill.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { formatUsd, type Nano, zeroNano } from '../../kernel/money.ts'
import { type DayRange, dayMs, dayText } from '../../reconcile/bill.ts'
import { exportFocus } from '../../reconcile/focus-export.ts'
import {
  listReconciliationCauses,
  listReconciliationLines,
  listReconciliations,
  listSources,
  type Reconciliation,
} from '../../reconcile/rows.ts'
import { type ConfiguredBill, reconcile } from '../../reconcile/run.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { type CsvValue, csvLine } from '../../wire/csv.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Call, Handlers } from './route.ts'

const usualDays = 30
const daysMax = 366
const causesMax = 500

export function billHandlers(deps: RouteDependencies) {
  const { database, clock } = deps
  const rangeOf = ({ from, to }: { from?: number | undefined; to?: number | undefined }, end: number): DayRange => {
    const until = Math.min(to ?? end, end)
    const range = { from: from ?? until - usualDays * dayMs, to: until }
    if (range.from >= range.to) throw invalidRequest('`from` must be before `to`, and a day that is over.', 'from')
    if (range.to - range.from > daysMax * dayMs) throw invalidRequest(`At most ${daysMax} days at once.`, 'from')
    return range
  }
  const today = () => clock.now() - (clock.now() % dayMs)
  const reportOf = async (range: DayRange, provider: string | undefined) => {
    const query = { ...range, provider }
    const [days, causes, states] = await Promise.all([
      listReconciliations(database.sql, query),
      listReconciliationCauses(database.sql, query),
      listSources(database.sql),
    ])
    const largest = causes.sort((a, b) => Number(size(b.amount) - size(a.amount)))
    return {
      from: dayText(range.from),
      to: dayText(range.to),
      sources: sourcesOf(deps.bills.sources(), states),
      total: figuresOf(days),
      days: days
        .sort((a, b) => (a.provider === b.provider ? b.day - a.day : a.provider < b.provider ? -1 : 1))
        .map((each) => ({
          ...{ provider: each.provider, day: dayText(each.day), missing: each.missing ?? null },
          ...figuresOf([each]),
        })),
      causes: largest.slice(0, causesMax).map(({ foreignKey, requestIds, ...each }) => ({
        ...{ provider: each.provider, day: dayText(each.day), model: each.model, cause: each.cause },
        ...{ meaning: billCauses[each.cause], amount: formatUsd(each.amount), quantity: each.quantity },
        ...{ requests: each.requests, request_ids: [...requestIds], foreign_key: foreignKey ?? null },
        detail: each.detail ?? null,
      })),
      causes_left_off: Math.max(0, largest.length - causesMax),
    }
  }
  return {
    async runReconciliation({ body, act }) {
      const range = rangeOf(body, today())
      const sources = chosen(deps.bills.sources(), body.provider)
      const runs = []
      for (const source of sources) runs.push(await reconcile({ database, clock }, source, range))
      const details = { from: dayText(range.from), to: dayText(range.to) }
      const object = sources.map(({ provider }) => provider).join(', ')
      await database.transaction((sql) => appendAudit(sql, { ...act, action: 'reconciliation.run', object, details }))
      return {
        runs: runs.map((run) => ({ ...run, fault: run.fault ?? null })),
        report: await reportOf(range, body.provider),
      }
    },
    getReconciliation: ({ query }) => reportOf(rangeOf(query, today()), query.provider),
    exportReconciliation: {
      async download({ query }) {
        const range = { ...rangeOf(query, today()), provider: query.provider }
        const rows = query.content === 'lines' ? await lineRows(deps, range) : await causeRows(deps, range)
        return {
          type: fileTypeOf[query.format],
          name: `reconciliation-${query.content}.${query.format}`,
          pieces: piecesOf(rows, query.format),
        }
      },
    },
    exportFocus: {
      async download({ query, signal }: Call<'exportFocus'>) {
        const { from, to } = rangeOf(query, today() + dayMs)
        const wanted = { from, to, content: query.content, by: query.by }
        return {
          type: fileTypeOf.csv,
          name: `focus-${query.content}.csv`,
          pieces: exportFocus({ ...database, signal }, wanted),
        }
      },
    },
  } satisfies Partial<Handlers>
}

function chosen(sources: readonly ConfiguredBill[], provider: string | undefined): readonly ConfiguredBill[] {
  const found = provider === undefined ? sources : sources.filter((source) => source.provider === provider)
  if (found.length > 0) return found
  const whose = provider === undefined ? 'No bill is' : `The bill of ${provider.slice(0, 60)} is not`
  throw new Failure(
    'NOT_FOUND',
    `${whose} configured. Add it under \`bills\` in the configuration file: see docs/operate/reconcile.md.`,
  )
}

function sourcesOf(sources: readonly ConfiguredBill[], states: Awaited<ReturnType<typeof listSources>>) {
  const ids = [
    ...new Set([...sources.map(({ provider }) => provider), ...states.map(({ provider }) => provider)]),
  ].sort()
  return ids.map((provider) => {
    const state = states.find((each) => each.provider === provider)
    return {
      ...{ provider, format: sources.find((each) => each.provider === provider)?.format ?? null },
      ...{ read_at: state?.endedAt === undefined ? null : isoTime(state.endedAt), fault: state?.fault ?? null },
    }
  })
}

function figuresOf(days: readonly Reconciliation[]) {
  const sum = (name: 'billed' | 'recorded' | 'differences' | 'unexplained' | 'foreignBilled') =>
    days.reduce((total, each) => (total + each[name]) as Nano, zeroNano)
  const [differences, unexplained] = [sum('differences'), sum('unexplained')]
  const share = differences === 0n ? null : Math.max(0, Number(differences - unexplained) / Number(differences))
  return {
    ...{ billed: formatUsd(sum('billed')), recorded: formatUsd(sum('recorded')) },
    difference: formatUsd((sum('billed') - sum('recorded')) as Nano),
    ...{ differences: formatUsd(differences), unexplained: formatUsd(unexplained), explained_share: share },
    foreign_billed: formatUsd(sum('foreignBilled')),
  }
}

type FileRow = Readonly<Record<string, CsvValue>>

async function lineRows({ database }: RouteDependencies, query: DayRange): Promise<FileRow[]> {
  const lines = await listReconciliationLines(database.sql, query)
  return lines.map(({ provider, day, model, bucket, billedQuantity, recordedQuantity, billed, recorded }) => ({
    ...{ provider, day: dayText(day), model, bucket },
    ...{ billed_quantity: billedQuantity, recorded_quantity: recordedQuantity },
    ...{ billed_usd: formatUsd(billed), recorded_usd: formatUsd(recorded) },
    difference_usd: formatUsd((billed - recorded) as Nano),
  }))
}

async function causeRows({ database }: RouteDependencies, query: DayRange): Promise<FileRow[]> {
  const causes = await listReconciliationCauses(database.sql, query)
  return causes.map(({ provider, day, model, cause, amount, quantity, requests, requestIds, foreignKey, detail }) => ({
    ...{ provider, day: dayText(day), model, cause, amount_usd: formatUsd(amount), quantity, requests },
    ...{ request_ids: requestIds.join(' '), foreign_key: foreignKey ?? null, detail: detail ?? null },
  }))
}

async function* piecesOf(rows: readonly FileRow[], format: 'csv' | 'jsonl'): AsyncGenerator<string> {
  if (format === 'csv') yield `${csvLine(Object.keys(rows[0] ?? { provider: '', day: '' }))}\n`
  for (const row of rows) yield `${format === 'csv' ? csvLine(Object.values(row)) : JSON.stringify(row)}\n`
}

function size(value: bigint): bigint {
  return value < 0n ? -value : value
}
