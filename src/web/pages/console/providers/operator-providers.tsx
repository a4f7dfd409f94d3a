/** @jsxImportSource preact */
// The providers that the operator has switched on: where from, with which key, and what was charged for what only they
// serve. They are changed where they were declared, and only shown and tried here.

import { useEffect, useState } from 'preact/hooks'
import { systemClock } from '../../../../kernel/clock.ts'
import { formatUsd, type Nano, parseUsd } from '../../../../kernel/money.ts'
import { exactCount } from '../../../catalog/figures.ts'
import { Amount } from '../parts/amount.tsx'
import type { StatsAnswer } from '../parts/api-answers.ts'
import { withQuery } from '../parts/call-api.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Loading, Refused } from '../parts/resource-view.tsx'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'
import { KeyTest } from './key-test.tsx'
import type { RoutesTableProps } from './routes-table.tsx'

interface ProviderItem {
  readonly id: string
  readonly origin: 'environment' | 'file' | 'built_in' | 'found'
  readonly source: string
  readonly last4: string | null
  readonly address: string | null
  readonly models: number
}

interface Row extends ProviderItem {
  /** undefined = other providers serve its models too, so that nobody can tell. */
  readonly spent: string | undefined
}

const weekMs = 7 * 86_400_000

export function OperatorProviders({ providers }: { readonly providers: readonly RoutesTableProps[] }) {
  const { value, refusal, again } = useResource<ListAnswer<ProviderItem>>('/api/providers')
  const [from, setFrom] = useState<string | undefined>(undefined)
  useEffect(() => setFrom(new Date(systemClock.now() - weekMs).toISOString()), [])
  const { value: stats } = useResource<StatsAnswer>(from && withQuery('/api/stats', { from }))
  const rows = value?.data.map((item) => ({ ...item, spent: stats && spentAt(item.id, providers, stats) }))
  return (
    <section class="manage" aria-label="Providers that are switched on">
      <h2>Providers that are switched on</h2>
      {refusal && <Refused refusal={refusal} again={again} />}
      {!rows && !refusal && <Loading what="the providers" />}
      {rows && <DataTable caption="Providers" columns={columns} rows={rows} keyOf={({ id }) => id} />}
      <p class="hint">
        A test sends an empty request, which generates nothing and costs nothing. The charge is told where every model
        of a provider is served by it alone.
      </p>
    </section>
  )
}

/** Only where it is certain: each of its models has routes to nobody else, and no sum was left off. */
function spentAt(id: string, providers: readonly RoutesTableProps[], stats: StatsAnswer): string | undefined {
  const entries = providers.find(({ provider }) => provider === id)?.rows.map(({ entry }) => entry) ?? []
  const isAlone = entries.every(({ routes }) => routes.every(({ provider }) => provider === id))
  if (entries.length === 0 || !isAlone || stats.groups_left_off > 0) return undefined
  const ids = new Set(entries.map((entry) => entry.id))
  const sum = stats.groups.reduce((total, group) => total + (ids.has(group.id) ? (parseUsd(group.cost) ?? 0n) : 0n), 0n)
  return formatUsd(sum as Nano)
}

const columns: readonly Column<Row>[] = [
  { label: 'Provider', show: ({ id }) => <span class="row-name">{id}</span> },
  {
    label: 'Key',
    show: ({ last4 }) => (last4 === null ? <span class="muted">needs none</span> : <code>…{last4}</code>),
  },
  { label: 'From', show: (row) => <Origin {...row} /> },
  { label: 'Address', show: ({ address }) => address ?? 'inside the gateway' },
  { label: 'Models', isNumber: true, show: ({ models }) => exactCount(models) },
  {
    label: 'Charged, 7 days',
    isNumber: true,
    show: ({ spent }) => (spent === undefined ? <span class="muted">not known</span> : <Amount usd={spent} />),
  },
  { label: 'Test', show: ({ id }) => <KeyTest provider={id} path={`/api/providers/${id}/test`} /> },
]

function Origin({ origin, source }: ProviderItem) {
  if (origin === 'built_in') return <>built in</>
  const words = { environment: 'environment', file: 'file', found: 'found on this machine' }[origin]
  return (
    <>
      {words}
      <small class="row-note">
        <code>{source}</code>
      </small>
    </>
  )
}
