// The metrics of a gateway. Requests are counted once, from the finished record, without allocating for labels seen before;
// labels name projects, never keys. State is read at each scrape; app/ passes the sources in. Every name is documented in
// docs/operate/observe.md, and a test reports what is missing there. The registry that they are in is the second half.

import type { Clock } from '../kernel/clock.ts'
import { type Every, onTimer, withinTime } from '../kernel/timers.ts'
import { wholeBuckets } from '../kernel/usage.ts'
import type { Database } from '../store/database.ts'
import type { RequestRecord } from './request-record.ts'

export interface GatewayMetricsOptions extends StateSources {
  readonly clock: Clock
  readonly version: string
  readonly engine: string
  /** For tests. */
  readonly every?: Every
  /** Records that could not be sent to a collector, by signal; absent = nothing is sent. */
  telemetryDropped?(): readonly NumberPoint[]
}

export function createGatewayMetrics(options: GatewayMetricsOptions) {
  const registry = createRegistry()
  const observeRequest = createRequestMetrics(registry)
  defineStateMetrics(registry, options)
  let activeStreams = 0
  registry.ask({
    name: 'tollgate_active_streams',
    type: 'gauge',
    help: 'Streamed answers in progress.',
    read: () => activeStreams,
  })
  const refusals = registry.counter({
    name: 'tollgate_config_reload_failures_total',
    help: 'Changed configuration files that were rejected.',
  })
  const stop = defineProcessMetrics(registry, options)
  return {
    registry,
    /** Call once per request, when it is over. */
    observeRequest,
    streamOpened: () => void activeStreams++,
    streamClosed: () => void activeStreams--,
    /** A changed configuration file was invalid; the last valid one stays active. */
    configRefused: () => refusals.find().add(1),
    close: stop,
  }
}

// ── Requests ──

export type ObserveRequest = (record: RequestRecord) => void

/** The label of a missing value: no model was found, no provider was called. */
export const none = 'none'

/** From a cached word to a long piece of reasoning. */
const durationBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]
const firstTokenBounds = [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 60]
const overheadBounds = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1]
/** The maximum for histograms, each of which has some fifteen lines. */
const timedSeriesMax = 400
const fieldsMax = 200

export function createRequestMetrics(registry: MetricRegistry): ObserveRequest {
  const counter = (name: string, help: string, labels: readonly string[], more: Partial<CounterDefinition> = {}) =>
    registry.counter({ name: `tollgate_${name}`, help, labels, ...more })
  const histogram = (name: string, help: string, bounds: readonly number[], more: Partial<HistogramDefinition> = {}) =>
    registry.histogram({ name: `tollgate_${name}`, help, bounds, ...more })
  const timed = { labels: ['model', 'provider'], seriesMax: timedSeriesMax }
  const outcomeLabels = ['dialect', 'model', 'provider', 'status', 'project']
  // biome-ignore format: one metric per row
  const metrics = {
    requests: counter('requests_total', 'Requests by how they ended. Status 499: the client left. An interrupted stream has 200 and a failure.', outcomeLabels, { keep: ['dialect', 'status'] }),
    failures: counter('failures_total', 'Failures returned to callers, also inside a stream.', ['code']),
    rejections: counter('limit_rejections_total', 'Requests rejected with 429: by a limit of this gateway, or because every route was throttled by its provider.', ['source']),
    durations: histogram('request_duration_seconds', 'From the arrival of a generation to its last byte.', durationBounds, timed),
    firstTokens: histogram('time_to_first_token_seconds', 'From the arrival of a streamed generation to its first meaningful event.', firstTokenBounds, timed),
    overheads: histogram('overhead_seconds', "The gateway's own part of the time before the first event: all of it, without waiting for providers.", overheadBounds),
    tokens: counter('tokens_total', 'Tokens of charged requests, in kinds that never overlap; output includes reasoning.', ['kind']),
    costs: counter('cost_usd_total', 'What requests were charged.', ['model', 'provider', 'project'], { perUnit: 1e9 }),
    attempts: counter('upstream_attempts_total', 'Upstream calls by how they ended: ok, the status, or the class of the failure.', ['provider', 'outcome']),
    warnings: counter('translation_warnings_total', 'Fields that a translation dropped or approximated.', ['field'], { seriesMax: fieldsMax }),
    implausible: counter('implausible_usage_total', 'Requests whose provider reported usage that cannot be true, by the count that was replaced by an estimate.', ['model', 'provider', 'count']),
  }
  const { requests, failures, rejections, durations, firstTokens, overheads, costs, attempts, warnings } = metrics
  const kinds = wholeBuckets.map(({ bucket, count }) => ({ count, cell: metrics.tokens.find(bucket) }))

  const time = (record: RequestRecord, model: string, provider: string) => {
    const { firstEventMs, stream } = record
    durations.find(model, provider).observe(record.totalMs / 1000)
    if (stream && firstEventMs !== undefined) firstTokens.find(model, provider).observe(firstEventMs / 1000)
    const ownMs = overheadMs(record)
    if (ownMs !== undefined) overheads.find().observe(ownMs / 1000)
  }
  return (record) => {
    const { model = none, caller, code, status, usage, charge, implausibleUsage } = record
    const provider = providerOf(record)
    const project = caller?.projectId ?? none
    requests.find(record.surface ?? none, model, provider, statusText(status), project).add(1)
    if (code !== undefined) failures.find(code).add(1)
    const source = limitSourceOf(record)
    if (source !== undefined) rejections.find(source).add(1)
    if (isGeneration(record)) time(record, model, provider)
    if (usage) for (const { count, cell } of kinds) cell.add(usage[count] ?? 0)
    if (charge !== undefined) costs.find(model, provider, project).add(Number(charge))
    for (const attempt of record.attempts) attempts.find(attempt.provider, attempt.outcome).add(1)
    if (implausibleUsage !== undefined) metrics.implausible.find(model, provider, implausibleUsage).add(1)
    for (const warning of record.warnings) warnings.find(warnedField(warning)).add(1)
  }
}

