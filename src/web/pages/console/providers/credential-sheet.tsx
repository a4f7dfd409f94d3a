/** @jsxImportSource preact */
// Stores, replaces or deletes a workspace's own key at a provider. What is typed is sent once and forgotten here.

import type { TargetedEvent, TargetedSubmitEvent } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Field } from '../manage/field.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import { Sheet } from '../manage/sheet.tsx'
import type { Credential } from '../manage/things.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'

export interface CredentialSheetProps {
  readonly workspaceId: string
  /** Empty = to be chosen. */
  readonly provider: string
  onClose(): void
  onSaved(): void
}

export function CredentialSheet({ workspaceId, provider: given, onClose, onSaved }: CredentialSheetProps) {
  const [provider, setProvider] = useState(given)
  const [apiKey, setApiKey] = useState('')
  const [baseUrl, setBaseUrl] = useState('')
  const mayBringAddress = useMayBringAddress()
  const submit = useSubmit()
  const save = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const body = { api_key: apiKey.trim(), ...(baseUrl.trim() !== '' && { base_url: baseUrl.trim() }) }
    const path = credentialPath(workspaceId, provider)
    submit.run(() => callApi<Credential>(path, { method: 'PUT', body }), onSaved)
  }
  return (
    <Sheet title={given === '' ? 'Add a key of your own' : `Replace the key for ${given}`} onClose={onClose}>
      <form class="sheet-form" onSubmit={save}>
        {given === '' && <ProviderField value={provider} onChange={setProvider} />}
        <Field
          label="Key at the provider"
          hint="Stored encrypted. It can be replaced and deleted, never read back."
          kind="password"
          value={apiKey}
          isRequired
          onChange={setApiKey}
        />
        <KeyFileField onRead={setApiKey} />
        {mayBringAddress && (
          <Field
            label="Address"
            hint="Only if it is not the provider’s own, such as https://example.com/v1"
            value={baseUrl}
            onChange={setBaseUrl}
          />
        )}
        <FormActions submit={submit} label="Store the key" busyLabel="Storing …" onCancel={onClose} />
      </form>
    </Sheet>
  )
}

interface KeyFileFieldProps {
  onRead(text: string): void
}

/** Fills the field above, which keeps hidden what it holds. */
function KeyFileField({ onRead }: KeyFileFieldProps) {
  const id = useId()
  const read = async ({ currentTarget }: TargetedEvent<HTMLInputElement>) => {
    const [file] = currentTarget.files ?? []
    if (file) onRead(await file.text())
  }
  return (
    <div class="field-with-hint">
      <label class="field" for={id}>
        <span>Or from a file</span>
        <input id={id} type="file" aria-describedby={`${id}-hint`} onChange={read} />
      </label>
      <p id={`${id}-hint`} class="hint">
        For a Google service account: its JSON key file, as Google gave it out.
      </p>
    </div>
  )
}

interface ProviderFieldProps {
  readonly value: string
  onChange(value: string): void
}

/** Every provider that takes a key: the built-in ones, switched on or not, and those of the operator. */
function ProviderField({ value, onChange }: ProviderFieldProps) {
  const builtIn = useResource<{ readonly providers: readonly string[] }>('/catalog/providers').value?.providers ?? []
  const on = useResource<ListAnswer<SwitchedOn>>('/api/providers').value?.data ?? []
  // Without an address it answers inside the gateway, and there is nothing to bring a key for.
  const operators = on.filter(({ address }) => address !== null).map(({ id }) => id)
  const providers = [...new Set([...builtIn, ...operators])].sort()
  return (
    <label class="field">
      <span>Provider</span>
      <select value={value} required onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">choose one</option>
        {providers.map((provider) => (
          <option key={provider} value={provider}>
            {provider}
          </option>
        ))}
      </select>
    </label>
  )
}

interface SwitchedOn {
  readonly id: string
  readonly address: string | null
}

/** Whether the operator lets workspaces say where their key is sent. */
function useMayBringAddress(): boolean {
  const settings = useResource<ListAnswer<{ readonly name: string; readonly value: string }>>('/api/config').value?.data
  return settings?.some(({ name, value }) => name === 'own_keys.base_urls' && value === 'true') === true
}

export interface DeleteCredentialSheetProps {
  readonly workspaceId: string
  readonly provider: string
  onClose(): void
  onDeleted(): void
}

export function DeleteCredentialSheet({ workspaceId, provider, onClose, onDeleted }: DeleteCredentialSheetProps) {
  const submit = useSubmit()
  const remove = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    submit.run(() => callApi(credentialPath(workspaceId, provider), { method: 'DELETE' }), onDeleted)
  }
  return (
    <Sheet title={`Delete the key for ${provider}?`} onClose={onClose}>
      <form class="sheet-form" onSubmit={remove}>
        <p>
          Models that it served are called through the operator’s routes from the next request on, if there are any.
        </p>
        <FormActions
          submit={submit}
          label="Delete the key"
          busyLabel="Deleting …"
          isAlarm
          cancelLabel="Keep it"
          onCancel={onClose}
        />
      </form>
    </Sheet>
  )
}

/** Of the API. */
export function credentialPath(workspaceId: string, provider: string): string {
  return `/api/workspaces/${workspaceId}/credentials/${encodeURIComponent(provider.trim())}`
}
