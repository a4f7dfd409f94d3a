// What the gateway recorded of one provider: tokens and probable cost by day, model and bucket, and the requests that may be
// why the provider bills something else. A day is that in which the call began, in UTC. Only sums and those requests are in
// memory.

import { chargeLines, freePrice, type Price, ratesAt } from '../catalog/price.ts'
import { readPriceVersion } from '../catalog/price-versions.ts'
import { assert } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import { type Bucket, type Tier, totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { Database } from '../store/database.ts'
import { type LogDatabase, readPortions } from '../telemetry/read-log.ts'
import type { AttemptRecord, Details } from '../telemetry/request-record.ts'
import { type DayRange, dayMs, requestMaxMs } from './bill.ts'

export interface Amount {
  quantity: bigint
  pico: bigint
}

/** By bucket. */
export type Amounts = Map<string, Amount>

/** Of one service tier other than the standard one. */
export interface RecordedTier {
  readonly amounts: Amounts
  /** Those that were charged in it. */
  readonly charged: Set<RequestId>
  /** Those whose replies name it, and that were charged in another one because it has no price. */
  readonly unpriced: Set<RequestId>
}

/** Of one day and model. */
export interface RecordedModel {
  readonly buckets: Amounts
  /** The part of it that was charged in other service tiers than the standard one. */
  readonly tiers: Map<string, RecordedTier>
  requests: bigint
  /** Answers that say what the provider bills for them: what that is, and what we recorded of the same answers. */
  readonly said: { requests: bigint; billed: bigint; recorded: bigint }
  /** The longest answer. */
  outputMax: number
  readonly suspects: Suspect[]
}

export type SuspectCause = 'failed_attempt' | 'cut_answer' | 'estimated_usage' | 'implausible_count'

/** A call whose bill may differ from what was recorded of it. */
export interface Suspect {
  readonly id: RequestId
  readonly cause: SuspectCause
  /** What the provider probably counted beyond what was recorded. */
  readonly more: ReadonlyMap<string, bigint>
  /** The tokens that were estimated for it. */
  readonly input: bigint
  readonly output: bigint
}

/** An answer close to the end of a day. */
export interface EdgeRequest {
  readonly id: RequestId
  readonly model: string
  /** When the call began and its answer ended, epoch milliseconds. */
  readonly startAt: number
  readonly endAt: number
  readonly buckets: Amounts
}

export interface Recorded {
  readonly days: ReadonlyMap<number, ReadonlyMap<string, RecordedModel>>
  /** By the start of the later day. */
  readonly edges: ReadonlyMap<number, readonly EdgeRequest[]>
  /** The last price of each model and bucket in pico-dollars; undefined = the route has no cost. */
  rateOf(model: string, bucket: string): bigint | undefined
}

/** How far a provider's clock, or the moment by which it counts, may be off. */
const edgeMs = 10 * 60_000
const providerPattern = /^[a-z0-9][a-z0-9._-]*$/i

interface Row {
  readonly id: RequestId
  readonly started_at: bigint
  readonly status: bigint
  readonly code: string | null
  readonly provider: string | null
  readonly upstream_model: string | null
  readonly attempt_start_ms: bigint | null
  readonly total_ms: bigint
  readonly details: string | null
  readonly usage: string | null
  readonly estimated: bigint
  readonly cost_version: string | null
}

const clientLeftStatus = 499

export async function readRecorded(
  database: Database & Pick<LogDatabase, 'signal'>,
  provider: string,
  range: DayRange,
): Promise<Recorded> {
  assert(providerPattern.test(provider), 'ids of providers are plain words')
  const recording = new Recording(provider, range)
  const prices = new Map<string, Price | undefined>()
  const period = { from: range.from - requestMaxMs, to: range.to }
  const select = `SELECT id, started_at, status, code, provider, upstream_model, attempt_start_ms, total_ms, details, usage,
    estimated, cost_version`
  // Attempts at other providers than the last one are in the details.
  const end = ` AND (provider = '${provider}' OR failed_cost IS NOT NULL)`
  for await (const rows of readPortions<Row>(database, period, select, [end])) {
    for (const row of rows) {
      const { cost_version: version } = row
      if (version !== null && version !== ownCost && !prices.has(version)) {
        prices.set(version, (await readPriceVersion(database, version))?.price)
      }
      recording.add(row, version === null ? undefined : prices.get(version))
    }
  }
  return recording
}

const ownCost = 'own'

class Recording implements Recorded {
  readonly days = new Map<number, Map<string, RecordedModel>>()
  readonly edges = new Map<number, EdgeRequest[]>()
  readonly #prices = new Map<string, Price>()

  constructor(
    private readonly provider: string,
    private readonly range: DayRange,
  ) {}

  rateOf(model: string, bucket: string): bigint | undefined {
    const price = this.#prices.get(model)
    return price && ratesAt(price, 0)[bucket as Bucket]
  }

  add(row: Row, price: Price | undefined): void {
    const details: Details = JSON.parse(row.details ?? '{}')
    const startedAt = Number(row.started_at)
    for (const attempt of details.attempts ?? []) this.#addFailed(row.id, startedAt, attempt)
    const { provider, upstream_model: model, usage: text } = row
    if (provider !== this.provider || model === null || text === null || row.cost_version === ownCost) return
    const startAt = startedAt + Number(row.attempt_start_ms ?? 0n)
    const recorded = this.#modelOf(startAt, model)
    if (!recorded) return
    const usage = JSON.parse(text) as Usage
    const lines = chargeLines(price ?? freePrice, usage)
    if (price) this.#prices.set(model, price)
    const buckets: Amounts = new Map()
    const tier = usage.tier === undefined || usage.tier === 'standard' ? undefined : tierOf(recorded, usage.tier)
    for (const { bucket, units, amount } of lines) {
      add(buckets, bucket, BigInt(units), amount)
      add(recorded.buckets, bucket, BigInt(units), amount)
      if (tier) add(tier.amounts, bucket, BigInt(units), amount)
    }
    if (tier) addUpTo(tierRequestsMax, tier.charged, row.id)
    const { unpricedTier } = details
    if (unpricedTier) addUpTo(tierRequestsMax, tierOf(recorded, unpricedTier).unpriced, row.id)
    recorded.requests++
    recorded.outputMax = Math.max(recorded.outputMax, usage.outputTokens)
    addSaid(recorded, usage, buckets)
    const suspect = suspectOf(row, details, usage)
    if (suspect) recorded.suspects.push(suspect)
    this.#addEdge({ id: row.id, model, startAt, endAt: startedAt + Number(row.total_ms), buckets })
  }

  /** undefined = outside the range. */
  #modelOf(at: number, model: string): RecordedModel | undefined {
    const day = at - (at % dayMs)
    if (day < this.range.from || day >= this.range.to) return undefined
    const models = this.days.get(day) ?? new Map<string, RecordedModel>()
    this.days.set(day, models)
    const said = { requests: 0n, billed: 0n, recorded: 0n }
    const found = models.get(model) ?? {
      ...{ buckets: new Map(), tiers: new Map(), requests: 0n, said, outputMax: 0, suspects: [] },
    }
    models.set(model, found)
    return found
  }

  #addFailed(id: RequestId, startedAt: number, attempt: AttemptRecord): void {
    const { provider, upstreamModel, startMs = 0, usage } = attempt
    if (provider !== this.provider || !usage) return
    const [input, output] = [totalInputTokens(usage), usage.outputTokens].map(BigInt) as [bigint, bigint]
    const more = new Map(chargeLines(freePrice, usage).map(({ bucket, units }) => [bucket, BigInt(units)] as const))
    this.#modelOf(startedAt + startMs, upstreamModel)?.suspects.push({
      id,
      cause: 'failed_attempt',
      more,
      input,
      output,
    })
  }

  #addEdge(request: EdgeRequest): void {
    const { startAt, endAt } = request
    const midnight = Math.floor(Math.max(endAt, startAt + edgeMs) / dayMs) * dayMs
    if (startAt < midnight - edgeMs && endAt < midnight) return
    if (startAt >= midnight + edgeMs) return
    const edges = this.edges.get(midnight) ?? []
    edges.push(request)
    this.edges.set(midnight, edges)
  }
}

