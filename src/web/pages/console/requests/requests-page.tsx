/** @jsxImportSource preact */
// Requests, newest first: filtered by the address, live while somebody wants that, each leading to its explanation.

import type { ConsoleData } from '../../../page-data.ts'
import { LiveLamp } from '../../catalog/live-lamp.tsx'
import { useAddressQuery } from '../parts/address-query.ts'
import { timeOf } from '../parts/address-time.ts'
import type { RequestItem } from '../parts/api-answers.ts'
import { withQuery } from '../parts/call-api.ts'
import { FirstCall } from '../parts/first-call.tsx'
import { Empty, Loading, Refused } from '../parts/resource-view.tsx'
import { useList } from '../parts/use-resource.ts'
import { useWorkspaces } from '../parts/workspaces.tsx'
import { useLiveRequests } from './live-requests.ts'
import { RequestFilters, requestFilterNames } from './request-filters.tsx'
import { RequestTable } from './request-table.tsx'

export function RequestsPage({ address }: ConsoleData) {
  const [query, change] = useAddressQuery(requestFilterNames)
  const { chosen, isDecided } = useWorkspaces()
  const { key, project, model, outcome } = query
  const from = timeOf(query.from)
  const to = timeOf(query.to)
  const shared = { workspace_id: chosen?.id, project_id: project, key_id: key, model, outcome }
  const filters = { ...shared, from, to }
  const list = useList<RequestItem>(isDecided ? withQuery('/api/requests', filters) : undefined)
  // What is over cannot be live.
  const wantsLive = query.live !== 'off' && to === ''
  const live = useLiveRequests({
    address: wantsLive && isDecided ? withQuery('/api/requests/events', shared) : undefined,
    onOpen: list.again,
    onRequest: list.add,
  })
  const isNarrowed = [key, project, model, outcome, from, to].some((value) => value !== '')
  return (
    <>
      <div class="console-head">
        <h1>Requests</h1>
        {live && <LiveLamp state={live} />}
      </div>
      <RequestFilters query={query} change={change} />
      {list.items.length > 0 && <Files filters={filters} />}
      {list.refusal && <Refused refusal={list.refusal} again={list.again} />}
      {list.items.length > 0 ? (
        <RequestTable requests={list.items} />
      ) : list.isLoading ? (
        <Loading what="requests" />
      ) : (
        !list.refusal && (
          <Empty title={isNarrowed ? 'No request is like that' : 'No requests yet'}>
            {isNarrowed ? <p>Take a filter away, or choose another time.</p> : <FirstCall address={address} />}
          </Empty>
        )
      )}
      {list.hasMore && (
        <p>
          <button type="button" class="button quiet" onClick={list.more}>
            Older requests
          </button>
        </p>
      )}
    </>
  )
}

interface FilesProps {
  readonly filters: Readonly<Record<string, string | undefined>>
}

/** Links, so that the browser itself writes what may be a very long file. */
function Files({ filters }: FilesProps) {
  return (
    <p class="files">
      <span class="hint">All that pass the filters, as a file:</span>{' '}
      <a href={withQuery('/api/requests/export', { ...filters, format: 'csv' })} download="requests.csv">
        CSV
      </a>{' '}
      <a href={withQuery('/api/requests/export', { ...filters, format: 'jsonl' })} download="requests.jsonl">
        JSON lines
      </a>
    </p>
  )
}
