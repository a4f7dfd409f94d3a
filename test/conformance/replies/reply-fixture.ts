// A provider's answer, as the bytes that a provider of each dialect sends for it, streamed and whole, and what a caller
// of either surface must read from it.

import type { DialectName, SurfaceName } from '../cells.ts'
import type { ReplyCall, ReplyUsage } from '../checker/reply-content.ts'

/** The content, independent of a dialect. */
export interface Meaning {
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly Omit<ReplyCall, 'custom'>[]
  readonly stop: 'end' | 'length' | 'tool-calls' | 'refusal'
  readonly stopSequence: string | undefined
  readonly refusal: string | undefined
  readonly usage: ReplyUsage
}

export interface ProviderBytes {
  readonly stream: string
  readonly whole: string
}

export interface ReplyFixture {
  /** The row's name on the page. */
  readonly feature: string
  readonly says: Meaning
  readonly chat: ProviderBytes
  /** Absent: such a provider cannot say it. */
  readonly messages?: ProviderBytes
  readonly gemini?: ProviderBytes
  readonly responses?: ProviderBytes
  /** Further members of the request; a surface that is not named has no such request. */
  readonly asks?: Partial<Readonly<Record<SurfaceName, object>>>
  /** Providers of these dialects have no word for it: the gateway makes it of something else. */
  readonly madeOf?: readonly DialectName[]
  /** The model to ask, where it takes one that lacks something. */
  readonly models?: Partial<Readonly<Record<DialectName, string>>>
  /** The clients' accumulators cannot put it together, wherever it comes from; they read it whole. */
  readonly beyondAccumulators?: true
  /** Legal but not tidy: a provider of the caller's own dialect passes as it is. */
  readonly untidy?: true
}

export function isMadeOf({ madeOf = [] }: ReplyFixture, dialect: DialectName): boolean {
  return madeOf.includes(dialect)
}

/** Worked out from the prices of the stage: 1.00 in, 2.00 out, 0.10 read, 1.25 written, per million. */
const usualUsage: ReplyUsage = {
  input: 10,
  cacheRead: 0,
  cacheWrite: 0,
  output: 5,
  reasoning: undefined,
  cost: 0.00002,
}

export function meaning(parts: Partial<Meaning>): Meaning {
  return {
    text: '',
    reasoning: '',
    calls: [],
    stop: 'end',
    stopSequence: undefined,
    refusal: undefined,
    usage: usualUsage,
    ...parts,
  }
}
