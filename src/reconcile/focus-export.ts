// Charges and costs as FOCUS files (https://focus.finops.org), for tools that read the bills of clouds: the columns of version
// 1.2, those that later versions require, and then our own, which begin with x_. One row for each kind of token of a request, or
// of a day. What is paid for a request is divided among its rows without a remainder, so the rows add up to the ledger.

import { chargeLines, freePrice, type Price } from '../catalog/price.ts'
import { readPriceVersion } from '../catalog/price-versions.ts'
import { isoTime } from '../kernel/clock.ts'
import { formatPico, formatUsd, type Nano } from '../kernel/money.ts'
import { type Bucket, buckets, isTier, tiers, totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { Database } from '../store/database.ts'
import { timeToSql } from '../store/sql.ts'
import { type LogDatabase, readPortions } from '../telemetry/read-log.ts'
import type { Details } from '../telemetry/request-record.ts'
import { csvLine } from '../wire/csv.ts'
import { type DayRange, dayMs, requestMaxMs } from './bill.ts'

export interface FocusQuery extends DayRange {
  /** What workspaces paid, or what providers probably bill the operator. */
  readonly content: 'charges' | 'costs'
  readonly by: 'day' | 'request'
}

/** One kind of token of one charge. */
interface Part {
  readonly startAt: number
  readonly endAt: number
  readonly requestId: string
  readonly workspaceId: string
  readonly projectId: string
  readonly keyId: string
  readonly model: string
  readonly provider: string
  readonly upstreamModel: string
  readonly priceVersion: string
  readonly bucket: string
  /** Empty = the standard service tier. */
  readonly tier: string
  /** Pico-dollars per unit. */
  readonly rate: bigint
  /** The call gave no answer. */
  readonly isFailed: boolean
  quantity: bigint
  nano: bigint
}

interface Row {
  readonly id: string
  readonly started_at: bigint
  readonly workspace_id: string
  readonly project_id: string
  readonly key_id: string
  readonly model: string | null
  readonly provider: string | null
  readonly upstream_model: string | null
  readonly details: string | null
  readonly charge: bigint | null
  readonly upstream_cost: bigint | null
  readonly price_version: string | null
  readonly cost_version: string | null
  readonly usage: string | null
  readonly total_ms: bigint
}

interface ArchivedRow {
  readonly id: string
  readonly workspace_id: string
  readonly created_at: bigint
  readonly charge: bigint
  readonly price_version: string | null
  readonly usage: string | null
}

const archivedPortion = 2_000n

/** Yields the text in pieces. */
export async function* exportFocus(
  database: Database & Pick<LogDatabase, 'signal'>,
  query: FocusQuery,
): AsyncGenerator<string, void, undefined> {
  const names = await readNames(database)
  const textOf = (parts: Iterable<Part>) =>
    Array.from(parts, (part) => `${csvLine(cellsOf(part, query, names))}\n`).join('')
  yield `${csvLine(columns.map(([name]) => name))}\n`
  if (query.by === 'request') {
    for await (const parts of readParts(database, query)) yield textOf(parts)
    return
  }
  const sums = new Map<string, Part>()
  for await (const parts of readParts(database, query)) for (const part of parts) addToDay(sums, part)
  const days = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, part]) => part)
  yield textOf(days)
}

function addToDay(sums: Map<string, Part>, part: Part): void {
  const startAt = part.endAt - (part.endAt % dayMs)
  const { workspaceId, projectId, keyId, model, provider, upstreamModel, priceVersion, bucket, tier, rate, isFailed } =
    part
  const key = [startAt, workspaceId, projectId, keyId, model, provider, upstreamModel, priceVersion, bucket, tier]
  const name = JSON.stringify([...key, String(rate), isFailed])
  const sum = sums.get(name)
  if (sum) {
    sum.quantity += part.quantity
    sum.nano += part.nano
  } else sums.set(name, { ...part, startAt, endAt: startAt + dayMs, requestId: '' })
}

// ── Parts ──

