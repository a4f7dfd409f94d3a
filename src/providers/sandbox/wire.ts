// What each of the two wires can do. A wire knows its provider's field names and error wording, never a behaviour.

import type { JsonObject } from './json-value.ts'
import type { Prompt } from './prompt.ts'
import type { Refusal } from './refusal.ts'
import type { Reply } from './reply.ts'

/** What makes a rendered reply this reply and no other; the same request at the same second gives the same bytes. */
export interface Stamp {
  /** Hex digest of the request body; every id of the reply is made from it. */
  readonly digest: string
  readonly createdSeconds: number
  readonly model: string
  readonly wantsStreamUsage: boolean
}

/** One pull of a streamed body. */
export type StreamItem =
  | { readonly kind: 'record'; readonly text: string }
  | { readonly kind: 'wait'; readonly ms: number }

export interface RenderedRefusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Wire {
  /** The header in which the provider names the request. */
  readonly requestIdHeader: string
  /** undefined: the request is well formed, and readPrompt may be lenient. */
  checkRequest(body: JsonObject): Refusal | undefined
  readPrompt(body: JsonObject): Prompt
  renderReply(reply: Reply, stamp: Stamp): string
  streamReply(reply: Reply, stamp: Stamp): Iterator<StreamItem, void>
  renderRefusal(refusal: Refusal, requestId: string): RenderedRefusal
}
