// Reads a URL that a tenant wrote, once. What two parsers might read differently is refused instead of normalised, and
// from here on only the parts travel. Looks at the text alone, not at where the host is.

import { parseAddress } from './address.ts'
import { withoutRootDot } from './allow-list.ts'
import { EgressRefusal } from './egress-refusal.ts'

export interface EgressUrl {
  readonly scheme: 'https:' | 'http:'
  /** Lower case, without brackets and without the root's dot. */
  readonly hostname: string
  readonly port: number
  /** The host and, where it is not the usual one, the port. */
  readonly host: string
  readonly origin: string
  /** Path and query. */
  readonly rest: string
}

const lengthMax = 2048

export function parseEgressUrl(text: string): EgressUrl | EgressRefusal {
  if (text.length > lengthMax) return new EgressRefusal('url', `must have at most ${lengthMax} characters`)
  if (!/^https?:\/\//i.test(text)) return new EgressRefusal('scheme', 'must start with https://')
  // The parser would drop or turn these; what is left over might look different to whoever reads the text.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\s\\\u0000-\u001f\u007f-\u009f]/.test(text)) return malformed('spaces, control characters or backslashes')
  if (text.includes('#')) return malformed('#')
  const url = URL.parse(text)
  if (url === null) return new EgressRefusal('url', 'must be an address such as https://api.example.com/v1')
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/?]*@/.test(text))
    return malformed('a user or password')
  const hostname = withoutRootDot(url.hostname.replace(/^\[|\]$/g, ''))
  if (!isHost(hostname)) return new EgressRefusal('url', 'must have a host name, such as https://api.example.com/v1')
  const scheme = url.protocol === 'https:' ? 'https:' : 'http:'
  const literal = hostname.includes(':') ? `[${hostname}]` : hostname
  const host = url.port === '' ? literal : `${literal}:${url.port}`
  const port = url.port === '' ? usualPort[scheme] : Number(url.port)
  if (port === 0) return new EgressRefusal('port', 'must not name port 0')
  return { scheme, hostname, port, host, origin: `${scheme}//${host}`, rest: url.pathname + url.search }
}

const usualPort = { 'https:': 443, 'http:': 80 } as const

/** An address, or labels of a name, none of them empty. */
function isHost(hostname: string): boolean {
  if (parseAddress(hostname) !== undefined) return true
  return (
    hostname.length <= 253 &&
    /^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/.test(hostname)
  )
}

function malformed(what: string): EgressRefusal {
  return new EgressRefusal('url', `must not contain ${what}`)
}
