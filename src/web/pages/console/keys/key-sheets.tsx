/** @jsxImportSource preact */
// The sheets of the API keys page: create, rotate and revoke a key, and show a new secret once.

import { useEffect, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../../kernel/clock.ts'
import { Status } from '../../components.tsx'
import { ApiError, callApi } from '../api-client.ts'
import type { Key, KeyWithSecret, ListAnswer, Project, RequestItem } from '../api-types.ts'
import { CopyField, ErrorNotice } from '../components.tsx'
import { Ago } from '../context.tsx'
import { Choice, Field, Form, linesOf, Sheet } from '../form.tsx'
import { useIdempotencyKey, useQuery, useSubmit } from '../hooks.ts'
import { type LimitInputs, LimitsFields, limitInputs, limitsOf } from '../limits.tsx'

export interface NewKeySheetProps {
  /** At least one. */
  readonly projects: readonly Project[]
  onClose(): void
  onCreated(key: KeyWithSecret): void
}

/** A name is enough; restrictions are optional and folded away. */
export function NewKeySheet({ projects, onClose, onCreated }: NewKeySheetProps) {
  const [name, setName] = useState('')
  const [projectId, setProjectId] = useState(projects[0]?.id ?? '')
  const [restrictions, setRestrictions] = useState(noRestrictions)
  const body = { name: name.trim(), ...restrictionsBody(restrictions) }
  const idempotencyKey = useIdempotencyKey([projectId, body])
  const submit = useSubmit()
  const create = () =>
    submit.run(
      () => callApi<KeyWithSecret>(`/api/projects/${projectId}/keys`, { method: 'POST', body, idempotencyKey }),
      onCreated,
    )
  return (
    <Sheet title="New key" onClose={onClose}>
      <Form submit={submit} label="Create key" busyLabel="Creating …" onCancel={onClose} onSubmit={create}>
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
          <RestrictionFields restrictions={restrictions} onChange={setRestrictions} />
        </details>
      </Form>
    </Sheet>
  )
}

/** As entered. */
interface Restrictions {
  readonly limits: LimitInputs
  /** Days, or `at` for a chosen time; empty = never expires. */
  readonly lifetime: string
  /** Computed when the lifetime was chosen, so that sending the form again sends the same. */
  readonly expiresAt: number | undefined
  /** One per line. */
  readonly sources: string
  readonly models: string
}

const noRestrictions: Restrictions = {
  limits: limitInputs({}),
  lifetime: '',
  expiresAt: undefined,
  sources: '',
  models: '',
}

function restrictionsBody({ limits, expiresAt, sources, models }: Restrictions) {
  const addresses = linesOf(sources)
  const allowed = linesOf(models)
  return {
    limits: limitsOf(limits),
    ...(expiresAt !== undefined && { expires_at: isoTime(expiresAt) }),
    ...(addresses.length > 0 && { sources: addresses }),
    ...(allowed.length > 0 && { models: allowed }),
  }
}

const dayMs = 86_400_000
const lifetimes = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: 'at', label: 'At a given time …' },
] as const

interface RestrictionFieldsProps {
  readonly restrictions: Restrictions
  onChange(restrictions: Restrictions): void
}

