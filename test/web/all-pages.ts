// Every page of the catalog, the documentation and the console, for the screenshots and for what must hold on all of them.

export interface ListedPage {
  readonly name: string
  readonly path: string
  /** Visible when the page is ready. */
  readonly ready: string
  /** Shown to people who are not signed in. */
  readonly isPublic?: true
  /** Shown to people with an account: the installation has none. */
  readonly needsAccount?: true
}

/** What the pages about one thing show. */
export interface ListedThings {
  readonly workspaceId: string
  readonly projectId: string
  readonly keyId: string
  /** A request, best one with several attempts. */
  readonly requestId: string
  readonly batchId: string
  /** A transfer that is a top-up. */
  readonly topUpId: string
  /** `2026-11` */
  readonly month: string
  /** A workspace without requests. */
  readonly newWorkspaceId: string
}

const live = '.live .status-ok'
const table = '.console-page .data-table'

export function allPages(things: ListedThings): readonly ListedPage[] {
  const { workspaceId, projectId, keyId, requestId, batchId, topUpId, month, newWorkspaceId } = things
  const inside = (path: string) => `/console/${workspaceId}/${path}`
  return [
    { name: 'catalog', path: '/', ready: live, isPublic: true },
    { name: 'catalog-filtered', path: '/?tag=tools&sort=price', ready: live, isPublic: true },
    { name: 'model', path: '/catalog/anthropic/claude-sonnet-4.5', ready: live, isPublic: true },
    { name: 'model-sandbox', path: '/catalog/sandbox/flaky', ready: live, isPublic: true },
    { name: 'compare', path: '/compare?m=anthropic/claude-sonnet-4.5&m=sandbox/echo', ready: live, isPublic: true },
    { name: 'docs', path: '/docs', ready: 'main h1', isPublic: true },
    { name: 'docs-page', path: '/docs/reference/configuration', ready: 'main h1', isPublic: true },
    { name: 'docs-api', path: '/docs/api', ready: 'main h1', isPublic: true },
    { name: 'docs-search', path: '/docs/search?q=spend+limit', ready: '.docs-results li', isPublic: true },
    { name: 'not-found', path: '/no/such/page', ready: 'main h1', isPublic: true },
    { name: 'sign-in', path: '/console', ready: 'main h1', isPublic: true },
    { name: 'device', path: '/console/device?code=WDJB-MJHT', ready: 'main h1', needsAccount: true },
    { name: 'device-installation', path: '/console/device', ready: 'main h1' },
    { name: 'first-run', path: `/console/${newWorkspaceId}/usage`, ready: '.steps' },
    { name: 'usage', path: inside('usage'), ready: '.usage-chart canvas' },
    { name: 'usage-all', path: '/console/all/usage?group=key&range=7d', ready: '.usage-chart canvas' },
    { name: 'requests', path: inside('requests'), ready: table },
    {
      name: 'requests-panel',
      path: inside(`requests?live=off&request=${requestId}`),
      ready: '.side-panel .waterfall',
    },
    { name: 'request', path: inside(`requests/${requestId}`), ready: '.waterfall' },
    { name: 'batches', path: inside('batches'), ready: '.console-page .data-table' },
    { name: 'batch', path: inside(`batches/${batchId}`), ready: '.facts-grid' },
    { name: 'playground', path: inside('playground?model=sandbox/tools&other=sandbox/think'), ready: '.answers' },
    { name: 'keys', path: inside('keys'), ready: table },
    { name: 'keys-all', path: '/console/all/keys', ready: table },
    { name: 'key', path: inside(`keys/${keyId}`), ready: '.code-block' },
    { name: 'projects', path: inside('projects'), ready: table },
    { name: 'project', path: inside(`projects/${projectId}`), ready: '.facts-grid' },
    { name: 'billing', path: inside('wallet'), ready: table },
    { name: 'billing-all', path: '/console/all/wallet', ready: table },
    { name: 'statement', path: inside(`wallet/${month}`), ready: '.paper' },
    { name: 'receipt', path: inside(`wallet/${topUpId}`), ready: '.paper' },
    { name: 'alerts', path: inside('alerts'), ready: '.console-page h2' },
    { name: 'people', path: inside('people'), ready: '.console-page h2' },
    { name: 'providers', path: inside('providers'), ready: '.console-page .data-table' },
    { name: 'provider', path: inside('providers/sandbox'), ready: '.console-page .data-table' },
    { name: 'margin', path: inside('margin'), ready: table },
    { name: 'bills', path: inside('bills'), ready: '.console-page h2' },
    { name: 'price-list', path: '/console/all/margin/retail', ready: table },
    { name: 'audit', path: inside('audit'), ready: table },
    { name: 'settings', path: inside('settings'), ready: table },
    { name: 'managed-settings', path: '/console/all/settings/managed-settings', ready: '.code-block' },
    { name: 'account', path: inside('account'), ready: '.console-page h2', needsAccount: true },
  ]
}
