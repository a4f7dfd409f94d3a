/** @jsxImportSource preact */
// The sheets of the API keys page: create, rotate and revoke a key, and show a new secret once.

import { useEffect, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { callApi, type Key, type KeyWithSecret, type Project, type RequestItem } from '../api.ts'
import { Button, Status } from '../components.tsx'
import { useApi } from '../hooks.ts'
import { CopyField, curlText, ErrorNotice, exampleModel, helloBody } from './components.tsx'
import { Ago } from './context.tsx'
import { dayMs } from './figures.ts'
import { Choice, Field, Fields, FormSheet, linesOf, Sheet } from './form.tsx'
import { LimitsFields, limitInputs, limitsOf } from './limits.tsx'

export interface NewKeySheetProps {
  /** At least one. */
  readonly projects: readonly Project[]
  onClose(): void
  onCreated(key: KeyWithSecret): void
}

const lifetimes = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: 'at', label: 'At a given time …' },
] as const

const listFields = [
  {
    name: 'sources',
    label: 'Allowed IP addresses',
    hint: 'One address or range per line, for example 10.0.0.0/8. Empty = any. This cannot be changed later.',
    kind: 'lines',
  },
  {
    name: 'models',
    label: 'Allowed models',
    hint: 'One id or prefix/* per line. Empty = all project models. This cannot be changed later.',
    kind: 'lines',
  },
] as const

/** A name is enough; restrictions are optional and folded away. */
export function NewKeySheet({ projects, onClose, onCreated }: NewKeySheetProps) {
  const [name, setName] = useState('')
  const [projectId, setProjectId] = useState(projects[0]?.id ?? '')
  const [limits, setLimits] = useState(limitInputs({}))
  /** Days, or `at` for a chosen time; empty = never expires. */
  const [lifetime, setLifetime] = useState('')
  // Computed when the lifetime is chosen, so that sending the form again sends the same.
  const [expiresAt, setExpiresAt] = useState<number | undefined>(undefined)
  const [lists, setLists] = useState({ sources: '', models: '' })
  const chooseLifetime = (chosen: string) => {
    const days = Number(chosen)
    setLifetime(chosen)
    setExpiresAt(days > 0 ? systemClock.now() + days * dayMs : undefined)
  }
  const chooseTime = (text: string) => {
    const time = Date.parse(text)
    setExpiresAt(Number.isNaN(time) ? undefined : time)
  }
  const [sources, models] = [[...linesOf(lists.sources)], [...linesOf(lists.models)]]
  const body = {
    name: name.trim(),
    limits: limitsOf(limits),
    ...(expiresAt !== undefined && { expires_at: isoTime(expiresAt) }),
    ...(sources.length > 0 && { sources }),
    ...(models.length > 0 && { models }),
  }
  return (
    <FormSheet
      title="New key"
      label="Create key"
      busyLabel="Creating …"
      content={[projectId, body]}
      onClose={onClose}
      send={(options) => callApi('createKey', { id: projectId, body }, options)}
      onDone={onCreated}
    >
      <Field
        label="Name"
        hint="Who or what will use the key."
        value={name}
        isRequired
        lengthMax={100}
        onChange={setName}
      />
      {projects.length > 1 && (
        <Choice
          label="Project"
          value={projectId}
          options={projects.map(({ id, name: label }) => ({ value: id, label }))}
          onChange={setProjectId}
        />
      )}
      <details>
        <summary>Limits, expiry and restrictions</summary>
        <div class="sheet-form">
          <LimitsFields inputs={limits} onChange={setLimits} />
          <Choice label="Expires" value={lifetime} options={lifetimes} onChange={chooseLifetime} />
          {lifetime === 'at' && <Field label="Expires at (your time)" kind="moment" isRequired onChange={chooseTime} />}
          <Fields rows={listFields} values={lists} onChange={setLists} />
        </div>
      </details>
    </FormSheet>
  )
}

const overlaps = [
  { value: '0', label: 'Immediately' },
  { value: '3600', label: 'After 1 hour' },
  { value: '86400', label: 'After 1 day' },
  { value: '604800', label: 'After 7 days' },
  { value: '2592000', label: 'After 30 days' },
] as const

export interface RotateSheetProps {
  readonly apiKey: Key
  onClose(): void
  onRotated(key: KeyWithSecret): void
}

export function RotateSheet({ apiKey: { id, name, last4 }, onClose, onRotated }: RotateSheetProps) {
  const [overlap, setOverlap] = useState('0')
  return (
    <FormSheet
      title={`Rotate ${name}`}
      label="Rotate"
      busyLabel="Rotating …"
      content={overlap}
      onClose={onClose}
      send={(options) => callApi('rotateKey', { id, body: { overlap_seconds: Number(overlap) } }, options)}
      onDone={onRotated}
    >
      <p>The key …{last4} gets a new secret, which is shown once. Its limits, project and history do not change.</p>
      <Choice
        label="The old secret expires"
        value={overlap}
        options={overlaps}
        hint={
          overlap === '0'
            ? 'Programs that still use the old secret are refused from then on.'
            : 'Both secrets work until then. Choose “Immediately” if the old one may have leaked.'
        }
        onChange={setOverlap}
      />
    </FormSheet>
  )
}

