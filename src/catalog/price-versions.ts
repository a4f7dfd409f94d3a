// Prices in the database. Every price that was ever in effect is a row with a version; rows are only added, so that a charge
// can be recomputed at any time. Prices set through the management API override the catalog. Calls on workspaces' own
// credentials cost a share of the price. Several processes may record prices at the same time, each from its own
// configuration.

import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { assert } from '../kernel/failure.ts'
import type { Nano, Pico } from '../kernel/money.ts'
import { factorNames, factors, tierNames, tokenBuckets, tokensMax, type Usage, unitBuckets } from '../kernel/usage.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import type { Model, Route } from './model.ts'
import {
  type Price,
  type PriceJump,
  parseFactor,
  priceJumps,
  priceUsage,
  readPrice,
  sharePrice,
  writePrice,
} from './price.ts'

/** × 5 columns = 640 parameters. */
const portionMax = 128
/** A retry is needed if another process adds a price of the same model in between. */
const triesMax = 10

/** The members of a model that decide its price version; a model without a price has none. */
export type PricedModel = Pick<Model, 'id' | 'price' | 'source'>

export interface RecordPricesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly models: Iterable<PricedModel>
}

/** Causes a warning, not an error. */
export interface MovedPrice extends PriceJump {
  readonly modelId: string
}

export interface RecordedPrices {
  /** By model id, the version of its current price: `creator/model#1`, then `#2`. */
  readonly versions: ReadonlyMap<string, string>
  /** By model id, when its current price took effect. */
  readonly since: ReadonlyMap<string, number>
  /** Prices that this call changed more than tenfold, one for each bucket. */
  readonly moved: readonly MovedPrice[]
}

export async function recordPrices({ database, clock, models }: RecordPricesOptions): Promise<RecordedPrices> {
  const versions = new Map<string, string>()
  const since = new Map<string, number>()
  const moved: MovedPrice[] = []
  const open = new Map<string, Wanted>()
  for (const { id, price, source } of models) {
    if (price) open.set(id, { modelId: id, price, json: renderStoredPrice(price), source })
  }
  for (let tries = 1; open.size > 0; tries++) {
    assert(tries <= triesMax, 'prices are added faster by others than they can be read')
    const latest = await readLatest(database.sql)
    const changes: Change[] = []
    for (const wanted of open.values()) {
      const before = latest.get(wanted.modelId)
      if (before?.json === wanted.json) {
        versions.set(wanted.modelId, before.version)
        since.set(wanted.modelId, timeFromSql(before.effectiveFrom))
      } else changes.push({ ...wanted, before, version: `${wanted.modelId}#${numberOf(before) + 1}` })
    }
    const now = clock.now()
    const added = await insertChanges(database, changes, now)
    for (const change of changes) {
      // Not added, because another process has just taken the number. The next round reads its row.
      if (!added.has(change.version)) continue
      versions.set(change.modelId, change.version)
      since.set(change.modelId, now)
      moved.push(...jumpsOf(change))
    }
    for (const id of versions.keys()) open.delete(id)
  }
  return { versions, since, moved }
}

/** A price that was in effect once. */
export interface PriceVersion {
  readonly price: Price
  readonly source: string
  readonly effectiveFrom: number
}

export async function readPriceVersion({ sql }: Database, version: string): Promise<PriceVersion | undefined> {
  const [row] = await sql<{
    price: string
    source: string
    effective_from: bigint
  }>`SELECT price, source, effective_from
    FROM prices WHERE version = ${version}`
  if (!row) return undefined
  return { price: parseStoredPrice(row.price), source: row.source, effectiveFrom: timeFromSql(row.effective_from) }
}

interface Wanted {
  readonly modelId: string
  readonly price: Price
  readonly json: string
  readonly source: string
}

interface Stored {
  readonly version: string
  readonly json: string
  readonly effectiveFrom: bigint
}

interface Change extends Wanted {
  readonly version: string
  readonly before: Stored | undefined
}

