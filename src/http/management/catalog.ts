// Handlers of the catalog, prices and the routing plan. A changed price is in effect here before the answer is sent;
// running requests keep the price they started with. A price in the configuration file can only be changed there.

import type { ModelPrice } from '../../api/catalog.ts'
import { listAnswer } from '../../api/fields.ts'
import { operations } from '../../api/operations.ts'
import { priceFromEntry } from '../../catalog/entry.ts'
import { lostPrices, type Price, priceJumps, showPrice } from '../../catalog/price.ts'
import {
  type DatedPrice,
  deletePriceOverride,
  type PriceInForce,
  putPriceOverride,
  readPriceHistory,
} from '../../catalog/price-versions.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { formatPrice } from '../../kernel/money.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import type { NumberedChange } from '../../tenancy/changes.ts'
import type { RouteDependencies } from './dependencies.ts'
import { implement, type Route } from './route.ts'

const renewRetryMs = 1000

export function catalogRoutes(deps: RouteDependencies): readonly Route[] {
  return [
    implement(operations.getCatalog, {
      isPublic: () => deps.catalogIsPublic(),
      async run({ query: { limit, cursor = '' } }) {
        const models = deps
          .catalog()
          .filter(({ id }) => id > cursor)
          .sort((a, b) => (a.id < b.id ? -1 : 1))
        const page = models.slice(0, limit)
        return listAnswer(page, page.length < models.length ? page.at(-1)?.id : undefined)
      },
    }),
    implement(operations.getPlan, {
      async run({ model, query: { surface } }) {
        const plan = deps.planOf(model, surface)
        if (!plan) throw new Failure('NOT_FOUND', `There is no model \`${model.slice(0, 100)}\`.`)
        const candidates = plan.candidates.map(({ place, provider, upstreamModel, dialect, lane, why = '' }) => ({
          place: place ?? null,
          provider,
          upstream_model: upstreamModel,
          dialect,
          lane,
          why,
        }))
        return { model: plan.model, surface, mode: plan.mode, candidates }
      },
    }),
    ...priceRoutes(deps),
  ]
}

function priceRoutes(deps: RouteDependencies): readonly Route[] {
  return [
    implement(operations.getPrice, {
      async run({ model }) {
        if (!deps.prices.find(model)) throw noModel(model)
        return await priceAnswer(deps, model, [])
      },
    }),
    implement(operations.putPrice, {
      // Not a `write`: the answer waits until the committed price is in effect.
      async run({ model, body, act }) {
        const before = deps.prices.find(model)
        if (!before) throw noModel(model)
        if (before.setter === 'file') throw managedByFile(model, before)
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
    implement(operations.resetPrice, {
      async run({ model, act }) {
        const before = deps.prices.find(model)
        if (!before) throw noModel(model)
        const recorded = await deps.database.transaction(async (sql) => {
          if (!(await deletePriceOverride(sql, model))) return undefined
          await appendAudit(sql, { ...act, action: 'price.reset', object: model })
          return await deps.changes.record(sql, { kind: 'price', id: model })
        })
        if (!recorded) throw nothingSet(model)
        return await renewedAnswer(deps, recorded, before)
      },
    }),
  ]
}

async function renewedAnswer(
  deps: RouteDependencies,
  recorded: NumberedChange,
  before: PriceInForce,
): Promise<ModelPrice> {
  const { id: model } = recorded.change
  const isInForce = await deps.prices.renew()
  await deps.changes.tell(recorded)
  if (!isInForce) throw notInForceYet(model)
  const after = deps.prices.find(model)
  return await priceAnswer(deps, model, before.price && after?.price ? jumpWords(before.price, after.price) : [])
}

async function priceAnswer(
  { database, prices }: RouteDependencies,
  model: string,
  warnings: string[],
): Promise<ModelPrice> {
  // Read first: its version is then in the history, even if another price is set meanwhile.
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
    return `\`${bucket}\` changed more than tenfold: ${moved} per million tokens.`
  })
  return [...jumps, ...lostPrices(before, after).map(({ name, so }) => `\`${name}\` no longer has a price: ${so}.`)]
}

function noModel(model: string): Failure {
  const shown = model.length > 100 ? `${model.slice(0, 100)}…` : model
  return new Failure('NOT_FOUND', `There is no model ${shown}. GET /api/catalog lists them.`)
}

function managedByFile(model: string, { source }: PriceInForce): Failure {
  return invalidRequest(`The price of ${model} is managed by the configuration file (${source}); change it there.`)
}

function nothingSet(model: string): Failure {
  return new Failure('NOT_FOUND', `No price was set for ${model} here, so there is nothing to reset.`)
}

function notInForceYet(model: string): Failure {
  const message = `The price of ${model} is stored and takes effect as soon as the database answers; the log has the cause. Retry in a second.`
  return new Failure('OVERLOADED', message, { retryAfterMs: renewRetryMs })
}
