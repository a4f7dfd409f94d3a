// 30 days and 100,000 requests against fakes of the providers' reports. Without a disturbance nothing may differ; with all kinds
// planted that a report can show (ten for most), each must be found, and at least 95 % of the differences explained.
// `npm run reconcile`, or with `-- --requests 10000 --days 8`, and one report with `--format openai`.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type BillCause, type BillFormat, billCauses } from '../../src/kernel/bill.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { formatUsd, type Nano } from '../../src/kernel/money.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { listReconciliationCauses, listReconciliations } from '../../src/reconcile/rows.ts'
import { reconcile } from '../../src/reconcile/run.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { adminKey, startFakeBills } from './fake-bills.ts'
import { dayMs, firstDay, gatewayKey, provider, writeTraffic } from './traffic.ts'

const { values } = parseArgs({
  options: {
    days: { type: 'string', default: '30' },
    requests: { type: 'string', default: '100000' },
    format: { type: 'string' },
  },
})
const days = Number(values.days)
const requests = Number(values.requests)
const range = { from: firstDay, to: firstDay + days * dayMs }
const allCauses = Object.keys(billCauses) as BillCause[]

interface Report {
  readonly format: BillFormat
  /** The ids of the gateway's keys; undefined = the report does not tell keys apart. */
  readonly keys: readonly string[] | undefined
  readonly lacks: readonly BillCause[]
}

const keys = [gatewayKey]
const reports: readonly Report[] = [
  { format: 'anthropic', keys, lacks: [] },
  { format: 'anthropic-reports', keys, lacks: [] },
  { format: 'openai', keys, lacks: ['region'] },
  { format: 'openrouter', keys: undefined, lacks: ['tier', 'region', 'batch', 'midnight'] },
]
/** When the report is read: on the day after the last one, because OpenRouter keeps no more than 30 completed days. */
const clock = { ...systemClock, now: () => range.to + dayMs / 2 }

/** Whether it went as expected. */
async function run({ format, keys }: Report, planned: readonly BillCause[]): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-reconcile-'))
  const database = await openDatabase({ url: undefined, dataFolder: folder })
  await migrate({ database, clock })
  const traffic = await writeTraffic(database, { days, requests, disturbances: planned })
  using bills = startFakeBills(traffic.counted)
  const source = {
    ...{ provider, format, adminKey: new Secret(adminKey), baseUrl: bills.url },
    ...{ keys, path: undefined, models: {} },
  }
  const startedMs = clock.monotonicMs()
  const { compared, fault } = await reconcile({ database, clock }, source, range)
  const tookMs = Math.round(clock.monotonicMs() - startedMs)
  const rows = await listReconciliations(database.sql, range)
  const sum = (name: 'billed' | 'differences' | 'unexplained') => rows.reduce((all, row) => all + row[name], 0n)
  const causes = await listReconciliationCauses(database.sql, range)
  const [differences, unexplained] = [sum('differences'), sum('unexplained')]
  const share = differences === 0n ? 1 : Number(differences - unexplained) / Number(differences)
  const lacking = planned.filter((cause) => {
    const found = new Set(causes.filter((each) => each.cause === cause).map(({ day }) => (day - firstDay) / dayMs))
    return [...(traffic.planted.get(cause) ?? [])].some((day) => !found.has(day))
  })
  const facts = [
    `${format}: ${traffic.requests} requests, ${planned.length} kinds planted, ${compared} days`,
    `billed $${formatUsd(sum('billed') as Nano)}, differences $${formatUsd(differences as Nano)}`,
    `${(share * 100).toFixed(2)} % explained, not found: ${lacking.join(', ') || 'none'}`,
    `${tookMs} ms`,
    ...(fault === undefined ? [] : [fault]),
  ]
  console.log(facts.join('; '))
  await database.close()
  rmSync(folder, { recursive: true })
  const isExpected = planned.length === 0 ? differences === 0n : lacking.length === 0 && share >= 0.95
  return isExpected && fault === undefined && compared === days
}

let isGood = true
for (const report of reports.filter(({ format }) => [undefined, format].includes(values.format as BillFormat))) {
  isGood = (await run(report, [])) && isGood
  const planned = allCauses.filter((cause) => !report.lacks.includes(cause))
  isGood = (await run(report, planned)) && isGood
}
process.exit(isGood ? 0 : 1)
