// The first API calls of each console page. The server makes them and sends the answers with the document, so that pages
// open without an empty moment. A call that is missing here is made by the browser.

import { type CallOf, type QueryValues, targetOf } from '../api/client.ts'
import type { OperationName } from '../api/endpoints.ts'
import { isoTime } from '../kernel/clock.ts'
import { allWorkspaces, type ConsolePlace, may, type SectionName, type Viewer } from './page-data.ts'
import { dayMs, spendRateDays } from './pages/console/figures.ts'

interface FirstPlace extends ConsolePlace {
  readonly viewer: Viewer
  /** undefined = all workspaces. */
  readonly workspaceId: string | undefined
  /** undefined = the address has filters, which only the browser reads. */
  readonly now: number | undefined
}

/** The query of the usage chart for a period. */
export const usageQuery = (
  from: number,
  to: number,
  workspaceId: string | undefined,
  group: string,
  offset: number,
) => ({
  ...{ from: isoTime(from), to: isoTime(to), workspace_id: workspaceId },
  ...{ group_by: group as 'model', utc_offset_minutes: offset },
})

/** The query of the spend that the runway is computed from. */
export const spendQuery = (now: number, workspaceId: string) => ({
  from: isoTime(now - spendRateDays * dayMs),
  workspace_id: workspaceId,
})

export const alertsListed = 50

function pathOf<Name extends OperationName>(name: Name, call: CallOf<Name>): string {
  return targetOf(name, call, call.query as QueryValues | undefined).path
}

/** The paths have to be the ones that `useApi` and `useList` of the page ask for. */
const bySection: { readonly [Name in SectionName]?: (place: FirstPlace) => readonly string[] } = {
  usage({ workspaceId, viewer, now }) {
    if (now === undefined) return []
    const series = (from: number, until: number, group: string) =>
      pathOf('getUsageSeries', { query: usageQuery(from, until, workspaceId, group, 0) })
    const isPaid = workspaceId !== undefined && may(viewer, 'getWallet', workspaceId)
    return [
      series(now - dayMs, now, 'model'),
      series(now - 2 * dayMs, now - dayMs, 'none'),
      ...(isPaid ? [pathOf('getStats', { query: spendQuery(now, workspaceId) })] : []),
    ]
  },
  requests({ subject, workspaceId, now }) {
    if (subject !== '') return [pathOf('getRequest', { id: subject })]
    if (now === undefined) return []
    const filters = { workspace_id: workspaceId }
    const period = { ...filters, from: isoTime(now - dayMs), to: isoTime(now) }
    return [
      pathOf('listRequests', { query: filters }),
      pathOf('listKeys', { query: { ...filters, limit: 200 } }),
      pathOf('getUsageSeries', { query: period }),
      pathOf('getRequestFacets', { query: period }),
    ]
  },
  settings: () => [pathOf('getConfig', {}), pathOf('listAudit', { query: { limit: 50 } })],
  providers: ({ subject, workspaceId: id }) => [
    ...(id === undefined || subject !== '' ? [] : [pathOf('getWorkspace', { id }), pathOf('listCredentials', { id })]),
    pathOf('listProviders', {}),
    pathOf('getProviderHistory', { query: { period: '24h' } }),
    ...(subject === '' ? [pathOf('getConfigFile', {})] : []),
  ],
  margin: ({ workspaceId: id, now }) => [
    ...(now === undefined
      ? []
      : [pathOf('getMargin', { query: { from: isoTime(now - 30 * dayMs), group_by: 'day', workspace_id: id } })]),
    ...(id === undefined ? [] : [pathOf('getWorkspace', { id })]),
    pathOf('listPriceLists', {}),
  ],
  alerts: ({ workspaceId: workspace_id, viewer }) => [
    pathOf('listAlerts', { query: { workspace_id, limit: alertsListed } }),
    ...(may(viewer, 'listWebhooks', workspace_id)
      ? [
          pathOf('listWebhooks', { query: { workspace_id } }),
          pathOf('listRecentDeliveries', { query: { workspace_id } }),
        ]
      : []),
  ],
  keys: ({ subject }) => (subject === '' ? [] : [pathOf('getKey', { id: subject })]),
}

/** Paths of the management API; the first one lists the workspaces. */
export function firstCalls(place: ConsolePlace, viewer?: Viewer, now?: number): readonly string[] {
  const workspaces = pathOf('listWorkspaces', { query: { limit: 200 } })
  if (!viewer) return [workspaces]
  const workspaceId = place.scope === allWorkspaces ? undefined : place.scope
  const isPaid = workspaceId !== undefined && may(viewer, 'getWallet', workspaceId)
  const wallet = isPaid ? [pathOf('getWallet', { id: workspaceId })] : []
  return [workspaces, ...wallet, ...(bySection[place.section]?.({ ...place, viewer, workspaceId, now }) ?? [])]
}
