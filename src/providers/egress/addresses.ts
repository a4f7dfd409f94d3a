// Which addresses tenants may call: IANA's special-purpose ranges (2026-11), IPv4 addresses embedded in IPv6, and the
// operator's allowlist. Cloud metadata stays out of reach whatever the list says.

import { assert } from '../../kernel/failure.ts'
import { type IpAddress, type IpRange, isInRange, parsePlainAddress, parsePlainRange } from '../../kernel/ip-range.ts'
import { StartRefusal } from '../../store/start-refusal.ts'

/** `reachable`: an operator may allow it. `never`: serves a machine's credentials, so no one may. */
type Standing = 'reachable' | 'never'

export interface SpecialRange {
  readonly range: IpRange
  /** For the operator's log. */
  readonly what: string
  readonly standing: Standing
}

/** The first matching row counts, so narrower ranges come first. */
const specialRanges: readonly SpecialRange[] = [
  // All of link-local and not 169.254.169.254 alone: clouds also use .170.2, .170.23, .0.23, .42.42 in it.
  row('169.254.0.0/16', 'link-local, cloud metadata', 'never'),
  row('168.63.129.16', 'cloud metadata (Azure)', 'never'),
  row('100.100.100.200', 'cloud metadata (Alibaba)', 'never'),
  row('192.0.0.192', 'cloud metadata (Oracle)', 'never'),
  row('fd00:ec2::/32', 'cloud metadata (AWS)', 'never'),
  row('fd20:ce::/32', 'cloud metadata (Google)', 'never'),
  row('fd00:c1::a9fe:a9fe', 'cloud metadata (Oracle)', 'never'),
  row('fd00:42::42', 'cloud metadata (Scaleway)', 'never'),
  row('fe80::/10', 'link-local', 'never'),

  row('0.0.0.0/8', 'this network'),
  row('10.0.0.0/8', 'private'),
  row('100.64.0.0/10', 'shared by a carrier'),
  row('127.0.0.0/8', 'loopback'),
  row('172.16.0.0/12', 'private'),
  row('192.0.0.0/24', 'protocol assignments'),
  row('192.0.2.0/24', 'documentation'),
  row('192.88.99.0/24', '6to4 relay'),
  row('192.168.0.0/16', 'private'),
  row('198.18.0.0/15', 'benchmarking'),
  row('198.51.100.0/24', 'documentation'),
  row('203.0.113.0/24', 'documentation'),
  row('224.0.0.0/4', 'multicast'),
  row('240.0.0.0/4', 'reserved'),

  row('::', 'unspecified'),
  row('::1', 'loopback'),
  row('::ffff:0:0/96', 'IPv4-mapped'),
  row('64:ff9b::/96', 'NAT64'),
  row('64:ff9b:1::/48', 'NAT64'),
  row('fc00::/7', 'private'),
  row('ff00::/8', 'multicast'),
  row('2001::/32', 'Teredo'),
  row('2001::/23', 'protocol assignments'),
  row('2001:db8::/32', 'documentation'),
  row('2002::/16', '6to4'),
  row('3fff::/20', 'documentation'),
]

const globalUnicast = parsed('2000::/3')
const notGlobal: SpecialRange = { range: parsed('::/0'), what: 'reserved', standing: 'reachable' }

/** undefined = a public address. */
export function specialRangeOf(address: IpAddress): SpecialRange | undefined {
  const special = specialRanges.find(({ range }) => isInRange(range, address))
  if (special !== undefined || address.family === 4) return special
  return isInRange(globalUnicast, address) ? undefined : notGlobal
}

/** IPv4 addresses that a packet to this one may end at: a translator or tunnel on the way unwraps them. */
export function embeddedAddresses(address: IpAddress): readonly IpAddress[] {
  if (address.family === 4) return []
  const { value } = address
  const low = value & 0xffff_ffffn
  const found = carriers.filter(({ range }) => isInRange(range, address)).flatMap(({ carried }) => carried(value))
  // ISATAP, under any prefix: the interface is named 0000:5efe or 0200:5efe and the IPv4 address.
  if (((value >> 32n) & 0xfdff_ffffn) === 0x5efen) found.push(low)
  return found.map((inner) => ({ family: 4, value: inner }))
}

