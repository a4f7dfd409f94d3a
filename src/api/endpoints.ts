// Every operation of the management API with its method, its path and who may call it. The gateway enforces this table before
// a handler runs, and the console reads it to show only what a person may do. This file has no schemas and imports only types,
// so that the console can use it in the browser. The body, query and answer of an operation are in the file of its resource.

import type { Role, WorkspaceRole } from '../kernel/roles.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * `workspace`: everything of the person's workspace. `own`: only keys that the person created, and the requests made with
 * them. `self`: only what belongs to the person, such as their tokens; it has no workspace.
 */
type Scope = 'workspace' | 'own' | 'self'

/** Absent = the role may not call it. Operators may call everything. */
type Access = Readonly<Partial<Record<WorkspaceRole, Scope>>>

const operators: Access = {}
const admins: Access = { admin: 'workspace' }
const readers: Access = { admin: 'workspace', viewer: 'workspace' }
const everyone: Access = { admin: 'workspace', member: 'workspace', viewer: 'workspace' }
/** Members see and change only their own; viewers see everything and change nothing. */
const readersAndOwners: Access = { admin: 'workspace', member: 'own', viewer: 'workspace' }
const adminsAndOwners: Access = { admin: 'workspace', member: 'own' }
const oneself: Access = { admin: 'self', member: 'self', viewer: 'self' }

/**
 * In a path, `{id}` is an id of the kind that the path names before it, and `{provider}` a provider's name. `{model}` may
 * contain a slash, either as it is or as %2F. Operation names are unique: generated clients name their functions after them.
 */
