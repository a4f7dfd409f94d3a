/** @jsxImportSource preact */
// Alerts: the list, the rules that raise them, the webhooks that receive them, what was sent to whom, and the number of unread ones for the menu.

import { isAllowed } from '../../../api/endpoints.ts'
import { type AlertKind, alertKinds } from '../../../kernel/alert.ts'
import { countOf } from '../../catalog/format.ts'
import { alertsListed } from '../../first-calls.ts'
import { allWorkspaces, type ConsoleData } from '../../page-data.ts'
import { callApi, callForPage, type ItemOf } from '../api.ts'
import { Button, ErrorNotice, Status } from '../components.tsx'
import { Checkbox } from '../form.tsx'
import { type List, useList, useQuery, useSubmit, useTimeout } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import type { Column } from '../table.tsx'
import { AlertRules } from './alert-rules.tsx'
import { actionsColumn, emptyState, ListSection } from './components.tsx'
import { Ago, useMay, useViewer, useWorkspaces } from './context.tsx'
import { useConsolePath, usePlace } from './navigation.ts'
import { FormDialog, OnceDialog, useOverlay } from './overlay.tsx'

type Alert = ItemOf<'listAlerts'>
type Delivery = ItemOf<'listRecentDeliveries'>
type Webhook = ItemOf<'listWebhooks'>

const kindLabels: Readonly<Record<AlertKind, string>> = {
  'balance.low': 'Low balance',
  'limit.reached': 'Spend limit',
  'provider.down': 'Provider down',
  'provider.up': 'Provider works again',
  'provider.stray': 'Stray response',
  'price.changed': 'Prices changed',
  'bill.differs': 'A bill differs',
  'topup.failed': 'Automatic top-up failed',
  'plan.unpaid': 'Plan not paid',
  'credit.expiring': 'Credit expires soon',
  'batch.ended': 'Batch ended',
  test: 'Test',
}

const pollMs = 60_000
const sendingPollMs = 1_000
const waitingPollMs = 5_000

/** The unread alerts of all workspaces that the viewer sees. */
function useUnread() {
  const { isOperator, grants } = useViewer()
  const ids = grants.filter(({ role }) => isAllowed('listAlerts', role)).map(({ workspaceId }) => workspaceId)
  const query = useQuery('unread alerts', async () => {
    const calls = (isOperator ? [undefined] : ids).map((id) => ({ query: { workspace_id: id, limit: alertsListed } }))
    const pages = await Promise.all(calls.map((call) => callForPage('listAlerts', call, undefined)))
    return pages.flatMap(({ data }) => data).filter(({ is_unread }) => is_unread)
  })
  useTimeout(query.reload, query.isLoading ? undefined : pollMs)
  return query.value ?? []
}

/** A bell with the number of unread alerts. */
export function AlertBell() {
  const unread = useUnread()
  const to = useConsolePath()
  const { scope } = usePlace()
  const count = unread.length
  // The page of a workspace lists its own alerts alone.
  const isElsewhere = unread.some(({ workspace_id }) => workspace_id !== scope)
  const text = count >= alertsListed ? `${alertsListed}+` : String(count)
  return (
    <a
      class="alert-bell"
      href={isElsewhere ? `/console/${allWorkspaces}/alerts` : to('alerts')}
      aria-label={`Alerts, ${count === 0 ? 'none' : text} unread`}
    >
      <Icon name="bell" />
      {count > 0 && <span class="alert-count">{text}</span>}
    </a>
  )
}

