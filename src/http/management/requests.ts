// Handlers of the request log: listing, explaining, following, exporting and summing up requests. The sums of an
// explained charge are exact to the nano-dollar.

import { fileTypeOf, listAnswer } from '../../api/fields.ts'
import {
  facetValuesMax,
  type LoggedRequest,
  requestSchema,
  seriesIntervals,
  seriesMax,
  sortedExportMax,
  statsGroupsMax,
  type UsageItem,
  usageFields,
  usageGroupsMax,
} from '../../api/requests.ts'
import { chargeLines } from '../../catalog/price.ts'
import { readPriceVersion } from '../../catalog/price-versions.ts'
import { passesAttribution, shownEndUser, tagsText } from '../../kernel/attribution.ts'
import { isoTime } from '../../kernel/clock.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { isId, type KeyId, type RequestId } from '../../kernel/ids.ts'
import { formatPico, formatPrice, formatUsd, type Nano, picoToNano, zeroNano } from '../../kernel/money.ts'
import { factorNames, factors, tokenBuckets, type Usage, unitBuckets, wholeBuckets } from '../../kernel/usage.ts'
import { periodShown, usesOf } from '../../ledger/credit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Transfer, TransferKind } from '../../ledger/transfer.ts'
import { EventStream } from '../../pipeline/answer.ts'
import type { Database } from '../../store/database.ts'
import type { Figures } from '../../store/request-rows.ts'
import {
  countRowsToRead,
  isRemovedWithLog,
  oldestRequest,
  type Period,
  type RequestFilters,
  type SourceQuery,
  sourceOf,
} from '../../telemetry/read-log.ts'
import {
  requestsAt,
  type SortedPlace,
  type RequestLog as StoredLog,
  sortedPlaces,
} from '../../telemetry/request-log.ts'
import type { LoggedRequest as StoredRequest } from '../../telemetry/request-record.ts'
import {
  countFacets,
  type FacetName,
  facetNames,
  facetsSource,
  readTopSeries,
  type SeriesSum,
  seriesSource,
  type TopQuery,
} from '../../telemetry/request-series.ts'
import { firstEventsOf, readStats } from '../../telemetry/request-stats.ts'
import type { RequestTail } from '../../telemetry/request-tail.ts'
import {
  exportUsage,
  inputOf,
  type KeyGroup,
  sumUsage,
  type UsageQuery,
  type UsageSum,
  usageSource,
} from '../../telemetry/usage-export.ts'
import { findEndUser } from '../../tenancy/end-users.ts'
import { groupsOfKeys } from '../../tenancy/groups.ts'
import { keysOfOwner, nameOfKey, ownersOfKeys } from '../../tenancy/keys.ts'
import { notFound } from '../../tenancy/management.ts'
import type { Reach } from '../../tenancy/principal.ts'
import { type CsvValue, csvLine } from '../../wire/csv.ts'
import { answerAs, everyPage, given, pageOf, transferAnswer } from './answers.ts'
import type { RequestLog, RequestQuery, RouteDependencies } from './dependencies.ts'
import type { Call, Handlers } from './route.ts'

const dayMs = 86_400_000
/** A quarter of a year by the hour is some two thousand points. */
const statsDaysMax = 92
const usageSpanMs = 30 * dayMs
/** Measured with a log of a million requests, on either engine: see docs/operate/scale.md. */
const rowsPerSecond = 120_000

