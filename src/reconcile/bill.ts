// A provider's bill in one form, whatever it was read from: lines of one day, model, key and bucket. Amounts are exact:
// decimals are read as text and never become a float.

import { isoTime } from '../kernel/clock.ts'

export const dayMs = 86_400_000

/** How long a request takes at most: a route's `total_ms` can be a day. Its calls begin, and its charge is made, by then. */
export const requestMaxMs = dayMs + 3_600_000

/** One line. Quantity and amount may come from different reports, and then are different lines. */
export interface BillLine {
  /** When the UTC day begins. */
  readonly day: number
  /** The provider's name for it; empty = the line is for no model. */
  readonly model: string
  /** The provider's id of the API key; `noKey` = used without one, empty = the report does not tell keys apart. */
  readonly key: string
  /** A bucket of kernel/usage.ts; empty = all of them together. */
  readonly bucket: string
  /** `batch`, `priority` …; empty = the standard one, or the report does not tell. */
  readonly tier: string
  /** Empty = without a surcharge, or the report does not tell. */
  readonly region: string
  /** Tokens or units; undefined = the line has none. */
  readonly quantity: bigint | undefined
  /** Pico-dollars; undefined = the line has no amount. */
  readonly pico: bigint | undefined
  /** undefined = not reported. */
  readonly requests: bigint | undefined
}

/** Of usage without an API key, such as a provider's own console. */
export const noKey = '(no key)'

/** Why a bill cannot be read, in words for the operator. Nothing of the report is stored. */
export class BillFault extends Error {}

export interface BillReport {
  readonly lines: readonly BillLine[]
  /** Why the report does not have a day yet; undefined = it has. */
  missing(day: number): string | undefined
}

/** Whole UTC days; `to` is exclusive. */
export interface DayRange {
  readonly from: number
  readonly to: number
}

export function daysOf({ from, to }: DayRange): readonly number[] {
  return Array.from({ length: Math.max(0, Math.ceil((to - from) / dayMs)) }, (_, at) => from + at * dayMs)
}

export function dayText(day: number): string {
  return isoTime(day).slice(0, 10)
}

/** `2026-11-03`, also with a time behind it; undefined = not a day. */
export function dayOf(text: string): number | undefined {
  const match = /^(\d{4}-\d{2}-\d{2})(?:[T ].*)?$/.exec(text)
  const day = match ? Date.parse(`${match[1]}T00:00:00Z`) : Number.NaN
  return Number.isNaN(day) || dayText(day) !== match?.[1] ? undefined : day
}

// ── Exact numbers ──

const decimalPattern = /^([+-]?)([0-9]{1,18})(?:\.([0-9]{0,60}))?(?:[eE]([+-]?[0-9]{1,2}))?$/
const picoDigits = { usd: 12, cents: 10 } as const

/** A decimal amount → pico-dollars, half rounded away from zero; undefined = it is not a decimal. */
export function picoOf(text: string, unit: keyof typeof picoDigits): bigint | undefined {
  const match = decimalPattern.exec(text)
  if (!match) return undefined
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  const scale = picoDigits[unit] + Number(exponent) - fraction.length
  const digits = BigInt(whole + fraction)
  const pico = scale >= 0 ? digits * 10n ** BigInt(scale) : roundedQuotient(digits, 10n ** BigInt(-scale))
  return sign === '-' ? -pico : pico
}

/** Half is rounded away from zero. */
export function roundedQuotient(dividend: bigint, divisor: bigint): bigint {
  const [sign, size] = dividend < 0n ? [-1n, -dividend] : [1n, dividend]
  return sign * ((2n * size + divisor) / (2n * divisor))
}

/** Pico-dollars → nano-dollars. */
export function nanoOf(pico: bigint): bigint {
  return roundedQuotient(pico, 1000n)
}

/** A count, also written as `12.0`; undefined = it is not a whole number that is at least 0. */
export function quantityOf(text: string): bigint | undefined {
  const match = /^([0-9]{1,18})(?:\.0*)?$/.exec(text)
  return match ? BigInt(match[1] ?? '') : undefined
}

export type ExactJson = string | boolean | null | readonly ExactJson[] | { readonly [name: string]: ExactJson }

/** JSON with every number as the text it was written in. undefined = it is not JSON. */
export function readExactJson(text: string): ExactJson | undefined {
  const keepSource = (_: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === 'number' ? (context?.source ?? String(value)) : value
  try {
    return JSON.parse(text, keepSource as (key: string, value: unknown) => unknown) as ExactJson
  } catch {
    return undefined
  }
}

/** Adds up lines that say the same of the same, so that each is stored once. */
export function mergedLines(lines: readonly BillLine[]): readonly BillLine[] {
  const merged = new Map<string, BillLine>()
  for (const line of lines) {
    const { day, model, key, bucket, tier, region } = line
    const name = JSON.stringify([day, model, key, bucket, tier, region])
    const before = merged.get(name)
    merged.set(name, before ? { ...line, ...sumOf(before, line) } : line)
  }
  return [...merged.values()]
}

function sumOf(a: BillLine, b: BillLine): Pick<BillLine, 'quantity' | 'pico' | 'requests'> {
  const add = (name: 'quantity' | 'pico' | 'requests') => (a[name] === undefined ? b[name] : a[name] + (b[name] ?? 0n))
  return { quantity: add('quantity'), pico: add('pico'), requests: add('requests') }
}
