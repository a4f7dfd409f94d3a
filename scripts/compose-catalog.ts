// The built-in catalog out of its sources: the hand-kept tables in catalog-sources/ and the prices of genai-prices.
// Pure but for reading those; the same sources give the same text.

import { join } from 'node:path'
import { dearest, type PriceList, priceEntry, type TierList, timesFactor } from '../src/catalog/listed-prices.ts'
import { type Tier, tierNames } from '../src/kernel/usage.ts'
import { packagePrice } from './price-lists.ts'

const folder = join(import.meta.dir, 'catalog-sources')

interface Origin {
  readonly source: string
  /** The day somebody looked, `YYYY-MM-DD`. */
  readonly checked: string
}

interface ModelLine {
  readonly name: string
  readonly released?: string
  readonly retires?: string
  readonly knowledge?: string
  readonly input?: readonly string[]
  readonly about?: string
  readonly context: number
  readonly output?: number
  readonly tags: readonly string[]
  /** Provider and model in the price package. */
  readonly list?: string
}

interface ModelTable extends Origin {
  readonly prices: Origin
  readonly models: Readonly<Record<string, ModelLine>>
}

interface RouteLine extends Partial<Origin> {
  readonly model: string
  /** What the price package calls it, where that is not the provider's name for it. */
  readonly genai?: string
  /** The host's own output cap, where it is low. */
  readonly output?: number
  readonly price?: PriceList
  /** What tokens cost times this where the work is kept in the United States, which callers of this route can ask for. */
  readonly us_only?: number
  /** Service tiers: what they cost, or how many times the route's standard price. */
  readonly tiers?: { readonly [Name in Tier]?: number | TierList }
}

interface RouteTable extends Origin {
  /** The provider's id in the price package. */
  readonly genai?: string
  /** Whose own API this is. */
  readonly creators?: readonly string[]
  /** Tried after everybody without such a number, the higher the later. */
  readonly last?: number
  /** It runs searches of the web and reports how many; of nobody else they could be charged. */
  readonly searches?: boolean
  /** Where the prices of `tiers` are from. */
  readonly tiered?: Origin
  readonly routes: Readonly<Record<string, RouteLine>>
}

interface PricedBy extends Origin {
  readonly provider: string
  readonly price: PriceList
}

interface Offered {
  readonly provider: string
  readonly line: RouteLine
  readonly table: RouteTable
  readonly priced: PricedBy | undefined
}

/** Long enough for an answer with its reasoning; our judgement, not a fact about a model. */
const defaultOutputMost = 32_768
/** A cap that fills the window leaves no room for the question. */
const defaultWindowShare = 4

export async function composeCatalog(): Promise<string> {
  const table = (await readYaml('models.yaml')) as ModelTable
  const routes = await readRoutes()
  for (const [provider, { routes: lines }] of routes) {
    for (const id of Object.keys(lines)) {
      if (!(id in table.models)) throw new Error(`routes/${provider}.yaml: no model ${id}`)
    }
  }
  const lines = Object.entries(table.models).map(([id, line]) =>
    JSON.stringify(compose(id, line, table, offersOf(id, table, routes))),
  )
  return `[\n${lines.join(',\n')}\n]\n`
}

async function readYaml(path: string): Promise<unknown> {
  return Bun.YAML.parse(await Bun.file(join(folder, path)).text())
}

async function readRoutes(): Promise<ReadonlyMap<string, RouteTable>> {
  const paths = await Array.fromAsync(new Bun.Glob('routes/*.yaml').scan({ cwd: folder }))
  const tables = await Promise.all(
    paths.sort().map(async (path) => [/([^/]+)\.yaml$/.exec(path)?.[1] ?? path, await readYaml(path)] as const),
  )
  return new Map(tables as [string, RouteTable][])
}

/** In the order in which they are tried: the creator, then hosts from cheap to dear, then whoever asked to be last. */
function offersOf(id: string, models: ModelTable, tables: ReadonlyMap<string, RouteTable>): Offered[] {
  const offers: Offered[] = []
  for (const [provider, table] of tables) {
    const line = table.routes[id]
    if (line) offers.push({ provider, line, table, priced: priceOf({ provider, line, table }, models) })
  }
  const creator = id.slice(0, id.indexOf('/'))
  const rank = ({ table }: Offered) => (table.creators?.includes(creator) ? -1 : (table.last ?? 0))
  const cost = ({ priced }: Offered) => priced?.price.output ?? 0
  return offers.sort((a, b) => rank(a) - rank(b) || cost(a) - cost(b))
}

