// The first API calls of each console page. The server makes them and sends the answers with the document, so that pages
// open without an empty moment. A call that is missing here is made by the browser.

import { targetOf } from '../api/client.ts'
import { allWorkspaces, type ConsolePlace, may, type SectionName, type Viewer } from './page-data.ts'

type Calls = (place: ConsolePlace) => readonly string[]

/** The paths have to be the ones that `useApi` and `useList` of the page ask for. */
const bySection: { readonly [Name in SectionName]?: Calls } = {
  settings: () => [targetOf('getConfig', {}, {}).path, targetOf('listAudit', {}, { limit: 50 }).path],
  providers: () => [targetOf('listProviders', {}, {}).path],
  keys: ({ subject }) => (subject === '' ? [] : [targetOf('getKey', { id: subject }, {}).path]),
  requests: ({ subject }) => (subject === '' ? [] : [targetOf('getRequest', { id: subject }, {}).path]),
}

/** Paths of the management API; the first one lists the workspaces. */
export function firstCalls(place: ConsolePlace, viewer?: Viewer): readonly string[] {
  const workspaces = targetOf('listWorkspaces', {}, { limit: 200 }).path
  if (!viewer) return [workspaces]
  const { scope } = place
  const isPaid = scope !== allWorkspaces && may(viewer, 'getWallet', scope)
  const wallet = isPaid ? [targetOf('getWallet', { id: scope }, {}).path] : []
  return [workspaces, ...wallet, ...(bySection[place.section]?.(place) ?? [])]
}
