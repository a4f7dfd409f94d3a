/** @jsxImportSource preact */
// People: members of the workspace and their roles, invitations, and for operators the other operators and "view as". A link
// is shown once, in the dialog that follows its creation.

import { type WorkspaceRole, workspaceRoles } from '../../../kernel/roles.ts'
import type { ConsoleData } from '../../page-data.ts'
import { callApi, callForAll, type ItemOf } from '../api.ts'
import { Button } from '../components.tsx'
import { useQuery } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { type Action, actionsColumn, Card, emptyState, QueryView, Section } from './components.tsx'
import { Ago, Moment, useViewer, useWorkspaces } from './context.tsx'
import { WorkspaceDevices } from './devices.tsx'
import { useConsolePath } from './navigation.ts'
import { FormDialog, OnceDialog, useOverlay } from './overlay.tsx'
import { GroupList } from './subject-limits.tsx'

type Member = ItemOf<'listMembers'>
type Invitation = ItemOf<'listInvitations'>
type Role = Member['role']

const roleHints: Readonly<Record<Role, string>> = {
  operator: 'everything, in all workspaces',
  admin: 'people, projects, keys, limits, provider keys, billing',
  member: 'own keys, own requests and usage, the playground',
  viewer: 'reads usage, requests and billing; changes nothing',
}

const roleOptions = workspaceRoles.map((role) => ({ value: role, label: `${role}: ${roleHints[role]}` }))

/** Operators see everyone while no workspace is chosen. */
async function readPeople(id: string | undefined) {
  const call = { query: { workspace_id: id } }
  const [members, invitations, groups] = await Promise.all([
    callForAll('listMembers', call),
    callForAll('listInvitations', call),
    id === undefined ? [] : callForAll('listGroups', { id }),
  ])
  return { members, invitations, groups }
}

export function PeopleView({ address }: ConsoleData) {
  const { isOperator } = useViewer()
  const { chosen, isDecided, nameOf } = useWorkspaces()
  const query = useQuery(isDecided ? `people ${chosen?.id}` : undefined, () => readPeople(chosen?.id))
  const { open, ask } = useOverlay()
  const to = useConsolePath()
  const actionsOf = useMemberActions(address, query.reload)
  const invite = () => open(<InviteDialog workspace={chosen} address={address} onDone={query.reload} />)
  const withdraw = ({ id, email }: Invitation) =>
    ask({
      title: `Withdraw the invitation of ${email}?`,
      label: 'Withdraw',
      intro: 'The link that they received stops working.',
      send: () => callApi('revokeInvitation', { id }),
      onDone: query.reload,
    })
  const memberColumns: readonly Column<Member>[] = [
    {
      label: 'Person',
      show: ({ name, email }) => <span class="row-name">{name === '' ? email : name}</span>,
      note: ({ email }) => email,
    },
    { label: 'Role', show: ({ role }) => role, note: ({ role }) => roleHints[role] },
    ...(chosen ? [] : [{ label: 'Workspace', show: ({ workspace_id }: Member) => nameOf(workspace_id) }]),
    { label: 'Since', show: ({ created_at: at }) => <Moment at={at} isDay />, note: ({ source }) => `by ${source}` },
    actionsColumn(actionsOf),
  ]
  const invitationColumns: readonly Column<Invitation>[] = [
    { label: 'Address', show: ({ email }) => <span class="row-name">{email}</span> },
    { label: 'Role', show: ({ role }) => role, note: ({ workspace_id }) => nameOf(workspace_id) },
    { label: 'Expires', show: ({ expires_at }) => <Ago at={expires_at} /> },
    actionsColumn((invitation) => {
      const name = `Withdraw the invitation of ${invitation.email}`
      return [{ label: 'Withdraw', name, look: 'danger', run: () => withdraw(invitation) }]
    }),
  ]
  return (
    <QueryView what="people" query={query}>
      {({ members, invitations, groups }) => (
        <>
          <Section
            title={chosen ? `Members of ${chosen.name}` : 'Everyone'}
            action={{ label: chosen ? 'Invite someone' : 'Invite an operator', look: 'primary', run: invite }}
          >
            <DataTable
              caption="Members"
              columns={memberColumns}
              rows={members}
              keyOf={({ id }) => id}
              {...(chosen && { hrefOf: ({ person_id: person }: Member) => to(`people/${person}`) })}
              empty={emptyState('No people yet', 'Invite someone by e-mail address and send them the link.')}
            />
          </Section>
          {invitations.length > 0 && (
            <Section title="Open invitations">
              <DataTable
                caption="Open invitations"
                columns={invitationColumns}
                rows={invitations}
                keyOf={({ id }) => id}
              />
            </Section>
          )}
          {chosen && <GroupList groups={groups} />}
          <WorkspaceDevices workspace={chosen} />
          {/* Only here, so that it does not move when the lists have loaded. */}
          {isOperator && <ViewAs />}
        </>
      )}
    </QueryView>
  )
}

