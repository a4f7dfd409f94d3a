// Handlers of the catalog, prices and the routing plan. A changed price is in effect here before the answer is sent;
// running requests keep the price they started with. A price in the configuration file can only be changed there.

import type { ModelPrice } from '../../api/catalog.ts'
import type { AnswerOf } from '../../api/client.ts'
import { listAnswer, listNameField } from '../../api/fields.ts'
import { priceFromEntry } from '../../catalog/entry.ts'
import type { Model } from '../../catalog/model.ts'
import { lostPrices, type Price, priceJumps, quantityOf, showPrice, showRate } from '../../catalog/price.ts'
import {
  countListUsers,
  deletePriceList,
  hasPriceList,
  markedUp,
  pricedAs,
  putPriceList,
  readPriceLists,
  showMarkup,
  soldBelowCost,
} from '../../catalog/price-lists.ts'
import {
  type DatedPrice,
  deletePriceOverride,
  type PriceInForce,
  putPriceOverride,
  readPriceHistory,
  readPriceOverrides,
  readUpdatedModels,
  renderStoredPrice,
} from '../../catalog/price-versions.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { Sql } from '../../store/sql.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import type { NumberedChange } from '../../tenancy/changes.ts'
import type { Act } from '../../tenancy/management.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Handlers } from './route.ts'

const renewRetryMs = 1000

export function catalogHandlers(deps: RouteDependencies) {
  return {
    getCatalog: {
      isPublic: () => deps.catalogIsPublic(),
      async run({ query: { limit, cursor = '', all } }) {
        const models = deps
          .catalog({ all: all === 'true' })
          .filter(({ id }) => id > cursor)
          .sort((a, b) => (a.id < b.id ? -1 : 1))
        const page = models.slice(0, limit)
        return listAnswer(page, page.length < models.length ? page.at(-1)?.id : undefined)
      },
    },
    async getPlan({ model, query: { surface } }) {
      const plan = deps.planOf(model, surface)
      if (!plan) throw new Failure('NOT_FOUND', `There is no model \`${model.slice(0, 100)}\`.`)
      const candidates = plan.candidates.map(({ place, upstreamModel, standing, waitMs, why = '', ...rest }) => ({
        ...rest,
        place: place ?? null,
        upstream_model: upstreamModel,
        why,
        state: standing.state,
        wait_ms: waitMs ?? null,
        fault: standing.why ?? null,
      }))
      return { model: plan.model, surface, mode: plan.mode, candidates }
    },
    ...priceHandlers(deps),
    ...priceListHandlers(deps),
  } satisfies Partial<Handlers>
}

function priceHandlers(deps: RouteDependencies) {
  return {
    async getPrice({ model, query: { list } }) {
      await findPrice(deps, model, list)
      return await priceAnswer(deps, { model, list }, [])
    },
    // Not a `write`: the answer waits until the committed price is in effect.
    async putPrice({ model, body, query: { list, allow_below_cost: mayBeBelow }, act }) {
      const before = await findPrice(deps, model, list)
      if (before.setter === 'file') throw managedByFile(model, before)
      const price = priceFromEntry(body)
      if (list !== undefined && !mayBeBelow) checkCosts(deps, ({ id }) => (id === model ? price : undefined))
      const recorded = await deps.database.transaction(async (sql) => {
        await putPriceOverride(sql, { list, modelId: model, price, setAt: act.at })
        const details = { price: showPrice(price), ...(list !== undefined && { list }) }
        await appendAudit(sql, { ...act, action: 'price.set', object: model, details })
        return await deps.changes.record(sql, { kind: 'price', id: model })
      })
      return await renewedAnswer(deps, { model, list }, recorded, before)
    },
    async updatePrices({ body, act }) {
      return await updatePrices(deps, body, act)
    },
    async resetPrice({ model, query: { list }, act }) {
      const before = await findPrice(deps, model, list)
      const recorded = await deps.database.transaction(async (sql) => {
        if (!(await deletePriceOverride(sql, model, list))) return undefined
        const details = list !== undefined && { details: { list } }
        await appendAudit(sql, { ...act, action: 'price.reset', object: model, ...details })
        return await deps.changes.record(sql, { kind: 'price', id: model })
      })
      if (!recorded) throw nothingSet(model)
      return await renewedAnswer(deps, { model, list }, recorded, before)
    },
  } satisfies Partial<Handlers>
}

