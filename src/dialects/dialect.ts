// What a wire format must be able to do. A dialect is a folder of code with one file per line below; who hosts it is a
// provider, which is data. Nothing outside a dialect's folder knows its field names.

import type { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { Usage } from '../kernel/usage.ts'
import type { JsonMembers } from '../wire/json-members.ts'
import type { TargetRules } from './target-rules.ts'

export const dialectIds = ['openai-chat', 'anthropic-messages'] as const
export type DialectId = (typeof dialectIds)[number]

/** The cheap facts of a request body; its content is not read. */
export interface Envelope {
  readonly body: Uint8Array<ArrayBuffer>
  readonly members: JsonMembers
  readonly model: string
  readonly stream: boolean
  /** The caller's cap on generated tokens, under whichever name it was sent. */
  readonly outputCap: number | undefined
  /** Whether the caller asked for usage in the stream; where it did not, the extra record is kept from it. */
  readonly wantsStreamUsage: boolean
}

/** The top-level members that differ between what the caller sent and what the provider gets. */
export interface RequestEdits {
  readonly upstreamModel: string
  /** Sent as the output cap when the caller gave none. */
  readonly defaultOutputCap: number | undefined
  readonly rules: TargetRules
}

export interface RelayContext {
  /** The catalog id as JSON, written where the provider wrote its own name for the model. */
  readonly modelJson: Uint8Array
  readonly wantsStreamUsage: boolean
  /** Decimal USD digits to stand in the usage object as `cost`; undefined = leave usage as it is. */
  costOf(usage: Usage): string | undefined
}

/** What a provider said when it refused or broke off, in its own words. Untrusted. */
export interface ProviderFault {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly code: string | undefined
  readonly message: string
  readonly param: string | undefined
  readonly details: unknown
  readonly retryAfterMs: number | undefined
}

/** One stream on its way through: provider bytes in, client bytes out, with what was learned beside it. */
export interface StreamRelay {
  /** Takes a chunk as it came from the socket, answers with the bytes the client gets for it (often the same). */
  push(chunk: Uint8Array): Uint8Array
  /** The provider closed: reads a last record that was never terminated. */
  end(): Uint8Array
  /** Something a client would show has passed: text, reasoning, a tool call or an ending. The provider is committed. */
  readonly meaningful: boolean
  /** The dialect's own terminal marker has arrived; only that means done. */
  readonly finished: boolean
  /** The terminal bytes, withheld so that the charge can be made durable before the client sees the end. */
  readonly terminal: Uint8Array
  readonly usage: Usage | undefined
  /** The provider reported an error inside the stream. */
  readonly fault: ProviderFault | undefined
  /** Bytes that keep a silent connection alive and are legal at this point of the stream. */
  keepAlive(): Uint8Array
}

export interface RelayedReply {
  readonly body: Uint8Array
  readonly usage: Usage | undefined
}

export interface TokenCount {
  /** Appended to an endpoint's base URL. */
  readonly path: string
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: Headers): Envelope | Failure
}

export interface Dialect {
  readonly id: DialectId
  /** Appended to an endpoint's base URL. */
  readonly generationPath: string
  /** Checks what the gateway itself relies on; the rest of the body is the provider's to judge. */
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: Headers): Envelope | Failure
  /** Where the dialect has a call that counts tokens without generating. */
  readonly tokenCount?: TokenCount
  editRequest(envelope: Envelope, edits: RequestEdits): Uint8Array<ArrayBuffer>
  /** The caller's headers that belong to the dialect and travel on, such as version and beta flags. */
  forwardedHeaders(client: Headers): Record<string, string>
  relayStream(context: RelayContext): StreamRelay
  /** Legal before anything of a stream has been sent. */
  readonly keepAlive: Uint8Array
  /** A whole reply; a ProviderFault if the body is an error in disguise or not a reply of this dialect. */
  relayReply(body: Uint8Array<ArrayBuffer>, context: RelayContext): RelayedReply | { readonly fault: ProviderFault }
  readFault(status: number, headers: Headers, body: string): ProviderFault
  renderFailure(failure: Failure, requestId: RequestId): string
  /** The last record of a stream that failed after its status was out. */
  renderStreamFailure(failure: Failure, requestId: RequestId): Uint8Array
}
