// For how long the money lasts if it goes on as it did lately. The pace is taken from what was counted in the last seven
// days, or since the first request in them where that is shorter; without a charge there is no pace, and none is made up.

import type { StatsAnswer } from '../parts/api-answers.ts'

export interface Pace {
  /** USD; a rough figure, for people. */
  readonly perDay: number
  /** `7 days`, `5 hours`: what it was taken from. */
  readonly span: string
}

export const paceDays = 7
const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** undefined = nothing was charged in that time. */
export function paceOf({ total, hours, from, counted_until: until }: StatsAnswer): Pace | undefined {
  const spent = Number(total.cost)
  if (!(spent > 0)) return undefined
  const first = Math.max(Date.parse(hours[0]?.start ?? from), Date.parse(from))
  // An hour at least: a burst of a minute says nothing about a day.
  const spanMs = Math.max(hourMs, Date.parse(until) - first)
  const days = Math.min(paceDays, Math.round(spanMs / dayMs))
  const hoursLong = Math.round(spanMs / hourMs)
  const span = days >= 2 ? `${days} days` : hoursLong === 1 ? 'hour' : `${hoursLong} hours`
  return { perDay: spent / (spanMs / dayMs), span }
}

/** `≈ 12 days`; never more exact than the pace is. */
export function lastsText(available: string, { perDay }: Pace): string {
  const days = Math.max(0, Number(available)) / perDay
  if (days > 999) return 'more than 999 days'
  if (days >= 2) return `≈ ${Math.round(days)} days`
  const hours = Math.round(days * 24)
  return hours < 1 ? 'less than an hour' : hours === 1 ? '≈ 1 hour' : `≈ ${hours} hours`
}
