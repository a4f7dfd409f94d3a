/** @jsxImportSource preact */
// The API keys of a workspace: their state, last use, spend and limits; creating, rotating and revoking them; and the page of
// one key. A secret is shown once, in the dialog that follows its creation.

import { useState } from 'preact/hooks'
import type { StatusLevel } from '../../../api/route-state.ts'
import { isReached } from '../../../api/spend-state.ts'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { allowsModel, createAllowlist } from '../../../tenancy/allowlist.ts'
import { isEmbedder } from '../../catalog/entry.ts'
import { snippetsFor } from '../../catalog/snippets.ts'
import { type ConsoleData, sectionPath, type WorkspacesData } from '../../page-data.ts'
import {
  callApi,
  callForAll,
  type Key,
  type KeyWithSecret,
  type Project,
  type RequestItem,
  type Workspace,
} from '../api.ts'
import { CodeChoice } from '../code-choice.tsx'
import { Button, CodeBlock, CopyButton, ErrorNotice, Facts, Status } from '../components.tsx'
import { Field } from '../form.tsx'
import { type AddressQuery, useAddressQuery, useApi, useQuery, useTimeout } from '../hooks.ts'
import { amountColumn, type Column } from '../table.tsx'
import {
  type Action,
  Actions,
  Card,
  curlText,
  DetailHead,
  emptyState,
  exampleModel,
  hasWords,
  helloBody,
  LongTable,
  QueryView,
  RowMenu,
} from './components.tsx'
import { Ago, Moment, useMay, useWorkspaces } from './context.tsx'
import { dayMs, limitRows } from './figures.ts'
import { holdersOf, LimitsDialog, LimitsList, OwnLimits } from './limits.tsx'
import { useConsolePath, useTitle } from './navigation.ts'
import { FormDialog, OnceDialog, useOverlay } from './overlay.tsx'
import { RecentRequests, UsageCard } from './usage-card.tsx'
import { playgroundKeyName, projectYaml, readProjectsOf } from './workspace-data.ts'

export interface Row {
  readonly apiKey: Key
  readonly workspace: Workspace | undefined
  readonly project: Project | undefined
  /** The key's newest, if it is among the last 200 of the workspace. */
  readonly request: RequestItem | undefined
  /** USD since the start of the month in UTC; undefined = not known. */
  readonly spent: string | undefined
}

/** The playground makes a key for an hour whenever it needs one. */
function isSpent({ name, status }: Key): boolean {
  return name === playgroundKeyName && status !== 'active'
}

/** A few calls for each workspace, however many keys there are. Without an id: of all workspaces. */
export async function readKeys(
  id: string | undefined,
): Promise<{ projects: readonly Project[]; rows: readonly Row[] }> {
  const from = `${isoTime(systemClock.now()).slice(0, 7)}-01T00:00:00Z`
  const [{ workspaces, projects }, keys, { data: requests }, stats] = await Promise.all([
    readProjectsOf(id),
    callForAll('listKeys', { query: { workspace_id: id } }),
    callApi('listRequests', { query: { workspace_id: id, limit: 200 } }),
    // Keys can be managed without it, so an error only leaves the column empty.
    callApi('getStats', { query: { workspace_id: id, group: 'key', from } }).catch(() => undefined),
  ])
  const rows = keys
    .filter((apiKey) => !isSpent(apiKey))
    .map((apiKey) => ({
      apiKey,
      workspace: workspaces.find((workspace) => workspace.id === apiKey.workspace_id),
      project: projects.find((project) => project.id === apiKey.project_id),
      request: requests.find(({ key_id }) => key_id === apiKey.id),
      spent:
        stats?.groups.find(({ id: key }) => key === apiKey.id)?.cost ??
        (stats?.groups_left_off === 0 ? '0' : undefined),
    }))
    .sort(byActivity)
  return { projects: projects.filter(({ archived_at: archived }) => archived === null), rows }
}

/** Shows a new secret, then reloads the page behind it. */
function useSecretDialog(address: string, reload: () => void) {
  const { open } = useOverlay()
  return (apiKey: KeyWithSecret, isNew: boolean) => {
    open(<SecretDialog apiKey={apiKey} address={address} isNew={isNew} onClose={reload} />)
    reload()
  }
}

