// The active providers: built-in ones whose variable is set, the sandbox, and those in the configuration file, which replace
// a built-in one with the same id.

import type { Clock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { credentialOf, type IdentityPlace, identityName, identityVariables } from './cloud-identities.ts'
import { createSign, type SigningInput } from './credentials.ts'
import { builtInProviders } from './data/built-in.ts'
import { endpointOfEntry, type ProviderEntry } from './entry.ts'
import type { Cloud, Endpoint, Provider, ProviderData, ProviderSettings, Transport } from './provider.ts'
import { createSandboxProvider, sandboxId } from './sandbox/transport.ts'

/** Ids that routes may use without an entry in the file. */
export const builtInProviderIds: readonly string[] = [...builtInProviders.map(({ id }) => id), sandboxId]

/** Every variable of a built-in provider, and of the identities that platforms give. */
export const providerVariables: readonly string[] = [
  ...new Set([...builtInProviders.flatMap(variablesOf), ...identityVariables]),
]

export interface ProvidersInput {
  readonly entries: readonly ProviderEntry[]
  /** By variable. */
  readonly keys: Readonly<Record<string, Secret>>
  readonly sandboxOn: boolean
  /** Ids of providers that are not called. */
  readonly disabled?: readonly string[]
  readonly sandboxTransport: Transport
  readonly clock: Clock
  /** Whether providers are called by fetch; absent = on our own sockets. */
  readonly byFetch?: boolean
  /** The cloud whose virtual machine this is; absent = not said. */
  readonly instanceIdentity?: Cloud | undefined
}

interface OpenInput extends SigningInput {
  readonly byFetch: boolean | undefined
}

export function createProviders(input: ProvidersInput): ReadonlyMap<string, Provider> {
  const providers = new Map<string, Provider>()
  const add = (provider: Provider): void => void providers.set(provider.id, provider)
  if (input.sandboxOn) add(createSandboxProvider(sandboxId, 'built in', input.sandboxTransport))
  for (const data of builtInProviders) {
    const provider = providerFromData(data, input)
    if (provider) add(provider)
  }
  for (const entry of input.entries) {
    if (entry.ownKeysOnly) providers.delete(entry.id)
    else add(providerFromEntry(entry, input))
  }
  for (const id of input.disabled ?? []) providers.delete(id)
  return providers
}

function variablesOf({ variable, keyNeeds = [], needs = [], takes = [] }: ProviderData): readonly string[] {
  return [variable, ...keyNeeds, ...needs, ...takes]
}

/** undefined = a variable that it needs is not set. */
function providerFromData(data: ProviderData, input: ProvidersInput): Provider | undefined {
  const { keys } = input
  const settings = settingsFor(data, keys)
  const found = keyOf(data, keys) ?? identityOf(data, input)
  if (!found) return undefined
  const endpoints = endpointsFor(data, settings, openInput(input, found.apiKey))
  return { id: data.id, endpoints, ...found }
}

type Credential = Required<Pick<Provider, 'apiKey' | 'source'>>

function keyOf(data: ProviderData, keys: ProvidersInput['keys']): Credential | undefined {
  const { variable, keyNeeds = [], needs = [], credential } = data
  const key = keys[variable]
  if (!key || [...keyNeeds, ...needs].some((name) => !keys[name])) return undefined
  return { apiKey: credential ? new Secret(credential(settingsFor(data, keys))) : key, source: variable }
}

/** The identity of this process, where the platform gives it one and there is no key. */
function identityOf({ identity: cloud, needs = [] }: ProviderData, input: ProvidersInput): Credential | undefined {
  if (cloud === undefined || needs.some((name) => !input.keys[name])) return undefined
  const source = identityName(cloud, placeOf(input))
  return source === undefined ? undefined : { apiKey: new Secret(credentialOf(cloud)), source }
}

function placeOf({
  keys,
  instanceIdentity: instance,
}: Pick<ProvidersInput, 'keys' | 'instanceIdentity'>): IdentityPlace {
  return { settings: valuesOf(identityVariables, keys), instance }
}

function openInput(
  { clock, byFetch, ...input }: Pick<ProvidersInput, 'keys' | 'instanceIdentity' | 'clock' | 'byFetch'>,
  operator: Secret | undefined,
): OpenInput {
  return { clock, operator, byFetch, identity: placeOf(input) }
}

/** The variables that enable a built-in provider; undefined for others. */
export function neededVariables(providerId: string): readonly string[] | undefined {
  const data = builtInProviders.find(({ id }) => id === providerId)
  return data && [data.variable, ...(data.keyNeeds ?? []), ...(data.needs ?? [])]
}

/**
 * By id: the endpoints of providers that the operator has no key for, built in or from the file, for workspaces with their
 * own credential. A placeholder in an address without a value stays as written.
 */
export function dormantEndpoints(
  providers: ReadonlyMap<string, Provider>,
  input: Omit<ProvidersInput, 'sandboxOn' | 'sandboxTransport'>,
): ReadonlyMap<string, readonly Endpoint[]> {
  const { entries, keys, disabled = [] } = input
  const open = openInput(input, undefined)
  const dormant = new Map<string, readonly Endpoint[]>()
  for (const data of builtInProviders) {
    if (!providers.has(data.id)) dormant.set(data.id, endpointsFor(data, settingsFor(data, keys), open))
  }
  for (const entry of entries) {
    const endpoint = entry.ownKeysOnly && endpointOfEntry(entry)
    if (endpoint) dormant.set(entry.id, [opened(endpoint, open)])
  }
  for (const id of disabled) dormant.delete(id)
  return dormant
}

function settingsFor(data: ProviderData, keys: ProvidersInput['keys']): ProviderSettings {
  return valuesOf(variablesOf(data), keys)
}

function valuesOf(names: readonly string[], keys: ProvidersInput['keys']): ProviderSettings {
  return Object.fromEntries(names.flatMap((name) => (keys[name] ? [[name, keys[name].reveal()]] : [])))
}

function endpointsFor(data: ProviderData, settings: ProviderSettings, input: OpenInput): readonly Endpoint[] {
  const { derived, settingsOf } = data
  const values = { ...settings, ...derived?.(settings) }
  return data.endpoints.map((endpoint) => ({
    ...opened(endpoint, input, values),
    ...(settingsOf && {
      baseUrlOf: (own: Secret) => filledIn(endpoint.baseUrl, { ...values, ...settingsOf(own.reveal()) }),
    }),
  }))
}

function providerFromEntry(entry: ProviderEntry, input: ProvidersInput): Provider {
  const { id, apiKey, source } = entry
  const endpoint = endpointOfEntry(entry)
  if (!endpoint) return createSandboxProvider(id, source, input.sandboxTransport)
  return { id, endpoints: [opened(endpoint, openInput(input, apiKey))], apiKey, source }
}

/** The endpoint with its address filled in, and a signer if its scheme signs. */
function opened(endpoint: Endpoint, input: OpenInput, values: ProviderSettings = {}): Endpoint {
  const sign = createSign(endpoint.auth, input)
  const { byFetch } = input
  return {
    ...endpoint,
    baseUrl: filledIn(endpoint.baseUrl, values),
    ...(sign && { sign }),
    ...(byFetch && { byFetch }),
  }
}

function filledIn(baseUrl: string, values: ProviderSettings): string {
  return baseUrl.replace(/\{([A-Z_]+)\}/g, (place, name: string) => values[name]?.replace(/\/+$/, '') ?? place)
}
