/** @jsxImportSource preact */
// Who hosts the models: how every route is doing at this moment, and the keys that a workspace brings itself. Providers of
// the operator are declared in the configuration file and only shown here.

import { useLiveEntries } from '../../browser/live-entries.ts'
import { LiveLamp } from '../../catalog/live-lamp.tsx'
import { OfWorkspace } from '../manage/of-workspace.tsx'
import { Empty, Loading } from '../parts/resource-view.tsx'
import { OperatorProviders } from './operator-providers.tsx'
import { OwnCredentials } from './own-credentials.tsx'
import { providersOf, RoutesTable } from './routes-table.tsx'

const lede = 'Every way to every model, and how it is doing now. A failed try goes to the next route unseen.'

export function ProvidersPage() {
  const { entries, live } = useLiveEntries([], '', (all) => all)
  const providers = providersOf(entries)
  const isOnlyRehearsal = providers.every(({ rows }) => rows.every(({ route }) => route.rehearsal === true))
  return (
    <>
      <OfWorkspace title="Providers & routes" lede={lede}>
        {(workspaceId) => <OwnCredentials workspaceId={workspaceId} />}
      </OfWorkspace>
      <OperatorProviders providers={providers} />
      <header class="console-head">
        <h2>Routes</h2>
        <LiveLamp state={live} />
      </header>
      <p class="hint">
        The state of a route is learned from real calls: it stays as it is when a test of the key fails, until a call
        does. The sandbox is not measured.
      </p>
      {entries.length === 0 && live !== 'live' && <Loading what="the routes" />}
      {entries.length > 0 && isOnlyRehearsal && (
        <Empty title="Only the sandbox is on">
          <p>
            Start the gateway with the usual variable of a provider, or declare one in <code>tollgate.yaml</code>; no
            restart is needed for the file. <code>npx tollgate providers</code> lists every provider and its variable.
          </p>
        </Empty>
      )}
      {providers.map(({ provider, rows }) => (
        <RoutesTable key={provider} provider={provider} rows={rows} />
      ))}
    </>
  )
}
