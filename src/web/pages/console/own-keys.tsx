/** @jsxImportSource preact */
// A workspace's own provider keys (BYOK): stored, replaced, tested and deleted, never read back; and whether requests may
// fall back to the operator's routes.

import type { TargetedEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { type AnswerOf, callApi, type ItemOf, readJson, type Workspace } from '../api.ts'
import { Button, ErrorNotice, Status } from '../components.tsx'
import { Checkbox } from '../form.tsx'
import { type Submit, useApi, useList, useQuery, useSubmit, useUniqueId } from '../hooks.ts'
import type { Column } from '../table.tsx'
import { actionsColumn, emptyState, ListView, QueryView, Section } from './components.tsx'
import { Moment, useViewer } from './context.tsx'
import { FormDialog, useOverlay } from './overlay.tsx'

type Credential = ItemOf<'listCredentials'>

export interface OwnKeysProps {
  readonly workspaceId: string
  /** Only its key; absent = all. */
  readonly provider?: string
}

export function OwnKeys({ workspaceId: id, provider: only }: OwnKeysProps) {
  const workspace = useApi('getWorkspace', only === undefined ? { id } : undefined)
  const all = useList('listCredentials', { id })
  const keys = only === undefined ? all : { ...all, items: all.items.filter(({ provider }) => provider === only) }
  const { open, ask } = useOverlay()
  const put = (provider: string) => open(<PutKeyDialog workspaceId={id} provider={provider} onDone={keys.reload} />)
  const remove = (provider: string) =>
    ask({
      title: `Delete the key for ${provider}?`,
      label: 'Delete key',
      cancelLabel: 'Keep key',
      intro: 'From the next request, the models it served use the operator’s routes, if there are any.',
      send: () => callApi('deleteCredential', { id, provider }),
      onDone: keys.reload,
    })
  const columns: readonly Column<Credential>[] = [
    { label: 'Provider', show: ({ provider }) => <span class="row-name">{provider}</span> },
    { label: 'Key', show: ({ last4 }) => <code>…{last4}</code> },
    { label: 'Source', show: () => 'this workspace' },
    { label: 'Address', show: ({ base_url }) => base_url ?? 'provider default' },
    {
      label: 'Test',
      show: ({ provider, updated_at }) => (
        <KeyTest
          key={updated_at}
          provider={provider}
          test={() => callApi('testCredential', { id, provider, body: {} })}
        />
      ),
    },
    { label: 'Stored', show: ({ updated_at }) => <Moment at={updated_at} /> },
    actionsColumn(({ provider }) => [
      { label: 'Replace', name: `Replace the key for ${provider}`, run: () => put(provider) },
      { label: 'Delete', name: `Delete the key for ${provider}`, look: 'danger', run: () => remove(provider) },
    ]),
  ]
  return (
    <Section
      title={only === undefined ? 'Your provider keys (BYOK)' : 'Your key (BYOK)'}
      action={
        (only === undefined || keys.items.length === 0) && {
          label: 'Add key',
          ...(only === undefined && { look: 'primary' }),
          run: () => put(only ?? ''),
        }
      }
    >
      <ListView
        what="provider keys"
        list={keys}
        caption="Your provider keys"
        columns={columns}
        empty={emptyState(
          only === undefined ? 'No provider keys yet' : 'No key of your own',
          'Requests for models that your own provider key serves use that key and cost nothing here.',
        )}
      />
      {only === undefined && (
        <QueryView what="the setting for other routes" query={workspace}>
          {(value) => <Fallback workspace={value} onSaved={workspace.reload} />}
        </QueryView>
      )}
    </Section>
  )
}

function Fallback({ workspace: { id, shares_routes }, onSaved }: { readonly workspace: Workspace; onSaved(): void }) {
  const { isBusy, error, run } = useSubmit()
  const { offerUndo } = useOverlay()
  const patch = (isShared: boolean) => callApi('updateWorkspace', { id, body: { shares_routes: isShared } })
  const change = (isShared: boolean) =>
    run(
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
        attributes={{ disabled: isBusy }}
        onChange={change}
      />
      {error && <ErrorNotice error={error} />}
    </>
  )
}

interface PutKeyDialogProps {
  readonly workspaceId: string
  /** Empty = to be chosen. */
  readonly provider: string
  onDone(credential: Credential): void
}

const readBuiltIn = () => readJson<{ readonly providers: readonly string[] }>('/catalog/providers')

export function PutKeyDialog({ workspaceId: id, provider: given, onDone }: PutKeyDialogProps) {
  const builtIn = useQuery('built in', readBuiltIn).value?.providers ?? []
  const { isOperator } = useViewer()
  const enabled = useApi('listProviders', isOperator ? {} : undefined).value?.data ?? []
  const settings = useApi('getConfig', isOperator ? {} : undefined).value?.data
  // Every provider that takes a key: the built-in ones, enabled or not, and those the operator declared. A provider without
  // an address runs inside the gateway and takes no key.
  const declared = enabled.filter(({ address }) => address !== null).map((each) => each.id)
  const providers = [...new Set([...builtIn, ...declared])].sort().map((each) => ({ value: each, label: each }))
  // Whether the operator lets workspaces choose where their key is sent.
  // People of the workspace cannot read the settings; the gateway refuses an address that is not allowed.
  const allowsBaseUrl = isOperator
    ? (settings?.some(({ name, value }) => name === 'own_keys.base_urls' && value === 'true') ?? false)
    : true
  return (
    <FormDialog
      title={given === '' ? 'Add a provider key' : `Your key for ${given}`}
      label="Save key"
      initial={{ provider: given }}
      rows={[
        {
          name: 'provider',
          label: 'Provider',
          options: [{ value: '', label: 'choose one' }, ...providers],
          isRequired: true,
          isShown: () => given === '',
        },
        {
          name: 'api_key',
          label: 'API key',
          hint: 'Stored encrypted. It can be replaced or deleted, but never read back.',
          kind: 'password',
          isRequired: true,
        },
        {
          name: 'base_url',
          label: 'Base URL',
          hint: 'Only if it differs from the provider’s, for example https://example.com/v1',
          isShown: () => allowsBaseUrl,
        },
      ]}
      send={({ provider, ...body }) => callApi('putCredential', { id, provider, body })}
      onDone={onDone}
    >
      {(_, change) => <KeyFileField onRead={(text) => change({ api_key: text })} />}
    </FormDialog>
  )
}

/** Fills the password field, which keeps the content hidden. */
function KeyFileField({ onRead }: { onRead(text: string): void }) {
  const id = useUniqueId()
  const read = async ({ currentTarget }: TargetedEvent<HTMLInputElement>) => {
    const [file] = currentTarget.files ?? []
    if (file) onRead(await file.text())
  }
  return (
    <div class="field">
      <label for={id}>Or from a file</label>
      <input id={id} type="file" aria-describedby={`${id}-hint`} onChange={read} />
      <p id={`${id}-hint`} class="hint">
        For a Google service account: its JSON key file.
      </p>
    </div>
  )
}

export type TestResult = AnswerOf<'testProvider'>

const testLevels: Readonly<Record<string, 'ok' | 'warning'>> = { ok: 'ok', throttled: 'warning', failing: 'warning' }

interface TestOutcomeProps extends Pick<Submit, 'isBusy' | 'error'> {
  readonly result: TestResult | undefined
}

/** What came of the last test. */
export function TestOutcome({ result, isBusy, error }: TestOutcomeProps) {
  return (
    <div role="status">
      {result && !isBusy && !error && (
        <>
          <Status level={testLevels[result.verdict] ?? 'error'} text={result.verdict.replaceAll('_', ' ')} />
          <small class="note">
            {result.message} {result.status !== null && `Status ${result.status}. `}
            <Moment at={result.tested_at} />
          </small>
        </>
      )}
      {error && !isBusy && <small class="problem">{error.message}</small>}
    </div>
  )
}

export interface KeyTestProps {
  readonly provider: string
  /** Tests it at once. */
  readonly isStarted?: boolean
  test(): Promise<TestResult>
}

/** Tests a key at its provider. The gateway makes the request, which is empty and costs nothing. */
export function KeyTest({ provider, isStarted = false, test }: KeyTestProps) {
  const [result, setResult] = useState<TestResult | undefined>(undefined)
  const { isBusy, error, run } = useSubmit()
  useEffect(() => {
    if (isStarted) run(test, setResult)
  }, [])
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
      <TestOutcome {...{ result, isBusy, error }} />
    </>
  )
}
