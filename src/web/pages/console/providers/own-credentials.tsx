/** @jsxImportSource preact */
// The provider keys that a workspace brings itself: stored, replaced and deleted, never read back. And whether the
// operator's routes may follow when one of them fails.

import { useState } from 'preact/hooks'
import { together } from '../manage/call-all.ts'
import { LoadedView } from '../manage/loaded-view.tsx'
import type { Credential, Workspace } from '../manage/things.ts'
import { useLoad } from '../manage/use-load.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Refused } from '../parts/resource-view.tsx'
import { useToast } from '../parts/toast.tsx'
import type { ListAnswer } from '../parts/use-resource.ts'
import { Moment } from '../parts/zone.tsx'
import { CredentialSheet, credentialPath, DeleteCredentialSheet } from './credential-sheet.tsx'
import { KeyTest } from './key-test.tsx'

export interface OwnCredentialsProps {
  readonly workspaceId: string
}

type Open =
  | { readonly sheet: 'put'; readonly provider: string }
  | { readonly sheet: 'delete'; readonly provider: string }

export function OwnCredentials({ workspaceId }: OwnCredentialsProps) {
  const [open, setOpen] = useState<Open | undefined>(undefined)
  const path = `/api/workspaces/${workspaceId}`
  const loaded = useLoad(workspaceId, () =>
    together<[Workspace, ListAnswer<Credential>]>(callApi(path), callApi(`${path}/credentials`)),
  )
  const close = () => setOpen(undefined)
  const closeAndLoad = () => {
    close()
    loaded.again()
  }
  return (
    <section class="manage" aria-label="Own credentials">
      <header class="console-head">
        <h2>Own credentials</h2>
        <button type="button" class="button small" onClick={() => setOpen({ sheet: 'put', provider: '' })}>
          Add a key
        </button>
      </header>
      <LoadedView what="the credentials" loaded={loaded}>
        {([workspace, { data }]) => (
          <>
            <CredentialTable workspaceId={workspaceId} credentials={data} onAct={setOpen} />
            <SharesRoutes workspace={workspace} onSaved={loaded.again} />
          </>
        )}
      </LoadedView>
      {open?.sheet === 'put' && (
        <CredentialSheet workspaceId={workspaceId} provider={open.provider} onClose={close} onSaved={closeAndLoad} />
      )}
      {open?.sheet === 'delete' && (
        <DeleteCredentialSheet
          workspaceId={workspaceId}
          provider={open.provider}
          onClose={close}
          onDeleted={closeAndLoad}
        />
      )}
    </section>
  )
}

interface CredentialTableProps {
  readonly workspaceId: string
  readonly credentials: readonly Credential[]
  onAct(open: Open): void
}

function CredentialTable({ workspaceId, credentials, onAct }: CredentialTableProps) {
  if (credentials.length === 0) {
    return (
      <Empty title="None yet">
        <p>
          With a key of your own at a provider, models that it serves are called with it and cost nothing here. “Add a
          key” stores one; the next call uses it.
        </p>
      </Empty>
    )
  }
  const columns = [
    { label: 'Provider', show: ({ provider }: Credential) => <span class="row-name">{provider}</span> },
    { label: 'Key', show: ({ last4 }: Credential) => <code>…{last4}</code> },
    { label: 'From', show: () => 'this workspace' },
    { label: 'Address', show: ({ base_url }: Credential) => base_url ?? 'the provider’s own' },
    {
      label: 'Test',
      show: ({ provider, updated_at }: Credential) => (
        <KeyTest key={updated_at} provider={provider} path={`${credentialPath(workspaceId, provider)}/test`} />
      ),
    },
    { label: 'Stored', show: ({ updated_at }: Credential) => <Moment at={updated_at} /> },
    {
      label: 'Actions',
      show: ({ provider }: Credential) => (
        <div class="row-actions">
          <button
            type="button"
            class="button quiet small"
            aria-label={`Replace the key for ${provider}`}
            onClick={() => onAct({ sheet: 'put', provider })}
          >
            Replace
          </button>
          <button
            type="button"
            class="button quiet small revoke"
            aria-label={`Delete the key for ${provider}`}
            onClick={() => onAct({ sheet: 'delete', provider })}
          >
            Delete
          </button>
        </div>
      ),
    },
  ]
  return <DataTable caption="Own credentials" columns={columns} rows={credentials} keyOf={({ id }) => id} />
}

interface SharesRoutesProps {
  readonly workspace: Workspace
  onSaved(): void
}

function SharesRoutes({ workspace, onSaved }: SharesRoutesProps) {
  const submit = useSubmit()
  const offerUndo = useToast()
  const patch = (sharesRoutes: boolean) =>
    callApi(`/api/workspaces/${workspace.id}`, { method: 'PATCH', body: { shares_routes: sharesRoutes } })
  const change = (sharesRoutes: boolean) =>
    submit.run(
      () => patch(sharesRoutes),
      () => {
        onSaved()
        const text = sharesRoutes ? 'The operator’s routes may follow now.' : 'The operator’s routes do not follow now.'
        offerUndo({ text, undo: () => patch(!sharesRoutes), onUndone: onSaved })
      },
    )
  return (
    <>
      <label class="tick">
        <input
          type="checkbox"
          checked={workspace.shares_routes}
          disabled={submit.isBusy}
          onChange={({ currentTarget }) => change(currentTarget.checked)}
        />
        <span>When an own key fails, the operator’s routes may follow, at the usual price</span>
      </label>
      {submit.refusal && <Refused refusal={submit.refusal} />}
    </>
  )
}
