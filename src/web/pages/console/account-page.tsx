/** @jsxImportSource preact */
// One's own account: roles, password, sessions and personal management tokens. The secret of a token is shown once.

import type { AlertKind } from '../../../kernel/alert.ts'
import { coversRole, workspaceRoles } from '../../../kernel/roles.ts'
import type { ConsoleData } from '../../page-data.ts'
import { type AnswerOf, callApi, type ItemOf } from '../api.ts'
import { Button, CodeBlock, ErrorNotice } from '../components.tsx'
import { Checkbox } from '../form.tsx'
import { useApi, useList, useSubmit } from '../hooks.ts'
import type { Column } from '../table.tsx'
import { AlertKindChoice } from './alerts-page.tsx'
import { actionsColumn, Card, emptyState, ListSection, QueryView } from './components.tsx'
import { Ago, useWorkspaces } from './context.tsx'
import { OwnDevices } from './devices.tsx'
import { FormDialog, OnceDialog, useOverlay } from './overlay.tsx'

type Me = AnswerOf<'getMe'>
type Token = ItemOf<'listTokens'>

export function AccountView({ address }: ConsoleData) {
  const me = useApi('getMe', {})
  return (
    <QueryView what="your account" query={me}>
      {(value) => (
        <>
          <div class="card-columns">
            <Profile me={value} />
            <Sessions me={value} />
            {value.person && <AlertMails kinds={value.person.alert_kinds} onDone={me.reload} />}
          </div>
          <SessionList />
          <OwnDevices />
          <Tokens me={value} address={address} />
        </>
      )}
    </QueryView>
  )
}

function Profile({ me: { person, is_operator, workspaces } }: { readonly me: Me }) {
  return (
    <Card title={person?.name || 'You'}>
      <p>{person?.email}</p>
      <ul class="plain">
        {is_operator && <li>operator of this gateway</li>}
        {workspaces.map(({ id, name, role }) => (
          <li key={id}>
            {role} of {name}
          </li>
        ))}
      </ul>
    </Card>
  )
}

/** Which alerts come by e-mail. */
function AlertMails({ kinds, onDone }: { readonly kinds: readonly AlertKind[] | null; onDone(): void }) {
  const submit = useSubmit()
  const put = (alert_kinds: AlertKind[] | null) =>
    submit.run(() => callApi('updateMe', { body: { alert_kinds } }), onDone)
  return (
    <Card title="Alerts by e-mail">
      <Checkbox
        label="As the alert rules say"
        isChecked={kinds === null}
        onChange={(isChecked) => put(isChecked ? null : [])}
      />
      {kinds !== null && <AlertKindChoice chosen={kinds} onChange={put} />}
      <p class="hint">Sent if the operator has configured a mail server.</p>
      {submit.error && <ErrorNotice error={submit.error} />}
    </Card>
  )
}

export const toSignIn = () => location.assign('/console')

function Sessions({ me: { person } }: { readonly me: Me }) {
  const { open, ask } = useOverlay()
  const change = () => open(<PasswordDialog />)
  const end = () =>
    ask({
      title: 'Sign out everywhere?',
      label: 'Sign out everywhere',
      intro: 'All your browsers are signed out, including this one. Your tokens and API keys do not change.',
      send: () => callApi('endSessions', { body: {} }),
      onDone: toSignIn,
    })
  return (
    <Card title="Sign-in">
      <p>A session ends after 12 hours without use, and after 7 days at the latest.</p>
      <div class="row">
        {person?.has_password && (
          <Button look="quiet small" onClick={change}>
            Change password
          </Button>
        )}
        <Button look="quiet small revoke" onClick={end}>
          Sign out everywhere
        </Button>
      </div>
    </Card>
  )
}

type Session = ItemOf<'listSessions'>

/** Every browser in which the person is signed in. */
function SessionList() {
  const list = useList('listSessions', {})
  const { ask } = useOverlay()
  const end = ({ id, client }: Session) =>
    ask({
      title: 'Sign this browser out?',
      label: 'Sign out',
      intro: `${browserName(client)} has to sign in again.`,
      send: () => callApi('endSession', { id }),
      onDone: list.reload,
    })
  const columns: readonly Column<Session>[] = [
    {
      label: 'Browser',
      show: ({ client }) => <span class="row-name">{browserName(client)}</span>,
      note: ({ is_current }) => (is_current ? 'this browser' : undefined),
    },
    { label: 'Signed in', show: ({ opened_at }) => <Ago at={opened_at} /> },
    { label: 'Last used', show: ({ used_at }) => <Ago at={used_at} /> },
    actionsColumn((session) => {
      const name = `Sign out ${browserName(session.client)}`
      return session.is_current ? [] : [{ label: 'Sign out', name, look: 'danger', run: () => end(session) }]
    }),
  ]
  return (
    <ListSection
      title="Sessions"
      what="sessions"
      list={list}
      caption="Sessions, latest sign-in first"
      columns={columns}
      empty={emptyState('No sessions', 'You are signed in nowhere else.')}
    />
  )
}

