// Values as people read them: amounts, times, counts, limits. Amounts stay exact to the last digit.

import { type JsonObject, listOf, objectOf, textAt } from './json-members.ts'

/** `4.5` → `$4.50`; what is absent is a dash. */
export function shownUsd(amount: string | undefined): string {
  return amount === undefined ? '–' : `$${amount}`
}

/** `2026-11-15T01:02:03.004Z` → `2026-11-15 01:02:03`; all times of the gateway are UTC. */
export function shownTime(iso: string | undefined): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(iso ?? '')
  return match ? `${match[1]} ${match[2]}` : '–'
}

/** 12345 → `12,345`, the same on every machine. */
export function shownCount(count: number | bigint | undefined): string {
  return count === undefined ? '–' : String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** `1 wallet`, `2 wallets`. */
export function counted(count: number | bigint, noun: string): string {
  return `${shownCount(count)} ${noun}${count === 1 || count === 1n ? '' : 's'}`
}

export function shownMs(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return '–'
  return milliseconds < 10_000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`
}

export function shownModels(thing: JsonObject): string {
  const { models } = thing
  return models === null || models === undefined ? 'all' : listOf(models).join(', ')
}

const limitWords = [
  ['requests_per_minute', (value: string) => `${value} rpm`],
  ['tokens_per_minute', (value: string) => `${value} tpm`],
  ['concurrent_requests', (value: string) => `${value} at once`],
  ['spend_per_day', (value: string) => `$${value}/day`],
  ['spend_per_month', (value: string) => `$${value}/month`],
] as const

/** `60 rpm, $5.00/day`, or `none`. */
export function shownLimits(limits: unknown): string {
  const known = objectOf(limits)
  const parts = limitWords.flatMap(([name, word]) => {
    const value = known[name]
    if (typeof value === 'number') return [word(shownCount(value))]
    const text = textAt(known, name)
    return text === undefined ? [] : [word(text)]
  })
  return parts.length === 0 ? 'none' : parts.join(', ')
}
