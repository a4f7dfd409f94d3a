// Prices as numbers in USD per million tokens: reads lists in the form of genai-prices, and takes the highest of several
// prices. Used to write the built-in catalog and for price updates. The rest of the gateway uses exact decimal strings.
// https://github.com/pydantic/genai-prices (MIT), prices/data.json, 2026-11

import { z } from 'zod'
import {
  type FactorName,
  factorNames,
  listedBuckets,
  type Tier,
  type TokenBucket,
  tierNames,
  type UnitBucket,
  unitBuckets,
} from '../kernel/usage.ts'

/** By bucket, USD per million tokens. */
export type PriceRow = { readonly [Name in 'input' | 'output']: number } & { readonly [Name in TokenBucket]?: number }

/** `over`: by the number of input tokens above which the prices apply. */
export type TierList = PriceRow & { readonly over?: Readonly<Record<string, PriceRow>> | undefined }

/** Units: USD per thousand. */
export type PriceList = TierList & { readonly [Name in UnitBucket | FactorName]?: number } & {
  readonly tiers?: { readonly [Name in Tier]?: TierList }
}

const amount = z.union([
  z.number(),
  z.looseObject({ base: z.number(), tiers: z.array(z.looseObject({ start: z.number(), price: z.number() })) }),
])
const amountsSchema = z.looseObject({
  input_mtok: amount.optional(),
  output_mtok: amount.optional(),
  output_reasoning_mtok: amount.optional(),
  cache_read_mtok: amount.optional(),
  cache_write_mtok: amount.optional(),
  cache_write_1h_mtok: amount.optional(),
  input_audio_mtok: amount.optional(),
  cache_audio_read_mtok: amount.optional(),
  output_audio_mtok: amount.optional(),
  web_searches_kcount: amount.optional(),
  requests_kcount: amount.optional(),
})
export type Amounts = z.infer<typeof amountsSchema>

const constraintSchema = z.looseObject({ start_date: z.string().optional(), start_time: z.string().optional() })
export const listedModelSchema = z.looseObject({
  id: z.string(),
  prices: z.union([
    z.array(z.looseObject({ constraint: constraintSchema.nullish(), prices: amountsSchema })),
    amountsSchema,
  ]),
})
export type ListedModel = z.infer<typeof listedModelSchema>

const buckets = listedBuckets.map(({ bucket }) => bucket)
/** Prices of anything but tokens. */
export const extraNames: readonly (UnitBucket | FactorName)[] = [
  ...unitBuckets.map(({ bucket }) => bucket),
  ...factorNames,
]

/** The price of the day (`YYYY-MM-DD`): the highest one if it depends on the hour. */
export function listedPrice(model: ListedModel, day: string): PriceList | undefined {
  return dearest(conditionsOn(model, day).map((prices) => fromAmounts(model.id, prices)))
}

/** The prices in effect on the day: several if they depend on the hour. */
function conditionsOn({ prices }: ListedModel, day: string): Amounts[] {
  if (!Array.isArray(prices)) return [prices]
  const inForce = prices.filter(({ constraint }) => {
    return constraint == null || (constraint.start_date !== undefined && constraint.start_date <= day)
  })
  const hourly = prices.filter(({ constraint }) => constraint?.start_time !== undefined)
  return [...inForce.slice(-1), ...hourly].map((condition) => condition.prices)
}

function fromAmounts(id: string, prices: Amounts): PriceList {
  if (prices.requests_kcount !== undefined) throw new Error(`${id}: a fee per request is no price per token`)
  const { input_mtok: input } = prices
  // Embeddings have no output.
  const output = prices.output_mtok ?? (/embed/.test(id) ? 0 : undefined)
  const { output_reasoning_mtok: reasoning = output } = prices
  if (input === undefined || output === undefined) throw new Error(`${id}: no price for input or output`)
  const named = [
    ['input', input],
    ['output', output],
    // Reasoning counts as output, so the higher of the two prices applies to both.
    ['output', reasoning],
    ['cache_read', prices.cache_read_mtok],
    ['cache_write', prices.cache_write_mtok],
    ['cache_write_1h', prices.cache_write_1h_mtok],
    ['audio_input', prices.input_audio_mtok],
    ['audio_cache_read', prices.cache_audio_read_mtok],
    ['audio_output', prices.output_audio_mtok],
  ] as const
  const starts = new Set<number>()
  for (const [, price] of named) if (typeof price === 'object') for (const { start } of price.tiers) starts.add(start)
  const rowAbove = (inputTokens: number): PriceRow => {
    const row: Partial<Record<(typeof buckets)[number], number>> = {}
    for (const [bucket, price] of named) {
      if (price === undefined) continue
      const tier =
        typeof price === 'object' ? price.tiers.filter(({ start }) => start <= inputTokens).at(-1) : undefined
      const amount = typeof price === 'number' ? price : (tier?.price ?? price.base)
      row[bucket] = Math.max(row[bucket] ?? 0, amount)
    }
    return row as PriceRow
  }
  const over = Object.fromEntries([...starts].map((start) => [String(start), rowAbove(start)]))
  const search = typeof prices.web_searches_kcount === 'number' && { web_search: prices.web_searches_kcount }
  return { ...rowAbove(-1), ...search, ...(starts.size > 0 && { over }) }
}

