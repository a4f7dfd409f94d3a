// What a dialect's checks need to know of it: how to ask, how to read an answer, and what its words are. Two files
// implement it; the checks themselves know no dialect.

import type { SseEvent } from '../../../src/wire/sse.ts'
import type { ReplyContent } from './reply-content.ts'
import type { Violation } from './violation.ts'

export type DialectName = 'chat' | 'messages'

export interface ProbeTool {
  readonly name: string
  readonly description: string
  /** The one argument, a string. */
  readonly argument: string
}

/** A user's message, or an answer with the results of its calls, in their order. */
export type ProbeTurn =
  | { readonly said: string }
  | { readonly answer: ReplyContent; readonly results: readonly string[] }

export interface Question {
  readonly model: string
  readonly turns: readonly ProbeTurn[]
  readonly tools?: readonly ProbeTool[]
  /** The model has to call a tool. */
  readonly mustCall?: boolean
  /** Output tokens at most; undefined = enough. */
  readonly cap?: number
  readonly stream: boolean
}

export interface Probe {
  readonly name: DialectName
  readonly title: string
  /** From the base URL as users of the dialect's official client write it. */
  urlOf(baseUrl: string, what: 'generation' | 'models'): string
  headers(apiKey: string | undefined): Readonly<Record<string, string>>
  body(question: Question): object
  /** The same with the cap under the name that older hosts know; undefined = there is but one. */
  olderCap(body: object): object | undefined
  /** A request that lacks its messages. */
  lacking(model: string): object
  checkWhole(reply: unknown): Violation[]
  checkStream(events: readonly SseEvent[]): Violation[]
  readWhole(reply: unknown): ReplyContent
  readStream(events: readonly SseEvent[]): ReplyContent
  /** The words for an answer that is complete, one that the cap cut off, and one that ends in calls. */
  readonly stops: { readonly end: string; readonly length: string; readonly calls: readonly string[] }
  /** Faults in the body of an error. */
  errorFaults(body: unknown): string[]
  /** Faults in a list of models. */
  modelsFaults(list: unknown): string[]
}