const statusTexts = new Map<number, string>()

/** The same text each time: it is looked up with every request. */
function statusText(status: number): string {
  const known = statusTexts.get(status)
  if (known !== undefined) return known
  const text = String(status)
  statusTexts.set(status, text)
  return text
}

function providerOf({ attempts }: RequestRecord): string {
  return attempts[attempts.length - 1]?.provider ?? none
}

/** Counting tokens generates nothing; its times say nothing about a model. */
export function isGeneration({ path }: RequestRecord): boolean {
  return !path.endsWith('/count_tokens')
}

/** The gateway's time before the first event: all of it, without waiting for providers. undefined = no answer. */
function overheadMs({ firstEventMs, waitedMs, settleMs }: RequestRecord): number | undefined {
  return firstEventMs === undefined ? undefined : Math.max(0, firstEventMs - waitedMs) + settleMs
}

function limitSourceOf({ code, attempts, limitSource }: RequestRecord): string | undefined {
  if (code !== 'LIMIT_EXCEEDED') return undefined
  return limitSource ?? (attempts.length > 0 ? 'provider' : 'gateway')
}

/**
 * `name_dropped /messages/3/name` → `/messages/*` + `/name`: the field without its index, and no deeper, because names
 * further down are the caller's own.
 */
export function warnedField(warning: string): string {
  const pointer = warning.slice(warning.indexOf(' ') + 1)
  const [, top = '', second, third] = pointer.split('/')
  if (second === undefined || !/^[0-9]+$/.test(second)) return `/${top}`
  return third === undefined ? `/${top}/*` : `/${top}/*/${third}`
}

// ── State ──

/** Amounts are nano-dollars, times epoch milliseconds. */
export interface LedgerReading {
  readonly openHolds: number
  readonly heldTotal: bigint
  readonly oldestHoldAt: number | undefined
  readonly commits: number
  readonly commitsFailed: number
  readonly commitMsLast: number
  readonly commitMsTotal: number
  readonly charges: number
  readonly estimated: number
  readonly overruns: number
  readonly writtenOff: bigint
  readonly reaped: number
  readonly reapedSent: number
  /** Absent on the embedded engine, which uses this machine's clock. */
  readonly clockSkewMs?: number
}

/** Larger is worse: of several routes under one name the worst is shown. */
const routeStates = { healthy: 0, 'slow start': 1, probing: 2, parked: 3, ejected: 4 } as const

