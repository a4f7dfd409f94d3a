/** @jsxImportSource preact */
// Devices on which people are signed in: one's own under Account, and those of a workspace under People.

import type { ComponentChildren } from 'preact'
import { callApi, type ItemOf } from '../api.ts'
import { useList } from '../hooks.ts'
import type { Column } from '../table.tsx'
import { actionsColumn, emptyState, ListSection, NameOf } from './components.tsx'
import { Ago, useWorkspaces } from './context.tsx'
import { useOverlay } from './overlay.tsx'

type Device = ItemOf<'listSignIns'>

const clients: Readonly<Record<string, string>> = {
  claude_code: 'Claude Code',
  tollgate: 'tollgate command line',
  unknown: 'unknown program',
}

/** `Claude Code` */
export function clientName(client: string): string {
  return clients[client] ?? client
}

export function OwnDevices() {
  const list = useList('listOwnSignIns', {})
  return (
    <Devices
      title="Devices"
      list={list}
      lede={
        <>
          Coding agents and command lines that call models as you. Sign one in with <code>tollgate login</code>, or{' '}
          <code>/login</code> in Claude Code, and <a href="/device">enter its code</a>.
        </>
      }
      endAll={() => callApi('endOwnSignIns', { body: {} })}
      whose="All your devices have"
    />
  )
}

/** `workspace` undefined = all. */
export function WorkspaceDevices({
  workspace,
}: {
  readonly workspace: { readonly id: string; readonly name: string } | undefined
}) {
  const list = useList('listSignIns', { query: { workspace_id: workspace?.id as `ws_${string}` | undefined } })
  return (
    <Devices
      title="Signed-in devices"
      list={list}
      lede="Coding agents and command lines that call models as one of these people."
      endAll={workspace && (() => callApi('endWorkspaceSignIns', { id: workspace.id, body: {} }))}
      whose={`All devices of everyone in ${workspace?.name} have`}
      hasPeople
    />
  )
}

interface DevicesProps {
  readonly title: string
  readonly list: ReturnType<typeof useList<'listSignIns'>>
  readonly lede: ComponentChildren
  /** Before `to sign in again`. */
  readonly whose: string
  readonly hasPeople?: boolean
  /** undefined = not offered. */
  readonly endAll: (() => Promise<unknown>) | undefined
}

const expiry: Column<Device> = {
  label: 'Expires',
  show: ({ idle_expires_at }) => <Ago at={idle_expires_at} />,
  note: () => 'unless it is used',
}

function Devices({ title, list, lede, whose, hasPeople = false, endAll }: DevicesProps) {
  const { ask } = useOverlay()
  const { nameOf } = useWorkspaces()
  const end = ({ id, device, email }: Device) =>
    ask({
      title: `Sign ${device} out?`,
      label: 'Sign out',
      intro: `Its next request is refused within a second${hasPeople ? `, and ${email} has to sign in there again` : ''}. An answer that is running is finished.`,
      send: () => callApi('endSignIn', { id }),
      onDone: list.reload,
    })
  const endEach = () =>
    endAll &&
    ask({
      title: 'Sign all devices out?',
      label: 'Sign out all devices',
      intro: `${whose} to sign in again. API keys and sessions in browsers do not change.`,
      send: endAll,
      onDone: list.reload,
    })
  const columns: readonly Column<Device>[] = [
    {
      label: 'Device',
      show: ({ device }) => <span class="row-name">{device}</span>,
      note: ({ client }) => clientName(client),
    },
    ...(hasPeople ? [{ label: 'Person', show: ({ email }: Device) => email }] : []),
    {
      label: 'Project',
      isWhole: true,
      show: ({ project_id }) => <NameOf kind="Project" id={project_id} />,
      note: ({ workspace_id }) => nameOf(workspace_id),
    },
    {
      label: 'Last used',
      isWhole: true,
      show: ({ last_used_at }) => (last_used_at === null ? 'never' : <Ago at={last_used_at} />),
      note: ({ created_at }) => (
        <>
          signed in <Ago at={created_at} />
        </>
      ),
    },
    // Admins have the room for the person instead.
    ...(hasPeople ? [] : [expiry]),
    actionsColumn((device) => [
      {
        label: 'Sign out',
        name: `Sign out ${device.device}${hasPeople ? ` of ${device.email}` : ''}`,
        look: 'danger',
        run: () => end(device),
      },
    ]),
  ]
  return (
    <ListSection
      title={title}
      {...(endAll && list.items.length > 0 && { action: { label: 'Sign out all', look: 'danger', run: endEach } })}
      what="devices"
      list={list}
      caption={title}
      columns={columns}
      empty={emptyState('No devices', 'No device is signed in.')}
    >
      <p class="hint">{lede}</p>
    </ListSection>
  )
}
