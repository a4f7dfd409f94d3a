// What calls on workspaces' own credentials cost: a share of each model's price. Such a fee is on record like any other
// price, under a name of its own, so that a charge of it can be recomputed too.

import type { Clock } from '../kernel/clock.ts'
import type { Database } from '../store/database.ts'
import { type Price, sharePrice } from './price.ts'
import { type PricedModel, recordPrices } from './price-versions.ts'

export interface Fee {
  readonly price: Price
  /** As charges carry it: `creator/model#own#1`, then `#2`. */
  readonly version: string
}

export interface RecordFeesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly models: readonly PricedModel[]
  /** Of the price, in hundredths of a percent. */
  readonly basisPoints: bigint
}

/** By model id; a model that is missing costs nothing on an own credential. */
export async function recordFees(options: RecordFeesOptions): Promise<ReadonlyMap<string, Fee>> {
  const { database, clock, models, basisPoints } = options
  if (basisPoints === 0n) return new Map()
  const shares = models.flatMap(({ id, price, source }) => {
    if (!price || price.free) return []
    return [{ id: nameOf(id), of: id, price: sharePrice(price, basisPoints), source: sourceOf(source, basisPoints) }]
  })
  const { versions } = await recordPrices({ database, clock, models: shares })
  return new Map(shares.map(({ id, of, price }) => [of, { price, version: versions.get(id) ?? '' }]))
}

/** No model's id has a `#`. */
function nameOf(modelId: string): string {
  return `${modelId}#own`
}

function sourceOf(source: string, basisPoints: bigint): string {
  return `${Number(basisPoints) / 100} % of ${source}`
}
