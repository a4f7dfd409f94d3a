/** @jsxImportSource preact */
// The audit log: who changed what, newest first, by filters in the address, and the same entries as a file. A click on an
// actor, an action or an object shows only its entries.

import { auditListed } from '../../first-calls.ts'
import { type ItemOf, targetOfCall, withQuery } from '../api.ts'
import { Button } from '../components.tsx'
import { CommittedField } from '../form.tsx'
import { type AddressQuery, useAddressQuery, useApi, useList } from '../hooks.ts'
import type { Column } from '../table.tsx'
import { emptyState, FilterFold, ListView } from './components.tsx'
import { Moment, TimeField, useTimeFormats } from './context.tsx'
import { auditLines, isoTimeOf } from './figures.ts'

type AuditEntry = ItemOf<'listAudit'>

const addressNames = ['actor', 'action', 'object', 'from', 'to'] as const
type Filters = AddressQuery<(typeof addressNames)[number]>

export function AuditView() {
  const [query, change] = useAddressQuery(addressNames)
  const filters = {
    actor: query.actor || undefined,
    action: query.action || undefined,
    object: query.object || undefined,
    from: isoTimeOf(query.from) || undefined,
    to: isoTimeOf(query.to) || undefined,
  }
  const list = useList('listAudit', { query: { limit: auditListed, ...filters } })
  const isFiltered = Object.values(filters).some((value) => value !== undefined)
  const link = (format: 'csv' | 'jsonl', label: string) => (
    <a href={targetOfCall('exportAudit', { query: { ...filters, format } }).path} download={`audit.${format}`}>
      {label}
    </a>
  )
  return (
    <>
      <FilterFold>
        <AuditFilters query={query} change={change} entries={list.items} isFiltered={isFiltered} />
      </FilterFold>
      <div class="between">
        <p class="row">
          <span class="hint">Export these entries:</span> {link('csv', 'CSV')} {link('jsonl', 'JSON lines')}
        </p>
        <p class="hint">
          Each entry contains the hash of the previous one: <code>tollgate audit verify</code> detects tampering.
        </p>
      </div>
      <div class="table-box">
        <ListView
          what="changes"
          list={list}
          caption="Changes, newest first"
          columns={auditColumns(query)}
          class="data-table audit-table"
          keyOf={({ sequence }) => String(sequence)}
          empty={
            isFiltered
              ? emptyState('No matching changes', 'Remove a filter or choose another period.')
              : emptyState('No changes yet', 'Created keys, projects, top-ups and other changes are listed here.')
          }
        />
      </div>
    </>
  )
}

interface AuditFiltersProps {
  readonly query: Filters
  readonly entries: readonly AuditEntry[]
  readonly isFiltered: boolean
  change(change: Partial<Filters>): void
}

function AuditFilters({ query, entries, isFiltered, change }: AuditFiltersProps) {
  const people = useApi('listMembers', { query: { limit: 200 } }).value?.data ?? []
  const time = (name: 'from' | 'to', label: string) => (
    <TimeField
      label={label}
      at={isoTimeOf(query[name]) === '' ? undefined : Date.parse(query[name])}
      onChange={(at) => change({ [name]: at })}
      onClear={() => change({ [name]: '' })}
    />
  )
  const suggested = (name: 'actor' | 'action' | 'object', label: string, values: readonly string[]) => (
    <>
      <CommittedField
        label={label}
        value={query[name]}
        attributes={{ type: 'search', list: `audit-${name}`, placeholder: 'All', 'data-search': name === 'actor' }}
        onChange={(value) => change({ [name]: value })}
      />
      <datalist id={`audit-${name}`}>
        {[...new Set(values)].map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </>
  )
  return (
    <section class="controls" aria-label="Filters">
      {suggested('actor', 'Who', [...people.map(({ email }) => email), ...entries.map(nameOf)])}
      {suggested(
        'action',
        'Action',
        entries.flatMap(({ action }) => [action.replace(/\..*/, ''), action]),
      )}
      {suggested(
        'object',
        'Object',
        entries.map(({ object }) => object),
      )}
      {time('from', 'From')}
      {time('to', 'To')}
      {isFiltered && (
        <Button look="quiet" onClick={() => change({ actor: '', action: '', object: '', from: '', to: '' })}>
          Clear filters
        </Button>
      )}
    </section>
  )
}

/** The address of a person; people are in the log by their id, so that nothing has to be erased from it. */
function nameOf({ actor, actor_email: email }: AuditEntry): string {
  return email ?? actor
}

function auditColumns(query: Filters): readonly Column<AuditEntry>[] {
  const only = (name: 'actor' | 'action' | 'object', value: string, title = value) => (
    <a href={withQuery('/console/audit', { ...query, [name]: value })} title={`Only this ${name}: ${title}`}>
      {value}
    </a>
  )
  return [
    { label: 'Time', isWhole: true, show: ({ at }) => <Moment at={at} /> },
    { label: 'Action', isWhole: true, show: ({ action }) => only('action', action) },
    { label: 'Who', isWhole: true, show: (entry) => only('actor', nameOf(entry), entry.actor) },
    { label: 'Object', show: ({ object }) => <code class="object">{only('object', object)}</code> },
    { label: 'Details', show: (entry) => <AuditDetails entry={entry} /> },
  ]
}

function AuditDetails({ entry }: { readonly entry: AuditEntry }) {
  const { moment } = useTimeFormats()
  const lines = auditLines(entry, moment)
  if (lines.length === 0) return <span class="muted">none</span>
  return (
    <ul class="plain tight">
      {lines.map(({ name, text, isRaw }) => (
        <li key={name} class="wrap">
          {name !== '' && `${name}: `}
          {isRaw ? <code>{text}</code> : text}
        </li>
      ))}
    </ul>
  )
}
