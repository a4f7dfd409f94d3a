// `tollgate models`, `tollgate route` and `tollgate prices`: what can be called, where a request would go, and what it
// costs. Prices for long prompts (`over`) are set through the API or in the configuration file.

import { resolve } from 'node:path'
import type { AnswerOf, BodyOf, ItemOf } from '../../api/client.ts'
import { causeName, modelStatus, routeStatus } from '../../api/route-state.ts'
import { readPriceSource } from '../../catalog/price-source.ts'
import {
  factorNames,
  factors,
  isTier,
  listedBuckets,
  tierNames,
  unitBuckets,
  unpricedText,
} from '../../kernel/usage.ts'
import type { ApiClient } from '../api-client.ts'
import { type CommandContext, type CommandDefinition, confirm, printResult, yesOption } from '../command.ts'
import { findProject, findWorkspace, missingModel } from '../lookup.ts'
import { answerCommand, listCommand } from '../operation-command.ts'
import { exitCodes, Refusal, tryTo, usageRefusal } from '../refusal.ts'
import { type Columns, cleanText, renderTable, shownCount, shownTime } from '../values.ts'

type CatalogModel = ItemOf<'getCatalog'>
type OfferedModel = ItemOf<'listProjectModels'>

/** A model of the catalog, or one that only a workspace's own provider keys make available. */
type ListedModel = Pick<CatalogModel, 'id' | 'name' | 'owned_by' | 'price' | 'tags' | 'source' | 'routes'> &
  Partial<CatalogModel> &
  Partial<Pick<OfferedModel, 'own_key' | 'own_providers'>>

/** Unknown values come last in every order; equal ones are ordered by id. */
const orders: Readonly<Record<string, (a: ListedModel, b: ListedModel) => number>> = {
  id: () => 0,
  price: (a, b) => priceRank(a) - priceRank(b),
  context: (a, b) => (b.context_tokens ?? 0) - (a.context_tokens ?? 0),
  newest: (a, b) => (b.released ?? '').localeCompare(a.released ?? ''),
}

function priceRank({ price }: ListedModel): number {
  return price === 'free' ? 0 : Number(price?.input ?? Number.MAX_VALUE)
}

const modelColumns: Columns<ListedModel> = [
  ['MODEL', ({ id }) => id],
  ['STATE', (model) => modelStatus({ callable: true, ...model }).text],
  ['IN $/M', inputPrice, 'right'],
  ['OUT $/M', ({ price }) => priceAt(price, 'output'), 'right'],
  ['CACHED $/M', ({ price }) => priceAt(price, 'cache_read'), 'right'],
  ['CONTEXT', ({ context_tokens }) => shownCount(context_tokens), 'right'],
  ['MAX OUT', ({ max_output_tokens }) => shownCount(max_output_tokens), 'right'],
  ['TAGS', ({ tags }) => tags.join(' ')],
  ['VIA', viaText],
]

function inputPrice({ price, own_key, routes }: ListedModel): string | undefined {
  const isPrivate = own_key === true && routes.length === 0
  return price === null && !isPrivate ? 'no price' : priceAt(price, 'input')
}

type Price = CatalogModel['price']
type PriceField = Exclude<keyof Exclude<Price, 'free' | null>, 'over' | 'tiers'>

export function priceAt(price: Price, field: PriceField): string | undefined {
  return price === 'free' ? 'free' : price?.[field]
}

/** `acme`, or `acme (cooldown 14 s)`. Own provider keys come first, because they are used first. */
function viaText({ own_providers = [], routes, off = [] }: ListedModel): string {
  const own = own_providers.map((provider) => `${provider} (own key)`)
  const shared = routes.map((route) => {
    const { level, text } = routeStatus(route)
    return level === 'ok' || level === 'off' ? route.provider : `${route.provider} (${text})`
  })
  const needed = off.map(({ provider, needs }) =>
    needs.length > 0 ? `set ${needs.join(' and ')} (${provider})` : `needs the workspace's own key (${provider})`,
  )
  return [...new Set([...own, ...shared, ...needed])].join(', ')
}