function add(amounts: Amounts, bucket: string, quantity: bigint, pico: bigint): void {
  const amount = amounts.get(bucket) ?? { quantity: 0n, pico: 0n }
  amount.quantity += quantity
  amount.pico += pico
  amounts.set(bucket, amount)
}

/** All requests of a model may be in a tier, so their ids are bounded: 1 MB. */
const tierRequestsMax = 10_000

function tierOf({ tiers }: RecordedModel, name: Tier): RecordedTier {
  const tier = tiers.get(name) ?? { amounts: new Map(), charged: new Set(), unpriced: new Set() }
  tiers.set(name, tier)
  return tier
}

function addUpTo(max: number, ids: Set<RequestId>, id: RequestId): void {
  if (ids.size < max) ids.add(id)
}

/** 10⁻¹⁰ dollars are 100 pico-dollars. */
const picoPerTick = 100n

function addSaid({ said }: RecordedModel, { billedTicks }: Usage, buckets: Amounts): void {
  if (billedTicks === undefined) return
  said.requests++
  said.billed += BigInt(billedTicks) * picoPerTick
  for (const { pico } of buckets.values()) said.recorded += pico
}

function suspectOf(row: Row, { attempts, implausible }: Details, usage: Usage): Suspect | undefined {
  const [input, output] = [totalInputTokens(usage), usage.outputTokens].map(BigInt) as [bigint, bigint]
  const suspect = { id: row.id, more: new Map<string, bigint>(), input, output }
  if (implausible) {
    const { count, reported } = implausible
    if (count === 'input' || count === 'output') {
      suspect.more.set(count, BigInt(reported) - (count === 'input' ? input : output))
    }
    return { ...suspect, cause: 'implausible_count' }
  }
  if (row.estimated === 0n) return undefined
  if (usage.inputReported) suspect.input = 0n
  const isCut =
    row.status === BigInt(clientLeftStatus) ||
    row.code !== null ||
    attempts?.at(-1)?.outcome.startsWith('interrupted') === true
  return { ...suspect, cause: isCut ? 'cut_answer' : 'estimated_usage' }
}
