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
  testProvider: ['POST', '/api/providers/{provider}/test'],

  getCatalog: ['GET', '/api/catalog'],
  getPrice: ['GET', '/api/models/{model}/price'],
  putPrice: ['PUT', '/api/models/{model}/price'],
  resetPrice: ['DELETE', '/api/models/{model}/price'],
  getPlan: ['GET', '/api/models/{model}/plan'],

  // The first two come before the path with an id, which would otherwise match `events` and `export`.
  followRequests: ['GET', '/api/requests/events'],
  exportRequests: ['GET', '/api/requests/export'],
  listRequests: ['GET', '/api/requests'],
  getRequest: ['GET', '/api/requests/{id}'],
  getStats: ['GET', '/api/stats'],
  exportUsage: ['GET', '/api/usage/export'],

  listAudit: ['GET', '/api/audit'],
  getConfig: ['GET', '/api/config'],
  getOpenApi: ['GET', '/api/openapi.json'],
} as const satisfies Readonly<Record<string, readonly [Method, `/api/${string}`]>>

export type OperationName = keyof typeof endpoints
