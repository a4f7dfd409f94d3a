// What is read from an inbound request before anything else: its path, its query and the client's address.

import { type IpRange, isInRange, parseIpAddress } from '../kernel/ip-range.ts'

/**
 * The path that requests are matched and authorised by: everything between the authority and the query, as sent. The
 * runtime's URL is not used, because it normalises `..` inconsistently and a malformed Host makes it a bare path. A bare
 * path has no authority, whatever its query contains.
 */
export function pathOf(url: string): string {
  const authority = url.startsWith('/') ? -1 : url.indexOf('://')
  const start = authority < 0 ? 0 : url.indexOf('/', authority + 3)
  if (start < 0) return '/'
  for (let at = start; at < url.length; at++) {
    const code = url.charCodeAt(at)
    if (code === 0x3f || code === 0x23) return url.slice(start, at)
  }
  return url.slice(start)
}

export function queryOf(url: string): URLSearchParams {
  const mark = url.indexOf('?')
  return new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
}

/**
 * The path without `/v1`, for example `/chat/completions`. Clients build it differently: some add `/v1` to a base URL that
 * already has it, some leave it out, some add a second slash. All of these are accepted.
 */
export function publicPath(path: string): string {
  let bare = path.includes('//') ? path.replace(/\/{2,}/g, '/') : path
  for (let times = 0; times < 2 && bare.startsWith('/v1/'); times++) bare = bare.slice(3)
  return bare.length > 1 && bare.endsWith('/') ? bare.slice(0, -1) : bare
}

export interface AddressClues {
  /** The address of the connection; undefined = it is closed already. */
  readonly socket: string | undefined
  readonly headers: Headers
  readonly trustedProxies: readonly IpRange[]
}

/**
 * Where a request comes from; undefined = unknown. Anyone can send X-Forwarded-For, so it is believed only as far as
 * trusted proxies wrote it: each proxy appends the address it received from, so the list is read from its right end. The
 * first address that is not a trusted proxy is the client; anything before it is the client's own claim.
 */
export function clientAddress({ socket, headers, trustedProxies }: AddressClues): string | undefined {
  const isTrusted = (address: string): boolean | undefined => {
    const parsed = parseIpAddress(address)
    return parsed && trustedProxies.some((range) => isInRange(range, parsed))
  }
  if (socket === undefined || trustedProxies.length === 0 || !isTrusted(socket)) return socket
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

/** `1.2.3.4:567` and `[::1]:567`, as some proxies write it; a bare IPv6 address has no port. */
function withoutPort(entry: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]{1,5})?$/.exec(entry) ?? []
  return bracketed ?? dotted ?? entry
}