interface PriceUpdate {
  readonly from: string
  readonly prices: readonly {
    readonly model: string
    readonly price: Parameters<typeof priceFromEntry>[0]
    readonly cost?: Parameters<typeof priceFromEntry>[0] | undefined
  }[]
  readonly accept_jumps?: boolean | undefined
  readonly dry_run?: boolean | undefined
}

/** Also for the daily update. */
export async function updatePrices(
  deps: Pick<RouteDependencies, 'database' | 'prices' | 'changes'>,
  { from, prices, accept_jumps: takesJumps = false, dry_run: isDry = false }: PriceUpdate,
  act: Act,
): Promise<AnswerOf<'updatePrices'>> {
  const { database, changes } = deps
  const updated = await readUpdatedModels(database.sql)
  const answer: AnswerOf<'updatePrices'> = { changed: [], held_back: [], unchanged: 0, unknown: [] }
  const accepted: { readonly model: string; readonly price: Price; readonly cost: Price | undefined }[] = []
  for (const { model, price: entry, cost } of prices) {
    const found = deps.prices.find(model)
    const price = priceFromEntry(entry)
    if (!found) answer.unknown.push(model)
    else if (found.price && renderStoredPrice(found.price) === renderStoredPrice(price)) answer.unchanged++
    else {
      const change = { model, before: found.price ? showPrice(found.price) : null, after: showPrice(price) }
      const why = heldBack(found, price, updated.has(model), takesJumps)
      if (why !== undefined) answer.held_back.push({ ...change, why })
      else {
        answer.changed.push(change)
        accepted.push({ model, price, cost: cost && priceFromEntry(cost) })
      }
    }
  }
  if (isDry || accepted.length === 0) return answer
  const recorded = await database.transaction(async (sql) => {
    for (const { model, price, cost } of accepted) {
      await putPriceOverride(sql, { modelId: model, price, setAt: act.at, updatedFrom: from, cost })
      const details = { price: showPrice(price), ...(cost && { cost: showPrice(cost) }), from }
      await appendAudit(sql, { ...act, action: 'price.update', object: model, details })
    }
    return await changes.record(sql, { kind: 'price', id: accepted[0]?.model ?? '' })
  })
  await putIntoForce(deps, recorded, 'The update')
  return answer
}

function heldBack(found: PriceInForce, price: Price, isUpdated: boolean, takesJumps: boolean): string | undefined {
  if (found.setter === 'file') return `the configuration file has its price (${found.source})`
  if (found.setter === 'api' && !isUpdated) return 'its price was set by hand; reset it to let updates change it'
  const jumps = found.price ? jumpWords(found.price, price) : []
  return jumps.length > 0 && !takesJumps ? jumps.join(' ') : undefined
}

/** A model, and a price list unless it is the catalog. */
interface PricedIn {
  readonly model: string
  readonly list: string | undefined
}

async function findPrice(
  { database, prices }: RouteDependencies,
  model: string,
  list: string | undefined,
): Promise<PriceInForce> {
  if (list !== undefined && !(await hasPriceList(database.sql, list))) throw noPriceList(list)
  const found = prices.find(model, list)
  if (!found) throw noModel(model)
  return found
}

async function renewedAnswer(
  deps: RouteDependencies,
  priced: PricedIn,
  recorded: NumberedChange,
  before: PriceInForce,
): Promise<ModelPrice> {
  await putIntoForce(deps, recorded, `The price of ${priced.model}`)
  const after = deps.prices.find(priced.model, priced.list)
  return await priceAnswer(deps, priced, before.price && after?.price ? jumpWords(before.price, after.price) : [])
}

async function putIntoForce(
  deps: Pick<RouteDependencies, 'prices' | 'changes'>,
  recorded: NumberedChange,
  what: string,
): Promise<void> {
  const isInForce = await deps.prices.renew()
  await deps.changes.tell(recorded)
  if (!isInForce) throw notInForceYet(what)
}

async function priceAnswer(
  { database, prices }: RouteDependencies,
  { model, list }: PricedIn,
  warnings: string[],
): Promise<ModelPrice> {
  // Read first: its version is then in the history, even if another price is set meanwhile.
  const found = prices.find(model, list)
  const history = await readPriceHistory(database.sql, pricedAs(model, list))
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
    const moved = `$${showRate(bucket, from)} → $${showRate(bucket, to)}`
    return `\`${bucket}\` changed more than tenfold: ${moved} per ${quantityOf(bucket)}.`
  })
  return [...jumps, ...lostPrices(before, after).map(({ name, so }) => `\`${name}\` no longer has a price: ${so}.`)]
}

