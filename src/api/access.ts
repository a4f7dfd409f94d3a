// Who may call what: one row per operation of the management API. The gateway enforces this table before a handler runs, and
// the console reads it to show only what a person may do. Operators may call everything, so they are not in it.

import type { Role, WorkspaceRole } from '../kernel/roles.ts'
import type { OperationName } from './endpoints.ts'

/**
 * `workspace`: everything of the person's workspace. `own`: only keys that the person created, and the requests made with
 * them. `self`: only what belongs to the person, such as their tokens; it has no workspace.
 */
export type Scope = 'workspace' | 'own' | 'self'

/** Absent = the role may not call it. */
export type Access = Readonly<Partial<Record<WorkspaceRole, Scope>>>

const operatorsOnly: Access = {}
const admins: Access = { admin: 'workspace' }
const readers: Access = { admin: 'workspace', viewer: 'workspace' }
const everyone: Access = { admin: 'workspace', member: 'workspace', viewer: 'workspace' }
/** Members see and change what is their own; viewers see all and change nothing. */
const readersAndOwners: Access = { admin: 'workspace', member: 'own', viewer: 'workspace' }
const adminsAndOwners: Access = { admin: 'workspace', member: 'own' }
const oneself: Access = { admin: 'self', member: 'self', viewer: 'self' }

export const access = {
  createWorkspace: operatorsOnly,
  listWorkspaces: oneself,
  getWorkspace: everyone,
  updateWorkspace: admins,
  // The operator's bound on what a tenant may use.
  putWorkspaceLimits: operatorsOnly,
  exportWorkspace: admins,
  eraseWorkspace: operatorsOnly,

  getWallet: readers,
  // Creates money without a payment.
  topUp: operatorsOnly,
  correctWallet: operatorsOnly,
  createCheckout: admins,
  listTransfers: readers,
  getStatement: readers,
  exportStatement: readers,
  listReceipts: readers,
  getPaymentSettings: readers,
  putAutoTopUp: admins,
  stopAutoTopUp: admins,
  listPayments: readers,
  // The operator's money.
  refundPayment: operatorsOnly,

  createProject: admins,
  listProjects: everyone,
  getProject: everyone,
  updateProject: admins,
  putProjectLimits: admins,
  listProjectModels: everyone,

  createKey: adminsAndOwners,
  listKeys: readersAndOwners,
  getKey: readersAndOwners,
  // Not the owner: an admin may have set them.
  putKeyLimits: admins,
  revokeKey: adminsAndOwners,
  rotateKey: adminsAndOwners,

  listCredentials: admins,
  getCredential: admins,
  putCredential: admins,
  deleteCredential: admins,
  testCredential: admins,
  listProviders: operatorsOnly,
  // It counts the requests of all workspaces, and those with their own provider keys.
  getProviderHistory: operatorsOnly,
  testProvider: operatorsOnly,

  getCatalog: oneself,
  getPrice: operatorsOnly,
  putPrice: operatorsOnly,
  resetPrice: operatorsOnly,
  updatePrices: operatorsOnly,
  getPlan: operatorsOnly,
  listPriceLists: operatorsOnly,
  putPriceList: operatorsOnly,
  deletePriceList: operatorsOnly,

  followRequests: readersAndOwners,
  exportRequests: readersAndOwners,
  listRequests: readersAndOwners,
  getRequest: readersAndOwners,
  getStats: readersAndOwners,
  exportUsage: readersAndOwners,
  getUsage: readersAndOwners,
  getUsageSeries: readersAndOwners,
  getRequestFacets: readersAndOwners,
  // The provider's bills, which only the operator may see.
  getMargin: operatorsOnly,

  listAlerts: readers,
  createWebhook: admins,
  listWebhooks: admins,
  deleteWebhook: admins,
  testWebhook: admins,
  listDeliveries: admins,
  listRecentDeliveries: admins,
  markAlertsRead: oneself,
  replayDelivery: admins,

  getMe: oneself,
  updateMe: oneself,
  changePassword: oneself,
  endSessions: oneself,
  listSessions: oneself,
  endSession: oneself,
  // The link signs in as the operator.
  createSignInLink: operatorsOnly,
  createToken: oneself,
  listTokens: oneself,
  revokeToken: oneself,

  listMembers: admins,
  updateMember: admins,
  removeMember: admins,
  createResetLink: admins,
  createInvitation: admins,
  listInvitations: admins,
  revokeInvitation: admins,

  listAudit: operatorsOnly,
  getConfig: operatorsOnly,
  getConfigFile: operatorsOnly,
  updateConfigFile: operatorsOnly,
  getOpenApi: oneself,
} as const satisfies Readonly<Record<OperationName, Access>>

/**
 * Operations that a console session may call only for 15 minutes after its sign-in: what they do cannot be undone. Tokens
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
  const row: Access = access[name]
  return row[role]
}

export function isAllowed(name: OperationName, role: Role): boolean {
  return scopeOf(name, role) !== undefined
}
