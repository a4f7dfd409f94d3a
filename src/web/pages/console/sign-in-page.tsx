/** @jsxImportSource preact */
// The door of the console. A one-time link in the address is used at once, and taken out of the address; otherwise the
// management token opens it.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { SignInData } from '../../page-data.ts'
import { openSession } from '../browser/session-call.ts'
import { takeEndedSession } from './parts/ended-session.ts'

export function SignInPage({ isExposed, tokenPlace }: SignInData) {
  const [token, setToken] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const [hasEnded, setEnded] = useState(false)
  const open = async (wish: { link: string } | { token: string }) => {
    setBusy(true)
    const refused = await openSession(wish)
    if (refused === undefined) return location.replace(wantedPath())
    setBusy(false)
    setProblem(refused)
  }
  useEffect(() => {
    setEnded(takeEndedSession())
    const link = new URLSearchParams(location.search).get('t')
    if (link === null) return
    history.replaceState(null, '', wantedPath())
    void open({ link })
  }, [])
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void open({ token })
  }
  return (
    <section class="door">
      <h1>Console</h1>
      {isExposed && (
        <p class="warning" role="note">
          <strong>This connection is not encrypted.</strong> Anyone between you and the gateway can read what you send.
          Use https, or open the console on the machine itself.
        </p>
      )}
      {hasEnded && (
        <p class="warning" role="status">
          <strong>Your session has ended.</strong> That happens after 12 hours without use, after 7 days in any case,
          and when somebody signs out everywhere or changes the management token. Sign in, and you are back on this
          page; what you were about to send was not sent.
        </p>
      )}
      <form onSubmit={submit} class="needs-script">
        <label for="token">Management token</label>
        <input
          id="token"
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          required
          value={token}
          aria-describedby="token-place"
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
        <p id="token-place" class="hint">
          {tokenPlace} The first start also prints a link that signs in once.
        </p>
        <button class="button" type="submit" disabled={isBusy}>
          {isBusy ? 'Opening …' : 'Open the console'}
        </button>
        <p role="alert" class="problem">
          {problem}
        </p>
      </form>
      <p class="without-script">The console needs JavaScript. The catalog does not.</p>
      <p>
        <a href="/">To the catalog</a>
      </p>
    </section>
  )
}

/** The page that was asked for: the door stands at its address, with the secret of a link at most beside it. */
function wantedPath(): string {
  const query = new URLSearchParams(location.search)
  query.delete('t')
  const text = query.toString()
  const path = isOfConsole(location.pathname) ? location.pathname : '/console'
  return text === '' ? path : `${path}?${text}`
}

function isOfConsole(path: string): boolean {
  return path === '/console' || path.startsWith('/console/')
}
