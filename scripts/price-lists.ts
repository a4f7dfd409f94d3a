// Prices of the genai-prices package, for the catalog's writer only.

import { findProvider } from '@pydantic/genai-prices'
import { listedModelSchema, listedPrice, type PriceList } from '../src/catalog/listed-prices.ts'

/** undefined = the package does not have it. Ids are compared whole: its own matching takes Sonnet 5.5 for Sonnet 5. */
export function packagePrice(provider: string, modelId: string, day: string): PriceList | undefined {
  const models = findProvider({ providerId: provider })?.models ?? []
  const info = models.find(({ id }) => id.toLowerCase() === modelId.toLowerCase())
  return info === undefined ? undefined : listedPrice(listedModelSchema.parse(info), day)
}
