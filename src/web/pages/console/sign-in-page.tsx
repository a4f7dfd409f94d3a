/** @jsxImportSource preact */
// Signing in to the console. A one-time link in the address is used at once and removed from the address; otherwise the
// management token signs in.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { SignInData } from '../../page-data.ts'
import { signIn, takeSessionEnded } from '../api.ts'
import { Field } from '../form.tsx'
import { useSubmit } from '../hooks.ts'

export function SignInPage({ isExposed, tokenPlace }: SignInData) {
  const [token, setToken] = useState('')
  const [hasEnded, setEnded] = useState(false)
  // Stays busy after success: the page is about to be replaced.
  const [isLeaving, setLeaving] = useState(false)
  const submit = useSubmit()
  const open = (credentials: { link: string } | { token: string }) =>
    submit.run(
      () => signIn(credentials),
      () => {
        setLeaving(true)
        location.replace(requestedPath())
      },
    )
  useEffect(() => {
    setEnded(takeSessionEnded())
    const link = new URLSearchParams(location.search).get('t')
    if (link === null) return
    history.replaceState(null, '', requestedPath())
    open({ link })
  }, [])
  const onSubmit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    open({ token })
  }
  const isBusy = submit.isBusy || isLeaving
  return (
    <section class="sign-in notice card stack">
      <h1>Sign in</h1>
      {isExposed && (
        <p class="warning" role="note">
          <strong>This connection is not encrypted.</strong> Anyone between you and the gateway can read what you send.
          Use https, or open the console on the gateway’s own machine.
        </p>
      )}
      {hasEnded && (
        <p class="warning" role="status">
          <strong>Your session has ended.</strong> Sessions end after 12 hours without use, after 7 days, when someone
          signs out everywhere, and when the management token changes. Sign in to return to this page. Your last change
          was not sent.
        </p>
      )}
      <form onSubmit={onSubmit} class="stack needs-script">
        <Field
          label="Management token"
          id="token"
          kind="password"
          value={token}
          isRequired
          attributes={{ autocomplete: 'current-password' }}
          hint={`${tokenPlace} The first start also prints a one-time sign-in link.`}
          onChange={setToken}
        />
        <button class="button" type="submit" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
        <p role="alert" class="problem">
          {submit.error?.message}
        </p>
      </form>
      <p class="without-script">The console needs JavaScript. The model catalog does not.</p>
      <p>
        <a href="/">View models</a>
      </p>
    </section>
  )
}

/** The requested page: the sign-in page is shown at its address, with at most a link's secret in the query. */
function requestedPath(): string {
  const query = new URLSearchParams(location.search)
  query.delete('t')
  const text = query.toString()
  const isConsole = location.pathname === '/console' || location.pathname.startsWith('/console/')
  const path = isConsole ? location.pathname : '/console'
  return text === '' ? path : `${path}?${text}`
}
