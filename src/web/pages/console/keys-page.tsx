/** @jsxImportSource preact */
// The API keys of a workspace: their state, last use, spend and limits. A secret is shown once, by the sheet that follows
// its creation.

import { useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { usdText } from '../../catalog/format.ts'
import type { StatusLevel } from '../../catalog/status.ts'
import type { ConsoleData } from '../../page-data.ts'
import {
  ApiError,
  callApi,
  callForAll,
  callTogether,
  type Key,
  type KeyWithSecret,
  type Project,
  type RequestItem,
  type Workspace,
} from '../api.ts'
import { Button, CopyButton, Status } from '../components.tsx'
import { useQuery } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Empty, QueryView, WorkspacePage } from './components.tsx'
import { Ago, Moment } from './context.tsx'
import { NewKeySheet, RevokeSheet, RotateSheet, SecretSheet } from './key-sheets.tsx'
import { LimitsList, LimitsSheet } from './limits.tsx'
import { projectYaml } from './workspace-data.ts'

const intro = 'Programs authenticate with an API key. Each key belongs to a project; the workspace pays.'

export function KeysPage({ address }: ConsoleData) {
  return (
    <WorkspacePage title="API keys" intro={intro}>
      {(workspaceId) => <KeysView workspaceId={workspaceId} address={address} />}
    </WorkspacePage>
  )
}

interface Row {
  readonly apiKey: Key
  readonly workspace: Workspace
  readonly project: Project | undefined
  /** The key's newest, if it is among the last 200 of the workspace. */
  readonly request: RequestItem | undefined
  /** USD since the start of the month in UTC; undefined = not known. */
  readonly spent: string | undefined
}

/** A handful of calls, however many keys there are. Inactive keys come last. */
async function readKeys(id: string): Promise<{ projects: readonly Project[]; rows: readonly Row[] } | ApiError> {
  const answers = await callTogether(
    callApi('getWorkspace', { id }),
    callForAll('listProjects', { id }),
    callForAll('listKeys', { query: { workspace_id: id } }),
    callApi('listRequests', { query: { workspace_id: id, limit: 200 } }),
  )
  if (answers instanceof ApiError) return answers
  const [workspace, projects, keys, { data: requests }] = answers
  const from = `${isoTime(systemClock.now()).slice(0, 7)}-01T00:00:00Z`
  const stats = await callApi('getStats', { query: { workspace_id: id, group: 'key', from } })
  // Keys can be managed without it, so an error only leaves the column empty.
  const groups = stats instanceof ApiError ? [] : stats.groups
  const rows = [...keys]
    .sort((a, b) => Number(a.status !== 'active') - Number(b.status !== 'active'))
    .map((apiKey) => ({
      apiKey,
      workspace,
      project: projects.find((project) => project.id === apiKey.project_id),
      request: requests.find(({ key_id }) => key_id === apiKey.id),
      spent: groups.find((group) => group.id === apiKey.id)?.cost,
    }))
  return { projects, rows }
}

type KeyAction = 'rotate' | 'limits' | 'revoke'

type OpenSheet =
  | { readonly sheet: 'new' }
  | { readonly sheet: KeyAction; readonly key: Key }
  | { readonly sheet: 'secret'; readonly key: KeyWithSecret; readonly isNew: boolean }

function KeysView({ workspaceId, address }: { readonly workspaceId: string; readonly address: string }) {
  const [open, setOpen] = useState<OpenSheet | undefined>(undefined)
  const query = useQuery(workspaceId, () => readKeys(workspaceId))
  const close = () => setOpen(undefined)
  const closeAndReload = () => {
    close()
    query.reload()
  }
  const showSecret = (key: KeyWithSecret, isNew: boolean) => {
    setOpen({ sheet: 'secret', key, isNew })
    query.reload()
  }
  const actions = { label: 'Actions', show: (row: Row) => <Actions {...row} onAct={setOpen} /> }
  return (
    <>
      <QueryView what="keys" query={query}>
        {({ projects, rows }) =>
          projects.length === 0 ? (
            <Empty title="No projects yet">
              <p>
                A key belongs to a project. <a href="/console/projects">Create a project</a> first.
              </p>
            </Empty>
          ) : (
            <>
              <p>
                <Button onClick={() => setOpen({ sheet: 'new' })}>New key</Button>
              </p>
              {rows.length === 0 ? (
                <Empty title="No keys yet">
                  <p>Choose “New key” and enter a name. The key works at once.</p>
                </Empty>
              ) : (
                <DataTable
                  caption="API keys"
                  columns={[...columns, actions]}
                  rows={rows}
                  keyOf={({ apiKey }) => apiKey.id}
                />
              )}
              {open?.sheet === 'new' && (
                <NewKeySheet projects={projects} onClose={close} onCreated={(key) => showSecret(key, true)} />
              )}
            </>
          )
        }
      </QueryView>
      {open?.sheet === 'rotate' && (
        <RotateSheet apiKey={open.key} onClose={close} onRotated={(key) => showSecret(key, false)} />
      )}
      {open?.sheet === 'revoke' && <RevokeSheet apiKey={open.key} onClose={close} onRevoked={closeAndReload} />}
      {open?.sheet === 'limits' && (
        <LimitsSheet kind="key" holder={open.key} onClose={close} onSaved={closeAndReload} onUndone={query.reload} />
      )}
      {open?.sheet === 'secret' && (
        <SecretSheet apiKey={open.key} address={address} isNew={open.isNew} onClose={closeAndReload} />
      )}
    </>
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
    show: ({ apiKey, request }) => {
      const at = lastUseOf(apiKey, request)
      return (
        <>
          {at === null ? <span class="muted">never</span> : <Ago at={at} />}
          {request?.client && (
            <small class="row-note" title={request.client}>
              by {shortClient(request.client)}
            </small>
          )}
        </>
      )
    },
  },
  {
    label: 'This month',
    isNumber: true,
    // Against the key's own limit; other keys spend from those of project and workspace too.
    show: ({ apiKey, spent }) => (
      <>
        {spent === undefined ? <span class="muted">–</span> : usdText(spent)}
        {apiKey.limits.spend_per_month && <small class="row-note">of {usdText(apiKey.limits.spend_per_month)}</small>}
      </>
    ),
  },
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

/** A key's own `last_used_at` can be a minute behind the request log. */
function lastUseOf({ last_used_at }: Key, request: RequestItem | undefined): string | null {
  if (!request || last_used_at === null) return request?.started_at ?? last_used_at
  return request.started_at > last_used_at ? request.started_at : last_used_at
}

/** A browser's user agent is too long to show. */
function shortClient(client: string): string {
  return client.startsWith('Mozilla/') ? 'a browser' : client
}

const fileActions = [{ sheet: 'rotate', label: 'Rotate' }] as const
const allActions = [...fileActions, { sheet: 'limits', label: 'Limits' }, { sheet: 'revoke', label: 'Revoke' }] as const

/** Keys from a file are changed in the file; only their secret can be rotated here. */
function Actions({ apiKey, workspace, project, onAct }: Row & { onAct(open: OpenSheet): void }) {
  const { name, status, managed_by } = apiKey
  const actions = status === 'revoked' ? [] : managed_by === 'file' ? fileActions : allActions
  return (
    <div class="row-actions">
      {actions.map(({ sheet, label }) => (
        <Button
          key={sheet}
          look={`quiet small ${sheet}`}
          aria-label={sheet === 'limits' ? `Limits of ${name}` : `${label} ${name}`}
          onClick={() => onAct({ sheet, key: apiKey })}
        >
          {label}
        </Button>
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
