/** @jsxImportSource preact */
// The API keys of a workspace: their state, last use, spend and limits. A secret is shown once, by the sheet that follows
// its creation.

import { useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../../kernel/clock.ts'
import type { StatusLevel } from '../../../catalog/status.ts'
import type { ConsoleData } from '../../../page-data.ts'
import { CopyButton, Status } from '../../components.tsx'
import { ApiError, callApi, callForAll, callTogether, withQuery } from '../api-client.ts'
import type { Key, KeyWithSecret, ListAnswer, Project, RequestItem, StatsAnswer, Workspace } from '../api-types.ts'
import { type Column, DataTable, Empty, QueryView, WorkspacePage } from '../components.tsx'
import { Ago, Moment } from '../context.tsx'
import { useQuery } from '../hooks.ts'
import { LimitsList, LimitsSheet } from '../limits.tsx'
import { usdText } from '../values.ts'
import { projectYaml } from '../workspace-data.ts'
import { NewKeySheet, RevokeSheet, RotateSheet, SecretSheet } from './key-sheets.tsx'

const intro = 'Programs authenticate with an API key. Each key belongs to a project; the workspace pays.'

export function KeysPage({ address }: ConsoleData) {
  return (
    <WorkspacePage title="API keys" intro={intro}>
      {(workspaceId) => <KeysView workspaceId={workspaceId} address={address} />}
    </WorkspacePage>
  )
}

interface KeysData {
  readonly workspace: Workspace
  readonly projects: readonly Project[]
  readonly keys: readonly Key[]
  /** The last 200, newest first: for most keys they name the client that used it last. */
  readonly requests: readonly RequestItem[]
  /** USD since the start of the month in UTC, by key; undefined = not known. */
  readonly spent: ReadonlyMap<string, string> | undefined
}

/** A handful of calls, however many keys there are. */
async function readKeys(workspaceId: string): Promise<KeysData | ApiError> {
  const answers = await callTogether<[Workspace, readonly Project[], readonly Key[], ListAnswer<RequestItem>]>(
    callApi(`/api/workspaces/${workspaceId}`),
    callForAll(`/api/workspaces/${workspaceId}/projects`),
    callForAll(`/api/keys?workspace_id=${workspaceId}`),
    callApi(`/api/requests?workspace_id=${workspaceId}&limit=200`),
  )
  if (answers instanceof ApiError) return answers
  const [workspace, projects, keys, { data: requests }] = answers
  return { workspace, projects, keys, requests, spent: await readSpent(workspaceId) }
}

/** Keys can be managed without it, so an error only leaves the column empty. */
async function readSpent(workspaceId: string): Promise<KeysData['spent']> {
  const from = `${isoTime(systemClock.now()).slice(0, 7)}-01T00:00:00Z`
  const path = withQuery('/api/stats', { workspace_id: workspaceId, group: 'key', from })
  const stats = await callApi<Pick<StatsAnswer, 'groups'>>(path)
  return stats instanceof ApiError ? undefined : new Map(stats.groups.map(({ id, cost }) => [id, cost]))
}

type KeyAction = 'rotate' | 'limits' | 'revoke'

type OpenSheet =
  | { readonly sheet: 'new' }
  | { readonly sheet: KeyAction; readonly key: Key }
  | { readonly sheet: 'secret'; readonly key: KeyWithSecret; readonly isNew: boolean }

function KeysView({ workspaceId, address }: { readonly workspaceId: string; readonly address: string }) {
  const [open, setOpen] = useState<OpenSheet | undefined>(undefined)
  const query = useQuery(workspaceId, { load: () => readKeys(workspaceId) })
  const close = () => setOpen(undefined)
  const closeAndReload = () => {
    close()
    query.reload()
  }
  const showSecret = (key: KeyWithSecret, isNew: boolean) => {
    setOpen({ sheet: 'secret', key, isNew })
    query.reload()
  }
  return (
    <>
      <QueryView what="keys" query={query}>
        {(data) => (
          <>
            {data.projects.length > 0 && (
              <p>
                <button type="button" class="button" onClick={() => setOpen({ sheet: 'new' })}>
                  New key
                </button>
              </p>
            )}
            <KeysTable data={data} onAct={(sheet, key) => setOpen({ sheet, key })} />
            {open?.sheet === 'new' && (
              <NewKeySheet projects={data.projects} onClose={close} onCreated={(key) => showSecret(key, true)} />
            )}
          </>
        )}
      </QueryView>
      {open?.sheet === 'rotate' && (
        <RotateSheet apiKey={open.key} onClose={close} onRotated={(key) => showSecret(key, false)} />
      )}
      {open?.sheet === 'revoke' && <RevokeSheet apiKey={open.key} onClose={close} onRevoked={closeAndReload} />}
      {open?.sheet === 'limits' && (
        <LimitsSheet
          of={`key ${open.key.name}`}
          path={`/api/keys/${open.key.id}/limits`}
          limits={open.key.limits}
          onClose={close}
          onSaved={closeAndReload}
          onUndone={query.reload}
        />
      )}
      {open?.sheet === 'secret' && (
        <SecretSheet apiKey={open.key} address={address} isNew={open.isNew} onClose={closeAndReload} />
      )}
    </>
  )
}

interface Row {
  readonly apiKey: Key
  readonly workspace: Workspace
  readonly project: Project | undefined
  /** The key's newest. */
  readonly request: RequestItem | undefined
  readonly spent: string | undefined
  onAct(action: KeyAction): void
}

interface KeysTableProps {
  readonly data: KeysData
  onAct(action: KeyAction, key: Key): void
}

/** Inactive keys last. */
function KeysTable({ data: { workspace, projects, keys, requests, spent }, onAct }: KeysTableProps) {
  if (projects.length === 0) {
    return (
      <Empty title="No projects yet">
        <p>
          A key belongs to a project. <a href="/console/projects">Create a project</a> first.
        </p>
      </Empty>
    )
  }
  if (keys.length === 0) {
    return (
      <Empty title="No keys yet">
        <p>Choose “New key” and enter a name. The key works at once.</p>
      </Empty>
    )
  }
  const rows = [...keys]
    .sort((a, b) => Number(a.status !== 'active') - Number(b.status !== 'active'))
    .map((apiKey) => ({
      apiKey,
      workspace,
      project: projects.find(({ id }) => id === apiKey.project_id),
      request: requests.find(({ key_id }) => key_id === apiKey.id),
      spent: spent?.get(apiKey.id),
      onAct: (action: KeyAction) => onAct(action, apiKey),
    }))
  return (
    <DataTable
      caption={`Keys of the workspace ${workspace.name}`}
      columns={columns}
      rows={rows}
      keyOf={({ apiKey }) => apiKey.id}
    />
  )
}

const columns: readonly Column<Row>[] = [
  {
    label: 'Key',
    show: ({ apiKey, project }) => (
      <>
        <span class="row-name">{apiKey.name}</span>
        <small>
          <code>…{apiKey.last4}</code> in {project?.name ?? 'a deleted project'}
        </small>
      </>
    ),
  },
  { label: 'Status', show: ({ apiKey }) => <KeyStatus {...apiKey} /> },
  {
    label: 'Last used',
    show: ({ apiKey, request }) => (
      <>
        <LastUse at={lastUseOf(apiKey, request)} />
        {request?.client && (
          <small class="row-note" title={request.client}>
            by {shortClient(request.client)}
          </small>
        )}
      </>
    ),
  },
  { label: 'This month', isNumber: true, show: (row) => <Spent {...row} /> },
  {
    label: 'Limits',
    show: ({ apiKey, project, workspace }) => (
      <LimitsList
        holders={[
          { who: 'this key', limits: apiKey.limits },
          { who: 'the project', limits: project?.limits ?? {} },
          { who: 'the workspace', limits: workspace.limits },
        ]}
      />
    ),
  },
  {
    label: 'Models',
    show: ({ apiKey: { models, sources } }) => (
      <>
        {models === null ? 'all project models' : <code>{models.join(', ')}</code>}
        {sources !== null && <small class="row-note">from {sources.join(', ')}</small>}
      </>
    ),
  },
  { label: 'Actions', show: (row) => <Actions {...row} /> },
]

const levels: Readonly<Record<Key['status'], StatusLevel>> = { active: 'ok', expired: 'warning', revoked: 'error' }

function KeyStatus({ status, revoked_at, expires_at }: Key) {
  return (
    <>
      <Status level={levels[status]} text={status} />
      {revoked_at !== null && (
        <small class="row-note">
          <Ago at={revoked_at} />
        </small>
      )}
      {status !== 'revoked' && expires_at !== null && (
        <small class="row-note">
          {status === 'expired' ? 'since' : 'until'} <Moment at={expires_at} />
        </small>
      )}
    </>
  )
}

/** Against the key's own limit; other keys spend from those of project and workspace too. */
function Spent({ apiKey, spent }: Row) {
  const limit = apiKey.limits.spend_per_month ?? null
  return (
    <>
      {spent === undefined ? <span class="muted">–</span> : usdText(spent)}
      {limit !== null && <small class="row-note">of {usdText(limit)}</small>}
    </>
  )
}

function LastUse({ at }: { readonly at: string | null }) {
  return at === null ? <span class="muted">never</span> : <Ago at={at} />
}

/** A key's own `last_used_at` can be a minute behind the request log. */
function lastUseOf({ last_used_at }: Key, request: RequestItem | undefined): string | null {
  if (!request || last_used_at === null) return request?.started_at ?? last_used_at
  return request.started_at > last_used_at ? request.started_at : last_used_at
}

/** Keys from a file are changed in the file; only their secret can be rotated here. */
function Actions({ apiKey, workspace, project, onAct }: Row) {
  const { name, status, managed_by } = apiKey
  const actions = status === 'revoked' ? [] : managed_by === 'file' ? fileActions : allActions
  return (
    <div class="row-actions">
      {actions.map(({ action, label }) => (
        <button
          key={action}
          type="button"
          class={`button quiet small ${action}`}
          aria-label={action === 'limits' ? `Limits of ${name}` : `${label} ${name}`}
          onClick={() => onAct(action)}
        >
          {label}
        </button>
      ))}
      {managed_by === 'file' && project && (
        <CopyButton
          text={projectYaml(workspace, project, [apiKey])}
          what={`YAML of ${name}`}
          label="From file, copy YAML"
        />
      )}
    </div>
  )
}

const fileActions = [{ action: 'rotate', label: 'Rotate' }] as const
const allActions = [
  ...fileActions,
  { action: 'limits', label: 'Limits' },
  { action: 'revoke', label: 'Revoke' },
] as const

/** A browser's user agent is too long to show. */
function shortClient(client: string): string {
  return client.startsWith('Mozilla/') ? 'a browser' : client
}
