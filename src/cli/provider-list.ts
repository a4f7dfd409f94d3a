// Every provider there is: on by these settings, found on this machine, or off and what it would take.

import { builtInModels } from '../catalog/data/built-in.ts'
import { sandboxModels } from '../catalog/data/sandbox.ts'
import type { Config } from '../config/config.ts'
import type { Clock } from '../kernel/clock.ts'
import { findLocalServers } from '../providers/local.ts'
import { builtInProviders } from '../providers/registry.ts'
import { providersOf } from './doctor/check-providers.ts'

/** As `--json` prints it. */
export interface ListedProvider {
  readonly id: string
  readonly state: 'on' | 'off'
  /** The usual one; null where it has none. */
  readonly variable: string | null
  /** What would have to be set; empty where it is on. */
  readonly needs: readonly string[]
  readonly models: number
  /** A variable or a line of the file; never the key. */
  readonly key_from: string
}

const searchMs = 500

export async function listProviders(config: Config, clock: Clock): Promise<readonly ListedProvider[]> {
  const on = providersOf(config, clock)
  const counts = countModels(config)
  const local = config.localModels
    ? await findLocalServers({ exceptPorts: [config.port], signal: AbortSignal.timeout(searchMs) })
    : []
  const variableOf = (id: string) => builtInProviders.find((each) => each.id === id)?.variable ?? null
  return [
    ...[...on.values()].map(({ id, source, apiKey, transport }) => ({
      id,
      state: 'on' as const,
      variable: variableOf(id),
      needs: [],
      models: counts.get(id) ?? 0,
      key_from: apiKey ? source : transport ? `none: answers inside the gateway (${source})` : `none (${source})`,
    })),
    ...local
      .filter(({ provider }) => !on.has(provider.id))
      .map(({ provider, models }) => ({
        id: provider.id,
        state: 'on' as const,
        variable: null,
        needs: [],
        models: models.length,
        key_from: `none: found at ${provider.source}`,
      })),
    ...builtInProviders
      .filter(({ id }) => !on.has(id))
      .map(({ id, variable, needs = [] }) => ({
        id,
        state: 'off' as const,
        variable,
        needs: [variable, ...needs].filter((name) => config.providerKeys[name] === undefined),
        models: counts.get(id) ?? 0,
        key_from: '',
      })),
  ]
}

/** Models with a price and a route to each; one of the file takes the place of the built-in one of its id. */
function countModels(config: Config): ReadonlyMap<string, number> {
  const routes = new Map<string, readonly string[]>()
  for (const { id, price, routes: own } of [...sandboxModels, ...builtInModels]) {
    routes.set(id, price === undefined ? [] : own.map(({ provider }) => provider))
  }
  for (const { id, price, routes: own } of config.models) {
    routes.set(id, price === undefined ? [] : own.map(({ providerId }) => providerId))
  }
  const counts = new Map<string, number>()
  for (const providers of routes.values()) {
    for (const provider of new Set(providers)) counts.set(provider, (counts.get(provider) ?? 0) + 1)
  }
  return counts
}
