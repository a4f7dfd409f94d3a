/** @jsxImportSource preact */
// The routes of one provider: state, wait and figures of each, as the router has them. A figure without enough traffic
// behind it is left out and says so.

import { type CatalogEntry, type CatalogRoute, modelPath } from '../../../catalog/entry.ts'
import { countOf } from '../../../catalog/figures.ts'
import { routeStanding } from '../../../catalog/standing.ts'
import { Measured } from '../../catalog/measured.tsx'
import { CopyButton } from '../../shell/copy-button.tsx'
import { Lamp } from '../../shell/lamp.tsx'
import { modelText } from '../manage/declared-text.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'

export interface RouteRow {
  readonly entry: CatalogEntry
  readonly route: CatalogRoute
}

export interface RoutesTableProps {
  readonly provider: string
  readonly rows: readonly RouteRow[]
}

/** Every provider with its routes; those with trouble first, then by name. */
export function providersOf(entries: readonly CatalogEntry[]): readonly RoutesTableProps[] {
  const byProvider = new Map<string, RouteRow[]>()
  for (const entry of entries) {
    for (const route of entry.routes) {
      const rows = byProvider.get(route.provider)
      if (rows) rows.push({ entry, route })
      else byProvider.set(route.provider, [{ entry, route }])
    }
  }
  return [...byProvider]
    .map(([provider, rows]) => ({ provider, rows }))
    .sort((a, b) => troubles(b.rows) - troubles(a.rows) || (a.provider < b.provider ? -1 : 1))
}

export function RoutesTable({ provider, rows }: RoutesTableProps) {
  const open = rows.length - troubles(rows)
  return (
    <section class="manage" aria-label={`Routes at ${provider}`}>
      <h3>
        {provider}{' '}
        <small>
          {open === rows.length ? allOpen(rows.length) : `${open} of ${countOf(rows.length, 'route')} open`}
        </small>
      </h3>
      <DataTable
        caption={`Routes at ${provider}`}
        columns={columns}
        rows={rows}
        keyOf={({ entry, route }) => `${entry.id} ${route.upstream_model}`}
      />
    </section>
  )
}

function allOpen(count: number): string {
  return count === 1 ? '1 route, open' : `${countOf(count, 'route')}, all open`
}

function troubles(rows: readonly RouteRow[]): number {
  return rows.filter(({ route }) => routeStanding(route).signal === 'stop').length
}

const columns: readonly Column<RouteRow>[] = [
  {
    label: 'Model',
    show: ({ entry, route }) => (
      <>
        <a class="wrap" href={modelPath(entry.id)}>
          {entry.id}
        </a>
        {route.upstream_model !== entry.id && (
          <small class="row-note">
            as <code>{route.upstream_model}</code>
          </small>
        )}
      </>
    ),
  },
  { label: 'State', show: ({ route }) => <Standing route={route} /> },
  {
    label: 'First token',
    isNumber: true,
    show: ({ route }) => <Measured figures={route.first_event_ms} unit="time" isRehearsed={route.rehearsal === true} />,
  },
  {
    label: 'Tokens/s',
    isNumber: true,
    show: ({ route }) => (
      <Measured figures={route.tokens_per_second} unit="tokens" isRehearsed={route.rehearsal === true} />
    ),
  },
  {
    label: 'Order',
    show: ({ route: { priority, weight, factor } }) => (
      <>
        priority {priority}
        <small class="row-note">
          weight {weight}
          {factor !== undefined && factor < 1 && `, now ${Math.round(factor * 100)} % of it`}
        </small>
      </>
    ),
  },
  { label: 'Declared', show: ({ entry }) => <Source entry={entry} /> },
]

function Standing({ route }: { readonly route: CatalogRoute }) {
  const standing = routeStanding(route)
  return (
    <>
      <Lamp {...standing} />
      {standing.detail !== '' && <small class="row-note">{standing.detail}</small>}
    </>
  )
}

/** Read-only: what a file declares is changed in the file. */
function Source({ entry }: { readonly entry: CatalogEntry }) {
  return (
    <>
      {entry.source}
      <CopyButton text={modelText(entry)} what={`YAML of ${entry.id}`} label="YAML" />
    </>
  )
}