function priceOf({ provider, line, table }: Omit<Offered, 'priced'>, models: ModelTable): PricedBy | undefined {
  const { source = table.source, checked = table.checked } = line
  const usOnly = line.us_only !== undefined && { us_only: line.us_only }
  if (line.price) return { provider, price: withTiers({ ...line.price, ...usOnly }, line), source, checked }
  if (table.genai === undefined) return undefined
  const listed = packagePrice(table.genai, line.genai ?? line.model, models.checked)
  if (listed === undefined) return undefined
  const { web_search: search, ...tokens } = listed
  const searches = table.searches && search !== undefined && { web_search: search }
  return { provider, price: withTiers({ ...tokens, ...searches, ...usOnly }, line), ...models.prices }
}

function withTiers(price: PriceList, { tiers = {} }: RouteLine): PriceList {
  const listed = tierNames.flatMap((name) => {
    const tier = tiers[name]
    return tier === undefined ? [] : [[name, typeof tier === 'number' ? timesFactor(price, () => tier) : tier] as const]
  })
  return listed.length === 0 ? price : { ...price, tiers: Object.fromEntries(listed) }
}

function compose(id: string, line: ModelLine, table: ModelTable, offers: readonly Offered[]): unknown {
  const priced = offers.flatMap((offer) => (offer.priced ? [offer.priced] : []))
  if (line.list !== undefined) priced.unshift(listPrice(line.list, table))
  const price = dearest(priced.map((each) => each.price))
  if (price === undefined) throw new Error(`${id}: no price; leave it out or find one`)
  const caps = [line.output, ...offers.map((offer) => offer.line.output)].filter((cap) => cap !== undefined)
  return {
    id,
    name: line.name,
    ...(line.released && { released: line.released }),
    ...(line.retires && { retires: line.retires }),
    ...(line.about && { description: line.about }),
    ...(line.knowledge && { knowledge: line.knowledge }),
    ...(line.input && { input: line.input }),
    context_tokens: line.context,
    ...(line.output && { max_output_tokens: line.output }),
    ...(!line.tags.includes('embeddings') && {
      default_max_tokens: Math.min(defaultOutputMost, Math.floor(line.context / defaultWindowShare), ...caps),
    }),
    tags: line.tags,
    price: priceEntry(price),
    routes: offers.map((offer, at) => ({ provider: offer.provider, model: offer.line.model, priority: at + 1 })),
    provenance: {
      facts: { source: table.source, checked: table.checked },
      price: provenance(price, priced),
      ...(price.tiers && { tiers: tierProvenance(id, offers) }),
    },
  }
}

function listPrice(list: string, { checked: day, prices }: ModelTable): PricedBy {
  const [provider = '', model = ''] = list.split(' ')
  const listed = packagePrice(provider, model, day)
  if (listed === undefined) throw new Error(`genai-prices has no ${list}`)
  const { web_search: _, ...price } = listed
  return { provider, price, ...prices }
}

/** The first list where it says it all, otherwise whichever are the dearest. */
function provenance(price: PriceList, priced: readonly PricedBy[]): Origin {
  const whole = priced.find((each) => Bun.deepEquals(each.price, price))
  const from = whole ? [whole] : priced.filter((each, at) => !isWithin(each.price, priced.slice(0, at)))
  const names = from.map(({ provider, source }) => `${provider} (${source})`)
  const checked = from.map((each) => each.checked).sort()[0] ?? ''
  const isFirst = whole !== undefined && whole === priced[0]
  return { source: `${isFirst ? '' : 'dearest of the routes: '}${names.join(', ')}`, checked }
}

function tierProvenance(id: string, offers: readonly Offered[]): Origin {
  const from = offers.filter(({ line }) => line.tiers).map(({ provider, table: { tiered } }) => ({ provider, tiered }))
  const [{ tiered }] = from.length === 1 ? from : [{ tiered: undefined }]
  if (!tiered) throw new Error(`${id}: prices of tiers need one source, \`tiered\` of the route's file`)
  return { source: `${from[0]?.provider} (${tiered.source})`, checked: tiered.checked }
}

/** Whether the lists before already make it as dear. */
function isWithin(price: PriceList, before: readonly PricedBy[]): boolean {
  const lists = before.map((each) => each.price)
  return lists.length > 0 && Bun.deepEquals(dearest(lists), dearest([...lists, price]))
}
