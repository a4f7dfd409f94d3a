/** @jsxImportSource preact */
// A workspace's own provider keys (BYOK): stored, replaced, tested and deleted, never read back; and whether requests may
// fall back to the operator's routes.

import type { TargetedEvent } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Status } from '../../components.tsx'
import { callApi, callTogether } from '../api-client.ts'
import type { Credential, KeyTestResult, ListAnswer, Provider, Setting, Workspace } from '../api-types.ts'
import { DataTable, Empty, ErrorNotice, QueryView } from '../components.tsx'
import { Moment, useToast } from '../context.tsx'
import { Checkbox, Choice, Field, Form, Sheet } from '../form.tsx'
import { useQuery, useSubmit } from '../hooks.ts'

type OpenSheet = { readonly sheet: 'put' | 'delete'; readonly provider: string }

export function OwnKeys({ workspaceId }: { readonly workspaceId: string }) {
  const [open, setOpen] = useState<OpenSheet | undefined>(undefined)
  const path = `/api/workspaces/${workspaceId}`
  const query = useQuery<[Workspace, ListAnswer<Credential>]>(workspaceId, {
    load: () => callTogether(callApi(path), callApi(`${path}/credentials`)),
  })
  const close = () => setOpen(undefined)
  const closeAndReload = () => {
    close()
    query.reload()
  }
  return (
    <section class="stack" aria-label="Your provider keys">
      <header class="console-head">
        <h2>Your provider keys (BYOK)</h2>
        <button type="button" class="button small" onClick={() => setOpen({ sheet: 'put', provider: '' })}>
          Add key
        </button>
      </header>
      <QueryView what="provider keys" query={query}>
        {([workspace, { data }]) => (
          <>
            <KeysTable workspaceId={workspaceId} credentials={data} onAct={setOpen} />
            <Fallback workspace={workspace} onSaved={query.reload} />
          </>
        )}
      </QueryView>
      {open?.sheet === 'put' && (
        <PutKeySheet workspaceId={workspaceId} provider={open.provider} onClose={close} onSaved={closeAndReload} />
      )}
      {open?.sheet === 'delete' && (
        <DeleteKeySheet workspaceId={workspaceId} provider={open.provider} onClose={close} onDeleted={closeAndReload} />
      )}
    </section>
  )
}

function credentialPath(workspaceId: string, provider: string): string {
  return `/api/workspaces/${workspaceId}/credentials/${encodeURIComponent(provider.trim())}`
}

interface KeysTableProps {
  readonly workspaceId: string
  readonly credentials: readonly Credential[]
  onAct(open: OpenSheet): void
}

function KeysTable({ workspaceId, credentials, onAct }: KeysTableProps) {
  if (credentials.length === 0) {
    return (
      <Empty title="No provider keys yet">
        <p>
          Requests for models that your own provider key serves use that key and cost nothing here. A new key is used
          from the next request.
        </p>
      </Empty>
    )
  }
  const columns = [
    { label: 'Provider', show: ({ provider }: Credential) => <span class="row-name">{provider}</span> },
    { label: 'Key', show: ({ last4 }: Credential) => <code>…{last4}</code> },
    { label: 'Source', show: () => 'this workspace' },
    { label: 'Address', show: ({ base_url }: Credential) => base_url ?? 'provider default' },
    {
      label: 'Test',
      show: ({ provider, updated_at }: Credential) => (
        <KeyTest key={updated_at} provider={provider} path={`${credentialPath(workspaceId, provider)}/test`} />
      ),
    },
    { label: 'Stored', show: ({ updated_at }: Credential) => <Moment at={updated_at} /> },
    {
      label: 'Actions',
      show: ({ provider }: Credential) => (
        <div class="row-actions">
          <button
            type="button"
            class="button quiet small"
            aria-label={`Replace the key for ${provider}`}
            onClick={() => onAct({ sheet: 'put', provider })}
          >
            Replace
          </button>
          <button
            type="button"
            class="button quiet small revoke"
            aria-label={`Delete the key for ${provider}`}
            onClick={() => onAct({ sheet: 'delete', provider })}
          >
            Delete
          </button>
        </div>
      ),
    },
  ]
  return <DataTable caption="Your provider keys" columns={columns} rows={credentials} keyOf={({ id }) => id} />
}

function Fallback({ workspace, onSaved }: { readonly workspace: Workspace; onSaved(): void }) {
  const submit = useSubmit()
  const offerUndo = useToast()
  const patch = (sharesRoutes: boolean) =>
    callApi(`/api/workspaces/${workspace.id}`, { method: 'PATCH', body: { shares_routes: sharesRoutes } })
  const change = (sharesRoutes: boolean) =>
    submit.run(
      () => patch(sharesRoutes),
      () => {
        onSaved()
        const text = `Fallback to the operator’s routes is now ${sharesRoutes ? 'on' : 'off'}.`
        offerUndo({ text, undo: () => patch(!sharesRoutes), onUndone: onSaved })
      },
    )
  return (
    <>
      <Checkbox
        label="If your own key fails, fall back to the operator’s routes at the catalog price"
        isChecked={workspace.shares_routes}
        isDisabled={submit.isBusy}
        onChange={change}
      />
      {submit.error && <ErrorNotice error={submit.error} />}
    </>
  )
}

