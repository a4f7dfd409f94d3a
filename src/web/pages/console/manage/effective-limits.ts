// Which limit holds, and whose it is: of key, project and workspace the tightest decides, each kind of limit by itself.

import { parseUsd } from '../../../../kernel/money.ts'
import { type LimitName, limitNames } from './limit-names.ts'
import type { Limits } from './things.ts'

export interface LimitHolder {
  /** As a sentence names it: `this key`, `the project web`. */
  readonly who: string
  readonly limits: Limits
}

export interface EffectiveLimit {
  readonly name: LimitName
  readonly value: number | string
  readonly who: string
}

/** Only the limits that are set; between equals the first holder is named. */
export function effectiveLimits(holders: readonly LimitHolder[]): readonly EffectiveLimit[] {
  return limitNames.flatMap(({ name }) => {
    let tightest: EffectiveLimit | undefined
    for (const { who, limits } of holders) {
      const value = limits[name]
      if (value === undefined || value === null) continue
      if (!tightest || sizeOf(value) < sizeOf(tightest.value)) tightest = { name, value, who }
    }
    return tightest ? [tightest] : []
  })
}

function sizeOf(value: number | string): bigint {
  // What the gateway sent is always an amount; anything else must not win.
  return typeof value === 'number' ? BigInt(value) * 1_000_000_000n : (parseUsd(value) ?? 10n ** 30n)
}