async function readLatest(sql: Sql): Promise<ReadonlyMap<string, Stored>> {
  const rows = await sql<{ model_id: string; version: string; price: string; effective_from: bigint }>`
    SELECT model_id, version, price, effective_from FROM prices WHERE NOT EXISTS (SELECT 1 FROM prices later
      WHERE later.model_id = prices.model_id AND later.effective_from > prices.effective_from)`
  return new Map(
    rows.map((row) => [row.model_id, { version: row.version, json: row.price, effectiveFrom: row.effective_from }]),
  )
}

/** The number in `creator/model#3`; 0 = there is none yet. */
function numberOf(stored: Stored | undefined): number {
  return stored ? Number(stored.version.slice(stored.version.lastIndexOf('#') + 1)) : 0
}

/** Returns the versions that were added. */
async function insertChanges(
  database: Database,
  changes: readonly Change[],
  now: number,
): Promise<ReadonlySet<string>> {
  if (changes.length === 0) return new Set()
  // Sorted, so that two processes lock the rows in the same order and cannot deadlock.
  const rows = [...changes].sort((a, b) => (a.version < b.version ? -1 : 1)).map((change) => columnsOf(change, now))
  return await database.transaction(async (sql) => {
    const added = new Set<string>()
    for (let from = 0; from < rows.length; from += portionMax) {
      const inserted = await sql<{ version: string }>`INSERT INTO prices ${sql(rows.slice(from, from + portionMax))}
        ON CONFLICT DO NOTHING RETURNING version`
      for (const { version } of inserted) added.add(version)
    }
    return added
  })
}

function columnsOf({ version, modelId, json, source, before }: Change, now: number) {
  // Always later than the previous one, even if the clock was set back: the latest version is found by this time.
  const soonest = (before?.effectiveFrom ?? -1n) + 1n
  const effectiveFrom = timeToSql(now) > soonest ? timeToSql(now) : soonest
  return { version, model_id: modelId, price: json, source, effective_from: effectiveFrom }
}

function jumpsOf({ modelId, price, before }: Change): readonly MovedPrice[] {
  if (!before) return []
  return priceJumps(parseStoredPrice(before.json), price).map((jump) => ({ modelId, ...jump }))
}

// The stored form of a price

const pico = z.string().regex(/^(0|[1-9][0-9]{0,17})$/)
const storedRow = z.strictObject(
  Object.fromEntries(tokenBuckets.map(({ bucket, partOf }) => [bucket, partOf === undefined ? pico : pico.optional()])),
)
const storedTier = storedRow.extend({ over: z.record(z.string(), storedRow).optional() })
const storedSchema = z.union([
  z.literal('free'),
  storedTier.extend({
    ...Object.fromEntries(unitBuckets.map(({ bucket }) => [bucket, pico.optional()])),
    ...Object.fromEntries(factorNames.map((name) => [name, z.string().refine(parseFactor).optional()])),
    tiers: z.strictObject(Object.fromEntries(tierNames.map((name) => [name, storedTier.optional()]))).optional(),
  }),
])

/** JSON with pico-dollars as decimal strings. Equal prices give equal texts, so that texts can be compared. */
export function renderStoredPrice(price: Price): string {
  return JSON.stringify(writePrice(price, ({ picoDollarsPerUnit }) => String(picoDollarsPerUnit)))
}

/** Throws on text that renderStoredPrice did not write. */
export function parseStoredPrice(json: string): Price {
  return readPrice(storedSchema.parse(JSON.parse(json)), (_, text) => BigInt(text) as Pico)
}

// Prices set through the management API

/** The source of such a price; others have `built in`, or a file and its line. */
export const overrideSource = 'management API'

/** The table has all of them; no view shows more. */
const historyMax = 100

export interface PriceOverride {
  /** Absent = the catalog. */
  readonly list?: string | undefined
  readonly modelId: string
  readonly price: Price
  readonly setAt: number
  /** Where an update read it; absent = set by hand. */
  readonly updatedFrom?: string
  /** The cost of the routes, if an update knows it. */
  readonly cost?: Price | undefined
}

/** Models of the catalog whose price an update has set. */
export async function readUpdatedModels(sql: Sql): Promise<ReadonlySet<string>> {
  const rows = await sql<{ model_id: string }>`SELECT model_id FROM price_overrides
    WHERE list = '' AND updated_from IS NOT NULL`
  return new Set(rows.map(({ model_id }) => model_id))
}