async function* readParts(
  database: Database & Pick<LogDatabase, 'signal'>,
  query: FocusQuery,
): AsyncGenerator<readonly Part[]> {
  const prices = createPrices(database)
  const { from, to, content } = query
  const isWithin = (at: number) => at >= from && at < to
  const select = `SELECT id, started_at, workspace_id, project_id, key_id, model, provider, upstream_model, details, charge,
    upstream_cost, price_version, cost_version, usage, total_ms`
  const end =
    content === 'charges' ? ' AND charge IS NOT NULL' : ' AND (upstream_cost IS NOT NULL OR failed_cost IS NOT NULL)'
  for await (const rows of readPortions<Row>(database, { from: from - requestMaxMs, to }, select, [end])) {
    const parts: Part[] = []
    for (const row of rows) {
      if (!isWithin(Number(row.started_at + row.total_ms))) continue
      parts.push(...(content === 'charges' ? await chargeParts(row, prices) : await costParts(row, prices)))
    }
    yield parts
  }
  if (content === 'charges') yield* readArchived(database, query, prices)
}

/** The log of these requests was deleted; their charges never are. */
async function* readArchived(
  { sql }: Database,
  { from, to }: DayRange,
  prices: Prices,
): AsyncGenerator<readonly Part[]> {
  for (let after = ''; ; ) {
    const rows = await sql<ArchivedRow>`SELECT id, workspace_id, created_at, charge, price_version, usage
      FROM archived_charges WHERE id > ${after} AND created_at >= ${timeToSql(from)} AND created_at < ${timeToSql(to)}
      ORDER BY id LIMIT ${archivedPortion}`
    const parts: Part[] = []
    for (const { id, workspace_id: workspaceId, created_at: at, charge, price_version: version, usage } of rows) {
      const place = { ...nowhere, requestId: id, workspaceId, startAt: Number(at), endAt: Number(at) }
      parts.push(...dividedParts(place, { nano: charge, usage: usageOf(usage), version, price: await prices(version) }))
    }
    yield parts
    const last = rows.at(-1)
    if (!last || BigInt(rows.length) < archivedPortion) return
    after = last.id
  }
}

type Prices = (version: string | null) => Promise<Price>

function createPrices(database: Database): Prices {
  const known = new Map<string, Price>()
  return async (version) => {
    if (version === null) return freePrice
    const price = known.get(version) ?? (await readPriceVersion(database, version))?.price ?? freePrice
    known.set(version, price)
    return price
  }
}

type Place = Omit<Part, 'priceVersion' | 'bucket' | 'tier' | 'rate' | 'quantity' | 'nano'>

const nowhere = { projectId: '', keyId: '', model: '', provider: '', upstreamModel: '', isFailed: false }

function placeOf(row: Row): Place {
  return {
    ...{ requestId: row.id, workspaceId: row.workspace_id, projectId: row.project_id, keyId: row.key_id },
    ...{
      model: row.model ?? '',
      provider: row.provider ?? '',
      upstreamModel: row.upstream_model ?? '',
      isFailed: false,
    },
    startAt: Number(row.started_at),
    endAt: Number(row.started_at + row.total_ms),
  }
}

async function chargeParts(row: Row, prices: Prices): Promise<readonly Part[]> {
  const { charge, price_version: version, usage } = row
  if (charge === null) return []
  return dividedParts(placeOf(row), { nano: charge, usage: usageOf(usage), version, price: await prices(version) })
}

const ownCost = 'own'

async function costParts(row: Row, prices: Prices): Promise<readonly Part[]> {
  const { upstream_cost: cost, cost_version: version, usage } = row
  const parts: Part[] = []
  // On its own key the provider bills the workspace.
  if (cost !== null && version !== ownCost) {
    parts.push(
      ...dividedParts(placeOf(row), { nano: cost, usage: usageOf(usage), version, price: await prices(version) }),
    )
  }
  const { attempts = [] }: Details = JSON.parse(row.details ?? '{}')
  for (const { provider, upstreamModel, usage: used, cost: failed, costVersion = null } of attempts) {
    if (failed === undefined || !used) continue
    const place = { ...placeOf(row), provider, upstreamModel, isFailed: true }
    const price = await prices(costVersion)
    parts.push(...dividedParts(place, { nano: BigInt(failed), usage: used, version: costVersion, price }))
  }
  return parts
}

