/** @jsxImportSource preact */
// Plans on the Billing page: the plan of a workspace with what remains of its credit, and for operators the plans and who has
// them.

import { useEffect, useState } from 'preact/hooks'
import { countOf, exactCount, usdText } from '../../catalog/format.ts'
import { sectionPath } from '../../page-data.ts'
import { type AnswerOf, callApi, type ItemOf } from '../api.ts'
import { Button, ErrorNotice, Meter } from '../components.tsx'
import { Form } from '../form.tsx'
import { useApi, useList, useSubmit, useTimeout } from '../hooks.ts'
import { amountColumn, type Column, DataTable } from '../table.tsx'
import { actionsColumn, Card, emptyState, ListSection, QueryView } from './components.tsx'
import { Moment, useMay, useWorkspaces } from './context.tsx'
import { FormDialog, useOverlay } from './overlay.tsx'

type Plan = ItemOf<'listPlans'>
type WorkspacePlan = AnswerOf<'getWorkspacePlan'>
type Credit = WorkspacePlan['credits'][number]

const pollMs = 3000

interface PlanCardProps {
  readonly id: string
  /** The balance has changed. */
  onChange(): void
}

/** The plan of a workspace. Viewers read it, admins subscribe, operators give it. */
export function PlanCard({ id, onChange }: PlanCardProps) {
  const query = useApi('getWorkspacePlan', { id }, { keepPrevious: true })
  const may = useMay()
  const [isAwaited, setAwaited] = useState(false)
  // Stripe's page has sent the browser back; its event arrives within seconds as a rule.
  useEffect(() => setAwaited(new URLSearchParams(location.search).has('subscribed')), [])
  const hasArrived = query.value !== undefined && query.value.subscription !== null
  useTimeout(query.reload, isAwaited && !hasArrived && !query.isLoading ? pollMs : undefined)
  useEffect(() => {
    if (isAwaited && hasArrived) onChange()
  }, [isAwaited, hasArrived])
  const done = () => {
    query.reload()
    onChange()
  }
  return (
    <QueryView what="the plan" query={query}>
      {(plan) => {
        const { credits, subscription, offers } = plan
        const mayGive = may('putWorkspacePlan', id) && !subscription
        const maySubscribe = may('subscribePlan', id) && (subscription !== null || plan.plan === null)
        const isPaying = isAwaited && !subscription
        const isOffered = maySubscribe && offers.length > 0 && !isPaying
        const isEmpty = plan.plan === null && plan.next_plan === null && credits.length === 0
        if (isEmpty && !isPaying && !isOffered && !mayGive) return null
        return (
          <Card title="Plan">
            {isPaying && (
              <p role="status" class="done">
                Your payment has not arrived yet. Stripe confirms most payments within seconds. This page checks by
                itself.
              </p>
            )}
            <PlanFacts plan={plan} />
            {credits.length > 0 && (
              <DataTable
                class="compact-table"
                caption="Plan credit, in the order in which it is spent"
                columns={creditColumns}
                rows={credits}
                keyOf={(credit) => credit.id}
              />
            )}
            {isOffered && <Subscribe key={subscription?.plan} {...{ id, plan, onDone: done }} />}
            {subscription && !subscription.cancelled && may('cancelSubscription', id) && (
              <CancelButton id={id} onDone={done} />
            )}
            {mayGive && <GivePlan key={plan.next_plan} {...{ id, plan, onDone: done }} />}
          </Card>
        )
      }}
    </QueryView>
  )
}

function PlanFacts({ plan }: { readonly plan: WorkspacePlan }) {
  const { plan: current, ends_at: ends, next_plan: next, next_credit: credit, subscription } = plan
  if (current === null && next === null) return <p>This workspace has no plan.</p>
  return (
    <>
      {subscription && subscription.state !== 'active' && subscription.state !== 'trialing' && (
        <p class="warning">
          <strong>The last payment failed.</strong> No credit is granted until it is paid. Stripe has sent the payer an
          e-mail with a link.
        </p>
      )}
      <p>
        {current === null ? 'Begins' : <strong>{current}</strong>}
        {current !== null && ends !== null && (
          <>
            , until <Moment at={ends} />
          </>
        )}
        .{' '}
        {next === null ? 'Then it ends.' : `Next: ${credit === null ? '' : `${usdText(credit)} of credit by `}${next}.`}
        {subscription && next !== null && ` ${usdText(subscription.price)} is paid by subscription.`}
      </p>
    </>
  )
}

