// Prices as rows, and the one function that turns usage into an amount, for holds, charges, logs and pages. The buckets are
// in kernel/usage.ts.

import { assert } from '../kernel/failure.ts'
import {
  formatPrice,
  formatPricePer,
  type Nano,
  type Pico,
  parsePrice,
  parsePricePer,
  picoToNano,
} from '../kernel/money.ts'
import {
  type Bucket,
  buckets,
  type FactorName,
  factorNames,
  factors,
  listedBuckets,
  type PartBucket,
  type Tier,
  type TokenCounts,
  tierNames,
  tokenBuckets,
  totalInputTokens,
  type UnitBucket,
  type UnitCounts,
  type Usage,
  type UsageFlags,
  unitBuckets,
  unpricedText,
  type WholeBucket,
  wholeBuckets,
} from '../kernel/usage.ts'

export interface PriceRow {
  readonly bucket: Bucket
  /** The tier that it applies to; absent = the standard one, and tiers without rows. */
  readonly tier?: Tier
  /** The requests it applies to; absent = all. If several rows of a bucket apply, the last one counts. */
  readonly when?: { readonly overInputTokens: number }
  readonly picoDollarsPerUnit: Pico
}

export interface Price {
  readonly free: boolean
  /** By tier, the standard one first; in each, rows without a condition first, then ascending by overInputTokens. */
  readonly rows: readonly PriceRow[]
  /** In hundredths of a percent. Applied to tokens if the usage has the factor's flag. */
  readonly factors: Readonly<Partial<Record<FactorName, bigint>>>
}

export const freePrice: Price = { free: true, rows: [], factors: {} }

export type Rates = Readonly<Partial<Record<Bucket, Pico>>>
/** A price list needs these two; the others have a fallback, are charged as part of another bucket, or cost nothing. */
export type ListedRates = Rates & Readonly<Record<'input' | 'output', Pico>>

/** Prices of a tier, and of requests with more input tokens than the key says. */
export interface ListedTier {
  readonly rates: ListedRates
  readonly over?: Readonly<Record<string, ListedRates>>
}

export function createPrice(
  listed: ListedRates,
  over: Readonly<Record<string, ListedRates>> = {},
  multiplied: Price['factors'] = {},
  listedTiers: Readonly<Partial<Record<Tier, ListedTier>>> = {},
): Price {
  const base = completeRates(listed)
  const rows: PriceRow[] = Object.entries(base).map(([bucket, pico]) => rowOf(bucket, pico))
  for (const { bucket } of unitBuckets) if (listed[bucket] !== undefined) rows.push(rowOf(bucket, listed[bucket]))
  const long = longRates(over, base)
  for (const [overInputTokens, rates] of long) rows.push(...rowsOf(rates, { when: { overInputTokens } }))
  for (const tier of tierNames) {
    const list = listedTiers[tier]
    if (!list) continue
    const rates = completeRates(list.rates, base)
    const ownLong = longRates(list.over, rates)
    rows.push(...rowsOf(rates, { tier }))
    for (const overInputTokens of [...new Set([...long.keys(), ...ownLong.keys()])].sort((a, b) => a - b)) {
      // A tier without a price for long prompts costs at least what they cost without it.
      const own = ownLong.get(overInputTokens) ?? dearestRates(rates, long.get(overInputTokens))
      rows.push(...rowsOf(own, { tier, when: { overInputTokens } }))
    }
  }
  return { free: false, rows, factors: multiplied }
}

/** Ascending by the number of input tokens. */
function longRates(over: Readonly<Record<string, ListedRates>> = {}, base: Rates): ReadonlyMap<number, Rates> {
  const sorted = Object.entries(over).sort(([a], [b]) => Number(a) - Number(b))
  return new Map(sorted.map(([tokens, listed]) => [Number(tokens), completeRates(listed, base)]))
}

function dearestRates(rates: Rates, others: Rates = {}): Rates {
  const found: Partial<Record<Bucket, Pico>> = { ...rates }
  for (const { bucket } of tokenBuckets) {
    const other = others[bucket]
    if (other !== undefined) found[bucket] = larger(other, found[bucket])
  }
  return found
}

function rowsOf(rates: Rates, condition: Pick<PriceRow, 'tier' | 'when'>): readonly PriceRow[] {
  return Object.entries(rates).map(([bucket, pico]) => ({ ...rowOf(bucket, pico), ...condition }))
}

