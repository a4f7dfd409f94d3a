/** @jsxImportSource preact */
// Gives a key a new secret. When the old one ends is chosen here: at once unless somebody says otherwise.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { Choice } from '../manage/field.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import { Sheet } from '../manage/sheet.tsx'
import type { Key, KeyWithSecret } from '../manage/things.ts'
import { useIdempotencyKey } from '../manage/use-idempotency-key.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'

export interface RotateSheetProps {
  readonly apiKey: Key
  onClose(): void
  onRotated(key: KeyWithSecret): void
}

const overlaps = [
  { value: '0', label: 'At once' },
  { value: '3600', label: 'After 1 hour' },
  { value: '86400', label: 'After 1 day' },
  { value: '604800', label: 'After 7 days' },
  { value: '2592000', label: 'After 30 days' },
] as const

export function RotateSheet({ apiKey, onClose, onRotated }: RotateSheetProps) {
  const [overlap, setOverlap] = useState('0')
  const idempotencyKey = useIdempotencyKey(overlap)
  const submit = useSubmit()
  const rotate = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const path = `/api/keys/${apiKey.id}/rotate`
    const body = { overlap_seconds: Number(overlap) }
    submit.run(() => callApi<KeyWithSecret>(path, { method: 'POST', body, idempotencyKey }), onRotated)
  }
  return (
    <Sheet title={`Rotate ${apiKey.name}`} onClose={onClose}>
      <form class="sheet-form" onSubmit={rotate}>
        <p>The key …{apiKey.last4} gets a new secret, shown once. Limits, project and history stay with the key.</p>
        <Choice
          label="The old secret ends"
          value={overlap}
          options={overlaps}
          hint={
            overlap === '0'
              ? 'Programs that still use it are refused from then on.'
              : 'Until then both secrets are good. Choose “At once” if the old one may have leaked.'
          }
          onChange={setOverlap}
        />
        <FormActions submit={submit} label="Rotate" busyLabel="Rotating …" onCancel={onClose} />
      </form>
    </Sheet>
  )
}
