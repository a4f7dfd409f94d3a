// Prices of sound: some models hear or speak it at another price than text. A list that has none asks the price of text.

import type { Pico } from '../kernel/money.ts'

/** Pico-dollars per token. */
export interface AudioPrices {
  readonly audioInput?: Pico | undefined
  readonly audioCacheRead?: Pico | undefined
  readonly audioOutput?: Pico | undefined
}

export type AudioBucket = keyof AudioPrices

/** As files, answers and the command line write them. */
export const audioNames = {
  audioInput: 'audio_input',
  audioCacheRead: 'audio_cache_read',
  audioOutput: 'audio_output',
} as const satisfies Record<AudioBucket, string>

export type AudioName = (typeof audioNames)[AudioBucket]

const pairs = Object.entries(audioNames) as [AudioBucket, AudioName][]

/** Those that are there, by the names that people read. */
export function nameAudio<Value>(prices: AudioPrices, show: (price: Pico) => Value): Partial<Record<AudioName, Value>> {
  const named: Partial<Record<AudioName, Value>> = {}
  for (const [bucket, name] of pairs) {
    const price = prices[bucket]
    if (price !== undefined) named[name] = show(price)
  }
  return named
}

/** The other way round. */
export function readAudio<Value>(
  named: { readonly [Name in AudioName]?: Value | undefined },
  read: (value: Value) => Pico,
): AudioPrices {
  const prices: { -readonly [Bucket in AudioBucket]?: Pico } = {}
  for (const [bucket, name] of pairs) {
    const value = named[name]
    if (value !== undefined) prices[bucket] = read(value)
  }
  return prices
}
