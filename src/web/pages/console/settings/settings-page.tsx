/** @jsxImportSource preact */
// Settings of the whole gateway: workspaces, sessions, the configuration in force, and the audit log.

import { useState } from 'preact/hooks'
import type { ConsoleData } from '../../../page-data.ts'
import { callApi, callForAll, signOut, signOutEverywhere } from '../api-client.ts'
import type { AuditEntry, ListAnswer, Setting, Workspace } from '../api-types.ts'
import {
  type Column,
  CopyField,
  DataTable,
  Empty,
  ErrorNotice,
  Loading,
  MoreButton,
  QueryView,
} from '../components.tsx'
import { Moment, useTimeFormats } from '../context.tsx'
import { Field, Form, Sheet } from '../form.tsx'
import { useIdempotencyKey, useList, useQuery, useSubmit } from '../hooks.ts'
import { auditLines } from './audit-text.ts'

export function SettingsPage({ address, actor }: ConsoleData) {
  return (
    <>
      <header class="page-intro">
        <h1>Settings & audit log</h1>
        <p class="lede">Settings of the whole gateway, and a record of all changes.</p>
      </header>
      <div class="card-columns">
        <WorkspacesCard />
        <SessionCard actor={actor} />
      </div>
      <ConfigurationCard address={address} />
      <AuditLog />
    </>
  )
}

function WorkspacesCard() {
  const query = useQuery('/api/workspaces', { load: () => callForAll<Workspace>('/api/workspaces') })
  const [open, setOpen] = useState<Workspace | 'new' | undefined>(undefined)
  return (
    <section class="card" aria-label="Workspaces">
      <div class="console-head">
        <h2>Workspaces</h2>
        <button type="button" class="button small" onClick={() => setOpen('new')}>
          New workspace
        </button>
      </div>
      <QueryView what="workspaces" query={query}>
        {(workspaces) => (
          <ul class="plain">
            {workspaces.map((workspace) => (
              <li key={workspace.id} class="named-row">
                <span>
                  {workspace.name}
                  <small class="row-note">
                    <code>{workspace.id}</code>
                  </small>
                </span>
                {workspace.managed_by === 'api' ? (
                  <button
                    type="button"
                    class="button quiet small"
                    aria-label={`Rename ${workspace.name}`}
                    onClick={() => setOpen(workspace)}
                  >
                    Rename
                  </button>
                ) : (
                  <span class="hint">managed by a file</span>
                )}
              </li>
            ))}
          </ul>
        )}
      </QueryView>
      {open !== undefined && (
        <WorkspaceSheet workspace={open === 'new' ? undefined : open} onClose={() => setOpen(undefined)} />
      )}
    </section>
  )
}

interface WorkspaceSheetProps {
  /** undefined = a new one. */
  readonly workspace: Workspace | undefined
  onClose(): void
}

function WorkspaceSheet({ workspace, onClose }: WorkspaceSheetProps) {
  const [name, setName] = useState(workspace?.name ?? '')
  const body = { name: name.trim() }
  const idempotencyKey = useIdempotencyKey(body)
  const submit = useSubmit()
  const save = () =>
    submit.run(
      () =>
        workspace
          ? callApi(`/api/workspaces/${workspace.id}`, { method: 'PATCH', body })
          : callApi('/api/workspaces', { method: 'POST', body, idempotencyKey }),
      // The workspace switch shows the names too.
      () => location.reload(),
    )
  return (
    <Sheet title={workspace ? `Rename ${workspace.name}` : 'New workspace'} onClose={onClose}>
      <Form
        submit={submit}
        label={workspace ? 'Rename' : 'Create workspace'}
        busyLabel="Saving …"
        onCancel={onClose}
        onSubmit={save}
      >
        <Field label="Name" value={name} isRequired lengthMax={100} onChange={setName} />
      </Form>
    </Sheet>
  )
}

const toSignIn = () => location.assign('/console')

function SessionCard({ actor }: { readonly actor: string }) {
  const [isOpen, setOpen] = useState(false)
  const submit = useSubmit()
  return (
    <section class="card" aria-label="Session">
      <h2>Session</h2>
      <p>You are signed in as {actor}. A session ends after 12 hours without use, and after 7 days at the latest.</p>
      {submit.error && <ErrorNotice error={submit.error} />}
      <div class="form-actions">
        <button
          type="button"
          class="button quiet small"
          disabled={submit.isBusy}
          onClick={() => submit.run(signOut, toSignIn)}
        >
          Sign out of this browser
        </button>
        <button type="button" class="button quiet small revoke" onClick={() => setOpen(true)}>
          Sign out everywhere
        </button>
      </div>
      <p class="hint">
        All sessions also end when the management token changes (<code>TOLLGATE_ADMIN_TOKEN</code>). They survive a
        restart of the gateway.
      </p>
      {isOpen && <SignOutEverywhereSheet onClose={() => setOpen(false)} />}
    </section>
  )
}