export function requestHandlers({ database, clock, requests, tail }: RouteDependencies) {
  const follow = createFollowRequests(tail)
  /** Without `from`, the time of this length before the end. */
  const periodOf = (
    { from, to = clock.now() }: { from?: number | undefined; to?: number | undefined },
    spanMs: number,
  ) => ({
    from: from ?? Math.max(0, to - spanMs),
    to,
  })
  type UsageCall = Pick<Call<'getUsage'>, 'query' | 'reach' | 'signal'>
  const usageQuery = async ({ query, reach, signal }: UsageCall): Promise<UsageQuery> => {
    const { group_by: groupBy } = query
    const filters = await reachedBy(database, query, reach)
    const ofKeys: { [Group in KeyGroup]?: ReadonlyMap<string, readonly string[]> } = {}
    for (const group of groupBy) {
      if (isKeyGroup(group)) ofKeys[group] = await valuesOfKeys[group](database.sql, filters.workspaceId)
    }
    return { database: { ...database, signal }, ...periodOf(query, usageSpanMs), groupBy, ofKeys, ...filters }
  }
  /** null = the log is empty, or the answer also has what retention removed from the log. */
  const logFromOf = async (query: SourceQuery): Promise<string | null> => {
    const { sums } = sourceOf(query)
    if (sums && !query.cut && !isRemovedWithLog(sums.series)) return null
    const oldest = await oldestRequest(database, query.workspaceId)
    return oldest === undefined ? null : isoTime(oldest)
  }
  const seriesQuery = async (
    query: Call<'getUsageSeries'>['query'],
    reach: Reach,
  ): Promise<TopQuery & { readonly interval: keyof typeof seriesIntervals }> => {
    const { from, to } = checkPeriod(periodOf(query, dayMs))
    const interval = query.interval ?? usualInterval(to - from)
    const stepMs = seriesIntervals[interval]
    if ((to - from) / stepMs > seriesPointsMax) {
      throw invalidRequest(`At most ${seriesPointsMax} intervals can be summed up at once.`, 'interval')
    }
    const offsetMs = query.utc_offset_minutes * 60_000
    const wanted = { ...(await reachedBy(database, query, reach)), from, to, stepMs, offsetMs, interval }
    const { group_by: group } = query
    if (!isKeyGroup(group)) return { ...wanted, group }
    const values = await valuesOfKeys[group](database.sql, wanted.workspaceId)
    return { ...wanted, group: 'key', regroup: (key) => values.get(key ?? '') ?? [null] }
  }
  const reportOf = async <Sums>(
    call: UsageCall,
    answerOf: (sum: UsageSum) => Sums,
    more: Pick<UsageQuery, 'withProviderCosts'> = {},
  ) => {
    const wanted = { ...(await usageQuery(call)), ...more }
    const { from, to, groupBy } = checkPeriod(wanted)
    const { database: _, withProviderCosts: __, ofKeys: ___, ...query } = wanted
    const [logFrom, sums] = await Promise.all([logFromOf(usageSource(query)), sumUsage(wanted)])
    const groups = [...sums.list()].sort(byCost)
    const kept = groups.slice(0, usageGroupsMax)
    // Within a day the most expensive stay first.
    if (groupBy[0] === 'day') kept.sort(({ groups: [a] }, { groups: [b] }) => String(a).localeCompare(String(b)))
    const shown = kept.map(async (sum) => ({
      values: [...sum.groups],
      names: await Promise.all(sum.groups.map((id, at) => (id === null ? null : nameOf(database, groupBy[at], id)))),
      ...answerOf(sum),
    }))
    return {
      from: isoTime(from),
      to: isoTime(to),
      log_from: logFrom,
      total: answerOf(sums.total),
      groups: await Promise.all(shown),
      groups_left_off: groups.length - shown.length,
    }
  }
  return {
    followRequests: {
      async events({ query, reach }) {
        const filters = await filtersOf(database, { ...query, workspace_id: reach.workspaceId ?? query.workspace_id })
        const stream = follow(filters, ownerFilter(database, reach))
        if (stream) return stream
        throw new Failure('OVERLOADED', 'Too many clients are already following the request log.', {
          retryAfterMs: 10_000,
        })
      },
    },
    exportRequests: {
      async download({ query, reach, signal }) {
        const { format, sort, order } = query
        const period = given({ from: query.from, to: query.to })
        const filters = await reachedBy(database, query, reach)
        const pages = await requests.pages({ ...filters, ...period, sort, order, signal })
        const pieces = format === 'csv' ? csvPieces(database, pages) : jsonPieces(pages)
        return { type: fileTypeOf[format], name: `requests.${format}`, pieces }
      },
    },
    async estimateReport({ query: { report, group_by: groups, ...query }, reach }) {
      const filters = await reachedBy(database, query, reach)
      const period = checkPeriod(periodOf(query, report === 'series' ? dayMs : usageSpanMs))
      const logged = async (): Promise<readonly Period[]> => {
        if (report === 'facets') return facetsSource({ ...filters, ...period }).logged
        if (report === 'series') {
          const group = (groups ?? 'none') as Call<'getUsageSeries'>['query']['group_by']
          return sourceOf(seriesSource(await seriesQuery({ ...query, group_by: group }, reach))).logged
        }
        const groupBy = (groups ?? (report === 'margin' ? 'day' : 'model')).split(',') as UsageQuery['groupBy']
        return sourceOf(usageSource({ ...filters, ...period, groupBy })).logged
      }
      const rows = await countRowsToRead(database, filters, await logged())
      return { rows, seconds: Math.ceil((10 * rows) / rowsPerSecond) / 10 }
    },
    async getRequestFacets({ query, reach, signal }) {
      const { from, to } = checkPeriod(periodOf(query, usageSpanMs))
      const filters = await reachedBy(database, query, reach)
      const { total, facets } = await countFacets({ ...database, signal }, { ...filters, from, to })
      const answerOf = async (name: FacetName) => {
        const values = [...facets[name]].sort(([, a], [, b]) => b - a).slice(0, facetValuesMax)
        return await Promise.all(
          values.map(async ([value, requests]) => ({ value, name: await nameOf(database, name, value), requests })),
        )
      }
      const lists = await Promise.all(facetNames.map(async (name) => [name, await answerOf(name)] as const))
      type Lists = Record<FacetName, Awaited<ReturnType<typeof answerOf>>>
      return { from: isoTime(from), to: isoTime(to), total, facets: Object.fromEntries(lists) as Lists }
    },
    async listRequests({ query, reach, signal }) {
      const { sort, order } = query
      const found = await requests.list({
        ...pageOf(query),
        ...(await reachedBy(database, query, reach)),
        ...given({ from: query.from, to: query.to }),
        ...{ sort, order, signal },
      })
      return listAnswer(found.items, found.nextCursor)
    },
    async getRequest({ id }) {
      const found = await requests.find(id)
      if (!found) throw notFound('request', id)
      return found
    },
    async getStats({ query, reach, signal }) {
      const { from, to } = checkPeriod(periodOf(query, dayMs))
      if (to - from > statsDaysMax * dayMs) {
        throw invalidRequest(`At most ${statsDaysMax} days can be summed up at once.`, 'from')
      }
      const { group } = query
      const workspaceId = reach.workspaceId ?? query.workspace_id
      const keyIds = await ownKeys(database, reach)
      const wanted = { from, to, group, groupsMax: statsGroupsMax, ...given({ workspaceId, keyIds }) }
      // One moment: the groups add up to the total.
      const stats = await database.snapshot((sql) => readStats({ ...database, sql, signal }, clock, wanted))
      const groups = stats.groups.map(async ({ id, figures }) => {
        return { id, name: await nameOf(database, group, id), ...sumsAnswer(figures) }
      })
      return {
        from: isoTime(stats.from),
        to: isoTime(stats.to),
        counted_until: isoTime(stats.countedUntil),
        total: sumsAnswer(stats.total),
        hours: stats.hours.map(({ start, figures }) => ({ start: isoTime(start), ...sumsAnswer(figures) })),
        groups: await Promise.all(groups),
        groups_left_off: stats.groupsLeftOff,
      }
    },
    exportUsage: {
      async download(call) {
        const { format } = call.query
        const wanted = await usageQuery(call)
        return {
          type: fileTypeOf[format],
          name: `usage.${format}`,
          pieces: exportUsage({ ...wanted, format, nameOf: createNameOf(database) }),
        }
      },
    },
    async getUsageSeries({ query, reach, signal }) {
      const { interval, ...wanted } = await seriesQuery(query, reach)
      const { from, to } = wanted
      const [logFrom, { total, shown, others }] = await Promise.all([
        logFromOf(seriesSource(wanted)),
        readTopSeries({ ...database, signal }, wanted, seriesMax),
      ])
      return {
        from: isoTime(from),
        to: isoTime(to),
        interval,
        log_from: logFrom,
        total: seriesAnswer(total),
        series: await Promise.all(
          shown.map(async (series) => ({
            value: series.value,
            name: series.value === null ? null : await nameOf(database, query.group_by, series.value),
            ...seriesAnswer(series),
          })),
        ),
        others: others ? { count: others.count, ...seriesAnswer(others) } : null,
      }
    },
    getUsage: (call) => reportOf(call, usageAnswerOf),
    getMargin: (call) => reportOf(call, marginAnswerOf, { withProviderCosts: true }),
  } satisfies Partial<Handlers>
}

