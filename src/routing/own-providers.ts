// The providers that a workspace opens with credentials of its own: the provider as everybody knows it, with the
// workspace's key and, where the operator allows one, its own address. A key goes nowhere but where it was stored for.

import { usualAuth } from '../providers/entry.ts'
import type { Provider, Transport } from '../providers/provider.ts'
import { mayBeSentTo, type OpenedCredential, type WorkspaceCredentials } from '../tenancy/credentials/credential.ts'

export interface OwnProvider {
  readonly provider: Provider
  readonly credentialId: string
}

export interface OwnProvidersInput {
  /** Endpoints of a provider, whether or not the operator has a key for it. */
  endpointsOf(providerId: string): Provider['endpoints'] | undefined
  /** To an address that a tenant chose: through the egress guard. */
  guardedTransport(baseUrl: string): Transport
}

export function ownProviders(
  credentials: WorkspaceCredentials,
  input: OwnProvidersInput,
): ReadonlyMap<string, OwnProvider> {
  const own = new Map<string, OwnProvider>()
  for (const [providerId, credential] of credentials) {
    // One that cannot be opened opens nothing; the console says so.
    if ('fault' in credential) continue
    const provider = ownProvider(providerId, credential, input)
    if (provider) own.set(providerId, { provider, credentialId: credential.id })
  }
  return own
}

function ownProvider(
  id: string,
  credential: OpenedCredential,
  { endpointsOf, guardedTransport }: OwnProvidersInput,
): Provider | undefined {
  const { apiKey, baseUrl } = credential
  const known = endpointsOf(id) ?? []
  const first = known[0]
  const endpoints = baseUrl === undefined ? known : first ? [{ ...first, baseUrl }] : []
  // A provider that the operator calls without a key gets the workspace's in the usual way of its dialect.
  const reachable = endpoints
    .filter((endpoint) => mayBeSentTo(credential, endpoint.baseUrl))
    .map((endpoint) => (endpoint.auth === 'none' ? { ...endpoint, auth: usualAuth(endpoint.dialect) } : endpoint))
  if (reachable.length === 0) return undefined
  const source = 'the workspace'
  if (baseUrl === undefined) return { id, endpoints: reachable, apiKey, source }
  return { id, endpoints: reachable, apiKey, source, transport: guardedTransport(baseUrl) }
}
