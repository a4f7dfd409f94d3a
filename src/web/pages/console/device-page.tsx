/** @jsxImportSource preact */
// The page on which a person lets a device sign in as them: the code, which device asks with it, and where its requests are
// charged. Opening the page sends nothing; the person enters or confirms the code, and then approves or denies.

import { useState } from 'preact/hooks'
import { type DeviceData, isVisible, may } from '../../page-data.ts'
import { type AnswerOf, callApi, callForAll, signOut, type Workspace } from '../api.ts'
import { Button, ErrorNotice, Facts } from '../components.tsx'
import { Field, Form } from '../form.tsx'
import { useQuery, useSubmit } from '../hooks.ts'
import { QueryView } from './components.tsx'
import { Ago } from './context.tsx'
import { clientName } from './devices.tsx'

type Grant = AnswerOf<'openDeviceGrant'>

/** `code`: the device waits with it. */
type Step =
  | { readonly kind: 'code' }
  | { readonly kind: 'decide'; readonly code: string; readonly grant: Grant }
  | { readonly kind: 'approved' | 'denied' }

export function DevicePage(data: DeviceData) {
  const [step, go] = useState<Step>({ kind: 'code' })
  const again = () => go({ kind: 'code' })
  return (
    <section class="sign-in notice card stack">
      {!data.isPerson ? (
        <NoPerson maySeePeople={isVisible('people', data)} />
      ) : data.isViewingAs ? (
        <ViewsAs />
      ) : step.kind === 'code' ? (
        <CodeStep data={data} onOpened={(code, grant) => go({ kind: 'decide', code, grant })} />
      ) : step.kind === 'decide' ? (
        <DecideStep data={data} {...step} onDone={(kind) => go({ kind })} onOther={again} />
      ) : (
        <Decided isApproved={step.kind === 'approved'} onOther={again} />
      )}
    </section>
  )
}

/** A device is signed in as a person, and the installation is none. */
function NoPerson({ maySeePeople }: { readonly maySeePeople: boolean }) {
  const submit = useSubmit()
  return (
    <>
      <h1>Sign in with your account</h1>
      <p>
        This browser is signed in with the management token or a one-time link, but a device is signed in as a person.
      </p>
      {maySeePeople && (
        <p class="hint">
          Nobody has an account yet? Open People in the console, invite your own address as an operator, and accept the
          invitation.
        </p>
      )}
      <div class="row">
        <Button onClick={() => submit.run(signOut, () => location.reload())}>Sign in with an account</Button>
        {maySeePeople && <a href="/console/people">People</a>}
      </div>
      {submit.error && <ErrorNotice error={submit.error} />}
    </>
  )
}

function ViewsAs() {
  return (
    <>
      <h1>Stop viewing as someone else</h1>
      <p>
        You are viewing the console with another role. A device is signed in with your own. Stop viewing in the console,
        then open this page again.
      </p>
      <p>
        <a href="/console">Open the console</a>
      </p>
    </>
  )
}

interface CodeStepProps {
  readonly data: DeviceData
  onOpened(code: string, grant: Grant): void
}

function CodeStep({ data: { actor, code }, onOpened }: CodeStepProps) {
  return (
    <>
      <h1>Sign in a device</h1>
      <p>
        {code === ''
          ? 'Enter the code that the program on your device shows.'
          : 'Compare the code with the one that the program on your device shows.'}{' '}
        The next page says which device it is.
      </p>
      <Form
        label="Continue"
        initial={{ code }}
        rows={[
          {
            name: 'code',
            label: 'Code',
            isRequired: true,
            attributes: {
              class: 'device-code',
              placeholder: 'WDJB-MJHT',
              autocapitalize: 'characters',
              maxLength: 40,
            },
          },
        ]}
        send={async ({ code: typed }) => [typed, await callApi('openDeviceGrant', { body: { code: typed } })] as const}
        onDone={([typed, grant]) => onOpened(typed, grant)}
      />
      <SignedInAs actor={actor} />
    </>
  )
}

function SignedInAs({ actor }: { readonly actor: string }) {
  const submit = useSubmit()
  return (
    <>
      <p class="row hint">
        <span>
          You are signed in as <strong>{actor}</strong>.
        </span>
        <Button look="quiet small" onClick={() => submit.run(signOut, () => location.reload())}>
          Use another account
        </Button>
      </p>
      {submit.error && <ErrorNotice error={submit.error} />}
    </>
  )
}

interface DecideStepProps {
  readonly data: DeviceData
  readonly code: string
  readonly grant: Grant
  onDone(decision: 'approved' | 'denied'): void
  onOther(): void
}

