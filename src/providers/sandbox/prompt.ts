// A request as the behaviours see it, whichever wire it came over. Only what they read is here; it is not a canonical
// form and nothing is ever rendered back from it.

import { countTokens, overheadTokens } from './token-count.ts'

/** Where a cached prefix ends, and for how long it would be kept: five minutes or an hour. */
export type CacheMark = 'short' | 'long'

/** A stretch of the prompt, in the order in which a cache sees it: tools, system, turns. */
export interface Passage {
  readonly from: 'tool' | 'system' | 'user' | 'assistant' | 'result'
  /** Index in `messages`; -1 for what stands before them. */
  readonly turn: number
  readonly text: string
  readonly tokens: number
  readonly mark: CacheMark | undefined
}

export interface OfferedTool {
  readonly name: string
  /** JSON Schema of the arguments, unchecked; undefined for a tool that takes free text. */
  readonly schema: unknown
  readonly takes: 'json' | 'text'
}

/** A thinking block that came back in the history. */
export interface ReturnedThought {
  readonly text: string
  readonly signature: string | undefined
  /** `messages.1.content.0` */
  readonly at: string
}

export interface Prompt {
  readonly model: string
  readonly stream: boolean
  /** Chat only: the caller asked for the extra usage chunk. */
  readonly wantsStreamUsage: boolean
  readonly outputCap: number | undefined
  readonly stopSequences: readonly string[]
  readonly passages: readonly Passage[]
  /** Text of the last user message that has any. */
  readonly lastUserText: string
  /** Results that came after the last assistant turn. */
  readonly toolResults: readonly string[]
  /** Only those that the tool choice leaves. */
  readonly tools: readonly OfferedTool[]
  readonly callsTools: boolean
  readonly callsInParallel: boolean
  readonly thinks: boolean
  /** The caller wants the signature without the text. */
  readonly hidesThinking: boolean
  readonly returnedThoughts: readonly ReturnedThought[]
  readonly format: { readonly json: boolean; readonly schema: unknown }
}

export function promptTokens(prompt: Prompt): number {
  return prompt.passages.reduce((sum, passage) => sum + passage.tokens, 0)
}

interface PassageFacts {
  readonly from: Passage['from']
  readonly turn: number
  readonly text: string
  readonly mark?: CacheMark | undefined
  /** Instead of counting the text. */
  readonly tokens?: number
  /** The first passage of a turn, a tool or a result carries the overhead. */
  readonly opens: boolean
}

export function passage({ from, turn, text, mark, tokens, opens }: PassageFacts): Passage {
  return { from, turn, text, mark, tokens: (tokens ?? countTokens(text)) + (opens ? overheadTokens : 0) }
}
