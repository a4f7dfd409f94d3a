/** @jsxImportSource preact */
// Signing in to the console: with an account, or with the management token. A one-time link in the address is used at once
// and removed from the address; an invitation or a reset link asks for a password first.

import { useEffect, useState } from 'preact/hooks'
import { devicePath, type SignInData } from '../../page-data.ts'
import { type Credentials, signIn, takeSignInCause } from '../api.ts'
import { CheckedForm, Field, type FieldLook } from '../form.tsx'
import { useSubmit } from '../hooks.ts'

const causes = {
  ended: {
    title: 'Your session has ended.',
    text: 'Sessions end after 12 hours without use, after 7 days, when someone signs out everywhere, and when the management token changes.',
  },
  again: {
    title: 'Sign in again.',
    text: 'What cannot be undone needs a sign-in within the last 15 minutes.',
  },
} as const

export function SignInPage(props: SignInData) {
  const { isExposed, tokenPlace, link, hasAccounts, isOpen, providerName, problem, returnTo } = props
  const [values, setValues] = useState<Values>({ email: '', password: '', token: '', name: '' })
  const [invitation, setInvitation] = useState('')
  const [cause, setCause] = useState<keyof typeof causes | undefined>()
  // Stays busy after success: the page is about to be replaced.
  const [isLeaving, setLeaving] = useState(false)
  const submit = useSubmit()
  const open = (credentials: Credentials) =>
    submit.run(
      () => signIn(credentials),
      () => {
        setLeaving(true)
        location.replace(returnTo)
      },
    )
  useEffect(() => {
    setCause(takeSignInCause())
    const query = new URLSearchParams(location.search)
    const [once, invited] = [query.get('t'), query.get('i')]
    if (once === null && invited === null) return
    history.replaceState(null, '', returnTo)
    if (invited !== null) setInvitation(invited)
    else if (once !== null) open({ link: once })
  }, [])
  const [isNew, setNew] = useState(false)
  const change = (part: Partial<Values>) => setValues((before) => ({ ...before, ...part }))
  const form = { values, change, isBusy: submit.isBusy || isLeaving }
  const tokenForm = (
    <SignInForm
      {...form}
      label={hasAccounts ? 'Sign in with the token' : 'Sign in'}
      fields={[tokenField(tokenPlace, hasAccounts)]}
      open={({ token }) => open({ token })}
    />
  )
  const providerButton = providerName !== undefined && (
    <a class="button" href={`/console/oidc?to=${encodeURIComponent(returnTo)}`}>
      Sign in with {providerName}
    </a>
  )
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
      {cause && (
        <p class="warning" role="status">
          <strong>{causes[cause].title}</strong> {causes[cause].text} Sign in to return to this page. Your last change
          was not sent.
        </p>
      )}
      {returnTo.startsWith(devicePath) && !link && (
        <p role="note">Sign in first. Then you see which device asks to be signed in, and approve or deny it.</p>
      )}
      {link && link.kind !== 'spent' ? (
        <>
          <p>
            For <strong>{link.email}</strong>
            {link.as !== undefined && (
              <>
                , as <strong>{link.as}</strong>
              </>
            )}
            .
          </p>
          {/* A sign-in with the identity provider accepts every invitation of the address. */}
          {link.kind === 'invitation' && providerButton}
          {link.kind === 'invitation' && link.account === 'without password' ? (
            providerName === undefined && (
              <p class="warning" role="note">
                <strong>Your account has no password.</strong> Ask an admin for a link to set one, then open this
                invitation again.
              </p>
            )
          ) : (
            /* Someone who has a password proves with it who they are; everyone else chooses one. */
            <SignInForm
              {...form}
              label={link.kind === 'reset' ? 'Set password and sign in' : 'Accept and sign in'}
              fields={[
                ...(link.account === 'none' ? [nameField] : []),
                link.kind === 'reset' || link.account === 'none'
                  ? newPasswordField
                  : { ...passwordField, label: 'Your password' },
              ]}
              open={({ name, password }) => open({ invitation, name, password })}
            />
          )}
        </>
      ) : (
        <>
          {link && (
            <p class="warning" role="note">
              <strong>This link no longer works.</strong> It was used, was withdrawn or has expired. Ask an admin of
              your workspace for a new one.
            </p>
          )}
          {providerButton}
          {hasAccounts && isOpen && isNew && (
            <SignInForm
              {...form}
              label="Create account"
              fields={[nameField, emailField, newPasswordField]}
              open={({ email, name, password }) => open({ email, name, password })}
            />
          )}
          {hasAccounts && !isNew && (
            <SignInForm
              {...form}
              label="Sign in"
              fields={[emailField, { ...passwordField, hint: forgotHint }]}
              open={({ email, password }) => open({ email, password })}
            />
          )}
          {hasAccounts && isOpen && (
            <p class="needs-script">
              <button type="button" class="button quiet small" onClick={() => setNew(!isNew)}>
                {isNew ? 'I have an account' : 'Create an account'}
              </button>
            </p>
          )}
          {/* Folded away once people have accounts. */}
          {hasAccounts ? (
            <details class="needs-script">
              <summary>Sign in as the operator, with the management token</summary>
              {tokenForm}
            </details>
          ) : (
            tokenForm
          )}
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

interface Values {
  readonly email: string
  readonly password: string
  readonly token: string
  readonly name: string
}

interface SignInField extends FieldLook {
  readonly id: keyof Values
}

const nameField: SignInField = {
  id: 'name',
  label: 'Your name',
  attributes: { autocomplete: 'name', maxLength: 100 },
}
const emailField: SignInField = {
  id: 'email',
  label: 'E-mail address',
  attributes: { type: 'email', autocomplete: 'username' },
}
const passwordField: SignInField = {
  id: 'password',
  label: 'Password',
  kind: 'password',
  attributes: { autocomplete: 'current-password' },
}
const newPasswordField: SignInField = {
  id: 'password',
  label: 'Choose a password',
  kind: 'password',
  attributes: { autocomplete: 'new-password' },
  hint: 'At least 10 characters.',
}
const forgotHint = 'No account yet, or forgot the password? An admin of your workspace can send you a link.'

function tokenField(tokenPlace: string, hasAccounts: boolean): SignInField {
  return {
    id: 'token',
    label: 'Management token',
    kind: 'password',
    attributes: { autocomplete: hasAccounts ? 'off' : 'current-password' },
    hint: `${tokenPlace} The first start also prints a one-time sign-in link.`,
  }
}

interface SignInFormProps {
  readonly values: Values
  readonly isBusy: boolean
  readonly label: string
  readonly fields: readonly SignInField[]
  change(part: Partial<Values>): void
  open(values: Values): void
}

function SignInForm({ values, isBusy, label, fields, change, open }: SignInFormProps) {
  return (
    <CheckedForm onSubmit={() => open(values)} class="stack needs-script">
      {fields.map((field) => (
        <Field
          key={field.id}
          {...field}
          value={values[field.id]}
          isRequired
          onChange={(value) => change({ [field.id]: value })}
        />
      ))}
      <button class="button" type="submit" disabled={isBusy}>
        {isBusy ? 'Signing in …' : label}
      </button>
    </CheckedForm>
  )
}