const creditColumns: readonly Column<Credit>[] = [
  {
    label: 'Granted by',
    show: ({ plan }) => <span class="row-name">{plan}</span>,
    note: ({ period }) => period,
  },
  {
    ...amountColumn('Left', ({ remaining }: Credit) => remaining),
    note: ({ granted }) => `of ${usdText(granted)}`,
  },
  {
    label: 'Used',
    show: ({ remaining, granted, plan, period }) => (
      <Meter share={1 - Number(remaining) / Number(granted)} name={`Used of ${plan} for ${period}`} />
    ),
  },
  { label: 'Expires', show: ({ expires_at }) => <Moment at={expires_at} /> },
]

interface ChoiceProps {
  readonly id: string
  readonly plan: WorkspacePlan
  onDone(): void
}

function Subscribe({ id, plan: { offers, subscription }, onDone }: ChoiceProps) {
  const options = offers.map(({ id: value, name, credit, period, price }) => ({
    value,
    label: `${name}: ${usdText(credit)} of credit a ${period} for ${usdText(price ?? '0')}`,
  }))
  return (
    <Form
      name={subscription ? 'Change the subscription' : 'Subscribe to a plan'}
      label={subscription ? 'Change with the next payment' : 'Subscribe'}
      initial={{ plan: subscription?.plan ?? options[0]?.value ?? '' }}
      rows={[
        {
          name: 'plan',
          label: 'Subscribe to',
          hint: subscription ? 'Nothing is paid now.' : 'You pay on Stripe’s page. Credit is there once it is paid.',
          isRequired: true,
          options,
        },
      ]}
      send={(body) => callApi('subscribePlan', { id, body })}
      onDone={({ url }) => (url === null ? onDone() : location.assign(url))}
    />
  )
}

function CancelButton({ id, onDone }: { readonly id: string; onDone(): void }) {
  const { ask } = useOverlay()
  const cancel = () =>
    ask({
      title: 'Cancel the subscription?',
      label: 'Cancel the subscription',
      intro: 'The plan ends with the period that is paid. Its credit stays until then.',
      send: () => callApi('cancelSubscription', { id }),
      onDone,
    })
  return (
    <div class="row">
      <Button look="quiet" onClick={cancel}>
        Cancel the subscription
      </Button>
    </div>
  )
}

/** For operators, who charge for it elsewhere. */
function GivePlan({ id, plan, onDone }: ChoiceProps) {
  const plans = useApi('listPlans', {})
  const end = useSubmit()
  if (!plans.value || plans.value.data.length === 0) return null
  const options = plans.value.data.map(({ id: value, name, credit, period }) => ({
    value,
    label: `${name}: ${usdText(credit)} a ${period}`,
  }))
  const isNew = plan.plan === null
  return (
    <>
      <Form
        name="Give a plan"
        label={isNew ? 'Give the plan' : 'Change with the next period'}
        initial={{ plan: plan.next_plan ?? options[0]?.value ?? '' }}
        rows={[
          {
            name: 'plan',
            label: 'Give this workspace',
            hint: isNew ? 'Begins at once, with the full credit. Nothing is collected.' : 'Nothing is collected.',
            isRequired: true,
            options,
          },
        ]}
        send={(body) => callApi('putWorkspacePlan', { id, body })}
        onDone={onDone}
      />
      {end.error && <ErrorNotice error={end.error} />}
      {plan.next_plan !== null && (
        <div class="row">
          <Button
            look="quiet"
            disabled={end.isBusy}
            onClick={() => end.run(() => callApi('endWorkspacePlan', { id }), onDone)}
          >
            End the plan with its period
          </Button>
        </div>
      )}
    </>
  )
}

