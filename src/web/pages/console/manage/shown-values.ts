// Limits and distances in time as these pages write them; amounts and moments are written by the console's parts.

import { systemClock } from '../../../../kernel/clock.ts'
import { usdText } from '../parts/usd-text.ts'
import type { LimitName } from './limit-names.ts'

const spans = [
  { unit: 'day', ms: 86_400_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'minute', ms: 60_000 },
] as const

/** `2 minutes ago`, `in 30 days`; `just now` below a minute. */
export function shownDistance(iso: string, now: number = systemClock.now()): string {
  const distance = Date.parse(iso) - now
  const span = spans.find(({ ms }) => Math.abs(distance) >= ms)
  if (!span) return 'just now'
  return new Intl.RelativeTimeFormat('en', { numeric: 'always' }).format(Math.trunc(distance / span.ms), span.unit)
}

const shortForms: Readonly<Record<LimitName, (value: string) => string>> = {
  requests_per_minute: (value) => `${value} requests/min`,
  tokens_per_minute: (value) => `${value} tokens/min`,
  concurrent_requests: (value) => `${value} at a time`,
  spend_per_day: (value) => `${value}/day`,
  spend_per_month: (value) => `${value}/month`,
}

/** `60 requests/min`, `$5.00/day` */
export function shownLimit(name: LimitName, value: number | string): string {
  const text = typeof value === 'string' ? usdText(value) : String(value).replace(/\B(?=(\d{3})+$)/g, ',')
  return shortForms[name](text)
}
