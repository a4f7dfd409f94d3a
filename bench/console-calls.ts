// The calls of the console's pages to the gateway: the paths of each page, in order.

import { systemClock } from '../src/kernel/clock.ts'
import { exampleModel, seededModel, type Tenant } from './seed-log.ts'

export interface PageCalls {
  readonly page: string
  readonly paths: readonly string[]
  /** Sums up the log itself, by what the hourly sums do not have, so it takes longer for a longer log. */
  readonly readsLog?: true
  /**
   * Sums up each model by the day. That work ends at models × days, which a log of 1,000 requests does not reach with 1,000
   * models: it has one request of each model. So the page is judged by its time and not by its ratio.
   */
  readonly readsModels?: true
}

export const benchPriceList = 'retail'

/** Pages of the lists are as long as the console's. */
export const pageLength = 50
const dayMs = 86_400_000

// biome-ignore lint/suspicious/noExplicitAny: answers of the gateway's own API, of which only ids and cursors are read
type Read = (path: string) => Promise<any>

/** `read` finds the ids and cursors that some pages begin from. */
export async function pageCalls(read: Read, tenant: Tenant | undefined): Promise<readonly PageCalls[]> {
  if (!tenant) throw new Error('there is no tenant to look at')
  const { workspaceId, keyId } = tenant
  const workspace = `/api/workspaces/${workspaceId}`
  const ago = (days: number): string => new Date(systemClock.now() - days * dayMs).toISOString()
  const stats = (days: number, more: string): string => `/api/stats?from=${ago(days)}${more}`
  const list = (more: string): string => `/api/requests?limit=${pageLength}${more}`
  const model = encodeURIComponent(seededModel(exampleModel))
  const request = (await read(list(''))).data[0].id
  const older = (await read(list(`&to=${ago(15)}`))).next_cursor
  const middle = (await read(`${workspace}/transfers?limit=${pageLength}`)).next_cursor
  const overview = (days: number, more: string) => [
    '/api/workspaces?limit=200',
    stats(days, more),
    `${workspace}/wallet`,
  ]
  const series = (days: number, more: string): string => `/api/usage/series?from=${ago(days)}${more}`
  const report = (days: number, more: string): string => `/api/usage?from=${ago(days)}${more}`
  const usage = (days: number, group: string, reportBy: string): PageCalls => ({
    page: `usage, ${days} days, by ${group}, report by ${reportBy}`,
    paths: [
      series(days, `&group_by=${group}`),
      series(2 * days, `&to=${ago(days)}&group_by=none`),
      stats(7, `&workspace_id=${workspaceId}`),
      report(days, `&group_by=${reportBy}`),
    ],
    readsLog: true,
  })
  const histogram = (days: number, more: string): PageCalls => ({
    page: `requests, histogram and facets of ${days} days${more && `, ${more.slice(1)}`}`,
    paths: [
      series(days, `&group_by=cause${more}`),
      `/api/requests/facets?from=${ago(days)}${more}`,
      list(`&from=${ago(days)}${more}`),
    ],
    readsLog: true,
  })
  return [
    usage(1, 'model', 'model'),
    usage(30, 'model', 'model'),
    usage(30, 'session', 'session'),
    usage(30, 'provider', 'tag:team'),
    histogram(1, ''),
    histogram(30, ''),
    histogram(30, '&outcome=failed'),
    { page: 'requests of a day, by cost', paths: [list(`&from=${ago(1)}&sort=cost`)], readsLog: true },
    { page: 'requests of 30 days, by cost', paths: [list(`&from=${ago(30)}&sort=cost`)], readsLog: true },
    { page: 'catalog', paths: ['/'] },
    { page: 'catalog, again when something changed', paths: ['/catalog/entries'] },
    { page: 'model', paths: ['/catalog/sandbox/echo'] },
    { page: 'overview, 24 hours, by model', paths: overview(1, '&group=model'), readsModels: true },
    { page: 'overview, 7 days, by key', paths: overview(7, '&group=key') },
    { page: 'overview, 30 days, by model', paths: overview(30, '&group=model'), readsModels: true },
    { page: 'overview, 30 days, by project', paths: overview(30, '&group=project') },
    {
      page: 'overview, 30 days, one workspace',
      paths: overview(30, `&group=model&workspace_id=${workspaceId}`),
      readsModels: true,
    },
    { page: 'requests', paths: ['/api/workspaces?limit=200', '/api/catalog', list('')] },
    { page: 'requests of a workspace', paths: [list(`&workspace_id=${workspaceId}`)] },
    { page: 'requests of a key', paths: [list(`&key_id=${keyId}`)] },
    { page: 'requests for a model', paths: [list(`&model=${model}`)] },
    { page: 'requests for a model, of a workspace', paths: [list(`&model=${model}&workspace_id=${workspaceId}`)] },
    { page: 'requests that failed', paths: [list('&outcome=failed')] },
    { page: 'requests that failed, of a key', paths: [list(`&outcome=failed&key_id=${keyId}`)] },
    { page: 'requests, fifteen days ago', paths: [list(`&to=${ago(15)}`)] },
    { page: 'requests, the page after that', paths: [list(`&cursor=${older}`)] },
    { page: 'one request, explained', paths: [`/api/requests/${request}`] },
    {
      page: 'keys',
      paths: [
        workspace,
        `${workspace}/projects`,
        `/api/keys?workspace_id=${workspaceId}`,
        `/api/requests?workspace_id=${workspaceId}&limit=200`,
        stats(30, `&group=key&workspace_id=${workspaceId}`),
      ],
    },
    {
      page: 'projects',
      paths: [workspace, `${workspace}/projects`, `/api/keys?workspace_id=${workspaceId}`, '/api/catalog'],
    },
    { page: 'wallet', paths: [`${workspace}/wallet`, `${workspace}/transfers?limit=${pageLength}`] },
    { page: 'wallet, older transfers', paths: [`${workspace}/transfers?limit=${pageLength}&cursor=${middle}`] },
    { page: 'wallet as a file, the first part', paths: [`${workspace}/transfers?limit=200`] },
    {
      page: 'providers',
      paths: [
        ...['/api/providers', '/api/providers/history?period=24h', '/api/config/file', '/api/catalog'],
        ...[workspace, `${workspace}/credentials`, report(7, '&group_by=provider')],
      ],
    },
    {
      page: 'one provider',
      paths: [
        ...['/api/providers', '/api/providers/acme', '/api/providers/history?period=24h', '/api/config/file'],
        ...['/api/catalog', `${workspace}/credentials`, report(7, '&group_by=provider')],
      ],
    },
    { page: 'margin, 30 days, by day', paths: [`/api/margin?from=${ago(30)}&group_by=day`, '/api/price-lists'] },
    { page: 'price list', paths: [`/api/price-lists/${benchPriceList}`] },
    { page: 'alerts', paths: ['/api/alerts?limit=50', '/api/alert-rules', '/api/webhooks', '/api/deliveries'] },
    { page: 'people', paths: ['/api/members', '/api/invitations'] },
    { page: 'settings', paths: ['/api/workspaces', '/api/config'] },
    { page: 'audit log', paths: ['/api/audit?limit=50'] },
  ]
}