/** The operator's offers. */
export function Plans() {
  const plans = useList('listPlans', {})
  const { open, ask } = useOverlay()
  const onDone = plans.reload
  const remove = ({ id, workspaces }: Plan) =>
    ask({
      title: `Delete ${id}?`,
      label: 'Delete',
      intro:
        workspaces.length > 0
          ? 'Workspaces have this plan. Give them another one first.'
          : 'Credit that it granted stays until it expires.',
      send: () => callApi('deletePlan', { plan: id }),
      onDone,
    })
  const columns: readonly Column<Plan>[] = [
    { label: 'Plan', show: ({ name }) => <span class="row-name">{name}</span>, note: ({ id }) => <code>{id}</code> },
    {
      ...amountColumn('Credit', ({ credit }: Plan) => credit),
      note: ({ period }) => `a ${period}`,
    },
    { label: 'Expires', show: ({ expires_days: days, period }) => expiryText(days, period) },
    { ...amountColumn('Price', ({ price }: Plan) => price), note: ({ price }) => price === null && 'not stated' },
    { label: 'Workspaces', show: ({ workspaces }) => <Subscribers ids={workspaces} /> },
    actionsColumn((plan) => [
      { label: 'Change', name: `Change ${plan.id}`, run: () => open(<PlanDialog {...{ plan, onDone }} />) },
      { label: 'Delete', name: `Delete ${plan.id}`, look: 'danger', run: () => remove(plan) },
    ]),
  ]
  return (
    <ListSection
      title="Plans"
      what="plans"
      list={plans}
      class="data-table summary-table"
      caption="Plans, by id"
      columns={columns}
      action={{ label: 'New plan', run: () => open(<PlanDialog onDone={onDone} />) }}
      empty={emptyState(
        'No plans',
        'A plan grants workspaces credit for every day, week or month. What is left expires.',
      )}
    />
  )
}

const shownMax = 3

function Subscribers({ ids }: { readonly ids: readonly string[] }) {
  const { workspaces = [] } = useWorkspaces()
  if (ids.length === 0) return <span class="muted">none</span>
  return (
    <span class="row">
      {ids.slice(0, shownMax).map((id) => (
        <a key={id} href={sectionPath('wallet', id)}>
          {workspaces.find((workspace) => workspace.id === id)?.name ?? id}
        </a>
      ))}
      {ids.length > shownMax && <span class="muted">and {exactCount(ids.length - shownMax)} more</span>}
    </span>
  )
}

function expiryText(days: number | null, period: string): string {
  return days === null ? `with its ${period}` : `after ${countOf(days, 'day')}`
}

function PlanDialog({ plan, onDone }: { readonly plan?: Plan; onDone(): void }) {
  return (
    <FormDialog
      title={plan ? `Change ${plan.id}` : 'New plan'}
      label={plan ? 'Change' : 'Create plan'}
      intro="Workspaces get a change with their next period. Subscriptions keep their price and their credit."
      initial={{
        ...{ id: plan?.id ?? '', name: plan?.name ?? '', credit: plan?.credit ?? '', period: plan?.period ?? 'month' },
        ...{ expires_days: String(plan?.expires_days ?? ''), price: plan?.price ?? '' },
      }}
      rows={[
        {
          name: 'id',
          label: 'Id',
          isRequired: true,
          hint: 'Lower-case letters, digits and hyphens.',
          attributes: {
            readOnly: plan !== undefined,
            pattern: '[a-z0-9\\-]{1,40}',
            title: 'Enter at most 40 lower-case letters, digits and hyphens.',
          },
        },
        { name: 'name', label: 'Name', kind: 'name', hint: 'For people. Empty = the id.' },
        { name: 'credit', label: 'Credit for each period, in USD', kind: 'decimal', isRequired: true },
        {
          name: 'period',
          label: 'Period',
          isRequired: true,
          options: ['day', 'week', 'month'].map((value) => ({ value, label: value })),
        },
        {
          name: 'expires_days',
          label: 'Days until it expires',
          kind: 'whole',
          hint: 'Empty = at the end of its period.',
        },
        {
          name: 'price',
          label: 'Price of a period, in USD',
          kind: 'decimal',
          hint: 'Where card payments are set up, admins subscribe at this price. Otherwise it is only shown.',
        },
      ]}
      send={({ id, period, ...body }) =>
        callApi('putPlan', { plan: id, body: { ...body, period: period as Plan['period'] } })
      }
      onDone={onDone}
    />
  )
}
