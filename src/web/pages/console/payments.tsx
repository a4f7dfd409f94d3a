/** @jsxImportSource preact */
// Card payments on the Billing page: paying, whether a payment has arrived, automatic top-up, and refunds for operators.

import { useEffect, useMemo, useState } from 'preact/hooks'
import { amountText } from '../../catalog/format.ts'
import { type AnswerOf, callApi, type ItemOf } from '../api.ts'
import { Button, ErrorNotice } from '../components.tsx'
import { Checkbox, CheckedForm, Field, Form } from '../form.tsx'
import { useApi, useIdempotencyKey, useList, useSubmit, useTimeout } from '../hooks.ts'
import { amountColumn, type Column } from '../table.tsx'
import { Card, ListSection } from './components.tsx'
import { Moment, useMay, useWorkspaces } from './context.tsx'

type Payment = ItemOf<'listPayments'>
type Settings = AnswerOf<'getPaymentSettings'>

/** Until Stripe's event arrives, which takes seconds as a rule. */
const pollMs = 3000

/** `onPaid`: the balance has changed. */
export function Payments({ id, onPaid }: { readonly id: string; onPaid(): void }) {
  const may = useMay()
  const { current } = useWorkspaces()
  const settings = useApi('getPaymentSettings', { id })
  const payments = useList('listPayments', { id, query: { limit: 20 } })
  const returned = useReturned()
  const list = payments.items
  const awaited = list.find((payment) => payment.id === returned.id)
  const isOpen = awaited?.state === 'open' && !returned.isCancelled
  useTimeout(payments.reload, isOpen && !payments.isLoading ? pollMs : undefined)
  useEffect(() => {
    if (awaited?.state === 'paid') onPaid()
  }, [awaited?.state])
  if (settings.value?.available === false && !may('topUp', id)) {
    return (
      <Card title="Top up">
        <p>
          This gateway takes no card payments. Ask its operator, who runs it, to add funds to this workspace
          {current && (
            <>
              {' '}
              (<code>{current.id}</code>)
            </>
          )}
          . They are available at once.
        </p>
      </Card>
    )
  }
  if (!settings.value?.available) return null
  return (
    <>
      {awaited && (
        <p role="status" class={awaited.state === 'failed' ? 'warning' : 'done'}>
          {arrivalText(awaited, returned.isCancelled)}
        </p>
      )}
      {may('createCheckout', id) && <PayCard id={id} settings={settings.value} />}
      {may('putAutoTopUp', id) && <AutoTopUp id={id} settings={settings.value} onChange={settings.reload} />}
      {list.length > 0 && (
        <ListSection
          title="Card payments"
          what="payments"
          list={{ ...payments, hasMore: false }}
          caption="Card payments, newest first"
          columns={columns}
        />
      )}
      {may('refundPayment', id) && <Refund payments={list} onDone={onPaid} />}
    </>
  )
}

/** The payment from which Stripe sent the browser back. */
function useReturned() {
  const [returned, setReturned] = useState({ id: '', isCancelled: false })
  useEffect(() => {
    const query = new URLSearchParams(location.search)
    setReturned({ id: query.get('payment') ?? '', isCancelled: query.has('cancelled') })
  }, [])
  return returned
}

function arrivalText({ amount, state, failure }: Payment, isCancelled: boolean): string {
  const sum = amountText(amount)
  if (state === 'paid') return `Your payment of ${sum} has arrived and is in the balance.`
  if (state === 'failed') return `Your payment of ${sum} was not made: ${failure ?? 'no reason was given'}.`
  if (isCancelled) return `You left the payment page. Nothing was added to the balance.`
  return `Your payment of ${sum} has not arrived yet. Stripe confirms most payments within seconds, bank debits within days. This page checks by itself.`
}

function PayCard({ id, settings: { min, max, card } }: { readonly id: string; readonly settings: Settings }) {
  const { current } = useWorkspaces()
  const [amount, setAmount] = useState('25.00')
  const [savesCard, setSavesCard] = useState(false)
  const idempotencyKey = useIdempotencyKey([id, amount, savesCard])
  const { isBusy, error, run } = useSubmit()
  const pay = () =>
    run(
      () => callApi('createCheckout', { id, body: { amount, save_card: savesCard } }, { idempotencyKey }),
      ({ url }) => location.assign(url),
    )
  const isAmount = /^[0-9]+([.][0-9]{1,2})?$/.test(amount)
  const faults = useMemo(() => (error?.param === 'amount' ? { amount: error.message } : undefined), [error])
  return (
    <Card title="Pay by card">
      <CheckedForm class="form" name="Pay by card" faults={faults} onSubmit={pay}>
        <Field
          name="amount"
          label="Amount to pay, in USD"
          hint={`From ${amountText(min)} to ${amountText(max)}.`}
          value={amount}
          isRequired
          attributes={{
            inputMode: 'decimal',
            pattern: '[0-9]+([.][0-9]{1,2})?',
            title: 'Enter dollars and cents: 25.00.',
          }}
          onChange={setAmount}
        />
        <Checkbox
          label={card === null ? 'Save the card for automatic top-up' : `Replace the saved card (${card})`}
          isChecked={savesCard}
          onChange={setSavesCard}
        />
        {error && !faults && <ErrorNotice error={error} />}
        <div class="row">
          <button type="submit" class="button" disabled={isBusy}>
            {`Add ${isAmount ? amountText(amount) : 'funds'} to ${current?.name ?? 'the wallet'}`}
          </button>
        </div>
        <p class="hint">You pay on Stripe’s page.</p>
      </CheckedForm>
    </Card>
  )
}

