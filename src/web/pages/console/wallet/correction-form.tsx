/** @jsxImportSource preact */
// Puts right what came in wrongly, or was paid back: a new transfer with a reason. Folded away, because it is rarely meant.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { Choice, Field } from '../manage/field.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import type { Correction } from '../manage/things.ts'
import { useIdempotencyKey } from '../manage/use-idempotency-key.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'

export interface CorrectionFormProps {
  readonly workspaceId: string
  onDone(correction: Correction): void
}

const directions = [
  { value: 'take', label: 'Take out' },
  { value: 'add', label: 'Add' },
] as const

export function CorrectionForm({ workspaceId, onDone }: CorrectionFormProps) {
  const [direction, setDirection] = useState('take')
  const [amount, setAmount] = useState('')
  const [reason, setReason] = useState('')
  const body = { amount: amount.trim(), direction, reason: reason.trim() }
  const idempotencyKey = useIdempotencyKey(JSON.stringify(body))
  const submit = useSubmit()
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const path = `/api/workspaces/${workspaceId}/corrections`
    submit.run(
      () => callApi<Correction>(path, { method: 'POST', body, idempotencyKey }),
      (correction) => {
        setAmount('')
        setReason('')
        onDone(correction)
      },
    )
  }
  return (
    <details>
      <summary>Correct the balance</summary>
      <form class="top-up" onSubmit={send} aria-label="Correct the balance">
        <Choice label="Direction" value={direction} options={directions} onChange={setDirection} />
        <Field
          label="Correct by, in USD"
          hint="Only what is available can be taken out."
          kind="decimal"
          value={amount}
          isRequired
          onChange={setAmount}
        />
        <Field
          label="Reason"
          hint="For people: it stands in the ledger and in the audit log."
          value={reason}
          lengthMax={200}
          isRequired
          onChange={setReason}
        />
        <FormActions submit={submit} label="Correct" busyLabel="Correcting …" />
      </form>
    </details>
  )
}
