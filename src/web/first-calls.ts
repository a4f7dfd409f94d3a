// The first API calls of each console page. The server makes them and sends the answers with the document, so that pages
// open without an empty moment. A call that is missing here is made by the browser.

import { type CallOf, type QueryValues, targetOf } from '../api/client.ts'
import type { OperationName } from '../api/endpoints.ts'
import { isoTime } from '../kernel/clock.ts'
import { allWorkspaces, type ConsolePlace, may, type SectionName, type Viewer } from './page-data.ts'
import { dayMs, marginPeriod, spendRateDays, usagePeriod } from './pages/console/figures.ts'

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

/** The query of the spend that the runway is computed from: its total. Of the groups, projects are the fewest. */
export const spendQuery = (now: number, workspaceId: string | undefined) => ({
  from: isoTime(now - spendRateDays * dayMs),
  workspace_id: workspaceId,
  group: 'project' as const,
})

/** The query of the spend of this month. */
export const monthQuery = (now: number, workspaceId: string | undefined) => {
  const { from, to } = usagePeriod('month', now)
  return { from: isoTime(from), to: isoTime(to), workspace_id: workspaceId, interval: '1d' as const }
}

/** The query of the margin. */
export const marginQuery = (range: string, now: number, groupBy: string, workspaceId: string | undefined) => {
  const { from, to } = marginPeriod(range, now)
  return { from: isoTime(from), to: isoTime(to), group_by: groupBy, workspace_id: workspaceId }
}

/** The query of the comparison of bills: whole days that are over. */
export const billsQuery = (range: string, now: number) => {
  const { from } = marginPeriod(range, now)
  const today = now - (now % dayMs)
  return { from: isoTime(Math.min(from - (from % dayMs), today - dayMs)).slice(0, 10), to: isoTime(today).slice(0, 10) }
}

export const alertsListed = 50
export const auditListed = 50
export const batchesListed = 50

/** Without a workspace: those of the installation. */
export const rulesQuery = (workspaceId: string | undefined) => ({
  ...(workspaceId === undefined ? { installation: 'true' as const } : { workspace_id: workspaceId as `ws_${string}` }),
  limit: 200,
})

function pathOf<Name extends OperationName>(name: Name, call: CallOf<Name>): string {
  return targetOf(name, call, call.query as QueryValues | undefined).path
}

/** The paths have to be the ones that `useApi` and `useList` of the page ask for. */
const bySection: { readonly [Name in SectionName]?: (place: FirstPlace) => readonly string[] } = {
  usage({ workspaceId, viewer, now }) {
    if (now === undefined) return []
    const series = (from: number, until: number, group: string) =>
      pathOf('getUsageSeries', { query: usageQuery(from, until, workspaceId, group, 0) })
    const hasSpend = workspaceId === undefined ? viewer.isOperator : may(viewer, 'getWallet', workspaceId)
    return [
      series(now - dayMs, now, 'model'),
      series(now - 2 * dayMs, now - dayMs, 'none'),
      pathOf('getUsageSeries', { query: monthQuery(now, workspaceId) }),
      ...(hasSpend ? [pathOf('getStats', { query: spendQuery(now, workspaceId) })] : []),
    ]
  },
  requests({ subject, workspaceId, now }) {
    if (subject !== '') return [pathOf('getRequest', { id: subject })]
    if (now === undefined) return []
    const filters = { workspace_id: workspaceId }
    const since = { ...filters, from: isoTime(now - dayMs) }
    const period = { ...since, to: isoTime(now) }
    return [
      pathOf('listRequests', { query: since }),
      pathOf('listKeys', { query: { ...filters, limit: 200 } }),
      pathOf('getUsageSeries', { query: { ...period, group_by: 'cause' } }),
      pathOf('getRequestFacets', { query: period }),
    ]
  },
  batches: ({ subject, workspaceId: workspace_id }) => [
    subject === ''
      ? pathOf('listBatches', { query: { workspace_id: workspace_id as `ws_${string}`, limit: batchesListed } })
      : pathOf('getBatch', { id: subject }),
  ],
  audit: ({ now }) => (now === undefined ? [] : [pathOf('listAudit', { query: { limit: auditListed } })]),
  settings: ({ subject }) => (subject === '' ? [pathOf('getConfig', {})] : [pathOf('getManagedSettings', {})]),
  providers: ({ subject, workspaceId: id }) => [
    ...(id === undefined ? [] : [pathOf('listCredentials', { id })]),
    ...(id === undefined || subject !== '' ? [] : [pathOf('getWorkspace', { id })]),
    pathOf('listProviders', {}),
    pathOf('getProviderHistory', { query: { period: '24h' } }),
    pathOf('getConfigFile', {}),
  ],
  margin: ({ subject, workspaceId: id, now }) => {
    if (subject !== '') return [pathOf('getPriceList', { list: subject })]
    return [
      ...(now === undefined ? [] : [pathOf('getMargin', { query: marginQuery('', now, 'day', id) })]),
      ...(id === undefined ? [] : [pathOf('getWorkspace', { id })]),
      pathOf('listPriceLists', {}),
    ]
  },
  bills: ({ now }) => (now === undefined ? [] : [pathOf('getReconciliation', { query: billsQuery('30d', now) })]),
  alerts: ({ workspaceId: workspace_id, viewer }) => [
    pathOf('listAlerts', { query: { workspace_id, limit: alertsListed } }),
    ...(may(viewer, 'listWebhooks', workspace_id)
      ? [
          pathOf('listAlertRules', { query: rulesQuery(workspace_id) }),
          pathOf('listWebhooks', { query: { workspace_id } }),
          pathOf('listRecentDeliveries', { query: { workspace_id } }),
        ]
      : []),
  ],
  people: ({ subject, workspaceId: workspace_id }) =>
    subject === '' ? [pathOf('listSignIns', { query: { workspace_id } })] : [],
  account: () => [
    pathOf('getMe', {}),
    pathOf('listSessions', {}),
    pathOf('listOwnSignIns', {}),
    pathOf('listTokens', { query: { limit: 50 } }),
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