/** `Firefox on Windows`, as far as the browser says. */
function browserName(client: string): string {
  const names = [/Edg\//, /OPR\//, /Firefox\//, /Chrome\//, /Safari\//]
  const browser = ['Edge', 'Opera', 'Firefox', 'Chrome', 'Safari'][names.findIndex((name) => name.test(client))]
  const system = /iPhone|iPad|Android|Windows|Mac OS X|Linux/.exec(client)?.[0].replace('Mac OS X', 'macOS')
  if (browser === undefined) return client === '' ? 'Unknown browser' : client
  return system === undefined ? browser : `${browser} on ${system}`
}

function PasswordDialog() {
  return (
    <FormDialog
      title="Change password"
      label="Change password"
      intro="All your sessions end, including this one, and you are signed out on all devices. Sign in again with the new password."
      rows={[
        {
          name: 'current',
          label: 'Current password',
          kind: 'password',
          isRequired: true,
          isExact: true,
          attributes: { autocomplete: 'current-password' },
        },
        {
          name: 'password',
          label: 'New password',
          kind: 'password',
          isRequired: true,
          isExact: true,
          hint: 'At least 10 characters.',
        },
      ]}
      send={(body) => callApi('changePassword', { body })}
      onDone={toSignIn}
    />
  )
}

function Tokens({ me, address }: { readonly me: Me; readonly address: string }) {
  const list = useList('listTokens', { query: { limit: 50 } })
  const { open, ask } = useOverlay()
  const { nameOf } = useWorkspaces()
  const create = () => open(<TokenDialog me={me} address={address} onDone={list.reload} />)
  const revoke = ({ id, name }: Token) =>
    ask({
      title: `Revoke ${name}?`,
      label: 'Revoke token',
      cancelLabel: 'Keep token',
      intro: 'Scripts that use it are refused at once. This cannot be undone.',
      send: () => callApi('revokeToken', { id }),
      onDone: list.reload,
    })
  const columns: readonly Column<Token>[] = [
    {
      label: 'Token',
      show: ({ name }) => <span class="row-name">{name}</span>,
      note: ({ last4 }) => <code>…{last4}</code>,
    },
    { label: 'Role', show: ({ role }) => role, note: ({ workspace_id }) => nameOf(workspace_id) },
    { label: 'Expires', show: ({ expires_at }) => <Ago at={expires_at} /> },
    actionsColumn((token) => [
      { label: 'Revoke', name: `Revoke ${token.name}`, look: 'danger', run: () => revoke(token) },
    ]),
  ]
  return (
    <ListSection
      title="Personal tokens"
      action={{ label: 'New token', look: 'primary', run: create }}
      what="tokens"
      list={list}
      caption="Personal tokens"
      columns={columns}
      empty={emptyState('No tokens yet', 'A token does at most what you may do, and expires.')}
    >
      <p class="hint">
        For scripts that call the management API or the command line as you. Programs that call models use API keys.
      </p>
    </ListSection>
  )
}

interface TokenDialogProps {
  readonly me: Me
  readonly address: string
  onDone(): void
}

function TokenDialog({ me, address, onDone }: TokenDialogProps) {
  const { open } = useOverlay()
  const { workspaces = [] } = useWorkspaces()
  const held = me.is_operator ? workspaces.map(({ id, name }) => ({ id, name, role: 'admin' as const })) : me.workspaces
  const options = [
    ...(me.is_operator ? [{ value: 'operator', label: 'operator of all workspaces' }] : []),
    ...held.flatMap(({ id, name, role: own }) =>
      workspaceRoles
        .filter((role) => coversRole(own, role))
        .map((role) => ({ value: `${role} ${id}`, label: `${role} of ${name}` })),
    ),
  ]
  return (
    <FormDialog
      title="New token"
      label="Create token"
      initial={{ grant: options.at(-1)?.value ?? '', days: '90' }}
      rows={[
        { name: 'name', label: 'Name', kind: 'name', hint: 'What will use the token.', isRequired: true },
        { name: 'grant', label: 'Role', options, isRequired: true },
        {
          name: 'days',
          label: 'Expires',
          isRequired: true,
          options: ['7', '30', '90', '365'].map((value) => ({ value, label: `In ${value} days` })),
        },
      ]}
      send={({ name, grant, days }, options) => {
        const [role = '', workspace_id] = grant.split(' ')
        const body = { name, role: role as Token['role'], workspace_id, expires_in_days: Number(days) }
        return callApi('createToken', { body }, options)
      }}
      onDone={({ secret, name }) => {
        onDone()
        const command = `TOLLGATE_URL=${address} TOLLGATE_ADMIN_TOKEN=${secret} npx tollgate keys`
        const advice = 'Copy it now. A lost token can only be revoked.'
        open(
          <OnceDialog title={`Token ${name}`} what="token" value={secret} advice={advice}>
            <CodeBlock title="On the command line" what="command" code={command} />
          </OnceDialog>,
        )
      }}
    />
  )
}
