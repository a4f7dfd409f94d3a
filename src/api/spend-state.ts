// The state of a spend limit in words, for the command line and the console.

import { parseUsd } from '../kernel/money.ts'
import type { ItemOf } from './client.ts'

export type SpendState = ItemOf<'listKeys'>['spend'][number]

export function isReached({ limit, spent }: SpendState): boolean {
  return (parseUsd(spent) ?? 0n) >= (parseUsd(limit) ?? 0n)
}

/** `resets in 4 h`, `limit reached, resets at 00:00 UTC`, `from 2026-12-01` */
export function stateText(state: SpendState, now: number): string {
  const { starts_at, resets_at } = state
  if (Date.parse(starts_at) > now) return `from ${starts_at.slice(0, 10)}`
  if (/^[0-9]+[hd]$/.test(state.period)) return isReached(state) ? 'limit reached' : 'rolling'
  const hours = (Date.parse(resets_at) - now) / 3_600_000
  if (!isReached(state)) return `resets in ${spanText(hours)}`
  // All periods end at midnight.
  return `limit reached, resets ${hours <= 24 ? 'at 00:00 UTC' : `on ${resets_at.slice(0, 10)}`}`
}

function spanText(hours: number): string {
  if (hours >= 48) return `${Math.round(hours / 24)} days`
  return hours >= 1 ? `${Math.round(hours)} h` : `${Math.max(1, Math.round(hours * 60))} min`
}
