/** @jsxImportSource preact */
// Providers' bills, for operators: billed, recorded, the difference, and why they differ.

import { isoTime } from '../../../kernel/clock.ts'
import { countOf, exactCount, percentText } from '../../catalog/format.ts'
import { billsQuery } from '../../first-calls.ts'
import type { WorkspacesData } from '../../page-data.ts'
import { type AnswerOf, callApi, withQuery } from '../api.ts'
import { Amount, Percent } from '../components.tsx'
import { Field } from '../form.tsx'
import { useAddressQuery, useApi } from '../hooks.ts'
import { amountColumn, type Column, DataTable } from '../table.tsx'
import { Card, emptyState, QueryView, Section, Tiles } from './components.tsx'
import { marginRanges } from './figures.ts'
import { FormDialog, useOverlay } from './overlay.tsx'

type Report = AnswerOf<'getReconciliation'>
type Day = Report['days'][number]
type Cause = Report['causes'][number]

export function BillsView({ now }: WorkspacesData) {
  const [query, change] = useAddressQuery(['range'])
  const range = marginRanges.find(({ value }) => value === query.range)?.value ?? '30d'
  const wanted = billsQuery(range, now)
  const report = useApi('getReconciliation', { query: wanted }, { keepPrevious: true })
  const { open } = useOverlay()
  const read = () =>
    open(
      <FormDialog
        title="Read the bills now"
        label="Read"
        intro="Reads what providers billed in this time range and compares it. A month may take some minutes."
        initial={{}}
        rows={[]}
        send={() => callApi('runReconciliation', { body: wanted })}
        onDone={report.reload}
      />,
    )
  return (
    <>
      <div class="controls">
        <Field
          label="Time range"
          value={range}
          options={marginRanges.map(({ value, label }) => ({ value, label }))}
          onChange={(next) => change({ range: next })}
        />
      </div>
      <QueryView what="the bills" query={report}>
        {(found) => <Comparison report={found} read={read} />}
      </QueryView>
    </>
  )
}

function Comparison({ report, read }: { readonly report: Report; readonly read: () => void }) {
  const { total, days, causes, causes_left_off: leftOff, sources } = report
  const compared = days.filter(({ missing }) => missing === null)
  const faults = sources.filter(({ fault }) => fault !== null)
  if (sources.length === 0) {
    return (
      <Card title="No bills are configured">
        <p>
          Name them under <code>bills</code> in the configuration file, each with an admin key of its own. The
          documentation has an example for every provider: <a href="/docs/operate/reconcile">Reconcile bills</a>.
        </p>
      </Card>
    )
  }
  return (
    <>
      <Tiles
        tiles={[
          {
            label: 'Billed',
            value: <Amount usd={total.billed} />,
            note: `${countOf(compared.length, 'day')} compared`,
          },
          { label: 'Recorded', value: <Amount usd={total.recorded} />, note: 'the cost of answers' },
          { label: 'Difference', value: <Amount usd={total.difference} />, note: 'billed less recorded' },
          {
            label: 'Explained',
            value: total.explained_share === null ? '–' : percentText(total.explained_share),
            note: total.explained_share === null ? 'nothing differs' : 'of the differences of all models and buckets',
          },
        ]}
      />
      {faults.map(({ provider, fault }) => (
        <p class="hint" role="status" key={provider}>
          {fault}
        </p>
      ))}
      <Section title="Days" action={{ label: 'Read the bills now', run: read }}>
        <div class="table-box">
          <DataTable
            class="data-table summary-table"
            caption="Bills by provider and day, newest first"
            columns={dayColumns}
            rows={days}
            keyOf={({ provider, day }) => `${provider} ${day}`}
            empty={emptyState('No day was compared yet', 'The bills are read every day; or read them now.')}
          />
        </div>
      </Section>
      <Section title="Why they differ">
        <div class="table-box">
          <DataTable
            class="data-table summary-table"
            caption="Causes, largest first"
            columns={causeColumns}
            rows={causes}
            keyOf={({ provider, day, model, cause, foreign_key }) =>
              [provider, day, model, cause, foreign_key].join(' ')
            }
            empty={emptyState('Nothing differs', 'Causes of differences appear here, with the requests that fit.')}
          />
        </div>
        {leftOff > 0 && <p class="hint">{exactCount(leftOff)} more are in the export.</p>}
        <p class="hint">
          <a href={exportPath(report, 'lines')}>Download the comparison as CSV</a>, or{' '}
          <a href={exportPath(report, 'causes')}>its causes with the ids of all requests</a>.
        </p>
      </Section>
    </>
  )
}

function exportPath({ from, to }: Report, content: 'lines' | 'causes'): string {
  return withQuery('/api/reconciliations/export', { from, to, content, format: 'csv' })
}

const dayColumns: readonly Column<Day>[] = [
  { label: 'Day (UTC)', isWhole: true, show: ({ day }) => day },
  { label: 'Provider', show: ({ provider }) => provider },
  amountColumn('Billed', ({ billed, missing }) => (missing === null ? billed : null)),
  amountColumn('Recorded', ({ recorded, missing }) => (missing === null ? recorded : null)),
  amountColumn('Difference', ({ difference, missing }) => (missing === null ? difference : null)),
  {
    label: 'Explained',
    isNumber: true,
    show: ({ explained_share, missing }) => (missing === null ? <Percent share={explained_share} /> : missing),
  },
]

const causeColumns: readonly Column<Cause>[] = [
  { label: 'Cause', show: ({ meaning, foreign_key: key }) => (key === null ? meaning : `${meaning}: key ${key}`) },
  amountColumn('Amount', ({ amount }) => amount),
  { label: 'Day (UTC)', isWhole: true, show: ({ day }) => day },
  { label: 'Model', show: ({ provider, model }) => `${model} at ${provider}` },
  { label: 'Tokens', isNumber: true, show: ({ quantity }) => (quantity === 0 ? '–' : exactCount(quantity)) },
  { label: 'Requests', show: (cause) => <Requests cause={cause} /> },
]

function Requests({ cause: { requests, request_ids: ids, detail, day } }: { readonly cause: Cause }) {
  const [first] = ids
  if (first === undefined) return <>{detail ?? '–'}</>
  const from = isoTime(Date.parse(`${day}T00:00:00Z`))
  return (
    <span title={`On ${from.slice(0, 10)}`}>
      <a href={`/console/all/requests/${first}`}>{first}</a>
      {requests > 1 && ` and ${exactCount(requests - 1)} more`}
    </span>
  )
}
