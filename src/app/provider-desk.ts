// Providers as the management API shows and tries them: those of the operator, and those that a workspace opens with a key
// of its own, each called exactly as a generation would call it.

import type { ShownProvider } from '../api/providers.ts'
import type { ProviderDependencies } from '../http/management/providers.ts'
import { Failure } from '../kernel/failure.ts'
import type { Provider } from '../providers/provider.ts'
import { builtInProviders } from '../providers/registry.ts'
import { ownProviders } from '../routing/own-providers.ts'
import { type ProbedDialects, probeProvider } from '../routing/probe-provider.ts'
import type { CredentialCache } from '../tenancy/credentials/credential-cache.ts'
import type { Goods } from './goods.ts'

export interface ProviderDeskDependencies {
  readonly dialects: ProbedDialects
  readonly credentials: Pick<CredentialCache, 'open'>
  goods(): Goods
}

/** Below this four characters would be a good part of the key. */
const shownLengthMin = 8

export function createProviderDesk(deps: ProviderDeskDependencies): ProviderDependencies['providers'] {
  const { dialects, credentials, goods } = deps
  return {
    list: () => [...goods().providers.values()].map((provider) => shownProvider(provider, goods())),
    async test(id) {
      const provider = goods().providers.get(id)
      return provider && (await probeProvider(provider, dialects))
    },
    async testOwn(workspaceId, id) {
      const opened = await credentials.open(workspaceId)
      const credential = opened.get(id)
      if (!credential) return new Failure('NOT_FOUND', `The workspace has no credential for the provider ${id}.`)
      if ('fault' in credential) return unreadable(id)
      const own = ownProviders(new Map([[id, credential]]), goods()).get(id)
      return own && !own.refusal ? await probeProvider(own.provider, dialects) : notSendable(id)
    },
  }
}

function shownProvider({ id, source, endpoints, apiKey, transport }: Provider, goods: Goods): ShownProvider {
  const key = apiKey?.reveal()
  return {
    id,
    source,
    origin: originOf(id, source, transport === undefined),
    last4: key === undefined ? null : key.length < shownLengthMin ? '' : key.slice(-4),
    address: URL.parse(endpoints[0]?.baseUrl ?? '')?.host || null,
    models: goods.modelCount(id),
  }
}

function originOf(id: string, source: string, isCalled: boolean): ShownProvider['origin'] {
  if (builtInProviders.some((known) => known.id === id && known.variable === source)) return 'environment'
  if (source === 'built in') return 'built_in'
  return isCalled && /^127\.0\.0\.1:\d+$/.test(source) ? 'found' : 'file'
}

function unreadable(provider: string): Failure {
  const message = `The key for ${provider} cannot be decrypted with the master secret in force. Store it again.`
  return new Failure('INVALID_REQUEST', message)
}

function notSendable(provider: string): Failure {
  const message = `The key for ${provider} was stored for another address than the provider has now. Store it again.`
  return new Failure('INVALID_REQUEST', message)
}
