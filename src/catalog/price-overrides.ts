// Prices that were set while running: kept in the database, laid over what the catalog says. The configuration file comes
// first, so that file and API never fight over a price; what is in force is recorded by price-versions.ts, not here.

import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import type { Model } from './model.ts'
import type { Price } from './price.ts'
import type { PriceVersion } from './price-versions.ts'
import { parseStoredPrice, renderStoredPrice } from './stored-price.ts'

/** What stands as source of such a price, where others have `built in` or a file and its line. */
export const overrideSource = 'management API'

/** Nobody reads further back; the table has them all. */
const historyMax = 100

export interface PriceOverride {
  readonly modelId: string
  readonly price: Price
  readonly setAt: number
}

/** By model id; also of models that the catalog does not have at present. */
export async function readPriceOverrides(sql: Sql): Promise<ReadonlyMap<string, Price>> {
  const rows = await sql<{ model_id: string; price: string }>`SELECT model_id, price FROM price_overrides`
  return new Map(rows.map((row) => [row.model_id, parseStoredPrice(row.price)]))
}

export async function putPriceOverride(sql: Sql, { modelId, price, setAt }: PriceOverride): Promise<void> {
  const row = { model_id: modelId, price: renderStoredPrice(price), set_at: timeToSql(setAt) }
  await sql`INSERT INTO price_overrides ${sql([row])}
    ON CONFLICT (model_id) DO UPDATE SET price = excluded.price, set_at = excluded.set_at`
}

/** False: there was none. */
export async function deletePriceOverride(sql: Sql, modelId: string): Promise<boolean> {
  const rows = await sql`DELETE FROM price_overrides WHERE model_id = ${modelId} RETURNING model_id`
  return rows.length > 0
}

/** `catalog`: what the gateway brings along or finds on this machine. */
export type PriceSetter = 'file' | 'api' | 'catalog'

export interface LaidPrices {
  /** With the price in force. */
  readonly models: readonly Model[]
  setterOf(modelId: string): PriceSetter
  /** Models whose override is not in force, because the file has a price. */
  readonly idle: readonly Model[]
}

/** `pricedByFile`: ids of the models that have a price in the configuration file. */
export function layPriceOverrides(
  models: readonly Model[],
  overrides: ReadonlyMap<string, Price>,
  pricedByFile: ReadonlySet<string>,
): LaidPrices {
  const setterOf = (id: string): PriceSetter => (pricedByFile.has(id) ? 'file' : overrides.has(id) ? 'api' : 'catalog')
  return {
    models: models.map((model) =>
      setterOf(model.id) === 'api' ? { ...model, price: overrides.get(model.id) ?? model.price } : model,
    ),
    setterOf,
    idle: models.filter(({ id }) => pricedByFile.has(id) && overrides.has(id)),
  }
}

/** What a model costs now, and who says so. */
export interface PriceInForce {
  /** undefined = none, and the model cannot be called. */
  readonly price: Price | undefined
  readonly setter: PriceSetter
  /** `management API`, `built in`, or the file and line of the entry. */
  readonly source: string
  /** undefined where there is no price. */
  readonly version: string | undefined
}

export interface DatedPrice extends PriceVersion {
  readonly version: string
}

/** Every price of the model that was in force, newest first; each until the next one. */
export async function readPriceHistory(sql: Sql, modelId: string): Promise<readonly DatedPrice[]> {
  const rows = await sql<{ version: string; price: string; source: string; effective_from: bigint }>`
    SELECT version, price, source, effective_from FROM prices WHERE model_id = ${modelId}
    ORDER BY effective_from DESC LIMIT ${BigInt(historyMax)}`
  return rows.map(({ version, price, source, effective_from }) => ({
    version,
    price: parseStoredPrice(price),
    source,
    effectiveFrom: timeFromSql(effective_from),
  }))
}