/** What is known by the key of a request. */
const valuesOfKeys = { person: ownersOfKeys, group: groupsOfKeys } as const satisfies Readonly<Record<KeyGroup, object>>

function isKeyGroup(group: string): group is KeyGroup {
  return Object.hasOwn(valuesOfKeys, group)
}

function checkPeriod<Period extends { readonly from: number; readonly to: number }>(period: Period): Period {
  if (period.from < period.to) return period
  throw invalidRequest('`from` must be before `to`.', 'from')
}

/** The maximum of a series: a year by the day, a month by the hour. */
const seriesPointsMax = 1000

function usualInterval(spanMs: number): keyof typeof seriesIntervals {
  if (spanMs <= dayMs / 24) return '1m'
  if (spanMs <= dayMs / 4) return '5m'
  return spanMs <= 3 * dayMs ? '1h' : spanMs <= 7 * dayMs ? '6h' : '1d'
}

function seriesAnswer({ total, buckets }: SeriesSum) {
  const answerOf = (figures: Figures) => ({
    ...sumsAnswer(figures),
    cache_read_tokens: Number(figures.cacheReadTokens),
    cache_saved: formatUsd(figures.cacheSaved as Nano),
  })
  const points = [...buckets].sort(([a], [b]) => a - b)
  return {
    ...answerOf(total),
    points: points.map(([start, figures]) => ({ start: isoTime(start), ...answerOf(figures) })),
  }
}

