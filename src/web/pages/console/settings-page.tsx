/** @jsxImportSource preact */
// Settings of the whole gateway: workspaces, sessions, the configuration in force, and the audit log.

import { useState } from 'preact/hooks'
import type { ConsoleData } from '../../page-data.ts'
import { callApi, callForAll, type ItemOf, signOut, signOutEverywhere, type Workspace } from '../api.ts'
import { Button } from '../components.tsx'
import { useApi, useList, useQuery, useSubmit } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { auditLines } from './audit-text.ts'
import { Card, CopyField, Empty, ErrorNotice, ListView, PageIntro, QueryView, Section } from './components.tsx'
import { Moment, useTimeFormats } from './context.tsx'
import { Field, FormSheet } from './form.tsx'

export function SettingsPage({ address, actor }: ConsoleData) {
  return (
    <>
      <PageIntro title="Settings & audit log" intro="Settings of the whole gateway, and a record of all changes." />
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
  const query = useQuery('workspaces', () => callForAll('listWorkspaces', {}))
  const [open, setOpen] = useState<Workspace | 'new' | undefined>(undefined)
  const newButton = (
    <Button look="small" onClick={() => setOpen('new')}>
      New workspace
    </Button>
  )
  return (
    <Card title="Workspaces" action={newButton}>
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
                  <Button look="quiet small" aria-label={`Rename ${workspace.name}`} onClick={() => setOpen(workspace)}>
                    Rename
                  </Button>
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
    </Card>
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
  return (
    <FormSheet
      title={workspace ? `Rename ${workspace.name}` : 'New workspace'}
      label={workspace ? 'Rename' : 'Create workspace'}
      busyLabel="Saving …"
      content={body}
      onClose={onClose}
      send={(options) =>
        workspace
          ? callApi('updateWorkspace', { id: workspace.id, body })
          : callApi('createWorkspace', { body }, options)
      }
      // The workspace switch shows the names too.
      onDone={() => location.reload()}
    >
      <Field label="Name" value={name} isRequired lengthMax={100} onChange={setName} />
    </FormSheet>
  )
}

const toSignIn = () => location.assign('/console')

function SessionCard({ actor }: { readonly actor: string }) {
  const [isOpen, setOpen] = useState(false)
  const { isBusy, error, run } = useSubmit()
  return (
    <Card title="Session">
      <p>You are signed in as {actor}. A session ends after 12 hours without use, and after 7 days at the latest.</p>
      {error && <ErrorNotice error={error} />}
      <div class="form-actions">
        <Button look="quiet small" disabled={isBusy} onClick={() => run(signOut, toSignIn)}>
          Sign out of this browser
        </Button>
        <Button look="quiet small revoke" onClick={() => setOpen(true)}>
          Sign out everywhere
        </Button>
      </div>
      <p class="hint">
        All sessions also end when the management token changes (<code>TOLLGATE_ADMIN_TOKEN</code>). They survive a
        restart of the gateway.
      </p>
      {isOpen && (
        <FormSheet
          title="Sign out everywhere?"
          label="Sign out everywhere"
          busyLabel="Signing out …"
          isDanger
          cancelLabel="Stay signed in"
          onClose={() => setOpen(false)}
          send={signOutEverywhere}
          onDone={toSignIn}
        >
          <p>
            All browsers are signed out at once, including this one, and unused sign-in links stop working. API keys and
            the management token do not change.
          </p>
        </FormSheet>
      )}
    </Card>
  )
}

/** Read-only: settings are changed in the environment or the file. */
function ConfigurationCard({ address }: { readonly address: string }) {
  const query = useApi('getConfig', {})
  return (
    <Card title="Configuration">
      <p>
        The address of this gateway is <code class="wrap">{address}</code>. Settings come from the environment or{' '}
        <code>tollgate.yaml</code>, or have their default. Secrets are never shown.
      </p>
      <QueryView what="settings" query={query}>
        {({ data }) => {
          const defaults = data.filter(({ source }) => source === 'default')
          const configured = data.filter(({ source }) => source !== 'default')
          return (
            <>
              <SettingsTable caption="Configured settings" settings={configured} />
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
    </Card>
  )
}

type Setting = ItemOf<'getConfig'>

function SettingsTable({ caption, settings }: { readonly caption: string; readonly settings: readonly Setting[] }) {
  if (settings.length === 0) return null
  return <DataTable caption={caption} columns={settingColumns} rows={settings} keyOf={({ name }) => name} />
}

const settingColumns: readonly Column<Setting>[] = [
  { label: 'Setting', show: ({ name }) => <code class="wrap">{name}</code> },
  { label: 'Value', show: ({ value }) => <span class="wrap">{value}</span> },
  { label: 'Source', show: ({ source }) => <span class="wrap">{source}</span> },
]

type AuditEntry = ItemOf<'listAudit'>

const sequenceOf = ({ sequence }: AuditEntry) => String(sequence)

function AuditLog() {
  const list = useList('listAudit', { query: { limit: 50 } }, sequenceOf)
  return (
    <Section
      title="Audit log"
      action={<span class="hint">Each entry contains the hash of the previous one, so tampering is detectable.</span>}
    >
      <ListView
        what="the audit log"
        moreLabel="Show older changes"
        list={list}
        caption="Changes, newest first"
        columns={auditColumns}
        keyOf={sequenceOf}
        empty={
          <Empty title="No changes yet">
            <p>Created keys, projects, top-ups and other changes are listed here.</p>
          </Empty>
        }
      />
    </Section>
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
