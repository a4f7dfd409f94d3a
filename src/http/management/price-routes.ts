// What a model costs, read and changed while running. A change is in force here before it is answered; requests that run
// keep the price they began with. A price that stands in the configuration file is changed there and nowhere else.

import { z } from 'zod'
import { modelEntrySchema, priceFromEntry } from '../../catalog/entry.ts'
import { hasAudioPrice, type Price } from '../../catalog/price.ts'
import { bucketNames, priceJumps } from '../../catalog/price-jump.ts'
import {
  type DatedPrice,
  deletePriceOverride,
  type PriceInForce,
  putPriceOverride,
  readPriceHistory,
} from '../../catalog/price-overrides.ts'
import { showPrice } from '../../catalog/show-price.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { formatPrice } from '../../kernel/money.ts'
import type { Database } from '../../store/database.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import type { NumberedChange } from '../../tenancy/changes/change.ts'
import type { Changes } from '../../tenancy/changes/changes.ts'
import { time } from './answers.ts'
import { catalogModelSchema } from './catalog-answer.ts'
import { defineRoute, type Route } from './route.ts'

/** The prices in force in this process. */
export interface PriceDesk {
  /** undefined = there is no such model. */
  find(modelId: string): PriceInForce | undefined
  /** After a change was committed. False: it is not in force yet. */
  renew(): Promise<boolean>
}

export interface PriceDependencies {
  readonly database: Database
  readonly prices: PriceDesk
  /** Other replicas hear of a price with its commit, and renew their own desks: nothing else would make them. */
  readonly changes: Pick<Changes, 'record' | 'tell'>
}

const path = '/api/models/{model}/price'
const renewRetryMs = 1000
const priceField = catalogModelSchema.shape.price

const datedPriceSchema = z.object({
  version: z.string().describe('Charges name it: `creator/model#3`.'),
  price: priceField,
  source: z.string().describe('`management API`, `built in`, or the file and line of the entry.'),
  effective_from: time,
})

const priceAnswerSchema = z.object({
  model: z.string(),
  price: priceField,
  source: z.string().nullable().describe('Who says so: `management API`, `built in`, or a file and its line.'),
  version: z.string().nullable(),
  effective_from: time.nullable(),
  warnings: z.array(z.string()).describe('What may be a slip, such as a price that moved more than tenfold.'),
  history: z.array(datedPriceSchema).describe('Every price that was in force, newest first; each until the next one.'),
})

type PriceAnswer = z.input<typeof priceAnswerSchema>

export function priceRoutes(deps: PriceDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path,
      operation: 'getPrice',
      summary: 'Reads what a model costs, who says so, and every price it had, newest first.',
      answer: priceAnswerSchema,
      status: 200,
      async run({ model }) {
        const found = deps.prices.find(model)
        return found ? await priceAnswer(deps, model, []) : noModel(model)
      },
    }),
    defineRoute({
      method: 'PUT',
      path,
      operation: 'putPrice',
      summary: 'Sets what a model costs, from the next request on; requests that run keep their price.',
      body: modelEntrySchema.shape.price.unwrap(),
      example: { input: '2.50', output: '10.00', cache_read: '0.25' },
      answer: priceAnswerSchema,
      status: 200,
      // Not a `write`: the answer waits until the committed price is in force.
      async run({ model, body, act }) {
        const before = deps.prices.find(model)
        if (!before) return noModel(model)
        if (before.setter === 'file') return managedByFile(model, before)
        const price = priceFromEntry(body)
        const recorded = await deps.database.transaction(async (sql) => {
          await putPriceOverride(sql, { modelId: model, price, setAt: act.at })
          const details = { price: showPrice(price) }
          await appendAudit(sql, { ...act, action: 'price.set', object: model, details })
          return await deps.changes.record(sql, { kind: 'price', id: model })
        })
        return await renewedAnswer(deps, recorded, before)
      },
    }),
    defineRoute({
      method: 'DELETE',
      path,
      operation: 'resetPrice',
      summary: 'Takes back a price that was set, from the next request on: the built-in one holds again.',
      answer: priceAnswerSchema,
      status: 200,
      async run({ model, act }) {
        const before = deps.prices.find(model)
        if (!before) return noModel(model)
        const recorded = await deps.database.transaction(async (sql) => {
          if (!(await deletePriceOverride(sql, model))) return undefined
          await appendAudit(sql, { ...act, action: 'price.reset', object: model })
          return await deps.changes.record(sql, { kind: 'price', id: model })
        })
        return recorded ? await renewedAnswer(deps, recorded, before) : nothingSet(model)
      },
    }),
  ]
}

