// Traffic of our own and what a provider counted of it: requests as rows of the log, written by the code that writes them in the
// gateway, and beside each what the provider saw. Ten disturbances can be planted; without them both sides say the same.

import { recordPrices } from '../../src/catalog/price-versions.ts'
import type { BillCause } from '../../src/kernel/bill.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { firstIdAt, type RequestId } from '../../src/kernel/ids.ts'
import type { Nano } from '../../src/kernel/money.ts'
import { noTokens, type Usage } from '../../src/kernel/usage.ts'
import type { Database } from '../../src/store/database.ts'
import { insertRows } from '../../src/store/insert-rows.ts'
import { requestColumns } from '../../src/store/request-rows.ts'
import { RequestRecord, requestRow } from '../../src/telemetry/request-record.ts'
import { createPrice, renderedCharge } from './prices.ts'

export const dayMs = 86_400_000
export const firstDay = Date.parse('2026-10-01T00:00:00Z')
export const provider = 'acme'
export const models = ['large-1', 'small-1'] as const
export const gatewayKey = 'apikey_gateway'

/** What the provider counted of one call. */
export interface Counted {
  at: number
  readonly model: string
  key: string
  tier: string
  region: string
  /** The factor on its list price, in hundredths. */
  percent: bigint
  input: number
  cacheRead: number
  cacheWrite: number
  output: number
}

export interface Traffic {
  readonly counted: readonly Counted[]
  /** How many of each cause were planted, and on which days. */
  readonly planted: ReadonlyMap<BillCause, ReadonlySet<number>>
  /** By model: those that the bill has in another service tier, as far as our records can tell. */
  readonly otherTiers: ReadonlyMap<string, readonly RequestId[]>
  readonly requests: number
}

export interface TrafficOptions {
  readonly days: number
  readonly requests: number
  /** Absent = none. */
  readonly disturbances?: readonly BillCause[]
  /** One request of this many has a disturbance that single requests have. */
  readonly oneOf?: number
  /** What the provider states in an answer, in 10⁻¹⁰ dollars; absent = nothing. */
  billedTicks?(day: number, at: number, pico: bigint): number | undefined
}

/** Numbers that are the same in every run. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** On which days a disturbance of prices applies to a model. */
const priced: readonly {
  readonly cause: BillCause
  readonly day: number
  readonly tier: string
  readonly region: string
  readonly percent: bigint
}[] = [
  { cause: 'list_price', day: 2, tier: '', region: '', percent: 120n },
  { cause: 'tier', day: 3, tier: 'priority', region: '', percent: 175n },
  { cause: 'region', day: 4, tier: '', region: 'us', percent: 110n },
  { cause: 'batch', day: 5, tier: 'batch', region: '', percent: 50n },
]

