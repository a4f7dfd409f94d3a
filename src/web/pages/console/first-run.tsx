/** @jsxImportSource preact */
// The first steps in a workspace: what is left to do, a dialog that creates a key and runs a first request with it, and one
// that stores a provider's key, tests it and lists the models it unlocks.

import { useEffect, useState } from 'preact/hooks'
import { isEmbedder } from '../../catalog/entry.ts'
import { countOf } from '../../catalog/format.ts'
import { callApi, type KeyWithSecret } from '../api.ts'
import { Button, CodeBlock } from '../components.tsx'
import { Form } from '../form.tsx'
import { useApi, useQuery } from '../hooks.ts'
import { AnswerCard } from './answer-card.tsx'
import { Card, exampleModel, QueryView } from './components.tsx'
import { useMay } from './context.tsx'
import { useModelCall } from './model-call.ts'
import { useConsolePath } from './navigation.ts'
import { Dialog, useOverlay } from './overlay.tsx'
import { KeyTest, PutKeyDialog } from './own-keys.tsx'
import { readOwnKeyModels } from './workspace-data.ts'

/** What is done already. */
async function readProgress(id: string, may: ReturnType<typeof useMay>) {
  const [keys, wallet, requests, providers, own] = await Promise.all([
    callApi('listKeys', { query: { workspace_id: id, limit: 200 } }),
    may('getWallet', id) ? callApi('getWallet', { id }) : undefined,
    callApi('listRequests', { query: { workspace_id: id, outcome: 'ok', limit: 1 } }),
    may('listProviders', id) ? callApi('listProviders', {}) : undefined,
    may('putCredential', id) ? callApi('listCredentials', { id }) : undefined,
  ])
  return {
    hasKey: keys.data.some(({ status }) => status === 'active'),
    hasRequest: requests.data.length > 0,
    /** undefined = not the viewer's concern. */
    hasFunds: wallet && Number(wallet.available) > 0,
    hasProvider: own && (own.data.length > 0 || providers?.data.some(({ origin }) => origin !== 'built_in') === true),
  }
}

interface FirstStepsProps {
  readonly workspaceId: string
  /** Changes when the page refreshes. */
  readonly now: number
}

