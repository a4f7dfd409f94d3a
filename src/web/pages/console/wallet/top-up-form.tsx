/** @jsxImportSource preact */
// Puts money in by hand. One form carries one idempotency key until it has worked: pressed again after a lost answer, the
// money comes in once.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { Field } from '../manage/field.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import type { TopUp } from '../manage/things.ts'
import { useIdempotencyKey } from '../manage/use-idempotency-key.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'

export interface TopUpFormProps {
  readonly workspaceId: string
  onDone(topUp: TopUp): void
}

export function TopUpForm({ workspaceId, onDone }: TopUpFormProps) {
  const [amount, setAmount] = useState('')
  const [reference, setReference] = useState('')
  const body = { amount: amount.trim(), ...(reference.trim() !== '' && { reference: reference.trim() }) }
  const idempotencyKey = useIdempotencyKey(JSON.stringify(body))
  const submit = useSubmit()
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const path = `/api/workspaces/${workspaceId}/topups`
    submit.run(
      () => callApi<TopUp>(path, { method: 'POST', body, idempotencyKey }),
      (topUp) => {
        setAmount('')
        setReference('')
        onDone(topUp)
      },
    )
  }
  return (
    <form class="top-up" onSubmit={send} aria-label="Top up">
      <h2>Top up</h2>
      <Field
        label="Amount in USD"
        hint="Up to 1,000,000, such as 25.00"
        kind="decimal"
        value={amount}
        isRequired
        onChange={setAmount}
      />
      <Field
        label="Reference"
        hint="For people, such as an invoice; may stay empty."
        value={reference}
        lengthMax={200}
        onChange={setReference}
      />
      <FormActions submit={submit} label="Top up" busyLabel="Adding …" />
    </form>
  )
}
