// Values as text, and which of several limits applies. Without components, so that tests can use it outside a browser.

import { parseUsd } from '../../../kernel/money.ts'
import { exactCount } from '../../catalog/format.ts'
import type { Limits } from './api-types.ts'

/** `1234.5` → `$1,234.50`, `-0.1` → `−$0.10`. Never rounded; a text that is no decimal stays as it is. */
export function usdText(usd: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(usd)
  if (!match) return usd
  const [, sign, whole = '0', fraction = ''] = match
  return `${sign === '-' ? '−' : ''}$${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.${fraction.padEnd(2, '0')}`
}

const lastTime = Date.parse('9999-12-31T23:59:59.999Z')

/** As the API takes it, from 1970 to 9999; empty for any other text, since anyone can edit the address. */
export function isoTimeOf(text: string): string {
  const time = Date.parse(text)
  return time >= 0 && time <= lastTime ? new Date(time).toISOString() : ''
}

/** In the order in which pages list them. */
export const limitKinds = [
  { name: 'requests_per_minute', label: 'Requests per minute', kind: 'whole', unit: ' requests/min' },
  { name: 'tokens_per_minute', label: 'Tokens per minute', kind: 'whole', unit: ' tokens/min' },
  { name: 'concurrent_requests', label: 'Concurrent requests', kind: 'whole', unit: ' concurrent' },
  { name: 'spend_per_day', label: 'Spend per day (UTC), USD', kind: 'decimal', unit: '/day' },
  { name: 'spend_per_month', label: 'Spend per month (UTC), USD', kind: 'decimal', unit: '/month' },
] as const satisfies readonly { name: keyof Limits; label: string; kind: 'whole' | 'decimal'; unit: string }[]

export type LimitName = (typeof limitKinds)[number]['name']

/** `60 requests/min`, `$5.00/day` */
export function limitText(name: LimitName, value: number | string): string {
  const unit = limitKinds.find((each) => each.name === name)?.unit ?? ''
  return `${typeof value === 'string' ? usdText(value) : exactCount(value)}${unit}`
}

export interface LimitHolder {
  /** `this key`, `the project` */
  readonly who: string
  readonly limits: Limits
}

export interface EffectiveLimit {
  readonly name: LimitName
  readonly value: number | string
  readonly who: string
}

/** The tightest limit of each kind and who sets it; of equal limits the first holder is named. */
export function effectiveLimits(holders: readonly LimitHolder[]): readonly EffectiveLimit[] {
  return limitKinds.flatMap(({ name }) => {
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
  // The gateway only sends amounts; anything else must not be the tightest.
  return typeof value === 'number' ? BigInt(value) * 1_000_000_000n : (parseUsd(value) ?? 10n ** 30n)
}
