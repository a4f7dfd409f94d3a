/** @jsxImportSource preact */
// The request log, newest first: filters in the address, live updates, and a link to each request.

import type { TargetedSubmitEvent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { isoTime } from '../../../kernel/clock.ts'
import { totalInputInJson } from '../../../kernel/usage.ts'
import { exactCount, shortMs } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { type CallOf, type RequestItem, targetOfCall } from '../api.ts'
import { Button, LiveStatus, SidePanel } from '../components.tsx'
import { Checkbox, CommittedField, Field } from '../form.tsx'
import { type AddressQuery, firstTime, useAddressQuery, useApi, useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { followEvents, type LiveState } from '../live-catalog.ts'
import type { Column } from '../table.tsx'
import { Amount, causeText, ExampleRequest, emptyState, ListView, LongRead, NameOf, Outcome } from './components.tsx'
import { Moment, TimeField, useTimeFormats, useWorkspaces } from './context.tsx'
import { isoTimeOf } from './figures.ts'
import { useConsolePath } from './navigation.ts'
import { RequestView } from './request-page.tsx'
import { intervalMs, startsOf } from './usage-explorer.tsx'

/** Names in the address, and the parameters of the API. */
const parameters = {
  project: 'project_id',
  key: 'key_id',
  model: 'model',
  outcome: 'outcome',
  session: 'session',
  agent: 'agent',
  user: 'end_user',
  tag: 'tag',
  provider: 'provider',
  cause: 'cause',
} as const
type FilterName = keyof typeof parameters
const filterNames = Object.keys(parameters) as FilterName[]
type Filters = AddressQuery<FilterName | 'from' | 'to' | 'live' | 'request'>

export function RequestsView({ address, isOperator, now }: ConsoleData) {
  const [query, change] = useAddressQuery([...filterNames, 'from', 'to', 'live', 'request'])
  const { chosen, isDecided } = useWorkspaces()
  const outcome = outcomes.find(({ value }) => value === query.outcome)?.value || undefined
  const named = {
    ...Object.fromEntries(filterNames.map((name) => [parameters[name], query[name] || undefined])),
    outcome,
  }
  const period = { from: isoTimeOf(query.from) || undefined, to: isoTimeOf(query.to) || undefined }
  const shared = { workspace_id: chosen?.id, ...named }
  const filters = { ...shared, ...period }
  const list = useList('listRequests', isDecided ? { query: filters } : undefined)
  /** The fields, on a phone. */
  const [isOpen, setOpen] = useState(false)
  const [waiting, setWaiting] = useState<readonly RequestItem[]>([])
  const showWaiting = () => {
    for (const request of waiting) list.add(request)
    setWaiting([])
    scrollTo({ top: 0 })
  }
  // A period that has ended gets no new requests.
  const isLive = query.live !== 'off' && period.to === undefined && isDecided
  const live = useLiveRequests({
    path: isLive ? targetOfCall('followRequests', { query: shared }).path : undefined,
    onOpen: list.reload,
    // What one reads must not move: further down, new requests wait for a click.
    onRequest: (request) =>
      scrollY < topPixels ? list.add(request) : setWaiting((before) => [...before, request].slice(-waitingMax)),
  })
  const to = useConsolePath()
  /** The panel keeps the list in place; with a modifier key the link opens the page of the request elsewhere. */
  const openRow = (event: MouseEvent) => {
    if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    const id = event.target.closest('tr')?.dataset.row
    const link = event.target.closest('a, button')
    if (id === undefined || (link !== null && !link.classList.contains('row-link'))) return
    event.preventDefault()
    change({ request: id })
  }
  const isFiltered = [...Object.values(named), ...Object.values(period)].some((value) => value !== undefined)
  return (
    <>
      <button type="button" class="button quiet on-phone" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="filter" size={14} />
        Filter
      </button>
      <div class={isOpen ? 'stack' : 'stack folded'}>
        <RequestFilters query={query} change={change} live={live} />
        {isDecided && <Histogram filters={shared} period={period} query={query} change={change} answeredAt={now} />}
      </div>
      {waiting.length > 0 && (
        <p class="new-requests" role="status">
          <Button look="small" onClick={showWaiting}>
            {waiting.length === 1 ? '1 new request' : `${exactCount(waiting.length)} new requests`}
          </Button>
        </p>
      )}
      {(list.items.length > 0 || list.isLoading) && <ExportLinks filters={filters} />}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the link of each row does the same by keyboard */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: see above */}
      <div class="table-box request-rows" onClick={openRow}>
        <ListView
          what="requests"
          class="data-table request-table"
          list={list}
          caption="Requests, newest first"
          columns={withKeys(useKeyNames(chosen?.id, isDecided))}
          hrefOf={({ id }) => to(`requests/${id}`)}
          empty={
            isFiltered
              ? emptyState('No matching requests', 'Remove a filter or choose another period.')
              : emptyState('No requests yet', <ExampleRequest address={address} isOperator={isOperator} />)
          }
        />
      </div>
      {query.request !== '' && (
        <SidePanel
          title="Request"
          action={<a href={to(`requests/${query.request}`)}>Open page</a>}
          onClose={() => change({ request: '' })}
        >
          <RequestView id={query.request} address={address} />
        </SidePanel>
      )}
    </>
  )
}

export const requestColumns: readonly Column<RequestItem>[] = [
  { label: 'Time', show: ({ started_at: at }) => <Moment at={at} /> },
  { label: 'Outcome', show: (request) => <Outcome {...request} /> },
  {
    label: 'Model',
    show: ({ model, requested_model: asked, path }) => model ?? <span class="muted">{asked ?? path}</span>,
    note: ({ provider, attempts: { length } }) =>
      provider !== null && `at ${provider}${length > 1 ? `, ${length} attempts` : ''}`,
  },
  {
    label: 'Tokens',
    isNumber: true,
    show: ({ usage }) => (usage ? exactCount(totalInputInJson(usage)) : '–'),
    note: ({ usage }) => usage && `${exactCount(usage.output_tokens)} out`,
  },
  {
    label: 'Duration',
    isNumber: true,
    show: ({ total_ms: ms }) => shortMs(ms),
    note: ({ first_event_ms: ms }) => ms !== null && `first token ${shortMs(ms)}`,
  },
  { label: 'Cost', isNumber: true, show: ({ cost }) => <Amount usd={cost} /> },
]

/** The key after the model, by its name where that is known, and the client below it. */
function withKeys(names: ReadonlyMap<string, string>): readonly Column<RequestItem>[] {
  const key: Column<RequestItem> = {
    label: 'Key',
    show: ({ key_id: id }) => names.get(id) ?? <code>…{id.slice(-6)}</code>,
    note: ({ agent, client, session }) => (
      <span title={client ?? undefined}>
        {[
          agent ?? (client === null ? '' : (client.split(/[ /]/)[0] ?? '')),
          session === null ? '' : `session ${session.slice(0, 12)}`,
        ]
          .filter((text) => text !== '')
          .join(', ')}
      </span>
    ),
  }
  return [...requestColumns.slice(0, 3), key, ...requestColumns.slice(3)]
}

function useKeyNames(workspaceId: string | undefined, isDecided: boolean): ReadonlyMap<string, string> {
  const keys = useApi('listKeys', isDecided ? { query: { workspace_id: workspaceId, limit: 200 } } : undefined).value
  return new Map((keys?.data ?? []).map(({ id, name }) => [id, name]))
}

const topPixels = 80
const waitingMax = 200
const dayMs = 86_400_000

interface HistogramProps {
  readonly filters: NonNullable<CallOf<'getRequestFacets'>['query']>
  readonly period: { readonly from: string | undefined; readonly to: string | undefined }
  readonly query: Filters
  change(change: Partial<Filters>): void
  readonly answeredAt: number
}

const [chartWidth, chartHeight] = [600, 56]

/** Requests over time, which is also the time filter, and the values of further filters with their counts. */
function Histogram({ filters, period, query, change, answeredAt }: HistogramProps) {
  const { hour } = useTimeFormats()
  const [now] = useState(() => firstTime(answeredAt))
  const to = period.to ?? isoTime(now)
  const from = period.from ?? isoTime(Date.parse(to) - dayMs)
  const call = Date.parse(from) < Date.parse(to) ? { query: { ...filters, from, to } } : undefined
  const usage = useApi('getUsageSeries', call, { keepPrevious: true }).value
  const counted = useApi('getRequestFacets', call, { keepPrevious: true })
  const facets = counted.value?.facets
  const stepMs = usage ? intervalMs[usage.interval] : 0
  const starts = usage ? startsOf(Date.parse(usage.from), Date.parse(usage.to), stepMs, 0) : []
  const points = new Map(usage?.total.points.map((point) => [Date.parse(point.start), point]))
  const most = Math.max(1, ...[...points.values()].map(({ requests }) => requests))
  const width = chartWidth / Math.max(1, starts.length)
  const bar = (name: string, at: number, count: number) => {
    const tall = count === 0 ? 0 : Math.max(2, (count / most) * chartHeight)
    return (
      <rect class={name} x={at * width + 0.5} y={chartHeight - tall} width={Math.max(1, width - 1)} height={tall} />
    )
  }
  const zoom = (start: number) =>
    change({
      from: isoTime(Math.max(start, Date.parse(from))),
      to: isoTime(Math.min(start + stepMs, Date.parse(to))),
    })
  return (
    <section class="histogram card stack tight" aria-label="Requests over time">
      <svg viewBox={`0 0 ${chartWidth} ${chartHeight}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        {starts.map((start, at) => {
          const { requests = 0, errors = 0 } = points.get(start) ?? {}
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: the fields From and To do the same by keyboard
            <g key={start} onClick={() => zoom(start)}>
              <title>{`${hour(start)}: ${exactCount(requests)} requests, ${exactCount(errors)} failed`}</title>
              <rect class="histogram-slot" x={at * width} y="0" width={width} height={chartHeight} />
              {bar('histogram-all', at, requests)}
              {errors > 0 && bar('histogram-failed', at, errors)}
            </g>
          )
        })}
      </svg>
      <p class="hint between">
        <span>{hour(from)}</span>
        <span>
          {usage ? `${exactCount(usage.total.requests)} requests, ${exactCount(usage.total.errors)} failed` : '…'}
          {period.from === undefined && ' in the last 24 hours'}
        </span>
        <span>{hour(to)}</span>
      </p>
      <LongRead query={counted} estimate={call && { report: 'facets', ...call.query }} />
      <div class="controls">
        <TimeField label="From" at={Date.parse(from)} onChange={(next) => change({ from: next, to })} />
        <TimeField label="To" at={Date.parse(to)} onChange={(next) => change({ from, to: next })} />
        {facetFields.map(({ name, label }) => (
          <Field
            key={name}
            label={label}
            value={query[name]}
            options={[
              { value: '', label: 'all' },
              ...(facets?.[name].some(({ value }) => value === query[name]) === false && query[name] !== ''
                ? [{ value: query[name], label: query[name] }]
                : []),
              ...(facets?.[name] ?? []).map(({ value, name: shown, requests }) => ({
                value,
                label: `${shown ?? (name === 'cause' ? causeText(value) : value)} (${exactCount(requests)})`,
              })),
            ]}
            onChange={(value) => change({ [name]: value })}
          />
        ))}
      </div>
    </section>
  )
}

const facetFields = [
  { name: 'cause', label: 'Cause' },
  { name: 'key', label: 'Key' },
  { name: 'provider', label: 'Provider' },
  { name: 'agent', label: 'Client' },
] as const

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
    { name: 'session', text: `session ${query.session}` },
    { name: 'agent', text: `agent ${query.agent}` },
    { name: 'user', text: `end user ${query.user}` },
    { name: 'tag', text: `tag ${query.tag}` },
    { name: 'from', text: timeText('from', query.from) },
    { name: 'to', text: timeText('before', query.to) },
  ] as const
  return (
    <div class="controls request-filters">
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
  const list = 'request-models'
  return (
    <>
      <CommittedField
        label="Model"
        value={model}
        isWide
        attributes={{ type: 'search', 'data-search': true, list, placeholder: 'all' }}
        onChange={onChoose}
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
  const call = current && { id: current.id, query: { limit: 200, archived: 'true' } as const }
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
