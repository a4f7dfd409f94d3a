/** @jsxImportSource preact */
// The foot of a form: what was said against it, the button that sends it once, and the way back.

import { Refused } from '../parts/resource-view.tsx'
import type { Submit } from './use-submit.ts'

export interface FormActionsProps {
  readonly submit: Submit
  readonly label: string
  /** While it runs: `Saving …` */
  readonly busyLabel: string
  /** It takes something away for good. */
  readonly isAlarm?: boolean
  readonly cancelLabel?: string
  /** Absent = the form stays where it is. */
  onCancel?(): void
}

export function FormActions(props: FormActionsProps) {
  const { submit, label, busyLabel, isAlarm = false, cancelLabel = 'Cancel', onCancel } = props
  return (
    <>
      {submit.refusal && <Refused refusal={submit.refusal} />}
      <div class="form-actions">
        <button type="submit" class={isAlarm ? 'button alarm' : 'button'} disabled={submit.isBusy}>
          {submit.isBusy ? busyLabel : label}
        </button>
        {onCancel && (
          <button type="button" class="button quiet" onClick={onCancel}>
            {cancelLabel}
          </button>
        )}
      </div>
    </>
  )
}
