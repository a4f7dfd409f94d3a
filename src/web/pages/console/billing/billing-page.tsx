/** @jsxImportSource preact */
// Billing of a workspace: its balance, top-ups and corrections, and every transfer with the balance after it. Transfers are
// never edited.

import { useState } from 'preact/hooks'
import { ApiError, callApi, callForAll } from '../api-client.ts'
import type { Correction, ListAnswer, TopUp, Transfer, Wallet } from '../api-types.ts'
import {
  type Column,
  DataTable,
  Empty,
  ErrorNotice,
  MoreButton,
  QueryView,
  Tile,
  WorkspacePage,
} from '../components.tsx'
import { Moment } from '../context.tsx'
import { Choice, Field, Form } from '../form.tsx'
import { useIdempotencyKey, usePages, useQuery, useSubmit } from '../hooks.ts'
import { usdText } from '../values.ts'
import { csvText, type LedgerRow, withBalances } from './ledger.ts'

const intro = 'The workspace’s prepaid balance, exact to a billionth of a dollar. Requests are charged as they finish.'

export function BillingPage() {
  return (
    <WorkspacePage title="Billing" intro={intro}>
      {(workspaceId) => <BillingView workspaceId={workspaceId} />}
    </WorkspacePage>
  )
}

function BillingView({ workspaceId }: { readonly workspaceId: string }) {
  const ledger = useQuery(workspaceId, { load: () => readLedger(workspaceId) })
  const [done, setDone] = useState('')
  const report = (text: string) => {
    setDone(text)
    ledger.reload()
  }
  return (
    <QueryView what="the balance" query={ledger}>
      {({ wallet, transfers }) => (
        <>
          <Balance wallet={wallet} />
          <TopUpForm workspaceId={workspaceId} onDone={report} />
          <CorrectionForm workspaceId={workspaceId} onDone={report} />
          <p role="status" class="done">
            {done}
          </p>
          <Transfers workspaceId={workspaceId} balance={wallet.balance} first={transfers} />
        </>
      )}
    </QueryView>
  )
}

function Balance({ wallet: { balance, held, available } }: { readonly wallet: Wallet }) {
  const isEmpty = /^(-.*|0\.0*)$/.test(available)
  return (
    <>
      <dl class="tiles">
        <Tile label="Balance" value={usdText(balance)} note="total funds" />
        <Tile label="Held" value={usdText(held)} note="reserved for running requests" />
        <Tile label="Available" value={usdText(available)} note="balance minus held" />
      </dl>
      {isEmpty && (
        <p class="warning">
          <strong>No funds available.</strong> Requests that cost money are refused with status 402 until you top up.
        </p>
      )}
    </>
  )
}

interface Ledger<Transfers> {
  readonly wallet: Wallet
  readonly transfers: Transfers
}

/** Under constant traffic the last try is shown as it is. */
const triesMax = 4

function transfersPath(workspaceId: string): string {
  return `/api/workspaces/${workspaceId}/transfers?limit=50`
}

/** The balance and the newest transfers. */
function readLedger(workspaceId: string): Promise<Ledger<ListAnswer<Transfer>> | ApiError> {
  return readConsistently(workspaceId, () => callApi<ListAnswer<Transfer>>(transfersPath(workspaceId)))
}

function readWholeLedger(workspaceId: string): Promise<Ledger<readonly Transfer[]> | ApiError> {
  return readConsistently(workspaceId, () => callForAll<Transfer>(`/api/workspaces/${workspaceId}/transfers`))
}

/** Repeats until the balance is the same before and after: another transfer in between would make every row wrong. */
async function readConsistently<Transfers>(
  workspaceId: string,
  read: () => Promise<Transfers | ApiError>,
): Promise<Ledger<Transfers> | ApiError> {
  const readWallet = () => callApi<Wallet>(`/api/workspaces/${workspaceId}/wallet`)
  let before = await readWallet()
  for (let tries = 1; ; tries++) {
    if (before instanceof ApiError) return before
    const transfers = await read()
    if (transfers instanceof ApiError) return transfers
    const after = await readWallet()
    if (after instanceof ApiError) return after
    if (before.balance === after.balance || tries === triesMax) return { wallet: after, transfers }
    before = after
  }
}

interface MoneyFormProps {
  readonly workspaceId: string
  onDone(report: string): void
}

function TopUpForm({ workspaceId, onDone }: MoneyFormProps) {
  const [amount, setAmount] = useState('')
  const [reference, setReference] = useState('')
  const body = { amount: amount.trim(), ...(reference.trim() !== '' && { reference: reference.trim() }) }
  const idempotencyKey = useIdempotencyKey(body)
  const submit = useSubmit()
  const send = () =>
    submit.run(
      () => callApi<TopUp>(`/api/workspaces/${workspaceId}/topups`, { method: 'POST', body, idempotencyKey }),
      (topUp) => {
        setAmount('')
        setReference('')
        onDone(`${usdText(topUp.amount)} added; the balance is ${usdText(topUp.balance)}.`)
      },
    )
  return (
    <Form name="Top up" submit={submit} label="Top up" busyLabel="Adding …" onSubmit={send}>
      <h2>Top up</h2>
      <Field
        label="Amount in USD"
        hint="Up to 1,000,000, for example 25.00"
        kind="decimal"
        value={amount}
        isRequired
        onChange={setAmount}
      />
      <Field
        label="Reference"
        hint="Optional, for example an invoice number."
        value={reference}
        lengthMax={200}
        onChange={setReference}
      />
    </Form>
  )
}