export function AlertsView(_: ConsoleData) {
  const { chosen, workspaces = [], isDecided, nameOf } = useWorkspaces()
  const { isOperator } = useViewer()
  const may = useMay()
  const id = chosen?.id
  const list = useList('listAlerts', isDecided ? { query: { workspace_id: id, limit: alertsListed } } : undefined)
  const submit = useSubmit()
  const newest = list.items.find(({ is_unread }) => is_unread)
  // Where several workspaces are listed one by one, their alerts are marked together.
  const markRead = () =>
    newest && submit.run(() => callApi('markAlertsRead', { body: { until: newest.id } }), list.reload)
  const columns: readonly Column<Alert>[] = [
    {
      label: 'Alert',
      show: ({ message, is_unread }) => (is_unread ? <strong>{message}</strong> : message),
      note: ({ kind, workspace_id, is_unread }) =>
        [is_unread && 'unread', kindLabels[kind], workspace_id && nameOf(workspace_id)].filter(Boolean).join(' · '),
    },
    { label: 'Time', show: ({ created_at }) => <Ago at={created_at} /> },
  ]
  return (
    <>
      <ListSection
        title="Alerts"
        action={
          newest !== undefined && (
            <Button look="quiet small" disabled={submit.isBusy} onClick={markRead}>
              Mark all as read
            </Button>
          )
        }
        what="alerts"
        list={list}
        caption="Alerts, newest first"
        columns={columns}
        empty={emptyState(
          'No alerts',
          <>
            What the rules below watch appears here.
            {chosen && (isOperator || workspaces.length > 1) && (
              <>
                {' '}
                <a href={`/console/${allWorkspaces}/alerts`}>
                  {isOperator ? 'Alerts of all workspaces and providers' : 'Alerts of all workspaces'}
                </a>
              </>
            )}
          </>,
        )}
      >
        {submit.error && <ErrorNotice error={submit.error} />}
      </ListSection>
      {isDecided && (id !== undefined || isOperator) && may('listWebhooks', id) && <Receivers workspace={chosen} />}
    </>
  )
}

interface ReceiversProps {
  /** undefined = all of them. */
  readonly workspace: { readonly id: string; readonly name: string } | undefined
}

/** An attempt counts when it begins: a delivery with one attempt may be on its way, or may wait for the next one. */
function deliveryPollMs(deliveries: readonly Delivery[]): number | undefined {
  const unfinished = deliveries.filter(({ next_at }) => next_at !== null)
  if (unfinished.length === 0) return undefined
  return unfinished.some(({ attempts }) => attempts === 0) ? sendingPollMs : waitingPollMs
}

/** The webhooks, and what was sent to them and by e-mail. */
function Receivers({ workspace }: ReceiversProps) {
  const query = { workspace_id: workspace?.id }
  const hooks = useList('listWebhooks', { query })
  const deliveries = useList('listRecentDeliveries', { query })
  useTimeout(deliveries.reload, deliveries.isLoading ? undefined : deliveryPollMs(deliveries.items))
  return (
    <>
      <AlertRules workspace={workspace} webhooks={hooks.items} />
      <Webhooks workspace={workspace} list={hooks} onSent={deliveries.reload} />
      <Deliveries list={deliveries} />
    </>
  )
}

interface WebhooksProps extends ReceiversProps {
  readonly list: List<Webhook>
  onSent(): void
}

function Webhooks({ workspace, list, onSent }: WebhooksProps) {
  const { nameOf } = useWorkspaces()
  const { open, ask } = useOverlay()
  const submit = useSubmit()
  const create = () => open(<WebhookDialog workspace={workspace} onDone={list.reload} />)
  const test = ({ id }: Webhook) => submit.run(() => callApi('testWebhook', { id }), onSent)
  const remove = ({ id, url }: Webhook) =>
    ask({
      title: 'Delete this webhook?',
      label: 'Delete webhook',
      cancelLabel: 'Keep webhook',
      intro: `${url} gets no more alerts, and the record of its deliveries is deleted. This cannot be undone.`,
      send: () => callApi('deleteWebhook', { id }),
      onDone: () => {
        list.reload()
        onSent()
      },
    })
  const columns: readonly Column<Webhook>[] = [
    { label: 'Webhook', show: ({ url }) => <code class="wrap">{url}</code> },
    ...(workspace
      ? []
      : [{ label: 'Workspace', show: ({ workspace_id: id }: Webhook) => (id === null ? 'all' : nameOf(id)) }]),
    {
      label: 'Alerts',
      show: ({ kinds }) => {
        if (kinds === null) return 'all'
        return kinds.map((kind) => kindLabels[kind]).join(', ') || 'only those of rules'
      },
      note: ({ format }) => format === 'slack' && 'as Slack message',
    },
    { label: 'Created', show: ({ created_at }) => <Ago at={created_at} /> },
    actionsColumn((row) => [
      { label: 'Send test', name: `Send a test to ${row.url}`, run: () => test(row) },
      { label: 'Delete', name: `Delete ${row.url}`, look: 'danger', run: () => remove(row) },
    ]),
  ]
  return (
    <ListSection
      title="Webhooks"
      action={{ label: 'New webhook', run: create }}
      what="webhooks"
      list={list}
      caption="Webhooks"
      columns={columns}
      empty={emptyState('No webhooks yet', 'A webhook receives alerts as signed HTTP requests.')}
    >
      {submit.error && <ErrorNotice error={submit.error} />}
    </ListSection>
  )
}