function SignOutEverywhereSheet({ onClose }: { onClose(): void }) {
  const submit = useSubmit()
  return (
    <Sheet title="Sign out everywhere?" onClose={onClose}>
      <Form
        submit={submit}
        label="Sign out everywhere"
        busyLabel="Signing out …"
        isDanger
        cancelLabel="Stay signed in"
        onCancel={onClose}
        onSubmit={() => submit.run(signOutEverywhere, toSignIn)}
      >
        <p>
          All browsers are signed out at once, including this one, and unused sign-in links stop working. API keys and
          the management token do not change.
        </p>
      </Form>
    </Sheet>
  )
}

/** Read-only: settings are changed in the environment or the file. */
function ConfigurationCard({ address }: { readonly address: string }) {
  const query = useQuery<ListAnswer<Setting>>('/api/config')
  return (
    <section class="card" aria-label="Configuration">
      <h2>Configuration</h2>
      <p>
        The address of this gateway is <code class="wrap">{address}</code>. Settings come from the environment or{' '}
        <code>tollgate.yaml</code>, or have their default. Secrets are never shown.
      </p>
      <QueryView what="settings" query={query}>
        {({ data }) => {
          const defaults = data.filter(({ source }) => source === 'default')
          return (
            <>
              <SettingsTable
                caption="Configured settings"
                settings={data.filter(({ source }) => source !== 'default')}
              />
              {defaults.length > 0 && (
                <details>
                  <summary>{defaults.length} settings with their default</summary>
                  <SettingsTable caption="Settings with their default" settings={defaults} />
                </details>
              )}
            </>
          )
        }}
      </QueryView>
      <CopyField
        title="Export workspaces, projects, keys and limits to a file"
        what="export command"
        text="npx tollgate config export"
      />
    </section>
  )
}

function SettingsTable({ caption, settings }: { readonly caption: string; readonly settings: readonly Setting[] }) {
  if (settings.length === 0) return null
  return <DataTable caption={caption} columns={settingColumns} rows={settings} keyOf={({ name }) => name} />
}

const settingColumns: readonly Column<Setting>[] = [
  { label: 'Setting', show: ({ name }) => <code class="wrap">{name}</code> },
  { label: 'Value', show: ({ value }) => <span class="wrap">{value}</span> },
  { label: 'Source', show: ({ source }) => <span class="wrap">{source}</span> },
]

function AuditLog() {
  const list = useList<AuditEntry>('/api/audit?limit=50', ({ sequence }) => String(sequence))
  return (
    <section class="stack" aria-label="Audit log">
      <header class="console-head">
        <h2>Audit log</h2>
        <span class="hint">Each entry contains the hash of the previous one, so tampering is detectable.</span>
      </header>
      {list.error && <ErrorNotice error={list.error} retry={list.reload} />}
      {list.items.length > 0 ? (
        <DataTable
          caption="Changes, newest first"
          columns={auditColumns}
          rows={list.items}
          keyOf={({ sequence }) => String(sequence)}
        />
      ) : list.isLoading ? (
        <Loading what="the audit log" />
      ) : (
        !list.error && (
          <Empty title="No changes yet">
            <p>Created keys, projects, top-ups and other changes are listed here.</p>
          </Empty>
        )
      )}
      <MoreButton label="Show older changes" pages={list} />
    </section>
  )
}

const auditColumns: readonly Column<AuditEntry>[] = [
  { label: 'Action', isWhole: true, show: ({ action }) => <strong>{action}</strong> },
  { label: 'Time', isWhole: true, show: ({ at }) => <Moment at={at} /> },
  { label: 'Actor', isWhole: true, show: ({ actor }) => actor },
  { label: 'Object', show: ({ object }) => <code class="object">{object}</code> },
  { label: 'Details', show: (entry) => <AuditDetails entry={entry} /> },
]

function AuditDetails({ entry }: { readonly entry: AuditEntry }) {
  const { moment } = useTimeFormats()
  const lines = auditLines(entry, moment)
  if (lines.length === 0) return <span class="muted">none</span>
  return (
    <ul class="details">
      {lines.map(({ name, text, isRaw }) => (
        <li key={name}>
          {name !== '' && `${name}: `}
          {isRaw ? <code class="wrap">{text}</code> : <span class="wrap">{text}</span>}
        </li>
      ))}
    </ul>
  )
}
