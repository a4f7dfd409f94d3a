/** @jsxImportSource preact */
// Stores, replaces or deletes a workspace's own key at a provider. What is typed is sent once and forgotten here.

import type { TargetedSubmitEvent } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Field } from '../manage/field.tsx'
import { FormActions } from '../manage/form-actions.tsx'
import { Sheet } from '../manage/sheet.tsx'
import type { Credential } from '../manage/things.ts'
import { useSubmit } from '../manage/use-submit.ts'
import { callApi } from '../parts/call-api.ts'

export interface CredentialSheetProps {
  readonly workspaceId: string
  /** Empty = to be chosen. */
  readonly provider: string
  readonly providers: readonly string[]
  onClose(): void
  onSaved(): void
}

export function CredentialSheet({ workspaceId, provider: given, providers, onClose, onSaved }: CredentialSheetProps) {
  const [provider, setProvider] = useState(given)
  const [apiKey, setApiKey] = useState('')
  const [baseUrl, setBaseUrl] = useState('')
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
        {given === '' && <ProviderField value={provider} providers={providers} onChange={setProvider} />}
        <Field
          label="Key at the provider"
          hint="Stored encrypted. It can be replaced and deleted, never read back."
          kind="password"
          value={apiKey}
          isRequired
          onChange={setApiKey}
        />
        <Field
          label="Address"
          hint="Only if it is not the provider’s own, such as https://example.com/v1"
          value={baseUrl}
          onChange={setBaseUrl}
        />
        <FormActions submit={submit} label="Store the key" busyLabel="Storing …" onCancel={onClose} />
      </form>
    </Sheet>
  )
}

interface ProviderFieldProps {
  readonly value: string
  readonly providers: readonly string[]
  onChange(value: string): void
}

function ProviderField({ value, providers, onChange }: ProviderFieldProps) {
  const id = useId()
  return (
    <label class="field" for={id}>
      <span>Provider</span>
      <input
        id={id}
        list={`${id}-known`}
        value={value}
        required
        spellcheck={false}
        autocomplete="off"
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
      <datalist id={`${id}-known`}>
        {providers.map((provider) => (
          <option key={provider} value={provider} />
        ))}
      </datalist>
    </label>
  )
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