function usageOf(text: string | null): Usage | undefined {
  return text === null ? undefined : (JSON.parse(text) as Usage)
}

interface Priced {
  readonly nano: bigint
  readonly usage: Usage | undefined
  readonly version: string | null
  readonly price: Price
}

/**
 * By what each kind of token costs. An amount was rounded up once, and may be less than its price where a wallet was empty, so
 * each row gets its share, and the largest one what is left over.
 */
function dividedParts(place: Place, { nano, usage, version, price }: Priced): readonly Part[] {
  const lines = usage ? chargeLines(price, usage) : []
  const total = lines.reduce((sum, { amount }) => sum + amount, 0n)
  const priceVersion = version ?? ''
  const tier = isTier(usage?.tier) ? usage.tier : ''
  const parts = lines.map(({ bucket, units, rate, amount }): Part => {
    const share = total === 0n ? 0n : (amount * nano) / total
    return { ...place, priceVersion, bucket, tier, rate, quantity: BigInt(units), nano: share }
  })
  const rest = nano - parts.reduce((sum, part) => sum + part.nano, 0n)
  const [largest] = parts.toSorted((a, b) => (b.nano > a.nano ? 1 : b.nano < a.nano ? -1 : 0))
  if (largest) largest.nano += rest
  else if (nano > 0n || usage) {
    const quantity = usage ? BigInt(totalInputTokens(usage) + usage.outputTokens) : 0n
    return [{ ...place, priceVersion, bucket: '', tier, rate: 0n, quantity, nano }]
  }
  return parts
}

// ── Columns ──

interface Names {
  readonly workspaces: ReadonlyMap<string, string>
  readonly projects: ReadonlyMap<string, string>
}

async function readNames({ sql }: Database): Promise<Names> {
  const [workspaces, projects] = [
    await sql<{ id: string; name: string }>`SELECT id, name FROM workspaces`,
    await sql<{ id: string; name: string }>`SELECT id, name FROM projects`,
  ]
  const byId = (rows: readonly { id: string; name: string }[]) => new Map(rows.map(({ id, name }) => [id, name]))
  return { workspaces: byId(workspaces), projects: byId(projects) }
}

interface Context extends Names {
  readonly query: FocusQuery
}

type Cell = string | null
type Column = readonly [name: string, cell: (part: Part, context: Context) => Cell]

const gatewayName = 'Tollgate'
const cost = ({ nano }: Part) => formatUsd(nano as Nano)
const unitPrice = ({ rate }: Part) => formatPico(rate)
/** Readers take a whole number without a point for an integer, and the specification wants a decimal. */
const quantity = (part: Part) => `${part.quantity}.0`
const seller: Column[1] = ({ provider }, { query }) => (query.content === 'charges' ? gatewayName : provider)
const account: Column[1] = ({ workspaceId, provider }, { query }) =>
  query.content === 'charges' ? workspaceId : provider
const none = () => null