const directions = [
  { value: 'take', label: 'Deduct' },
  { value: 'add', label: 'Add' },
] as const

/** Folded away, because it is rarely needed. */
function CorrectionForm({ workspaceId, onDone }: MoneyFormProps) {
  const [direction, setDirection] = useState('take')
  const [amount, setAmount] = useState('')
  const [reason, setReason] = useState('')
  const body = { amount: amount.trim(), direction, reason: reason.trim() }
  const idempotencyKey = useIdempotencyKey(body)
  const submit = useSubmit()
  const send = () =>
    submit.run(
      () => callApi<Correction>(`/api/workspaces/${workspaceId}/corrections`, { method: 'POST', body, idempotencyKey }),
      (made) => {
        setAmount('')
        setReason('')
        const verb = made.direction === 'take' ? 'deducted' : 'added'
        onDone(`${usdText(made.amount)} ${verb}; the balance is ${usdText(made.balance)}.`)
      },
    )
  return (
    <details>
      <summary>Correct the balance</summary>
      <Form name="Correct the balance" submit={submit} label="Correct" busyLabel="Correcting …" onSubmit={send}>
        <Choice label="Direction" value={direction} options={directions} onChange={setDirection} />
        <Field
          label="Amount to correct, in USD"
          hint="At most the available amount can be deducted."
          kind="decimal"
          value={amount}
          isRequired
          onChange={setAmount}
        />
        <Field
          label="Reason"
          hint="Recorded in the ledger and in the audit log."
          value={reason}
          lengthMax={200}
          isRequired
          onChange={setReason}
        />
      </Form>
    </details>
  )
}

interface TransfersProps {
  readonly workspaceId: string
  /** When the first page was read. */
  readonly balance: string
  readonly first: ListAnswer<Transfer>
}

function Transfers({ workspaceId, balance, first }: TransfersProps) {
  const pages = usePages(transfersPath(workspaceId), first)
  const file = useSubmit()
  const download = () =>
    file.run(
      () => readWholeLedger(workspaceId),
      ({ wallet, transfers }) => saveFile(csvText(withBalances(wallet.balance, transfers)), `${workspaceId}.csv`),
    )
  if (pages.items.length === 0) {
    return (
      <Empty title="No transfers yet">
        <p>Top up with the form above. The funds are available at once.</p>
      </Empty>
    )
  }
  return (
    <section class="stack" aria-label="Transfers">
      <header class="console-head">
        <h2>Transfers</h2>
        <button type="button" class="button quiet small" disabled={file.isBusy} onClick={download}>
          {file.isBusy ? 'Preparing …' : 'Download all as CSV'}
        </button>
      </header>
      {file.error && <ErrorNotice error={file.error} retry={download} />}
      <DataTable
        caption="Transfers, newest first"
        columns={transferColumns}
        rows={withBalances(balance, pages.items)}
        keyOf={({ id }) => id}
      />
      <MoreButton label="Show older transfers" pages={pages} />
    </section>
  )
}

const kinds: Readonly<Record<string, string>> = {
  charge: 'Charge',
  writeoff: 'Write-off',
  topup: 'Top-up',
  grant: 'Grant',
  correction: 'Correction',
}

const transferColumns: readonly Column<LedgerRow>[] = [
  {
    label: 'Type',
    show: ({ kind, estimated }) => (
      <>
        <span class="row-name">{kinds[kind] ?? kind}</span>
        {estimated && <small>usage estimated</small>}
      </>
    ),
  },
  { label: 'Time', show: ({ created_at }) => <Moment at={created_at} /> },
  { label: 'Amount', isNumber: true, show: (row) => `${signOf(row)}${usdText(row.amount)}` },
  { label: 'Balance after', isNumber: true, show: ({ balance }) => usdText(balance) },
  { label: 'Reference', show: (row) => <Reference {...row} /> },
]

/** A write-off was not paid from the wallet. */
function signOf({ kind, direction }: LedgerRow): string {
  return kind === 'writeoff' ? '' : direction === 'in' ? '+' : '−'
}

function Reference({ request_id, reference }: LedgerRow) {
  if (request_id === null) return <span class={reference === null ? 'muted' : undefined}>{reference ?? 'none'}</span>
  return (
    <>
      <a class="wrap" href={`/console/requests/${request_id}`}>
        <code>{request_id}</code>
      </a>{' '}
      {reference}
    </>
  )
}

function saveFile(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
