/** @jsxImportSource preact */
// Who is signed in here, and the ways out: of this browser, and of all of them.

import { endSession } from '../../browser/session-call.ts'
import { CopiedText } from '../manage/copied-text.tsx'
import { useSubmit } from '../manage/use-submit.ts'
import { Refusal } from '../parts/call-api.ts'
import { Refused } from '../parts/resource-view.tsx'

export function SessionCard({ actor }: { readonly actor: string }) {
  const submit = useSubmit()
  const leave = async () => {
    const problem = await endSession()
    return problem === undefined ? undefined : new Refusal(0, problem, '')
  }
  const signOut = () => submit.run(leave, () => location.assign('/console'))
  return (
    <section class="card" aria-label="Session">
      <h2>Session</h2>
      <p>You are signed in as {actor}. A session ends after 12 hours without use, and after 7 days in any case.</p>
      {submit.refusal && <Refused refusal={submit.refusal} />}
      <p>
        <button type="button" class="button quiet small" disabled={submit.isBusy} onClick={signOut}>
          Sign out of this browser
        </button>
      </p>
      <p>
        <strong>Everywhere:</strong> every session ends at once when the management token changes. Start the gateway
        with a new one in <code>TOLLGATE_ADMIN_TOKEN</code>, or restart it; sessions do not outlive the process.
      </p>
      <CopiedText
        title="A new token, and everybody out"
        what="command that changes the token"
        text={'TOLLGATE_ADMIN_TOKEN="$(openssl rand -base64 32)" npm start'}
      />
    </section>
  )
}
