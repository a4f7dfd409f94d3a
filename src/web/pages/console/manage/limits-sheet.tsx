/** @jsxImportSource preact */
// Changes the limits of a key, a project or a workspace, and says before it does what will be different.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { callApi } from '../parts/call-api.ts'
import { useToast } from '../parts/toast.tsx'
import { FormActions } from './form-actions.tsx'
import { LimitsDiff, LimitsFields, limitsOf, textsOf } from './limits-fields.tsx'
import { Sheet } from './sheet.tsx'
import type { Limits } from './things.ts'
import { useSubmit } from './use-submit.ts'

export interface LimitsSheetProps {
  /** `key ci`, `workspace default` */
  readonly whose: string
  /** Of the API, such as `/api/keys/key_…/limits`. */
  readonly path: string
  readonly limits: Limits
  onClose(): void
  onSaved(): void
  /** The limits are as they were before. */
  onUndone(): void
}

export function LimitsSheet({ whose, path, limits, onClose, onSaved, onUndone }: LimitsSheetProps) {
  const [texts, setTexts] = useState(textsOf(limits))
  const submit = useSubmit()
  const offerUndo = useToast()
  const save = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const put = (body: Limits) => callApi<Limits>(path, { method: 'PUT', body })
    submit.run(
      () => put(limitsOf(texts)),
      () => {
        onSaved()
        offerUndo({ text: `Limits of the ${whose} changed.`, undo: () => put(limits), onUndone })
      },
    )
  }
  return (
    <Sheet title={`Limits of the ${whose}`} onClose={onClose}>
      <form class="sheet-form" onSubmit={save}>
        <p class="hint">
          Empty = no limit. The tightest of key, project and workspace holds; a change acts on the next request.
        </p>
        <LimitsFields texts={texts} onChange={setTexts} />
        <LimitsDiff before={limits} texts={texts} />
        <FormActions submit={submit} label="Save limits" busyLabel="Saving …" onCancel={onClose} />
      </form>
    </Sheet>
  )
}
