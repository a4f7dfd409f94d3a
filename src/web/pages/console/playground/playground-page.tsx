/** @jsxImportSource preact */
// Try a model with a real key, or two beside each other: the answers as they stream, what they may cost before and what
// they did cost after, and the same call as code.

import type { CatalogEntry } from '../../../catalog/entry.ts'
import { withOwnModels } from '../../../catalog/seen-entries.ts'
import type { ConsoleData } from '../../../page-data.ts'
import { noOwnModels, readOwnModels } from '../manage/own-models.ts'
import { useLoad } from '../manage/use-load.ts'
import { useAddressQuery } from '../parts/address-query.ts'
import type { CatalogItem } from '../parts/api-answers.ts'
import { firstModel } from '../parts/first-call.tsx'
import { Loading, Refused } from '../parts/resource-view.tsx'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'
import { useWorkspaces } from '../parts/workspaces.tsx'
import { Bench } from './bench.tsx'
import type { Dialect } from './playground-call.ts'

export function PlaygroundPage({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(['model', 'other', 'dialect'])
  const { value, refusal, again } = useResource<ListAnswer<CatalogEntry>>('/api/catalog')
  const { workspaces, chosen } = useWorkspaces()
  const workspace = chosen ?? (workspaces?.length === 1 ? workspaces[0] : undefined)
  const own = useLoad(workspace?.id ?? '', async () => (workspace ? await readOwnModels(workspace.id) : noOwnModels))
  const all = withOwnModels(value?.data ?? [], own.value?.models ?? [])
  const models = all.filter(({ callable }) => callable)
  const model = models.find(({ id }) => id === query.model) ?? firstModel(models)
  const other = models.find(({ id }) => id === query.other)
  const dialect: Dialect = query.dialect === 'messages' ? 'messages' : 'chat'
  return (
    <>
      <h1>Playground</h1>
      {refusal && <Refused refusal={refusal} again={again} />}
      {own.refusal && <Refused refusal={own.refusal} again={own.again} />}
      {!value && !refusal && <Loading what="models" />}
      {value && !model && (
        <p class="empty">No model can be called yet. Set a provider’s key, or add one to tollgate.yaml.</p>
      )}
      {model && (
        <>
          <div class="controls">
            <label class="field wide">
              <span>Model</span>
              <select value={model.id} onChange={({ currentTarget }) => change({ model: currentTarget.value })}>
                <Models models={models} />
              </select>
            </label>
            <label class="field wide">
              <span>Beside it</span>
              <select value={other?.id ?? ''} onChange={({ currentTarget }) => change({ other: currentTarget.value })}>
                <option value="">no other model</option>
                <Models models={models} />
              </select>
            </label>
            <label class="field">
              <span>Dialect</span>
              <select value={dialect} onChange={({ currentTarget }) => change({ dialect: currentTarget.value })}>
                <option value="chat">OpenAI chat</option>
                <option value="messages">Anthropic messages</option>
              </select>
            </label>
          </div>
          {workspaces && !workspace && (
            <p class="hint">Choose a workspace to see the models that only its own provider keys open.</p>
          )}
          <Bench model={model} other={other} dialect={dialect} address={address} />
        </>
      )}
    </>
  )
}

function Models({ models }: { readonly models: readonly CatalogItem[] }) {
  return (
    <>
      {models.map(({ id }) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
    </>
  )
}
