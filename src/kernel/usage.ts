// The usage of a generation, by bucket: the table below names every quantity that is counted and priced. Prices, holds,
// charges, receipts, the API, exports, the command line and the pages iterate over it. Absent is not zero: an optional count that
// was not reported is undefined.

export interface TokenCounts {
  /** Input tokens that were neither read from nor written to a cache. */
  readonly inputTokens: number
  readonly cacheReadTokens: number
  /** Written to a short cache (five minutes). */
  readonly cacheWriteTokens: number
  /** Written to a long cache (one hour). */
  readonly cacheWriteLongTokens: number
  /** Reasoning included. */
  readonly outputTokens: number
  /** The audio part of inputTokens; absent = none, or not reported. */
  readonly audioInputTokens?: number
  /** The audio part of cacheReadTokens. */
  readonly audioCacheReadTokens?: number
  /** The audio part of outputTokens. */
  readonly audioOutputTokens?: number
}

/** Quantities that are charged per use rather than per token. Absent = none. */
export interface UnitCounts {
  /** Web searches that the provider ran and bills one by one. */
  readonly webSearches?: number
}

/** Circumstances that multiply the price of every token. */
export interface UsageFlags {
  /** The provider reports that it kept the work in the United States; absent = it does not. */
  readonly isUsOnly?: true
}

/** At which terms a provider serves a request. */
interface TierInfo {
  readonly label: string
  readonly meaning: string
  /** Callers can ask for it by name. */
  readonly isAsked: boolean
  /** Where the provider is to choose (`auto`), it may choose this one. */
  readonly isChosen: boolean
}

/** Terms other than the standard ones, each with prices of its own. Dialects map their words to these names. */
export const tiers = {
  flex: { label: 'Flex', meaning: 'Slower and cheaper processing', isAsked: true, isChosen: true },
  priority: { label: 'Priority', meaning: 'Faster processing', isAsked: true, isChosen: true },
  // The default tier of an OpenAI project is standard, fast or scale:
  // https://developers.openai.com/api/reference, "Project service tier settings", 2026-11
  ultrafast: { label: 'Ultrafast', meaning: 'The fastest processing', isAsked: true, isChosen: false },
  scale: {
    label: 'Scale',
    meaning: 'Processing on capacity that the operator has bought',
    isAsked: true,
    isChosen: true,
  },
  batch: { label: 'Batch', meaning: 'Processing in batches of the provider', isAsked: false, isChosen: false },
} as const satisfies Record<string, TierInfo>

export type Tier = keyof typeof tiers
export const tierNames = Object.keys(tiers) as Tier[]
export const askedTierNames = tierNames.filter((name) => tiers[name].isAsked)

export function isTier(name: unknown): name is Tier {
  return typeof name === 'string' && Object.hasOwn(tiers, name)
}

/** What a request asks for: one tier, the standard one, what the provider chooses, or a word that we do not know. */
export type AskedTier = Tier | 'standard' | 'auto' | 'unknown'

export interface Usage extends TokenCounts, UnitCounts, UsageFlags {
  /** In a report, the tier that the reply names; in a charge, the one whose prices apply. Absent = none, or the standard one. */
  readonly tier?: Tier | 'standard'
  /** Summaries of the conversation that the provider generated during the request, each with its own prompt and output. */
  readonly summaries?: readonly TokenCounts[]
  /** Informative part of outputTokens; undefined = not reported. */
  readonly reasoningTokens?: number
  /** Which of the cache buckets were reported; absent = all of them. An unreported one counts as 0. */
  readonly cacheReported?: 'none' | 'reads'
  /** What the reply says that the provider bills for it, in 10⁻¹⁰ dollars; absent = it does not say. */
  readonly billedTicks?: number
  /** Set on an estimate whose input the provider counted, so that only the output is estimated. */
  readonly inputReported?: true
  readonly source: 'reported' | 'estimated'
}

interface TokenBucketInfo {
  /** The field of a usage that counts it. */
  readonly count: keyof TokenCounts
  readonly side: 'input' | 'output'
  /** The bucket whose count includes this one; its units are charged there unless the price has a row for the part. */
  readonly partOf?: string
  /** The bucket whose price applies if a price list has none for this one. */
  readonly fallback?: string
  /** For tables and receipts. */
  readonly label: string
  /** For schemas and command line help. */
  readonly meaning: string
}

interface UnitBucketInfo {
  readonly count: keyof UnitCounts
  /** Its name in JSON answers; a token bucket's is the bucket's with `_tokens`. */
  readonly json: string
  /** In the plural. */
  readonly unit: string
  /** Prices are quoted for this many units, which are called `quantity`. The price of one unit must be exact. */
  readonly scale: bigint
  readonly quantity: string
  /** The maximum of one request. It is held unless the pipeline knows a lower bound (`unitBounds`). More is implausible. */
  readonly max: number
  /** What happens to requests for them if the price has no row. */
  readonly unpriced: 'refused' | 'free'
  readonly label: string
  readonly meaning: string
}

