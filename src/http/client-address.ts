// Where a request comes from and by which protocol. Anybody can write a header, so X-Forwarded-For and X-Forwarded-Proto
// are believed only as far as the proxies that the operator trusts have written them.

import { type IpRange, isInRange, parseIpAddress } from '../kernel/ip-range.ts'

export interface AddressClues {
  /** Who opened the connection; undefined = it is closed already. */
  readonly socket: string | undefined
  readonly headers: Headers
  readonly trustedProxies: readonly IpRange[]
}

/**
 * undefined = it cannot be known. Each proxy appends whom it heard from, so the list is read from its right end: the
 * first that is not a trusted proxy is the client, and what stands before it is the client's own claim.
 */
export function clientAddress(clues: AddressClues): string | undefined {
  const { socket, headers } = clues
  const isTrusted = (address: string): boolean | undefined => isTrustedProxy(address, clues)
  if (socket === undefined || !isTrusted(socket)) return socket
  const forwarded = headers.get('x-forwarded-for')?.trim()
  if (!forwarded) return socket
  let farthest = socket
  for (const entry of forwarded.split(',').reverse()) {
    const address = withoutPort(entry.trim())
    const trusted = isTrusted(address)
    if (trusted === undefined) return undefined
    if (!trusted) return address
    farthest = address
  }
  return farthest
}

/** undefined = no trusted proxy says. The first entry is the proxy that the client spoke to. */
export function forwardedProto(clues: AddressClues): string | undefined {
  if (clues.socket === undefined || !isTrustedProxy(clues.socket, clues)) return undefined
  return clues.headers.get('x-forwarded-proto')?.split(',')[0]?.trim()
}

/** undefined = it is not an address. */
function isTrustedProxy(address: string, { trustedProxies }: AddressClues): boolean | undefined {
  if (trustedProxies.length === 0) return false
  const parsed = parseIpAddress(address)
  return parsed && trustedProxies.some((range) => isInRange(range, parsed))
}

/** `1.2.3.4:567` and `[::1]:567`, as some proxies write it; a bare IPv6 address has no port. */
function withoutPort(entry: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]{1,5})?$/.exec(entry) ?? []
  return bracketed ?? dotted ?? entry
}
