// The prices of the traffic: what the fake providers bill, by their own arithmetic, and the same as a price of ours.

import { createPrice as createOurs, priceUsage } from '../../src/catalog/price.ts'
import type { Nano, Pico } from '../../src/kernel/money.ts'
import type { Usage } from '../../src/kernel/usage.ts'

/** Pico-dollars per token: $3.00, $0.30, $3.75 and $15.00 per million, and $0.25, $0.0028, $0.30 and $1.25. */
export const picoPerToken: Readonly<
  Record<string, { input: bigint; cacheRead: bigint; cacheWrite: bigint; output: bigint }>
> = {
  'large-1': { input: 3_000_000n, cacheRead: 300_000n, cacheWrite: 3_750_000n, output: 15_000_000n },
  'small-1': { input: 250_000n, cacheRead: 2_800n, cacheWrite: 300_000n, output: 1_250_000n },
}

export function createPrice(model: string) {
  const { input, cacheRead, cacheWrite, output } = picoPerToken[model] ?? {
    input: 0n,
    cacheRead: 0n,
    cacheWrite: 0n,
    output: 0n,
  }
  const rates = (part: bigint) => ({
    input: (input / part) as Pico,
    cache_read: (cacheRead / part) as Pico,
    cache_write: (cacheWrite / part) as Pico,
    output: (output / part) as Pico,
  })
  return createOurs(rates(1n), {}, {}, { flex: { rates: rates(2n) } })
}

export function renderedCharge(model: string, usage: Usage): Nano {
  return priceUsage(createPrice(model), usage)
}
