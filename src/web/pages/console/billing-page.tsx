/** @jsxImportSource preact */
// Billing of a workspace: its balance, top-ups and corrections, and every transfer with the balance after it. Transfers are
// never edited.

import { useState } from 'preact/hooks'
import { usdText } from '../../catalog/format.ts'
import { type AnswerOf, ApiError, callApi, callForAll, callForPage, type ListAnswer } from '../api.ts'
import { Button } from '../components.tsx'
import { usePages, useQuery, useSubmit } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Empty, ErrorNotice, MoreButton, QueryView, Section, Tile, WorkspacePage } from './components.tsx'
import { Moment } from './context.tsx'
import { csvText, type LedgerRow, type Transfer, withBalances } from './figures.ts'
import { Choice, Fields, Form } from './form.tsx'

const intro = 'The workspace’s prepaid balance, exact to a billionth of a dollar. Requests are charged as they finish.'

export function BillingPage() {
  return (
    <WorkspacePage title="Billing" intro={intro}>
      {(workspaceId) => <BillingView workspaceId={workspaceId} />}
    </WorkspacePage>
  )
}

type Wallet = AnswerOf<'getWallet'>

function BillingView({ workspaceId }: { readonly workspaceId: string }) {
  const ledger = useQuery(workspaceId, () =>
    readWithBalance(workspaceId, () => callForPage('listTransfers', pageOf(workspaceId), undefined)),
  )
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

/** Under constant traffic the last try is shown as it is. */
const triesMax = 4

const pageOf = (id: string) => ({ id, query: { limit: 50 } })

/** Repeats until the balance is the same before and after: another transfer in between would make every row wrong. */
async function readWithBalance<Transfers>(
  id: string,
  read: () => Promise<Transfers | ApiError>,
): Promise<{ readonly wallet: Wallet; readonly transfers: Transfers } | ApiError> {
  let before = await callApi('getWallet', { id })
  for (let tries = 1; ; tries++) {
    if (before instanceof ApiError) return before
    const transfers = await read()
    if (transfers instanceof ApiError) return transfers
    const after = await callApi('getWallet', { id })
    if (after instanceof ApiError) return after
    if (before.balance === after.balance || tries === triesMax) return { wallet: after, transfers }
    before = after
  }
}

interface MoneyFormProps {
  readonly workspaceId: string
  onDone(report: string): void
}

const topUpFields = [
  {
    name: 'amount',
    label: 'Amount in USD',
    hint: 'Up to 1,000,000, for example 25.00',
    kind: 'decimal',
    isRequired: true,
  },
  { name: 'reference', label: 'Reference', hint: 'Optional, for example an invoice number.', lengthMax: 200 },
] as const
const noTopUp = { amount: '', reference: '' }

function TopUpForm({ workspaceId: id, onDone }: MoneyFormProps) {
  const [values, setValues] = useState(noTopUp)
  const { amount, reference } = values
  const body = { amount: amount.trim(), ...(reference.trim() !== '' && { reference: reference.trim() }) }
  return (
    <Form
      name="Top up"
      label="Top up"
      busyLabel="Adding …"
      content={body}
      send={(options) => callApi('topUp', { id, body }, options)}
      onDone={(topUp) => {
        setValues(noTopUp)
        onDone(`${usdText(topUp.amount)} added; the balance is ${usdText(topUp.balance)}.`)
      }}
    >
      <h2>Top up</h2>
      <Fields rows={topUpFields} values={values} onChange={setValues} />
    </Form>
  )
}

const directions = [
  { value: 'take', label: 'Deduct' },
  { value: 'add', label: 'Add' },
] as const
const correctionFields = [
  {
    name: 'amount',
    label: 'Amount to correct, in USD',
    hint: 'At most the available amount can be deducted.',
    kind: 'decimal',
    isRequired: true,
  },
  {
    name: 'reason',
    label: 'Reason',
    hint: 'Recorded in the ledger and in the audit log.',
    lengthMax: 200,
    isRequired: true,
  },
] as const
const noCorrection = { amount: '', reason: '' }

/** Folded away, because it is rarely needed. */
function CorrectionForm({ workspaceId: id, onDone }: MoneyFormProps) {
  const [direction, setDirection] = useState<'take' | 'add'>('take')
  const [values, setValues] = useState(noCorrection)
  const body = { amount: values.amount.trim(), direction, reason: values.reason.trim() }
  return (
    <details>
      <summary>Correct the balance</summary>
      <Form
        name="Correct the balance"
        label="Correct"
        busyLabel="Correcting …"
        content={body}
        send={(options) => callApi('correctWallet', { id, body }, options)}
        onDone={(made) => {
          setValues(noCorrection)
          const verb = made.direction === 'take' ? 'deducted' : 'added'
          onDone(`${usdText(made.amount)} ${verb}; the balance is ${usdText(made.balance)}.`)
        }}
      >
        <Choice
          label="Direction"
          value={direction}
          options={directions}
          onChange={(next) => setDirection(next === 'add' ? 'add' : 'take')}
        />
        <Fields rows={correctionFields} values={values} onChange={setValues} />
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

function Transfers({ workspaceId: id, balance, first }: TransfersProps) {
  const pages = usePages('listTransfers', pageOf(id), first)
  const file = useSubmit()
  const download = () =>
    file.run(
      () => readWithBalance(id, () => callForAll('listTransfers', { id })),
      ({ wallet, transfers }) => saveFile(csvText(withBalances(wallet.balance, transfers)), `${id}.csv`),
    )
  if (pages.items.length === 0) {
    return (
      <Empty title="No transfers yet">
        <p>Top up with the form above. The funds are available at once.</p>
      </Empty>
    )
  }
  return (
    <Section
      title="Transfers"
      action={
        <Button look="quiet small" disabled={file.isBusy} onClick={download}>
          {file.isBusy ? 'Preparing …' : 'Download all as CSV'}
        </Button>
      }
    >
      {file.error && <ErrorNotice error={file.error} retry={download} />}
      <DataTable
        caption="Transfers, newest first"
        columns={columns}
        rows={withBalances(balance, pages.items)}
        keyOf={(row) => row.id}
      />
      <MoreButton label="Show older transfers" pages={pages} />
    </Section>
  )
}

const kinds: Readonly<Record<Transfer['kind'], string>> = {
  charge: 'Charge',
  writeoff: 'Write-off',
  topup: 'Top-up',
  grant: 'Grant',
  correction: 'Correction',
}

const columns: readonly Column<LedgerRow>[] = [
  {
    label: 'Type',
    show: ({ kind, estimated }) => (
      <>
        <span class="row-name">{kinds[kind]}</span>
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
