// The active providers: built-in ones whose variable is set, the sandbox, and those in the configuration file, which replace
// a built-in one with the same id.

import type { Clock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { createSign, type SigningInput } from './credentials.ts'
import { builtInProviders } from './data/built-in.ts'
import { endpointOfEntry, type ProviderEntry } from './entry.ts'
import type { Endpoint, Provider, ProviderData, ProviderSettings, Transport } from './provider.ts'
import { createSandboxProvider, sandboxId } from './sandbox/transport.ts'

/** Ids that routes may use without an entry in the file. */
export const builtInProviderIds: readonly string[] = [...builtInProviders.map(({ id }) => id), sandboxId]

/** Every variable of a built-in provider. */
export const providerVariables: readonly string[] = [...new Set(builtInProviders.flatMap(variablesOf))]

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

function variablesOf({ variable, needs = [], takes = [] }: ProviderData): readonly string[] {
  return [variable, ...needs, ...takes]
}

/** undefined = a variable that it needs is not set. */
function providerFromData(data: ProviderData, { keys, clock, byFetch }: ProvidersInput): Provider | undefined {
  const { id, variable, needs = [], credential } = data
  const key = keys[variable]
  if (!key || needs.some((name) => !keys[name])) return undefined
  const settings = settingsFor(data, keys)
  const apiKey = credential ? new Secret(credential(settings)) : key
  const endpoints = endpointsFor(data, settings, { clock, operator: apiKey, byFetch })
  return { id, endpoints, apiKey, source: variable }
}

/** The variables that enable a built-in provider; undefined for others. */
export function neededVariables(providerId: string): readonly string[] | undefined {
  const data = builtInProviders.find(({ id }) => id === providerId)
  return data && [data.variable, ...(data.needs ?? [])]
}

/**
 * By id: the endpoints of providers that the operator has no key for, built in or from the file, for workspaces with their
 * own credential. A placeholder in an address without a value stays as written.
 */
export function dormantEndpoints(
  providers: ReadonlyMap<string, Provider>,
  { entries, keys, disabled = [], clock, byFetch }: Omit<ProvidersInput, 'sandboxOn' | 'sandboxTransport'>,
): ReadonlyMap<string, readonly Endpoint[]> {
  const open = { clock, operator: undefined, byFetch }
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
  return Object.fromEntries(variablesOf(data).flatMap((name) => (keys[name] ? [[name, keys[name].reveal()]] : [])))
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

function providerFromEntry(entry: ProviderEntry, { sandboxTransport, clock, byFetch }: ProvidersInput): Provider {
  const { id, apiKey, source } = entry
  const endpoint = endpointOfEntry(entry)
  if (!endpoint) return createSandboxProvider(id, source, sandboxTransport)
  return { id, endpoints: [opened(endpoint, { clock, operator: apiKey, byFetch })], apiKey, source }
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
