/** @jsxImportSource preact */
// The filters of the list of requests; each is part of the address.

import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { AddressQuery } from '../parts/address-query.ts'
import { isTime } from '../parts/address-time.ts'
import type { CatalogItem } from '../parts/api-answers.ts'
import { NameOf } from '../parts/name-of.tsx'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'
import { useWorkspaces } from '../parts/workspaces.tsx'
import { useZone } from '../parts/zone.tsx'

export const requestFilterNames = ['model', 'outcome', 'project', 'key', 'from', 'to', 'live'] as const
export type RequestQuery = AddressQuery<(typeof requestFilterNames)[number]>

export interface RequestFiltersProps {
  readonly query: RequestQuery
  change(change: Partial<RequestQuery>): void
}

export function RequestFilters({ query, change }: RequestFiltersProps) {
  const { moment } = useZone()
  const models = useResource<ListAnswer<CatalogItem>>('/api/catalog').value?.data ?? []
  return (
    <div class="controls">
      <ModelField model={query.model} models={models} choose={(model) => change({ model })} />
      <label class="field">
        <span>Outcome</span>
        <select value={query.outcome} onChange={({ currentTarget }) => change({ outcome: currentTarget.value })}>
          <option value="">all</option>
          <option value="ok">ok</option>
          <option value="failed">failed</option>
        </select>
      </label>
      <ProjectField project={query.project} choose={(project) => change({ project })} />
      <FindRequest />
      <label class="tick">
        <input
          type="checkbox"
          checked={query.live !== 'off'}
          onChange={({ currentTarget }) => change({ live: currentTarget.checked ? '' : 'off' })}
        />
        <span>Live</span>
      </label>
      {query.key !== '' && (
        <Chip remove={() => change({ key: '' })}>
          key <NameOf kind="keys" id={query.key} />
        </Chip>
      )}
      {query.from !== '' && (
        <Chip remove={() => change({ from: '' })}>
          {isTime(query.from) ? `from ${moment(query.from)}` : `from “${query.from}”: not a time, left out`}
        </Chip>
      )}
      {query.to !== '' && (
        <Chip remove={() => change({ to: '' })}>
          {isTime(query.to) ? `before ${moment(query.to)}` : `before “${query.to}”: not a time, left out`}
        </Chip>
      )}
    </div>
  )
}

interface ModelFieldProps {
  readonly model: string
  readonly models: readonly CatalogItem[]
  choose(model: string): void
}

/** A field and not a menu: models that are sold no more still have requests. */
function ModelField({ model, models, choose }: ModelFieldProps) {
  const [text, setText] = useState(model)
  useEffect(() => setText(model), [model])
  return (
    <label class="field wide">
      <span>Model</span>
      <input
        type="search"
        data-search
        list="request-models"
        placeholder="all"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onChange={({ currentTarget }) => choose(currentTarget.value.trim())}
      />
      <datalist id="request-models">
        {models.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </label>
  )
}

interface ProjectItem {
  readonly id: string
  readonly name: string
}

interface ProjectFieldProps {
  readonly project: string
  choose(project: string): void
}

/** Of the chosen workspace, or of the only one; of all of them there would be too many. */
function ProjectField({ project, choose }: ProjectFieldProps) {
  const { workspaces, chosen } = useWorkspaces()
  const workspace = chosen ?? (workspaces?.length === 1 ? workspaces[0] : undefined)
  const path = workspace && `/api/workspaces/${workspace.id}/projects?limit=200`
  const projects = useResource<ListAnswer<ProjectItem>>(path).value?.data ?? []
  const isListed = project === '' || projects.some(({ id }) => id === project)
  return (
    <label class="field">
      <span>Project</span>
      <select value={project} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        <option value="">{workspace ? 'all' : 'all (choose a workspace)'}</option>
        {!isListed && <option value={project}>{project}</option>}
        {projects.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function FindRequest() {
  const [id, setId] = useState('')
  const open = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (id.trim() !== '') location.assign(`/console/requests/${encodeURIComponent(id.trim())}`)
  }
  return (
    <form onSubmit={open} class="field wide">
      <label for="find-request">Request id</label>
      <input
        id="find-request"
        placeholder="req_…"
        spellcheck={false}
        value={id}
        onInput={({ currentTarget }) => setId(currentTarget.value)}
      />
    </form>
  )
}

function Chip({ children, remove }: { readonly children: ComponentChildren; remove(): void }) {
  return (
    <button type="button" class="button quiet small" onClick={remove}>
      {children} <span aria-hidden="true">×</span>
      <span class="visually-hidden">: take this filter away</span>
    </button>
  )
}