function useMemberActions(address: string, onDone: () => void): (member: Member) => readonly Action[] {
  const { open, ask } = useOverlay()
  return ({ id, email, role }) => {
    const change = () =>
      open(
        <FormDialog
          title={`Role of ${email}`}
          label="Change role"
          initial={{ role }}
          intro="The new role applies from their next click on."
          rows={[{ name: 'role', label: 'Role', options: roleOptions, isRequired: true }]}
          send={(body) => callApi('updateMember', { id, body })}
          onDone={onDone}
        />,
      )
    const reset = () =>
      ask({
        title: `Reset the password of ${email}?`,
        label: 'Create link',
        isDanger: false,
        intro: 'You get a link with which they set a new password. Their old password works until they do.',
        send: () => callApi('createResetLink', { id, body: {} }),
        onDone: ({ url }) =>
          open(
            <LinkDialog title={`New password of ${email}`} {...{ url, address }} text="It works once, for a day." />,
          ),
      })
    const remove = () =>
      ask({
        title: `Remove ${email}?`,
        label: 'Remove',
        cancelLabel: 'Keep',
        intro: 'Their sessions, personal tokens and the API keys they created here end at once. This cannot be undone.',
        send: () => callApi('removeMember', { id }),
        onDone,
      })
    return [
      ...(role === 'operator' ? [] : [{ label: 'Role', name: `Change the role of ${email}`, run: change }]),
      { label: 'Reset password', name: `Reset password of ${email}`, run: reset },
      { label: 'Remove', name: `Remove ${email}`, look: 'danger', run: remove },
    ]
  }
}

interface InviteProps {
  /** undefined = an operator. */
  readonly workspace: { readonly id: string; readonly name: string } | undefined
  readonly address: string
  onDone(): void
}

function InviteDialog({ workspace, address, onDone }: InviteProps) {
  const { open } = useOverlay()
  return (
    <FormDialog
      title={workspace ? `Invite someone to ${workspace.name}` : 'Invite an operator'}
      label="Create invitation"
      initial={{ role: 'member' }}
      intro={
        workspace
          ? 'You get a link to send to them. It works once, for 7 days, and only for this address.'
          : 'Operators may do everything, in all workspaces. You get a link to send to them.'
      }
      rows={[
        { name: 'email', label: 'E-mail address', isRequired: true, attributes: { type: 'email' } },
        { name: 'role', label: 'Role', options: roleOptions, isShown: () => workspace !== undefined },
      ]}
      send={({ email, role = 'member' }, options) => {
        const wanted = workspace ? { role, workspace_id: workspace.id } : { role: 'operator' as const }
        return callApi('createInvitation', { body: { email, ...wanted } }, options)
      }}
      onDone={({ url, email }) => {
        onDone()
        open(<LinkDialog title={`Invitation of ${email}`} {...{ url, address }} text="It works once, for 7 days." />)
      }}
    />
  )
}

interface LinkDialogProps {
  readonly title: string
  readonly url: string
  /** Without a public address, the API knows only the one that the gateway listens on; the browser knows one that works. */
  readonly address: string
  readonly text: string
}

function LinkDialog({ title, url, address, text }: LinkDialogProps) {
  const link = address + url.slice(url.indexOf('/console?'))
  const advice = `Send it to the person over a channel that only they read. ${text}`
  return <OnceDialog title={title} what="link" value={link} advice={advice} />
}

const viewAsCookie = 'tollgate-view-as'

function setViewAs(value: string, maxAgeSeconds: number): void {
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing on plain http, where gateways often are
  document.cookie = `${viewAsCookie}=${value}; path=/; max-age=${maxAgeSeconds}; samesite=strict`
  location.assign('/console')
}

/** Shows the console as a person of the chosen workspace would see it. */
function ViewAs() {
  const { chosen } = useWorkspaces()
  const view = (role: WorkspaceRole) => chosen && setViewAs(`${chosen.id}.${role}`, 3600)
  return (
    <Card title="View as">
      {chosen ? (
        <>
          <p>See the console as people of {chosen.name} see it, for an hour or until you stop.</p>
          <div class="row">
            {workspaceRoles.map((role) => (
              <Button key={role} look="quiet small" onClick={() => view(role)}>
                {role}
              </Button>
            ))}
          </div>
        </>
      ) : (
        <p>Choose a workspace to see the console as its people see it.</p>
      )}
    </Card>
  )
}

export function ViewingAs() {
  const { grants } = useViewer()
  return (
    <div class="warning between" role="note">
      <span>
        <strong>You are viewing the console as {grants[0]?.role}.</strong> Changes are recorded under your own name.
      </span>
      <Button look="small" onClick={() => setViewAs('', 0)}>
        Stop
      </Button>
    </div>
  )
}
