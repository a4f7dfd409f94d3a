/** @jsxImportSource preact */
// Who is signed in here, and the ways out: of this browser, and of all of them.

import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { endAllSessions, endSession } from '../../browser/session-call.ts'
import { FormActions } from '../manage/form-actions.tsx'
import { Sheet } from '../manage/sheet.tsx'
import { useSubmit } from '../manage/use-submit.ts'
import { Refusal } from '../parts/call-api.ts'
import { Refused } from '../parts/resource-view.tsx'

export function SessionCard({ actor }: { readonly actor: string }) {
  const [isAsking, setAsking] = useState(false)
  const submit = useSubmit()
  const signOut = () => submit.run(() => leaving(endSession), toTheDoor)
  return (
    <section class="card" aria-label="Session">
      <h2>Session</h2>
      <p>You are signed in as {actor}. A session ends after 12 hours without use, and after 7 days in any case.</p>
      {submit.refusal && <Refused refusal={submit.refusal} />}
      <div class="form-actions">
        <button type="button" class="button quiet small" disabled={submit.isBusy} onClick={signOut}>
          Sign out of this browser
        </button>
        <button type="button" class="button quiet small revoke" onClick={() => setAsking(true)}>
          Sign out everywhere
        </button>
      </div>
      <p class="hint">
        Every session also ends when the management token changes (<code>TOLLGATE_ADMIN_TOKEN</code>). A restart of the
        gateway ends none.
      </p>
      {isAsking && <EverywhereSheet onClose={() => setAsking(false)} />}
    </section>
  )
}

function EverywhereSheet({ onClose }: { onClose(): void }) {
  const submit = useSubmit()
  const signOut = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    submit.run(() => leaving(endAllSessions), toTheDoor)
  }
  return (
    <Sheet title="Sign out everywhere?" onClose={onClose}>
      <form class="sheet-form" onSubmit={signOut}>
        <p>
          Every browser that is signed in to this gateway is signed out at once, this one too, and sign-in links that
          nobody has used are void. Keys and the management token stay as they are.
        </p>
        <FormActions
          submit={submit}
          label="Sign out everywhere"
          busyLabel="Signing out …"
          isAlarm
          cancelLabel="Stay"
          onCancel={onClose}
        />
      </form>
    </Sheet>
  )
}

async function leaving(leave: () => Promise<string | undefined>): Promise<undefined | Refusal> {
  const problem = await leave()
  return problem === undefined ? undefined : new Refusal(0, problem, '')
}

function toTheDoor(): void {
  location.assign('/console')
}
