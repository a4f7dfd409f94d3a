// Where a key may be used from: addresses and ranges, checked when they are set and judged for every request that
// carries such a key. Which address a request comes from is not decided here.

import { assert } from '../kernel/assert.ts'
import { Failure, invalidRequest } from '../kernel/failure.ts'
import { type IpRange, isInRange, parseIpAddress, parseIpRange } from '../kernel/ip-range.ts'
import type { Caller } from './caller.ts'

const sourcesMax = 100

/** What is wrong with a list that somebody sent as `sources`. */
export function checkSources(sources: readonly string[] | undefined): Failure | undefined {
  if (sources === undefined) return undefined
  if (sources.length === 0 || sources.length > sourcesMax) {
    return invalidRequest(`\`sources\` must have 1 to ${sourcesMax} entries; leave it out for anywhere.`, 'sources')
  }
  const wrong = sources.findIndex((text) => parseIpRange(text) === undefined)
  if (wrong === -1) return undefined
  return invalidRequest(
    `\`sources[${wrong}]\` must be an address or a range whose bits after the prefix are 0, such as 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32.`,
    `sources[${wrong}]`,
  )
}

export function sourcesToSql(sources: readonly string[] | undefined): string | null {
  return sources === undefined ? null : JSON.stringify(sources)
}

/** A list that cannot be read must not turn into "anywhere". */
export function sourcesFromSql(json: string | null): readonly string[] | undefined {
  if (json === null) return undefined
  const sources: unknown = JSON.parse(json)
  assert(Array.isArray(sources) && sources.every((text) => typeof text === 'string'), 'a source list holds strings')
  return Object.freeze(sources)
}

export function rangesOf(sources: readonly string[] | undefined): readonly IpRange[] | undefined {
  if (sources === undefined) return undefined
  return Object.freeze(
    sources.map((text) => {
      const range = parseIpRange(text)
      assert(range, 'a stored source is an address or a range')
      return Object.freeze(range)
    }),
  )
}

/** undefined = where the request comes from is not known; a restricted key is then not accepted. */
export function allowsSource({ sources }: Caller, address: string | undefined): boolean {
  if (sources === undefined) return true
  const parsed = address === undefined ? undefined : parseIpAddress(address)
  return parsed !== undefined && sources.some((range) => isInRange(range, parsed))
}

/** Names the address, because behind a proxy it is often another one than expected; never the ranges. */
export function sourceFailure({ keyName }: Caller, address: string | undefined): Failure {
  const from = address === undefined ? 'an unknown address' : address
  return new Failure(
    'FORBIDDEN',
    `Tollgate does not accept the key "${keyName}" from ${from}: it is restricted to other addresses. Use it from there, or create a key for this place.`,
  )
}
