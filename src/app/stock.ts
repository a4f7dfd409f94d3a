// The goods in force, renewed when the configuration changes, a price is set, or a model server is found on this machine.

import type { ConfigSource } from '../config/source.ts'
import { findLocalServers, type LocalServer } from '../providers/local.ts'
import type { Provider } from '../providers/provider.ts'
import { platformCredential } from '../routing/health/route-key.ts'
import { type Goods, type GoodsDependencies, stockGoods } from './goods.ts'

export interface Stock {
  readonly current: Goods
  /**
   * Takes over what was changed in the database, here or by another replica, for the next request; what runs keeps its
   * price. False: it could not, which the log says, and what was in force stays.
   */
  renew(): Promise<boolean>
  /** Asks the usual ports of this machine, once and in the background; those of configured providers are left alone. */
  lookForLocalServers(exceptPorts: readonly number[]): Promise<void>
}

/** A server on this machine that takes longer than this to list its models is not ready to serve. */
const searchMs = 500

export async function createStock(source: ConfigSource, deps: GoodsDependencies): Promise<Stock> {
  let local: readonly LocalServer[] = []
  let current = await stockGoods(source.current, local, deps)
  let renewing: Promise<unknown> = Promise.resolve()
  const renew = (): Promise<boolean> => {
    // One after the other: the last change wins, whichever takes longer to record its prices.
    const renewed = renewing.then(async () => {
      const before = current.providers
      current = await stockGoods(source.current, local, deps)
      for (const provider of current.providers.values()) {
        if (isAnotherAccount(before.get(provider.id), provider)) {
          deps.health.renewCredential({ providerId: provider.id, credentialId: platformCredential })
        }
      }
      return true
    })
    const told = renewed.catch((error: unknown) => {
      const fields = { error: error instanceof Error ? error.message : String(error) }
      deps.log.error('what was changed could not take effect; what was in force before stays', fields)
      return false
    })
    renewing = told
    return told
  }
  source.onChange(renew)
  return {
    get current() {
      return current
    },
    renew,
    async lookForLocalServers(exceptPorts) {
      const configured = source.current.providers.flatMap(({ baseUrl }) => loopbackPort(baseUrl))
      const signal = AbortSignal.timeout(searchMs)
      local = await findLocalServers({ exceptPorts: [...exceptPorts, ...configured], signal })
      if (local.length === 0) return
      await renew()
      for (const { provider, models } of local) {
        deps.log.info(`found ${provider.id} at ${provider.source}: ${models.length} models, free of charge`)
      }
    },
  }
}

/** What a provider said of a key, or of an address, says nothing of a new one. */
function isAnotherAccount(before: Provider | undefined, now: Provider): boolean {
  const addresses = ({ endpoints }: Provider) => endpoints.map(({ baseUrl }) => baseUrl).join(' ')
  if (before === undefined) return true
  return before.apiKey?.reveal() !== now.apiKey?.reveal() || addresses(before) !== addresses(now)
}

function loopbackPort(baseUrl: string | undefined): number[] {
  const url = baseUrl === undefined ? null : URL.parse(baseUrl)
  if (!url || !/^(localhost|127\.|\[::1\])/.test(url.hostname)) return []
  return [Number(url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : url.port)]
}