function byCost(a: UsageSum, b: UsageSum): number {
  return Number(b.cost - a.cost) || b.requests - a.requests
}

function usageAnswerOf(sum: UsageSum) {
  const { input, cacheRead, cacheWrite, output } = inputOf(sum)
  return {
    requests: sum.requests,
    failed_requests: sum.failed,
    input_tokens: input,
    cache_read_tokens: cacheRead,
    cache_write_tokens: cacheWrite,
    output_tokens: output,
    cost: formatUsd(sum.cost),
    cache_hit_rate: input === 0 ? null : cacheRead / input,
    cache_saved: formatUsd(sum.saved as Nano),
  }
}

function marginAnswerOf({ requests, cost, upstreamCost, failedCost, uncosted, uncostedCharges }: UsageSum) {
  return {
    requests,
    charged: formatUsd(cost),
    upstream_cost: formatUsd(upstreamCost),
    failed_cost: formatUsd(failedCost),
    margin: formatUsd((cost - uncostedCharges - upstreamCost - failedCost) as Nano),
    requests_without_cost: uncosted,
    charged_without_cost: formatUsd(uncostedCharges),
  }
}

type FilterQuery = Partial<Call<'followRequests'>['query']>

async function filtersOf({ sql }: Database, query: FilterQuery): Promise<RequestFilters> {
  const { workspace_id: workspaceId, project_id: projectId, key_id: keyId } = query
  // An id is only known by its hash, which differs between workspaces.
  const endUser =
    query.end_user !== undefined && workspaceId !== undefined
      ? await findEndUser(sql, workspaceId, query.end_user)
      : query.end_user
  const { model, session, agent, tag, outcome, provider, cause, batch_id: batchId } = query
  const content = { model, session, agent, endUser, tag, batchId }
  return given({ workspaceId, projectId, keyId, ...content, outcome, provider, cause })
}

/** The keys a member may see requests of; undefined = all. */
async function ownKeys({ sql }: Database, { workspaceId, ownerId }: Reach): Promise<readonly KeyId[] | undefined> {
  return workspaceId === undefined || ownerId === undefined ? undefined : await keysOfOwner(sql, workspaceId, ownerId)
}

/** The filters of the query, narrowed to what the caller may see. */
async function reachedBy(database: Database, query: FilterQuery, reach: Reach): Promise<RequestFilters> {
  const keyIds = await ownKeys(database, reach)
  const narrowed = { ...query, workspace_id: reach.workspaceId ?? query.workspace_id }
  return { ...(await filtersOf(database, narrowed)), ...given({ keyIds }) }
}

/** For a stream, which outlives the list of keys: a key that is created later is looked up once. */
function ownerFilter({ sql }: Database, { ownerId }: Reach): OwnerFilter | undefined {
  if (ownerId === undefined) return undefined
  const owners = new Map<KeyId, boolean>()
  return async (keyId) => {
    const known = owners.get(keyId)
    if (known !== undefined) return known
    const [row] = await sql<{ owner_id: string | null }>`SELECT owner_id FROM api_keys WHERE id = ${keyId}`
    owners.set(keyId, row?.owner_id === ownerId)
    return row?.owner_id === ownerId
  }
}

