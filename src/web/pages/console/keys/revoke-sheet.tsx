/** @jsxImportSource preact */
// Ends a key for good. Before that it says when and by which client the key was used last, so that nobody is cut off by
// mistake.

import type { TargetedSubmitEvent } from 'preact'
import { Ago } from '../manage/ago.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import { Sheet } from '../manage/sheet.tsx'
import type { Call, Key } from '../manage/things.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'
import { Refused } from '../parts/resource-view.tsx'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'

export interface RevokeSheetProps {
  readonly apiKey: Key
  onClose(): void
  onRevoked(): void
}

export function RevokeSheet({ apiKey, onClose, onRevoked }: RevokeSheetProps) {
  const submit = useSubmit()
  const last = useResource<ListAnswer<Call>>(`/api/requests?key_id=${apiKey.id}&limit=1`)
  const revoke = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    submit.run(() => callApi<Key>(`/api/keys/${apiKey.id}/revoke`, { method: 'POST', body: {} }), onRevoked)
  }
  return (
    <Sheet title={`Revoke ${apiKey.name}?`} onClose={onClose}>
      <form class="sheet-form" onSubmit={revoke}>
        {last.refusal && <Refused refusal={last.refusal} again={last.again} />}
        <p class="last-use" role="status">
          {last.value ? <LastUse apiKey={apiKey} call={last.value.data[0]} /> : 'Looking up its last use …'}
        </p>
        <p>Every call with it is refused from then on. This cannot be undone; to change only its secret, rotate it.</p>
        <FormActions
          submit={submit}
          label="Revoke the key"
          busyLabel="Revoking …"
          isAlarm
          cancelLabel="Keep it"
          onCancel={onClose}
        />
      </form>
    </Sheet>
  )
}

function LastUse({ apiKey, call }: { readonly apiKey: Key; readonly call: Call | undefined }) {
  const at = call?.started_at ?? apiKey.last_used_at
  if (at === null) return <>It was never used.</>
  return (
    <>
      Last used <Ago at={at} />
      {call?.client && (
        <>
          {' '}
          by <strong class="client">{call.client}</strong>
        </>
      )}
      .
    </>
  )
}
