// `tollgate models`: the catalog as everybody may read it, with what own provider keys open, filtered and sorted here.

import { parsePrice } from '../../kernel/money.ts'
import { type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { type JsonObject, numberAt, objectOf, objectsOf, shownAt, textAt, textsOf } from '../json-members.ts'
import { seenModels } from '../own-models.ts'
import { Refusal, usageRefusal } from '../refusal.ts'
import { shownCount } from '../shown-values.ts'
import { type Column, renderTable } from '../table.ts'

const right = 'right' as const
const columns: readonly Column[] = [
  { title: 'MODEL' },
  { title: 'IN $/M', align: right },
  { title: 'OUT $/M', align: right },
  { title: 'CACHED $/M', align: right },
  { title: 'CONTEXT', align: right },
  { title: 'MAX OUT', align: right },
  { title: 'TAGS' },
  { title: 'VIA' },
]

type Order = (a: JsonObject, b: JsonObject) => number

const byId: Order = (a, b) => (shownAt(a, 'id') < shownAt(b, 'id') ? -1 : 1)

/** What is not known comes last in every order. */
const orders: Readonly<Record<string, Order>> = {
  id: byId,
  price: (a, b) => compare(priceRank(a), priceRank(b)) || byId(a, b),
  context: (a, b) => (numberAt(b, 'context_tokens') ?? 0) - (numberAt(a, 'context_tokens') ?? 0) || byId(a, b),
  newest: (a, b) => compare(textAt(b, 'released') ?? '', textAt(a, 'released') ?? '') || byId(a, b),
}

export const modelsCommand: CommandDefinition = {
  words: ['models'],
  summary: 'lists what is on offer, at what price; needs no token',
  options: {
    filter: { value: 'TEXT', help: 'only ids and names that contain this' },
    tag: { value: 'LIST', isRepeatable: true, help: 'only models with all of these tags' },
    sort: { value: 'ORDER', help: `${Object.keys(orders).join(', ')} (id)` },
    project: { value: 'ID', help: 'only what its keys can call, by own provider keys too' },
    workspace: { value: 'ID', help: 'whose own provider keys count; may be left out if there is only one' },
  },
  examples: [
    'tollgate models',
    'tollgate models --filter claude --tag tools --sort price',
    'tollgate models --project web',
  ],
  async run(context, input) {
    const order = orders[input.text('sort') ?? 'id']
    if (order === undefined) {
      return usageRefusal(`--sort must be one of ${Object.keys(orders).join(', ')}.`, 'tollgate models --sort price')
    }
    const catalog = await context.api.call({ path: '/api/catalog', isPublic: true })
    if (catalog instanceof Refusal) return catalog
    const wish = { project: input.text('project'), workspace: input.text('workspace') }
    const seen = await seenModels(context.api, objectsOf(catalog.data), wish)
    if (seen instanceof Refusal) return seen
    const models = seen.models.filter((model) => isWanted(model, input)).toSorted(order)
    if (context.json) return printJson(context, { ...catalog, data: models })
    context.terminal.print(renderTable(columns, models.map(cells), context.terminal))
    if (models.length === 0) context.terminal.complain('No model fits.\n')
    if (seen.note !== undefined) context.terminal.complain(seen.note)
    return undefined
  },
}

function isWanted(model: JsonObject, input: CommandInput): boolean {
  const wanted = input.text('filter')?.toLowerCase() ?? ''
  const text = `${shownAt(model, 'id')}\n${shownAt(model, 'name')}`.toLowerCase()
  const tags = textsOf(model.tags)
  return text.includes(wanted) && (input.texts('tag') ?? []).every((tag) => tags.includes(tag))
}

function cells(model: JsonObject): string[] {
  const price = objectOf(model.price)
  const isFree = model.price === 'free'
  // They are used before any other.
  const own = textsOf(model.own_providers).map((provider) => `${provider} (own key)`)
  const routes = [...own, ...objectsOf(model.routes).map(shownRoute)]
  const unknown = model.price === null || model.price === undefined
  const isPrivate = model.own_key === true && objectsOf(model.routes).length === 0
  return [
    shownAt(model, 'id'),
    isFree ? 'free' : unknown && !isPrivate ? 'no price' : shownAt(price, 'input'),
    isFree ? 'free' : shownAt(price, 'output'),
    isFree ? 'free' : shownAt(price, 'cache_read'),
    shownCount(numberAt(model, 'context_tokens')),
    shownCount(numberAt(model, 'max_output_tokens')),
    textsOf(model.tags).join(' '),
    [...new Set(routes)].join(', '),
  ]
}

/** `acme`, or `acme (ejected)`. */
function shownRoute(route: JsonObject): string {
  const health = textAt(route, 'health')
  const provider = shownAt(route, 'provider')
  return health === undefined || health === 'healthy' ? provider : `${provider} (${health})`
}

function compare<Value extends string | bigint>(a: Value, b: Value): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Pico-dollars per input token; no price is dearer than any. */
function priceRank(model: JsonObject): bigint {
  if (model.price === 'free') return 0n
  return parsePrice(textAt(objectOf(model.price), 'input') ?? '') ?? 10n ** 18n
}