function RestrictionFields({ restrictions, onChange }: RestrictionFieldsProps) {
  const change = (part: Partial<Restrictions>) => onChange({ ...restrictions, ...part })
  const chooseLifetime = (lifetime: string) => {
    const days = Number(lifetime)
    change({ lifetime, expiresAt: days > 0 ? systemClock.now() + days * dayMs : undefined })
  }
  const chooseTime = (text: string) => {
    const time = Date.parse(text)
    change({ expiresAt: Number.isNaN(time) ? undefined : time })
  }
  return (
    <div class="sheet-form">
      <LimitsFields inputs={restrictions.limits} onChange={(limits) => change({ limits })} />
      <Choice label="Expires" value={restrictions.lifetime} options={lifetimes} onChange={chooseLifetime} />
      {restrictions.lifetime === 'at' && (
        <Field label="Expires at (your time)" kind="moment" isRequired onChange={chooseTime} />
      )}
      <Field
        label="Allowed IP addresses"
        hint="One address or range per line, for example 10.0.0.0/8. Empty = any. This cannot be changed later."
        kind="lines"
        value={restrictions.sources}
        onChange={(sources) => change({ sources })}
      />
      <Field
        label="Allowed models"
        hint="One id or prefix/* per line. Empty = all project models. This cannot be changed later."
        kind="lines"
        value={restrictions.models}
        onChange={(models) => change({ models })}
      />
    </div>
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

export function RotateSheet({ apiKey, onClose, onRotated }: RotateSheetProps) {
  const [overlap, setOverlap] = useState('0')
  const idempotencyKey = useIdempotencyKey(overlap)
  const submit = useSubmit()
  const rotate = () => {
    const body = { overlap_seconds: Number(overlap) }
    const path = `/api/keys/${apiKey.id}/rotate`
    submit.run(() => callApi<KeyWithSecret>(path, { method: 'POST', body, idempotencyKey }), onRotated)
  }
  return (
    <Sheet title={`Rotate ${apiKey.name}`} onClose={onClose}>
      <Form submit={submit} label="Rotate" busyLabel="Rotating …" onCancel={onClose} onSubmit={rotate}>
        <p>
          The key …{apiKey.last4} gets a new secret, which is shown once. Its limits, project and history do not change.
        </p>
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
      </Form>
    </Sheet>
  )
}

export interface RevokeSheetProps {
  readonly apiKey: Key
  onClose(): void
  onRevoked(): void
}

/** Shows when and by which client the key was last used, so that no one is cut off by mistake. */
export function RevokeSheet({ apiKey, onClose, onRevoked }: RevokeSheetProps) {
  const submit = useSubmit()
  const { value, error, reload } = useQuery<ListAnswer<RequestItem>>(`/api/requests?key_id=${apiKey.id}&limit=1`)
  const revoke = () =>
    submit.run(() => callApi<Key>(`/api/keys/${apiKey.id}/revoke`, { method: 'POST', body: {} }), onRevoked)
  return (
    <Sheet title={`Revoke ${apiKey.name}?`} onClose={onClose}>
      <Form
        submit={submit}
        label="Revoke key"
        busyLabel="Revoking …"
        isDanger
        cancelLabel="Keep key"
        onCancel={onClose}
        onSubmit={revoke}
      >
        {error && <ErrorNotice error={error} retry={reload} />}
        <p class="last-use" role="status">
          {value ? <LastUse apiKey={apiKey} request={value.data[0]} /> : 'Loading its last use …'}
        </p>
        <p>All requests with this key will be refused. This cannot be undone. To change only its secret, rotate it.</p>
      </Form>
    </Sheet>
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
export function SecretSheet({ apiKey, address, isNew, onClose }: SecretSheetProps) {
  const { name, secret } = apiKey
  return (
    <Sheet title={`Secret of ${name}`} isSticky onClose={onClose}>
      <div class="sheet-form">
        <p class="warning">
          <strong>This secret is shown only once.</strong> Copy it now. A lost secret can only be replaced by rotating
          the key.
        </p>
        <CopyField title="Secret" what="secret" text={secret} />
        {isNew && <FirstRequest keyId={apiKey.id} />}
        <CopyField title="As environment variables" what=".env lines" text={environmentText(address, secret)} />
        <CopyField
          title="Connect a client on your machine"
          what="connect command"
          text={`TOLLGATE_KEY=${secret} npx tollgate connect claude`}
        />
        <CopyField title="Try it now" what="curl command" text={curlText(address, secret)} />
        <div class="form-actions sheet-foot">
          <button type="button" class="button" onClick={onClose}>
            Done, I have copied it
          </button>
        </div>
      </div>
    </Sheet>
  )
}

function environmentText(address: string, secret: string): string {
  return [
    `OPENAI_BASE_URL=${address}/v1`,
    `OPENAI_API_KEY=${secret}`,
    `ANTHROPIC_BASE_URL=${address}`,
    `ANTHROPIC_API_KEY=${secret}`,
  ].join('\n')
}

function curlText(address: string, secret: string): string {
  return [
    `curl -N ${address}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${secret}" -H "Content-Type: application/json" \\`,
    `  -d '{"model":"sandbox/echo","stream":true,"messages":[{"role":"user","content":"hello"}]}'`,
  ].join('\n')
}

const pollMs = 2_000

/** Waits for the first request with a new key. */
function FirstRequest({ keyId }: { readonly keyId: string }) {
  const request = useFirstRequest(keyId)
  if (!request) {
    return (
      <p role="status" class="first-request">
        <Status level="off" text="waiting for the first request …" />
      </p>
    )
  }
  const { status, code } = request
  return (
    <p role="status" class="first-request">
      <Status level={status < 400 && code === null ? 'ok' : 'warning'} text="received" />{' '}
      <a href={`/console/requests/${request.id}`}>
        {request.model ?? 'a request'}, status {status}
        {status < 400 && code !== null && ` ${code}`}
      </a>
      {request.client && <small class="client">from {request.client}</small>}
    </p>
  )
}

function useFirstRequest(keyId: string): RequestItem | undefined {
  const [request, setRequest] = useState<RequestItem | undefined>(undefined)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    const poll = async () => {
      const answer = await callApi<ListAnswer<RequestItem>>(`/api/requests?key_id=${keyId}&limit=1`)
      const found = answer instanceof ApiError ? undefined : answer.data[0]
      if (found) setRequest(found)
      // An error does not stop the polling: the gateway may be restarting.
      else if (!isOver) timer = setTimeout(poll, pollMs)
    }
    void poll()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [keyId])
  return request
}