async function renewedAnswer(
  deps: PriceDependencies,
  recorded: NumberedChange,
  before: PriceInForce,
): Promise<PriceAnswer | Failure> {
  const { id: model } = recorded.change
  const isInForce = await deps.prices.renew()
  await deps.changes.tell(recorded)
  if (!isInForce) return notInForceYet(model)
  const after = deps.prices.find(model)
  return await priceAnswer(deps, model, before.price && after?.price ? jumpWords(before.price, after.price) : [])
}

async function priceAnswer(
  { database, prices }: PriceDependencies,
  model: string,
  warnings: string[],
): Promise<PriceAnswer> {
  // Taken first: its version is in the history by then, whatever else is set meanwhile.
  const found = prices.find(model)
  const history = await readPriceHistory(database.sql, model)
  const since = history.find(({ version }) => version === found?.version)?.effectiveFrom
  return {
    model,
    price: found?.price ? showPrice(found.price) : null,
    source: found?.price ? found.source : null,
    version: found?.version ?? null,
    effective_from: since === undefined ? null : isoTime(since),
    warnings,
    history: history.map(shownDatedPrice),
  }
}

function shownDatedPrice({ version, price, source, effectiveFrom }: DatedPrice) {
  return { version, price: showPrice(price), source, effective_from: isoTime(effectiveFrom) }
}

function jumpWords(before: Price, after: Price): string[] {
  const jumps = priceJumps(before, after).map(({ bucket, from, to }) => {
    const moved = `$${formatPrice(from)} → $${formatPrice(to)}`
    return `\`${bucketNames[bucket]}\` moved more than tenfold: ${moved} per million tokens.`
  })
  return [...jumps, ...lostWords(before, after)]
}

/** What becomes of what has no price of its own any more. */
const losses = [
  ['audioInput', 'sound costs as text'],
  ['audioCacheRead', 'sound costs as text'],
  ['audioOutput', 'sound costs as text'],
  ['webSearch', 'searches are not charged'],
  ['usOnly', 'work that is kept in the United States costs no more'],
] as const

/** Whoever sets a price for tokens may not know that there was another. */
function lostWords(before: Price, after: Price): string[] {
  if (after.free) return []
  const lost = losses.filter(([bucket]) => hasBucket(before, bucket) && !hasBucket(after, bucket))
  return lost.map(([bucket, so]) => `\`${nameOf(bucket)}\` has no price any more: ${so}.`)
}

type Loss = (typeof losses)[number][0]

function hasBucket(price: Price, bucket: Loss): boolean {
  if (bucket === 'webSearch' || bucket === 'usOnly') return price[bucket] !== undefined
  return hasAudioPrice(price, bucket)
}

function nameOf(bucket: Loss): string {
  if (bucket === 'usOnly') return 'us_only'
  return bucket === 'webSearch' ? 'web_search' : bucketNames[bucket]
}

function noModel(model: string): Failure {
  const shown = model.length > 100 ? `${model.slice(0, 100)}…` : model
  return new Failure('NOT_FOUND', `There is no model ${shown}. GET /api/catalog lists them.`)
}

function managedByFile(model: string, { source }: PriceInForce): Failure {
  return invalidRequest(`The price of ${model} is managed by the file (${source}); change it there.`)
}

function nothingSet(model: string): Failure {
  return new Failure('NOT_FOUND', `No price was set for ${model} here; there is nothing to take back.`)
}

function notInForceYet(model: string): Failure {
  const message = `The price of ${model} is stored and will be in force as soon as the database answers; the log has the cause. Ask again in a second.`
  return new Failure('OVERLOADED', message, { retryAfterMs: renewRetryMs })
}
