/** @jsxImportSource preact */
// Makes a project, or changes its name and the models it may call. What the list comes to stands beside it before it is
// saved.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import type { CatalogEntry } from '../../../catalog/entry.ts'
import { Field } from '../manage/field.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import { Sheet } from '../manage/sheet.tsx'
import type { Project } from '../manage/things.ts'
import { useIdempotencyKey } from '../manage/use-idempotency-key.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'
import { useToast } from '../parts/toast.tsx'
import { AllowlistPicker } from './allowlist-picker.tsx'
import { AllowlistPreview } from './allowlist-preview.tsx'

export interface ProjectSheetProps {
  readonly workspaceId: string
  /** undefined = a new one. */
  readonly project: Project | undefined
  readonly entries: readonly CatalogEntry[]
  /** Whether all that own keys open is among the entries. */
  readonly isWhole: boolean
  onClose(): void
  onSaved(): void
  /** The project is as it was before. */
  onUndone(): void
}

export function ProjectSheet({ workspaceId, project, entries, isWhole, ...on }: ProjectSheetProps) {
  const [name, setName] = useState(project?.name ?? '')
  const [models, setModels] = useState(project?.models ?? null)
  const body = { name: name.trim(), ...(project || models ? { models } : {}) }
  const idempotencyKey = useIdempotencyKey(JSON.stringify(body))
  const submit = useSubmit()
  const offerUndo = useToast()
  const save = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (!project) {
      const path = `/api/workspaces/${workspaceId}/projects`
      return submit.run(() => callApi(path, { method: 'POST', body, idempotencyKey }), on.onSaved)
    }
    const patch = (next: object) => callApi(`/api/projects/${project.id}`, { method: 'PATCH', body: next })
    submit.run(
      () => patch(body),
      () => {
        on.onSaved()
        const before = { name: project.name, models: project.models }
        offerUndo({ text: `Project ${body.name} changed.`, undo: () => patch(before), onUndone: on.onUndone })
      },
    )
  }
  return (
    <Sheet title={project ? `Models of ${project.name}` : 'New project'} onClose={on.onClose}>
      <form class="sheet-form" onSubmit={save}>
        <Field label="Name" value={name} isRequired lengthMax={100} onChange={setName} />
        <AllowlistPicker entries={entries} models={models} onChange={setModels} />
        <AllowlistPreview entries={entries} models={models} isWhole={isWhole} />
        <FormActions
          submit={submit}
          label={project ? 'Save' : 'Make the project'}
          busyLabel="Saving …"
          onCancel={on.onClose}
        />
      </form>
    </Sheet>
  )
}
