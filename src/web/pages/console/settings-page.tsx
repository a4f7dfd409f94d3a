/** @jsxImportSource preact */
// Settings of the whole gateway: workspaces, sessions and the configuration in force.

import type { ConsoleData } from '../../page-data.ts'
import { callApi, callForAll, type ItemOf, signOut, signOutEverywhere, type Workspace } from '../api.ts'
import { Button, CodeBlock, ErrorNotice } from '../components.tsx'
import { useApi, useQuery, useSubmit } from '../hooks.ts'
import type { Column } from '../table.tsx'
import { toSignIn } from './account-page.tsx'
import { Actions, Card, LongTable, QueryView } from './components.tsx'
import { managedSettingsPath } from './managed-settings-page.tsx'
import { useConsolePath } from './navigation.ts'
import { FormDialog, useOverlay } from './overlay.tsx'

export function SettingsView({ address, actor, isPerson }: ConsoleData) {
  return (
    <>
      <div class="card-columns">
        <WorkspacesCard />
        <SessionCard signedIn={isPerson ? `as ${actor}` : 'with the management token'} />
      </div>
      <ConfigurationCard address={address} />
      <ManagedSettingsCard />
    </>
  )
}

function WorkspacesCard() {
  const query = useQuery('workspaces', () => callForAll('listWorkspaces', {}))
  const { open } = useOverlay()
  const edit = (workspace?: Workspace) => open(<WorkspaceDialog workspace={workspace} />)
  return (
    <Card title="Workspaces" action={{ label: 'New workspace', look: 'primary', run: () => edit() }}>
      <QueryView what="workspaces" query={query}>
        {(workspaces) => (
          <ul class="plain">
            {workspaces.map((workspace) => (
              <li key={workspace.id} class="between">
                <span>
                  {workspace.name}
                  <small class="note">
                    <code>{workspace.id}</code>
                  </small>
                </span>
                {workspace.managed_by === 'file' && <span class="hint">managed by a file</span>}
                {workspace.managed_by === 'api' && (
                  <Actions
                    actions={[{ label: 'Rename', name: `Rename ${workspace.name}`, run: () => edit(workspace) }]}
                  />
                )}
              </li>
            ))}
          </ul>
        )}
      </QueryView>
    </Card>
  )
}

/** Renames a workspace, or creates one if it is undefined. */
function WorkspaceDialog({ workspace }: { readonly workspace: Workspace | undefined }) {
  return (
    <FormDialog
      title={workspace ? `Rename ${workspace.name}` : 'New workspace'}
      label={workspace ? 'Rename' : 'Create workspace'}
      initial={{ name: workspace?.name ?? '' }}
      rows={[{ name: 'name', label: 'Name', kind: 'name', isRequired: true }]}
      send={(body, options) =>
        workspace
          ? callApi('updateWorkspace', { id: workspace.id, body })
          : callApi('createWorkspace', { body }, options)
      }
      // The workspace switch shows the names too.
      onDone={() => location.reload()}
    />
  )
}

function SessionCard({ signedIn }: { readonly signedIn: string }) {
  const { ask } = useOverlay()
  const { isBusy, error, run } = useSubmit()
  const askAndSignOut = () =>
    ask({
      title: 'Sign out everywhere?',
      label: 'Sign out everywhere',
      cancelLabel: 'Stay signed in',
      intro:
        'All browsers are signed out at once, including this one, and unused sign-in links stop working. API keys and the management token do not change.',
      send: signOutEverywhere,
      onDone: toSignIn,
    })
  return (
    <Card title="Session">
      <p>You are signed in {signedIn}. A session ends after 12 hours without use, and after 7 days at the latest.</p>
      {error && <ErrorNotice error={error} />}
      <div class="row">
        <Button look="quiet small" disabled={isBusy} onClick={() => run(signOut, toSignIn)}>
          Sign out of this browser
        </Button>
        <Button look="quiet small revoke" onClick={askAndSignOut}>
          Sign out everywhere
        </Button>
      </div>
      <p class="hint">
        All sessions also end when the management token changes (<code>TOLLGATE_ADMIN_TOKEN</code>). They survive a
        restart of the gateway.
      </p>
    </Card>
  )
}

function ManagedSettingsCard() {
  const to = useConsolePath()
  return (
    <Card title="Managed settings of Claude Code">
      <p>
        Permissions, environment and hooks that Claude Code gets when people sign in to this gateway, by role and group.
      </p>
      <p>
        <a href={to(managedSettingsPath)}>Edit managed settings</a>
      </p>
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
          const settingOf = (name: string) => data.find((setting) => setting.name === name)?.value
          return (
            <>
              <p>
                {settingOf('server.store_responses') === 'on'
                  ? `Stored responses are on: what callers of /v1/responses send with store: true is kept, encrypted, for ${settingOf('server.responses_retention_days')} days.`
                  : 'Stored responses are off: store: true has no effect on /v1/responses.'}
              </p>
              <SettingsTable caption="Configured settings" settings={configured} />
              <details>
                <summary>{defaults.length} settings with their default</summary>
                <SettingsTable caption="Settings with their default" settings={defaults} />
              </details>
            </>
          )
        }}
      </QueryView>
      <CodeBlock
        title="Export workspaces, projects, keys and limits to a file"
        what="export command"
        code="npx tollgate config export"
      />
    </Card>
  )
}

type Setting = ItemOf<'getConfig'>

function SettingsTable({ caption, settings }: { readonly caption: string; readonly settings: readonly Setting[] }) {
  if (settings.length === 0) return null
  return (
    <LongTable what="settings" caption={caption} columns={settingColumns} rows={settings} keyOf={({ name }) => name} />
  )
}

const settingColumns: readonly Column<Setting>[] = [
  { label: 'Setting', show: ({ name }) => <code class="wrap">{name}</code> },
  { label: 'Value', show: ({ value }) => <span class="wrap">{value}</span> },
  { label: 'Source', show: ({ source }) => <span class="wrap">{source}</span> },
]