function priceListHandlers(deps: RouteDependencies) {
  const { database, changes, prices } = deps
  return {
    listPriceLists: async () => listAnswer(await readLists(database.sql), undefined),
    async getPriceList({ list: name }) {
      const [list] = await readLists(database.sql, name)
      if (!list) throw noPriceList(name)
      const models = prices.models().flatMap(({ id, name: shown, routes }) => {
        const [catalog, listed] = [prices.find(id)?.price, prices.find(id, name)?.price]
        if (!catalog || !listed) return []
        return {
          model: id,
          name: shown,
          catalog_price: showPrice(catalog),
          price: showPrice(listed),
          is_explicit: Object.hasOwn(list.prices, id),
          routes: routes.map(({ providerId, upstreamModel, cost }) => ({
            provider: providerId,
            upstream_model: upstreamModel,
            cost: cost ? showPrice(cost) : null,
          })),
        }
      })
      return { ...list, models: models.sort((a, b) => (a.model < b.model ? -1 : 1)) }
    },
    // Not a `write`: the answer waits until the committed prices are in effect.
    async putPriceList({ list, body: { markup_percent: markup, allow_below_cost: mayBeBelow }, act }) {
      const name = listNameField.safeParse(list).data
      if (name === undefined)
        throw invalidRequest('The name of a price list must be a-z, 0-9 and -, at most 40 characters.')
      if (!mayBeBelow) {
        const explicit = (await readPriceOverrides(database.sql)).get(name)
        checkCosts(deps, ({ id, price }) => (price && !explicit?.has(id) ? markedUp(price, markup) : undefined))
      }
      const recorded = await database.transaction(async (sql) => {
        await putPriceList(sql, { name, markup, setAt: act.at })
        const details = { markup_percent: showMarkup(markup) }
        await appendAudit(sql, { ...act, action: 'price_list.set', object: name, details })
        return await changes.record(sql, { kind: 'price', id: name })
      })
      await putIntoForce(deps, recorded, `The price list ${name}`)
      const [answer] = await readLists(database.sql, name)
      if (!answer) throw noPriceList(name)
      return answer
    },
    async deletePriceList({ list, act }) {
      const recorded = await database.transaction(async (sql) => {
        const users = (await countListUsers(sql)).get(list) ?? 0
        if (users > 0) {
          throw invalidRequest(`${users} workspaces pay by the price list ${list}. Give them another list first.`)
        }
        if (!(await deletePriceList(sql, list))) throw noPriceList(list)
        await appendAudit(sql, { ...act, action: 'price_list.delete', object: list })
        return await changes.record(sql, { kind: 'price', id: list })
      })
      await prices.renew()
      await changes.tell(recorded)
    },
  } satisfies Partial<Handlers>
}

async function readLists(sql: Sql, name?: string): Promise<AnswerOf<'putPriceList'>[]> {
  const [lists, overrides, users] = [
    await readPriceLists(sql),
    await readPriceOverrides(sql),
    await countListUsers(sql),
  ]
  return lists
    .filter((list) => name === undefined || list.name === name)
    .map((list) => ({
      name: list.name,
      markup_percent: String(Number(list.markup) / 100),
      prices: Object.fromEntries([...(overrides.get(list.name) ?? [])].map(([id, price]) => [id, showPrice(price)])),
      workspaces: users.get(list.name) ?? 0,
      set_at: isoTime(list.setAt),
    }))
}

const shownMax = 3

/** Refuses prices below what a route costs. `priceOf`: the new price of a model, if it changes. */
function checkCosts({ prices }: RouteDependencies, priceOf: (model: Model) => Price | undefined): void {
  const below = prices.models().flatMap((model) => {
    const price = priceOf(model)
    return price ? soldBelowCost(model, price) : []
  })
  if (below.length === 0) return
  const more = below.length > shownMax ? ` and ${below.length - shownMax} more` : ''
  const message = `This would sell ${below.slice(0, shownMax).join(', ')}${more} below what the provider charges. Allow prices below cost (\`allow_below_cost\`) if that is intended, or correct the \`cost\` of the routes.`
  throw invalidRequest(message, 'allow_below_cost')
}

export function noPriceList(name: string): Failure {
  return new Failure('NOT_FOUND', `There is no price list \`${name.slice(0, 100)}\`. GET /api/price-lists lists them.`)
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

function notInForceYet(what: string): Failure {
  const message = `${what} is stored and takes effect as soon as the database answers; the log has the cause. Retry in a second.`
  return new Failure('OVERLOADED', message, { retryAfterMs: renewRetryMs })
}
