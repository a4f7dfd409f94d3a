// Decides whether a URL that a tenant chose may be called, and at which addresses. The name is resolved here, every
// answer is checked, and what is called later are the checked addresses and never the name: a name that answers
// differently the second time changes nothing. URLs of the configuration file do not come here, its writer is trusted.

import { lookup } from 'node:dns/promises'
import { type Clock, systemClock } from '../../kernel/clock.ts'
import { parseAddress } from './address.ts'
import { type AllowList, judgeAddress, parseAllowList, withoutRootDot } from './allow-list.ts'
import { EgressRefusal } from './egress-refusal.ts'
import { type EgressUrl, parseEgressUrl } from './egress-url.ts'

/** All addresses of a name; rejects where there are none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

export interface EgressGuardOptions {
  /** Host names, addresses and ranges that may be called although they are not public, by http, and on any port. */
  readonly allow: readonly string[]
  /** Whether public hosts may be called without encryption, on port 80. */
  readonly plainHttp?: boolean
  readonly resolve?: Resolve
  readonly clock?: Clock
}

export interface EgressGuard {
  /** Remembers the checked addresses of a host for half a minute. */
  check(url: string): Promise<Pinned | EgressRefusal>
  /** For a base URL before it is stored: as it is to be stored, and the origin its credential may be sent to. */
  checkBaseUrl(text: string): Promise<{ readonly baseUrl: string; readonly origin: string } | EgressRefusal>
}

declare const checked: unique symbol

/** A URL bound to addresses that were checked. Only a guard makes one. */
export interface Pinned {
  readonly [checked]: true
  readonly origin: string
  /** The URL with an address in place of the name, one for each address that may be tried. */
  readonly dialUrls: readonly string[]
  /** What the Host header says. */
  readonly host: string
  /** The name the certificate must be for; undefined where the URL has an address, and for http. */
  readonly serverName: string | undefined
}

const rememberMs = 30_000
const rememberedMax = 1000
/** More than a few addresses of one host help nobody, and a hostile name server can send hundreds. */
const dialUrlsMax = 4

interface Checked {
  readonly addresses: readonly string[]
  readonly listed: boolean
  readonly checkedMs: number
}

export function createEgressGuard(options: EgressGuardOptions): EgressGuard {
  const { plainHttp = false, resolve = resolveBySystem, clock = systemClock } = options
  const allow = parseAllowList(options.allow)
  const remembered = new Map<string, Checked>()

  async function checkHost(hostname: string): Promise<Checked | EgressRefusal> {
    const known = remembered.get(hostname)
    const checkedMs = clock.monotonicMs()
    if (known !== undefined && checkedMs - known.checkedMs < rememberMs) return known
    const judged = judgeAddresses(hostname, await addressesOf(hostname, resolve), allow)
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
    return fault ?? pin(url, host.addresses)
  }

  return {
    async check(text) {
      const url = parseEgressUrl(text)
      return url instanceof EgressRefusal ? url : checkUrl(url)
    },
    async checkBaseUrl(text) {
      const url = parseEgressUrl(text)
      if (url instanceof EgressRefusal) return url
      if (text.includes('?')) return new EgressRefusal('url', 'must not contain ?: paths are appended to it')
      const outcome = await checkUrl(url)
      if (outcome instanceof EgressRefusal) return outcome
      return { baseUrl: url.origin + url.rest.replace(/\/+$/, ''), origin: url.origin }
    },
  }
}

/** Whoever is not listed by the operator is called by https on its own port. */
function wayFault({ scheme, port }: EgressUrl, plainHttp: boolean): EgressRefusal | undefined {
  if (scheme === 'http:' && !plainHttp) return new EgressRefusal('scheme', 'must start with https://')
  if (port === (scheme === 'https:' ? 443 : 80)) return undefined
  return new EgressRefusal('port', 'must not name a port: only the usual one of https may be called')
}

async function addressesOf(hostname: string, resolve: Resolve): Promise<readonly string[]> {
  if (parseAddress(hostname) !== undefined) return [hostname]
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
): { readonly addresses: readonly string[]; readonly listed: boolean } | EgressRefusal {
  // One sentence for both: whether a name exists inside the operator's network is not a tenant's business.
  const message = 'must be a host with public addresses; others only if the operator lists them in own_keys.allow_hosts'
  if (addresses.length === 0) return new EgressRefusal('unresolved', message, `${hostname} has no address`)
  const hostListed = allow.hosts.has(withoutRootDot(hostname))
  let listed = true
  for (const address of addresses) {
    const verdict = judgeAddress(address, allow, { hostListed })
    // One bad answer spoils all: a name that mixes them is made for getting through.
    if (verdict.fault !== undefined) {
      return new EgressRefusal('address', message, `${hostname} is at ${address}: ${verdict.fault}`)
    }
    listed &&= verdict.listed
  }
  return { addresses, listed }
}

function pin(url: EgressUrl, addresses: readonly string[]): Pinned {
  const { scheme, hostname, port, host, origin, rest } = url
  const dialUrls = addresses.slice(0, dialUrlsMax).map((address) => {
    return `${scheme}//${address.includes(':') ? `[${address}]` : address}:${port}${rest}`
  })
  const named = scheme === 'https:' && parseAddress(hostname) === undefined
  const pinned: Omit<Pinned, typeof checked> = { origin, dialUrls, host, serverName: named ? hostname : undefined }
  return Object.freeze(pinned) as Pinned
}

async function resolveBySystem(hostname: string): Promise<readonly string[]> {
  const answers = await lookup(hostname, { all: true })
  return answers.map(({ address }) => address)
}