export function createRequestReader({
  database,
  ledger,
  requests,
}: {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'transfersOf'>
  readonly requests: Pick<StoredLog, 'list' | 'find'>
}): RequestLog {
  const list: RequestLog['list'] = async ({ limit, cursor, sort = 'started_at', order = 'desc', ...query }) => {
    const { signal: _, ...filters } = query
    if (!isNewestFirst({ sort, order })) {
      const after = cursor === undefined ? undefined : placeFrom(cursor)
      const wanted = { ...query, ...given({ after }), sort, order, limit: limit + 1 }
      const places = await sortedPlaces(database, wanted)
      const shown = places.slice(0, limit)
      const items = (await requestsAt(database.sql, shown)).map(requestAnswer)
      return { items, nextCursor: places.length > limit ? placeText(shown.at(-1)) : undefined }
    }
    const before = cursor !== undefined && isId('req', cursor) ? { before: cursor } : {}
    const found = await requests.list({ ...filters, ...before, limit: limit + 1 })
    const items = found.slice(0, limit).map(requestAnswer)
    return { items, nextCursor: found.length > limit ? items.at(-1)?.id : undefined }
  }
  return {
    list,
    async pages(query) {
      if (isNewestFirst(query)) return everyPage((page) => list({ ...query, ...page }))
      const { sort = 'started_at', order = 'desc' } = query
      const places = await sortedPlaces(database, { ...query, sort, order, limit: sortedExportMax + 1 })
      if (places.length <= sortedExportMax) return pagesAt(database, places)
      throw invalidRequest(
        `More than ${sortedExportMax} requests match, which is too many to sort for a file. Choose a shorter period, or sort by started_at.`,
        'sort',
      )
    },
    async find(id: RequestId) {
      const request = await requests.find(id)
      if (!request) return undefined
      const transfers = await ledger.transfersOf(id)
      const uses = (await Promise.all(transfers.map((transfer) => usesOf(database.sql, transfer.id)))).flat()
      const transferOf = (wanted: TransferKind) => transfers.find(({ kind }) => kind === wanted)
      // The transfer knows which route served in the end: a call on a workspace's own credential has no catalog price.
      const charge = transferOf('charge')
      return {
        ...requestAnswer(request),
        ...(charge && { price_version: charge.priceVersion ?? null }),
        charge: await explainCharge(database, request, { charge, writeoff: transferOf('writeoff') }),
        transfers: transfers.map((transfer) => transferAnswer(transfer, request.workspaceId)),
        plan_credits: uses.map(({ creditId, planId, window, amount }) => ({
          ...{ id: creditId, plan: planId, period: periodShown(window), amount: formatUsd(amount) },
        })),
      }
    },
  }
}

function isNewestFirst({ sort = 'started_at', order = 'desc' }: Pick<RequestQuery, 'sort' | 'order'>): boolean {
  return sort === 'started_at' && order === 'desc'
}

const pageAtSize = 50

async function* pagesAt({ sql }: Database, places: readonly SortedPlace[]) {
  for (let from = 0; from < places.length; from += pageAtSize) {
    yield (await requestsAt(sql, places.slice(from, from + pageAtSize))).map(requestAnswer)
  }
}

/** A place in a sorted list as a cursor. */
function placeText(place: SortedPlace | undefined): string | undefined {
  return place && `${place.value ?? ''}:${place.id}`
}

function placeFrom(cursor: string): SortedPlace {
  const [, value = '', id = ''] = /^(-?[0-9]{0,18}):(.+)$/.exec(cursor) ?? []
  if (!isId('req', id) || value === '-') throw invalidRequest('`cursor` is not a cursor of this list.', 'cursor')
  return { id, value: value === '' ? null : BigInt(value) }
}

const requestFrom = answerAs(requestSchema)
const candidateAnswer = answerAs(requestSchema.shape.candidates.element)
const attemptAnswer = answerAs(requestSchema.shape.attempts.element)

function requestAnswer(request: StoredRequest): LoggedRequest {
  const { charge, usage, endUser } = request
  return requestFrom({
    ...request,
    cause: causeText(request),
    candidates: request.candidates.map((each) => candidateAnswer({ ...each, why: each.why })),
    attempts: request.attempts.map((each) => attemptAnswer({ ...each, startMs: each.startMs })),
    usage: usage && usageAnswer(usage),
    cost: charge,
    endUser: endUser === undefined ? undefined : shownEndUser(endUser),
    tags: { ...request.tags },
  })
}

