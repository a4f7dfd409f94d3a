/** @jsxImportSource preact */
// The filters of the list of requests; each is part of the address.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { AddressQuery } from '../parts/address-query.ts'
import type { CatalogItem } from '../parts/api-answers.ts'
import { type ListAnswer, useResource } from '../parts/use-resource.ts'
import { useZone } from '../parts/zone.tsx'

export const requestFilterNames = ['model', 'outcome', 'key', 'from', 'to', 'live'] as const
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
      <FindRequest />
      <label class="tick">
        <input
          type="checkbox"
          checked={query.live !== 'off'}
          onChange={({ currentTarget }) => change({ live: currentTarget.checked ? '' : 'off' })}
        />
        <span>Live</span>
      </label>
      {query.key !== '' && <Chip label={`key ${query.key}`} remove={() => change({ key: '' })} />}
      {query.from !== '' && <Chip label={`from ${moment(query.from)}`} remove={() => change({ from: '' })} />}
      {query.to !== '' && <Chip label={`before ${moment(query.to)}`} remove={() => change({ to: '' })} />}
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

function Chip({ label, remove }: { readonly label: string; remove(): void }) {
  return (
    <button type="button" class="button quiet small" onClick={remove}>
      {label} <span aria-hidden="true">×</span>
      <span class="visually-hidden">: take this filter away</span>
    </button>
  )
}