interface AutoTopUpProps {
  readonly id: string
  readonly settings: Settings
  onChange(): void
}

function AutoTopUp({ id, settings: { card, auto_topup: topUp }, onChange }: AutoTopUpProps) {
  const off = useSubmit()
  if (card === null && topUp.stopped === null) return null
  const { threshold, amount, monthly_max, spent_this_month, enabled, stopped } = topUp
  const known = Number(amount) > 0
  return (
    <Card title="Automatic top-up">
      <p>
        {enabled
          ? `On: adds ${amountText(amount)} with ${card} when the balance is below ${amountText(threshold)}. This month: ${amountText(spent_this_month)} of at most ${amountText(monthly_max)}.`
          : `Off${stopped === null ? '' : `: ${stopped}`}.`}
      </p>
      {card === null ? (
        <p class="hint">No card is saved. Pay by card above, and save it.</p>
      ) : (
        <Form
          key={`${enabled} ${amount} ${threshold} ${monthly_max}`}
          name="Automatic top-up"
          label={enabled ? 'Change' : 'Turn on'}
          rows={autoTopUpRows}
          initial={
            known ? { threshold, amount, monthly_max } : { threshold: '5.00', amount: '25.00', monthly_max: '100.00' }
          }
          send={(body, options) => callApi('putAutoTopUp', { id, body }, options)}
          onDone={onChange}
        />
      )}
      {off.error && <ErrorNotice error={off.error} />}
      {enabled && (
        <div class="row">
          <Button
            look="quiet"
            disabled={off.isBusy}
            onClick={() => off.run(() => callApi('stopAutoTopUp', { id }), onChange)}
          >
            Turn off
          </Button>
        </div>
      )}
    </Card>
  )
}

const autoTopUpRows = [
  { name: 'threshold', label: 'When the balance is below, in USD', kind: 'decimal', isRequired: true },
  { name: 'amount', label: 'Add, in USD', kind: 'decimal', isRequired: true },
  { name: 'monthly_max', label: 'At most in a month, in USD', kind: 'decimal', isRequired: true },
] as const

function Refund({ payments, onDone }: { readonly payments: readonly Payment[]; onDone(): void }) {
  const [done, setDone] = useState('')
  const paid = payments.filter(({ state }) => state === 'paid')
  if (paid.length === 0) return null
  const options = paid.map(({ id, amount, created_at }) => ({
    value: id,
    label: `${amountText(amount)}, ${created_at.slice(0, 10)}, ${id}`,
  }))
  return (
    <details>
      <summary>Refund a payment</summary>
      <div class="card">
        <Form
          name="Refund a payment"
          label="Refund"
          isDanger
          initial={{ payment: paid[0]?.id ?? '' }}
          rows={[{ name: 'payment', label: 'Payment', isRequired: true, options }, ...refundRows] as const}
          send={({ payment, ...body }, callOptions) => callApi('refundPayment', { id: payment, body }, callOptions)}
          onDone={({ amount, state, failure }) => {
            setDone(
              state === 'failed'
                ? `Not refunded: ${failure}.`
                : `${amountText(amount)} ${state === 'done' ? 'refunded' : 'taken from the wallet; Stripe has not confirmed the refund yet'}.`,
            )
            onDone()
          }}
        />
        <p role="status">{done}</p>
      </div>
    </details>
  )
}

const refundRows = [
  {
    name: 'amount',
    label: 'Amount to refund, in USD',
    hint: 'Leave empty to refund all that has not been refunded yet. At most what is available in the wallet.',
    kind: 'decimal',
  },
  {
    name: 'reason',
    label: 'Reason for the refund',
    kind: 'remark',
    hint: 'Recorded in the ledger and in the audit log.',
    isRequired: true,
  },
] as const

const kinds = { checkout: 'Card payment', automatic: 'Automatic top-up' } as const
const states = { open: 'not arrived yet', paid: 'paid', failed: 'failed' } as const

const columns: readonly Column<Payment>[] = [
  { label: 'Type', show: ({ kind }) => <span class="row-name">{kinds[kind]}</span> },
  { label: 'Time', show: ({ created_at }) => <Moment at={created_at} /> },
  amountColumn('Amount', ({ amount }) => amount),
  { label: 'State', show: ({ state }) => states[state], note: ({ failure }) => failure },
  { label: 'Payment', show: ({ id }) => <code>{id}</code> },
]
