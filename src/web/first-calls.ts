// The first API calls of each console page. The server makes them and sends the answers with the document, so that pages
// open without an empty moment. A call that is missing here is made by the browser.

import { targetOf } from '../api/client.ts'
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

/** The paths have to be the ones that `useApi` and `useList` of the page ask for. */
const bySection: { readonly [Name in SectionName]?: (place: FirstPlace) => readonly string[] } = {
  usage({ workspaceId, viewer, now }) {
    if (now === undefined) return []
    const series = (from: number, to: number, group: string) =>
      targetOf('getUsageSeries', {}, usageQuery(from, to, workspaceId, group, 0)).path
    const spend =
      workspaceId !== undefined && may(viewer, 'getWallet', workspaceId)
        ? [targetOf('getStats', {}, spendQuery(now, workspaceId)).path]
        : []
    return [series(now - dayMs, now, 'model'), series(now - 2 * dayMs, now - dayMs, 'none'), ...spend]
  },
  requests({ subject, workspaceId, now }) {
    if (subject !== '') return [targetOf('getRequest', { id: subject }, {}).path]
    if (now === undefined) return []
    const filters = { workspace_id: workspaceId }
    const period = { ...filters, from: isoTime(now - dayMs), to: isoTime(now) }
    return [
      targetOf('listRequests', {}, filters).path,
      targetOf('listKeys', {}, { ...filters, limit: 200 }).path,
      targetOf('getUsageSeries', {}, period).path,
      targetOf('getRequestFacets', {}, period).path,
    ]
  },
  settings: () => [targetOf('getConfig', {}, {}).path, targetOf('listAudit', {}, { limit: 50 }).path],
  providers: ({ subject, workspaceId: id }) => [
    ...(id === undefined || subject !== ''
      ? []
      : [targetOf('getWorkspace', { id }, {}).path, targetOf('listCredentials', { id }, {}).path]),
    targetOf('listProviders', {}, {}).path,
    targetOf('getProviderHistory', {}, { period: '24h' }).path,
    ...(subject === '' ? [targetOf('getConfigFile', {}, {}).path] : []),
  ],
  margin: ({ workspaceId, now }) => [
    ...(now === undefined
      ? []
      : [
          targetOf('getMargin', {}, { from: isoTime(now - 30 * dayMs), group_by: 'day', workspace_id: workspaceId })
            .path,
        ]),
    ...(workspaceId === undefined ? [] : [targetOf('getWorkspace', { id: workspaceId }, {}).path]),
    targetOf('listPriceLists', {}, {}).path,
  ],
  alerts: ({ workspaceId: workspace_id, viewer }) => [
    targetOf('listAlerts', {}, { workspace_id, limit: alertsListed }).path,
    ...(may(viewer, 'listWebhooks', workspace_id)
      ? [
          targetOf('listWebhooks', {}, { workspace_id }).path,
          targetOf('listRecentDeliveries', {}, { workspace_id }).path,
        ]
      : []),
  ],
  keys: ({ subject }) => (subject === '' ? [] : [targetOf('getKey', { id: subject }, {}).path]),
}

/** Paths of the management API; the first one lists the workspaces. */
export function firstCalls(place: ConsolePlace, viewer?: Viewer, now?: number): readonly string[] {
  const workspaces = targetOf('listWorkspaces', {}, { limit: 200 }).path
  if (!viewer) return [workspaces]
  const { scope } = place
  const workspaceId = scope === allWorkspaces ? undefined : scope
  const isPaid = workspaceId !== undefined && may(viewer, 'getWallet', workspaceId)
  const wallet = isPaid ? [targetOf('getWallet', { id: workspaceId }, {}).path] : []
  return [workspaces, ...wallet, ...(bySection[place.section]?.({ ...place, viewer, workspaceId, now }) ?? [])]
}