function rowOf(bucket: string, picoDollarsPerUnit: Pico): PriceRow {
  return { bucket: bucket as Bucket, picoDollarsPerUnit }
}

/**
 * Token prices with the fallbacks filled in, so that no bucket is free by omission. A part that a list for long prompts or for
 * a tier omits costs at least its base price, and at least the price of the bucket it is part of.
 */
function completeRates(listed: ListedRates, base: Rates = {}): Rates {
  const rates: Partial<Record<Bucket, Pico>> = {}
  for (const { bucket, fallback, partOf } of listedBuckets) {
    const below = base[bucket]
    let rate = listed[bucket] ?? (fallback && (partOf ? listed[fallback] : rates[fallback]))
    if (rate === undefined && partOf && below !== undefined) rate = larger(below, rates[partOf])
    if (rate !== undefined) rates[bucket] = rate
  }
  return rates
}

function larger(a: Pico, b: Pico | undefined): Pico {
  return b !== undefined && b > a ? b : a
}

/** Prices of all buckets for requests with more than this many input tokens, or with any number of them (-1). */
interface Step {
  readonly overInputTokens: number
  readonly rates: Rates
  /** The highest price of a token on each side, by the list of buckets that a request cannot use. */
  readonly highest: WeakMap<readonly Bucket[], Record<'input' | 'output', Pico>>
}

interface Compiled {
  readonly buckets: ReadonlySet<Bucket>
  /** The unit buckets among them. */
  readonly units: typeof unitBuckets
  readonly tiers: ReadonlySet<Tier>
  /** Ascending, for each tier and combination of flags; the index is that of the tier, and then the combination in binary. */
  readonly byTerms: (readonly Step[])[]
}

/** Every request is priced several times, so a price's rows are compiled into steps once. */
const compiledPrices = new WeakMap<Price, Compiled>()
let lastPrice: Price | undefined
let lastCompiled: Compiled | undefined

function compiled(price: Price): Compiled {
  if (price === lastPrice && lastCompiled) return lastCompiled
  let found = compiledPrices.get(price)
  if (!found) {
    const priced = new Set(price.rows.map(({ bucket }) => bucket))
    const pricedTiers = new Set(price.rows.flatMap(({ tier }) => tier ?? []))
    const units = unitBuckets.filter(({ bucket }) => priced.has(bucket))
    found = { buckets: priced, units, tiers: pricedTiers, byTerms: [] }
    compiledPrices.set(price, found)
  }
  lastPrice = price
  lastCompiled = found
  return found
}

function stepsAt(price: Price, terms: Terms): readonly Step[] {
  const { tiers: pricedTiers, byTerms } = compiled(price)
  const { tier: named } = terms
  const tier = named !== undefined && named !== 'standard' && pricedTiers.has(named) ? named : undefined
  let at = tier === undefined ? 0 : tierNames.indexOf(tier) + 1
  for (const name of factorNames) at = at * 2 + (terms[factors[name].flag] ? 1 : 0)
  const known = byTerms[at]
  if (known) return known
  const steps = createSteps(price, terms, tier)
  byTerms[at] = steps
  return steps
}

function createSteps({ rows, factors: multiplied }: Price, terms: Terms, tier: Tier | undefined): readonly Step[] {
  const isUnit = ({ bucket }: PriceRow) => unitOf(bucket) !== undefined
  // Units cost the same in every tier.
  const applicable = rows.filter((row) => row.tier === tier || isUnit(row))
  const starts = new Set([-1, ...applicable.map(({ when }) => when?.overInputTokens ?? -1)])
  const applied = factorNames.flatMap((name) => (terms[factors[name].flag] ? (multiplied[name] ?? []) : []))
  return [...starts].map((overInputTokens) => {
    const rates: Partial<Record<Bucket, Pico>> = {}
    for (const row of applicable) {
      const { bucket, when, picoDollarsPerUnit } = row
      if ((when?.overInputTokens ?? -1) > overInputTokens) continue
      rates[bucket] = isUnit(row) ? picoDollarsPerUnit : applied.reduce(shareOf, picoDollarsPerUnit)
    }
    return { overInputTokens, rates, highest: new WeakMap() }
  })
}

/** Whether the price has rows for a tier; what it has none for costs the standard price. */
export function hasTier(price: Price, tier: Tier): boolean {
  return compiled(price).tiers.has(tier)
}

export function hasTiers(price: Price): boolean {
  return compiled(price).tiers.size > 0
}

/** In the order of `tiers`. */
export function pricedTiers(price: Price): readonly Tier[] {
  return tierNames.filter((tier) => hasTier(price, tier))
}