/** By list (`''` = the catalog) and model id, including models that are not in the catalog now. */
export async function readPriceOverrides(sql: Sql): Promise<ReadonlyMap<string, ReadonlyMap<string, Price>>> {
  const rows = await sql<{ list: string; model_id: string; price: string }>`
    SELECT list, model_id, price FROM price_overrides`
  const lists = new Map<string, Map<string, Price>>()
  for (const { list, model_id, price } of rows) {
    const prices = lists.get(list) ?? new Map<string, Price>()
    lists.set(list, prices.set(model_id, parseStoredPrice(price)))
  }
  return lists
}

/** By model id: the cost of the routes, as set by an update. */
export async function readRouteCosts(sql: Sql): Promise<ReadonlyMap<string, Price>> {
  const rows = await sql<{ model_id: string; cost: string }>`SELECT model_id, cost FROM price_overrides
    WHERE list = '' AND cost IS NOT NULL`
  return new Map(rows.map(({ model_id, cost }) => [model_id, parseStoredPrice(cost)]))
}

export async function putPriceOverride(sql: Sql, override: PriceOverride): Promise<void> {
  const { list = '', modelId, price, setAt, updatedFrom = null, cost } = override
  const set = { set_at: timeToSql(setAt), updated_from: updatedFrom, cost: cost ? renderStoredPrice(cost) : null }
  const row = { list, model_id: modelId, price: renderStoredPrice(price), ...set }
  await sql`INSERT INTO price_overrides ${sql([row])}
    ON CONFLICT (list, model_id) DO UPDATE SET price = excluded.price, set_at = excluded.set_at,
    updated_from = excluded.updated_from, cost = excluded.cost`
}

/** False: there was none. */
export async function deletePriceOverride(sql: Sql, modelId: string, list = ''): Promise<boolean> {
  const rows = await sql`DELETE FROM price_overrides WHERE list = ${list} AND model_id = ${modelId} RETURNING model_id`
  return rows.length > 0
}

/** `catalog`: built in, or found on this machine. `markup`: the price of the catalog and the markup of a price list. */
export type PriceSetter = 'file' | 'api' | 'catalog' | 'markup'

export interface LaidPrices {
  /** With the prices in effect. */
  readonly models: readonly Model[]
  setterOf(modelId: string): PriceSetter
  /** Models whose override has no effect, because the file has a price. */
  readonly idle: readonly Model[]
}

/**
 * `pricedByFile`: ids of the models that have a price in the configuration file. `costs`: by model id, the cost of routes
 * that have no cost in the file.
 */
export function layPriceOverrides(
  models: readonly Model[],
  overrides: ReadonlyMap<string, Price> = new Map(),
  { pricedByFile, costs }: { readonly pricedByFile: ReadonlySet<string>; readonly costs: ReadonlyMap<string, Price> },
): LaidPrices {
  const setterOf = (id: string): PriceSetter => (pricedByFile.has(id) ? 'file' : overrides.has(id) ? 'api' : 'catalog')
  return {
    models: models.map((model) => {
      const price = setterOf(model.id) === 'api' ? overrides.get(model.id) : undefined
      if (price === undefined) return model
      const cost = costs.get(model.id)
      // A built-in route costs the built-in price.
      const routes = model.routes.map((route) => (cost && route.cost === model.price ? { ...route, cost } : route))
      return { ...model, price, routes }
    }),
    setterOf,
    idle: models.filter(({ id }) => pricedByFile.has(id) && overrides.has(id)),
  }
}

/** The current price of a model, and where it comes from. */
export interface PriceInForce {
  /** undefined = it has no price and cannot be called. */
  readonly price: Price | undefined
  readonly setter: PriceSetter
  /** `management API`, `built in`, or the file and line of the entry. */
  readonly source: string
  /** undefined = there is no price. */
  readonly version: string | undefined
}

export interface DatedPrice extends PriceVersion {
  readonly version: string
}

/** Every price the model had, newest first. Each was in effect until the next one. */
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

// What routes cost

