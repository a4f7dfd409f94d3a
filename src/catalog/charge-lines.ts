// A charge taken apart: tokens of each kind, and searches, at their price, exact to the pico-dollar, so that anyone can add it up. The
// sum, rounded up once, is the charge.

import type { Pico } from '../kernel/money.ts'
import { type TokenCounts, totalInputTokens, type Usage } from '../kernel/usage.ts'
import type { AudioName } from './audio-prices.ts'
import { type Price, priceRowFor, priceWithin } from './price.ts'

export interface ChargeLine {
  readonly kind: 'input' | 'cache_read' | 'cache_write' | 'cache_write_1h' | 'output' | AudioName | 'web_search'
  /** Or searches. */
  readonly tokens: number
  readonly price: Pico
  /** tokens × price. */
  readonly pico: bigint
}

type Line = readonly [ChargeLine['kind'], number, Pico]

function tokenLines(price: Price, counts: TokenCounts): Line[] {
  const row = priceRowFor(price, totalInputTokens(counts))
  const { audioInputTokens, audioCacheReadTokens, audioOutputTokens } = counts
  return [
    ...withAudio(['input', counts.inputTokens, row.input], ['audio_input', audioInputTokens, row.audioInput]),
    ...withAudio(
      ['cache_read', counts.cacheReadTokens, row.cacheRead],
      ['audio_cache_read', audioCacheReadTokens, row.audioCacheRead],
    ),
    ['cache_write', counts.cacheWriteTokens, row.cacheWrite],
    ['cache_write_1h', counts.cacheWriteLongTokens, row.cacheWriteLong],
    ...withAudio(['output', counts.outputTokens, row.output], ['audio_output', audioOutputTokens, row.audioOutput]),
  ]
}

/** Sound has a line of its own where it has a price of its own; the rest of the whole is text. */
function withAudio(
  whole: Line,
  [kind, tokens = 0, price]: readonly [AudioName, number | undefined, Pico | undefined],
): Line[] {
  if (price === undefined) return [whole]
  const audio = Math.min(tokens, whole[1])
  return [
    [whole[0], whole[1] - audio, whole[2]],
    [kind, audio, price],
  ]
}

/** Kinds of which nothing was used are left out; a summary made on the way has lines of its own. */
export function chargeLines(listed: Price, usage: Usage): readonly ChargeLine[] {
  const price = priceWithin(listed, usage.isUsOnly)
  const lines: readonly Line[] = [
    ...[usage, ...(usage.summaries ?? [])].flatMap((counts) => tokenLines(price, counts)),
    ['web_search', usage.webSearches ?? 0, price.webSearch ?? (0n as Pico)],
  ]
  return lines
    .filter(([, tokens]) => tokens > 0)
    .map(([kind, tokens, linePrice]) => ({ kind, tokens, price: linePrice, pico: BigInt(tokens) * linePrice }))
}
