/** @jsxImportSource preact */
// Billing of a workspace: its balance, top-ups and corrections, and every transfer with the balance after it. Transfers are
// never edited.

import { useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { amountText } from '../../catalog/format.ts'
import { sectionPath, type WorkspacesData } from '../../page-data.ts'
import { type AnswerOf, callApi, callForAll, callForPage, type Workspace } from '../api.ts'
import { Amount, Button, ErrorNotice, Status } from '../components.tsx'
import { Field, Form } from '../form.tsx'
import { useAddressQuery, useList, useQuery, useSubmit } from '../hooks.ts'
import { amountColumn, type Column, DataTable } from '../table.tsx'
import { Card, emptyState, ListView, QueryView, Section, saveFile, Tiles } from './components.tsx'
import { Moment, useMay, useWorkspaces } from './context.tsx'
import {
  csvText,
  dayMs,
  type LedgerRow,
  runwayText,
  type SpendRate,
  spendRateDays,
  spendRateOf,
  type Transfer,
  withBalances,
} from './figures.ts'
import { Payments } from './payments.tsx'
import { PlanCard, Plans } from './plans.tsx'
import { ReceiptLink, StatementChoice } from './statement-page.tsx'

/** Of one workspace, or a list of all. */
export function BillingView({ workspaceId }: WorkspacesData) {
  return workspaceId === undefined ? <Balances /> : <WorkspaceBilling id={workspaceId} />
}

interface BalanceRow extends Wallet {
  readonly workspace: Workspace
  /** undefined = nothing was spent. */
  readonly rate: SpendRate | undefined
  /** The API sums up the workspaces that spend most; the others have no figure. */
  readonly isRateKnown: boolean
}

async function readBalances(): Promise<readonly BalanceRow[]> {
  const now = systemClock.now()
  const [workspaces, usage] = await Promise.all([
    callForAll('listWorkspaces', {}),
    callApi('getUsageSeries', {
      query: { from: isoTime(now - spendRateDays * dayMs), to: isoTime(now), group_by: 'workspace' },
    }),
  ])
  const rows = await Promise.all(
    workspaces.map(async (workspace) => {
      const series = usage.series.find(({ value }) => value === workspace.id)
      const rate = series
        ? spendRateOf({ total: series, hours: series.points, from: usage.from, counted_until: usage.to })
        : undefined
      return {
        ...(await callApi('getWallet', { id: workspace.id })),
        workspace,
        rate,
        isRateKnown: series !== undefined || usage.others === null,
      }
    }),
  )
  return rows.sort((a, b) => daysLeft(a) - daysLeft(b) || Number(a.available) - Number(b.available))
}

/** At the current rate; nothing left is first, and without spend it lasts forever. */
function daysLeft({ available, rate }: BalanceRow): number {
  if (Number(available) <= 0) return 0
  return rate ? Number(available) / rate.perDay : Number.POSITIVE_INFINITY
}

const balanceColumns: readonly Column<BalanceRow>[] = [
  { label: 'Workspace', show: ({ workspace }) => workspace.name },
  amountColumn('Balance', ({ balance }) => balance),
  amountColumn('Held', ({ held }) => held),
  amountColumn('Available', ({ available }) => available),
  {
    label: 'Runway',
    show: ({ available, rate, isRateKnown }) =>
      rate ? runwayText(available, rate) : <span class="muted">{isRateKnown ? 'no spend' : '–'}</span>,
    note: ({ rate }) => rate && `at the rate of the last ${rate.span}`,
  },
  {
    label: 'State',
    show: ({ available, balance, workspace }) => {
      if (Number(available) <= 0) return <Status level="error" text="no funds" />
      return Number(balance) < Number(workspace.low_balance) ? (
        <Status level="warning" text="low balance" />
      ) : (
        <Status level="ok" text="ok" />
      )
    },
  },
]

/** Every workspace, those that run out first on top, and the plans. */
function Balances() {
  const query = useQuery('balances', readBalances)
  return (
    <>
      <QueryView what="balances" query={query}>
        {(rows) => (
          <DataTable
            class="data-table summary-table"
            caption="Balances, the shortest runway first"
            columns={balanceColumns}
            rows={rows}
            keyOf={({ workspace }) => workspace.id}
            hrefOf={({ workspace }) => sectionPath('wallet', workspace.id)}
          />
        )}
      </QueryView>
      <Plans />
    </>
  )
}

function WorkspaceBilling({ id }: { readonly id: string }) {
  const [query, change] = useAddressQuery(['kind'])
  const kind = kindOptions.find(({ value }) => value === query.kind)?.value || undefined
  const call = { id, query: { limit: 50, kind } }
  const list = useList('listTransfers', call, () =>
    readWithBalance(id, () => callForPage('listTransfers', call, undefined)),
  )
  const may = useMay()
  const { reloadWallet } = useWorkspaces()
  const reload = () => {
    list.reload()
    reloadWallet()
  }
  const [done, setDone] = useState({ form: '', text: '' })
  const report = (
    form: string,
    verb: string,
    { amount, balance }: Pick<Transfer, 'amount'> & Pick<Wallet, 'balance'>,
  ) => {
    setDone({ form, text: `${amountText(amount)} ${verb}; the balance is ${amountText(balance)}.` })
    reload()
  }
  const doneBy = (form: string) => (
    <p role="status" class="done">
      {done.form === form ? done.text : ''}
    </p>
  )
  const file = useSubmit()
  const download = () =>
    file.run(
      () => readWithBalance(id, async () => ({ data: await callForAll('listTransfers', { id }) })),
      ({ wallet, data }) => saveFile(csvText(withBalances(wallet.balance, data)), `${id}.csv`),
    )
  return (
    <QueryView what="the balance" query={list}>
      {({ wallet }) => (
        <>
          <Balance {...wallet} />
          <PlanCard id={id} onChange={reload} />
          <Payments id={id} onPaid={reload} />
          {may('topUp', id) && (
            <Card title="Top up">
              <Form
                name="Top up"
                label="Top up"
                rows={topUpRows}
                send={(body, options) => callApi('topUp', { id, body }, options)}
                onDone={(topUp) => report('top-up', 'added', topUp)}
              />
              {doneBy('top-up')}
            </Card>
          )}
          {may('correctWallet', id) && (
            <details>
              <summary>Correct the balance</summary>
              <div class="card">
                <Form
                  name="Correct the balance"
                  label="Correct"
                  initial={{ direction: 'take' }}
                  rows={correctionRows}
                  send={(body, options) => callApi('correctWallet', { id, body }, options)}
                  onDone={(made) => report('correction', made.direction === 'take' ? 'deducted' : 'added', made)}
                />
                {doneBy('correction')}
              </div>
            </details>
          )}
          <StatementChoice />
          <Section
            title="Transfers"
            action={
              list.items.length > 0 && (
                <Button look="quiet small" disabled={file.isBusy} onClick={download}>
                  {file.isBusy ? 'Preparing …' : 'Download all as CSV'}
                </Button>
              )
            }
          >
            {file.error && <ErrorNotice error={file.error} retry={download} />}
            <div class="controls">
              <Field
                label="Type"
                value={kind ?? ''}
                options={kindOptions}
                onChange={(next) => change({ kind: next })}
              />
            </div>
            <ListView
              what="transfers"
              list={{ ...list, error: undefined, items: withBalances(wallet.balance, list.items) }}
              class="data-table transfer-table"
              caption="Transfers, newest first"
              columns={kind === undefined ? columns : columnsOfKind}
              empty={
                kind === undefined
                  ? emptyState(
                      'No transfers yet',
                      may('topUp', id)
                        ? 'Top up with the form above. The funds are available at once.'
                        : 'The balance is added to by card or by the operator, as described above.',
                    )
                  : emptyState(`No transfers of the type ${kinds[kind]}`, 'Choose another type.')
              }
            />
          </Section>
        </>
      )}
    </QueryView>
  )
}

type Wallet = AnswerOf<'getWallet'>

function Balance({ balance, held, available, credit }: Wallet) {
  const funds = Number(credit) === 0 ? 'total funds' : `${amountText(credit)} of it is plan credit, which expires`
  const isEmpty = /^(-.*|0\.0*)$/.test(available)
  return (
    <>
      <Tiles
        tiles={[
          { label: 'Balance', value: <Amount usd={balance} />, note: funds },
          { label: 'Held', value: <Amount usd={held} />, note: 'reserved for running requests' },
          { label: 'Available', value: <Amount usd={available} />, note: 'balance minus held' },
        ]}
      />
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

/** Repeats until the balance is the same before and after: another transfer in between would make every row wrong. */
async function readWithBalance<Transfers extends object>(
  id: string,
  read: () => Promise<Transfers>,
): Promise<Transfers & { readonly wallet: Wallet }> {
  let before = await callApi('getWallet', { id })
  for (let tries = 1; ; tries++) {
    const transfers = await read()
    const wallet = await callApi('getWallet', { id })
    if (before.balance === wallet.balance || tries === triesMax) return { ...transfers, wallet }
    before = wallet
  }
}

const topUpRows = [
  {
    name: 'amount',
    label: 'Amount in USD',
    hint: 'Up to 1,000,000, for example 25.00',
    kind: 'decimal',
    isRequired: true,
  },
  { name: 'reference', label: 'Reference', kind: 'remark', hint: 'Optional, for example an invoice number.' },
] as const

const correctionRows = [
  {
    name: 'direction',
    label: 'Direction',
    isRequired: true,
    options: [
      { value: 'take', label: 'Deduct' },
      { value: 'add', label: 'Add' },
    ],
  },
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
    kind: 'remark',
    hint: 'Recorded in the ledger and in the audit log.',
    isRequired: true,
  },
] as const

const kinds: Readonly<Record<Transfer['kind'], string>> = {
  charge: 'Charge',
  writeoff: 'Write-off',
  topup: 'Top-up',
  grant: 'Grant',
  plan_credit: 'Plan credit',
  expiry: 'Expired credit',
  correction: 'Correction',
}

const kindOptions = [
  { value: '', label: 'All' },
  { value: 'charge', label: 'Charges' },
  { value: 'topup', label: 'Top-ups' },
  { value: 'grant', label: 'Grants' },
  { value: 'plan_credit', label: 'Plan credit' },
  { value: 'expiry', label: 'Expired credit' },
  { value: 'correction', label: 'Corrections' },
] as const

const signs: Readonly<Record<Transfer['direction'], string>> = { in: '+', out: '−', none: '' }

const columns: readonly Column<LedgerRow>[] = [
  {
    label: 'Type',
    show: ({ kind }) => <span class="row-name">{kinds[kind]}</span>,
    note: ({ id, kind, direction, estimated }) => {
      if (kind === 'topup') return <ReceiptLink id={id} />
      return direction === 'none' ? 'not from the wallet' : estimated && 'usage estimated'
    },
  },
  { label: 'Time', show: ({ created_at }) => <Moment at={created_at} /> },
  {
    ...amountColumn('Amount', ({ amount }: LedgerRow) => amount),
    show: ({ direction, amount }, decimals) => (
      <Amount usd={amount} sign={Number(amount) === 0 ? '' : signs[direction]} decimals={decimals} />
    ),
  },
  amountColumn('Balance after', ({ balance }) => balance),
  {
    label: 'Reference',
    show: ({ request_id, reference }) => {
      if (request_id === null) return reference ?? <span class="muted">none</span>
      return (
        <a class="wrap" href={`/console/requests/${request_id}`}>
          <code>{request_id}</code>
        </a>
      )
    },
    note: ({ request_id, reference }) => request_id && reference,
  },
]

/** The balance after a transfer is computed from all that follow it. */
const columnsOfKind = columns.filter(({ label }) => label !== 'Balance after')
