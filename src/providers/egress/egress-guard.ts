// Calls to URLs that a tenant chose. The name is resolved here, every address is checked, and only checked addresses are
// dialled, never the name: a name that resolves differently the second time changes nothing. URLs of the configuration file
// are trusted and do not come here.

import { lookup } from 'node:dns/promises'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import { parsePlainAddress } from '../../kernel/ip-range.ts'
import { isUnreachable, unlessAborted } from '../call-endpoint.ts'
import { createTarget, type Send, sendBySocket, type Target } from '../connection-pool.ts'
import type { Transport } from '../provider.ts'
import { type AllowList, judgeAddress, parseAllowList, withoutRootDot } from './addresses.ts'

export type EgressRefusalReason = 'url' | 'scheme' | 'port' | 'unresolved' | 'address'

export class EgressRefusal extends Error {
  override readonly name: string = 'EgressRefusal'
  /** Where the runtime has its codes; nothing was sent. */
  readonly code = 'EGRESS_REFUSED'

  /** `message` is for the tenant, to follow the name of the field; `detail` for the operator's log alone. */
  constructor(
    readonly reason: EgressRefusalReason,
    message: string,
    readonly detail: string = message,
  ) {
    super(message)
  }
}

// Parsing a tenant's URL, once. Anything that two parsers might read differently is refused instead of normalised, and only
// the parsed parts are used from here on.

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
  // The parser would drop or turn these; a reader of the text would see another URL.
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
  if (parsePlainAddress(hostname) !== undefined) return true
  return (
    hostname.length <= 253 &&
    /^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/.test(hostname)
  )
}

function malformed(what: string): EgressRefusal {
  return new EgressRefusal('url', `must not contain ${what}`)
}

/** All addresses of a name; rejects where there are none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

export interface EgressGuardOptions {
  /** Host names, addresses and ranges that may be called although they are not public, by http, and on any port. */
  readonly allow: readonly string[]
  /** The setting that holds them, for messages. */
  readonly setting?: string
  /** Whether public hosts may be called without encryption, on port 80. */
  readonly plainHttp?: boolean
  readonly resolve?: Resolve
  readonly clock?: Clock
  /** PEM of the authorities to trust; absent = the runtime's. For tests. */
  readonly ca?: string
}

export type EgressGuard = ReturnType<typeof createEgressGuard>

declare const checked: unique symbol

/** A URL bound to addresses that were checked. Only a guard makes one. */
export interface Pinned {
  readonly [checked]: true
  readonly origin: string
  /** One for each address that may be tried; the Host header and the certificate have the name. */
  readonly targets: readonly Target[]
  /** Path and query. */
  readonly path: string
}

const rememberMs = 30_000
const rememberedMax = 1000
/** A hostile name server can send hundreds. */
const targetsMax = 4

interface Checked {
  readonly addresses: readonly string[]
  readonly listed: boolean
  readonly checkedMs: number
}

export function createEgressGuard(options: EgressGuardOptions) {
  const {
    setting = 'own_keys.allow_hosts',
    plainHttp = false,
    resolve = resolveBySystem,
    clock = systemClock,
  } = options
  const allow = parseAllowList(options.allow, setting)
  const remembered = new Map<string, Checked>()

  async function checkHost(hostname: string): Promise<Checked | EgressRefusal> {
    const known = remembered.get(hostname)
    const checkedMs = clock.monotonicMs()
    if (known !== undefined && checkedMs - known.checkedMs < rememberMs) return known
    const judged = judgeAddresses(hostname, await addressesOf(hostname, resolve), allow, setting)
    if (judged instanceof EgressRefusal) return judged
    const fresh = { ...judged, checkedMs }
    remembered.delete(hostname)
    remembered.set(hostname, fresh)
    const oldest = remembered.keys().next()
    if (remembered.size > rememberedMax && !oldest.done) remembered.delete(oldest.value)
    return fresh
  }

  async function checkUrl(url: EgressUrl): Promise<Pinned | EgressRefusal> {
    const host = await checkHost(url.hostname)
    if (host instanceof EgressRefusal) return host
    const fault = host.listed ? undefined : wayFault(url, plainHttp)
    return fault ?? pin(url, host.addresses, options.ca)
  }

  return {
    /** Remembers the checked addresses of a host for half a minute. */
    async check(text: string): Promise<Pinned | EgressRefusal> {
      const url = parseEgressUrl(text)
      return url instanceof EgressRefusal ? url : checkUrl(url)
    },
    /** For a base URL before it is stored: as it is to be stored, and the origin its credential may be sent to. */
    async checkBaseUrl(text: string): Promise<{ readonly baseUrl: string; readonly origin: string } | EgressRefusal> {
      const url = parseEgressUrl(text)
      if (url instanceof EgressRefusal) return url
      if (text.includes('?')) return new EgressRefusal('url', 'must not contain ?: paths are appended to it')
      const outcome = await checkUrl(url)
      if (outcome instanceof EgressRefusal) return outcome
      return { baseUrl: url.origin + url.rest.replace(/\/+$/, ''), origin: url.origin }
    },
  }
}

