/** @jsxImportSource preact */
// Requests as rows: when, how it ended, what was asked for, where it went, how long it took, what it cost.

import { exactCount, shortMs } from '../../../catalog/figures.ts'
import { Amount } from '../parts/amount.tsx'
import type { RequestItem, UsageItem } from '../parts/api-answers.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Outcome } from '../parts/outcome.tsx'
import { Moment } from '../parts/zone.tsx'

const columns: readonly Column<RequestItem>[] = [
  { label: 'Time', show: ({ started_at: at }) => <Moment at={at} /> },
  { label: 'Outcome', show: (request) => <Outcome request={request} /> },
  { label: 'Model', show: ({ model, path }) => model ?? <span class="muted">{path}</span> },
  { label: 'Via', show: viaText },
  { label: 'In', isNumber: true, show: ({ usage }) => (usage ? exactCount(inputOf(usage)) : '–') },
  { label: 'Out', isNumber: true, show: ({ usage }) => (usage ? exactCount(usage.output_tokens) : '–') },
  { label: 'First token', isNumber: true, show: ({ first_event_ms: ms }) => (ms === null ? '–' : shortMs(ms)) },
  { label: 'Total', isNumber: true, show: ({ total_ms: ms }) => shortMs(ms) },
  { label: 'Cost', isNumber: true, show: ({ cost }) => <Amount usd={cost} /> },
]

export function RequestTable({ requests }: { readonly requests: readonly RequestItem[] }) {
  return (
    <DataTable
      caption="Requests, newest first"
      columns={columns}
      rows={requests}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => `/console/requests/${id}`}
    />
  )
}

function viaText({ provider, attempts }: RequestItem): string {
  if (provider === null) return '–'
  return attempts.length > 1 ? `${provider}, ${attempts.length} attempts` : provider
}

function inputOf(usage: UsageItem): number {
  return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.cache_write_1h_tokens
}
