// Turning usage into an amount: the one function that prices holds, bills, logs and the catalog page alike.

import { assert } from '../kernel/assert.ts'
import { formatUsd, type Nano, type Pico, picoToNano } from '../kernel/money.ts'
import { type TokenCounts, totalInputTokens, type Usage } from '../kernel/usage.ts'
import { type AudioPrices, nameAudio, readAudio } from './audio-prices.ts'

/** Pico-dollars per token and bucket. */
export interface PriceRow extends AudioPrices {
  readonly input: Pico
  readonly output: Pico
  readonly cacheRead: Pico
  readonly cacheWrite: Pico
  readonly cacheWriteLong: Pico
}

export interface PriceTier extends PriceRow {
  /** Holds for requests with more input tokens than this. */
  readonly overInputTokens: number
}

export interface Price extends PriceRow {
  readonly free: boolean
  /** Pico-dollars per search of the web that the provider runs; absent = searches are not charged. */
  readonly webSearch?: Pico | undefined
  /** What tokens cost times this, in hundredths of a percent, where the work is kept in the United States; absent = once. */
  readonly usOnly?: bigint | undefined
  /** Ascending by overInputTokens. */
  readonly tiers: readonly PriceTier[]
}

const zero = 0n as Pico
export const freePrice: Price = {
  free: true,
  input: zero,
  output: zero,
  cacheRead: zero,
  cacheWrite: zero,
  cacheWriteLong: zero,
  tiers: [],
}

/** What a price list says; a bucket it leaves out costs as much as a dearer or equal one, so that none is free by omission. */
export interface ListedPrices extends AudioPrices {
  readonly input: Pico
  readonly output: Pico
  readonly cacheRead?: Pico | undefined
  readonly cacheWrite?: Pico | undefined
  readonly cacheWriteLong?: Pico | undefined
}

export function completePriceRow(listed: ListedPrices): PriceRow {
  const { input, output, cacheRead = input, cacheWrite = input, cacheWriteLong = cacheWrite, ...audio } = listed
  const row = { input, output, cacheRead, cacheWrite, cacheWriteLong, ...audio }
  const { audioInput, audioCacheRead = audioInput } = audio
  return audioCacheRead === undefined ? row : { ...row, audioCacheRead }
}

/** The same for a tier; sound that it does not name is no cheaper there than below the tier, and no cheaper than its text. */
export function completeTierRow(listed: ListedPrices, base: PriceRow): PriceRow {
  const { input, output, cacheRead = input, audioInput, audioCacheRead, audioOutput } = listed
  const dearer = (below: Pico | undefined, text: Pico) => (below === undefined || below > text ? below : text)
  return completePriceRow({
    ...listed,
    audioInput: audioInput ?? dearer(base.audioInput, input),
    // A tier that has a price for sound asks that one for sound from a cache too, as any row does.
    audioCacheRead: audioCacheRead ?? (audioInput === undefined ? dearer(base.audioCacheRead, cacheRead) : undefined),
    audioOutput: audioOutput ?? dearer(base.audioOutput, output),
  })
}

const usOnlyPrices = new WeakMap<Price, Price>()

/** The price that holds where the work is kept in the United States, or where it may be anywhere. */
export function priceWithin(price: Price, isUsOnly = false): Price {
  if (!isUsOnly || price.usOnly === undefined) return price
  let dearer = usOnlyPrices.get(price)
  if (dearer === undefined) {
    // Searches cost the same everywhere.
    dearer = { ...sharePrice(price, price.usOnly), webSearch: price.webSearch, usOnly: undefined }
    usOnlyPrices.set(price, dearer)
  }
  return dearer
}

export function priceUsage(listed: Price, usage: Usage): Nano {
  const price = priceWithin(listed, usage.isUsOnly)
  let pico = tokensPico(price, usage) + searchesPico(price, usage.webSearches)
  // How long the prompt of each was decides its own row, and not that of the others.
  if (usage.summaries) for (const counts of usage.summaries) pico += tokensPico(price, counts)
  assert(pico >= 0n, 'a charge is never negative')
  return picoToNano(pico)
}

function tokensPico(price: Price, counts: TokenCounts): bigint {
  const row = priceRowFor(price, totalInputTokens(counts))
  return (
    BigInt(counts.inputTokens) * row.input +
    BigInt(counts.cacheReadTokens) * row.cacheRead +
    BigInt(counts.cacheWriteTokens) * row.cacheWrite +
    BigInt(counts.cacheWriteLongTokens) * row.cacheWriteLong +
    BigInt(counts.outputTokens) * row.output +
    audioPico(row, counts)
  )
}

