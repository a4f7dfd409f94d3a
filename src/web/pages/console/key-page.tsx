/** @jsxImportSource preact */
// One API key: its limits, usage, newest requests, and code that calls the models it may use.

import { useState } from 'preact/hooks'
import { allowsModel, createAllowlist } from '../../../tenancy/allowlist.ts'
import { isEmbedder } from '../../catalog/entry.ts'
import { snippetsFor } from '../../catalog/snippets.ts'
import { usableEntries } from '../../catalog/usable-models.ts'
import type { ConsoleData } from '../../page-data.ts'
import { callApi, type Key, type Project, type Workspace } from '../api.ts'
import { CodeBlock, Facts, Tabs } from '../components.tsx'
import { Field } from '../form.tsx'
import { useApi, useQuery } from '../hooks.ts'
import { Actions, Card, DetailHead, exampleModel, QueryView } from './components.tsx'
import { Ago, Moment } from './context.tsx'
import { KeyStatus, lastUseOf, shortClient, useKeyActions } from './keys-page.tsx'
import { holdersOf, LimitsList } from './limits.tsx'
import { useConsolePath, useTitle } from './navigation.ts'
import { RecentRequests, UsageCard } from './usage-card.tsx'

export function KeyView({ subject, address }: ConsoleData) {
  const key = useApi('getKey', { id: subject })
  return (
    <QueryView what="the key" query={key}>
      {(apiKey) => <KeyDetails apiKey={apiKey} address={address} onChange={key.reload} />}
    </QueryView>
  )
}

interface KeyDetailsProps {
  readonly apiKey: Key
  readonly address: string
  onChange(): void
}

function KeyDetails({ apiKey, address, onChange }: KeyDetailsProps) {
  const to = useConsolePath()
  useTitle(apiKey.name)
  const { project_id, workspace_id } = apiKey
  const owners = useQuery(`${project_id} ${workspace_id}`, () =>
    Promise.all([callApi('getProject', { id: project_id }), callApi('getWorkspace', { id: workspace_id })]),
  )
  const [project, workspace] = owners.value ?? []
  const reload = () => {
    onChange()
    owners.reload()
  }
  const actions = useKeyActions(address, reload)(apiKey)
  return (
    <>
      <DetailHead
        trail={[
          ['API keys', to('keys')],
          ...(project ? ([[project.name, to(`projects/${project.id}`)]] as const) : []),
        ]}
        title={apiKey.name}
        action={
          <span class="row">
            <Actions actions={actions} />
          </span>
        }
      >
        {apiKey.managed_by === 'file' && <p class="hint">Managed by a file: change its limits there.</p>}
      </DetailHead>
      <KeyFacts apiKey={apiKey} project={project} workspace={workspace} />
      <Card title="Limits">
        <QueryView what="limits" query={owners}>
          {([ofProject, ofWorkspace]) => <LimitsList holders={holdersOf(apiKey, ofProject, ofWorkspace)} />}
        </QueryView>
        <p class="hint">The tightest limit of key, project and workspace applies. Days and months are in UTC.</p>
      </Card>
      <UsageCard kind="key" id={apiKey.id} />
      <RecentRequests kind="key" id={apiKey.id} />
      <KeyCode apiKey={apiKey} address={address} />
    </>
  )
}

interface KeyFactsProps {
  readonly apiKey: Key
  readonly project: Project | undefined
  readonly workspace: Workspace | undefined
}

function KeyFacts({ apiKey, project, workspace }: KeyFactsProps) {
  const { id, last4, created_at, expires_at, models, sources } = apiKey
  const request = useApi('listRequests', { query: { key_id: id, limit: 1 } }).value?.data[0]
  const usedAt = lastUseOf(apiKey, request)
  return (
    <Facts
      class="facts-grid"
      facts={[
        ['Status', <KeyStatus key="status" apiKey={apiKey} project={project} workspace={workspace} />],
        ['Secret', <code key="secret">sk-tg-…{last4}</code>],
        [
          'Last used',
          <>
            {usedAt === null ? 'never' : <Ago at={usedAt} />}
            {request?.client && <> by {<span title={request.client}>{shortClient(request.client)}</span>}</>}
          </>,
        ],
        ['Created', <Moment key="created" at={created_at} isDay />],
        [
          'Expires',
          expires_at === null ? (
            'never'
          ) : (
            <>
              <Moment at={expires_at} isDay /> ({<Ago at={expires_at} />})
            </>
          ),
        ],
        ['Allowed models', models === null ? 'all project models' : <code key="models">{models.join(', ')}</code>],
        ['Allowed IP addresses', sources === null ? 'any' : sources.join(', ')],
      ]}
    />
  )
}

/** Code for one of the models that the key may call now, for each client. */
function KeyCode({ apiKey, address }: Pick<KeyDetailsProps, 'apiKey' | 'address'>) {
  const catalog = useApi('getCatalog', {}).value?.data
  const offered = useApi('listProjectModels', { id: apiKey.project_id }).value?.data
  const [chosen, setChosen] = useState('')
  if (!catalog || !offered || apiKey.status !== 'active') return null
  const lists = apiKey.models === null ? [] : [createAllowlist(apiKey.models)]
  const models = usableEntries(catalog, offered).filter((model) => !isEmbedder(model) && allowsModel(lists, model.id))
  const model = models.find(({ id }) => id === chosen) ?? exampleModel(models)
  if (!model) return null
  const snippets = snippetsFor({ address, modelId: model.id, maxOutputTokens: model.max_output_tokens ?? undefined })
  return (
    <Card
      title="Code"
      action={
        <Field
          label="Model"
          value={model.id}
          options={models.map(({ id }) => ({ value: id, label: id }))}
          onChange={setChosen}
        />
      }
    >
      <p class="hint">
        Set <code>TOLLGATE_KEY</code> to the secret of this key.
      </p>
      <Tabs
        name="Clients"
        tabs={snippets.map(({ client, install, code }) => ({
          label: client,
          content: (
            <>
              {install !== '' && <CodeBlock code={install} what="install command" />}
              <CodeBlock code={code} what={`code for ${client}`} />
            </>
          ),
        }))}
      />
    </Card>
  )
}