/** The price of each bucket for a request with this many input tokens. */
export function ratesAt(price: Price, inputTokens: number, terms: Terms = {}): Rates {
  const steps = stepsAt(price, terms)
  let at = steps.length - 1
  while (at > 0 && inputTokens <= (steps[at]?.overInputTokens ?? 0)) at--
  return steps[at]?.rates ?? {}
}

type Flags = { readonly [Flag in keyof UsageFlags]?: boolean | undefined }
/** What decides the price beside the number of tokens. */
type Terms = Flags & { readonly tier?: Usage['tier'] | undefined }

/** Rounded up. */
function shareOf(pico: Pico, basisPoints: bigint): Pico {
  return ((pico * basisPoints + 9_999n) / 10_000n) as Pico
}

export function hasRow(price: Price, bucket: Bucket): boolean {
  return compiled(price).buckets.has(bucket)
}

export function pricedUnits(price: Price): typeof unitBuckets {
  return compiled(price).units
}

/** One bucket of a charge, exact to the pico-dollar. */
export interface ChargeLine {
  readonly bucket: Bucket
  /** Tokens, or units such as searches. */
  readonly units: number
  /** Pico-dollars per unit. */
  readonly rate: Pico
  /** units × rate, in pico-dollars. */
  readonly amount: bigint
}

const wholesWithParts = wholeBuckets.map((whole) => ({
  ...whole,
  parts: tokenBuckets.filter(({ partOf }) => partOf === whole.bucket),
}))

/** Calls `add` for every bucket of a usage with its units and its price. */
function eachLine(price: Price, usage: Usage, add: AddLine): void {
  eachTokenLine(usage, ratesAt(price, totalInputTokens(usage), usage), add)
  // The prompt of each summary selects its own step.
  if (usage.summaries) {
    for (const counts of usage.summaries) {
      eachTokenLine(counts, ratesAt(price, totalInputTokens(counts), usage), add)
    }
  }
  for (const { bucket, count } of unitBuckets) {
    const units = usage[count] ?? 0
    if (units > 0) add(bucket, units, ratesAt(price, 0)[bucket])
  }
}

type AddLine = (bucket: Bucket, units: number, rate?: Pico) => void

function eachTokenLine(counts: TokenCounts, rates: Rates, add: AddLine): void {
  for (const { bucket, count, parts } of wholesWithParts) {
    const whole = counts[count] ?? 0
    let rest = whole
    // The units that are in no part come first.
    for (const part of parts) rest -= partUnits(part, counts, rates, rest)
    if (rest > 0) add(bucket, rest, rates[bucket])
    if (rest === whole) continue
    let left = whole
    for (const part of parts) {
      const units = partUnits(part, counts, rates, left)
      if (units > 0) add(part.bucket, units, rates[part.bucket])
      left -= units
    }
  }
}

/** At most `left`: a part can exceed a whole that was reduced to the hold. */
function partUnits(part: (typeof tokenBuckets)[number], counts: TokenCounts, rates: Rates, left: number): number {
  return rates[part.bucket] === undefined ? 0 : Math.min(counts[part.count] ?? 0, left)
}

/** The lines of a charge; their sum, rounded up once, is the charge. Buckets without units have no line. */
export function chargeLines(price: Price, usage: Usage): readonly ChargeLine[] {
  const lines: ChargeLine[] = []
  eachLine(price, usage, (bucket, units, rate = 0n as Pico) => {
    lines.push({ bucket, units, rate, amount: BigInt(units) * rate })
  })
  return lines
}

export function priceUsage(price: Price, usage: Usage): Nano {
  let pico = 0n
  eachLine(price, usage, (_, units, rate) => {
    if (rate) pico += BigInt(units) * rate
  })
  assert(pico >= 0n, 'a charge is never negative')
  return picoToNano(pico)
}

/**
 * Savings by the prompt cache: the cost of the same usage with every cached token as plain input, minus the actual cost.
 * Negative if writing to the cache cost more than reading from it saved.
 */
export function cacheSavings(price: Price, usage: Usage): bigint {
  const uncached = { ...usage, ...withoutCache(usage), summaries: usage.summaries?.map(withoutCache) ?? [] }
  return priceUsage(price, uncached) - priceUsage(price, usage)
}

/** Every input bucket except `input` and its parts is for a cache. */
const cacheBuckets = tokenBuckets.filter(
  ({ bucket, side, partOf }) => side === 'input' && (partOf ?? bucket) !== 'input',
)

