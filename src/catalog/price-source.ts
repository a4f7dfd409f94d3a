// A price list that the operator trusts, from a file or an address. Two forms: models with `id` and `price` as the
// configuration file has them (a newer models.json, or GET /api/catalog of another Tollgate), and OpenRouter's list with
// USD per token. Entries without a price are left out.

import { z } from 'zod'
import { type ModelEntry, modelEntrySchema } from './entry.ts'

const timeoutMs = 30_000
const bytesMax = 16 * 1024 * 1024

export interface ListedPrice {
  readonly model: string
  readonly price: NonNullable<ModelEntry['price']>
}

const perToken = z.string().regex(/^[0-9.]+(e-?[0-9]+)?$/i)
const itemSchema = z.looseObject({
  id: z.string(),
  price: modelEntrySchema.shape.price.nullish(),
  pricing: z
    .looseObject({ prompt: z.string(), completion: z.string(), input_cache_read: perToken.optional() })
    .nullish(),
})
const listSchema = z.union([z.array(itemSchema), z.object({ data: z.array(itemSchema) })])

/** Throws if it cannot be read or is not such a list. */
export async function readPriceSource(from: string): Promise<readonly ListedPrice[]> {
  return parsePriceList(/^https?:/.test(from) ? await download(from) : await Bun.file(from).text())
}

export function parsePriceList(text: string): readonly ListedPrice[] {
  const read = listSchema.safeParse(JSON.parse(text))
  if (!read.success) throw new Error(z.prettifyError(read.error).split('\n').slice(0, 3).join(' '))
  const items = Array.isArray(read.data) ? read.data : read.data.data
  return items.flatMap(({ id, price, pricing }) => {
    const found = price ?? (pricing ? fromPerToken(pricing) : undefined)
    return found === undefined ? [] : [{ model: id, price: found }]
  })
}

/** Negative prices are OpenRouter's word for "it depends". */
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
