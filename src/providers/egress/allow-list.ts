// What an operator allows tenants to call beyond the public internet: hosts by name, addresses and ranges of them.
// Cloud metadata stays out of reach whatever the list says.

import { StartRefusal } from '../../store/start-refusal.ts'
import { type AddressRange, isWithin, parseAddress, parseRange } from './address.ts'
import { embeddedAddresses, specialRangeOf } from './address-ranges.ts'

export interface AllowList {
  readonly hosts: ReadonlySet<string>
  readonly ranges: readonly AddressRange[]
}

const expected = 'expected a host name (llm.example.internal), an address (10.1.2.3) or a range (10.0.0.0/8)'

/** Throws a StartRefusal that names the entry: a list that was misunderstood must not be in force. */
export function parseAllowList(entries: readonly string[]): AllowList {
  const hosts = new Set<string>()
  const ranges: AddressRange[] = []
  for (const entry of entries) {
    const range = parseRange(entry)
    const host = range === undefined ? parseHostName(entry) : undefined
    if (range !== undefined) ranges.push(range)
    else if (host !== undefined) hosts.add(host)
    else throw new StartRefusal(`own_keys.allow_hosts: "${entry}": ${expected}.`)
  }
  return { hosts, ranges }
}

/** As the URL parser writes it; undefined for URLs, ports, patterns, and numbers that it would read as addresses. */
function parseHostName(entry: string): string | undefined {
  if (!/^[^\s/:@?#*\\%[\]]+$/.test(entry)) return undefined
  const hostname = URL.parse(`https://${entry}/`)?.hostname
  return hostname === undefined || parseAddress(hostname) !== undefined ? undefined : withoutRootDot(hostname)
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
  const address = parseAddress(text)
  if (address === undefined) return { fault: 'not an address', listed: false }
  // Also what is wrapped inside: an allowed NAT64 prefix does not open the private network behind it.
  let listed = true
  for (const form of [address, ...embeddedAddresses(address)]) {
    const special = specialRangeOf(form)
    if (special?.standing === 'never') return { fault: special.what, listed: false }
    const formListed = hostListed || allow.ranges.some((range) => isWithin(range, form))
    if (special !== undefined && !formListed) return { fault: special.what, listed: false }
    if (form === address) listed = formListed
  }
  return { fault: undefined, listed }
}