/** What sound costs beyond as many tokens of text; less than nothing where it is cheaper. */
function audioPico(row: PriceRow, counts: TokenCounts): bigint {
  const { audioInputTokens: input = 0, audioCacheReadTokens: cacheRead = 0, audioOutputTokens: output = 0 } = counts
  if (input === 0 && cacheRead === 0 && output === 0) return 0n
  const audio = audioRow(row)
  // No part is larger than its whole, also where that was cut down to what was held.
  return (
    BigInt(Math.min(input, counts.inputTokens)) * (audio.audioInput - row.input) +
    BigInt(Math.min(cacheRead, counts.cacheReadTokens)) * (audio.audioCacheRead - row.cacheRead) +
    BigInt(Math.min(output, counts.outputTokens)) * (audio.audioOutput - row.output)
  )
}

/** What sound costs by the row. */
export function audioRow(row: PriceRow): { readonly [Bucket in keyof AudioPrices]-?: Pico } {
  const { audioInput = row.input, audioCacheRead = row.cacheRead, audioOutput = row.output } = row
  return { audioInput, audioCacheRead, audioOutput }
}

/** What may be consumed at most. */
export interface UsageBound {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Whether the caller marked something to be kept in a cache; a long cache is the dearest way to read a token. */
  readonly isMarked: boolean
  readonly webSearches?: number | undefined
  /** Whether the work may have to be kept in the United States. */
  readonly isUsOnly?: boolean | undefined
  /** Whether some of the input may be sound. */
  readonly hasSound?: boolean | undefined
  /** Whether some of the answer may be. */
  readonly isSpoken?: boolean | undefined
}

function searchesPico({ webSearch }: Price, searches: number | undefined): bigint {
  return webSearch === undefined || searches === undefined ? 0n : BigInt(searches) * webSearch
}

/** No usage within the bound costs more: every input token at the dearest price it could have. */
export function priceBound(listed: Price, bound: UsageBound): Nano {
  const price = priceWithin(listed, bound.isUsOnly)
  let dearest = boundPico(price, bound)
  for (const tier of price.tiers) {
    if (tier.overInputTokens >= bound.inputTokens) break
    const pico = boundPico(tier, bound)
    if (pico > dearest) dearest = pico
  }
  return picoToNano(dearest + searchesPico(price, bound.webSearches))
}

function boundPico(row: PriceRow, bound: UsageBound): bigint {
  const { output, audioOutput = output } = row
  const dearestOutput = bound.isSpoken && audioOutput > output ? audioOutput : output
  return BigInt(bound.inputTokens) * dearestInput(row, bound) + BigInt(bound.outputTokens) * dearestOutput
}

function dearestInput(row: PriceRow, { isMarked, hasSound }: UsageBound): Pico {
  let dearest = row.input
  if (row.cacheRead > dearest) dearest = row.cacheRead
  if (row.cacheWrite > dearest) dearest = row.cacheWrite
  if (isMarked && row.cacheWriteLong > dearest) dearest = row.cacheWriteLong
  if (!hasSound) return dearest
  const { audioInput, audioCacheRead } = audioRow(row)
  if (audioInput > dearest) dearest = audioInput
  return audioCacheRead > dearest ? audioCacheRead : dearest
}

/** Whether the price knows a bucket of sound, in any of its rows. */
export function hasAudioPrice(price: Price, bucket: keyof AudioPrices): boolean {
  return price[bucket] !== undefined || price.tiers.some((tier) => tier[bucket] !== undefined)
}

/** A share of every price, in hundredths of a percent, rounded up: what a call on the caller's own credential costs. */
export function sharePrice(price: Price, basisPoints: bigint): Price {
  if (basisPoints === 0n) return freePrice
  const share = (pico: Pico): Pico => ((pico * basisPoints + 9_999n) / 10_000n) as Pico
  const shareRow = (row: PriceRow): PriceRow => ({
    input: share(row.input),
    output: share(row.output),
    cacheRead: share(row.cacheRead),
    cacheWrite: share(row.cacheWrite),
    cacheWriteLong: share(row.cacheWriteLong),
    ...readAudio(nameAudio(row, share), (pico) => pico),
  })
  const tiers = price.tiers.map((tier) => ({ ...shareRow(tier), overInputTokens: tier.overInputTokens }))
  const search = price.webSearch === undefined ? {} : { webSearch: share(price.webSearch) }
  return { free: price.free, ...shareRow(price), ...search, usOnly: price.usOnly, tiers }
}

/** The same as decimal USD. */
export function priceUsd(price: Price, usage: Usage): string {
  return formatUsd(priceUsage(price, usage))
}

export function priceRowFor(price: Price, inputTokens: number): PriceRow {
  let row: PriceRow = price
  for (const tier of price.tiers) {
    if (inputTokens > tier.overInputTokens) row = tier
  }
  return row
}