export const endpoints = {
  createWorkspace: ['POST', '/api/workspaces', operators],
  listWorkspaces: ['GET', '/api/workspaces', oneself],
  getWorkspace: ['GET', '/api/workspaces/{id}', everyone],
  updateWorkspace: ['PATCH', '/api/workspaces/{id}', admins],
  // The operator's bound on what a tenant may use. An admin sets limits of people and groups beside it.
  putWorkspaceLimits: ['PUT', '/api/workspaces/{id}/limits', admins],
  exportWorkspace: ['GET', '/api/workspaces/{id}/export', admins],
  eraseWorkspace: ['POST', '/api/workspaces/{id}/erase', operators],

  getWallet: ['GET', '/api/workspaces/{id}/wallet', readers],
  // Creates money without a payment.
  topUp: ['POST', '/api/workspaces/{id}/topups', operators],
  listPlans: ['GET', '/api/plans', operators],
  putPlan: ['PUT', '/api/plans/{plan}', operators],
  deletePlan: ['DELETE', '/api/plans/{plan}', operators],
  getWorkspacePlan: ['GET', '/api/workspaces/{id}/plan', readers],
  putWorkspacePlan: ['PUT', '/api/workspaces/{id}/plan', operators],
  endWorkspacePlan: ['DELETE', '/api/workspaces/{id}/plan', operators],
  subscribePlan: ['POST', '/api/workspaces/{id}/subscription', admins],
  cancelSubscription: ['DELETE', '/api/workspaces/{id}/subscription', admins],
  correctWallet: ['POST', '/api/workspaces/{id}/corrections', operators],
  createCheckout: ['POST', '/api/workspaces/{id}/checkouts', admins],
  listTransfers: ['GET', '/api/workspaces/{id}/transfers', readers],
  getStatement: ['GET', '/api/workspaces/{id}/statement', readers],
  exportStatement: ['GET', '/api/workspaces/{id}/statement/export', readers],
  listReceipts: ['GET', '/api/workspaces/{id}/receipts', readers],
  getPaymentSettings: ['GET', '/api/workspaces/{id}/payment-settings', readers],
  putAutoTopUp: ['PUT', '/api/workspaces/{id}/auto-topup', admins],
  stopAutoTopUp: ['DELETE', '/api/workspaces/{id}/auto-topup', admins],
  listPayments: ['GET', '/api/workspaces/{id}/payments', readers],
  // The operator's money.
  refundPayment: ['POST', '/api/payments/{id}/refunds', operators],

  createProject: ['POST', '/api/workspaces/{id}/projects', admins],
  listProjects: ['GET', '/api/workspaces/{id}/projects', everyone],
  getProject: ['GET', '/api/projects/{id}', everyone],
  updateProject: ['PATCH', '/api/projects/{id}', admins],
  deleteProject: ['DELETE', '/api/projects/{id}', admins],
  putProjectLimits: ['PUT', '/api/projects/{id}/limits', admins],
  getProjectContent: ['GET', '/api/projects/{id}/content', everyone],
  listProjectModels: ['GET', '/api/projects/{id}/models', everyone],

  getSubjectLimits: ['GET', '/api/workspaces/{id}/subject-limits', adminsAndOwners],

  createGroup: ['POST', '/api/workspaces/{id}/groups', admins],
  listGroups: ['GET', '/api/workspaces/{id}/groups', admins],
  getGroup: ['GET', '/api/groups/{id}', admins],
  updateGroup: ['PATCH', '/api/groups/{id}', admins],
  deleteGroup: ['DELETE', '/api/groups/{id}', admins],

  createKey: ['POST', '/api/projects/{id}/keys', adminsAndOwners],
  listKeys: ['GET', '/api/keys', readersAndOwners],
  getKey: ['GET', '/api/keys/{id}', readersAndOwners],
  // Not the owner: an admin may have set them.
  putKeyLimits: ['PUT', '/api/keys/{id}/limits', admins],
  revokeKey: ['POST', '/api/keys/{id}/revoke', adminsAndOwners],
  rotateKey: ['POST', '/api/keys/{id}/rotate', adminsAndOwners],

  listCredentials: ['GET', '/api/workspaces/{id}/credentials', admins],
  getCredential: ['GET', '/api/workspaces/{id}/credentials/{provider}', admins],
  putCredential: ['PUT', '/api/workspaces/{id}/credentials/{provider}', admins],
  deleteCredential: ['DELETE', '/api/workspaces/{id}/credentials/{provider}', admins],
  testCredential: ['POST', '/api/workspaces/{id}/credentials/{provider}/test', admins],
  listProviders: ['GET', '/api/providers', operators],
  // Counts the requests of all workspaces, including those with their own provider keys.
  getProviderHistory: ['GET', '/api/providers/history', operators],
  getProvider: ['GET', '/api/providers/{provider}', operators],
  testProvider: ['POST', '/api/providers/{provider}/test', operators],

  getCatalog: ['GET', '/api/catalog', oneself],
  getPrice: ['GET', '/api/models/{model}/price', operators],
  putPrice: ['PUT', '/api/models/{model}/price', operators],
  resetPrice: ['DELETE', '/api/models/{model}/price', operators],
  updatePrices: ['POST', '/api/prices/update', operators],
  getPlan: ['GET', '/api/models/{model}/plan', operators],
  listPriceLists: ['GET', '/api/price-lists', operators],
  getPriceList: ['GET', '/api/price-lists/{list}', operators],
  putPriceList: ['PUT', '/api/price-lists/{list}', operators],
  deletePriceList: ['DELETE', '/api/price-lists/{list}', operators],

  // The first three come before the path with an id, which would otherwise match their last word.
  followRequests: ['GET', '/api/requests/events', readersAndOwners],
  exportRequests: ['GET', '/api/requests/export', readersAndOwners],
  getRequestFacets: ['GET', '/api/requests/facets', readersAndOwners],
  listRequests: ['GET', '/api/requests', readersAndOwners],
  getRequest: ['GET', '/api/requests/{id}', readersAndOwners],
  getStats: ['GET', '/api/stats', readersAndOwners],
  exportUsage: ['GET', '/api/usage/export', readersAndOwners],
  getUsageSeries: ['GET', '/api/usage/series', readersAndOwners],
  // The provider's bills, which only the operator may see.
  getMargin: ['GET', '/api/margin', operators],
  getUsage: ['GET', '/api/usage', readersAndOwners],
  estimateReport: ['GET', '/api/usage/estimate', readersAndOwners],

  listBatches: ['GET', '/api/batches', readersAndOwners],
  getBatch: ['GET', '/api/batches/{id}', readersAndOwners],
  cancelBatch: ['POST', '/api/batches/{id}/cancel', adminsAndOwners],
  // The results are what models answered; viewers do not see answers elsewhere either.
  exportBatch: ['GET', '/api/batches/{id}/results', adminsAndOwners],

  // What the operator pays.
  runReconciliation: ['POST', '/api/reconciliations', operators],
  exportReconciliation: ['GET', '/api/reconciliations/export', operators],
  getReconciliation: ['GET', '/api/reconciliations', operators],
  exportFocus: ['GET', '/api/focus/export', operators],

  listAlerts: ['GET', '/api/alerts', readers],
  createAlertRule: ['POST', '/api/alert-rules', admins],
  listAlertRules: ['GET', '/api/alert-rules', admins],
  updateAlertRule: ['PATCH', '/api/alert-rules/{id}', admins],
  deleteAlertRule: ['DELETE', '/api/alert-rules/{id}', admins],
  createWebhook: ['POST', '/api/webhooks', admins],
  listWebhooks: ['GET', '/api/webhooks', admins],
  deleteWebhook: ['DELETE', '/api/webhooks/{id}', admins],
  testWebhook: ['POST', '/api/webhooks/{id}/test', admins],
  listDeliveries: ['GET', '/api/webhooks/{id}/deliveries', admins],
  listRecentDeliveries: ['GET', '/api/deliveries', admins],
  markAlertsRead: ['POST', '/api/alerts/read', oneself],
  replayDelivery: ['POST', '/api/deliveries/{id}/replay', admins],
  getMe: ['GET', '/api/me', oneself],
  updateMe: ['PATCH', '/api/me', oneself],
  changePassword: ['POST', '/api/me/password', oneself],
  endSessions: ['POST', '/api/me/sign-out', oneself],
  listSessions: ['GET', '/api/me/sessions', oneself],
  endSession: ['DELETE', '/api/me/sessions/{id}', oneself],
  // A device that waits for its person, named by the code that it shows.
  openDeviceGrant: ['POST', '/api/me/device-grants/open', oneself],
  approveDeviceGrant: ['POST', '/api/me/device-grants/approve', oneself],
  denyDeviceGrant: ['POST', '/api/me/device-grants/deny', oneself],
  listOwnSignIns: ['GET', '/api/me/sign-ins', oneself],
  endOwnSignIns: ['POST', '/api/me/sign-ins/end', oneself],
  listSignIns: ['GET', '/api/sign-ins', adminsAndOwners],
  endSignIn: ['DELETE', '/api/sign-ins/{id}', adminsAndOwners],
  endWorkspaceSignIns: ['POST', '/api/workspaces/{id}/end-sign-ins', admins],
  // The link signs in as the operator.
  createSignInLink: ['POST', '/api/sign-in-links', operators],
  createToken: ['POST', '/api/tokens', oneself],
  listTokens: ['GET', '/api/tokens', oneself],
  revokeToken: ['DELETE', '/api/tokens/{id}', oneself],

  listMembers: ['GET', '/api/members', admins],
  updateMember: ['PATCH', '/api/members/{id}', admins],
  removeMember: ['DELETE', '/api/members/{id}', admins],
  createResetLink: ['POST', '/api/members/{id}/reset-link', admins],
  createInvitation: ['POST', '/api/invitations', admins],
  listInvitations: ['GET', '/api/invitations', admins],
  revokeInvitation: ['DELETE', '/api/invitations/{id}', admins],

  getManagedSettings: ['GET', '/api/managed-settings', operators],
  putManagedSettings: ['PUT', '/api/managed-settings', operators],
  previewManagedSettings: ['POST', '/api/managed-settings/preview', operators],

  exportAudit: ['GET', '/api/audit/export', operators],
  listAudit: ['GET', '/api/audit', operators],
  getConfig: ['GET', '/api/config', operators],
  getConfigFile: ['GET', '/api/config/file', operators],
  updateConfigFile: ['PATCH', '/api/config/file', operators],
  getOpenApi: ['GET', '/api/openapi.json', oneself],
} as const satisfies Readonly<Record<string, readonly [Method, `/api/${string}`, Access]>>

export type OperationName = keyof typeof endpoints

/**
 * Operations that a console session may call only for 15 minutes after its sign-in, because they cannot be undone. Tokens
 * may call them at any time.
 */
export const needsRecentSignIn: ReadonlySet<OperationName> = new Set([
  'correctWallet',
  'refundPayment',
  'eraseWorkspace',
])

/** Fields of a body that only operators may send. */
export const operatorFields: Readonly<Partial<Record<OperationName, readonly string[]>>> = {
  // Decides what the workspace pays.
  updateWorkspace: ['price_list'],
}

/** undefined = the role may not call it. */
export function scopeOf(name: OperationName, role: Role): Scope | 'installation' | undefined {
  if (role === 'operator') return 'installation'
  const access: Access = endpoints[name][2]
  return access[role]
}

export function isAllowed(name: OperationName, role: Role): boolean {
  return scopeOf(name, role) !== undefined
}