interface PutKeySheetProps {
  readonly workspaceId: string
  /** Empty = to be chosen. */
  readonly provider: string
  onClose(): void
  onSaved(): void
}

function PutKeySheet({ workspaceId, provider: given, onClose, onSaved }: PutKeySheetProps) {
  const [provider, setProvider] = useState(given)
  const [apiKey, setApiKey] = useState('')
  const [baseUrl, setBaseUrl] = useState('')
  const allowsBaseUrl = useAllowsBaseUrl()
  const submit = useSubmit()
  const save = () => {
    const body = { api_key: apiKey.trim(), ...(baseUrl.trim() !== '' && { base_url: baseUrl.trim() }) }
    const path = credentialPath(workspaceId, provider)
    submit.run(() => callApi<Credential>(path, { method: 'PUT', body }), onSaved)
  }
  return (
    <Sheet title={given === '' ? 'Add a provider key' : `Replace the key for ${given}`} onClose={onClose}>
      <Form submit={submit} label="Save key" busyLabel="Saving …" onCancel={onClose} onSubmit={save}>
        {given === '' && <ProviderField value={provider} onChange={setProvider} />}
        <Field
          label="API key"
          hint="Stored encrypted. It can be replaced or deleted, but never read back."
          kind="password"
          value={apiKey}
          isRequired
          onChange={setApiKey}
        />
        <KeyFileField onRead={setApiKey} />
        {allowsBaseUrl && (
          <Field
            label="Base URL"
            hint="Only if it differs from the provider’s, for example https://example.com/v1"
            value={baseUrl}
            onChange={setBaseUrl}
          />
        )}
      </Form>
    </Sheet>
  )
}

/** Fills the password field, which keeps the content hidden. */
function KeyFileField({ onRead }: { onRead(text: string): void }) {
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
        For a Google service account: its JSON key file.
      </p>
    </div>
  )
}

/** Every provider that takes a key: the built-in ones, enabled or not, and those the operator declared. */
function ProviderField({ value, onChange }: { readonly value: string; onChange(value: string): void }) {
  const builtIn = useQuery<{ readonly providers: readonly string[] }>('/catalog/providers').value?.providers ?? []
  const enabled = useQuery<ListAnswer<Provider>>('/api/providers').value?.data ?? []
  // A provider without an address runs inside the gateway and takes no key.
  const declared = enabled.filter(({ address }) => address !== null).map(({ id }) => id)
  const options = [...new Set([...builtIn, ...declared])].sort().map((id) => ({ value: id, label: id }))
  return (
    <Choice
      label="Provider"
      value={value}
      options={[{ value: '', label: 'choose one' }, ...options]}
      isRequired
      onChange={onChange}
    />
  )
}

/** Whether the operator lets workspaces choose where their key is sent. */
function useAllowsBaseUrl(): boolean {
  const settings = useQuery<ListAnswer<Setting>>('/api/config').value?.data
  return settings?.some(({ name, value }) => name === 'own_keys.base_urls' && value === 'true') === true
}

interface DeleteKeySheetProps {
  readonly workspaceId: string
  readonly provider: string
  onClose(): void
  onDeleted(): void
}

function DeleteKeySheet({ workspaceId, provider, onClose, onDeleted }: DeleteKeySheetProps) {
  const submit = useSubmit()
  const remove = () => submit.run(() => callApi(credentialPath(workspaceId, provider), { method: 'DELETE' }), onDeleted)
  return (
    <Sheet title={`Delete the key for ${provider}?`} onClose={onClose}>
      <Form
        submit={submit}
        label="Delete key"
        busyLabel="Deleting …"
        isDanger
        cancelLabel="Keep key"
        onCancel={onClose}
        onSubmit={remove}
      >
        <p>From the next request, the models it served use the operator’s routes, if there are any.</p>
      </Form>
    </Sheet>
  )
}

const testLevels: Readonly<Record<string, 'ok' | 'warning'>> = { ok: 'ok', throttled: 'warning', failing: 'warning' }

export interface KeyTestProps {
  readonly provider: string
  /** Of the API. */
  readonly path: string
}

/** Tests a key at its provider. The gateway makes the request, which is empty and costs nothing. */
export function KeyTest({ provider, path }: KeyTestProps) {
  const [result, setResult] = useState<KeyTestResult | undefined>(undefined)
  const submit = useSubmit()
  const test = () => submit.run(() => callApi<KeyTestResult>(path, { method: 'POST', body: {} }), setResult)
  return (
    <>
      <button
        type="button"
        class="button quiet small"
        aria-label={`Test the key for ${provider}`}
        disabled={submit.isBusy}
        onClick={test}
      >
        {submit.isBusy ? 'Testing …' : 'Test'}
      </button>
      <div role="status" class="key-test">
        {result && !submit.isBusy && !submit.error && (
          <>
            <Status level={testLevels[result.verdict] ?? 'error'} text={result.verdict.replaceAll('_', ' ')} />
            <small class="row-note">
              {result.message} {result.status !== null && `Status ${result.status}. `}
              <Moment at={result.tested_at} />
            </small>
          </>
        )}
        {submit.error && !submit.isBusy && <small class="problem">{submit.error.message}</small>}
      </div>
    </>
  )
}