/** As `causeColumn` groups it; undefined = success. */
function causeText({ cause, code }: Pick<StoredRequest, 'cause' | 'code'>): string | undefined {
  return cause ?? code?.toLowerCase()
}

function usageAnswer(usage: Usage) {
  const parts = tokenBuckets.filter(({ partOf }) => partOf !== undefined)
  return {
    ...Object.fromEntries(wholeBuckets.map(({ bucket, count }) => [`${bucket}_tokens`, usage[count]])),
    reasoning_tokens: usage.reasoningTokens ?? null,
    ...Object.fromEntries(parts.map(({ bucket, count }) => [`${bucket}_tokens`, usage[count] ?? 0])),
    ...Object.fromEntries(unitBuckets.map(({ json, count }) => [json, usage[count] ?? 0])),
    ...Object.fromEntries(factorNames.map((name) => [name, usage[factors[name].flag] ?? false])),
    service_tier: usage.tier ?? null,
    source: usage.source,
  } as UsageItem
}

interface Settled {
  readonly charge: Transfer | undefined
  /** The part the wallet could not pay. */
  readonly writeoff: Transfer | undefined
}

/** null if nothing was charged by a price: rejected requests, and calls on a workspace's own credential without a fee. */
async function explainCharge(database: Database, { usage, held }: StoredRequest, { charge, writeoff }: Settled) {
  if (!usage || charge?.priceVersion === undefined) return null
  const version = await readPriceVersion(database, charge.priceVersion)
  if (!version) return null
  const lines = chargeLines(version.price, usage)
  const writtenOff = writeoff?.amount ?? zeroNano
  // An estimate costs at most what was held, so its lines may add up to more.
  const total = charge.estimated
    ? charge.amount + writtenOff
    : picoToNano(lines.reduce((sum, { amount }) => sum + amount, 0n))
  return {
    price_version: charge.priceVersion,
    price_source: version.source,
    price_effective_from: isoTime(version.effectiveFrom),
    lines: lines.map(({ bucket, units, rate, amount }) => ({
      kind: bucket,
      tokens: units,
      price_per_million: formatPrice(rate),
      amount: formatPico(amount),
    })),
    total: formatUsd(total as Nano),
    written_off: formatUsd(writtenOff),
    charged: formatUsd(charge.amount),
    released: usdOrNull(held === undefined ? undefined : ((held > charge.amount ? held - charge.amount : 0n) as Nano)),
  }
}

function usdOrNull(amount: Nano | undefined): string | null {
  return amount === undefined ? null : formatUsd(amount)
}

function sumsAnswer(figures: Figures) {
  return {
    requests: Number(figures.requests),
    errors: Number(figures.errors),
    input_tokens: Number(figures.inputTokens),
    output_tokens: Number(figures.outputTokens),
    cost: formatUsd(figures.charge as Nano),
    first_event_ms: firstEventsOf(figures.firstEvents),
  }
}

const namedTables: Readonly<Record<string, string>> = {
  ...{ project: 'projects', workspace: 'workspaces', person: 'people', group: 'groups' },
}

/** null = what is grouped by has no names. */
async function nameOf({ sql }: Database, group = '', id: string): Promise<string | null> {
  if (group === 'key') return await nameOfKey(sql, id)
  const table = namedTables[group]
  if (table === undefined) return null
  const [row] = await sql<{ name: string }>`SELECT name FROM ${sql(table)} WHERE id = ${id}`
  return row?.name ?? null
}

async function* jsonPieces(pages: AsyncIterable<readonly LoggedRequest[]>): AsyncGenerator<string> {
  for await (const page of pages) yield page.map((request) => `${JSON.stringify(request)}\n`).join('')
}

/** Reads each name once. */
function createNameOf(database: Database) {
  const names = new Map<string, Promise<string | null>>()
  return (group: string, id: string) => names.getOrInsertComputed(id, () => nameOf(database, group, id))
}