const models: CommandDefinition = {
  words: ['models'],
  summary: 'lists available models and their prices; needs no token',
  options: {
    filter: { value: 'TEXT', help: 'only ids and names that contain this' },
    tag: { value: 'LIST', isRepeatable: true, help: 'only models with all of these tags' },
    sort: { value: 'ORDER', help: `${Object.keys(orders).join(', ')} (id)` },
    project: { value: 'ID', help: 'only models its keys can call, also through own provider keys' },
    workspace: { value: 'ID', help: 'whose own provider keys count; optional if there is only one' },
    all: { help: 'also models whose providers are off, with the variable that enables them' },
  },
  examples: [
    'tollgate models',
    'tollgate models --filter claude --tag tools --sort price',
    'tollgate models --project web',
    'tollgate models --all --filter gpt',
  ],
  async run(context) {
    const { api, terminal, json, text, texts, isSet } = context
    const order = orders[text('sort') ?? 'id']
    if (order === undefined) {
      throw usageRefusal(`--sort must be one of ${Object.keys(orders).join(', ')}.`, 'tollgate models --sort price')
    }
    const catalog = await api.call('getCatalog', { isPublic: true, query: isSet('all') ? { all: 'true' } : {} })
    const visible = await visibleModels(api, catalog.data, text('project'), text('workspace'))
    const [wanted, tags] = [text('filter')?.toLowerCase() ?? '', texts('tag') ?? []]
    const data = visible.models
      .filter(({ id, name }) => `${id}\n${name}`.toLowerCase().includes(wanted))
      .filter((model) => tags.every((tag) => model.tags.includes(tag)))
      .toSorted((a, b) => order(a, b) || (a.id < b.id ? -1 : 1))
    printResult(context, { ...catalog, data }, () => renderTable(modelColumns, data, terminal))
    if (json) return
    if (data.length === 0) terminal.complain('No model matches.\n')
    if (visible.note !== undefined) terminal.complain(visible.note)
    if (!isSet('all')) terminal.complain('Models of providers that are off: tollgate models --all\n')
  },
}

interface VisibleModels {
  readonly models: readonly ListedModel[]
  /** Why own keys were not considered. */
  readonly note?: string
}

const severalWorkspaces = 'There are several workspaces. --workspace ID also lists the models of its provider keys.\n'

/**
 * With a project, exactly the models its keys can call; otherwise the catalog and what the workspace's own provider keys
 * add. Those are not in the catalog, which everyone may read.
 */
async function visibleModels(
  api: ApiClient,
  catalog: readonly CatalogModel[],
  project: string | undefined,
  workspace: string | undefined,
): Promise<VisibleModels> {
  const known = new Map(catalog.map((model) => [model.id, model]))
  const listed = (model: OfferedModel) => withOwnKey(known.get(model.id) ?? privateModel(model), model)
  if (project !== undefined) {
    const offered = await offeredModels(api, [await findProject(api, project, workspace)])
    return { models: offered.map(listed) }
  }
  const own = await tryTo(ownKeyModels(api, workspace))
  if (!(own instanceof Refusal)) {
    const ids = new Set(own.map(({ id }) => id))
    return { models: [...catalog.filter(({ id }) => !ids.has(id)), ...own.map(listed)] }
  }
  if (workspace !== undefined) throw own
  // The catalog is also for people without a token, and it is complete without own keys.
  return own.exit === exitCodes.usage ? { models: catalog, note: severalWorkspaces } : { models: catalog }
}

/** Each project has its own list; more projects than this would be too many calls. */
const projectsMax = 20

async function ownKeyModels(api: ApiClient, workspace: string | undefined): Promise<readonly OfferedModel[]> {
  const id = await findWorkspace(api, workspace)
  const credentials = await api.call('listCredentials', { id })
  if (credentials.data.length === 0) return []
  const projects = await api.list('listProjects', { id }, projectsMax)
  // A project without an allowlist can call what any other can.
  const open = projects.data.find((project) => project.models === null)
  const ids = (open ? [open] : projects.data).map((project) => project.id)
  return (await offeredModels(api, ids)).filter(({ own_key }) => own_key)
}

async function offeredModels(api: ApiClient, projectIds: readonly string[]): Promise<readonly OfferedModel[]> {
  const unique = new Map<string, OfferedModel>()
  for (const id of projectIds) {
    for (const model of (await api.call('listProjectModels', { id })).data) unique.set(model.id, model)
  }
  return [...unique.values()]
}

function withOwnKey(model: ListedModel, { own_key, own_providers }: OfferedModel): ListedModel {
  return own_key ? { ...model, callable: true, own_key, own_providers, off: [] } : model
}