/** Disappears when everything is done. */
export function FirstSteps({ workspaceId, now }: FirstStepsProps) {
  const may = useMay()
  const to = useConsolePath()
  const { open } = useOverlay()
  const { value: progress, reload } = useQuery(workspaceId, () => readProgress(workspaceId, may))
  const { hasKey = false, hasRequest = false, hasFunds, hasProvider } = progress ?? {}
  const isAllDone = hasKey && hasRequest && hasFunds !== false && hasProvider !== false
  useEffect(() => {
    if (progress && !isAllDone) reload()
  }, [now])
  if (!progress || isAllDone) return null
  const run = () => open(<CreateAndRunDialog workspaceId={workspaceId} onDone={() => reload()} />)
  const added = ({ provider }: { readonly provider: string }) => {
    reload()
    open(<ProviderAddedDialog workspaceId={workspaceId} provider={provider} />)
  }
  const add = () => open(<PutKeyDialog workspaceId={workspaceId} provider="" onDone={added} />)
  const all = [
    {
      isDone: hasFunds,
      label: 'Add funds',
      how: 'Requests are paid from the workspace’s balance.',
      action: (
        <a class="button" href={to('wallet')}>
          Add funds
        </a>
      ),
    },
    {
      isDone: hasKey && hasRequest,
      label: 'Send a request',
      how: 'Creates a key, shows it once, and sends a first request from this page. The sandbox needs no provider.',
      action: (
        // Without funds the request would be refused.
        <Button look={hasFunds === false ? 'quiet' : ''} onClick={run}>
          Create key and run
        </Button>
      ),
    },
    {
      isDone: hasProvider,
      label: 'Add a provider',
      how: 'Stores the API key of a provider for this workspace, tests it, and shows the models it unlocks.',
      action: (
        <Button look="quiet" onClick={add}>
          Add provider
        </Button>
      ),
    },
  ]
  const steps = all.filter(({ isDone }) => isDone !== undefined)
  return (
    <Card title="Getting started" note={`${steps.filter(({ isDone }) => isDone).length} of ${steps.length} done`}>
      <ol class="plain steps">
        {steps.map(({ isDone, label, how, action }) => (
          <li key={label} class={isDone ? 'done-step muted' : undefined}>
            <span aria-hidden="true">{isDone ? '✓' : '○'}</span>
            <span class="stack tight">
              <span>
                {label}
                <span class="visually-hidden">{isDone ? ': done' : ': to do'}</span>
                {!isDone && <small class="note">{how}</small>}
              </span>
              {!isDone && <span>{action}</span>}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  )
}

interface FirstCall {
  readonly apiKey: KeyWithSecret
  readonly model: string
  readonly prompt: string
}

interface CreateAndRunProps {
  readonly workspaceId: string
  onDone(): void
}

function CreateAndRunDialog({ workspaceId: id, onDone }: CreateAndRunProps) {
  const { close } = useOverlay()
  const catalog = useApi('getCatalog', {})
  const [call, setCall] = useState<FirstCall | undefined>(undefined)
  const create = (made: FirstCall) => {
    setCall(made)
    onDone()
  }
  return (
    <Dialog title="Create key and run" isSticky={call !== undefined}>
      {call ? (
        <FirstAnswer call={call} onDone={onDone} />
      ) : (
        <QueryView what="models" query={catalog}>
          {({ data }) => {
            const models = data.filter((model) => model.callable && !isEmbedder(model))
            return (
              <Form
                label="Create key and run"
                initial={{ name: 'first key', model: exampleModel(models)?.id ?? '', prompt: 'Say hello.' }}
                rows={[
                  { name: 'name', label: 'Name of the key', kind: 'name', isRequired: true },
                  {
                    name: 'model',
                    label: 'Model',
                    isRequired: true,
                    options: models.map((model) => ({ value: model.id, label: model.id })),
                  },
                  { name: 'prompt', label: 'Message', isRequired: true },
                ]}
                send={async ({ name, model, prompt }, options) => {
                  const apiKey = await callApi('createKey', { id: await openProject(id), body: { name } }, options)
                  return { apiKey, model, prompt }
                }}
                onCancel={close}
                onDone={create}
              />
            )
          }}
        </QueryView>
      )}
    </Dialog>
  )
}

/** A project that may call all models, or else the first; a new one where there is none. */
async function openProject(id: string): Promise<string> {
  const { data } = await callApi('listProjects', { id, query: { limit: 200 } })
  const project = data.find(({ models }) => models === null) ?? data[0]
  return (project ?? (await callApi('createProject', { id, body: { name: 'default' } }))).id
}

const outputTokensMax = 200

/** The new secret, and the answer to the request that was sent with it. */
function FirstAnswer({ call, onDone }: { readonly call: FirstCall; onDone(): void }) {
  const { apiKey, model, prompt } = call
  const { close } = useOverlay()
  const to = useConsolePath()
  const answer = useModelCall()
  const messages = [{ role: 'user', content: prompt }] as const
  const run = () => answer.send({ surface: 'chat', key: apiKey.secret, model, messages, maxTokens: outputTokensMax })
  useEffect(run, [])
  const finish = () => {
    close()
    onDone()
  }
  return (
    <div class="form">
      <p class="warning">
        <strong>This secret is shown only once.</strong> Copy it now.
      </p>
      <CodeBlock title={`Secret of ${apiKey.name}`} what="secret" code={apiKey.secret} />
      <AnswerCard id={model} call={answer} isInDialog />
      <div class="sheet-foot row">
        <Button onClick={finish}>Done, I have copied it</Button>
        <Button look="quiet" disabled={answer.isRunning} onClick={run}>
          Run again
        </Button>
        <a href={to(`keys/${apiKey.id}`)}>View key</a>
      </div>
    </div>
  )
}

/** Tests the new key, and lists what it unlocks. */
function ProviderAddedDialog({
  workspaceId: id,
  provider,
}: {
  readonly workspaceId: string
  readonly provider: string
}) {
  const { close } = useOverlay()
  const models = useQuery(`${id} ${provider}`, () => readOwnKeyModels(id))
  return (
    <Dialog title={`${provider} is added`}>
      <div class="form">
        <KeyTest provider={provider} isStarted test={() => callApi('testCredential', { id, provider, body: {} })} />
        <QueryView what="models" query={models}>
          {(value) => {
            const found = value.models.filter(({ own_providers: own }) => own.includes(provider))
            return (
              <>
                <p>
                  {found.length === 0
                    ? 'No project of this workspace may call a model of this provider.'
                    : `${countOf(found.length, 'model')} can be called with it now:`}
                </p>
                {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
                <ul class="plain model-ids row" tabIndex={0} aria-label={`Models of ${provider}`}>
                  {found.map((model) => (
                    <li key={model.id}>
                      <code>{model.id}</code>
                    </li>
                  ))}
                </ul>
              </>
            )
          }}
        </QueryView>
        <div class="sheet-foot">
          <Button onClick={close}>Done</Button>
        </div>
      </div>
    </Dialog>
  )
}