/** What the viewer may do with a key. */
function useKeyActions(address: string, reload: () => void): (apiKey: Key) => readonly Action[] {
  const { open } = useOverlay()
  const may = useMay()
  const showSecret = useSecretDialog(address, reload)
  return (apiKey) => {
    const { name, workspace_id: id } = apiKey
    const rotate = () => open(<RotateDialog apiKey={apiKey} onDone={(made) => showSecret(made, false)} />)
    const limit = () => open(<LimitsDialog kind="key" holder={apiKey} onDone={reload} />)
    const revoke = () => open(<RevokeDialog apiKey={apiKey} onDone={reload} />)
    const all: readonly Action[] = [
      ...(may('rotateKey', id) ? [{ label: 'Rotate', name: `Rotate ${name}`, run: rotate }] : []),
      ...(may('putKeyLimits', id) ? [{ label: 'Limits', name: `Limits of ${name}`, run: limit }] : []),
      ...(may('revokeKey', id)
        ? [{ label: 'Revoke', name: `Revoke ${name}`, look: 'danger' as const, run: revoke }]
        : []),
    ]
    // Keys from a file are changed in the file; only their secret can be rotated here.
    return apiKey.status === 'revoked' ? [] : apiKey.managed_by === 'file' ? all.slice(0, 1) : all
  }
}

const statusChoices = [
  { value: '', label: 'All' },
  { value: 'active', label: 'Active' },
  { value: 'expired', label: 'Expired' },
  { value: 'revoked', label: 'Revoked' },
]

const timeOf = (at: string | null | undefined) => (at == null ? 0 : Date.parse(at))

/** Keys that are not active come last. */
const byActivity = (a: Row, b: Row) => Number(a.apiKey.status !== 'active') - Number(b.apiKey.status !== 'active')

/** The first one is the default. */
const orders = [
  {
    value: '',
    label: 'Newest',
    // An id starts with the time of its creation.
    compare: (a: Row, b: Row) => (a.apiKey.id > b.apiKey.id ? -1 : 1),
  },
  { value: 'name', label: 'Name', compare: (a: Row, b: Row) => a.apiKey.name.localeCompare(b.apiKey.name) },
  {
    value: 'used',
    label: 'Last used',
    compare: (a: Row, b: Row) => timeOf(lastUseOf(b.apiKey, b.request)) - timeOf(lastUseOf(a.apiKey, a.request)),
  },
  {
    value: 'spend',
    label: 'Spend this month',
    compare: (a: Row, b: Row) => Number(b.spent ?? 0) - Number(a.spent ?? 0),
  },
] as const

const filterNames = ['q', 'status', 'project', 'sort'] as const
type KeyFilters = AddressQuery<(typeof filterNames)[number]>

/** The keys that match, in the chosen order. */
function shownKeys(rows: readonly Row[], { q, status, project, sort }: KeyFilters): readonly Row[] {
  const { compare } = orders.find(({ value }) => value === sort) ?? orders[0]
  return rows
    .filter(({ apiKey, project: its }) => {
      if (status !== '' && apiKey.status !== status) return false
      if (project !== '' && apiKey.project_id !== project) return false
      return hasWords(`${apiKey.name} ${apiKey.id} ${apiKey.last4} ${its?.name ?? ''}`, q)
    })
    .sort((a, b) => byActivity(a, b) || compare(a, b))
}