/** Parts of the cached tokens, such as audio, become the same parts of the plain input. */
function withoutCache<Counts extends TokenCounts>(counts: Counts): Counts {
  const plain: { -readonly [Count in keyof TokenCounts]: number } = { ...counts, inputTokens: totalInputTokens(counts) }
  for (const { count, partOf, fallback } of cacheBuckets) {
    const tokens = counts[count] ?? 0
    if (partOf && fallback && tokens > 0)
      plain[buckets[fallback].count] = (plain[buckets[fallback].count] ?? 0) + tokens
    plain[count] = 0
  }
  return { ...counts, ...plain }
}

/** What a request may use besides plain tokens. */
export interface PossibleUsage extends Flags {
  /** The maximum of units of each bucket that has a price; undefined = none has one. */
  readonly units?: UnitCounts | undefined
  /** Input tokens that are expected to be read from a cache, at its price; absent = none. */
  readonly cachedTokens?: number | undefined
  /** The only tier at which it can be charged; absent = the standard one, and `tiers`. */
  readonly tier?: Tier | undefined
  /** The tiers with a price at which it may be charged, beside the standard one; absent = none. */
  readonly tiers?: readonly Tier[] | undefined
  /** Buckets that the request cannot use; the same list object for all such requests. Any other may apply to every token of its side. */
  readonly without: readonly Bucket[]
}

/** No possible usage costs more: every token at the highest price it could have, except those expected to be cached. */
export function priceBound(price: Price, inputTokens: number, outputTokens: number, possible: PossibleUsage): Nano {
  let most = boundOf(stepsAt(price, possible), inputTokens, outputTokens, possible)
  for (const tier of possible.tiers ?? noTiers) {
    const bound = boundOf(stepsAt(price, { ...possible, tier }), inputTokens, outputTokens, possible)
    if (bound > most) most = bound
  }
  return picoToNano(most)
}

const noTiers: readonly Tier[] = []

/** In pico-dollars. */
function boundOf(
  steps: readonly Step[],
  inputTokens: number,
  outputTokens: number,
  { cachedTokens, units, without }: PossibleUsage,
): bigint {
  let most = 0n
  for (const step of steps) {
    if (step.overInputTokens >= inputTokens) break
    const { input, output } = highestIn(step, without)
    let pico = BigInt(inputTokens) * input + BigInt(outputTokens) * output
    if (cachedTokens) {
      const cached = Math.min(inputTokens, cachedTokens)
      const { cache_read = input, audio_cache_read } = step.rates
      const read = without.includes('audio_cache_read') ? cache_read : larger(cache_read, audio_cache_read)
      pico -= BigInt(cached) * (input - read)
    }
    if (units) {
      for (const { bucket, count } of unitBuckets) pico += BigInt(units[count] ?? 0) * (step.rates[bucket] ?? 0n)
    }
    if (pico > most) most = pico
  }
  return most
}

function highestIn({ rates, highest }: Step, without: readonly Bucket[]): Record<'input' | 'output', Pico> {
  let found = highest.get(without)
  if (!found) {
    found = { input: 0n as Pico, output: 0n as Pico }
    for (const { bucket, side } of tokenBuckets) {
      if (!without.includes(bucket)) found[side] = larger(found[side], rates[bucket])
    }
    highest.set(without, found)
  }
  return found
}

/** A share of every price, in hundredths of a percent: what a call on the caller's own credential costs. */
export function sharePrice(price: Price, basisPoints: bigint): Price {
  if (basisPoints === 0n) return freePrice
  const rows = price.rows.map((row) => ({ ...row, picoDollarsPerUnit: shareOf(row.picoDollarsPerUnit, basisPoints) }))
  return { ...price, rows }
}

/** A price as it is written in files, answers and pages, with one member per bucket. */
export type ShownRow = Record<WholeBucket, string> & { [Name in PartBucket]?: string | undefined }
/** `over`: prices of requests with more input tokens than the key says. */
export type ShownTier = ShownRow & { over?: Record<string, ShownRow> | undefined }
export type ShownPrice =
  | 'free'
  | (ShownTier & { [Name in UnitBucket | FactorName]?: string | undefined } & {
      tiers?: { [Name in Tier]?: ShownTier | undefined } | undefined
    })

/** Exact decimal strings: USD per million tokens, or per quantity of a unit bucket. */
export function showPrice(price: Price): ShownPrice {
  return writePrice(price, ({ bucket, picoDollarsPerUnit }) => showRate(bucket, picoDollarsPerUnit))
}

