// What a wire format must be able to do. A dialect is a folder of code with one file per line below; who hosts it is a
// provider, which is data. Nothing outside a dialect's folder knows its field names.

import type { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { JsonSpan } from '../wire/json-spans.ts'
import type { RelayContext, RelayedReply, RequestEdits, StreamRelay } from './byte-lane/relay.ts'
import type { Envelope } from './canonical/envelope.ts'
import type { LimitHeaders } from './canonical/limit-view.ts'
import type { ProviderFault } from './canonical/provider-fault.ts'
import type { Translation, UpstreamTranslation, Warning } from './canonical/translation.ts'

/** Those that callers speak as well. */
export const surfaceIds = ['openai-chat', 'anthropic-messages'] as const
export const dialectIds = [...surfaceIds, 'gemini', 'openai-responses'] as const
export type DialectId = (typeof dialectIds)[number]

export interface TokenCount {
  /** Appended to an endpoint's base URL. */
  readonly path: string
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: Headers): Envelope | Failure
}

/** A body on its way to a provider of the same dialect. */
export interface EditedRequest {
  readonly body: Uint8Array<ArrayBuffer>
  readonly warnings: readonly Warning[]
}

/** A wire format in which providers are called. */
export interface UpstreamDialect {
  readonly id: DialectId
  /** Appended to an endpoint's base URL; some dialects name the model there. */
  generationPath(upstreamModel: string): string
  /** A whole reply as the stream it should have been, for a provider that was asked for one and does not stream. */
  replyAsStream(body: Uint8Array): Uint8Array | { readonly fault: ProviderFault }
  readFault(status: number, headers: Headers, body: string): ProviderFault
  /** From and to the canonical form, for callers of other dialects. */
  readonly translation: UpstreamTranslation
}

/** One that callers speak as well. */
export interface Dialect extends UpstreamDialect {
  /** Checks what the gateway itself relies on; the rest of the body is the provider's to judge. */
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: Headers): Envelope | Failure
  /** Where the dialect has a call that counts tokens without generating. */
  readonly tokenCount?: TokenCount
  /** The parts of a body by which one conversation is told from another, as the turns of it begin alike. */
  conversationSpans(envelope: Envelope): readonly JsonSpan[]
  editRequest(envelope: Envelope, edits: RequestEdits): EditedRequest
  /** The caller's headers that belong to the dialect and travel on, such as version and beta flags. */
  forwardedHeaders(client: Headers): Record<string, string>
  relayStream(context: RelayContext): StreamRelay
  /** Legal before anything of a stream has been sent. */
  readonly keepAlive: Uint8Array
  /** A whole reply; a ProviderFault if the body is an error in disguise or not a reply of this dialect. */
  relayReply(body: Uint8Array<ArrayBuffer>, context: RelayContext): RelayedReply | { readonly fault: ProviderFault }
  renderFailure(failure: Failure, requestId: RequestId): string
  /** Where the dialect's clients read how much is left of their limits. */
  readonly limitHeaders?: LimitHeaders
  /** To and from the canonical form, for providers of other dialects. */
  readonly translation: Translation
  /** The last record of a stream that failed after its status was out. */
  renderStreamFailure(failure: Failure, requestId: RequestId): Uint8Array
}

/** Every dialect there is, by id. */
export type Dialects = Readonly<Record<DialectId, UpstreamDialect>>