/** Limits are counted with the other replicas (or alone where there are none), or on this one's share of each. */
const limiterModes = { shared: 0, share: 1 } as const

export interface RouteStateReading {
  readonly model: string
  readonly provider: string
  readonly state: keyof typeof routeStates
}

export interface WalletReading {
  /** A workspace's id, or `other` for all that were not read one by one. */
  readonly workspace: string
  readonly posted: bigint
}

export interface StateSources {
  ledger(): LedgerReading
  wallets(): Promise<readonly WalletReading[]>
  routes(): Iterable<RouteStateReading>
  unpricedModels(): number
  readonly retryBudget: { level(): number; refused(): number }
  limiterMode(): keyof typeof limiterModes
}

type Row = readonly [
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  read: () => Asked | Promise<Asked>,
  more?: { readonly labels: readonly string[]; readonly merge?: 'max' },
]

function defineRows(registry: MetricRegistry, rows: readonly Row[]): void {
  for (const [type, name, help, read, more] of rows) registry.ask({ type, name, help, read, ...more })
}

function defineStateMetrics(registry: MetricRegistry, options: GatewayMetricsOptions): void {
  const { retryBudget, clock } = options
  const ledger = () => options.ledger()
  const oldestHoldSeconds = (): number => {
    const { oldestHoldAt } = ledger()
    return oldestHoldAt === undefined ? 0 : Math.max(0, clock.now() - oldestHoldAt) / 1000
  }
  const routes = () =>
    Array.from(options.routes(), ({ model, provider, state }) => ({
      values: [model, provider],
      value: routeStates[state],
    }))
  const wallets = async () =>
    (await options.wallets()).map(({ workspace, posted }) => ({ values: [workspace], value: usd(posted) }))
  const reaped = () => {
    const { reaped, reapedSent } = ledger()
    return [
      { values: ['yes'], value: reapedSent },
      { values: ['no'], value: reaped - reapedSent },
    ]
  }
  // biome-ignore format: one metric per row
  defineRows(registry, [
    ['gauge', 'tollgate_wallet_balance_usd', 'What is in the wallets, held or not. Read from the database: every replica reports the same.', wallets, { labels: ['workspace'] }],
    ['gauge', 'tollgate_wallet_held_usd', 'Amount held by running requests of this process.', () => usd(ledger().heldTotal)],
    ['gauge', 'tollgate_open_holds', 'Holds of this process that are neither settled nor released.', () => ledger().openHolds],
    ['gauge', 'tollgate_oldest_hold_seconds', 'Age of the oldest open hold of this process; 0 = nothing is held.', oldestHoldSeconds],
    ['counter', 'tollgate_ledger_commits_total', 'Commits of the ledger; many charges may share one.', () => ledger().commits],
    ['counter', 'tollgate_ledger_commit_failures_total', 'Commits of the ledger that failed.', () => ledger().commitsFailed],
    ['counter', 'tollgate_ledger_commit_seconds_total', 'Time spent in commits of the ledger.', () => ledger().commitMsTotal / 1000],
    ['gauge', 'tollgate_ledger_commit_last_seconds', 'How long the last commit of the ledger took.', () => ledger().commitMsLast / 1000],
    ['counter', 'tollgate_charges_total', 'Requests that were charged.', () => ledger().charges],
    ['counter', 'tollgate_estimated_charges_total', 'Charges by estimated usage: the provider reported none.', () => ledger().estimated],
    ['counter', 'tollgate_overrun_charges_total', 'Charges above what was held.', () => ledger().overruns],
    ['counter', 'tollgate_written_off_usd_total', 'What wallets could not pay and the operator lost.', () => usd(ledger().writtenOff)],
    ['counter', 'tollgate_reaped_holds_total', 'Holds that ended because their process died or their time was over; sent: the body had gone upstream.', reaped, { labels: ['sent'] }],
    ['gauge', 'tollgate_route_state', 'Routes on the credential of the operator: 0 healthy, 1 slow start, 2 probing, 3 parked, 4 ejected.', routes, { labels: ['model', 'provider'], merge: 'max' }],
    ['gauge', 'tollgate_unpriced_models', 'Models that cannot be called because they have no price.', () => options.unpricedModels()],
    ['gauge', 'tollgate_retry_budget', 'Extra attempts that this process may make now.', () => retryBudget.level()],
    ['counter', 'tollgate_retries_refused_total', 'Extra attempts that were not made because the budget was spent.', () => retryBudget.refused()],
    ['gauge', 'tollgate_limiter_mode', 'Limits: 0 counted together with the other replicas, 1 per replica, because their store is unreachable.', () => limiterModes[options.limiterMode()]],
    ['gauge', 'tollgate_clock_skew_seconds', "How far this machine's clock is ahead of the database's; below 0: behind it.", () => (ledger().clockSkewMs ?? 0) / 1000],
    ['counter', 'tollgate_metrics_folded_total', 'Observations counted under the label value other, because the metric has too many series.', () => registry.folded(), { labels: ['metric'] }],
    ['counter', 'tollgate_metrics_read_failures_total', 'Values that could not be read.', () => registry.failures(), { labels: ['metric'] }],
    ['counter', 'tollgate_telemetry_dropped_total', 'Spans and metrics that could not be sent to the collector.', () => options.telemetryDropped?.() ?? [], { labels: ['signal'] }],
  ])
}

