// The providers that a workspace opens with credentials of its own: the provider as everybody knows it, with the
// workspace's key and, where the operator allows one, its own address. A key goes nowhere but where it was stored for. One
// that cannot be used is no reason to use somebody else's: its provider stays, and refuses.

import { Failure } from '../kernel/failure.ts'
import { usualAuth } from '../providers/entry.ts'
import type { Provider, Transport } from '../providers/provider.ts'
import {
  type BrokenCredential,
  mayBeSentTo,
  type OpenedCredential,
  type WorkspaceCredentials,
} from '../tenancy/credentials.ts'

export interface OwnProvider {
  readonly provider: Provider
  readonly credentialId: string
  /** Its key cannot be used: what the caller is told instead of being served. */
  readonly refusal?: Failure
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
    const { id: credentialId } = credential
    const opened = 'fault' in credential ? credential.fault : openProvider(providerId, credential, input)
    if (typeof opened === 'string') {
      // It keeps its endpoints, which every candidate has; nothing is sent to them.
      const endpoints = input.endpointsOf(providerId) ?? []
      const provider: Provider = { id: providerId, endpoints, apiKey: undefined, source }
      own.set(providerId, { provider, credentialId, refusal: brokenKey(providerId, opened) })
    } else own.set(providerId, { provider: opened, credentialId })
  }
  return own
}

const source = 'the workspace'

/** Why a key cannot be used. `elsewhere`: the provider has moved, by its configuration. */
type KeyFault = BrokenCredential['fault'] | 'elsewhere'

const keyFaults: Readonly<Record<KeyFault, string>> = {
  unknown_secret: 'was encrypted under a master secret that this gateway was not given',
  altered: 'is not what was stored',
  elsewhere: 'was stored for another address than the provider has now',
}

function brokenKey(providerId: string, fault: KeyFault): Failure {
  const message = `The workspace's own key for ${providerId} ${keyFaults[fault]}, and no other key is used in its place. Store the key again, or delete it.`
  return new Failure('NOT_FOUND', message, { shouldRetry: false })
}

function openProvider(
  id: string,
  credential: OpenedCredential,
  { endpointsOf, guardedTransport }: OwnProvidersInput,
): Provider | 'elsewhere' {
  const { apiKey, baseUrl } = credential
  const known = (endpointsOf(id) ?? []).map((endpoint) => {
    return endpoint.baseUrlOf ? { ...endpoint, baseUrl: endpoint.baseUrlOf(apiKey) } : endpoint
  })
  const first = known[0]
  const endpoints = baseUrl === undefined ? known : first ? [{ ...first, baseUrl }] : []
  // A provider that the operator calls without a key gets the workspace's in the usual way of its dialect.
  const reachable = endpoints
    .filter((endpoint) => mayBeSentTo(credential, endpoint.baseUrl))
    .map((endpoint) => (endpoint.auth === 'none' ? { ...endpoint, auth: usualAuth(endpoint.dialect) } : endpoint))
  if (reachable.length === 0) return 'elsewhere'
  if (baseUrl === undefined) return { id, endpoints: reachable, apiKey, source }
  return { id, endpoints: reachable, apiKey, source, transport: guardedTransport(baseUrl) }
}