function DecideStep({ data, code, grant, onDone, onOther }: DecideStepProps) {
  const { client, device, address, created_at, expires_at } = grant
  const workspaces = useQuery('workspaces', async () =>
    (await callForAll('listWorkspaces', {})).filter(({ id }) => may(data, 'createKey', id)),
  )
  const submit = useSubmit()
  const deny = () =>
    submit.run(
      () => callApi('denyDeviceGrant', { body: { code } }),
      () => onDone('denied'),
    )
  const approve = (project_id: string) =>
    submit.run(
      () => callApi('approveDeviceGrant', { body: { code, project_id } }),
      () => onDone('approved'),
    )
  return (
    <>
      <h1>Sign in this device?</h1>
      <Facts
        facts={[
          ['Program', clientName(client)],
          ['Device', device],
          ['Network address', address ?? 'unknown'],
          ['Asked', <Ago key="asked" at={created_at} />],
          ['Code', <code key="code">{shownCode(code)}</code>],
          ['Code expires', <Ago key="expires" at={expires_at} />],
        ]}
      />
      <p class="warning" role="note">
        <strong>Approve it only if you started this sign-in yourself.</strong> If someone sent you the link or the code,
        deny it: their device would act, and spend, as {data.actor}.
      </p>
      <QueryView what="your workspaces" query={workspaces}>
        {(usable) => (
          <Decision
            data={data}
            usable={usable}
            isBusy={submit.isBusy}
            onApprove={approve}
            onDeny={deny}
            onOther={onOther}
          />
        )}
      </QueryView>
      {submit.error && <ErrorNotice error={submit.error} />}
    </>
  )
}

/** As the device shows it, however it was typed. */
function shownCode(typed: string): string {
  return typed.toUpperCase().replace(/[\s-]/g, '').replace(/^.{4}/, '$&-')
}

interface DecisionProps {
  readonly data: DeviceData
  /** Workspaces in which the person may call models. */
  readonly usable: readonly Workspace[]
  readonly isBusy: boolean
  onApprove(projectId: string): void
  onDeny(): void
  onOther(): void
}

/** Where its requests are charged, and the decision. */
function Decision({ data, usable, isBusy, onApprove, onDeny, onOther }: DecisionProps) {
  const [chosen, choose] = useState('')
  const [project, chooseProject] = useState('')
  const workspace = usable.find(({ id }) => id === chosen) ?? usable[0]
  const projects = useQuery(workspace && `projects ${workspace.id}`, async () =>
    workspace ? await callForAll('listProjects', { id: workspace.id }) : [],
  )
  const open = projects.value?.filter(({ archived_at }) => archived_at === null)
  const projectId = open?.find(({ id }) => id === project)?.id ?? open?.[0]?.id
  const optionsOf = (list: readonly { readonly id: string; readonly name: string }[]) =>
    list.map(({ id, name }) => ({ value: id, label: name }))
  return (
    <>
      {workspace ? (
        <div class="columns">
          <Field label="Workspace" value={workspace.id} options={optionsOf(usable)} onChange={choose} />
          {open && open.length > 0 && (
            <Field label="Project" value={projectId ?? ''} options={optionsOf(open)} onChange={chooseProject} />
          )}
        </div>
      ) : (
        <p role="note">
          You have no workspace in which you may call models. Ask an admin of your workspace for the role member.
        </p>
      )}
      {open?.length === 0 && (
        <p role="note">
          {workspace?.name} has no project yet.{' '}
          {may(data, 'createProject', workspace?.id)
            ? 'Create one in the console under Projects & limits.'
            : 'Ask an admin of the workspace to create one.'}
        </p>
      )}
      {projects.error && <ErrorNotice error={projects.error} retry={projects.reload} />}
      <div class="row">
        <Button
          disabled={isBusy || projectId === undefined}
          onClick={() => projectId !== undefined && onApprove(projectId)}
        >
          Approve
        </Button>
        <Button look="quiet revoke" disabled={isBusy} onClick={onDeny}>
          Deny
        </Button>
        <Button look="quiet" disabled={isBusy} onClick={onOther}>
          Other code
        </Button>
      </div>
    </>
  )
}

interface DecidedProps {
  readonly isApproved: boolean
  onOther(): void
}

function Decided({ isApproved, onOther }: DecidedProps) {
  return (
    <>
      <h1>{isApproved ? 'Device approved' : 'Device denied'}</h1>
      <p role="status">
        {isApproved
          ? 'Return to your device. It continues by itself within a few seconds. You can sign it out at any time under Account.'
          : 'Nobody was signed in, and the code no longer works.'}
      </p>
      <div class="row">
        {isApproved && <a href="/console/account">Your devices</a>}
        <Button look="quiet" onClick={onOther}>
          Sign in another device
        </Button>
      </div>
    </>
  )
}
