/** @jsxImportSource preact */
// Usage by session, agent, end user, tag, route and others, with what prompt caches saved. Some groups are summed up from the
// rows of the log, so it is read when the page opens or a choice changes, and not with every refresh.

import { useEffect, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { exactCount } from '../../catalog/format.ts'
import { type AnswerOf, type CallOf, withQuery } from '../api.ts'
import { CommittedField, Field } from '../form.tsx'
import { useApi } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Amount, Card, LongRead, QueryView } from './components.tsx'
import { Moment } from './context.tsx'
import { dayMs } from './figures.ts'

/** `filter`: the parameter of the request list that selects a group. */
const groups = [
  { value: 'model', label: 'Model', filter: 'model' },
  { value: 'route', label: 'Route', filter: undefined },
  { value: 'key', label: 'Key', filter: 'key' },
  { value: 'session', label: 'Session', filter: 'session' },
  { value: 'agent', label: 'Agent', filter: 'agent' },
  { value: 'user', label: 'End user', filter: 'user' },
  { value: 'tag', label: 'Tag', filter: 'tag' },
] as const

type Report = AnswerOf<'getUsage'>
type Row = Report['groups'][number]

const columns: readonly Column<Row>[] = [
  { label: 'Spend', isNumber: true, show: ({ cost }) => <Amount usd={cost} /> },
  { label: 'Requests', isNumber: true, show: ({ requests }) => exactCount(requests) },
  { label: 'Input tokens', isNumber: true, show: ({ input_tokens: tokens }) => exactCount(tokens) },
  { label: 'Cached', isNumber: true, show: ({ cache_read_tokens: tokens }) => exactCount(tokens) },
  { label: 'Cache hit rate', isNumber: true, show: ({ cache_hit_rate: rate }) => rateText(rate) },
  { label: 'Cache savings', isNumber: true, show: ({ cache_saved: saved }) => <Amount usd={saved} /> },
]

function rateText(rate: number | null): string {
  return rate === null ? '–' : `${(rate * 100).toFixed(1)} %`
}

interface UsageReportProps {
  readonly days: number
  readonly filters: Pick<NonNullable<CallOf<'getUsage'>['query']>, 'workspace_id' | 'key_id' | 'project_id'>
  /** Of the address: one of the groups, or `tag:NAME`. */
  readonly by: string
  onChoose(by: string): void
}

export function UsageReport({ days, filters, by, onChoose }: UsageReportProps) {
  const [kind, tag = ''] = by.split(':', 2)
  const group = groups.find(({ value }) => value === kind) ?? groups[0]
  const [now, setNow] = useState<number | undefined>(undefined)
  useEffect(() => setNow(systemClock.now()), [days, by])
  const isComplete = group.value !== 'tag' || tag !== ''
  const query = { from: isoTime((now ?? 0) - days * dayMs), ...filters }
  const groupBy = group.value === 'tag' ? `tag:${tag}` : group.value
  const wanted = now === undefined || !isComplete ? undefined : { ...query, group_by: groupBy }
  const report = useApi('getUsage', wanted && { query: wanted }, { keepPrevious: true })
  return (
    <Card
      title="Attribution and prompt cache"
      action={
        <>
          <Field label="Attribute to" value={group.value} options={groups} onChange={onChoose} />
          {group.value === 'tag' && (
            <CommittedField
              label="Tag name"
              value={tag}
              attributes={{ placeholder: 'team' }}
              onChange={(name) => onChoose(`tag:${name}`)}
            />
          )}
        </>
      }
    >
      <LongRead query={report} estimate={wanted} />
      {isComplete ? (
        <QueryView what="the report" query={report}>
          {(value) => <ReportTable report={value} group={group} tag={tag} />}
        </QueryView>
      ) : (
        <p class="hint">Name a tag that clients send in x-tollgate-tags, such as team.</p>
      )}
    </Card>
  )
}

interface ReportTableProps {
  readonly report: Report
  readonly group: (typeof groups)[number]
  readonly tag: string
}

function ReportTable({ report, group: { value, label, filter }, tag }: ReportTableProps) {
  const { from, groups: rows, groups_left_off: leftOff, total, log_from: logFrom } = report
  const title = value === 'tag' ? tag : label
  const first: Column<Row> = {
    label: title,
    show: ({ values: [id], names: [name] }) => name ?? id ?? <span class="muted">none named</span>,
  }
  const hrefOf = ({ values: [id] }: Row) =>
    id == null || filter === undefined
      ? undefined
      : withQuery('/console/requests', { from, [filter]: value === 'tag' ? `${tag}=${id}` : id })
  return (
    <>
      <p>
        {rateText(total.cache_hit_rate)} of the input came from prompt caches, which saved{' '}
        <Amount usd={total.cache_saved} />.
      </p>
      <DataTable
        caption={`Usage by ${title.toLowerCase()}, highest spend first`}
        columns={[first, ...columns]}
        rows={rows}
        keyOf={({ values: [id] }) => id ?? ''}
        hrefOf={hrefOf}
      />
      {leftOff > 0 && <p class="hint">{exactCount(leftOff)} more with lower spend are not shown.</p>}
      {logFrom !== null && logFrom > from && (
        <p class="hint">
          From the request log, which begins at <Moment at={logFrom} />.
        </p>
      )}
    </>
  )
}
