/** @jsxImportSource preact */
// Who changed what, newest first. The log only grows; nothing here can change it.

import { LoadedView } from '../manage/loaded-view.tsx'
import type { AuditEntry } from '../manage/things.ts'
import { usePages } from '../manage/use-pages.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Empty, Refused } from '../parts/resource-view.tsx'
import { Moment, useZone } from '../parts/zone.tsx'
import { auditLines } from './audit-words.ts'

export function AuditLog() {
  const { first, items, hasMore, isBusy, refusal, more } = usePages<AuditEntry>('/api/audit?limit=50')
  return (
    <section class="manage" aria-label="Audit log">
      <header class="console-head">
        <h2>Audit log</h2>
        <span class="hint">Each entry carries the hash of the one before: a later change to it would show.</span>
      </header>
      <LoadedView what="the audit log" loaded={first}>
        {() =>
          items.length === 0 ? (
            <Empty title="Nothing was changed yet">
              <p>The first key, project or top-up you make will stand here.</p>
            </Empty>
          ) : (
            <DataTable
              caption="Changes, newest first"
              columns={columns}
              rows={items}
              keyOf={({ sequence }) => String(sequence)}
            />
          )
        }
      </LoadedView>
      {refusal && <Refused refusal={refusal} again={more} />}
      {hasMore && (
        <p>
          <button type="button" class="button quiet" disabled={isBusy} onClick={more}>
            {isBusy ? 'Loading …' : 'Show older changes'}
          </button>
        </p>
      )}
    </section>
  )
}

const columns: readonly Column<AuditEntry>[] = [
  { label: 'What', isWhole: true, show: ({ action }) => <strong>{action}</strong> },
  { label: 'When', isWhole: true, show: ({ at }) => <Moment at={at} /> },
  { label: 'Who', isWhole: true, show: ({ actor }) => actor },
  { label: 'To', show: ({ object }) => <code class="object">{object}</code> },
  { label: 'Details', show: (entry) => <Details entry={entry} /> },
]

function Details({ entry }: { readonly entry: AuditEntry }) {
  const { moment } = useZone()
  const lines = auditLines(entry, moment)
  if (lines.length === 0) return <span class="muted">none</span>
  return (
    <ul class="details">
      {lines.map(({ name, text, isRaw }) => (
        <li key={name}>
          {name !== '' && `${name}: `}
          {isRaw ? <code class="wrap">{text}</code> : <span class="wrap">{text}</span>}
        </li>
      ))}
    </ul>
  )
}