function usd(nanos: bigint): number {
  return Number(nanos) / 1e9
}

const walletsMax = 500

/** Wallets for the gauge: the lowest balances one by one, because those need attention, and the rest together. */
export async function readWallets({ sql }: Database, max = walletsMax): Promise<readonly WalletReading[]> {
  const rows = await sql<{ workspace_id: string; posted: bigint }>`
    SELECT a.workspace_id, CAST(SUM(b.posted) AS BIGINT) AS posted
    FROM balances b JOIN accounts a ON a.id = b.account_id
    WHERE a.workspace_id IS NOT NULL
    GROUP BY a.workspace_id ORDER BY 2, 1 LIMIT ${BigInt(max)}`
  const wallets = rows.map(({ workspace_id: workspace, posted }) => ({ workspace, posted }))
  if (rows.length < max) return wallets
  const [all] = await sql<{ posted: bigint | null }>`SELECT CAST(SUM(b.posted) AS BIGINT) AS posted
    FROM balances b JOIN accounts a ON a.id = b.account_id WHERE a.workspace_id IS NOT NULL`
  const listed = wallets.reduce((sum, { posted }) => sum + posted, 0n)
  const rest = (all?.posted ?? 0n) - listed
  // The two reads are not one snapshot; a negative rest only means that money moved in between.
  return [...wallets, { workspace: other, posted: rest > 0n ? rest : 0n }]
}

// ── The process ──

// Names without our prefix are those that every Prometheus client uses.

const tickMs = 100
const delayBounds = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1]

/** Returns how to stop measuring. */
function defineProcessMetrics(registry: MetricRegistry, options: GatewayMetricsOptions): () => void {
  const { clock, version, engine, every = onTimer } = options
  const startedAt = clock.now()
  const cpuSeconds = (): number => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  // biome-ignore format: one metric per row
  defineRows(registry, [
    ['gauge', 'process_resident_memory_bytes', 'Resident memory of the process.', () => process.memoryUsage.rss()],
    ['counter', 'process_cpu_seconds_total', 'CPU time of the process, all threads.', cpuSeconds],
    ['gauge', 'process_start_time_seconds', 'When the process started, in seconds since 1970.', () => startedAt / 1000],
    ['gauge', 'tollgate_build_info', 'Always 1; the labels name version and database engine.', () => [{ values: [version, engine], value: 1 }], { labels: ['version', 'engine'] }],
  ])
  const delay = registry
    .histogram({
      name: 'tollgate_event_loop_delay_seconds',
      help: 'How late a timer of the event loop was, sampled ten times a second.',
      bounds: delayBounds,
    })
    .find()
  let lastMs = clock.monotonicMs()
  return every(tickMs, () => {
    const nowMs = clock.monotonicMs()
    delay.observe(Math.max(0, nowMs - lastMs - tickMs) / 1000)
    lastMs = nowMs
  })
}

// ── The registry ──

// Values are counted as things happen, or asked for when they are read. A read never fails as a whole: a value that cannot
// be read is left out and counted.

export interface MetricName {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
}

export interface NumberPoint {
  /** In the order of the label names. */
  readonly values: readonly string[]
  readonly value: number
}