/** Only its name is known here; its price is between the workspace and its provider. */
function privateModel({ id, owned_by }: OfferedModel): ListedModel {
  return { id, name: id, owned_by, price: null, tags: [], source: 'own key', routes: [] }
}

const routeColumns: Columns<AnswerOf<'getPlan'>['candidates'][number]> = [
  ['PLACE', ({ place }) => place, 'right'],
  ['STATE', ({ state, wait_ms, fault }) => routeStatus({ state, wait_ms, why: fault }).text],
  ['LAST FAULT', ({ fault }) => fault && causeName(fault)],
  'model',
  'provider',
  'upstream_model',
  'lane',
  'why',
]

const route = answerCommand({
  words: ['route'],
  summary: 'explains where a request for a model would go now; nothing is sent',
  examples: ['tollgate route sandbox/flaky', 'tollgate route anthropic/claude-opus-5.5 --surface messages'],
  operation: 'getPlan',
  arguments: [{ name: 'MODEL', parameter: 'model' }],
  options: {
    surface: {
      value: 'NAME',
      help: 'chat (the default), messages, responses or gemini: the API that the caller uses',
      field: 'surface',
    },
  },
  missing: ({ api }, { model = '' }) => missingModel(api, model),
  text: ({ candidates }, { terminal }) => renderTable(routeColumns, candidates, terminal),
})

type ModelPrice = AnswerOf<'getPrice'>

interface PriceOption {
  readonly value: string
  readonly help: string
  readonly field: PriceField
  /** Heading of its column in the history. */
  readonly title: string
  /** Its column is left out if no price has it. */
  readonly isRare: boolean
}

/** An option and a history column per bucket and factor: `--cache-read`, `CACHE READ $/M`. */
const priceOptions: Readonly<Record<string, PriceOption>> = Object.fromEntries([
  ...listedBuckets.map(({ bucket, label, meaning, partOf }) =>
    priceOption(bucket, 'USD', meaning, `${label} $/M`, partOf !== undefined),
  ),
  ...unitBuckets.map(({ bucket, meaning, quantity }) =>
    priceOption(bucket, 'USD', `${meaning}, per ${quantity}`, `$ per ${quantity}`, true),
  ),
  ...factorNames.map((name) =>
    priceOption(name, 'FACTOR', factors[name].meaning, `${name.replaceAll('_', ' ')} ×`, true),
  ),
])

function priceOption(field: PriceField, value: string, meaning: string, title: string, isRare: boolean) {
  const help = meaning.charAt(0).toLowerCase() + meaning.slice(1)
  return [field.replaceAll('_', '-'), { value, help, field, title: title.toUpperCase(), isRare }] as const
}

const typed = Object.fromEntries(Object.entries(priceOptions).map(([name, { field }]) => [field, `--${name}`]))

const listOption = { value: 'NAME', help: 'the price in this price list; absent = in the catalog' } as const
const belowCost = { help: 'accepts prices below what a route costs the operator' } as const

const setPrice: CommandDefinition = {
  words: ['prices', 'set'],
  summary: 'sets the price of a model in USD per million tokens, from the next request on',
  details: `Running requests keep their price. Without a cache price, cached tokens cost as much as input; without an audio price,
audio costs as much as text (from a cache: as other audio); without a factor,
work kept in the United States (inference_geo) has no surcharge. Requests for a service tier without a price are refused. A price in the configuration file can only be changed
there. ${unitBuckets.map((info) => `Without a price for ${info.unit}, ${unpricedText(info)}.`).join(' ')}`,
  positionals: [{ name: 'MODEL' }],
  options: {
    ...priceOptions,
    tier: { value: 'NAME', help: `the price of this service tier; the others stay: ${tierNames.join(', ')}` },
    free: { help: 'costs nothing' },
    list: listOption,
    'allow-below-cost': belowCost,
  },
  examples: [
    'tollgate prices set acme/large --input 2.50 --output 10 --cache-read 0.25',
    'tollgate prices set acme/large --input 3 --output 12 --list retail',
    'tollgate prices set acme/large --tier priority --input 5 --output 20',
    'tollgate prices set acme/small --free',
  ],
  async run(context) {
    const { api, first: model, text, isSet } = context
    const body = await readPrice(context)
    const query = { list: text('list'), ...(isSet('allow-below-cost') && { allow_below_cost: 'true' as const }) }
    await changePrice(context, () => api.call('putPrice', { model, query, body, typed }))
  },
}

