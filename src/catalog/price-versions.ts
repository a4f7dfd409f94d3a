// Every price that was ever in force, as a row with a version: a changed price makes a new one, so that a charge can be
// recomputed for ever. Rows are only added. Several processes may do this at once, each with a configuration of its own.

import { assert } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import type { Model } from './model.ts'
import type { Price } from './price.ts'
import { type PriceJump, priceJumps } from './price-jump.ts'
import { parseStoredPrice, renderStoredPrice } from './stored-price.ts'

/** × 5 columns = 640 parameters. */
const portionMax = 128
/** Each further try means that another process has added a price of the same model in between. */
const triesMax = 10

/** What is needed of a model; one without a price has no version. */
export type PricedModel = Pick<Model, 'id' | 'price' | 'source'>

export interface RecordPricesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly models: Iterable<PricedModel>
}

/** Worth a warning, not a refusal. */
export interface MovedPrice extends PriceJump {
  readonly modelId: string
}

export interface RecordedPrices {
  /** By model id, the version under which its present price is kept: `creator/model#1`, then `#2`. */
  readonly versions: ReadonlyMap<string, string>
  /** Prices that this call has changed by more than ten times, one for each bucket. */
  readonly moved: readonly MovedPrice[]
}

export async function recordPrices({ database, clock, models }: RecordPricesOptions): Promise<RecordedPrices> {
  const versions = new Map<string, string>()
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
      if (before?.json === wanted.json) versions.set(wanted.modelId, before.version)
      else changes.push({ ...wanted, before, version: `${wanted.modelId}#${numberOf(before) + 1}` })
    }
    const added = await insertChanges(database, changes, clock.now())
    for (const change of changes) {
      // Not added: another process has just taken the number. What it wrote is looked at in the next round.
      if (!added.has(change.version)) continue
      versions.set(change.modelId, change.version)
      moved.push(...jumpsOf(change))
    }
    for (const id of versions.keys()) open.delete(id)
  }
  return { versions, moved }
}

/** A price as it was once in force. */
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

/** The number in `creator/model#3`; 0 where there is none yet. */
function numberOf(stored: Stored | undefined): number {
  return stored ? Number(stored.version.slice(stored.version.lastIndexOf('#') + 1)) : 0
}

/** Answers with the versions that were new. */
async function insertChanges(
  database: Database,
  changes: readonly Change[],
  now: number,
): Promise<ReadonlySet<string>> {
  if (changes.length === 0) return new Set()
  // Sorted, so that two processes wait for each other in one direction only.
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
  // Always after the one before, also when the clock was set back: the latest is found by this.
  const soonest = (before?.effectiveFrom ?? -1n) + 1n
  const effectiveFrom = timeToSql(now) > soonest ? timeToSql(now) : soonest
  return { version, model_id: modelId, price: json, source, effective_from: effectiveFrom }
}

function jumpsOf({ modelId, price, before }: Change): readonly MovedPrice[] {
  if (!before) return []
  return priceJumps(parseStoredPrice(before.json), price).map((jump) => ({ modelId, ...jump }))
}