const offeredKinds = alertKinds.filter((kind) => kind !== 'test')

interface AlertKindChoiceProps {
  readonly chosen: readonly string[]
  onChange(kinds: AlertKind[]): void
}

export function AlertKindChoice({ chosen, onChange }: AlertKindChoiceProps) {
  const toggled = (kind: AlertKind, isChecked: boolean) =>
    offeredKinds.filter((each) => (each === kind ? isChecked : chosen.includes(each)))
  return offeredKinds.map((kind) => (
    <Checkbox
      key={kind}
      label={kindLabels[kind]}
      isChecked={chosen.includes(kind)}
      onChange={(isChecked) => onChange(toggled(kind, isChecked))}
    />
  ))
}

const webhookChoices = [
  ['all', 'All of them'],
  ['some', 'Only these kinds …'],
  ['rules', 'Only those of rules that name it'],
] as const

function WebhookDialog({ workspace, onDone }: ReceiversProps & { onDone(): void }) {
  const { open } = useOverlay()
  return (
    <FormDialog
      title={workspace ? `New webhook for workspace ${workspace.name}` : 'New webhook for all workspaces'}
      label="Create webhook"
      rows={[
        { name: 'url', label: 'URL', isRequired: true, attributes: { type: 'url', placeholder: 'https://' } },
        {
          name: 'format',
          label: 'Format',
          options: [
            { value: 'standard', label: 'Signed JSON (Standard Webhooks)' },
            { value: 'slack', label: 'Slack message' },
          ],
          isRequired: true,
        },
        { name: 'which', label: 'Which', isShown: () => false },
        { name: 'kinds', label: 'Alerts', kind: 'lines', isShown: () => false },
      ]}
      initial={{ format: 'standard', which: 'all' }}
      send={({ url, format, which, kinds }, options) => {
        const chosen = which === 'all' ? null : which === 'rules' ? [] : ((kinds as AlertKind[] | undefined) ?? [])
        const body = { url, workspace_id: workspace?.id ?? null, kinds: chosen, format }
        return callApi('createWebhook', { body }, options)
      }}
      onDone={({ url, secret }) => {
        onDone()
        const advice = 'The receiver checks signatures with it. A lost secret can only be replaced by a new webhook.'
        open(<OnceDialog title={`Webhook ${url}`} what="secret" value={secret} advice={advice} />)
      }}
    >
      {({ which, kinds = '' }, change) => (
        <fieldset class="stack tight">
          <legend>Alerts</legend>
          {webhookChoices.map(([value, label]) => (
            <Checkbox
              key={value}
              label={label}
              isChecked={which === value}
              attributes={{ type: 'radio', name: 'which' }}
              onChange={() => change({ which: value })}
            />
          ))}
          {which === 'some' && (
            <AlertKindChoice chosen={kinds.split(',')} onChange={(next) => change({ kinds: next.join() })} />
          )}
        </fieldset>
      )}
    </FormDialog>
  )
}

function Deliveries({ list }: { readonly list: List<Delivery> }) {
  const submit = useSubmit()
  const replay = (id: string) => submit.run(() => callApi('replayDelivery', { id }), list.reload)
  const columns: readonly Column<Delivery>[] = [
    {
      label: 'Receiver',
      show: ({ receiver }) => <span class="row-name">{receiver}</span>,
      note: ({ kind }) => kindLabels[kind],
    },
    { label: 'Created', show: ({ created_at }) => <Ago at={created_at} /> },
    {
      label: 'Result',
      show: ({ delivered_at, next_at, attempts }) => {
        if (delivered_at !== null) return <Status level="ok" text="delivered" />
        if (next_at === null) return <Status level="error" text="failed" />
        return <Status level="off" text={attempts === 0 ? 'sending …' : 'waiting for the next attempt'} />
      },
      note: ({ attempts, error }) =>
        attempts === 0 ? '' : `${countOf(attempts, 'attempt')}${error ? `: ${error}` : ''}`,
    },
    actionsColumn(({ id, receiver }) => [
      { label: 'Send again', name: `Send again to ${receiver}`, run: () => replay(id) },
    ]),
  ]
  return (
    <ListSection
      title="Deliveries"
      what="deliveries"
      list={list}
      caption="The last hundred deliveries, newest first"
      columns={columns}
      empty={emptyState(
        'Nothing was sent yet',
        'Alerts are sent to webhooks, and by e-mail if the operator has configured a mail server.',
      )}
    >
      {submit.error && <ErrorNotice error={submit.error} />}
    </ListSection>
  )
}