const updatePrices: CommandDefinition = {
  words: ['prices', 'update'],
  summary: 'applies the prices of a list you trust, and holds back jumps',
  details: `SOURCE is a file or an https address with JSON: models with id and price as in the configuration file (such as the catalog of
another Tollgate, or models.json of a newer package), as OpenRouter lists them, or prices/data.json of genai-prices, which
also sets what built-in routes cost. Prices in the configuration file and those set by hand stay. A price that would
change more than tenfold, or to or from zero, is held back until --accept-jumps.
A gateway does the same every day with prices.update_from in its configuration.`,
  positionals: [{ name: 'SOURCE' }],
  options: {
    'dry-run': { help: 'only shows what would change' },
    'accept-jumps': { help: 'also applies what is held back as a jump' },
    yes: yesOption,
  },
  examples: [
    'tollgate prices update prices.json --dry-run',
    'tollgate prices update https://prices.example/models.json',
  ],
  async run(context) {
    const { api, terminal, json, first, isSet, inputs } = context
    const from = /^https?:/.test(first) ? first : resolve(inputs.cwd, first)
    const prices = [...(await tryReading(from, context.clock.now()))]
    const body = { from, prices, ...(isSet('accept-jumps') && { accept_jumps: true }) }
    const planned = await api.call('updatePrices', { body: { ...body, dry_run: true } })
    const isDry = isSet('dry-run') || planned.changed.length === 0
    if (!json) terminal.print(renderTable(updateColumns, planned.changed, terminal))
    if (!isDry) await confirm(context, `Change ${planned.changed.length} prices?`)
    const answer = isDry ? planned : await api.call('updatePrices', { body })
    if (json) return printResult(context, answer, () => '')
    for (const { model, why } of answer.held_back) {
      terminal.complain(`Held back: ${cleanText(model)}: ${cleanText(why)}\n`)
    }
    const { changed, unchanged, unknown } = answer
    const done = isSet('dry-run') ? 'would change' : 'changed'
    terminal.complain(
      `${changed.length} ${done}, ${unchanged} unchanged, ${unknown.length} for models that this gateway does not have.\n`,
    )
  },
}

async function tryReading(from: string, nowMs: number) {
  try {
    return await readPriceSource(from, nowMs)
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : undefined
    if (code === 'ENOENT') throw new Refusal(exitCodes.failed, `there is no file ${from}.`)
    const why = cleanText(thrown instanceof Error ? thrown.message : String(thrown))
    throw new Refusal(exitCodes.failed, `${from} cannot be used: ${why}`)
  }
}

const updateColumns: Columns<AnswerOf<'updatePrices'>['changed'][number]> = [
  'model',
  ['IN $/M', ({ before }) => priceAt(before, 'input'), 'right'],
  ['NEW', ({ after }) => priceAt(after, 'input'), 'right'],
  ['OUT $/M', ({ before }) => priceAt(before, 'output'), 'right'],
  ['NEW', ({ after }) => priceAt(after, 'output'), 'right'],
]

const resetPrice: CommandDefinition = {
  words: ['prices', 'reset'],
  summary: 'removes a price that was set; the built-in one applies from the next request on',
  positionals: [{ name: 'MODEL' }],
  options: { yes: yesOption, list: listOption },
  examples: ['tollgate prices reset acme/large', 'tollgate prices reset acme/large --list retail'],
  async run(context) {
    const { api, first: model, text } = context
    await confirm(context, `Reset the price of ${cleanText(model)}?`)
    await changePrice(context, () => api.call('resetPrice', { model, query: { list: text('list') } }))
  },
}

const noSuchModel = (model: string): Refusal =>
  new Refusal(exitCodes.notFound, `there is no model ${model}.`, 'tollgate models')

const priceHistory = answerCommand({
  words: ['prices', 'history'],
  summary: 'lists every price a model had, newest first',
  examples: ['tollgate prices history acme/large'],
  operation: 'getPrice',
  arguments: [{ name: 'MODEL', parameter: 'model' }],
  options: { list: { ...listOption, field: 'list' } },
  missing: (_context, { model = '' }) => noSuchModel(model),
  text: ({ history }, { terminal }) => renderTable(historyColumns(history), history, terminal),
  note: ({ price }, { first }) => (price === null ? `${cleanText(first)} has no price now.\n` : ''),
})

