// `tollgate reconcile` and `tollgate focus`: providers' bills against what was recorded, and FOCUS files.

import type { AnswerOf } from '../../api/client.ts'
import type { CommandContext, CommandDefinition } from '../command.ts'
import { answerCommand, downloadCommand } from '../operation-command.ts'
import { type Columns, renderTable, shownCount, shownUsd } from '../values.ts'

type Report = AnswerOf<'getReconciliation'>
type Day = Omit<Report['days'][number], 'missing'> & { readonly missing: string | null }
type Cause = Report['causes'][number]

/** As long as a month of a large report takes, with waits for the provider. */
const runTimeoutMs = 30 * 60_000
const causesShown = 20

const periodOptions = {
  provider: { value: 'ID', help: 'only the bill of this provider', field: 'provider' },
  from: { value: 'DAY', help: 'the first UTC day, such as 2026-11-01 (30 days before the last)', field: 'from' },
  to: { value: 'DAY', help: 'the day after the last one (today)', field: 'to' },
} as const

const dayColumns: Columns<Day> = [
  ['PROVIDER', ({ provider }) => provider],
  ['DAY (UTC)', ({ day }) => day],
  ['BILLED', ({ billed, missing }) => (missing === null ? shownUsd(billed) : undefined), 'right'],
  ['RECORDED', ({ recorded, missing }) => (missing === null ? shownUsd(recorded) : undefined), 'right'],
  ['DIFFERENCE', ({ difference, missing }) => (missing === null ? shownUsd(difference) : undefined), 'right'],
  [
    'EXPLAINED',
    ({ explained_share: share }) => (share === null ? undefined : `${(share * 100).toFixed(1)} %`),
    'right',
  ],
  ['', ({ missing }) => missing ?? undefined],
]

const causeColumns: Columns<Cause> = [
  ['AMOUNT', ({ amount }) => shownUsd(amount), 'right'],
  ['CAUSE', ({ cause }) => cause],
  ['PROVIDER', ({ provider }) => provider],
  ['DAY (UTC)', ({ day }) => day],
  ['MODEL', ({ model }) => model],
  ['TOKENS', ({ quantity }) => shownCount(quantity), 'right'],
  ['REQUESTS', ({ requests }) => shownCount(requests), 'right'],
  ['FIRST, OR DETAIL', ({ request_ids: [first], detail }) => detail ?? first],
]

function reportText({ days, total, causes, causes_left_off: leftOff, sources }: Report, { terminal }: CommandContext) {
  const sum: Day = { provider: 'total', day: '', missing: null, ...total }
  const parts = [renderTable(dayColumns, [...days, sum], terminal)]
  const shown = causes.slice(0, causesShown)
  if (shown.length > 0) parts.push('\nWhy they differ, largest first:\n', renderTable(causeColumns, shown, terminal))
  const more = causes.length - shown.length + leftOff
  if (more > 0) parts.push(`${more} more: tollgate reconcile export --content causes\n`)
  for (const { provider, fault } of sources) if (fault !== null) parts.push(`\n${provider}: ${fault}\n`)
  return parts.join('')
}

const details = `Each provider's bill is read where \`bills\` of the configuration file says, by UTC day, model, key and bucket, and compared with
the requests that went there. It only reads from providers, and a second run changes nothing: docs/operate/reconcile.md.`

const run = answerCommand({
  words: ['reconcile', 'run'],
  isDefault: true,
  summary: 'reads the bills of providers and compares them with what was recorded',
  details,
  examples: ['tollgate reconcile', 'tollgate reconcile --provider openai --from 2026-11-01 --to 2026-12-01'],
  operation: 'runReconciliation',
  options: periodOptions,
  timeoutMs: runTimeoutMs,
  text: ({ report }, context) => reportText(report, context),
})

const report = answerCommand({
  words: ['reconcile', 'report'],
  summary: 'shows what the last runs found, without reading bills again',
  details,
  examples: ['tollgate reconcile report', 'tollgate reconcile report --from 2026-11-01 --json'],
  operation: 'getReconciliation',
  options: periodOptions,
  text: reportText,
})

const exported = downloadCommand({
  words: ['reconcile', 'export'],
  summary: 'prints the comparison by day, model and bucket as CSV, or its causes',
  examples: ['tollgate reconcile export > november.csv', 'tollgate reconcile export --content causes --json'],
  operation: 'exportReconciliation',
  options: {
    content: { value: 'WHAT', help: 'lines or causes (lines)', field: 'content' },
    ...periodOptions,
  },
  body: ({ json }) => ({ format: json ? ('jsonl' as const) : ('csv' as const) }),
  whenEmpty: 'No comparison in that time. Run tollgate reconcile first.\n',
})

const focus = downloadCommand({
  words: ['focus', 'export'],
  isDefault: true,
  summary: 'prints charges or costs as a FOCUS 1.2 file, one row for each kind of token',
  details: `The rows of a period add up to the ledger, to the nano-dollar. Charges are what workspaces paid; costs are what providers
probably bill, failed attempts included.`,
  examples: [
    'tollgate focus > charges.csv',
    'tollgate focus --content costs --by request --from 2026-11-01 --to 2026-12-01 > costs.csv',
  ],
  operation: 'exportFocus',
  options: {
    content: { value: 'WHAT', help: 'charges or costs (charges)', field: 'content' },
    by: { value: 'PERIOD', help: 'day or request (day)', field: 'by' },
    from: { value: 'DAY', help: 'the first UTC day (30 days before the last)', field: 'from' },
    to: { value: 'DAY', help: 'the day after the last one (tomorrow)', field: 'to' },
  },
  whenEmpty: 'No charges in that time.\n',
})

export const billCommands: readonly CommandDefinition[] = [run, report, exported, focus]
