/** @jsxImportSource preact */
// The console behind the door.

import { useState } from 'preact/hooks'
import type { ConsoleData } from '../../page-data.ts'
import { endSession } from '../browser/session-call.ts'

export function ConsolePage({ actor }: ConsoleData) {
  const [problem, setProblem] = useState('')
  const signOut = async () => {
    const refused = await endSession()
    if (refused === undefined) location.assign('/console')
    else setProblem(refused)
  }
  return (
    <section class="notice">
      <h1>Console</h1>
      <p>
        You are signed in ({actor}). What is sold here stands in the <a href="/">catalog</a>.
      </p>
      <p>
        <button type="button" class="button quiet" onClick={signOut}>
          Sign out
        </button>
      </p>
      <p role="alert" class="problem">
        {problem}
      </p>
    </section>
  )
}