/** Hosts that the operator has not listed are called by https on its default port. */
function wayFault({ scheme, port }: EgressUrl, plainHttp: boolean): EgressRefusal | undefined {
  if (scheme === 'http:' && !plainHttp) return new EgressRefusal('scheme', 'must start with https://')
  if (port === (scheme === 'https:' ? 443 : 80)) return undefined
  return new EgressRefusal('port', 'must not name a port: only the usual one of https may be called')
}

async function addressesOf(hostname: string, resolve: Resolve): Promise<readonly string[]> {
  if (parsePlainAddress(hostname) !== undefined) return [hostname]
  try {
    return await resolve(hostname)
  } catch {
    return []
  }
}

function judgeAddresses(
  hostname: string,
  addresses: readonly string[],
  allow: AllowList,
  setting: string,
): { readonly addresses: readonly string[]; readonly listed: boolean } | EgressRefusal {
  // One message for both: tenants must not learn whether a name exists inside the operator's network.
  const message = `must be a host with public addresses; others only if the operator lists them in ${setting}`
  if (addresses.length === 0) return new EgressRefusal('unresolved', message, `${hostname} has no address`)
  const hostListed = allow.hosts.has(withoutRootDot(hostname))
  let listed = true
  for (const address of addresses) {
    const verdict = judgeAddress(address, allow, { hostListed })
    // One forbidden address is enough: a name that mixes them is built to get through.
    if (verdict.fault !== undefined) {
      return new EgressRefusal('address', message, `${hostname} is at ${address}: ${verdict.fault}`)
    }
    listed &&= verdict.listed
  }
  return { addresses, listed }
}

function pin(url: EgressUrl, addresses: readonly string[], ca: string | undefined): Pinned {
  const { scheme, hostname, port, host, origin, rest: path } = url
  const isTls = scheme === 'https:'
  const serverName = isTls && parsePlainAddress(hostname) === undefined ? hostname : undefined
  const targets = addresses
    .slice(0, targetsMax)
    .map((address) => createTarget({ isTls, hostname: address, port, host, serverName, ca }))
  const pinned: Omit<Pinned, typeof checked> = { origin, targets, path }
  return Object.freeze(pinned) as Pinned
}

async function resolveBySystem(hostname: string): Promise<readonly string[]> {
  const answers = await lookup(hostname, { all: true })
  return answers.map(({ address }) => address)
}

/**
 * The transport to a tenant's base URL. The guard checks every call when the socket is about to be opened, not only when
 * the URL was stored. Rejects with an EgressRefusal where the URL may not be called. Another address is tried only where
 * nothing was sent to the one before.
 */
export function createGuardedTransport(guard: EgressGuard, baseUrl: string, send: Send = sendBySocket): Transport {
  return async ({ path, headers, body, signal, credential, isFresh }) => {
    // Resolving may take long.
    const pinned = await unlessAborted(guard.check(baseUrl + path), signal)
    if (pinned instanceof EgressRefusal) throw pinned
    let failure: unknown
    for (const target of pinned.targets) {
      try {
        return await send(target, { path: pinned.path, headers, body, signal, credential, isFresh: isFresh ?? false })
      } catch (thrown) {
        if (signal.aborted || !isUnreachable(thrown)) throw thrown
        failure = thrown
      }
    }
    throw failure
  }
}
