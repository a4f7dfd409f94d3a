// Whether an event was signed by Stripe with our endpoint's secret, and lately. It sees the bytes as they came over the
// wire and must not look into them: JSON that was parsed and written again is no longer what was signed.
// The scheme: https://docs.stripe.com/webhooks/signature

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../../kernel/secret.ts'

export interface SignedBody {
  /** `Stripe-Signature`: `t=1800000000,v1=…`, several v1 while a secret is being replaced; other schemes are not ours. */
  readonly header: string
  readonly body: Uint8Array
}

/** `mismatch` is told before `stale`: only what was really signed can be too old. */
export type SignatureFault = 'malformed' | 'mismatch' | 'stale'

/** Both ways, for clocks that differ. What is replayed within it finds its payment already credited. */
const toleranceMs = 5 * 60_000

const timePattern = /^[0-9]{1,12}$/
const digestPattern = /^[0-9a-f]{64}$/

/** undefined = genuine. */
export function checkSignature(signed: SignedBody, secret: Secret, now: number): SignatureFault | undefined {
  const { time, digests } = parseHeader(signed.header)
  if (time === undefined || digests.length === 0) return 'malformed'
  const expected = createHmac('sha256', secret.reveal()).update(`${time}.`).update(signed.body).digest()
  // Every one is compared, in constant time, so that the time taken says nothing about how near a guess was.
  const matches = digests.filter((digest) => timingSafeEqual(Buffer.from(digest, 'hex'), expected))
  if (matches.length === 0) return 'mismatch'
  return Math.abs(now - Number(time) * 1000) > toleranceMs ? 'stale' : undefined
}

/** A second time would leave open which one was signed, so then there is none. */
function parseHeader(header: string): { readonly time: string | undefined; readonly digests: readonly string[] } {
  const times: string[] = []
  const digests: string[] = []
  for (const part of header.split(',')) {
    const [name = '', value = ''] = part.trim().split('=', 2)
    if (name === 't') times.push(value)
    if (name === 'v1' && digestPattern.test(value)) digests.push(value)
  }
  const [time = ''] = times
  return { time: times.length === 1 && timePattern.test(time) ? time : undefined, digests }
}
