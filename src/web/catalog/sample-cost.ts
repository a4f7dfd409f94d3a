// The cost of an example request: converts a shown price back to the price type that bills, so that pages use the billing
// code. The conversion is exact.

import { type Price, readPrice } from '../../catalog/price.ts'
import { noTokens, tokensMax, type Usage } from '../../kernel/usage.ts'
import type { CatalogEntry } from './entry.ts'

/** undefined = no price. */
export function priceOf({ price }: Pick<CatalogEntry, 'price'>): Price | undefined {
  return price === null ? undefined : readPrice(price)
}

/** Fields of the form and the address: whole numbers from 0. */
export const sampleFields = [
  { name: 'in', label: 'Input tokens', max: tokensMax, example: 3000 },
  { name: 'cached', label: 'Cached, %', max: 100, example: 60 },
  { name: 'out', label: 'Output tokens', max: tokensMax, example: 500 },
  { name: 'calls', label: 'Requests', max: 1_000_000_000, example: 1000 },
] as const

export type SampleField = (typeof sampleFields)[number]

/** The request to calculate, and how many of them. */
export type Sample = Readonly<Record<SampleField['name'], number>>

/** A value that is not a whole number in range is replaced by the example's. */
export function parseSample(query: URLSearchParams): Sample {
  const values = sampleFields.map((field) => [field.name, wholeNumber(query, field) ?? field.example])
  return Object.fromEntries(values)
}

/** The fields that are not whole numbers in range. */
export function wrongSampleFields(query: URLSearchParams): readonly SampleField[] {
  return sampleFields.filter((field) => wholeNumber(query, field) === undefined)
}

function wholeNumber(query: URLSearchParams, { name, max }: SampleField): number | undefined {
  const text = query.get(name) ?? ''
  return /^[0-9]{1,10}$/.test(text) && Number(text) <= max ? Number(text) : undefined
}

export function usageOf({ in: input, cached, out }: Sample): Usage {
  const cacheReadTokens = Math.floor((input * cached) / 100)
  return {
    ...noTokens,
    inputTokens: input - cacheReadTokens,
    cacheReadTokens,
    outputTokens: out,
    source: 'estimated',
  }
}