/** The order of the specification; our own come last. */
const columns: readonly Column[] = [
  ['AvailabilityZone', none],
  ['BilledCost', cost],
  ['BillingAccountId', account],
  [
    'BillingAccountName',
    ({ workspaceId, provider }, { workspaces, query }) =>
      query.content === 'charges' ? (workspaces.get(workspaceId) ?? workspaceId) : provider,
  ],
  ['BillingAccountType', (_, { query }) => (query.content === 'charges' ? 'Workspace' : 'Provider')],
  ['BillingCurrency', () => 'USD'],
  ['BillingPeriodEnd', ({ startAt }) => focusTime(monthOf(startAt, 1))],
  ['BillingPeriodStart', ({ startAt }) => focusTime(monthOf(startAt, 0))],
  ['ChargeCategory', () => 'Usage'],
  ['ChargeClass', none],
  ['ChargeDescription', (part) => `${labelOf(part)} of ${nameOf(part)}${part.isFailed ? ', without an answer' : ''}`],
  ['ChargeFrequency', () => 'Usage-Based'],
  ['ChargePeriodEnd', ({ startAt, endAt }) => focusTime(Math.max(endAt, startAt + 1000))],
  ['ChargePeriodStart', ({ startAt }) => focusTime(startAt)],
  ['ConsumedQuantity', quantity],
  ['ConsumedUnit', (part) => unitOf(part)],
  ['ContractedCost', cost],
  ['ContractedUnitPrice', unitPrice],
  ['EffectiveCost', cost],
  ['HostProviderName', ({ provider }) => provider || gatewayName],
  // Tollgate issues statements and no invoices.
  ['InvoiceId', none],
  ['InvoiceIssuerName', seller],
  ['ListCost', cost],
  ['ListUnitPrice', unitPrice],
  ['PricingCategory', () => 'Standard'],
  ['PricingCurrency', () => 'USD'],
  ['PricingQuantity', quantity],
  ['PricingUnit', (part) => unitOf(part)],
  ['ProviderName', seller],
  [
    'PublisherName',
    ({ model, provider }) => (model.includes('/') ? (model.split('/')[0] ?? '') : provider || gatewayName),
  ],
  ['RegionId', none],
  ['RegionName', none],
  ['ResourceId', (part) => nameOf(part)],
  ['ResourceName', (part) => nameOf(part)],
  ['ResourceType', () => 'Model'],
  ['ServiceCategory', () => 'AI and Machine Learning'],
  ['ServiceName', seller],
  ['ServiceProviderName', seller],
  ['ServiceSubcategory', () => 'Generative AI'],
  ['SkuId', (part) => `${nameOf(part)}/${skuOf(part)}`],
  ['SkuMeter', (part) => labelOf(part)],
  ['SkuPriceId', (part) => (part.priceVersion === '' ? null : `${part.priceVersion}/${skuOf(part)}`)],
  ['SubAccountId', ({ projectId }) => projectId || null],
  [
    'SubAccountName',
    ({ projectId }, { projects }) => (projectId === '' ? null : (projects.get(projectId) ?? projectId)),
  ],
  ['SubAccountType', ({ projectId }) => (projectId === '' ? null : 'Project')],
  ['Tags', () => '{}'],
  ['x_Bucket', ({ bucket }) => bucket],
  ['x_KeyId', ({ keyId }) => keyId],
  ['x_Model', ({ model }) => model],
  ['x_RequestId', ({ requestId }) => requestId],
  ['x_Tier', ({ tier }) => tier],
  ['x_UpstreamModel', ({ upstreamModel }) => upstreamModel],
  ['x_WorkspaceId', ({ workspaceId }) => workspaceId],
]

function cellsOf(part: Part, query: FocusQuery, names: Names): readonly Cell[] {
  const context = { ...names, query }
  return columns.map(([, cell]) => cell(part, context))
}

function nameOf({ model, upstreamModel }: Part): string {
  return model || upstreamModel || 'unknown model'
}

function labelOf({ bucket, tier }: Part): string {
  const label = bucket === '' ? 'Tokens' : buckets[bucket as Bucket].label
  return isTier(tier) ? `${label}, ${tiers[tier].label} tier` : label
}

/** What has a price of its own: a kind of tokens in a service tier. */
function skuOf({ bucket, tier }: Part): string {
  return [bucket || 'all', ...(tier === '' ? [] : [tier])].join('/')
}

function unitOf({ bucket }: Part): string {
  return bucket === 'web_search' ? 'Searches' : 'Tokens'
}

/** Without milliseconds, as the specification writes times. */
function focusTime(at: number): string {
  return `${isoTime(at).slice(0, 19)}Z`
}

/** The start of the UTC month, or of a later one. */
function monthOf(at: number, later: number): number {
  const day = new Date(at)
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + later, 1)
}