/** The models with the version of each route's cost. A cost that is the price of the model has the version of that price. */
export async function recordCosts({
  database,
  clock,
  models,
  versions,
}: Omit<RecordPricesOptions, 'models'> & {
  readonly models: readonly Model[]
  /** Of the prices of the models. */
  readonly versions: ReadonlyMap<string, string>
}): Promise<readonly Model[]> {
  const others: PricedModel[] = []
  const seen = new Map<Price, string>()
  const textOf = (price: Price) => {
    const text = seen.get(price) ?? renderStoredPrice(price)
    seen.set(price, text)
    return text
  }
  const isPriceOf = ({ price }: Model, cost: Price) => price !== undefined && textOf(price) === textOf(cost)
  // No model id has a `#`.
  const idOf = ({ id }: Model, { providerId, upstreamModel }: Route) => `${id}#cost:${providerId}/${upstreamModel}`
  for (const model of models) {
    for (const route of model.routes) {
      const { cost } = route
      if (cost && !isPriceOf(model, cost)) others.push({ id: idOf(model, route), price: cost, source: model.source })
    }
  }
  const recorded = await recordPrices({ database, clock, models: others })
  return models.map((model) => {
    const routes = model.routes.map((route) => {
      if (!route.cost) return route
      const isPrice = isPriceOf(model, route.cost)
      return { ...route, costVersion: isPrice ? versions.get(model.id) : recorded.versions.get(idOf(model, route)) }
    })
    return { ...model, routes }
  })
}

// Fees for calls on own credentials

export interface Fee {
  readonly price: Price
  /** As recorded with charges: `creator/model#own#1`, then `#2`. */
  readonly version: string
}

export interface RecordFeesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly models: readonly PricedModel[]
  /** Share of the price, in hundredths of a percent. */
  readonly basisPoints: bigint
}

/** By model id. A model that is missing costs nothing on an own credential. */
export async function recordFees(options: RecordFeesOptions): Promise<ReadonlyMap<string, Fee>> {
  const { database, clock, models, basisPoints } = options
  if (basisPoints === 0n) return new Map()
  const shares = models.flatMap(({ id, price, source }) => {
    if (!price || price.free) return []
    const share = `${Number(basisPoints) / 100} % of ${source}`
    // No model id has a `#`.
    return [{ id: `${id}#own`, of: id, price: sharePrice(price, basisPoints), source: share }]
  })
  const { versions } = await recordPrices({ database, clock, models: shares })
  return new Map(shares.map(({ id, of, price }) => [of, { price, version: versions.get(id) ?? '' }]))
}

// Recomputing charges

const tokens = z.int().min(0).max(tokensMax)

const counts = Object.fromEntries(
  tokenBuckets.map(({ count, partOf }) => [count, partOf === undefined ? tokens : tokens.optional()]),
)
/** Only the members that decide the price. */
const usageSchema = z.object({
  ...counts,
  ...Object.fromEntries(unitBuckets.map(({ count }) => [count, tokens.optional()])),
  ...Object.fromEntries(factorNames.map((name) => [factors[name].flag, z.literal(true).optional()])),
  tier: z.enum([...tierNames, 'standard']).optional(),
  summaries: z.array(z.object(counts)).optional(),
})

/** undefined = the version does not exist, or one of the two texts is invalid. */
export type RecomputeCharge = (priceVersion: string, usageJson: string) => Nano | undefined

/** Reads every price that was ever in effect: about a hundred bytes each, and far fewer than charges. */
export async function readRecomputeCharge(sql: Sql): Promise<RecomputeCharge> {
  const rows = await sql<{ version: string; price: string }>`SELECT version, price FROM prices`
  const texts = new Map(rows.map((row) => [row.version, row.price]))
  const prices = new Map<string, Price | undefined>()
  const priceOf = (version: string): Price | undefined => {
    if (!prices.has(version)) prices.set(version, parsePrice(texts.get(version)))
    return prices.get(version)
  }
  return (version, usageJson) => {
    const price = priceOf(version)
    const usage = parseUsage(usageJson)
    return price && usage && priceUsage(price, usage)
  }
}

function parsePrice(json: string | undefined): Price | undefined {
  try {
    return json === undefined ? undefined : parseStoredPrice(json)
  } catch {
    return undefined
  }
}

function parseUsage(json: string): Usage | undefined {
  try {
    return { ...usageSchema.parse(JSON.parse(json)), source: 'reported' } as unknown as Usage
  } catch {
    return undefined
  }
}
