/** @jsxImportSource preact */
// Every transfer of a wallet, newest first, with the balance after it; further pages on demand, and all of it as a file.

import { useState } from 'preact/hooks'
import type { Transfer } from '../manage/things.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Empty, Refused } from '../parts/resource-view.tsx'
import { usdText } from '../parts/usd-text.ts'
import type { ListAnswer } from '../parts/use-resource.ts'
import { Moment } from '../parts/zone.tsx'
import { readWholeLedger } from './read-ledger.ts'
import { csvText, type LedgerRow, withBalances } from './running-balance.ts'

export interface TransfersTableProps {
  readonly workspaceId: string
  /** As it was when the first page was read. */
  readonly balance: string
  readonly first: ListAnswer<Transfer>
}

export function TransfersTable({ workspaceId, balance, first }: TransfersTableProps) {
  const [shown, setShown] = useState(first)
  const more = useSubmit()
  const file = useSubmit()
  const older = () => {
    const path = `/api/workspaces/${workspaceId}/transfers?limit=50&cursor=${encodeURIComponent(shown.next_cursor ?? '')}`
    more.run(
      () => callApi<ListAnswer<Transfer>>(path),
      ({ data, next_cursor }) => setShown({ data: [...shown.data, ...data], next_cursor }),
    )
  }
  const download = () =>
    file.run(
      () => readWholeLedger(workspaceId),
      ({ wallet, transfers }) => offerFile(csvText(withBalances(wallet.balance, transfers)), `${workspaceId}.csv`),
    )
  if (shown.data.length === 0) {
    return (
      <Empty title="Nothing has moved yet">
        <p>Top up with the form above; the first call can be paid at once.</p>
      </Empty>
    )
  }
  return (
    <section class="manage" aria-label="Transfers">
      <header class="console-head">
        <h2>Transfers</h2>
        <button type="button" class="button quiet small" disabled={file.isBusy} onClick={download}>
          {file.isBusy ? 'Collecting …' : 'Download all as CSV'}
        </button>
      </header>
      {file.refusal && <Refused refusal={file.refusal} again={download} />}
      <DataTable
        caption="Transfers, newest first"
        columns={columns}
        rows={withBalances(balance, shown.data)}
        keyOf={({ id }) => id}
      />
      {more.refusal && <Refused refusal={more.refusal} again={older} />}
      {shown.next_cursor !== null && (
        <button type="button" class="button quiet" disabled={more.isBusy} onClick={older}>
          {more.isBusy ? 'Loading …' : 'Show older transfers'}
        </button>
      )}
    </section>
  )
}

const kinds: Readonly<Record<string, string>> = {
  charge: 'Charge',
  writeoff: 'Written off',
  topup: 'Top-up',
  grant: 'Grant',
  correction: 'Correction',
}

const columns: readonly Column<LedgerRow>[] = [
  {
    label: 'What',
    show: ({ kind, estimated }) => (
      <>
        <span class="row-name">{kinds[kind] ?? kind}</span>
        {estimated && <small>usage estimated</small>}
      </>
    ),
  },
  { label: 'When', show: ({ created_at }) => <Moment at={created_at} /> },
  { label: 'Amount', isNumber: true, show: (row) => `${signOf(row)}${usdText(row.amount)}` },
  { label: 'Balance after', isNumber: true, show: ({ balance }) => usdText(balance) },
  { label: 'For', show: (row) => <Purpose {...row} /> },
]

/** A write-off was not paid from the wallet. */
function signOf({ kind, direction }: LedgerRow): string {
  return kind === 'writeoff' ? '' : direction === 'in' ? '+' : '−'
}

function Purpose({ request_id, reference }: LedgerRow) {
  if (request_id === null)
    return <span class={reference === null ? 'muted' : undefined}>{reference ?? 'no reference'}</span>
  return (
    <>
      <a class="wrap" href={`/console/requests/${request_id}`}>
        <code>{request_id}</code>
      </a>{' '}
      {reference}
    </>
  )
}

function offerFile(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
