/** @jsxImportSource preact */
// A workspace's own provider keys (BYOK): stored, replaced, tested and deleted, never read back; and whether requests may
// fall back to the operator's routes.

import type { TargetedEvent } from 'preact'
import { useId, useState } from 'preact/hooks'
import { type AnswerOf, type ApiError, callApi, callTogether, type ItemOf, readJson, type Workspace } from '../api.ts'
import { Button, Status } from '../components.tsx'
import { useApi, useQuery, useSubmit } from '../hooks.ts'
import { DataTable } from '../table.tsx'
import { Empty, ErrorNotice, QueryView, Section } from './components.tsx'
import { Moment, useToast } from './context.tsx'
import { Checkbox, Choice, Field, FormSheet } from './form.tsx'

type Credential = ItemOf<'listCredentials'>
type OpenSheet = { readonly sheet: 'put' | 'delete'; readonly provider: string }

export function OwnKeys({ workspaceId: id }: { readonly workspaceId: string }) {
  const [open, setOpen] = useState<OpenSheet | undefined>(undefined)
  const query = useQuery(id, () => callTogether(callApi('getWorkspace', { id }), callApi('listCredentials', { id })))
  const onClose = () => setOpen(undefined)
  const onDone = () => {
    onClose()
    query.reload()
  }
  return (
    <Section
      title="Your provider keys (BYOK)"
      action={
        <Button look="small" onClick={() => setOpen({ sheet: 'put', provider: '' })}>
          Add key
        </Button>
      }
    >
      <QueryView what="provider keys" query={query}>
        {([workspace, { data }]) => (
          <>
            <KeysTable workspaceId={id} credentials={data} onAct={setOpen} />
            <Fallback workspace={workspace} onSaved={query.reload} />
          </>
        )}
      </QueryView>
      {open?.sheet === 'put' && (
        <PutKeySheet workspaceId={id} provider={open.provider} onClose={onClose} onDone={onDone} />
      )}
      {open?.sheet === 'delete' && (
        <FormSheet
          title={`Delete the key for ${open.provider}?`}
          label="Delete key"
          busyLabel="Deleting …"
          isDanger
          cancelLabel="Keep key"
          onClose={onClose}
          send={() => callApi('deleteCredential', { id, provider: open.provider })}
          onDone={onDone}
        >
          <p>From the next request, the models it served use the operator’s routes, if there are any.</p>
        </FormSheet>
      )}
    </Section>
  )
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
        <KeyTest
          key={updated_at}
          provider={provider}
          test={() => callApi('testCredential', { id: workspaceId, provider, body: {} })}
        />
      ),
    },
    { label: 'Stored', show: ({ updated_at }: Credential) => <Moment at={updated_at} /> },
    {
      label: 'Actions',
      show: ({ provider }: Credential) => (
        <div class="row-actions">
          <Button
            look="quiet small"
            aria-label={`Replace the key for ${provider}`}
            onClick={() => onAct({ sheet: 'put', provider })}
          >
            Replace
          </Button>
          <Button
            look="quiet small revoke"
            aria-label={`Delete the key for ${provider}`}
            onClick={() => onAct({ sheet: 'delete', provider })}
          >
            Delete
          </Button>
        </div>
      ),
    },
  ]
  return <DataTable caption="Your provider keys" columns={columns} rows={credentials} keyOf={({ id }) => id} />
}

function Fallback({ workspace: { id, shares_routes }, onSaved }: { readonly workspace: Workspace; onSaved(): void }) {
  const submit = useSubmit()
  const offerUndo = useToast()
  const patch = (isShared: boolean) => callApi('updateWorkspace', { id, body: { shares_routes: isShared } })
  const change = (isShared: boolean) =>
    submit.run(
      () => patch(isShared),
      () => {
        onSaved()
        const text = `Fallback to the operator’s routes is now ${isShared ? 'on' : 'off'}.`
        offerUndo({ text, undo: () => patch(!isShared), onUndone: onSaved })
      },
    )
  return (
    <>
      <Checkbox
        label="If your own key fails, fall back to the operator’s routes at the catalog price"
        isChecked={shares_routes}
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
  onDone(): void
}

function PutKeySheet({ workspaceId: id, provider: given, onClose, onDone }: PutKeySheetProps) {
  const [provider, setProvider] = useState(given)
  const [apiKey, setApiKey] = useState('')
  const [baseUrl, setBaseUrl] = useState('')
  const settings = useApi('getConfig', {}).value?.data
  // Whether the operator lets workspaces choose where their key is sent.
  const allowsBaseUrl = settings?.some(({ name, value }) => name === 'own_keys.base_urls' && value === 'true')
  const body = { api_key: apiKey.trim(), ...(baseUrl.trim() !== '' && { base_url: baseUrl.trim() }) }
  return (
    <FormSheet
      title={given === '' ? 'Add a provider key' : `Replace the key for ${given}`}
      label="Save key"
      busyLabel="Saving …"
      onClose={onClose}
      send={() => callApi('putCredential', { id, provider: provider.trim(), body })}
      onDone={onDone}
    >
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
    </FormSheet>
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

const readBuiltIn = () => readJson<{ readonly providers: readonly string[] }>('/catalog/providers')

/** Every provider that takes a key: the built-in ones, enabled or not, and those the operator declared. */
function ProviderField({ value, onChange }: { readonly value: string; onChange(value: string): void }) {
  const builtIn = useQuery('built in', readBuiltIn).value?.providers ?? []
  const enabled = useApi('listProviders', {}).value?.data ?? []
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

type TestResult = AnswerOf<'testProvider'>

const testLevels: Readonly<Record<string, 'ok' | 'warning'>> = { ok: 'ok', throttled: 'warning', failing: 'warning' }

export interface KeyTestProps {
  readonly provider: string
  test(): Promise<TestResult | ApiError>
}

/** Tests a key at its provider. The gateway makes the request, which is empty and costs nothing. */
export function KeyTest({ provider, test }: KeyTestProps) {
  const [result, setResult] = useState<TestResult | undefined>(undefined)
  const { isBusy, error, run } = useSubmit()
  return (
    <>
      <Button
        look="quiet small"
        aria-label={`Test the key for ${provider}`}
        disabled={isBusy}
        onClick={() => run(test, setResult)}
      >
        {isBusy ? 'Testing …' : 'Test'}
      </Button>
      <div role="status" class="key-test">
        {result && !isBusy && !error && (
          <>
            <Status level={testLevels[result.verdict] ?? 'error'} text={result.verdict.replaceAll('_', ' ')} />
            <small class="row-note">
              {result.message} {result.status !== null && `Status ${result.status}. `}
              <Moment at={result.tested_at} />
            </small>
          </>
        )}
        {error && !isBusy && <small class="problem">{error.message}</small>}
      </div>
    </>
  )
}
