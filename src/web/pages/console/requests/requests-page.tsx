/** @jsxImportSource preact */
// The request log, newest first: filters in the address, live updates, and a link to each request.

import type { ComponentChildren, TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { CatalogEntry } from '../../../catalog/entry.ts'
import { exactCount, shortMs } from '../../../catalog/format.ts'
import type { ConsoleData } from '../../../page-data.ts'
import { LiveStatus } from '../../components.tsx'
import { followEvents, type LiveState } from '../../live-catalog.ts'
import { withQuery } from '../api-client.ts'
import type { ListAnswer, Project, RequestItem, UsageItem } from '../api-types.ts'
import {
  Amount,
  type Column,
  DataTable,
  Empty,
  ErrorNotice,
  ExampleRequest,
  Loading,
  MoreButton,
  NameOf,
  Outcome,
} from '../components.tsx'
import { Moment, useTimeFormats, useWorkspaces } from '../context.tsx'
import { Checkbox, Choice } from '../form.tsx'
import { type AddressQuery, useAddressQuery, useList, useQuery } from '../hooks.ts'
import { isoTimeOf } from '../values.ts'

const filterNames = ['model', 'outcome', 'project', 'key', 'from', 'to', 'live'] as const
type Filters = AddressQuery<(typeof filterNames)[number]>

export function RequestsPage({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(filterNames)
  const { chosen, isDecided } = useWorkspaces()
  const { key, project, model, outcome } = query
  const from = isoTimeOf(query.from)
  const to = isoTimeOf(query.to)
  const shared = { workspace_id: chosen?.id, project_id: project, key_id: key, model, outcome }
  const filters = { ...shared, from, to }
  const list = useList<RequestItem>(isDecided ? withQuery('/api/requests', filters) : undefined, ({ id }) => id)
  // A period that has ended gets no new requests.
  const wantsLive = query.live !== 'off' && to === ''
  const live = useLiveRequests({
    path: wantsLive && isDecided ? withQuery('/api/requests/events', shared) : undefined,
    onOpen: list.reload,
    onRequest: list.add,
  })
  const isFiltered = [key, project, model, outcome, from, to].some((value) => value !== '')
  return (
    <>
      <div class="console-head">
        <h1>Requests</h1>
        {live && <LiveStatus state={live} />}
      </div>
      <RequestFilters query={query} change={change} />
      {list.items.length > 0 && <ExportLinks filters={filters} />}
      {list.error && <ErrorNotice error={list.error} retry={list.reload} />}
      {list.items.length > 0 ? (
        <DataTable
          caption="Requests, newest first"
          columns={columns}
          rows={list.items}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => `/console/requests/${id}`}
        />
      ) : list.isLoading ? (
        <Loading what="requests" />
      ) : (
        !list.error && (
          <Empty title={isFiltered ? 'No matching requests' : 'No requests yet'}>
            {isFiltered ? <p>Remove a filter or choose another period.</p> : <ExampleRequest address={address} />}
          </Empty>
        )
      )}
      <MoreButton label="Show older requests" pages={list} />
    </>
  )
}

const columns: readonly Column<RequestItem>[] = [
  { label: 'Time', show: ({ started_at: at }) => <Moment at={at} /> },
  { label: 'Outcome', show: (request) => <Outcome request={request} /> },
  { label: 'Model', show: ({ model, path }) => model ?? <span class="muted">{path}</span> },
  { label: 'Provider', show: providerText },
  { label: 'Input', isNumber: true, show: ({ usage }) => (usage ? exactCount(inputTokens(usage)) : '–') },
  { label: 'Output', isNumber: true, show: ({ usage }) => (usage ? exactCount(usage.output_tokens) : '–') },
  { label: 'First token', isNumber: true, show: ({ first_event_ms: ms }) => (ms === null ? '–' : shortMs(ms)) },
  { label: 'Duration', isNumber: true, show: ({ total_ms: ms }) => shortMs(ms) },
  { label: 'Cost', isNumber: true, show: ({ cost }) => <Amount usd={cost} /> },
]

function providerText({ provider, attempts }: RequestItem): string {
  if (provider === null) return '–'
  return attempts.length > 1 ? `${provider}, ${attempts.length} attempts` : provider
}

function inputTokens(usage: UsageItem): number {
  return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.cache_write_1h_tokens
}

interface LiveRequestsOptions {
  /** undefined = not live. */
  readonly path: string | undefined
  /** The stream is open; what happened before has to be loaded. */
  onOpen(): void
  onRequest(request: RequestItem): void
}

function useLiveRequests({ path, onOpen, onRequest }: LiveRequestsOptions): LiveState | undefined {
  const [state, setState] = useState<LiveState>('waiting')
  useEffect(() => {
    if (path === undefined) return
    const stop = followEvents(path, {
      open() {
        setState('live')
        onOpen()
      },
      error: () => setState('lost'),
      request: (data) => onRequest(JSON.parse(data) as RequestItem),
    })
    return () => {
      stop()
      setState('waiting')
    }
  }, [path])
  return path === undefined ? undefined : state
}

/** Links, so that the browser itself writes what may be a very long file. */
function ExportLinks({ filters }: { readonly filters: Readonly<Record<string, string | undefined>> }) {
  return (
    <p class="files">
      <span class="hint">Export all matching requests:</span>{' '}
      <a href={withQuery('/api/requests/export', { ...filters, format: 'csv' })} download="requests.csv">
        CSV
      </a>{' '}
      <a href={withQuery('/api/requests/export', { ...filters, format: 'jsonl' })} download="requests.jsonl">
        JSON lines
      </a>
    </p>
  )
}

const outcomes = [
  { value: '', label: 'all' },
  { value: 'ok', label: 'ok' },
  { value: 'failed', label: 'failed' },
] as const

interface RequestFiltersProps {
  readonly query: Filters
  change(change: Partial<Filters>): void
}

function RequestFilters({ query, change }: RequestFiltersProps) {
  const { moment } = useTimeFormats()
  const timeText = (word: string, text: string) =>
    isoTimeOf(text) === '' ? `${word} “${text}”: not a time, ignored` : `${word} ${moment(text)}`
  return (
    <div class="controls">
      <ModelField model={query.model} onChoose={(model) => change({ model })} />
      <Choice label="Outcome" value={query.outcome} options={outcomes} onChange={(outcome) => change({ outcome })} />
      <ProjectField project={query.project} onChoose={(project) => change({ project })} />
      <FindRequest />
      <Checkbox
        label="Live"
        isChecked={query.live !== 'off'}
        onChange={(isLive) => change({ live: isLive ? '' : 'off' })}
      />
      {query.key !== '' && (
        <FilterChip onRemove={() => change({ key: '' })}>
          key <NameOf kind="keys" id={query.key} />
        </FilterChip>
      )}
      {query.from !== '' && (
        <FilterChip onRemove={() => change({ from: '' })}>{timeText('from', query.from)}</FilterChip>
      )}
      {query.to !== '' && <FilterChip onRemove={() => change({ to: '' })}>{timeText('before', query.to)}</FilterChip>}
    </div>
  )
}

/** A text field with suggestions: models that were removed from the catalog still have requests. */
function ModelField({ model, onChoose }: { readonly model: string; onChoose(model: string): void }) {
  const models = useQuery<ListAnswer<CatalogEntry>>('/api/catalog').value?.data ?? []
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
        onChange={({ currentTarget }) => onChoose(currentTarget.value.trim())}
      />
      <datalist id="request-models">
        {models.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </label>
  )
}

/** Projects of one workspace; all workspaces together would have too many. */
function ProjectField({ project, onChoose }: { readonly project: string; onChoose(project: string): void }) {
  const { current } = useWorkspaces()
  const path = current && `/api/workspaces/${current.id}/projects?limit=200`
  const projects = useQuery<ListAnswer<Project>>(path).value?.data ?? []
  const isListed = project === '' || projects.some(({ id }) => id === project)
  const options = [
    { value: '', label: current ? 'all' : 'all (choose a workspace)' },
    ...(isListed ? [] : [{ value: project, label: project }]),
    ...projects.map(({ id, name }) => ({ value: id, label: name })),
  ]
  return <Choice label="Project" value={project} options={options} onChange={onChoose} />
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

function FilterChip({ children, onRemove }: { readonly children: ComponentChildren; onRemove(): void }) {
  return (
    <button type="button" class="button quiet small" onClick={onRemove}>
      {children} <span aria-hidden="true">×</span>
      <span class="visually-hidden">: remove this filter</span>
    </button>
  )
}
