/** @jsxImportSource preact */
// Pages that print well: the statement of a month, and the receipt of a top-up.

import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { usdText } from '../../catalog/format.ts'
import type { WorkspaceData } from '../../page-data.ts'
import type { AnswerOf } from '../api.ts'
import { Button, Facts } from '../components.tsx'
import { Field } from '../form.tsx'
import { useApi } from '../hooks.ts'
import { amountColumn, type Column, DataTable } from '../table.tsx'
import { QueryView } from './components.tsx'
import { useWorkspaces } from './context.tsx'
import { monthStart } from './figures.ts'
import { navigate, useConsolePath } from './navigation.ts'

type Statement = AnswerOf<'getStatement'>

const monthsListed = 12

/** The last months since a time, newest first: `2026-11`. */
function monthsSince(since: string): readonly string[] {
  const months = Array.from({ length: monthsListed }, (_, back) =>
    isoTime(monthStart(systemClock.now(), back)).slice(0, 7),
  )
  return months.filter((month) => month >= since.slice(0, 7))
}

/** Leads to a statement, from the Billing page. */
export function StatementChoice() {
  const to = useConsolePath()
  const { current } = useWorkspaces()
  const months = monthsSince(current?.created_at ?? '')
  return (
    <div class="controls">
      <Field
        label="Monthly statements"
        value=""
        options={[{ value: '', label: 'Choose a month' }, ...months.map((value) => ({ value, label: value }))]}
        onChange={(month) => month && navigate(to(`wallet/${month}`))}
      />
    </div>
  )
}

export function ReceiptLink({ id }: { readonly id: string }) {
  const to = useConsolePath()
  return <a href={to(`wallet/${id}`)}>Receipt</a>
}

/** `/console/wallet/2026-11` or `/console/wallet/tr_…` */
export function PaperView({ workspaceId: id, subject }: WorkspaceData) {
  return subject.startsWith('tr_') ? (
    <ReceiptView id={id} transfer={subject} />
  ) : (
    <StatementView id={id} month={subject} />
  )
}

function StatementView({ id, month }: { readonly id: string; readonly month: string }) {
  const query = useApi('getStatement', { id, query: { month } })
  return (
    <QueryView what="the statement" query={query}>
      {(statement) => (
        <article class="paper stack">
          <header>
            <h1>Statement {statement.month}</h1>
            <p>
              {statement.workspace_name} <code>{id}</code>
              {!statement.is_final && ' · this month is not over'}
            </p>
          </header>
          <DataTable
            class="paper-table"
            caption={`Statement ${statement.month}`}
            columns={columns}
            rows={linesOf(statement)}
            keyOf={({ key }) => key}
          />
          <p class="hint">Amounts in USD. A request counts in the month in which it ended, in UTC.</p>
          <PaperActions csv={`/api/workspaces/${id}/statement/export?month=${month}`} />
        </article>
      )}
    </QueryView>
  )
}

const kinds = {
  topup: 'Top-up',
  grant: 'Grant',
  plan_credit: 'Plan credit',
  expiry: 'Expired credit',
  correction: 'Correction',
} as const

function linesOf({ from, until, opening_balance, closing_balance, fundings, charges, is_final }: Statement) {
  return [
    { key: 'opening', item: 'Opening balance', date: from.slice(0, 10), amount: opening_balance },
    ...fundings.map(({ id, kind, reference, created_at, amount }) => ({
      key: id,
      item: `${kinds[kind]}${reference === null ? '' : `: ${reference}`}`,
      date: created_at.slice(0, 10),
      amount,
    })),
    ...charges.map(({ model, requests, amount, plan_credit: credit }) => ({
      key: model,
      item: `${model}, ${requests === 1 ? '1 request' : `${requests} requests`}${credit === '0.00' ? '' : `, ${usdText(credit)} of it from plan credit`}`,
      date: '',
      amount: amount === '0.00' ? amount : `-${amount}`,
    })),
    {
      key: 'closing',
      item: is_final ? 'Closing balance' : 'Balance',
      date: is_final ? until.slice(0, 10) : '',
      amount: closing_balance,
    },
  ]
}

/** On paper nothing can be hovered: amounts have all their digits. */
const columns: readonly Column<ReturnType<typeof linesOf>[number]>[] = [
  { label: 'Item', show: ({ item }) => item },
  { label: 'Date (UTC)', show: ({ date }) => date },
  amountColumn('Amount', ({ amount }) => amount, { isExact: true }),
]

function PaperActions({ csv }: { readonly csv?: string }) {
  const to = useConsolePath()
  return (
    <p class="row no-print">
      <Button look="quiet small" onClick={() => print()}>
        Print
      </Button>
      {csv && <a href={csv}>Download as CSV</a>}
      <a href={to('wallet')}>Back to Billing</a>
    </p>
  )
}

function ReceiptView({ id, transfer }: { readonly id: string; readonly transfer: string }) {
  const query = useApi('listReceipts', { id })
  const receipt = query.value?.data.find((each) => each.id === transfer)
  if (query.value && !receipt) return <p>There is no such top-up in this workspace.</p>
  return (
    <QueryView what="the receipt" query={{ ...query, value: receipt }}>
      {(receipt) => (
        <article class="paper stack">
          <h1>Receipt</h1>
          <Facts
            class="facts"
            facts={[
              ['Paid for', `${receipt.workspace_name} (${id})`],
              ['Amount', `${usdText(receipt.amount)} USD`],
              ['Date (UTC)', receipt.created_at.slice(0, 10)],
              ['Reference', receipt.reference ?? 'none'],
              ['Payment', receipt.payment_id ?? 'entered by the operator'],
              ['Receipt number', receipt.id],
            ]}
          />
          <PaperActions />
        </article>
      )}
    </QueryView>
  )
}
