/** @jsxImportSource preact */
// Signing in to the console: with an account, or with the management token. A one-time link in the address is used at once
// and removed from the address; an invitation or a reset link asks for a password first.

import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { SignInData } from '../../page-data.ts'
import { type Credentials, signIn, takeSessionEnded } from '../api.ts'
import { Field } from '../form.tsx'
import { useSubmit } from '../hooks.ts'

export function SignInPage({ isExposed, tokenPlace, link, hasAccounts, isOpen, providerName, problem }: SignInData) {
  const [values, setValues] = useState<Values>({ email: '', password: '', token: '', name: '' })
  const [invitation, setInvitation] = useState('')
  const [hasEnded, setEnded] = useState(false)
  // Stays busy after success: the page is about to be replaced.
  const [isLeaving, setLeaving] = useState(false)
  const submit = useSubmit()
  const open = (credentials: Credentials) =>
    submit.run(
      () => signIn(credentials),
      () => {
        setLeaving(true)
        location.replace(requestedPath())
      },
    )
  useEffect(() => {
    setEnded(takeSessionEnded())
    const query = new URLSearchParams(location.search)
    const [once, invited] = [query.get('t'), query.get('i')]
    if (once === null && invited === null) return
    history.replaceState(null, '', requestedPath())
    if (invited !== null) setInvitation(invited)
    else if (once !== null) open({ link: once })
  }, [])
  const isBusy = submit.isBusy || isLeaving
  const change = (part: Partial<Values>) => setValues((before) => ({ ...before, ...part }))
  const [isNew, setNew] = useState(false)
  const form = { values, change, isBusy }
  return (
    <section class="sign-in notice card stack">
      <h1>
        {link?.kind === 'invitation' ? 'Accept the invitation' : link?.kind === 'reset' ? 'New password' : 'Sign in'}
      </h1>
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
      {link && link.kind !== 'spent' ? (
        <LinkForm {...form} link={link} open={({ name, password }) => open({ invitation, name, password })} />
      ) : (
        <>
          {link && (
            <p class="warning" role="note">
              <strong>This link no longer works.</strong> It was used, was withdrawn or has expired. Ask an admin of
              your workspace for a new one.
            </p>
          )}
          {providerName !== undefined && (
            <p>
              <a class="button" href="/console/oidc">
                Sign in with {providerName}
              </a>
            </p>
          )}
          {hasAccounts && isOpen && isNew && (
            <SignUpForm {...form} open={({ email, name, password }) => open({ email, name, password })} />
          )}
          {hasAccounts && !isNew && <AccountForm {...form} open={({ email, password }) => open({ email, password })} />}
          {hasAccounts && isOpen && (
            <p class="needs-script">
              <button type="button" class="button quiet small" onClick={() => setNew(!isNew)}>
                {isNew ? 'I have an account' : 'Create an account'}
              </button>
            </p>
          )}
          <TokenForm {...form} {...{ tokenPlace, hasAccounts }} open={({ token }) => open({ token })} />
        </>
      )}
      <p role="alert" class="problem">
        {submit.error?.message ?? problem}
      </p>
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
  query.delete('i')
  const text = query.toString()
  const isConsole = location.pathname === '/console' || location.pathname.startsWith('/console/')
  const path = isConsole ? location.pathname : '/console'
  return text === '' ? path : `${path}?${text}`
}

interface Values {
  readonly email: string
  readonly password: string
  readonly token: string
  readonly name: string
}

interface FormParts {
  readonly values: Values
  readonly isBusy: boolean
  change(part: Partial<Values>): void
  open(values: Values): void
}

interface SheetProps extends FormParts {
  readonly label: string
  readonly children: ComponentChildren
}

function Sheet({ values, isBusy, open, label, children }: SheetProps) {
  const onSubmit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    open(values)
  }
  return (
    <form onSubmit={onSubmit} class="stack needs-script">
      {children}
      <button class="button" type="submit" disabled={isBusy}>
        {isBusy ? 'Signing in …' : label}
      </button>
    </form>
  )
}

function AccountForm(props: FormParts) {
  const { values, change } = props
  return (
    <Sheet {...props} label="Sign in">
      <Field
        label="E-mail address"
        id="email"
        value={values.email}
        isRequired
        attributes={{ type: 'email', autocomplete: 'username' }}
        onChange={(email) => change({ email })}
      />
      <Field
        label="Password"
        id="password"
        kind="password"
        value={values.password}
        isRequired
        attributes={{ autocomplete: 'current-password' }}
        hint="No account yet, or forgot the password? An admin of your workspace can send you a link."
        onChange={(password) => change({ password })}
      />
    </Sheet>
  )
}

/** Folded away once people have accounts. */
function TokenForm(props: FormParts & { readonly tokenPlace: string; readonly hasAccounts: boolean }) {
  const { values, change, tokenPlace, hasAccounts } = props
  const form = (
    <Sheet {...props} label={hasAccounts ? 'Sign in with the token' : 'Sign in'}>
      <Field
        label="Management token"
        id="token"
        kind="password"
        value={values.token}
        isRequired
        attributes={{ autocomplete: hasAccounts ? 'off' : 'current-password' }}
        hint={`${tokenPlace} The first start also prints a one-time sign-in link.`}
        onChange={(token) => change({ token })}
      />
    </Sheet>
  )
  if (!hasAccounts) return form
  return (
    <details class="needs-script">
      <summary>Sign in as the operator, with the management token</summary>
      {form}
    </details>
  )
}

function SignUpForm(props: FormParts) {
  const { values, change } = props
  return (
    <Sheet {...props} label="Create account">
      <Field
        label="Your name"
        id="name"
        value={values.name}
        isRequired
        attributes={{ autocomplete: 'name', maxLength: 100 }}
        onChange={(name) => change({ name })}
      />
      <Field
        label="E-mail address"
        id="email"
        value={values.email}
        isRequired
        attributes={{ type: 'email', autocomplete: 'username' }}
        onChange={(email) => change({ email })}
      />
      <Field
        label="Choose a password"
        id="password"
        kind="password"
        value={values.password}
        isRequired
        attributes={{ autocomplete: 'new-password' }}
        hint="At least 10 characters."
        onChange={(password) => change({ password })}
      />
    </Sheet>
  )
}

type OpenLink = Extract<NonNullable<SignInData['link']>, { readonly email: string }>

/** Someone who has an account proves it with their password; everyone else chooses one. */
function LinkForm(props: FormParts & { readonly link: OpenLink }) {
  const { values, change, link } = props
  const isNew = link.kind === 'reset' || !link.isKnown
  return (
    <Sheet {...props} label={link.kind === 'reset' ? 'Set password and sign in' : 'Accept and sign in'}>
      <p>
        For <strong>{link.email}</strong>.
      </p>
      {!link.isKnown && (
        <Field
          label="Your name"
          id="name"
          value={values.name}
          isRequired
          attributes={{ autocomplete: 'name', maxLength: 100 }}
          onChange={(name) => change({ name })}
        />
      )}
      <Field
        label={isNew ? 'Choose a password' : 'Your password'}
        id="password"
        kind="password"
        value={values.password}
        isRequired
        attributes={{ autocomplete: isNew ? 'new-password' : 'current-password' }}
        {...(isNew && { hint: 'At least 10 characters.' })}
        onChange={(password) => change({ password })}
      />
    </Sheet>
  )
}