export interface HistogramPoint {
  readonly values: readonly string[]
  /** One more than there are bounds; each bucket by itself, not cumulative. */
  readonly counts: readonly number[]
  readonly sum: number
}

export interface NumberReading extends MetricName {
  readonly type: 'counter' | 'gauge'
  readonly points: readonly NumberPoint[]
}

export interface HistogramReading extends MetricName {
  readonly type: 'histogram'
  readonly bounds: readonly number[]
  readonly points: readonly HistogramPoint[]
}

export type MetricReading = NumberReading | HistogramReading
export type MetricInfo = MetricName & { readonly type: MetricReading['type'] }

export interface MetricDefinition {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** Labels with few values by nature, which keep theirs when the others become `other`. */
  readonly keep?: readonly string[]
  readonly seriesMax?: number
}

export interface CounterDefinition extends MetricDefinition {
  /** Divides the sum when it is read: nano-dollars add up exactly, dollars do not. */
  readonly perUnit?: number
}

export interface HistogramDefinition extends MetricDefinition {
  /** Upper bounds, ascending; the last bucket has none. */
  readonly bounds: readonly number[]
}

/** undefined = no value now. */
export type Asked = number | undefined | readonly NumberPoint[]

export interface AskedDefinition extends MetricDefinition {
  readonly type: 'counter' | 'gauge'
  /** How values under the same labels are combined. */
  readonly merge?: 'sum' | 'max'
  read(): Asked | Promise<Asked>
}

export type MetricRegistry = ReturnType<typeof createRegistry>

/** A database that hangs must not hold up the other numbers. */
const readTimeoutMs = 2_000
const askedSeriesMax = 1_000
/** Some 2,000 lines of text and 1 MB: more than any page shows, less than a scrape notices. */
const seriesMaxDefault = 2_000
const noLabels: readonly string[] = []

/** The label value for everything beyond the maximum of series. */
export const other = 'other'

export function createRegistry() {
  const families: { info: MetricInfo; read(): MetricReading | Promise<MetricReading>; folded(): number }[] = []
  const failures = new Map<string, number>()

  async function readFamily(family: (typeof families)[number]): Promise<readonly MetricReading[]> {
    try {
      const reading = family.read()
      return [reading instanceof Promise ? await withinTime(readTimeoutMs, reading) : reading]
    } catch {
      const { name } = family.info
      failures.set(name, (failures.get(name) ?? 0) + 1)
      return []
    }
  }

  return {
    counter(definition: CounterDefinition) {
      const table = new SeriesTable(definition, () => new Counter())
      const { perUnit = 1 } = definition
      const info = infoOf(definition, 'counter')
      const read = () => {
        return { ...info, points: table.all.map(({ values, cell }) => ({ values, value: cell.value / perUnit })) }
      }
      families.push({ info, read, folded: () => table.folded })
      return table
    },
    histogram(definition: HistogramDefinition) {
      const { bounds } = definition
      const table = new SeriesTable(definition, () => new Histogram(bounds))
      const info = infoOf(definition, 'histogram')
      const read = () => {
        const points = table.all.map(({ values, cell }) => ({ values, counts: [...cell.counts], sum: cell.sum }))
        return { ...info, bounds, points }
      }
      families.push({ info, read, folded: () => table.folded })
      return table
    },
    /** A value that is computed at every read. */
    ask(definition: AskedDefinition): void {
      const info = infoOf(definition, definition.type)
      let folded = 0
      const toReading = (asked: Asked): NumberReading => {
        const { points, foldedCount } = pointsOf(asked, definition)
        folded += foldedCount
        return { ...info, points }
      }
      const read = () => {
        const asked = definition.read()
        return asked instanceof Promise ? asked.then(toReading) : toReading(asked)
      }
      families.push({ info, read, folded: () => folded })
    },
    infos: () => families.map(({ info }) => info),
    read: async () => (await Promise.all(families.map(readFamily))).flat(),
    /** How often a value was counted as `other`, by metric. */
    folded: () =>
      families
        .filter((family) => family.folded() > 0)
        .map((family) => ({ values: [family.info.name], value: family.folded() })),
    /** How often a value could not be read, by metric. */
    failures: () => Array.from(failures, ([name, value]) => ({ values: [name], value })),
  }
}

