/** @jsxImportSource preact */
// What the pages of a key and of a project share: their usage over time, which leads to the usage explorer, and their newest
// requests.

import { useState } from 'preact/hooks'
import { isoTime } from '../../../kernel/clock.ts'
import { exactCount } from '../../catalog/format.ts'
import { withQuery } from '../api.ts'
import { Amount, Facts, Segments } from '../components.tsx'
import { useApi, useList } from '../hooks.ts'
import { Card, ListView, QueryView } from './components.tsx'
import { useTimeFormats } from './context.tsx'
import { dayMs, ranges } from './figures.ts'
import { useConsolePath } from './navigation.ts'
import { recentColumns } from './request-columns.tsx'
import { metrics, SeriesChart, useNow } from './usage-explorer.tsx'

interface OwnerProps {
  readonly kind: 'key' | 'project'
  readonly id: string
}

const shownMetrics = metrics.filter(({ isSum }) => isSum)

/** Spend, requests, tokens and errors of a key or project by model. */
export function UsageCard({ kind, id }: OwnerProps) {
  const to = useConsolePath()
  const { zoneName } = useTimeFormats()
  const [days, setDays] = useState<(typeof ranges)[number]['value']>('7d')
  const [chosen, setChosen] = useState<string>('spend')
  const now = useNow()
  const range = ranges.find(({ value }) => value === days) ?? ranges[0]
  const metric = shownMetrics.find(({ value }) => value === chosen) ?? metrics[0]
  const offsetMinutes = zoneName === 'UTC' || now === undefined ? 0 : -new Date(now).getTimezoneOffset()
  const query = useApi(
    'getUsageSeries',
    now === undefined
      ? undefined
      : {
          query: {
            ...{ [`${kind}_id`]: id, group_by: 'model', utc_offset_minutes: offsetMinutes },
            ...{ from: isoTime(now - range.days * dayMs), to: isoTime(now) },
          },
        },
    { keepPrevious: true },
  )
  return (
    <Card
      title="Usage"
      action={<Segments name="Period" value={days} options={shortRanges} onChange={(next) => setDays(next)} />}
    >
      <QueryView what="usage" query={query}>
        {(usage) => (
          <>
            <Facts
              facts={[
                ['Spend', <Amount key="spend" usd={usage.total.cost} />],
                ['Requests', exactCount(usage.total.requests)],
                ['Errors', exactCount(usage.total.errors)],
                ['Tokens', exactCount(usage.total.input_tokens + usage.total.output_tokens)],
              ]}
            />
            {usage.total.requests > 0 && (
              <>
                <Segments name="Metric" value={metric.value} options={shownMetrics} onChange={setChosen} />
                <div class="small-chart">
                  <SeriesChart {...{ usage, metric, offsetMinutes }} group="model" filter={{ [kind]: id }} />
                </div>
              </>
            )}
          </>
        )}
      </QueryView>
      <p>
        <a href={withQuery(to('usage'), { [kind]: id, range: range.value, metric: metric.value })}>
          Open in the usage explorer
        </a>
      </p>
    </Card>
  )
}

const shortRanges = ranges.map(({ value }) => ({ value, label: value }))

export function RecentRequests({ kind, id }: OwnerProps) {
  const to = useConsolePath()
  const list = useList('listRequests', { query: { [`${kind}_id`]: id, limit: 10 } })
  return (
    <Card
      title="Recent requests"
      action={<a href={withQuery(to('requests'), { range: '30d', [kind]: id })}>All requests</a>}
    >
      <ListView
        what="requests"
        list={{ ...list, hasMore: false }}
        caption="Its newest requests"
        class="data-table request-table"
        columns={recentColumns}
        hrefOf={(row) => to(`requests/${row.id}`)}
        empty={<p class="muted">No requests yet.</p>}
      />
    </Card>
  )
}
