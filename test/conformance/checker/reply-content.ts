// The content of a reply, whatever its dialect and whether it was streamed: the common form in which streamed and whole
// replies, and the two dialects, are compared.

export interface ReplyContent {
  /** Texts that something else stood between are a blank line apart. */
  readonly text: string
  /** Readable reasoning. */
  readonly reasoning: string
  readonly calls: readonly ReplyCall[]
  /** The dialect's own word: `stop`, `end_turn`; '' if there is none. */
  readonly stop: string
  /** The stop sequence that matched, where the reply says so. */
  readonly stopSequence: string | undefined
  readonly refusal: string | undefined
  readonly usage: ReplyUsage | undefined
  /** Every model that the reply or its events named. */
  readonly models: readonly string[]
  /** The reasoning as it must be sent back: `reasoning_details`, or the thinking blocks. */
  readonly proof: readonly unknown[]
  /** Set for an error inside a stream. */
  readonly error: ReplyError | undefined
}

export interface ReplyCall {
  readonly id: string
  readonly name: string
  /** As it was written where it came as text; of a custom tool its bare input. */
  readonly arguments: string
  readonly custom: boolean
}

/** Disjoint buckets, whichever way the dialect counts. */
export interface ReplyUsage {
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
  readonly reasoning: number | undefined
  readonly cost: unknown
}

export interface ReplyError {
  readonly type: unknown
  readonly code: unknown
  readonly message: unknown
}

export function totalInput({ input, cacheRead, cacheWrite }: ReplyUsage): number {
  return input + cacheRead + cacheWrite
}

/** A count that was not reported is zero. */
export function count(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