export function KeysView({ workspaceId, address }: WorkspacesData) {
  const query = useQuery(workspaceId ?? 'all', () => readKeys(workspaceId))
  const [filters, change] = useAddressQuery(filterNames)
  const { open } = useOverlay()
  const may = useMay()
  const to = useConsolePath()
  const labelOf = useProjectLabel()
  const showSecret = useSecretDialog(address, query.reload)
  const actionsOf = useKeyActions(address, query.reload)
  const actions: Column<Row> = {
    label: 'Actions',
    show: (row) => (
      <>
        {row.apiKey.managed_by === 'file' && row.project && row.workspace && (
          <CopyButton
            text={projectYaml(row.workspace, row.project, [row.apiKey])}
            what={`YAML of ${row.apiKey.name}`}
            label="From file, copy YAML"
          />
        )}
        <RowMenu name={row.apiKey.name} actions={actionsOf(row.apiKey)} />
      </>
    ),
  }
  const columns = [
    ...keyColumns.slice(0, 1),
    ...(workspaceId === undefined ? [workspaceColumn] : []),
    ...keyColumns.slice(1),
    ...(may('rotateKey', workspaceId) ? [actions] : []),
  ]
  return (
    <QueryView what="keys" query={query}>
      {({ projects, rows }) =>
        projects.length === 0 ? (
          emptyState(
            'No projects yet',
            may('createProject', workspaceId) ? (
              <p>
                A key belongs to a project. <a href={to('projects')}>Create a project</a> first.
              </p>
            ) : (
              'A key belongs to a project. Ask an admin of the workspace to create one.'
            ),
          )
        ) : (
          <>
            <div class="controls">
              <Field
                label="Find a key"
                value={filters.q}
                attributes={{ type: 'search', placeholder: 'Name or project' }}
                onChange={(q) => change({ q }, 'typing')}
              />
              <Field
                label="Status"
                value={filters.status}
                options={statusChoices}
                onChange={(status) => change({ status })}
              />
              <Field
                label="Project"
                value={filters.project}
                options={[
                  { value: '', label: 'All' },
                  ...projects.map((project) => ({ value: project.id, label: labelOf(project) })),
                ]}
                onChange={(project) => change({ project })}
              />
              <Field label="Sort by" value={filters.sort} options={orders} onChange={(sort) => change({ sort })} />
              {may('createKey', workspaceId) && (
                <Button
                  onClick={() => open(<NewKeyDialog projects={projects} onDone={(made) => showSecret(made, true)} />)}
                >
                  New key
                </Button>
              )}
            </div>
            <LongTable
              what="keys"
              caption="API keys"
              columns={columns}
              rows={shownKeys(rows, filters)}
              keyOf={({ apiKey }) => apiKey.id}
              hrefOf={({ apiKey }) => keyPath(apiKey)}
              isDim={({ apiKey }) => apiKey.status !== 'active'}
              empty={
                rows.length > 0
                  ? emptyState('No key matches', 'Search for something else, or choose another status or project.')
                  : emptyState(
                      'No keys yet',
                      may('createKey', workspaceId)
                        ? 'Choose “New key” and enter a name. The key works at once.'
                        : 'Members and admins of the workspace create keys here.',
                    )
              }
            />
          </>
        )
      }
    </QueryView>
  )
}

/** In its own workspace, also where all are listed. */
export function keyPath({ id, workspace_id: scope }: Key): string {
  return `${sectionPath('keys', scope)}/${id}`
}

const workspaceColumn: Column<Row> = { label: 'Workspace', show: ({ workspace }) => workspace?.name ?? '–' }

const levels: Readonly<Record<Key['status'], StatusLevel>> = { active: 'ok', expired: 'warning', revoked: 'error' }

function KeyStatus({ apiKey, project, workspace }: KeyOwners) {
  const { status } = apiKey
  const states = holdersOf(apiKey, project, workspace).flatMap(({ spend = [] }) => spend)
  if (status === 'active' && states.some(isReached)) return <Status level="warning" text="limit reached" />
  return <Status level={levels[status]} text={status} />
}

export const keyColumns: readonly Column<Row>[] = [
  {
    label: 'Key',
    show: ({ apiKey }) => <span class="row-name">{apiKey.name}</span>,
    note: ({ apiKey, project }) => (
      <>
        {apiKey.last4 !== '' && <code class="nowrap">…{apiKey.last4}</code>} in {project?.name ?? 'a deleted project'}
      </>
    ),
  },
  {
    label: 'Status',
    show: (row) => <KeyStatus {...row} />,
    note: ({ apiKey: { status, revoked_at, expires_at } }) => {
      if (revoked_at !== null) return <Ago at={revoked_at} />
      if (expires_at === null) return null
      return (
        <span class="nowrap">
          {status === 'expired' ? 'since' : 'expires'} <Moment at={expires_at} isDay />
        </span>
      )
    },
  },
  {
    label: 'Last used',
    show: ({ apiKey, request }) => {
      const at = lastUseOf(apiKey, request)
      return at === null ? <span class="muted">never</span> : <Ago at={at} />
    },
    note: ({ request }) => request?.client && <span title={request.client}>by {shortClient(request.client)}</span>,
  },
  amountColumn('This month', ({ spent }) => spent ?? null),
  {
    label: 'Limits',
    show: ({ apiKey, project, workspace }) => <OwnLimits holders={holdersOf(apiKey, project, workspace)} />,
  },
  {
    label: 'Models',
    show: ({ apiKey: { models } }) =>
      models === null ? <span class="muted">its project’s</span> : <code>{models.join(', ')}</code>,
    note: ({ apiKey: { sources } }) => sources && `from ${sources.join(', ')}`,
  },
]

