/** @jsxImportSource preact */
// Alerts: the list, what was sent to whom, and the number of unread ones for the menu.

import { useEffect } from 'preact/hooks'
import { isAllowed } from '../../../api/access.ts'
import type { ConsoleData } from '../../page-data.ts'
import { callApi, callForPage, type ItemOf } from '../api.ts'
import { Button, ErrorNotice } from '../components.tsx'
import { useList, useQuery, useSubmit } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import type { Column } from '../table.tsx'
import { Actions, emptyState, ListView, Section } from './components.tsx'
import { Ago, useMay, useViewer, useWorkspaces } from './context.tsx'
import { useConsolePath } from './navigation.ts'

type Alert = ItemOf<'listAlerts'>
type Delivery = ItemOf<'listRecentDeliveries'>

const listedMax = 50
const pollMs = 60_000

/** The unread alerts of all workspaces that the viewer sees. */
function useUnread() {
  const { isOperator, grants } = useViewer()
  const ids = grants.filter(({ role }) => isAllowed('listAlerts', role)).map(({ workspaceId }) => workspaceId)
  const query = useQuery('unread alerts', async () => {
    const calls = (isOperator ? [undefined] : ids).map((id) => ({ query: { workspace_id: id, limit: listedMax } }))
    const pages = await Promise.all(calls.map((call) => callForPage('listAlerts', call, undefined)))
    return pages.flatMap(({ data }) => data).filter(({ is_unread }) => is_unread)
  })
  const { reload } = query
  useEffect(() => {
    const timer = setInterval(reload, pollMs)
    return () => clearInterval(timer)
  }, [reload])
  return query.value ?? []
}

/** A bell with the number of unread alerts. */
export function AlertBell() {
  const count = useUnread().length
  const to = useConsolePath()
  const text = count >= listedMax ? `${listedMax}+` : String(count)
  return (
    <a class="alert-bell" href={to('alerts')} aria-label={`Alerts, ${count === 0 ? 'none' : text} unread`}>
      <Icon name="bell" />
      {count > 0 && <span class="alert-count">{text}</span>}
    </a>
  )
}

export function AlertsView(_: ConsoleData) {
  const { chosen, workspaces = [], isDecided } = useWorkspaces()
  const may = useMay()
  const id = chosen?.id
  const list = useList('listAlerts', isDecided ? { query: { workspace_id: id, limit: listedMax } } : undefined)
  const submit = useSubmit()
  const newest = list.items.find(({ is_unread }) => is_unread)
  // Where several workspaces are listed one by one, their alerts are marked together.
  const markRead = () =>
    newest && submit.run(() => callApi('markAlertsRead', { body: { until: newest.id } }), list.reload)
  const nameOf = (of: string | null) => workspaces.find((workspace) => workspace.id === of)?.name
  const columns: readonly Column<Alert>[] = [
    {
      label: 'Alert',
      show: ({ message, is_unread }) => (is_unread ? <strong>{message}</strong> : message),
      note: ({ kind, workspace_id, is_unread }) =>
        [is_unread ? 'unread' : undefined, kind, nameOf(workspace_id)].filter(Boolean).join(' · '),
    },
    { label: 'Time', show: ({ created_at }) => <Ago at={created_at} /> },
  ]
  return (
    <>
      <Section
        title="Alerts"
        action={
          newest !== undefined && (
            <Button look="quiet small" disabled={submit.isBusy} onClick={markRead}>
              Mark all as read
            </Button>
          )
        }
      >
        {submit.error && <ErrorNotice error={submit.error} />}
        <ListView
          what="alerts"
          list={list}
          caption="Alerts, newest first"
          columns={columns}
          keyOf={(alert) => alert.id}
          empty={emptyState(
            'No alerts',
            'Low balances, spend limits, providers that fail and changed prices appear here.',
          )}
        />
      </Section>
      {isDecided && may('listRecentDeliveries', id) && <Deliveries workspaceId={id} />}
    </>
  )
}

function Deliveries({ workspaceId }: { readonly workspaceId: string | undefined }) {
  const list = useList('listRecentDeliveries', { query: { workspace_id: workspaceId } })
  const submit = useSubmit()
  const replay = (id: string) => submit.run(() => callApi('replayDelivery', { id }), list.reload)
  const columns: readonly Column<Delivery>[] = [
    { label: 'Receiver', show: ({ receiver }) => <span class="row-name">{receiver}</span>, note: ({ kind }) => kind },
    { label: 'Created', show: ({ created_at }) => <Ago at={created_at} /> },
    {
      label: 'Result',
      show: ({ delivered_at, next_at }) =>
        delivered_at !== null ? 'delivered' : next_at === null ? 'failed' : 'waiting for the next attempt',
      note: ({ attempts, error }) =>
        `${attempts === 1 ? '1 attempt' : `${attempts} attempts`}${error ? `: ${error}` : ''}`,
    },
    {
      label: 'Actions',
      show: ({ id, receiver }) => (
        <Actions actions={[{ label: 'Send again', name: `Send again to ${receiver}`, run: () => replay(id) }]} />
      ),
    },
  ]
  return (
    <Section title="Deliveries">
      {submit.error && <ErrorNotice error={submit.error} />}
      <ListView
        what="deliveries"
        list={list}
        caption="The last hundred deliveries, newest first"
        columns={columns}
        keyOf={({ id }) => id}
        empty={emptyState(
          'Nothing was sent yet',
          <>
            Create a webhook with <code>tollgate webhooks create</code>, or ask the operator to configure a mail server.
          </>,
        )}
      />
    </Section>
  )
}