export async function writeTraffic(database: Database, options: TrafficOptions): Promise<Traffic> {
  const { days, requests, disturbances = [], oneOf = 400 } = options
  const random = createRandom(20_261_119)
  const between = (min: number, max: number) => min + Math.floor(random() * (max - min + 1))
  const versions = await recordPrices({
    database,
    clock: systemClock,
    models: models.map((id) => ({ id: `acme/${id}`, price: createPrice(id), source: 'test' })),
  })
  const planted = new Map<BillCause, Set<number>>()
  const otherTiers = new Map<string, RequestId[]>()
  const counted: Counted[] = []
  let rows: Readonly<Record<string, string | bigint | null>>[] = []
  const flush = async () => {
    const portion = rows
    rows = []
    await database.transaction((sql) => insertRows(sql, 'requests', portion))
  }
  const perDay = Math.floor(requests / days)
  const spacing = Math.floor(dayMs / perDay)
  const single = (['failed_attempt', 'cut_answer', 'estimated_usage', 'implausible_count'] as const).filter((cause) =>
    disturbances.includes(cause),
  )
  for (let at = 0; at < perDay * days; at++) {
    const day = Math.floor(at / perDay)
    // The last one of a day ends after midnight where that is planted.
    const isLast = at % perDay === perDay - 1
    const isMidnight = isLast && day < days - 1 && disturbances.includes('midnight')
    const startedAt =
      firstDay +
      day * dayMs +
      (isMidnight ? dayMs - 2_000 : (at % perDay) * spacing + between(0, spacing - 20_000 > 0 ? spacing - 20_000 : 0))
    const model = models[at % 7 === 0 ? 0 : 1]
    const usage: Usage = {
      ...noTokens,
      ...{ inputTokens: between(50, 3_000), cacheReadTokens: at % 3 === 0 ? between(100, 5_000) : 0 },
      ...{
        cacheWriteTokens: at % 5 === 0 ? between(100, 1_000) : 0,
        outputTokens: between(20, 800),
        source: 'reported',
      },
    }
    const price = priced.find((each) => each.day === day % 8 && disturbances.includes(each.cause))
    // One tier is recorded and billed all the time. Where tiers are planted, it is billed at the usual price for a day.
    const isFlex = at % 11 === 3 && (price === undefined || model !== 'large-1')
    const isBilledAsUsual = isFlex && price?.cause === 'tier'
    const used: Usage = isFlex ? { ...usage, tier: 'flex' } : usage
    const id = `${firstIdAt(startedAt).slice(0, -8)}${at
      .toString(32)
      .toUpperCase()
      .replace(/[ILOU]/g, 'Z')
      .padStart(8, '0')}` as RequestId
    const record = new RequestRecord(id, startedAt, '/v1/chat/completions')
    record.caller = { keyId: 'key_1', projectId: 'prj_1', workspaceId: 'ws_1' }
    record.status = 200
    record.model = `acme/${model}`
    record.attempts = [{ provider, upstreamModel: model, outcome: 'ok', ms: 900, startMs: 1 }]
    record.totalMs = isMidnight ? 5_000 : between(400, 3_000)
    record.usage = used
    const seen: Counted = {
      ...{ at: startedAt + 1, model, key: gatewayKey, tier: '', region: '', percent: 100n },
      ...(isFlex && !isBilledAsUsual && { tier: 'flex', percent: 50n }),
      ...{ input: usage.inputTokens, cacheRead: usage.cacheReadTokens, cacheWrite: usage.cacheWriteTokens },
      output: usage.outputTokens,
    }
    const plant = (cause: BillCause) => planted.set(cause, (planted.get(cause) ?? new Set()).add(day))
    const inOtherTier = () => otherTiers.set(model, [...(otherTiers.get(model) ?? []), id])
    if (isBilledAsUsual) {
      plant('tier')
      inOtherTier()
    }
    if (price && model === 'large-1') {
      plant(price.cause)
      Object.assign(seen, { tier: price.tier, region: price.region, percent: price.percent })
      // Some replies name the tier, and our price has none for it.
      if (price.cause === 'tier' && at % 2 === 0) {
        record.unpricedTier = 'priority'
        record.notes = ['the provider served it in the service tier priority, which has no price; charged as standard']
        inOtherTier()
      }
    }
    if (isMidnight) {
      plant('midnight')
      seen.at = startedAt + record.totalMs
    } else if (!price && single.length > 0 && at % oneOf === 7) {
      const cause = single[Math.floor(at / oneOf) % single.length]
      if (cause) {
        plant(cause)
        disturb(cause, {
          record,
          seen,
          counted,
          startedAt,
          model,
          between,
          costVersion: versions.versions.get(`acme/${model}`) ?? '',
        })
      }
    }
    counted.push(seen)
    const ticks = options.billedTicks?.(day, at, BigInt(renderedCharge(model, used)) * 1000n)
    if (ticks !== undefined) record.usage = { ...used, billedTicks: ticks }
    record.upstreamCost = renderedCharge(model, record.usage ?? used)
    record.costVersion = versions.versions.get(`acme/${model}`)
    record.priceVersion = record.costVersion
    const row = requestRow(record, { charge: record.upstreamCost as Nano, writtenOff: 0n as Nano, budgets: null })
    if (row)
      rows.push(
        Object.fromEntries(
          requestColumns.map((name) => [name, typeof row[name] === 'number' ? BigInt(row[name]) : row[name]]),
        ),
      )
    if (rows.length === 2_048) await flush()
  }
  await flush()
  if (disturbances.includes('outside')) {
    for (const day of [0, 6].filter((each) => each < days)) {
      planted.set('outside', (planted.get('outside') ?? new Set()).add(day))
      for (let at = 0; at < 5; at++) {
        counted.push({
          ...{ at: firstDay + day * dayMs + at * 1_000, model: 'small-1', tier: '', region: '', percent: 100n },
          // Some with a key of someone else.
          ...{ key: at === 0 ? 'apikey_other' : gatewayKey, input: 2_000, cacheRead: 0, cacheWrite: 0, output: 500 },
        })
      }
    }
  }
  return { counted, planted, otherTiers, requests: perDay * days }
}

interface Disturbed {
  readonly record: RequestRecord
  readonly seen: Counted
  readonly counted: Counted[]
  readonly startedAt: number
  readonly model: (typeof models)[number]
  readonly costVersion: string
  between(min: number, max: number): number
}

function disturb(cause: BillCause, { record, seen, counted, startedAt, model, between, costVersion }: Disturbed): void {
  const { usage } = record
  if (!usage) throw new Error('every request here has a usage')
  switch (cause) {
    case 'failed_attempt': {
      // Estimated at 1,000; the provider read a little more and had begun to write.
      const failed: Usage = { ...usage, ...noTokens, inputTokens: 1_000, source: 'estimated' }
      const cost = Number(renderedCharge(model, failed))
      record.attempts = [
        { provider, upstreamModel: model, outcome: 'timed out', ms: 500, startMs: 0, usage: failed, cost, costVersion },
        ...record.attempts,
      ]
      const more = { input: 1_000 + between(0, 200), cacheRead: 0, cacheWrite: 0, output: between(0, 300) }
      counted.push({ ...seen, ...more, at: startedAt })
      return
    }
    case 'cut_answer':
      record.status = 499
      record.usage = {
        ...usage,
        outputTokens: Math.ceil(usage.outputTokens / 4),
        inputReported: true,
        source: 'estimated',
      }
      return
    case 'estimated_usage':
      record.usage = {
        ...usage,
        ...{ ...noTokens, inputTokens: Math.ceil((seen.input + seen.cacheRead + seen.cacheWrite) * 1.1) },
        ...{ outputTokens: Math.ceil(usage.outputTokens * 0.8), source: 'estimated' },
      }
      Object.assign(seen, { input: seen.input + seen.cacheRead + seen.cacheWrite, cacheRead: 0, cacheWrite: 0 })
      return
    case 'implausible_count':
      seen.output = 90_000
      record.usage = { ...usage, inputReported: true, source: 'estimated' }
      record.implausible = { count: 'output', reported: 90_000 }
      record.notes = ['implausible usage: the provider reported 90000 output tokens']
      return
    default:
  }
}
