// Where a workspace's own credential may be sent: to its provider's own address, or to one that the workspace brings
// where the operator lets it.

import type { CredentialDestination } from '../http/management/providers.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { nearestNames } from '../kernel/nearest.ts'
import { EgressRefusal } from '../providers/egress/egress-refusal.ts'
import { builtInProviderIds } from '../providers/registry.ts'
import type { Goods } from './goods.ts'

/** The providers for which a workspace may store a key, switched on or not, by id. */
export function keyedProviders(goods: Goods): readonly string[] {
  const known = [...new Set([...builtInProviderIds, ...goods.providers.keys()])].filter((id) => takesKey(goods, id))
  return known.filter((id) => goods.guard !== undefined || originOf(goods, id) !== undefined).sort()
}

export async function destinationOf(
  goods: Goods,
  provider: string,
  baseUrl: string | undefined,
): Promise<CredentialDestination | Failure> {
  const { guard } = goods
  if (!takesKey(goods, provider)) return takesNoKey(provider, keyedProviders(goods))
  if (baseUrl === undefined || isOwnAddress(goods, provider, baseUrl)) {
    const origin = originOf(goods, provider)
    return origin === undefined ? needsAddress(provider, guard !== undefined) : { origin, baseUrl: undefined }
  }
  if (!guard) {
    const message = 'This gateway does not allow addresses of workspaces; its operator sets `own_keys.base_urls`.'
    return new Failure('INVALID_REQUEST', message, { param: 'base_url' })
  }
  const checked = await guard.checkBaseUrl(baseUrl)
  return checked instanceof EgressRefusal ? invalidRequest(`\`base_url\` ${checked.message}.`, 'base_url') : checked
}

/** False: there is no such provider, or it answers inside this process. */
function takesKey({ endpointsOf }: Pick<Goods, 'endpointsOf'>, provider: string): boolean {
  const [first] = endpointsOf(provider) ?? []
  return first !== undefined && /^(https?:|\{)/.test(first.baseUrl)
}

/** undefined = a place in its address is neither filled by the operator's settings nor by the credential (a region). */
function originOf({ endpointsOf }: Pick<Goods, 'endpointsOf'>, provider: string): string | undefined {
  const [first] = endpointsOf(provider) ?? []
  const [, origin, path = ''] = /^(https?:\/\/[^/{}]+)(\/.*)?$/.exec(first?.baseUrl ?? '') ?? []
  return path.includes('{') && !first?.baseUrlOf ? undefined : URL.parse(origin ?? '')?.origin
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

function needsAddress(provider: string, mayBringAddress: boolean): Failure {
  const told = mayBringAddress
    ? 'Give one as `base_url`.'
    : 'Its operator sets the variables of that provider, or `own_keys.base_urls` so that you can give one.'
  return invalidRequest(`This gateway knows no address of ${provider}. ${told}`, 'base_url')
}