/**
 * Takes the highest price bucket by bucket, at every length of prompt and in every tier. For a cache bucket, lists without a
 * price are skipped: a provider without such a price has no such cache to report. So are lists without a tier.
 */
export function dearest(lists: readonly PriceList[]): PriceList | undefined {
  const [only, ...others] = lists
  if (only === undefined || others.length === 0) return only
  const extraPrices = extraNames.flatMap((name) => {
    const prices = lists.flatMap((list) => list[name] ?? [])
    return prices.length > 0 ? [[name, Math.max(...prices)] as const] : []
  })
  const tiers = tierNames.flatMap((name) => {
    const listed = lists.flatMap((list) => list.tiers?.[name] ?? [])
    return listed.length > 0 ? [[name, dearestTier(listed)] as const] : []
  })
  const { over, ...base } = dearestTier(lists)
  return {
    ...base,
    ...Object.fromEntries(extraPrices),
    ...(over && { over }),
    ...(tiers.length > 0 && { tiers: Object.fromEntries(tiers) }),
  }
}

function dearestTier(lists: readonly TierList[]): TierList {
  const bounds = [...new Set(lists.flatMap(({ over }) => Object.keys(over ?? {}).map(Number)))].sort((a, b) => a - b)
  const base = dearestRow(lists)
  const over: Record<string, PriceRow> = {}
  let last = base
  for (const bound of bounds) {
    const row = dearestRow(lists.map((list) => rowAt(list, bound)))
    if (Bun.deepEquals(row, last)) continue
    over[String(bound)] = row
    last = row
  }
  return { ...base, ...(Object.keys(over).length > 0 && { over }) }
}

function rowAt({ over, ...base }: TierList, inputTokens: number): PriceRow {
  const bound = Object.keys(over ?? {})
    .map(Number)
    .filter((each) => each <= inputTokens)
    .sort((a, b) => a - b)
    .at(-1)
  return (bound === undefined ? undefined : over?.[String(bound)]) ?? base
}

function dearestRow(rows: readonly PriceRow[]): PriceRow {
  const row: Partial<Record<(typeof buckets)[number], number>> = {}
  for (const bucket of buckets) {
    const prices = rows.map((each) => each[bucket]).filter((price) => price !== undefined)
    if (prices.length > 0) row[bucket] = Math.max(...prices)
  }
  return row as PriceRow
}

/** The token prices of a list so many times, for prompts of every length. */
export function timesFactor({ over, ...base }: TierList, factorOf: (bucket: TokenBucket) => number): TierList {
  const rowTimes = (row: PriceRow): PriceRow => {
    const priced = buckets.flatMap((bucket) => {
      const amount = row[bucket]
      return amount === undefined ? [] : [[bucket, Math.round(amount * factorOf(bucket) * 1e6) / 1e6] as const]
    })
    return Object.fromEntries(priced) as unknown as PriceRow
  }
  const long = Object.entries(over ?? {}).map(([bound, row]) => [bound, rowTimes(row)] as const)
  return { ...rowTimes(base), ...(long.length > 0 && { over: Object.fromEntries(long) }) }
}

/** `2.5` → `2.50`, `0.0375` → `0.0375`: exact, with at most six decimals. */
export function decimal(amount: number): string {
  const text = amount.toFixed(6)
  if (Number(text) !== amount) throw new Error(`${amount} has more than six decimals`)
  return text.replace(/0{1,4}$/, '')
}

/** The list in the form of a catalog entry. */
export function priceEntry(list: PriceList): Record<string, unknown> {
  const units = unitBuckets.flatMap(({ bucket }) => {
    const price = list[bucket]
    return price === undefined ? [] : [[bucket, decimal(price)] as const]
  })
  const factors = factorNames.flatMap((name) => (list[name] === undefined ? [] : [[name, String(list[name])] as const]))
  const tiers = tierNames.flatMap((name) => {
    const tier = list.tiers?.[name]
    return tier ? [[name, { ...rowEntry(tier), ...overEntry(tier) }] as const] : []
  })
  return {
    ...rowEntry(list),
    ...Object.fromEntries([...units, ...factors]),
    ...overEntry(list),
    ...(tiers.length > 0 && { tiers: Object.fromEntries(tiers) }),
  }
}

function overEntry({ over = {} }: TierList): Record<string, unknown> {
  const rows = Object.entries(over).map(([bound, row]) => [bound, rowEntry(row)] as const)
  return rows.length > 0 ? { over: Object.fromEntries(rows) } : {}
}

function rowEntry(row: PriceRow): Record<string, string> {
  const priced = buckets.flatMap((bucket) => {
    const amount = row[bucket]
    // A write price below plain input is only a surcharge for storage. Without one, writes cost as much as input.
    const isSurcharge = bucket.startsWith('cache_write') && amount !== undefined && amount < row.input
    return amount === undefined || isSurcharge ? [] : [[bucket, decimal(amount)] as const]
  })
  return Object.fromEntries(priced)
}
