// An IP address as a number, and ranges of them. Pure arithmetic: which ranges are dangerous stands in address-ranges.ts.

import { isIPv4, isIPv6 } from 'node:net'

export interface Address {
  readonly family: 4 | 6
  readonly value: bigint
}

export interface AddressRange {
  readonly family: 4 | 6
  /** The bits all its addresses begin with. */
  readonly prefix: bigint
  readonly prefixBits: number
}

/** undefined for anything but a plain literal; a scope (`%eth0`) makes it no plain one. */
export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { family: 4, value: joinGroups(text.split('.').map(BigInt), 8n) }
  if (!isIPv6(text) || text.includes('%')) return undefined
  // An IPv4 tail becomes two groups, `::` as many zeros as are missing. The URL parser is not asked: it does not take
  // every address with a tail.
  const groupsOnly = text.replace(/[^:]+\.[^:]+$/, (tail) => {
    const value = joinGroups(tail.split('.').map(BigInt), 8n)
    return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`
  })
  const [head = [], tail = []] = groupsOnly.split('::').map((half) => (half === '' ? [] : half.split(':')))
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0')
  const groups = [...head, ...zeros, ...tail].map((group) => BigInt(`0x${group}`))
  return { family: 6, value: joinGroups(groups, 16n) }
}

function joinGroups(groups: readonly bigint[], bits: bigint): bigint {
  return groups.reduce((value, group) => (value << bits) | group, 0n)
}

/** `10.0.0.0/8`, or an address alone. undefined for anything else, also where bits are set behind the prefix. */
export function parseRange(text: string): AddressRange | undefined {
  const [literal = '', bits, ...more] = text.split('/')
  const address = parseAddress(literal)
  if (address === undefined || more.length > 0) return undefined
  const width = widthOf(address.family)
  if (bits !== undefined && !/^(0|[1-9][0-9]{0,2})$/.test(bits)) return undefined
  const prefixBits = bits === undefined ? width : Number(bits)
  if (prefixBits > width) return undefined
  const shift = BigInt(width - prefixBits)
  const prefix = address.value >> shift
  return prefix << shift === address.value ? { family: address.family, prefix, prefixBits } : undefined
}

export function isWithin(range: AddressRange, address: Address): boolean {
  const shift = BigInt(widthOf(address.family) - range.prefixBits)
  return range.family === address.family && address.value >> shift === range.prefix
}

function widthOf(family: 4 | 6): number {
  return family === 4 ? 32 : 128
}