export interface RevokeSheetProps {
  readonly apiKey: Key
  onClose(): void
  onRevoked(): void
}

/** Shows when and by which client the key was last used, so that no one is cut off by mistake. */
export function RevokeSheet({ apiKey, onClose, onRevoked }: RevokeSheetProps) {
  const { id, name } = apiKey
  const { value, error, reload } = useApi('listRequests', { query: { key_id: id, limit: 1 } })
  return (
    <FormSheet
      title={`Revoke ${name}?`}
      label="Revoke key"
      busyLabel="Revoking …"
      isDanger
      cancelLabel="Keep key"
      onClose={onClose}
      send={() => callApi('revokeKey', { id, body: {} })}
      onDone={onRevoked}
    >
      {error && <ErrorNotice error={error} retry={reload} />}
      <p class="last-use" role="status">
        {value ? <LastUse apiKey={apiKey} request={value.data[0]} /> : 'Loading its last use …'}
      </p>
      <p>All requests with this key will be refused. This cannot be undone. To change only its secret, rotate it.</p>
    </FormSheet>
  )
}

function LastUse({ apiKey, request }: { readonly apiKey: Key; readonly request: RequestItem | undefined }) {
  const at = request?.started_at ?? apiKey.last_used_at
  if (at === null) return <>Never used.</>
  return (
    <>
      Last used <Ago at={at} />
      {request?.client && (
        <>
          {' '}
          by <strong class="client">{request.client}</strong>
        </>
      )}
      .
    </>
  )
}

export interface SecretSheetProps {
  readonly apiKey: KeyWithSecret
  readonly address: string
  /** Only a new key waits for its first request: the next request of a rotated key may use the old secret. */
  readonly isNew: boolean
  onClose(): void
}

/** Closes only by its button, because the secret cannot be shown again. */
export function SecretSheet({ apiKey: { id, name, secret }, address, isNew, onClose }: SecretSheetProps) {
  const environment = [
    `OPENAI_BASE_URL=${address}/v1`,
    `OPENAI_API_KEY=${secret}`,
    `ANTHROPIC_BASE_URL=${address}`,
    `ANTHROPIC_API_KEY=${secret}`,
  ].join('\n')
  const connect = `TOLLGATE_KEY=${secret} npx tollgate connect claude`
  const model = exampleModel(useApi('getCatalog', {}).value?.data ?? [])
  const auth = `-H "Authorization: Bearer ${secret}"`
  return (
    <Sheet title={`Secret of ${name}`} isSticky onClose={onClose}>
      <div class="sheet-form">
        <p class="warning">
          <strong>This secret is shown only once.</strong> Copy it now. A lost secret can only be replaced by rotating
          the key.
        </p>
        <CopyField title="Secret" what="secret" text={secret} />
        {isNew && <FirstRequest keyId={id} />}
        <CopyField title="As environment variables" what=".env lines" text={environment} />
        <CopyField title="Connect a client on your machine" what="connect command" text={connect} />
        {model && (
          <CopyField
            title="Try it now"
            what="curl command"
            text={curlText({ address, auth, body: helloBody(model.id) })}
          />
        )}
        <div class="form-actions sheet-foot">
          <Button onClick={onClose}>Done, I have copied it</Button>
        </div>
      </div>
    </Sheet>
  )
}

const pollMs = 2_000

/** Waits for the first request with a new key. */
function FirstRequest({ keyId }: { readonly keyId: string }) {
  const { value, isLoading, reload } = useApi('listRequests', { query: { key_id: keyId, limit: 1 } })
  const request = value?.data[0]
  useEffect(() => {
    // An error does not stop the polling: the gateway may be restarting.
    if (request || isLoading) return
    const timer = setTimeout(reload, pollMs)
    return () => clearTimeout(timer)
  }, [request, isLoading])
  if (!request) {
    return (
      <p role="status" class="first-request">
        <Status level="off" text="waiting for the first request …" />
      </p>
    )
  }
  const { id, status, code, model, client } = request
  return (
    <p role="status" class="first-request">
      <Status level={status < 400 && code === null ? 'ok' : 'warning'} text="received" />{' '}
      <a href={`/console/requests/${id}`}>
        {model ?? 'a request'}, status {status}
        {status < 400 && code !== null && ` ${code}`}
      </a>
      {client && <small class="client">from {client}</small>}
    </p>
  )
}
