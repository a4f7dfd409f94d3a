// A price list that the operator trusts, from a file or an address. Three forms: models with `id` and `price` as the
// configuration file has them (a newer models.json, or GET /api/catalog of another Tollgate), OpenRouter's list with USD
// per token, and the providers and models of genai-prices. Entries without a price are left out.

import { z } from 'zod'
import { buckets, type TokenBucket } from '../kernel/usage.ts'
import { builtInModels, listedProviders } from './data/built-in.ts'
import { type ModelEntry, modelEntrySchema } from './entry.ts'
import {
  dearest,
  extraNames,
  type ListedModel,
  listedModelSchema,
  listedPrice,
  type PriceList,
  priceEntry,
  timesFactor,
} from './listed-prices.ts'

const timeoutMs = 30_000
const bytesMax = 16 * 1024 * 1024

export interface ListedPrice {
  readonly model: string
  readonly price: NonNullable<ModelEntry['price']>
  /** The cost of the routes, if the list has the prices of providers. */
  readonly cost?: NonNullable<ModelEntry['price']>
}

const perToken = z.string().regex(/^[0-9.]+(e-?[0-9]+)?$/i)
const itemSchema = z.looseObject({
  id: z.string(),
  price: modelEntrySchema.shape.price.nullish(),
  pricing: z
    .looseObject({ prompt: z.string(), completion: z.string(), input_cache_read: perToken.optional() })
    .nullish(),
})
const providersSchema = z.array(z.looseObject({ id: z.string(), models: z.array(listedModelSchema) }))
const listSchema = z.union([z.array(itemSchema), z.object({ data: z.array(itemSchema) })])

const listExpected = `it is not a price list, which is a JSON array [{"id", "price"}], the catalog of a Tollgate, OpenRouter's list or the data of genai-prices`

/** Throws if it cannot be read or is not such a list. */
export async function readPriceSource(from: string, nowMs: number): Promise<readonly ListedPrice[]> {
  return parsePriceList(/^https?:/.test(from) ? await download(from) : await Bun.file(from).text(), nowMs)
}

export function parsePriceList(text: string, nowMs: number): readonly ListedPrice[] {
  const list = parseJson(text)
  const providers = providersSchema.safeParse(list)
  if (providers.success && providers.data.length > 0) return pricesOfRoutes(providers.data, nowMs)
  const read = listSchema.safeParse(list)
  if (!read.success) throw new Error(listExpected)
  const items = Array.isArray(read.data) ? read.data : read.data.data
  if (items.length === 0) throw new Error('it has no entries')
  return items.flatMap(({ id, price, pricing }) => {
    const found = price ?? (pricing ? fromPerToken(pricing) : undefined)
    return found === undefined ? [] : [{ model: id, price: found }]
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(listExpected)
  }
}

/**
 * A built-in model gets the highest price among its providers, as in the catalog. If the list lacks one of them, the price
 * can only rise, because that provider may be more expensive. Prices of searches and surcharges do not change: the list does
 * not say whether a route has them. Those of tiers are multiples of the standard ones, and move with them.
 */
function pricesOfRoutes(providers: z.infer<typeof providersSchema>, nowMs: number): ListedPrice[] {
  const day = new Date(nowMs).toISOString().slice(0, 10)
  const listed = new Map(
    providers.flatMap(({ id, models }) =>
      models.map((model) => [routeKey(listedProviders[id] ?? id, model.id), model] as const),
    ),
  )
  return builtInModels.flatMap(({ id, routes, tags, price: builtIn }) => {
    if (builtIn === undefined || builtIn === 'free') return []
    const found = routes.flatMap(({ provider, model }) => priceOn(listed.get(routeKey(provider, model)), day) ?? [])
    if (found.length === 0) return []
    const isWhole = found.length === routes.length
    const price = dearest(isWhole ? found : [...found, numbersOf(builtIn)])
    const read = modelEntrySchema.shape.price.safeParse({
      ...(price && priceEntry({ ...tokensOnly(price), ...movedTiers(builtIn, price) })),
      ...(tags?.includes('embeddings') && { output: '0' }),
      ...extrasOf(builtIn),
    })
    return read.success && read.data !== undefined ? [{ model: id, price: read.data, cost: read.data }] : []
  })
}

type PriceEntry = Exclude<NonNullable<ModelEntry['price']>, 'free'>

/** The part of a price that the lists do not have. */
function extrasOf(price: PriceEntry): Partial<PriceEntry> {
  return Object.fromEntries(extraNames.flatMap((name) => (price[name] === undefined ? [] : [[name, price[name]]])))
}

/** The tiers of a built-in price, where the price of the standard tier is now another one. */
function movedTiers({ tiers = {}, ...standard }: PriceEntry, after: PriceList): Pick<PriceList, 'tiers'> {
  const before = numbersOf(standard)
  const factorOf = (bucket: TokenBucket): number => {
    const [was, is] = [before[bucket], after[bucket]]
    if (was && is !== undefined) return is / was
    const { side } = buckets[bucket]
    return before[side] ? after[side] / before[side] : 1
  }
  const moved = Object.entries(tiers).flatMap(([name, tier]) =>
    tier ? [[name, timesFactor(numbersOf(tier), factorOf)] as const] : [],
  )
  return moved.length > 0 ? { tiers: Object.fromEntries(moved) } : {}
}

function tokensOnly(price: PriceList): PriceList {
  return Object.fromEntries(Object.entries(price).filter(([name]) => !isExtra(name))) as unknown as PriceList
}

function numbersOf({ over = {}, tiers: _, ...row }: PriceEntry): PriceList {
  const numbers = (named: object) =>
    Object.fromEntries(Object.entries(named).map(([name, text]) => [name, Number(text)]))
  const long = Object.entries(over).map(([tokens, prices]) => [tokens, numbers(prices)])
  return { ...numbers(row), ...(long.length > 0 && { over: Object.fromEntries(long) }) } as unknown as PriceList
}

const isExtra = (name: string): boolean => extraNames.some((extra) => extra === name)

const routeKey = (provider: string, model: string): string => `${provider} ${model.toLowerCase()}`

/** undefined = not listed, or with a price that cannot be charged, such as a fee per request. */
function priceOn(model: ListedModel | undefined, day: string): PriceList | undefined {
  try {
    return model && listedPrice(model, day)
  } catch {
    return undefined
  }
}

/** OpenRouter uses negative prices for "it depends". */
function fromPerToken(pricing: { prompt: string; completion: string; input_cache_read?: string | undefined }) {
  const [input, output] = [perMillion(pricing.prompt), perMillion(pricing.completion)]
  const cached = perMillion(pricing.input_cache_read)
  if (input === undefined || output === undefined) return undefined
  if (Number(input) === 0 && Number(output) === 0) return 'free' as const
  return { input, output, ...(cached !== undefined && Number(cached) > 0 && { cache_read: cached }) }
}

/** 0.0000025 USD per token → `2.5` per million; undefined = not a price. */
export function perMillion(given: unknown): string | undefined {
  const value = typeof given === 'string' || typeof given === 'number' ? Number(given) : Number.NaN
  if (!(value >= 0)) return undefined
  return (value * 1e6).toFixed(6).replace(/\.?0+$/, '') || '0'
}

async function download(url: string): Promise<string> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) })
  if (!response.ok) throw new Error(`the address answers ${response.status}`)
  const bytes = await response.arrayBuffer()
  if (bytes.byteLength > bytesMax) throw new Error('it is larger than 16 MB')
  return new TextDecoder().decode(bytes)
}
