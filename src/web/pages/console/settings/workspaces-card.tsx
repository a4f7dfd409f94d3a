/** @jsxImportSource preact */
// The workspaces there are, a new one, and other names for them. Each has a wallet, projects and credentials of its own.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { callForAll } from '../manage/call-all.ts'
import { Field } from '../manage/field.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import { LoadedView } from '../manage/loaded-view.tsx'
import { Sheet } from '../manage/sheet.tsx'
import type { Workspace } from '../manage/things.ts'
import { useIdempotencyKey } from '../manage/use-idempotency-key.ts'
import { useLoad } from '../manage/use-load.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'

export function WorkspacesCard() {
  const loaded = useLoad('workspaces', () => callForAll<Workspace>('/api/workspaces'))
  const [open, setOpen] = useState<Workspace | 'new' | undefined>(undefined)
  return (
    <section class="card" aria-label="Workspaces">
      <div class="console-head">
        <h2>Workspaces</h2>
        <button type="button" class="button small" onClick={() => setOpen('new')}>
          New workspace
        </button>
      </div>
      <LoadedView what="the workspaces" loaded={loaded}>
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
      </LoadedView>
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
  const idempotencyKey = useIdempotencyKey(body.name)
  const submit = useSubmit()
  const save = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const call = () =>
      workspace
        ? callApi(`/api/workspaces/${workspace.id}`, { method: 'PATCH', body })
        : callApi('/api/workspaces', { method: 'POST', body, idempotencyKey })
    // The whole page: the choice of a workspace beside it has the names too.
    submit.run(call, () => location.reload())
  }
  return (
    <Sheet title={workspace ? `Rename ${workspace.name}` : 'New workspace'} onClose={onClose}>
      <form class="sheet-form" onSubmit={save}>
        <Field label="Name" value={name} isRequired lengthMax={100} onChange={setName} />
        <FormActions
          submit={submit}
          label={workspace ? 'Rename' : 'Make the workspace'}
          busyLabel="Saving …"
          onCancel={onClose}
        />
      </form>
    </Sheet>
  )
}
