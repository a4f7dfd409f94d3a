// The cost of an example request: converts a shown price back to the price type that bills, so that pages use the billing
// code. The conversion is exact.

import { type Price, readPrice } from '../../catalog/price.ts'
import { tokensMax, type Usage } from '../../kernel/usage.ts'
import type { CatalogEntry } from './entry.ts'

/** undefined = no price. */
export function priceOf({ price }: Pick<CatalogEntry, 'price'>): Price | undefined {
  return price === null ? undefined : readPrice(price)
}

/** The request to calculate, and how many of them. */
export interface Sample {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Whole percent of the input. */
  readonly cachedPercent: number
  readonly calls: number
}

const exampleSample: Sample = { inputTokens: 3000, outputTokens: 500, cachedPercent: 60, calls: 1000 }

/** Fields of the form and the address: whole numbers from 0. */
export const sampleFields = [
  { name: 'in', max: tokensMax },
  { name: 'cached', max: 100 },
  { name: 'out', max: tokensMax },
  { name: 'calls', max: 1_000_000_000 },
] as const

export type SampleField = (typeof sampleFields)[number]['name']

/** A value that is not a whole number in range is replaced by the example's. */
export function parseSample(query: URLSearchParams): Sample {
  const numbers = new Map<SampleField, number | undefined>(
    sampleFields.map(({ name, max }) => [name, wholeNumber(query.get(name), max)]),
  )
  return {
    inputTokens: numbers.get('in') ?? exampleSample.inputTokens,
    outputTokens: numbers.get('out') ?? exampleSample.outputTokens,
    cachedPercent: numbers.get('cached') ?? exampleSample.cachedPercent,
    calls: numbers.get('calls') ?? exampleSample.calls,
  }
}

/** The fields that are not whole numbers in range. */
export function wrongSampleFields(query: URLSearchParams): readonly SampleField[] {
  return sampleFields.filter(({ name, max }) => wholeNumber(query.get(name), max) === undefined).map(({ name }) => name)
}

function wholeNumber(text: string | null, max: number): number | undefined {
  if (text === null || !/^[0-9]{1,10}$/.test(text)) return undefined
  const value = Number(text)
  return value <= max ? value : undefined
}

export function usageOf({ inputTokens, outputTokens, cachedPercent }: Sample): Usage {
  const cacheReadTokens = Math.floor((inputTokens * cachedPercent) / 100)
  return {
    inputTokens: inputTokens - cacheReadTokens,
    cacheReadTokens,
    cacheWriteTokens: 0,
    cacheWriteLongTokens: 0,
    outputTokens,
    source: 'estimated',
  }
}