/**
 * To add a bucket, add its count to TokenCounts or UnitCounts, a row here, and the lines in a dialect's usage.ts that read
 * it; ARCHITECTURE.md lists the other files. A token bucket that is not part of another one also has a column in the
 * request log. Holds assume that any request may use a bucket; pipeline code may rule it out (`conditionalBuckets`) or
 * know how many units can be used (`unitBounds`).
 */
export const buckets = {
  input: {
    count: 'inputTokens',
    side: 'input',
    label: 'Input',
    meaning: 'Input tokens that touch no cache',
  },
  cache_read: {
    count: 'cacheReadTokens',
    side: 'input',
    fallback: 'input',
    label: 'Cache read',
    meaning: 'Input tokens read from a cache',
  },
  cache_write: {
    count: 'cacheWriteTokens',
    side: 'input',
    fallback: 'input',
    label: 'Cache write',
    meaning: 'Input tokens written to a short cache',
  },
  cache_write_1h: {
    count: 'cacheWriteLongTokens',
    side: 'input',
    fallback: 'cache_write',
    label: 'Cache write, 1 hour',
    meaning: 'Input tokens written to a one-hour cache',
  },
  output: {
    count: 'outputTokens',
    side: 'output',
    label: 'Output',
    meaning: 'Output tokens, including reasoning',
  },
  audio_input: {
    count: 'audioInputTokens',
    side: 'input',
    partOf: 'input',
    label: 'Audio input',
    meaning: 'Audio input tokens',
  },
  audio_cache_read: {
    count: 'audioCacheReadTokens',
    side: 'input',
    partOf: 'cache_read',
    fallback: 'audio_input',
    label: 'Audio cache read',
    meaning: 'Audio tokens read from a cache',
  },
  audio_output: {
    count: 'audioOutputTokens',
    side: 'output',
    partOf: 'output',
    label: 'Audio output',
    meaning: 'Audio output tokens',
  },
  web_search: {
    count: 'webSearches',
    json: 'web_searches',
    unit: 'searches',
    scale: 1000n,
    quantity: 'thousand searches',
    // xAI reads at most 50 sources; Anthropic takes a limit from the caller.
    max: 50,
    unpriced: 'refused',
    label: 'Web searches',
    meaning: 'Web searches run by the provider',
  },
} as const satisfies Record<string, TokenBucketInfo | UnitBucketInfo>

export type Bucket = keyof typeof buckets
type BucketsWith<Info> = { [Name in Bucket]: (typeof buckets)[Name] extends Info ? Name : never }[Bucket]
export type TokenBucket = BucketsWith<{ side: string }>
export type UnitBucket = BucketsWith<{ unit: string }>
/** The name of a count of units in JSON. */
export type UnitName = (typeof buckets)[UnitBucket]['json']
/** Token buckets that another one includes. */
export type PartBucket = BucketsWith<{ partOf: string }>
/** Token buckets that never overlap; every price has them. */
export type WholeBucket = Exclude<TokenBucket, PartBucket>

interface Named<Name> {
  readonly bucket: Name
}
const named = Object.entries(buckets).map(([bucket, info]) => ({ bucket, ...info }))
export const tokenBuckets = named.filter((info) => 'side' in info) as unknown as readonly (Named<TokenBucket> &
  TokenBucketInfo & { readonly partOf?: WholeBucket; readonly fallback?: TokenBucket })[]
export const unitBuckets = named.filter((info) => 'unit' in info) as unknown as readonly (Named<UnitBucket> &
  UnitBucketInfo & { readonly json: UnitName })[]
export const wholeBuckets = tokenBuckets.filter(
  ({ partOf }) => partOf === undefined,
) as readonly ((typeof tokenBuckets)[number] & Named<WholeBucket>)[]

/** In the order of price lists: the two that every list has come first. */
export const listedBuckets = [
  ...tokenBuckets.filter(({ bucket }) => isRequiredInLists(bucket)),
  ...tokenBuckets.filter(({ bucket }) => !isRequiredInLists(bucket)),
]

/** Any other bucket has a fallback or is part of another one. */
export function isRequiredInLists(bucket: TokenBucket): bucket is 'input' | 'output' {
  return bucket === 'input' || bucket === 'output'
}

/** Factors on the price of every token, and the flag of a usage that applies each. */
export const factors = {
  us_only: {
    flag: 'isUsOnly',
    label: 'US-only processing, all tokens',
    meaning: 'Factor on token prices for work kept in the United States',
  },
} as const satisfies Record<string, { flag: keyof UsageFlags; label: string; meaning: string }>

export type FactorName = keyof typeof factors
export const factorNames = Object.keys(factors) as FactorName[]

/** A larger count is a provider's mistake or an attack. It would not overflow, but it must not be billed. */
export const tokensMax = 2 ** 31

/** Cached or not. */
export function totalInputTokens(usage: WholeCounts): number {
  let total = 0
  for (const count of wholeInputCounts) total += usage[count]
  return total
}

type WholeCount = (typeof buckets)[WholeBucket]['count']
type WholeCounts = Readonly<Record<WholeCount, number>>
const wholeInputCounts = wholeBuckets
  .filter(({ side }) => side === 'input')
  .map(({ count }) => count) as readonly WholeCount[]

