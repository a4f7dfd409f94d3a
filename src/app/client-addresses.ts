// Where a request comes from and by which protocol: what its socket says, or what the trusted proxies in force say.

import type { Config } from '../config/config.ts'
import { clientAddress, forwardedProto } from '../http/request.ts'
import { type IpRange, parseIpRange } from '../kernel/ip-range.ts'

export interface ClientAddresses {
  /** undefined = it cannot be known. */
  addressOf(request: Request): string | undefined
  /** What a trusted proxy says the client speaks, `https` for example; undefined = no trusted proxy says anything. */
  forwardedProtoOf(request: Request): string | undefined
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
  const inForce = (): readonly IpRange[] => {
    const { trustedProxies: current } = config()
    if (current !== listed) {
      listed = current
      trustedProxies = current.flatMap((text) => parseIpRange(text) ?? [])
    }
    return trustedProxies
  }
  return {
    addressOf: (request) =>
      clientAddress({ socket: socketAddress(request), headers: request.headers, trustedProxies: inForce() }),
    forwardedProtoOf: (request) =>
      forwardedProto({ socket: socketAddress(request), headers: request.headers, trustedProxies: inForce() }),
  }
}