const lowest = (value: bigint) => [value & 0xffff_ffffn]

/** Where in an address the IPv4 one stands. */
const carriers: readonly { readonly range: IpRange; readonly carried: (value: bigint) => bigint[] }[] = [
  // IPv4-compatible; `::` and `::1` are not meant.
  { range: parsed('::/96'), carried: (value) => (value > 1n ? [value] : []) },
  { range: parsed('::ffff:0:0/96'), carried: lowest },
  // IPv4-translated.
  { range: parsed('::ffff:0:0:0/96'), carried: lowest },
  { range: parsed('64:ff9b::/96'), carried: lowest },
  // RFC 6052: after a prefix of 48 bits, bits 64–71 are skipped; after one of 96 bits, the address is at the end.
  {
    range: parsed('64:ff9b:1::/48'),
    carried: (value) => [...lowest(value), (((value >> 64n) & 0xffffn) << 16n) | ((value >> 40n) & 0xffffn)],
  },
  { range: parsed('2002::/16'), carried: (value) => [(value >> 80n) & 0xffff_ffffn] },
  // Teredo: the server, and the client with every bit turned over.
  {
    range: parsed('2001::/32'),
    carried: (value) => [(value >> 64n) & 0xffff_ffffn, (value & 0xffff_ffffn) ^ 0xffff_ffffn],
  },
]

function row(text: string, what: string, standing: Standing = 'reachable'): SpecialRange {
  return { range: parsed(text), what, standing }
}

function parsed(text: string): IpRange {
  const range = parsePlainRange(text)
  assert(range !== undefined, `${text} is a range`)
  return range
}

// The operator's allowlist: hosts by name, addresses and ranges.

export interface AllowList {
  readonly hosts: ReadonlySet<string>
  readonly ranges: readonly IpRange[]
}

const expected = 'expected a host name (llm.example.internal), an address (10.1.2.3) or a range (10.0.0.0/8)'

/** Throws a StartRefusal that names the entry: a list that was misunderstood must not be in force. */
export function parseAllowList(entries: readonly string[], setting: string): AllowList {
  const hosts = new Set<string>()
  const ranges: IpRange[] = []
  for (const entry of entries) {
    const range = parsePlainRange(entry)
    const host = range === undefined ? parseHostName(entry) : undefined
    if (range !== undefined) ranges.push(range)
    else if (host !== undefined) hosts.add(host)
    else throw new StartRefusal(`${setting}: "${entry}": ${expected}.`)
  }
  return { hosts, ranges }
}

/** As the URL parser writes it; undefined for URLs, ports, patterns, and numbers that it would read as addresses. */
function parseHostName(entry: string): string | undefined {
  if (!/^[^\s/:@?#*\\%[\]]+$/.test(entry)) return undefined
  const hostname = URL.parse(`https://${entry}/`)?.hostname
  return hostname === undefined || parsePlainAddress(hostname) !== undefined ? undefined : withoutRootDot(hostname)
}

/** `localhost.` is localhost. */
export function withoutRootDot(hostname: string): string {
  return hostname.endsWith('.') ? hostname.slice(0, -1) : hostname
}

export interface AddressVerdict {
  /** Why it must not be called, for the operator's log; undefined = it may. */
  readonly fault: string | undefined
  /** The operator's list has it. */
  readonly listed: boolean
}

/** `hostListed`: the operator named the host, so wherever it is, it may be called, but for metadata. */
export function judgeAddress(text: string, allow: AllowList, { hostListed }: { hostListed: boolean }): AddressVerdict {
  const address = parsePlainAddress(text)
  if (address === undefined) return { fault: 'not an address', listed: false }
  // Also what is wrapped inside: an allowed NAT64 prefix does not open the private network behind it.
  let listed = true
  for (const form of [address, ...embeddedAddresses(address)]) {
    const special = specialRangeOf(form)
    if (special?.standing === 'never') return { fault: special.what, listed: false }
    const formListed = hostListed || allow.ranges.some((range) => isInRange(range, form))
    if (special !== undefined && !formListed) return { fault: special.what, listed: false }
    if (form === address) listed = formListed
  }
  return { fault: undefined, listed }
}