/** A key's own `last_used_at` can be a minute behind the request log. */
function lastUseOf({ last_used_at }: Key, request: RequestItem | undefined): string | null {
  if (!request || last_used_at === null) return request?.started_at ?? last_used_at
  return request.started_at > last_used_at ? request.started_at : last_used_at
}

/** A browser's user agent is too long to show. */
function shortClient(client: string): string {
  return client.startsWith('Mozilla/') ? 'a browser' : client
}

/** With its workspace, where all are shown. */
function useProjectLabel(): (project: Project) => string {
  const { nameOf, current } = useWorkspaces()
  return ({ name, workspace_id }) => (current ? name : `${nameOf(workspace_id)} / ${name}`)
}

interface NewKeyProps {
  /** At least one. */
  readonly projects: readonly Project[]
  onDone(key: KeyWithSecret): void
}

/** A name is enough; restrictions are optional and folded away. */
function NewKeyDialog({ projects, onDone }: NewKeyProps) {
  const labelOf = useProjectLabel()
  // Computed once, so that sending the form again sends the same.
  const [lifetimes] = useState(() => [
    { value: '', label: 'Never' },
    ...[7, 30, 90].map((days) => ({ value: isoTime(systemClock.now() + days * dayMs), label: `In ${days} days` })),
    { value: 'at', label: 'At a given time …' },
  ])
  return (
    <FormDialog
      title="New key"
      label="Create key"
      fold="More limits, expiry and restrictions"
      initial={{ project: projects[0]?.id ?? '' }}
      rows={[
        { name: 'name', label: 'Name', kind: 'name', hint: 'Who or what will use the key.', isRequired: true },
        {
          name: 'project',
          label: 'Project',
          isRequired: true,
          options: projects.map((project) => ({ value: project.id, label: labelOf(project) })),
        },
        ...limitRows,
        { name: 'expires', label: 'Expires', options: lifetimes, isFolded: true },
        {
          name: 'expires_on',
          label: 'Expires at (your time)',
          kind: 'moment',
          attributes: { required: true },
          isFolded: true,
          isShown: ({ expires }) => expires === 'at',
        },
        {
          name: 'sources',
          label: 'Allowed IP addresses',
          hint: 'One address or range per line, for example 10.0.0.0/8. Empty = any. This cannot be changed later.',
          kind: 'lines',
          isFolded: true,
        },
        {
          name: 'models',
          label: 'Allowed models',
          hint: 'One id or prefix/* per line. Empty = all project models. This cannot be changed later.',
          kind: 'lines',
          isFolded: true,
        },
      ]}
      send={({ name, project, expires, expires_on, sources = null, models = null, ...limits }, options) => {
        const expires_at = (expires === 'at' ? expires_on : expires) ?? null
        return callApi('createKey', { id: project, body: { name, limits, expires_at, sources, models } }, options)
      }}
      onDone={onDone}
    />
  )
}

const overlaps = [
  { value: '0', label: 'Immediately' },
  { value: '3600', label: 'After 1 hour' },
  { value: '86400', label: 'After 1 day' },
  { value: '604800', label: 'After 7 days' },
  { value: '2592000', label: 'After 30 days' },
] as const

interface KeyDialogProps<Value> {
  readonly apiKey: Key
  onDone(value: Value): void
}

function RotateDialog({ apiKey: { id, name, last4 }, onDone }: KeyDialogProps<KeyWithSecret>) {
  return (
    <FormDialog
      title={`Rotate ${name}`}
      label="Rotate"
      initial={{ overlap: '0' }}
      intro={`The key …${last4} gets a new secret, which is shown once. Its limits, project and history do not change.`}
      rows={[{ name: 'overlap', label: 'The old secret expires', options: overlaps, isRequired: true }]}
      send={({ overlap }, options) => callApi('rotateKey', { id, body: { overlap_seconds: Number(overlap) } }, options)}
      onDone={onDone}
    >
      {({ overlap }) => (
        <p class="hint" role="status">
          {overlap === '0'
            ? 'Programs that still use the old secret are refused from then on.'
            : 'Both secrets work until then. Choose “Immediately” if the old one may have leaked.'}
        </p>
      )}
    </FormDialog>
  )
}