export function showRate(bucket: Bucket, rate: Pico): string {
  const info = unitOf(bucket)
  return info ? formatPricePer(info.scale, rate) : formatPrice(rate)
}

/** What a shown rate is for: `million tokens`, `thousand searches`. */
export function quantityOf(bucket: Bucket): string {
  return unitOf(bucket)?.quantity ?? 'million tokens'
}

export function writePrice(price: Price, format: (row: PriceRow) => string): ShownPrice {
  if (price.free) return 'free'
  const shown: Record<string, unknown> = writeTier(price.rows, undefined, format)
  for (const name of factorNames) {
    const factor = price.factors[name]
    if (factor !== undefined) shown[name] = formatFactor(factor)
  }
  const { over, ...base } = shown
  const listed = pricedTiers(price).map((tier) => [tier, writeTier(price.rows, tier, format)] as const)
  return {
    ...base,
    ...(over !== undefined && { over }),
    ...(listed.length > 0 && { tiers: Object.fromEntries(listed) }),
  } as unknown as ShownPrice
}

function writeTier(
  rows: readonly PriceRow[],
  tier: Tier | undefined,
  format: (row: PriceRow) => string,
): Record<string, unknown> {
  const base: Record<string, string> = {}
  const over: Record<string, Record<string, string>> = {}
  for (const row of rows) {
    if (row.tier !== tier) continue
    const step = row.when && String(row.when.overInputTokens)
    if (step === undefined) base[row.bucket] = format(row)
    else over[step] = { ...over[step], [row.bucket]: format(row) }
  }
  return { ...base, ...(Object.keys(over).length > 0 && { over }) }
}

function unitOf(bucket: Bucket): (typeof unitBuckets)[number] | undefined {
  return unitBuckets.find((unit) => unit.bucket === bucket)
}

function parseListed(bucket: Bucket, text: string): Pico | undefined {
  const info = unitOf(bucket)
  return info ? parsePricePer(info.scale, text) : parsePrice(text)
}

type ListedRow = { readonly [Name in Bucket]?: string | undefined }
type ListedSteps = ListedRow & { readonly over?: Readonly<Record<string, ListedRow>> | undefined }
type ListedPrice =
  | 'free'
  | (ListedSteps & { readonly [Name in FactorName]?: string | undefined } & {
      readonly tiers?: { readonly [Name in Tier]?: ListedSteps | undefined } | undefined
    })

/** The reverse of showPrice, also for a price list with omissions. Throws on a text that is not a price. */
export function readPrice(listed: ListedPrice, parse = parseListed): Price {
  if (listed === 'free') return freePrice
  const ratesOf = (row: ListedRow): ListedRates => {
    const rates: Partial<Record<Bucket, Pico>> = {}
    for (const { bucket } of [...tokenBuckets, ...unitBuckets]) {
      const text = row[bucket]
      if (text === undefined) continue
      const pico = parse(bucket, text)
      assert(pico !== undefined, 'a price has passed its schema')
      rates[bucket] = pico
    }
    return rates as ListedRates
  }
  const stepsOf = ({ over = {} }: ListedSteps) =>
    Object.fromEntries(Object.entries(over).map(([tokens, row]) => [tokens, ratesOf(row)] as const))
  const multiplied: Partial<Record<FactorName, bigint>> = {}
  for (const name of factorNames) {
    const factor = parseFactor(listed[name] ?? '')
    if (factor !== undefined) multiplied[name] = factor
  }
  const listedTiers: Partial<Record<Tier, ListedTier>> = {}
  for (const tier of tierNames) {
    const list = listed.tiers?.[tier]
    if (list) listedTiers[tier] = { rates: ratesOf(list), over: stepsOf(list) }
  }
  return createPrice(ratesOf(listed), stepsOf(listed), multiplied, listedTiers)
}

const basisPointsPerOne = 10_000n
const factorPattern = /^([1-9]|10)(?:\.([0-9]{1,4}))?$/

/** `"1.1"` → 11 000 hundredths of a percent; undefined if it is not a decimal from 1 to 10 with at most four decimals. */
export function parseFactor(text: string): bigint | undefined {
  const match = factorPattern.exec(text)
  if (!match) return undefined
  const factor = BigInt(`${match[1]}${(match[2] ?? '').padEnd(4, '0')}`)
  return factor > 10n * basisPointsPerOne ? undefined : factor
}

