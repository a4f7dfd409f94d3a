/** @jsxImportSource preact */
// The keys as a table, which a narrow screen turns into cards. Ended keys stand last.

import type { Signal } from '../../../catalog/standing.ts'
import { CopyButton } from '../../shell/copy-button.tsx'
import { Lamp } from '../../shell/lamp.tsx'
import { Ago } from '../manage/ago.tsx'
import { projectText } from '../manage/declared-text.ts'
import { LimitsList } from '../manage/limits-list.tsx'
import type { Call, Key, Project, Workspace } from '../manage/things.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Empty } from '../parts/resource-view.tsx'
import { usdText } from '../parts/usd-text.ts'
import { Moment } from '../parts/zone.tsx'

export type KeyAct = 'rotate' | 'revoke' | 'limits'

export interface KeysTableProps {
  readonly workspace: Workspace
  readonly projects: readonly Project[]
  readonly keys: readonly Key[]
  /** Newest first; the client of a key's newest is shown. */
  readonly calls: readonly Call[]
  /** USD since the month began in UTC, by key; undefined = not known. */
  readonly spent: ReadonlyMap<string, string> | undefined
  onAct(act: KeyAct, key: Key): void
}

interface Row {
  readonly apiKey: Key
  readonly workspace: Workspace
  readonly project: Project | undefined
  readonly call: Call | undefined
  /** undefined = not known. */
  readonly spent: string | undefined
  onAct(act: KeyAct): void
}

export function KeysTable({ workspace, projects, keys, calls, spent, onAct }: KeysTableProps) {
  if (projects.length === 0) {
    return (
      <Empty title="No project yet">
        <p>
          A key belongs to a project. <a href="/console/projects">Make a project</a> first.
        </p>
      </Empty>
    )
  }
  if (keys.length === 0) {
    return (
      <Empty title="No keys yet">
        <p>Press “New key”: it takes a name, and the first call can follow at once.</p>
      </Empty>
    )
  }
  const rows = [...keys]
    .sort((a, b) => Number(a.status !== 'active') - Number(b.status !== 'active'))
    .map((apiKey) => ({
      apiKey,
      workspace,
      project: projects.find(({ id }) => id === apiKey.project_id),
      call: calls.find(({ key_id }) => key_id === apiKey.id),
      spent: spent?.get(apiKey.id),
      onAct: (act: KeyAct) => onAct(act, apiKey),
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
          <code>…{apiKey.last4}</code> in {project?.name ?? 'a project that is gone'}
        </small>
      </>
    ),
  },
  { label: 'State', show: ({ apiKey }) => <State {...apiKey} /> },
  {
    label: 'Last used',
    show: ({ apiKey, call }) => (
      <>
        <LastUse at={lastUse(apiKey, call)} />
        {call?.client && (
          <small class="row-note" title={call.client}>
            by {shortClient(call.client)}
          </small>
        )}
      </>
    ),
  },
  { label: 'This month', isNumber: true, show: (row) => <Spent {...row} /> },
  { label: 'Limits', show: (row) => <LimitsList holders={holdersOf(row)} /> },
  {
    label: 'May call',
    show: ({ apiKey: { models, sources } }) => (
      <>
        {models === null ? 'what its project may' : <code>{models.join(', ')}</code>}
        {sources !== null && <small class="row-note">from {sources.join(', ')}</small>}
      </>
    ),
  },
  { label: 'Actions', show: (row) => <Actions {...row} /> },
]

const signals: Readonly<Record<Key['status'], Signal>> = { active: 'go', expired: 'caution', revoked: 'stop' }

function State({ status, revoked_at, expires_at }: Key) {
  return (
    <>
      <Lamp signal={signals[status]} word={status} detail="" />
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

/** Against the key's own limit; those of project and workspace are spent by other keys too. */
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

/** What a key says of itself is up to a minute behind the log. */
function lastUse({ last_used_at }: Key, call: Call | undefined): string | null {
  if (!call || last_used_at === null) return call?.started_at ?? last_used_at
  return call.started_at > last_used_at ? call.started_at : last_used_at
}

function holdersOf({ apiKey, project, workspace }: Row) {
  return [
    { who: 'this key', limits: apiKey.limits },
    { who: 'the project', limits: project?.limits ?? {} },
    { who: 'the workspace', limits: workspace.limits },
  ]
}

/** What a file made only a file changes; its secret may be rotated by everybody. */
function Actions({ apiKey, workspace, project, onAct }: Row) {
  const { name, status, managed_by } = apiKey
  const acts = status === 'revoked' ? [] : managed_by === 'file' ? fileActs : ownActs
  return (
    <div class="row-actions">
      {acts.map(({ act, label }) => (
        <button
          key={act}
          type="button"
          class={`button quiet small ${act}`}
          aria-label={act === 'limits' ? `Limits of ${name}` : `${label} ${name}`}
          onClick={() => onAct(act)}
        >
          {label}
        </button>
      ))}
      {managed_by === 'file' && project && (
        <CopyButton
          text={projectText(workspace, project, [apiKey])}
          what={`YAML of ${name}`}
          label="from a file, copy YAML"
        />
      )}
    </div>
  )
}

const fileActs = [{ act: 'rotate', label: 'Rotate' }] as const
const ownActs = [...fileActs, { act: 'limits', label: 'Limits' }, { act: 'revoke', label: 'Revoke' }] as const

/** Browsers call themselves by everything that ever was one. */
function shortClient(client: string): string {
  return client.startsWith('Mozilla/') ? 'a browser' : client
}
