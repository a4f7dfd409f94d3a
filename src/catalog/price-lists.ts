// Price lists: prices that some workspaces pay instead of the catalog's. A list has a markup over the catalog and explicit
// prices of single models. Its prices are recorded as versions like all others, so that every charge can be recomputed.

import type { Clock } from '../kernel/clock.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import type { Model } from './model.ts'
import { bucketsBelow, type Price, sharePrice } from './price.ts'
import { overrideSource, type PricedModel, type PriceInForce, recordPrices } from './price-versions.ts'

/** Explicit prices of a list are in `price_overrides`. */
export interface PriceList {
  readonly name: string
  /** Over the catalog's prices, in hundredths of a percent; below 0 = a discount. */
  readonly markup: bigint
  readonly setAt: number
}

const whole = 10_000n

/** By name. */
export async function readPriceLists(sql: Sql): Promise<readonly PriceList[]> {
  const rows = await sql<{ name: string; markup: bigint; set_at: bigint }>`
    SELECT name, markup, set_at FROM price_lists ORDER BY name`
  return rows.map(({ name, markup, set_at }) => ({ name, markup, setAt: timeFromSql(set_at) }))
}

export async function hasPriceList(sql: Sql, name: string): Promise<boolean> {
  return (await sql`SELECT 1 FROM price_lists WHERE name = ${name}`).length > 0
}

export async function putPriceList(sql: Sql, { name, markup, setAt }: PriceList): Promise<void> {
  await sql`INSERT INTO price_lists ${sql([{ name, markup, set_at: timeToSql(setAt) }])}
    ON CONFLICT (name) DO UPDATE SET markup = excluded.markup, set_at = excluded.set_at`
}

/** How many workspaces pay by each list; lists without one are absent. */
export async function countListUsers(sql: Sql): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ price_list: string; users: bigint }>`SELECT price_list, COUNT(*) AS users FROM workspaces
    WHERE price_list IS NOT NULL GROUP BY price_list`
  return new Map(rows.map(({ price_list, users }) => [price_list, Number(users)]))
}

/** Also deletes its explicit prices. Returns false if there is no such list. Fails while a workspace pays by it. */
export async function deletePriceList(sql: Sql, name: string): Promise<boolean> {
  await sql`DELETE FROM price_overrides WHERE list = ${name}`
  return (await sql`DELETE FROM price_lists WHERE name = ${name} RETURNING name`).length > 0
}

/** The id for the versions of a model's price in a list: `creator/model#list-retail`. */
export function pricedAs(modelId: string, list: string | undefined): string {
  // No model id has a `#`.
  return list === undefined ? modelId : `${modelId}#list-${list}`
}

export type ListPrice = PriceInForce & { readonly price: Price; readonly version: string }

interface RecordListPricesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly models: readonly PricedModel[]
  readonly lists: readonly PriceList[]
  /** By list and model id. */
  readonly overrides: ReadonlyMap<string, ReadonlyMap<string, Price>>
}

/** The prices of every list, by its name and by model id. A model without a catalog price has no list price either. */
export async function recordListPrices(
  options: RecordListPricesOptions,
): Promise<ReadonlyMap<string, ReadonlyMap<string, ListPrice>>> {
  const { database, clock, models, lists, overrides } = options
  if (lists.length === 0) return new Map()
  const priced = lists.flatMap(({ name, markup }) =>
    models.flatMap((model) => {
      if (!model.price) return []
      const explicit = overrides.get(name)?.get(model.id)
      const setter = explicit ? ('api' as const) : ('markup' as const)
      const source = explicit ? overrideSource : `${showMarkup(markup)} % on ${model.source}`
      const price = explicit ?? markedUp(model.price, markup)
      return [{ list: name, of: model.id, id: pricedAs(model.id, name), price, source, setter }]
    }),
  )
  const { versions } = await recordPrices({ database, clock, models: priced })
  const prices = new Map(lists.map(({ name }) => [name, new Map<string, ListPrice>()]))
  for (const { list, of, id, price, source, setter } of priced) {
    prices.get(list)?.set(of, { price, source, setter, version: versions.get(id) ?? '' })
  }
  return prices
}

/** Rounded up to the pico-dollar per token. */
export function markedUp(price: Price, markup: bigint): Price {
  return price.free ? price : sharePrice(price, whole + markup)
}

/** `+20`, `-2.5` */
export function showMarkup(markup: bigint): string {
  return `${markup < 0n ? '' : '+'}${Number(markup) / 100}`
}

/** The buckets priced below the cost of the model's routes: `input of acme/large`. Routes with an unknown cost are ignored. */
export function soldBelowCost({ id, routes }: Pick<Model, 'id' | 'routes'>, price: Price): readonly string[] {
  const buckets = routes.flatMap(({ cost }) => (cost ? bucketsBelow(price, cost) : []))
  return [...new Set(buckets)].map((bucket) => `${bucket} of ${id}`)
}