function formatFactor(factor: bigint): string {
  const decimals = String(factor % basisPointsPerOne)
    .padStart(4, '0')
    .replace(/0+$/, '')
  return decimals === '' ? String(factor / basisPointsPerOne) : `${factor / basisPointsPerOne}.${decimals}`
}

/** A larger change is more often a misplaced decimal point than intended. */
const jump = 10n

export interface PriceJump {
  readonly bucket: Bucket
  readonly from: Pico
  readonly to: Pico
}

/** Prices that change more than tenfold, at most one for each bucket. To or from zero is a jump too. */
export function priceJumps(from: Price, to: Price): readonly PriceJump[] {
  const isJump = (move: PriceJump) => move.to > jump * move.from || move.from > jump * move.to
  const units = unitBuckets.flatMap(({ bucket }) => {
    const [before, after] = [ratesAt(from, 0)[bucket], ratesAt(to, 0)[bucket]]
    // `lostPrices` reports a unit that loses its price.
    return before === undefined || after === undefined ? [] : { bucket, from: before, to: after }
  })
  const pairs = ratePairs(from, to)
  const rateIn = (rates: Rates, { bucket, partOf }: (typeof tokenBuckets)[number]) =>
    rates[bucket] ?? (partOf && rates[partOf]) ?? (0n as Pico)
  const tokens = listedBuckets.flatMap((info) => {
    const { bucket } = info
    const moves = pairs
      // A part without its own price in both changes with the whole.
      .filter(([before, after]) => before[bucket] !== undefined || after[bucket] !== undefined)
      .map(([before, after]) => ({ bucket, from: rateIn(before, info), to: rateIn(after, info) }))
    return moves.find(isJump) ?? []
  })
  return [...tokens, ...units.filter(isJump)]
}

/** The rates of two prices for prompts of every length, in the standard tier and in those that both have. */
function ratePairs(a: Price, b: Price): readonly (readonly [Rates, Rates])[] {
  const bounds = [...a.rows, ...b.rows].flatMap(({ when }) => (when ? [when.overInputTokens + 1] : []))
  const lengths = [...new Set([0, ...bounds])]
  const shared = [undefined, ...pricedTiers(a).filter((tier) => hasTier(b, tier))]
  return shared.flatMap((tier) =>
    lengths.map((tokens) => [ratesAt(a, tokens, { tier }), ratesAt(b, tokens, { tier })] as const),
  )
}

/** Buckets in which a price is lower than a cost for a prompt of any length. */
export function bucketsBelow(price: Price, cost: Price): readonly Bucket[] {
  const pairs = ratePairs(price, cost)
  const isBelow = ({ bucket, partOf }: (typeof tokenBuckets)[number]) =>
    pairs.some(([sold, paid]) => {
      const rate = sold[bucket] ?? (partOf && sold[partOf]) ?? 0n
      return rate < (paid[bucket] ?? 0n)
    })
  const isUnitBelow = ({ bucket, unpriced }: (typeof unitBuckets)[number]) => {
    const [sold, paid] = [ratesAt(price, 0)[bucket], ratesAt(cost, 0)[bucket] ?? 0n]
    const isRefused = sold === undefined && unpriced === 'refused' && !price.free
    return !isRefused && (sold ?? 0n) < paid
  }
  return [...listedBuckets.filter(isBelow), ...unitBuckets.filter(isUnitBelow)].map(({ bucket }) => bucket)
}

/** Rows that a new price drops, with the consequence: someone who sets token prices may not know about the others. */
export function lostPrices(before: Price, after: Price): readonly { readonly name: string; readonly so: string }[] {
  if (after.free) return []
  const isLost = (bucket: Bucket) => hasRow(before, bucket) && !hasRow(after, bucket)
  const parts = tokenBuckets.filter(({ bucket }) => isLost(bucket))
  const units = unitBuckets.filter(({ bucket }) => isLost(bucket))
  return [
    ...parts.map(({ bucket, partOf }) => ({ name: bucket, so: `these tokens cost as much as \`${partOf}\`` })),
    ...units.map((info) => ({ name: info.bucket, so: unpricedText(info) })),
    ...factorNames
      .filter((name) => before.factors[name] !== undefined && after.factors[name] === undefined)
      .map((name) => ({ name, so: 'there is no surcharge' })),
    ...pricedTiers(before)
      .filter((tier) => !hasTier(after, tier))
      .map((tier) => ({ name: `tiers.${tier}`, so: 'requests for this service tier are refused' })),
  ]
}