function historyColumns(history: ModelPrice['history']): Columns<ModelPrice['history'][number]> {
  const isUsed = (field: PriceField) =>
    history.some(({ price }) => price !== null && price !== 'free' && field in price)
  const shown = Object.values(priceOptions).filter(({ field, isRare }) => !isRare || isUsed(field))
  return [
    ['SINCE (UTC)', ({ effective_from }) => shownTime(effective_from)],
    'version',
    ...shown.map(({ field, title }): Columns<ModelPrice['history'][number]>[number] => {
      return [title, ({ price }) => priceAt(price, field), 'right']
    }),
    ...(history.some(({ price }) => price !== null && price !== 'free' && price.tiers)
      ? [['TIERS', ({ price }) => tierList(price)] as Columns<ModelPrice['history'][number]>[number]]
      : []),
    ['SET BY', ({ source }) => source],
  ]
}

/** `flex 1.25/5.00, priority 5.00/20.00` */
function tierList(price: Price): string {
  if (price === null || price === 'free') return ''
  return tierNames
    .flatMap((name) => {
      const tier = price.tiers?.[name]
      return tier ? `${name} ${tier.input}/${tier.output}` : []
    })
    .join(', ')
}

async function changePrice(context: CommandContext, change: () => Promise<ModelPrice>): Promise<void> {
  const { api, terminal, json, first: model, text } = context
  const before = await tryTo(api.call('getPrice', { model, query: { list: text('list') } }))
  if (before instanceof Refusal) {
    const isModel = before.exit === exitCodes.notFound && text('list') === undefined
    throw isModel ? noSuchModel(model) : before
  }
  const after = await change()
  printResult(context, after, () => `was  ${cleanText(priceText(before))}\nnow  ${cleanText(priceText(after))}\n`)
  if (json) return
  for (const warning of after.warnings) terminal.complain(`Warning: ${cleanText(warning)}\n`)
}

async function readPrice(context: CommandContext): Promise<BodyOf<'putPrice'>> {
  const { text, isSet } = context
  const tier = text('tier')
  const price: Partial<Record<PriceField, string>> = {}
  for (const [name, { field }] of Object.entries(priceOptions)) {
    const given = text(name)
    if (given !== undefined) price[field] = given.replace(/^\$/, '')
  }
  const { input, output } = price
  if (tier !== undefined) return withTier(context, tier, price)
  if (isSet('free') && Object.keys(price).length === 0) return 'free'
  if (!isSet('free') && input !== undefined && output !== undefined) return { ...price, input, output }
  throw usageRefusal('give --input and --output, or --free alone.', 'tollgate prices set --help')
}

/** The price in effect with another price of one tier. */
async function withTier(
  { api, first: model, text, isSet }: CommandContext,
  tier: string,
  { input, output, ...price }: Partial<Record<PriceField, string>>,
): Promise<BodyOf<'putPrice'>> {
  const other = Object.values(priceOptions).find(({ field }) => !isTokenField(field) && field in price)
  if (!isTier(tier)) throw usageRefusal(`--tier is one of ${tierNames.join(', ')}.`, 'tollgate prices set --help')
  if (other) throw usageRefusal(`${typed[other.field]} is the same in every tier.`, 'tollgate prices set --help')
  if (isSet('free') || input === undefined || output === undefined) {
    throw usageRefusal('give --input and --output with --tier.', 'tollgate prices set --help')
  }
  const { price: before } = await api.call('getPrice', { model, query: { list: text('list') } })
  if (before === null || before === 'free') {
    throw usageRefusal(`${cleanText(model)} has no standard price. Set that first.`, 'tollgate prices set --help')
  }
  return { ...before, tiers: { ...before.tiers, [tier]: { ...price, input, output } } }
}

function isTokenField(field: PriceField): boolean {
  return listedBuckets.some(({ bucket }) => bucket === field)
}

/** `$2.50 in, $10.00 out   acme/large#2, management API` */
function priceText({ price, version, source }: ModelPrice): string {
  if (price === null) return 'no price; cannot be called'
  const amounts = price === 'free' ? 'free' : `$${price.input} in, $${price.output} out${tiersText(price.tiers)}`
  return `${amounts}   ${version ?? '–'}, ${source ?? '–'}`
}

