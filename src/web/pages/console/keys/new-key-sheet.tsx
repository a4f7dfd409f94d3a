/** @jsxImportSource preact */
// Makes a key. A name is enough; what narrows it stands below, out of the way.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { isoTime } from '../../../../kernel/clock.ts'
import { Choice, Field, linesOf } from '../manage/field.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import { limitsOf, textsOf } from '../manage/limits-fields.tsx'
import { Sheet } from '../manage/sheet.tsx'
import type { KeyWithSecret, Project } from '../manage/things.ts'
import { useIdempotencyKey } from '../manage/use-idempotency-key.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'
import { NarrowingFields, type NarrowingWish } from './narrowing-fields.tsx'

export interface NewKeySheetProps {
  /** At least one. */
  readonly projects: readonly Project[]
  onClose(): void
  onMade(key: KeyWithSecret): void
}

const wide: NarrowingWish = { limits: textsOf({}), life: '', expiresAt: undefined, sources: '', models: '' }

export function NewKeySheet({ projects, onClose, onMade }: NewKeySheetProps) {
  const [name, setName] = useState('')
  const [projectId, setProjectId] = useState(projects[0]?.id ?? '')
  const [narrowing, setNarrowing] = useState(wide)
  const body = { name: name.trim(), ...bodyOf(narrowing) }
  const idempotencyKey = useIdempotencyKey(JSON.stringify([projectId, body]))
  const submit = useSubmit()
  const make = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const path = `/api/projects/${projectId}/keys`
    submit.run(() => callApi<KeyWithSecret>(path, { method: 'POST', body, idempotencyKey }), onMade)
  }
  return (
    <Sheet title="New key" onClose={onClose}>
      <form class="sheet-form" onSubmit={make}>
        <Field
          label="Name"
          hint="For people: who or what will use it."
          value={name}
          isRequired
          lengthMax={100}
          onChange={setName}
        />
        {projects.length > 1 && (
          <Choice
            label="Project"
            value={projectId}
            options={projects.map(({ id, name: label }) => ({ value: id, label }))}
            onChange={setProjectId}
          />
        )}
        <details>
          <summary>Limits, expiry, where from</summary>
          <NarrowingFields wish={narrowing} onChange={setNarrowing} />
        </details>
        <FormActions submit={submit} label="Make the key" busyLabel="Making …" onCancel={onClose} />
      </form>
    </Sheet>
  )
}

function bodyOf({ limits, expiresAt, sources, models }: NarrowingWish) {
  const ranges = linesOf(sources)
  const allowed = linesOf(models)
  return {
    limits: limitsOf(limits),
    ...(expiresAt !== undefined && { expires_at: isoTime(expiresAt) }),
    ...(ranges.length > 0 && { sources: ranges }),
    ...(allowed.length > 0 && { models: allowed }),
  }
}