/** The same for a usage in JSON. A gateway of another version may omit a count. */
export function totalInputInJson(usage: { readonly [Name in WholeBucket as `${Name}_tokens`]?: number }): number {
  return wholeBuckets.reduce(
    (sum, { bucket, side }) => sum + (side === 'input' ? (usage[`${bucket}_tokens`] ?? 0) : 0),
    0,
  )
}

/** Zero in every bucket, to spread into a usage. */
export const noTokens = Object.fromEntries(wholeBuckets.map(({ count }) => [count, 0])) as WholeCounts

/** The fields of a usage that count tokens of each side, parts included. */
export const countsOfSide: Readonly<Record<'input' | 'output', readonly string[]>> = {
  input: tokenBuckets.flatMap(({ side, count }) => (side === 'input' ? count : [])),
  output: tokenBuckets.flatMap(({ side, count }) => (side === 'output' ? count : [])),
}

/** A usage with only the input, as an estimate. */
export function estimatedInput(inputTokens: number): Usage {
  return { ...noTokens, inputTokens, cacheReported: 'none', source: 'estimated' }
}

/** The tier that a reply names, untrusted, to spread into a usage. A word without a row is a tier that we do not know. */
export function tierReport(words: Readonly<Record<string, AskedTier>>, word: unknown): Pick<Usage, 'tier'> {
  const tier = typeof word === 'string' && Object.hasOwn(words, word) ? words[word] : undefined
  return tier === undefined || tier === 'auto' || tier === 'unknown' ? noTier : { tier }
}

const noTier: Pick<Usage, 'tier'> = {}

/** $100,000, more than any reply costs. */
const ticksMax = 1e15

/** The provider's own bill for a reply, untrusted, to spread into a usage. */
export function billedReport(ticks: unknown): Pick<Usage, 'billedTicks'> {
  const isBill = typeof ticks === 'number' && Number.isInteger(ticks) && ticks >= 0 && ticks <= ticksMax
  return isBill ? { billedTicks: ticks } : noBill
}

const noBill: Pick<Usage, 'billedTicks'> = {}

/** Units from an untrusted count, to spread into a usage. */
export function unitReport(count: keyof UnitCounts, value: unknown): UnitCounts {
  const units = tokenCount(value)
  return units === undefined || units === 0 ? noUnits : { [count]: units }
}

const noUnits: UnitCounts = {}

/** What happens without a price, as the end of a sentence. */
export function unpricedText({ unit, unpriced }: Pick<UnitBucketInfo, 'unit' | 'unpriced'>): string {
  return unpriced === 'refused' ? `requests for ${unit} are refused` : `${unit} are not charged`
}

/** Audio tokens as a provider reports them, untrusted. */
export interface ReportedAudio {
  /** In the whole prompt, including the cached part. */
  readonly prompt: unknown
  /** In the cached part; absent = not reported. */
  readonly cacheRead?: unknown
  readonly output: unknown
}

type AudioCounts = Pick<TokenCounts, 'audioInputTokens' | 'audioCacheReadTokens' | 'audioOutputTokens'>

const noAudio: AudioCounts = {}

/** The audio parts of the counts, to spread into a usage. Cached tokens are text unless the provider says otherwise. */
export function audioReport(
  counts: Pick<TokenCounts, 'inputTokens' | 'cacheReadTokens' | 'outputTokens'>,
  audio: ReportedAudio,
): AudioCounts {
  const prompt = tokenCount(audio.prompt) ?? 0
  const output = Math.min(counts.outputTokens, tokenCount(audio.output) ?? 0)
  if (prompt === 0 && output === 0) return noAudio
  const fromCache = tokenCount(audio.cacheRead) ?? Math.max(0, prompt - counts.inputTokens)
  const cacheRead = Math.min(counts.cacheReadTokens, prompt, fromCache)
  const input = Math.min(counts.inputTokens, prompt - cacheRead)
  return {
    ...(input > 0 && { audioInputTokens: input }),
    ...(cacheRead > 0 && { audioCacheReadTokens: cacheRead }),
    ...(output > 0 && { audioOutputTokens: output }),
  }
}

/** An untrusted token count: an integer in range, or undefined. */
export function tokenCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= tokensMax ? value : undefined
}

/** For providers whose count of the input includes what was read from and written to a cache. */
export function countsWithCache(
  input: number,
  output: number,
  { reads = 0, writes = 0 }: { readonly reads: number | undefined; readonly writes?: number | undefined },
) {
  const cacheReadTokens = Math.min(input, reads)
  const cacheWriteTokens = Math.min(input - cacheReadTokens, writes)
  const inputTokens = input - cacheReadTokens - cacheWriteTokens
  return { ...noTokens, inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens: output }
}

/** Which of these counts the provider reported, to spread into its usage. */
export function countReport(
  reads: number | undefined,
  writes: number | undefined,
  reasoning: number | undefined,
): Pick<Usage, 'reasoningTokens' | 'cacheReported' | 'source'> {
  return {
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
    ...(writes === undefined && { cacheReported: reads === undefined ? 'none' : 'reads' }),
    source: 'reported',
  }
}
