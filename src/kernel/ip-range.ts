// IP addresses and ranges (CIDR) as numbers, so that checking whether a range has an address is a shift and a comparison.
// Only unambiguous forms are read: no octal, hexadecimal or shortened IPv4, which parsers read differently.

/** An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`, as dual-stack sockets report it) has family 4. */
export interface IpAddress {
  readonly family: 4 | 6
  readonly value: bigint
}

export interface IpRange {
  readonly family: 4 | 6
  /** The leading bits that all its addresses share, shifted to the right end. */
  readonly prefix: bigint
  readonly freeBits: bigint
}

const bitsOf = { 4: 32, 6: 128 } as const
/** `::ffff:0:0/96` without its last 32 bits. */
const mappedPrefix = 0xffffn

/** undefined if it is not an address. A zone (`fe80::1%eth0`) is ignored: it names an interface, not an address. */
export function parseIpAddress(text: string): IpAddress | undefined {
  const address = parsePlainAddress(text.replace(/%[0-9A-Za-z._~-]+$/, ''))
  if (address?.family !== 6 || address.value >> 32n !== mappedPrefix) return address
  return { family: 4, value: address.value & 0xffff_ffffn }
}

/**
 * What one subscriber usually has: an IPv4 address, or the 2^64 addresses of an IPv6 network. For counting by it; `unknown` for
 * what is no address.
 */
export function networkOf(text: string | undefined): string {
  const address = text === undefined ? undefined : parseIpAddress(text)
  if (address === undefined || text === undefined) return 'unknown'
  return address.family === 6 ? `${(address.value >> 64n).toString(16)}/64` : `${address.value}/32`
}

/** `10.0.0.0/8`, `2001:db8::/32`, or one address. undefined if it is not a range, or has bits set after its prefix. */
export function parseIpRange(text: string): IpRange | undefined {
  const range = parsePlainRange(text)
  if (range?.family !== 6 || range.freeBits > 32n) return range
  const start = range.prefix << range.freeBits
  if (start >> 32n !== mappedPrefix) return range
  return { family: 4, prefix: (start & 0xffff_ffffn) >> range.freeBits, freeBits: range.freeBits }
}

/** Like `parseIpRange`, but IPv4 that is written as IPv6 stays IPv6. */
export function parsePlainRange(text: string): IpRange | undefined {
  const [, start = '', length] = /^([^/]+)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(text) ?? []
  const address = parsePlainAddress(start)
  if (!address) return undefined
  const bits = length === undefined ? bitsOf[address.family] : Number(length)
  if (bits > bitsOf[address.family]) return undefined
  const freeBits = BigInt(bitsOf[address.family] - bits)
  const prefix = address.value >> freeBits
  return prefix << freeBits === address.value ? { family: address.family, prefix, freeBits } : undefined
}

export function isInRange(range: IpRange, address: IpAddress): boolean {
  return range.family === address.family && address.value >> range.freeBits === range.prefix
}

/** An address without a zone. IPv4 that is written as IPv6 stays IPv6. */
export function parsePlainAddress(text: string): IpAddress | undefined {
  const family = text.includes(':') ? 6 : 4
  const value = family === 6 ? readV6(text) : readV4(text)
  return value === undefined ? undefined : { family, value }
}

function readV4(text: string): bigint | undefined {
  if (!/^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$/.test(text)) return undefined
  let value = 0n
  for (const part of text.split('.')) {
    // A leading zero means octal to some parsers and nothing to others.
    if (Number(part) > 255 || (part.length > 1 && part.startsWith('0'))) return undefined
    value = (value << 8n) | BigInt(part)
  }
  return value
}

function readV6(text: string): bigint | undefined {
  const [head = '', tail, ...more] = expandDotted(text).split('::')
  if (more.length > 0) return undefined
  const before = readGroups(head)
  const after = readGroups(tail ?? '')
  if (!before || !after) return undefined
  const missing = 8 - before.length - after.length
  // `::` stands for at least one group, and without it there are eight.
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined
  let value = 0n
  for (const group of [...before, ...Array<bigint>(missing).fill(0n), ...after]) value = (value << 16n) | group
  return value
}

/** The last 32 bits may be written as IPv4. An invalid one stays as it is, and is rejected as a group later. */
function expandDotted(text: string): string {
  const at = text.lastIndexOf(':') + 1
  const value = readV4(text.slice(at))
  if (value === undefined) return text
  return `${text.slice(0, at)}${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`
}

function readGroups(text: string): bigint[] | undefined {
  if (text === '') return []
  const groups = text.split(':')
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.map((group) => BigInt(`0x${group}`))
    : undefined
}
