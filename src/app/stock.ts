// The goods in force, renewed when the configuration changes, a price is set, or a model server is found on this machine.

import type { ConfigSource } from '../config/source.ts'
import { findLocalServers, type LocalServer } from '../providers/local.ts'
import type { Provider } from '../providers/provider.ts'
import { platformCredential } from '../routing/health/route-key.ts'
import { isStoreUnavailable } from '../store/sql-error.ts'
import { type Goods, type GoodsDependencies, stockGoods } from './goods.ts'

export interface Stock {
  readonly current: Goods
  /**
   * Takes over what was changed in the database, here or by another replica, for the next request; what runs keeps its
   * price. False: it could not yet, which the log says; what was in force stays until it can, and it is tried again and
   * again, because nobody else would.
   */
  renew(): Promise<boolean>
  /** Asks the usual ports of this machine, once and in the background; those of configured providers are left alone. */
  lookForLocalServers(exceptPorts: readonly number[]): Promise<void>
  /** Nothing is tried again any more. */
  close(): void
}

/** A server on this machine that takes longer than this to list its models is not ready to serve. */
const searchMs = 500
/** The database was busy or away, which passes. */
const defaultRetryMs = 2000

export interface StockOptions {
  /** For tests. */
  readonly retryMs?: number
}

export async function createStock(
  source: Pick<ConfigSource, 'current' | 'onChange'>,
  deps: GoodsDependencies,
  { retryMs = defaultRetryMs }: StockOptions = {},
): Promise<Stock> {
  let local: readonly LocalServer[] = []
  let current = await stockGoods(source.current, local, deps)
  let renewing: Promise<unknown> = Promise.resolve()
  let retry: ReturnType<typeof setTimeout> | undefined
  let isBehind = false
  let isClosed = false
  /** Those who wait until what they have changed is in force. */
  const waiting: (() => void)[] = []

  const restock = async (): Promise<void> => {
    const before = current.providers
    current = await stockGoods(source.current, local, deps)
    for (const provider of current.providers.values()) {
      if (isAnotherAccount(before.get(provider.id), provider)) {
        deps.health.renewCredential({ providerId: provider.id, credentialId: platformCredential })
      }
    }
  }
  const caughtUp = (): boolean => {
    clearTimeout(retry)
    if (isBehind) deps.log.info('what was changed is in force now')
    isBehind = false
    for (const told of waiting.splice(0)) told()
    return true
  }
  const fellBehind = (error: unknown): boolean => {
    clearTimeout(retry)
    if (isClosed) return false
    retry = setTimeout(renew, retryMs)
    retry.unref()
    // Said once, not with every attempt.
    if (!isBehind) {
      const fields = { error: error instanceof Error ? error.message : String(error) }
      // That a database is away is told by whoever watches over it.
      const level = isStoreUnavailable(error) ? 'warn' : 'error'
      deps.log[level]('what was changed could not take effect yet; what was in force stays until it can', fields)
    }
    isBehind = true
    return false
  }
  const renew = (): Promise<boolean> => {
    // One after the other: the last change wins, whichever takes longer to record its prices.
    const told = renewing.then(restock).then(caughtUp, fellBehind)
    renewing = told
    return told
  }
  /** As long as that takes; later changes are then in force too. */
  const inForce = async (): Promise<boolean> => {
    if (!(await renew())) await new Promise<void>((resolve) => waiting.push(resolve))
    return true
  }
  source.onChange(inForce)
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
    close() {
      isClosed = true
      clearTimeout(retry)
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