/** Shows when and by which client the key was last used, so that no one is cut off by mistake. */
function RevokeDialog({ apiKey, onDone }: KeyDialogProps<unknown>) {
  const { id, name } = apiKey
  const { value, error, reload } = useApi('listRequests', { query: { key_id: id, limit: 1 } })
  const request = value?.data[0]
  const at = request?.started_at ?? apiKey.last_used_at
  return (
    <FormDialog
      title={`Revoke ${name}?`}
      label="Revoke key"
      isDanger
      cancelLabel="Keep key"
      rows={[]}
      send={() => callApi('revokeKey', { id, body: {} })}
      onDone={onDone}
    >
      {() => (
        <>
          {error && <ErrorNotice error={error} retry={reload} />}
          <p class="last-use" role="status">
            {!value && 'Loading its last use …'}
            {value && (at === null ? 'Never used.' : <>Last used {<Ago at={at} />}</>)}
            {value && request?.client && <> by {<strong>{request.client}</strong>}</>}
          </p>
          <p>
            All requests with this key will be refused. This cannot be undone. To change only its secret, rotate it.
          </p>
        </>
      )}
    </FormDialog>
  )
}

interface SecretDialogProps {
  readonly apiKey: KeyWithSecret
  readonly address: string
  /** Only a new key waits for its first request: the next request of a rotated key may use the old secret. */
  readonly isNew: boolean
  onClose(): void
}

function SecretDialog({ apiKey: { id, name, secret }, address, isNew, onClose }: SecretDialogProps) {
  const environment = [
    `OPENAI_BASE_URL=${address}/v1`,
    `OPENAI_API_KEY=${secret}`,
    `ANTHROPIC_BASE_URL=${address}`,
    `ANTHROPIC_API_KEY=${secret}`,
    `GOOGLE_GEMINI_BASE_URL=${address}`,
    `GEMINI_API_KEY=${secret}`,
  ].join('\n')
  const connect = `TOLLGATE_KEY=${secret} npx tollgate connect claude`
  const model = exampleModel(useApi('getCatalog', {}).value?.data ?? [])
  const curl = model && curlText(address, helloBody(model.id), { auth: `-H "Authorization: Bearer ${secret}"` })
  return (
    <OnceDialog
      title={`Secret of ${name}`}
      what="secret"
      value={secret}
      advice="Copy it now. A lost secret can only be replaced by rotating the key."
      onClose={onClose}
    >
      {isNew && <FirstRequest keyId={id} />}
      <CodeBlock title="As environment variables" what=".env lines" code={environment} />
      <CodeBlock title="Connect a client on your machine" what="connect command" code={connect} />
      {curl !== undefined && <CodeBlock title="Try it now" what="curl command" code={curl} />}
    </OnceDialog>
  )
}

const pollMs = 2_000

/** Waits for the first request with a new key. */
function FirstRequest({ keyId }: { readonly keyId: string }) {
  const { value, isLoading, reload } = useApi('listRequests', { query: { key_id: keyId, limit: 1 } })
  const request = value?.data[0]
  // An error does not stop the polling: the gateway may be restarting.
  useTimeout(reload, request || isLoading ? undefined : pollMs)
  if (!request) {
    return (
      <p role="status" class="first-request inset">
        <Status level="off" text="waiting for the first request …" />
      </p>
    )
  }
  const { id, status, code, model, client } = request
  return (
    <p role="status" class="first-request inset row">
      <Status level={status < 400 && code === null ? 'ok' : 'warning'} text="received" />
      <a href={`/console/requests/${id}`}>
        {model ?? 'a request'}, status {status}
        {status < 400 && code !== null && ` ${code}`}
      </a>
      {client && <small>from {client}</small>}
    </p>
  )
}

/** One key: its limits, usage, newest requests, and code that calls the models it may use. */
export function KeyView({ subject, address }: ConsoleData) {
  const key = useApi('getKey', { id: subject })
  return (
    <QueryView what="the key" query={key}>
      {(apiKey) => <KeyDetails apiKey={apiKey} address={address} onChange={key.reload} />}
    </QueryView>
  )
}