async function* csvPieces(database: Database, pages: AsyncIterable<readonly LoggedRequest[]>): AsyncGenerator<string> {
  const readName = createNameOf(database)
  yield `${[...columns.map(([name]) => name), ...nameColumns].join(',')}\r\n`
  for await (const page of pages) {
    let text = ''
    for (const request of page) {
      const names = nameColumns.map((group) => readName(group, request[`${group}_id`]))
      text += `${csvLine([...columns.map(([, value]) => value(request)), ...(await Promise.all(names))])}\r\n`
    }
    yield text
  }
}

type Column = readonly [name: string, value: (request: LoggedRequest) => CsvValue]
type PlainField = {
  [Name in keyof LoggedRequest]: LoggedRequest[Name] extends CsvValue ? Name : never
}[keyof LoggedRequest]

const fields = (...names: readonly PlainField[]): readonly Column[] =>
  names.map((name) => [name, (request) => request[name]] as const)

/** Last, so that the places of the other columns stay. */
const nameColumns = ['workspace', 'project', 'key'] as const

/** In this order; null becomes an empty cell. */
const columns: readonly Column[] = [
  ...fields('started_at', 'id', 'workspace_id', 'project_id', 'key_id', 'path', 'stream', 'model', 'requested_model'),
  ...fields('status', 'code', 'cause'),
  ...fields('provider', 'upstream_model'),
  ['attempts', ({ attempts }) => attempts.length],
  ...usageFields.map((name): Column => {
    return [name === 'source' ? 'usage_source' : name, ({ usage }) => usage?.[name] ?? null]
  }),
  ...fields('price_version', 'cost', 'first_event_ms', 'total_ms', 'client', 'session', 'agent', 'end_user'),
  ['tags', ({ tags }) => tagsText(tags)],
  ...fields('reason'),
]

/** undefined = too many clients are following already. */
type FollowRequests = (filters: RequestFilters, isOwn?: OwnerFilter) => EventStream | undefined

/** Whether the key is the caller's own. */
type OwnerFilter = (keyId: KeyId) => Promise<boolean>

/** Chunks that wait for a slow reader; a slower one misses requests and can list them. */
const queuedChunksMax = 8
/** The tail polls once a second. Proxies, and the gateway itself, close connections that stay silent. */
const pollsPerKeepAlive = 15

function createFollowRequests(tail: RequestTail): FollowRequests {
  /** Serialised once, however many clients follow. */
  const serialised = new WeakMap<StoredRequest, string>()
  const eventOf = (request: StoredRequest): string => {
    const event = serialised.get(request) ?? `event: request\ndata: ${JSON.stringify(requestAnswer(request))}\n\n`
    serialised.set(request, event)
    return event
  }

  return (filters, isOwn) => {
    const events = new EventStream(queuedChunksMax, () => stop?.())
    let polls = 0
    const deliver = (requests: readonly StoredRequest[]): void => {
      polls++
      // Everything a poll found goes out at once, because each chunk is a write to the socket.
      const texts = requests.map(eventOf)
      if (polls % pollsPerKeepAlive === 0) texts.push(': still here\n\n')
      if (texts.length > 0) events.send(texts.join(''))
    }
    const deliverOwn = async (requests: readonly StoredRequest[], check: OwnerFilter): Promise<void> => {
      const own = await Promise.all(requests.map(({ keyId }) => check(keyId)))
      deliver(requests.filter((_, at) => own[at]))
    }
    const stop = tail.listen({
      onRequests(requests) {
        const passing = requests.filter((request) => passes(request, filters))
        if (!isOwn) deliver(passing)
        // Without the database nothing is known to be theirs; the page lists what it missed.
        else void deliverOwn(passing, isOwn).catch(() => {})
      },
      onEnd: () => events.end(),
    })
    if (!stop) return undefined
    events.send('retry: 2000\n: listening\n\n')
    return events
  }
}

function passes(request: StoredRequest, filters: RequestFilters): boolean {
  const { workspaceId, projectId, keyId, model, outcome, provider, cause, batchId } = filters
  return (
    passesAttribution(request, filters) &&
    (workspaceId === undefined || request.workspaceId === workspaceId) &&
    (projectId === undefined || request.projectId === projectId) &&
    (keyId === undefined || request.keyId === keyId) &&
    (model === undefined || request.model === model) &&
    (provider === undefined || request.provider === provider) &&
    (batchId === undefined || request.batchId === batchId) &&
    (cause === undefined || (causeText(request) ?? 'ok') === cause) &&
    (outcome === undefined || (request.code === undefined) === (outcome === 'ok'))
  )
}
