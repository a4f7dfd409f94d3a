/** @jsxImportSource preact */
// The request log, newest first: filters in the address, live updates, and a link to each request.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { exactCount, shortMs } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { type CallOf, type RequestItem, targetOfCall } from '../api.ts'
import { Button, LiveStatus } from '../components.tsx'
import { Checkbox, Field } from '../form.tsx'
import { type AddressQuery, useAddressQuery, useApi, useList } from '../hooks.ts'
import { followEvents, type LiveState } from '../live-catalog.ts'
import type { Column } from '../table.tsx'
import { Amount, ExampleRequest, emptyState, ListView, NameOf, Outcome } from './components.tsx'
import { Moment, useTimeFormats, useWorkspaces } from './context.tsx'
import { isoTimeOf } from './figures.ts'

const filterNames = ['model', 'outcome', 'project', 'key', 'from', 'to', 'live'] as const
type Filters = AddressQuery<(typeof filterNames)[number]>

export function RequestsView({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(filterNames)
  const { chosen, isDecided } = useWorkspaces()
  const outcome = outcomes.find(({ value }) => value === query.outcome)?.value
  const named = {
    project_id: query.project || undefined,
    key_id: query.key || undefined,
    model: query.model || undefined,
    outcome: outcome || undefined,
  }
  const period = { from: isoTimeOf(query.from) || undefined, to: isoTimeOf(query.to) || undefined }
  const shared = { workspace_id: chosen?.id, ...named }
  const filters = { ...shared, ...period }
  const list = useList('listRequests', isDecided ? { query: filters } : undefined)
  // A period that has ended gets no new requests.
  const isLive = query.live !== 'off' && period.to === undefined && isDecided
  const live = useLiveRequests({
    path: isLive ? targetOfCall('followRequests', { query: shared }).path : undefined,
    onOpen: list.reload,
    onRequest: list.add,
  })
  const isFiltered = [...Object.values(named), ...Object.values(period)].some((value) => value !== undefined)
  return (
    <>
      <RequestFilters query={query} change={change} live={live} />
      {list.items.length > 0 && <ExportLinks filters={filters} />}
      <ListView
        what="requests"
        list={list}
        caption="Requests, newest first"
        columns={columns}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => `/console/requests/${id}`}
        empty={
          isFiltered
            ? emptyState('No matching requests', 'Remove a filter or choose another period.')
            : emptyState('No requests yet', <ExampleRequest address={address} />)
        }
      />
    </>
  )
}

const columns: readonly Column<RequestItem>[] = [
  { label: 'Time', show: ({ started_at: at }) => <Moment at={at} /> },
  { label: 'Outcome', show: (request) => <Outcome {...request} /> },
  { label: 'Model', show: ({ model, path }) => model ?? <span class="muted">{path}</span> },
  {
    label: 'Provider',
    show: ({ provider, attempts: { length } }) =>
      provider === null ? '–' : length > 1 ? `${provider}, ${length} attempts` : provider,
  },
  { label: 'Input', isNumber: true, show: ({ usage }) => (usage ? exactCount(inputTokens(usage)) : '–') },
  { label: 'Output', isNumber: true, show: ({ usage }) => (usage ? exactCount(usage.output_tokens) : '–') },
  { label: 'First token', isNumber: true, show: ({ first_event_ms: ms }) => (ms === null ? '–' : shortMs(ms)) },
  { label: 'Duration', isNumber: true, show: ({ total_ms: ms }) => shortMs(ms) },
  { label: 'Cost', isNumber: true, show: ({ cost }) => <Amount usd={cost} /> },
]

function inputTokens(usage: NonNullable<RequestItem['usage']>): number {
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
function ExportLinks({ filters }: { readonly filters: CallOf<'exportRequests'>['query'] }) {
  const link = (format: 'csv' | 'jsonl', label: string) => (
    <a href={targetOfCall('exportRequests', { query: { ...filters, format } }).path} download={`requests.${format}`}>
      {label}
    </a>
  )
  return (
    <p class="row">
      <span class="hint">Export all matching requests:</span> {link('csv', 'CSV')} {link('jsonl', 'JSON lines')}
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
  readonly live: LiveState | undefined
  change(change: Partial<Filters>): void
}

function RequestFilters({ query, live, change }: RequestFiltersProps) {
  const { moment } = useTimeFormats()
  const timeText = (word: string, text: string) =>
    isoTimeOf(text) === '' ? `${word} “${text}”: not a time, ignored` : `${word} ${moment(text)}`
  const chips = [
    { name: 'key', text: <>key {<NameOf kind="Key" id={query.key} />}</> },
    { name: 'from', text: timeText('from', query.from) },
    { name: 'to', text: timeText('before', query.to) },
  ] as const
  return (
    <div class="controls">
      <ModelField model={query.model} onChoose={(model) => change({ model })} />
      <Field label="Outcome" value={query.outcome} options={outcomes} onChange={(outcome) => change({ outcome })} />
      <ProjectField project={query.project} onChoose={(project) => change({ project })} />
      <FindRequest />
      <Checkbox
        label="Live"
        isChecked={query.live !== 'off'}
        onChange={(isLive) => change({ live: isLive ? '' : 'off' })}
      />
      {live && <LiveStatus state={live} />}
      {chips
        .filter(({ name }) => query[name] !== '')
        .map(({ name, text }) => (
          <Button key={name} look="quiet small" onClick={() => change({ [name]: '' })}>
            {text} <span aria-hidden="true">×</span>
            <span class="visually-hidden">: remove this filter</span>
          </Button>
        ))}
    </div>
  )
}

/** A text field with suggestions: models that were removed from the catalog still have requests. */
function ModelField({ model, onChoose }: { readonly model: string; onChoose(model: string): void }) {
  const models = useApi('getCatalog', {}).value?.data ?? []
  const [text, setText] = useState(model)
  useEffect(() => setText(model), [model])
  const choose = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) =>
    onChoose(currentTarget.value.trim())
  const list = 'request-models'
  return (
    <>
      <Field
        label="Model"
        value={text}
        isWide
        attributes={{ type: 'search', 'data-search': true, list, placeholder: 'all', onChange: choose }}
        onChange={setText}
      />
      <datalist id={list}>
        {models.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </>
  )
}

/** Projects of one workspace; all workspaces together would have too many. */
function ProjectField({ project, onChoose }: { readonly project: string; onChoose(project: string): void }) {
  const { current } = useWorkspaces()
  const call = current && { id: current.id, query: { limit: 200 } }
  const projects = useApi('listProjects', call).value?.data ?? []
  const isListed = project === '' || projects.some(({ id }) => id === project)
  const options = [
    { value: '', label: current ? 'all' : 'all (choose a workspace)' },
    ...(isListed ? [] : [{ value: project, label: project }]),
    ...projects.map(({ id, name }) => ({ value: id, label: name })),
  ]
  return <Field label="Project" value={project} options={options} onChange={onChoose} />
}

function FindRequest() {
  const [id, setId] = useState('')
  const open = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (id.trim() !== '') location.assign(`/console/requests/${encodeURIComponent(id.trim())}`)
  }
  return (
    <form onSubmit={open} class="field wide">
      <Field label="Request id" value={id} attributes={{ placeholder: 'req_…' }} onChange={setId} />
    </form>
  )
}