interface KeyDetailsProps {
  readonly apiKey: Key
  readonly address: string
  onChange(): void
}

function KeyDetails({ apiKey, address, onChange }: KeyDetailsProps) {
  const to = useConsolePath()
  useTitle(apiKey.name)
  const { project_id, workspace_id } = apiKey
  const owners = useQuery(`${project_id} ${workspace_id}`, () =>
    Promise.all([callApi('getProject', { id: project_id }), callApi('getWorkspace', { id: workspace_id })]),
  )
  const [project, workspace] = owners.value ?? []
  const reload = () => {
    onChange()
    owners.reload()
  }
  const actions = useKeyActions(address, reload)(apiKey)
  return (
    <>
      <DetailHead
        trail={[
          ['API keys', to('keys')],
          ...(project ? ([[project.name, to(`projects/${project.id}`)]] as const) : []),
        ]}
        title={apiKey.name}
        action={
          <span class="row">
            <Actions actions={actions} />
          </span>
        }
      >
        {apiKey.managed_by === 'file' && <p class="hint">Managed by a file: change its limits there.</p>}
      </DetailHead>
      <KeyFacts apiKey={apiKey} project={project} workspace={workspace} />
      <Card title="Limits">
        <QueryView what="limits" query={owners}>
          {([ofProject, ofWorkspace]) => <LimitsList holders={holdersOf(apiKey, ofProject, ofWorkspace)} />}
        </QueryView>
        <p class="hint">The tightest limit of key, project and workspace applies. Days and months are in UTC.</p>
      </Card>
      <UsageCard kind="key" id={apiKey.id} />
      <RecentRequests kind="key" id={apiKey.id} />
      <KeyCode apiKey={apiKey} address={address} />
    </>
  )
}

type KeyOwners = Pick<Row, 'apiKey' | 'project' | 'workspace'>

function KeyFacts({ apiKey, project, workspace }: KeyOwners) {
  const { id, last4, created_at, expires_at, models, sources } = apiKey
  const request = useApi('listRequests', { query: { key_id: id, limit: 1 } }).value?.data[0]
  const usedAt = lastUseOf(apiKey, request)
  return (
    <Facts
      facts={[
        ['Status', <KeyStatus key="status" apiKey={apiKey} project={project} workspace={workspace} />],
        ['Secret', last4 === '' ? 'none: used by signing in' : <code key="secret">sk-tg-…{last4}</code>],
        [
          'Last used',
          <>
            {usedAt === null ? 'never' : <Ago at={usedAt} />}
            {request?.client && <> by {<span title={request.client}>{shortClient(request.client)}</span>}</>}
          </>,
        ],
        ['Created', <Moment key="created" at={created_at} isDay />],
        [
          'Expires',
          expires_at === null ? (
            'never'
          ) : (
            <>
              <Moment at={expires_at} isDay /> ({<Ago at={expires_at} />})
            </>
          ),
        ],
        ['Allowed models', models === null ? 'all project models' : <code key="models">{models.join(', ')}</code>],
        ['Allowed IP addresses', sources === null ? 'any' : sources.join(', ')],
      ]}
    />
  )
}

/** Code for one of the models that the key may call now, for each client. */
function KeyCode({ apiKey, address }: Pick<KeyDetailsProps, 'apiKey' | 'address'>) {
  const offered = useApi('listProjectModels', { id: apiKey.project_id }).value?.data
  const [chosen, setChosen] = useState('')
  if (!offered || apiKey.status !== 'active') return null
  const lists = apiKey.models === null ? [] : [createAllowlist(apiKey.models)]
  const models = offered.filter((model) => !isEmbedder(model) && allowsModel(lists, model.id))
  const model = models.find(({ id }) => id === chosen) ?? exampleModel(models)
  if (!model) return null
  const snippets = snippetsFor({ address, modelId: model.id, maxOutputTokens: model.max_output_tokens ?? undefined })
  return (
    <Card
      title="Code"
      action={
        <Field
          label="Model"
          value={model.id}
          options={models.map(({ id }) => ({ value: id, label: id }))}
          onChange={setChosen}
        />
      }
    >
      <CodeChoice snippets={snippets} />
    </Card>
  )
}
