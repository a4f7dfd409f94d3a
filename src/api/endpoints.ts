// Every operation of the management API with its method and path. This file has no schemas and imports nothing, so the
// console can use it in the browser; what an operation takes and answers is in the file of its resource.

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * In a path, `{id}` is an id of the operation's `kind` and `{provider}` a provider's name. `{model}` may contain a slash,
 * either as it is or as %2F. Operation names are unique: generated clients name their functions after them.
 */
export const endpoints = {
  createWorkspace: ['POST', '/api/workspaces'],
  listWorkspaces: ['GET', '/api/workspaces'],
  getWorkspace: ['GET', '/api/workspaces/{id}'],
  updateWorkspace: ['PATCH', '/api/workspaces/{id}'],
  putWorkspaceLimits: ['PUT', '/api/workspaces/{id}/limits'],
  exportWorkspace: ['GET', '/api/workspaces/{id}/export'],
  eraseWorkspace: ['POST', '/api/workspaces/{id}/erase'],

  getWallet: ['GET', '/api/workspaces/{id}/wallet'],
  topUp: ['POST', '/api/workspaces/{id}/topups'],
  correctWallet: ['POST', '/api/workspaces/{id}/corrections'],
  createCheckout: ['POST', '/api/workspaces/{id}/checkouts'],
  listTransfers: ['GET', '/api/workspaces/{id}/transfers'],
  getStatement: ['GET', '/api/workspaces/{id}/statement'],
  exportStatement: ['GET', '/api/workspaces/{id}/statement/export'],
  listReceipts: ['GET', '/api/workspaces/{id}/receipts'],
  getPaymentSettings: ['GET', '/api/workspaces/{id}/payment-settings'],
  putAutoTopUp: ['PUT', '/api/workspaces/{id}/auto-topup'],
  stopAutoTopUp: ['DELETE', '/api/workspaces/{id}/auto-topup'],
  listPayments: ['GET', '/api/workspaces/{id}/payments'],
  refundPayment: ['POST', '/api/payments/{id}/refunds'],

  createProject: ['POST', '/api/workspaces/{id}/projects'],
  listProjects: ['GET', '/api/workspaces/{id}/projects'],
  getProject: ['GET', '/api/projects/{id}'],
  updateProject: ['PATCH', '/api/projects/{id}'],
  putProjectLimits: ['PUT', '/api/projects/{id}/limits'],
  listProjectModels: ['GET', '/api/projects/{id}/models'],

  createKey: ['POST', '/api/projects/{id}/keys'],
  listKeys: ['GET', '/api/keys'],
  getKey: ['GET', '/api/keys/{id}'],
  putKeyLimits: ['PUT', '/api/keys/{id}/limits'],
  revokeKey: ['POST', '/api/keys/{id}/revoke'],
  rotateKey: ['POST', '/api/keys/{id}/rotate'],

  listCredentials: ['GET', '/api/workspaces/{id}/credentials'],
  getCredential: ['GET', '/api/workspaces/{id}/credentials/{provider}'],
  putCredential: ['PUT', '/api/workspaces/{id}/credentials/{provider}'],
  deleteCredential: ['DELETE', '/api/workspaces/{id}/credentials/{provider}'],
  testCredential: ['POST', '/api/workspaces/{id}/credentials/{provider}/test'],
  listProviders: ['GET', '/api/providers'],
  getProviderHistory: ['GET', '/api/providers/history'],
  testProvider: ['POST', '/api/providers/{provider}/test'],

  getCatalog: ['GET', '/api/catalog'],
  getPrice: ['GET', '/api/models/{model}/price'],
  putPrice: ['PUT', '/api/models/{model}/price'],
  resetPrice: ['DELETE', '/api/models/{model}/price'],
  updatePrices: ['POST', '/api/prices/update'],
  getPlan: ['GET', '/api/models/{model}/plan'],
  listPriceLists: ['GET', '/api/price-lists'],
  putPriceList: ['PUT', '/api/price-lists/{list}'],
  deletePriceList: ['DELETE', '/api/price-lists/{list}'],

  // The first three come before the path with an id, which would otherwise match their last word.
  followRequests: ['GET', '/api/requests/events'],
  exportRequests: ['GET', '/api/requests/export'],
  getRequestFacets: ['GET', '/api/requests/facets'],
  listRequests: ['GET', '/api/requests'],
  getRequest: ['GET', '/api/requests/{id}'],
  getStats: ['GET', '/api/stats'],
  exportUsage: ['GET', '/api/usage/export'],
  getUsageSeries: ['GET', '/api/usage/series'],
  getMargin: ['GET', '/api/margin'],
  getUsage: ['GET', '/api/usage'],

  listAlerts: ['GET', '/api/alerts'],
  createWebhook: ['POST', '/api/webhooks'],
  listWebhooks: ['GET', '/api/webhooks'],
  deleteWebhook: ['DELETE', '/api/webhooks/{id}'],
  testWebhook: ['POST', '/api/webhooks/{id}/test'],
  listDeliveries: ['GET', '/api/webhooks/{id}/deliveries'],
  listRecentDeliveries: ['GET', '/api/deliveries'],
  markAlertsRead: ['POST', '/api/alerts/read'],
  replayDelivery: ['POST', '/api/deliveries/{id}/replay'],
  getMe: ['GET', '/api/me'],
  updateMe: ['PATCH', '/api/me'],
  changePassword: ['POST', '/api/me/password'],
  endSessions: ['POST', '/api/me/sign-out'],
  listSessions: ['GET', '/api/me/sessions'],
  endSession: ['DELETE', '/api/me/sessions/{id}'],
  createSignInLink: ['POST', '/api/sign-in-links'],
  createToken: ['POST', '/api/tokens'],
  listTokens: ['GET', '/api/tokens'],
  revokeToken: ['DELETE', '/api/tokens/{id}'],

  listMembers: ['GET', '/api/members'],
  updateMember: ['PATCH', '/api/members/{id}'],
  removeMember: ['DELETE', '/api/members/{id}'],
  createResetLink: ['POST', '/api/members/{id}/reset-link'],
  createInvitation: ['POST', '/api/invitations'],
  listInvitations: ['GET', '/api/invitations'],
  revokeInvitation: ['DELETE', '/api/invitations/{id}'],

  listAudit: ['GET', '/api/audit'],
  getConfig: ['GET', '/api/config'],
  getConfigFile: ['GET', '/api/config/file'],
  updateConfigFile: ['PATCH', '/api/config/file'],
  getOpenApi: ['GET', '/api/openapi.json'],
} as const satisfies Readonly<Record<string, readonly [Method, `/api/${string}`]>>

export type OperationName = keyof typeof endpoints
