// The one answer to where a request comes from, for everything that asks: the socket's address, or what trusted proxies
// say. The list of proxies is the one in force.

import type { Config } from '../config/config.ts'
import { clientAddress } from '../http/request.ts'
import { type IpRange, parseIpRange } from '../kernel/ip-range.ts'

export interface ClientAddresses {
  /** undefined = it cannot be known. */
  addressOf(request: Request): string | undefined
}

export interface ClientAddressDependencies {
  config(): Pick<Config, 'trustedProxies'>
  /** Who opened the connection of a request. */
  socketAddress(request: Request): string | undefined
}

export function createClientAddresses({ config, socketAddress }: ClientAddressDependencies): ClientAddresses {
  // Read once for each configuration, not for each request.
  let listed: readonly string[] = []
  let trustedProxies: readonly IpRange[] = []
  return {
    addressOf(request) {
      const inForce = config().trustedProxies
      if (inForce !== listed) {
        listed = inForce
        trustedProxies = inForce.flatMap((text) => parseIpRange(text) ?? [])
      }
      return clientAddress({ socket: socketAddress(request), headers: request.headers, trustedProxies })
    },
  }
}
