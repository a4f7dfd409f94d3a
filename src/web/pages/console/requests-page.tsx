/** @jsxImportSource preact */
// The request log: filters in the address, a histogram, live updates, and a link to each request. List, histogram, counts and
// export have the same filters and the same period, and the export has the order of the list.

import { useEffect, useMemo, useState } from 'preact/hooks'
import { isoTime, systemClock } from '../../../kernel/clock.ts'
import { exactCount } from '../../catalog/format.ts'
import type { ConsoleData } from '../../page-data.ts'
import { type RequestItem, targetOfCall } from '../api.ts'
import { Button } from '../components.tsx'
import { firstTime, useAddressQuery, useApi, useList, useTimeout } from '../hooks.ts'
import { followEvents, type LiveState } from '../live-catalog.ts'
import { ExampleRequest, emptyState, FilterFold, ListView, LongRead } from './components.tsx'
import { useWorkspaces } from './context.tsx'
import { useConsolePath } from './navigation.ts'
import { isNewestFirst, RequestTools, sortingOf, useColumns } from './request-columns.tsx'
import { type Filters, filterNames, parameters, periodOf, RequestFilters } from './request-filters.tsx'
import { Histogram } from './request-histogram.tsx'
import { RequestPanel } from './request-page.tsx'

const addressNames = [...filterNames, 'range', 'from', 'to', 'sort', 'order', 'live', 'request'] as const
const topPixels = 80
const waitingMax = 200
/** New requests are counted together. */
const recountMs = 15_000

export function RequestsView({ address, isOperator, now: answeredAt }: ConsoleData) {
  const [query, change] = useAddressQuery(addressNames)
  const { chosen, isDecided } = useWorkspaces()
  const now = useMemo(() => firstTime(answeredAt), [query.range, query.from, query.to])
  const period = periodOf(query, now)
  const sorting = sortingOf(query)
  const whyNotLive = period.to !== undefined ? 'The period has ended.' : isNewestFirst(sorting) ? undefined : notNewest
  const isLive = query.live !== 'off' && whyNotLive === undefined
  const filters = useFilters(query, chosen?.id)
  const [counted, setCounted] = useState({ since: now, to: now })
  const end = period.to ?? isoTime(counted.since === now ? counted.to : now)
  const isPeriod = period.from < end
  const within = { ...filters, from: period.from }
  const listed = {
    ...within,
    // Without live updates, what comes later is neither listed nor exported.
    to: isLive ? undefined : end,
    ...(isNewestFirst(sorting) ? {} : sorting),
  }
  const list = useList('listRequests', isDecided && isPeriod ? { query: listed } : undefined)
  const summed = isDecided && isPeriod ? { ...within, to: end } : undefined
  const usage = useApi('getUsageSeries', summed && { query: { ...summed, group_by: 'cause' } }, { keepPrevious: true })
  const facets = useApi('getRequestFacets', summed && { query: summed }, { keepPrevious: true })
  const keyNames = useKeyNames(chosen?.id, isDecided)
  const shown = useColumns(keyNames, sorting, ({ sort, order }) =>
    change(isNewestFirst({ sort, order }) ? { sort: '', order: '' } : { sort, order }),
  )
  const [waiting, setWaiting] = useState<readonly RequestItem[]>([])
  const [isBehind, setBehind] = useState(false)
  useTimeout(
    () => {
      setBehind(false)
      setCounted({ since: now, to: systemClock.now() })
    },
    isBehind ? recountMs : undefined,
  )
  const showWaiting = () => {
    for (const request of waiting) list.add(request)
    setWaiting([])
    scrollTo({ top: 0 })
  }
  const live = useLiveRequests({
    path: isLive && isDecided ? targetOfCall('followRequests', { query: filters }).path : undefined,
    onOpen: list.reload,
    onRequest(request) {
      setBehind(true)
      // What one reads must not move: further down, new requests wait for a click.
      if (scrollY < topPixels) list.add(request)
      else setWaiting((before) => [...before, request].slice(-waitingMax))
    },
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
  const isFiltered = filterNames.some((name) => query[name] !== '') || query.range !== '' || period.name === ''
  return (
    <>
      <FilterFold>
        <RequestFilters {...{ query, period, now, keyNames, live, whyNotLive, change }} facets={facets.value?.facets} />
      </FilterFold>
      {isDecided && (
        <Histogram usage={usage.value} period={period} onZoom={(from, to) => change({ range: '', from, to })} />
      )}
      <LongRead query={facets} estimate={summed && { report: 'facets', ...summed }} />
      {waiting.length > 0 && (
        <p class="new-requests" role="status">
          <Button look="small" onClick={showWaiting}>
            {waiting.length === 1 ? '1 new request' : `${exactCount(waiting.length)} new requests`}
          </Button>
        </p>
      )}
      {!isPeriod && emptyState('No period', '“From” must be before “To”.')}
      {isPeriod && (list.items.length > 0 || list.isLoading) && (
        <RequestTools
          total={facets.value?.total}
          exportHref={(format) => targetOfCall('exportRequests', { query: { ...listed, format } }).path}
          shown={shown}
        />
      )}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the link of each row does the same by keyboard */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: see above */}
      <div class="table-box request-rows" onClick={openRow}>
        {isPeriod && (
          <ListView
            what="requests"
            class="data-table request-table"
            list={list}
            caption={isNewestFirst(sorting) ? 'Requests, newest first' : 'Requests'}
            columns={shown.columns}
            hrefOf={({ id }) => to(`requests/${id}`)}
            empty={
              isFiltered ? (
                emptyState('No matching requests', 'Remove a filter or choose another period.')
              ) : (
                <NoRequests {...{ address, isOperator }} onAll={() => change({ range: '90d' })} />
              )
            }
          />
        )}
      </div>
      {query.request !== '' && (
        <RequestPanel id={query.request} address={address} onClose={() => change({ request: '' })} />
      )}
    </>
  )
}

const notNewest = 'Live updates need the order “newest first”.'

/** Of the API, without the period. */
function useFilters(query: Filters, workspaceId: string | undefined) {
  const outcome: 'ok' | 'failed' | undefined =
    query.outcome === 'ok' || query.outcome === 'failed' ? query.outcome : undefined
  const named = Object.fromEntries(filterNames.map((name) => [parameters[name], query[name] || undefined]))
  return { workspace_id: workspaceId, ...named, outcome }
}

interface NoRequestsProps {
  readonly address: string
  readonly isOperator: boolean
  onAll(): void
}

function NoRequests({ address, isOperator, onAll }: NoRequestsProps) {
  return emptyState(
    'No requests in the last 24 hours',
    <>
      <p>
        <Button look="quiet small" onClick={onAll}>
          Show the last 90 days
        </Button>
      </p>
      <ExampleRequest address={address} isOperator={isOperator} />
    </>,
  )
}

function useKeyNames(workspaceId: string | undefined, isDecided: boolean): ReadonlyMap<string, string> {
  const keys = useApi('listKeys', isDecided ? { query: { workspace_id: workspaceId, limit: 200 } } : undefined).value
  return new Map((keys?.data ?? []).map(({ id, name }) => [id, name]))
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