function infoOf<Type extends MetricReading['type']>(definition: MetricDefinition, type: Type) {
  const { name, help, labels = noLabels } = definition
  return { name, help, labels, type }
}

/** Two points with the same labels would make a scraper reject the whole page. */
function pointsOf(
  asked: Asked,
  { merge = 'sum', seriesMax = askedSeriesMax }: AskedDefinition,
): { readonly points: readonly NumberPoint[]; readonly foldedCount: number } {
  if (asked === undefined) return { points: [], foldedCount: 0 }
  if (typeof asked === 'number') return { points: [{ values: noLabels, value: asked }], foldedCount: 0 }
  const merged = new Map<string, NumberPoint>()
  let foldedCount = 0
  for (const { values, value } of asked) {
    const isFull = merged.size >= seriesMax && !merged.has(values.join('\0'))
    if (isFull) foldedCount++
    const shown = isFull ? values.map(() => other) : values
    const key = shown.join('\0')
    const known = merged.get(key)
    const together = known ? (merge === 'sum' ? known.value + value : Math.max(known.value, value)) : value
    merged.set(key, { values: shown, value: together })
  }
  return { points: [...merged.values()], foldedCount }
}

export class Counter {
  value = 0

  add(amount: number): void {
    this.value += amount
  }
}

export class Histogram {
  readonly counts: number[]
  sum = 0

  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let at = 0
    // A bound belongs to its own bucket: `le` is "less or equal".
    while (at < this.bounds.length && value > (this.bounds[at] ?? 0)) at++
    this.counts[at] = (this.counts[at] ?? 0) + 1
    this.sum += value
  }
}

export interface Series<Cell> {
  readonly values: readonly string[]
  readonly cell: Cell
}

class Node<Cell> {
  readonly children = new Map<string, Node<Cell>>()
  series: Series<Cell> | undefined
}

/**
 * The series of one metric by their label values, at most five. A known set of values costs a few lookups and allocates
 * nothing; new ones are added up to a maximum, and the rest is counted together as `other`.
 */
export class SeriesTable<Cell> {
  readonly all: Series<Cell>[] = []
  /** How often `other` was used. */
  folded = 0
  readonly #root = new Node<Cell>()
  readonly #depth: number
  readonly #keeps: readonly boolean[]
  readonly #seriesMax: number
  readonly #make: () => Cell
  #otherCount = 0

  constructor(
    {
      labels = noLabels,
      keep = noLabels,
      seriesMax = seriesMaxDefault,
    }: Pick<MetricDefinition, 'labels' | 'keep' | 'seriesMax'>,
    make: () => Cell,
  ) {
    this.#depth = labels.length
    this.#keeps = labels.map((label) => keep.includes(label))
    this.#seriesMax = seriesMax
    this.#make = make
    // A metric without labels exists from the start, with 0.
    if (labels.length === 0) this.find()
  }

  /** As many values as there are labels. Fixed parameters, because a rest parameter would allocate at every request. */
  find(a = '', b = '', c = '', d = '', e = ''): Cell {
    const depth = this.#depth
    let node: Node<Cell> | undefined = this.#root
    if (depth > 0) node = node.children.get(a)
    if (depth > 1) node = node?.children.get(b)
    if (depth > 2) node = node?.children.get(c)
    if (depth > 3) node = node?.children.get(d)
    if (depth > 4) node = node?.children.get(e)
    return node?.series?.cell ?? this.#add([a, b, c, d, e].slice(0, depth))
  }

  #add(values: readonly string[]): Cell {
    const isFull = this.all.length - this.#otherCount >= this.#seriesMax
    if (!isFull) return this.#seriesAt(values).cell
    this.folded++
    const before = this.all.length
    const { cell } = this.#seriesAt(values.map((value, at) => (this.#keeps[at] ? value : other)))
    this.#otherCount += this.all.length - before
    return cell
  }

  #seriesAt(values: readonly string[]): Series<Cell> {
    let node = this.#root
    for (const value of values) {
      const child = node.children.get(value) ?? new Node<Cell>()
      node.children.set(value, child)
      node = child
    }
    if (!node.series) {
      node.series = { values, cell: this.#make() }
      this.all.push(node.series)
    }
    return node.series
  }
}