/** `; priority $5.00 in, $20.00 out` */
function tiersText(listed: Exclude<Price, 'free' | null>['tiers']): string {
  return tierNames
    .flatMap((name) => {
      const tier = listed?.[name]
      return tier ? `; ${name} $${tier.input} in, $${tier.output} out` : []
    })
    .join('')
}

type ListedPrice = AnswerOf<'getPriceList'>['models'][number]

const listedPriceColumns: Columns<ListedPrice> = [
  ['MODEL', ({ model }) => model],
  ['IN $/M', ({ price }) => priceAt(price, 'input'), 'right'],
  ['OUT $/M', ({ price }) => priceAt(price, 'output'), 'right'],
  ['CATALOG IN', ({ catalog_price }) => priceAt(catalog_price, 'input'), 'right'],
  ['CATALOG OUT', ({ catalog_price }) => priceAt(catalog_price, 'output'), 'right'],
  ['COST IN', ({ routes }) => highestCost(routes, 'input'), 'right'],
  ['COST OUT', ({ routes }) => highestCost(routes, 'output'), 'right'],
  ['SET BY', ({ is_explicit }) => (is_explicit ? 'this list' : 'the markup')],
]

/** Of the routes with a known cost. */
function highestCost(routes: ListedPrice['routes'], field: PriceField): string | undefined {
  const costs = routes.flatMap(({ cost }) => priceAt(cost, field) ?? [])
  return costs.toSorted((a, b) => Number(b) - Number(a))[0]
}

const priceListCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['price-lists', 'list'],
    isDefault: true,
    summary: 'lists price lists: what some workspaces pay instead of the catalog prices',
    examples: ['tollgate price-lists', 'tollgate price-lists list --json'],
    operation: 'listPriceLists',
    columns: [
      'name',
      ['MARKUP', ({ markup_percent }) => `${markup_percent} %`, 'right'],
      ['EXPLICIT PRICES', ({ prices }) => Object.keys(prices).length, 'right'],
      ['WORKSPACES', ({ workspaces }) => workspaces, 'right'],
      'set_at',
    ],
    whenEmpty: () => 'There are no price lists. Next: tollgate price-lists set retail --markup 20\n',
  }),
  answerCommand({
    words: ['price-lists', 'show'],
    summary: 'shows what every model costs in a price list, in the catalog and at its providers',
    examples: ['tollgate price-lists show retail', 'tollgate price-lists show retail --json'],
    operation: 'getPriceList',
    arguments: [{ name: 'NAME', parameter: 'list' }],
    listedBy: 'tollgate price-lists',
    text: ({ models }, { terminal }) => renderTable(listedPriceColumns, models, terminal),
  }),
  answerCommand({
    words: ['price-lists', 'set'],
    summary: 'creates a price list or changes its markup, from the next request on',
    details: `Every model costs the catalog price and the markup, unless the list has an explicit price for it (tollgate prices set
MODEL --list NAME …). A workspace pays by a list after tollgate workspaces update ID --price-list NAME. A price below what
a route costs, where that is known, is refused unless you allow it.`,
    examples: [
      'tollgate price-lists set retail --markup 20',
      'tollgate price-lists set partner --markup -5 --allow-below-cost',
    ],
    operation: 'putPriceList',
    arguments: [{ name: 'NAME', parameter: 'list' }],
    options: {
      markup: {
        value: 'PERCENT',
        help: 'over the catalog price; negative = a discount',
        field: 'markup_percent',
        isRequired: true,
      },
      'allow-below-cost': { ...belowCost, field: 'allow_below_cost', set: true },
    },
    text: ({ name, markup_percent, workspaces }) =>
      `Price list ${name}: ${markup_percent} % on the catalog, ${workspaces} workspaces\n`,
  }),
  answerCommand({
    words: ['price-lists', 'delete'],
    summary: 'deletes a price list that no workspace pays by',
    examples: ['tollgate price-lists delete retail --yes'],
    operation: 'deletePriceList',
    arguments: [{ name: 'NAME', parameter: 'list' }],
    confirm: ({ first }) => `Delete the price list ${cleanText(first)} and its explicit prices?`,
    listedBy: 'tollgate price-lists',
    text: (_answer, { first }) => `Price list ${cleanText(first)} deleted.\n`,
  }),
]

export const catalogCommands: readonly CommandDefinition[] = [
  models,
  setPrice,
  updatePrices,
  resetPrice,
  priceHistory,
  ...priceListCommands,
  route,
]
