// Puts the management API together: the stores it writes to, and where a workspace's own credential may be sent.

import type { CredentialDestination, Credentials } from '../http/management/credential-routes.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { nearestNames } from '../kernel/nearest.ts'
import { EgressRefusal } from '../providers/egress/egress-refusal.ts'
import type { AuthScheme } from '../providers/provider.ts'
import { builtInProviderIds } from '../providers/registry.ts'
import { readOwnCredential } from '../providers/signing/own-credential.ts'
import type { CredentialCache } from '../tenancy/credentials/credential-cache.ts'
import { deleteCredential, listCredentials, putCredential } from '../tenancy/credentials/credential-records.ts'
import type { KeyRing } from '../tenancy/credentials/key-ring.ts'
import type { Goods } from './goods.ts'

export interface CredentialParts {
  readonly keys: KeyRing
  readonly cache: Pick<CredentialCache, 'forget'>
  goods(): Goods
}

export function createCredentials({ keys, cache, goods }: CredentialParts): Credentials {
  return {
    destinationOf: (provider, baseUrl) => destinationOf(goods(), provider, baseUrl),
    read: (provider, text) => readOwnCredential(authOf(goods(), provider), text),
    put: (sql, credential) => putCredential(sql, credential, keys),
    delete: deleteCredential,
    list: listCredentials,
    forget: (workspaceId) => cache.forget(workspaceId),
  }
}

async function destinationOf(
  goods: Goods,
  provider: string,
  baseUrl: string | undefined,
): Promise<CredentialDestination | Failure> {
  const { guard, providers } = goods
  const origin = originOf(goods, provider)
  if (origin === undefined) {
    const known = [...new Set([...builtInProviderIds, ...providers.keys()])]
    return takesNoKey(
      provider,
      known.filter((id) => originOf(goods, id) !== undefined),
    )
  }
  if (baseUrl === undefined || isOwnAddress(goods, provider, baseUrl)) return { origin, baseUrl: undefined }
  if (!guard) {
    const message = 'This gateway does not allow addresses of workspaces; its operator sets `own_keys.base_urls`.'
    return new Failure('INVALID_REQUEST', message, { param: 'base_url' })
  }
  const checked = await guard.checkBaseUrl(baseUrl)
  return checked instanceof EgressRefusal ? invalidRequest(`\`base_url\` ${checked.message}.`, 'base_url') : checked
}

/**
 * undefined = there is no such provider, or nowhere to send a key: the sandbox has no address, and that of some hosts has
 * places which only the operator's settings fill (a region, a project).
 */
function originOf({ endpointsOf }: Pick<Goods, 'endpointsOf'>, provider: string): string | undefined {
  const address = endpointsOf(provider)?.[0]?.baseUrl ?? ''
  const url = address.includes('{') ? null : URL.parse(address)
  return url && /^https?:$/.test(url.protocol) ? url.origin : undefined
}

/** How its endpoints take a credential, which is the same at all of them. */
function authOf({ endpointsOf }: Pick<Goods, 'endpointsOf'>, provider: string): AuthScheme {
  return endpointsOf(provider)?.[0]?.auth ?? 'none'
}

/** Whether it is where the provider is called anyway: then it is no address of the workspace's. */
function isOwnAddress({ endpointsOf }: Pick<Goods, 'endpointsOf'>, provider: string, baseUrl: string): boolean {
  const asked = addressOf(baseUrl)
  const [first] = endpointsOf(provider) ?? []
  return asked !== undefined && first !== undefined && asked === addressOf(first.baseUrl)
}

/** However its host is spelled, and with or without a slash at its end. */
function addressOf(url: string): string | undefined {
  return URL.parse(url)?.href.replace(/\/+$/, '')
}

function takesNoKey(provider: string, known: readonly string[]): Failure {
  const near = nearestNames(provider, known, 1)
  const hint = near.length > 0 ? ` Did you mean \`${near[0]}\`?` : ''
  return new Failure('NOT_FOUND', `No provider \`${provider.slice(0, 100)}\` that takes a key.${hint}`)
}
