// The interface of a wire format. A dialect is a folder of code; a provider that hosts it is data. Nothing outside a
// dialect's folder knows its field names.

import type { Failure } from '../kernel/failure.ts'
import type { RequestId } from '../kernel/ids.ts'
import type { HeaderReader, RequestHeaders } from '../wire/http-message.ts'
import type { JsonSpan } from '../wire/json.ts'
import type { EditedRequest, RequestEdits } from './byte-lane/edits.ts'
import type { Embeddings, UpstreamEmbeddings } from './canonical/embeddings.ts'
import type { ProviderFault } from './canonical/faults.ts'
import type { TierWords } from './canonical/tiers.ts'
import type {
  EventNumbering,
  ReplyNames,
  SentRequest,
  Translation,
  UpstreamTranslation,
} from './canonical/translation.ts'
import type { RelayContext, RelayReply, StreamRelay } from './reply/relay.ts'

export const dialectIds = ['openai-chat', 'anthropic-messages', 'gemini', 'openai-responses'] as const
export type DialectId = (typeof dialectIds)[number]

export interface TokenCount {
  /** Appended to an endpoint's base URL; absent = tokens are always estimated. */
  readonly path?: string
  /** The answer with an estimate. */
  renderCount(tokens: number): string
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: RequestHeaders, url?: string): SentRequest | Failure
}

/** A dialect in which providers are called. */
export interface UpstreamDialect {
  readonly id: DialectId
  /** Appended to an endpoint's base URL; some dialects put the model and whether to stream into it. */
  generationPath(upstreamModel: string, isStreamed: boolean): string
  /** What hosts know of service tiers, unless their rules say otherwise. */
  readonly hostTiers: TierWords
  readFault(status: number, headers: HeaderReader, body: string): ProviderFault
  /** Absent = providers of this dialect make no embeddings. */
  readonly embeddings?: UpstreamEmbeddings
  /** For callers of other dialects. */
  readonly translation: UpstreamTranslation
}

/** A stored response and the items that the model was given, both as JSON. */
export interface StoredConversation {
  readonly input: string
  readonly response: string
}

/** For an API whose callers can have responses stored and continue them. */
export interface ResponseStorage {
  /** The response that a body continues; undefined = none. Judges nothing else. */
  previousId(body: Uint8Array<ArrayBuffer>): string | undefined
  /** The body with that conversation before its own input. Refuses results of calls that the conversation does not have. */
  continueFrom(body: Uint8Array<ArrayBuffer>, stored: StoredConversation): Uint8Array<ArrayBuffer> | Failure
  /** The text of the caller's first message, which is the same in every turn of a conversation. */
  opening(sent: Pick<SentRequest, 'members'>): string
  /** The references in the input to items of earlier responses; undefined = there are none. */
  references(body: Uint8Array<ArrayBuffer>): ItemReferences | undefined
  /** The items in the output of a response, as JSON, by id. */
  outputItems(response: string): ReadonlyMap<string, string>
  /** The input as a JSON list of items. */
  inputItems(sent: SentRequest): string
  /** Reads the response from a whole reply or from the last record of a stream; undefined = it failed. */
  readResponse(bytes: Uint8Array): { readonly id: string; readonly response: string } | undefined
}

/** References in a body to items of earlier responses. */
export interface ItemReferences extends Pick<SentRequest, 'members'> {
  /** In their order. */
  readonly list: readonly { readonly id: string; readonly param: string }[]
  /** The body with items, as JSON, in their places. */
  resolve(items: readonly string[]): Uint8Array<ArrayBuffer>
}

/** One message of a client on a WebSocket. */
export interface Turn {
  /** Of a streamed request. */
  readonly body: Uint8Array<ArrayBuffer>
  /** The response that it continues. */
  readonly previousId: string | undefined
  /** Nothing is generated: later turns continue it. */
  readonly isWarmUp: boolean
}

/** For an API that is also served over WebSockets. */
export interface Turns {
  read(message: string): Turn | Failure
  /** The message for the data of an event of the stream; undefined = there is none. */
  eventIn(data: string): string | undefined
  /** The message in place of an error response. */
  renderError(status: number, headers: Readonly<Record<string, string>>, body: Uint8Array): string
  /** The last message on a connection that is too old for another turn. */
  tooOld(): string
}

/** A dialect that callers can use too. */
export interface Dialect extends UpstreamDialect {
  /**
   * Checks the fields that the gateway itself relies on; the provider validates the rest. `url`: of the request, for
   * dialects that have the model there.
   */
  readEnvelope(body: Uint8Array<ArrayBuffer>, headers: RequestHeaders, url?: string): SentRequest | Failure
  readonly embeddings?: Embeddings
  /** Set if the dialect has an endpoint that counts tokens without generating. */
  readonly tokenCount?: TokenCount
  /** Reads the body of a call that shortens a conversation; absent = the dialect has none. */
  readCompaction?(body: Uint8Array<ArrayBuffer>, headers: RequestHeaders, url?: string): SentRequest | Failure
  /** Set if responses can be stored. */
  readonly storage?: ResponseStorage
  /** Set if callers can also use WebSockets. */
  readonly turns?: Turns
  /** The parts of a body that are the same in every turn of a conversation and identify it. */
  conversationSpans(sent: SentRequest): readonly JsonSpan[]
  editRequest(sent: SentRequest, edits: RequestEdits): EditedRequest
  /** The caller's headers that belong to the dialect and are forwarded, such as version and beta flags. */
  forwardedHeaders(client: RequestHeaders): Readonly<Record<string, string>>
  relayStream(context: RelayContext): StreamRelay
  readonly relayReply: RelayReply
  /** What follows the last event of a complete stream, in a dialect whose events do not include it. */
  readonly streamEnd?: Uint8Array
  renderFailure(failure: Failure, requestId: RequestId): string
  /** Headers in which clients of the dialect read their remaining limits. */
  readonly limitHeaders?: LimitHeaders
  /** Its generations are an endpoint of the specification, which defines their errors. */
  readonly isSpecified?: true
  /** Its clients do not send signed reasoning back with later turns. */
  readonly losesReasoning?: boolean
  /** For providers of other dialects. */
  readonly translation: Translation
  /** The last record of a stream that failed after its status was sent. */
  renderStreamFailure(
    failure: Failure,
    requestId: RequestId,
    numbering?: EventNumbering | undefined,
    names?: ReplyNames,
  ): Uint8Array
}

export type Dialects = Readonly<Record<DialectId, UpstreamDialect>>

// The caller's remaining limits, as surfaces report them in headers.

export interface LimitView {
  readonly limit: number
  /** An integer, at least 0. */
  readonly remaining: number
  /** Time until the limit is fully available again, if no other request arrives. */
  readonly resetMs: number
}

/** Absent = unlimited. */
export interface LimitViews {
  readonly requests?: LimitView
  readonly tokens?: LimitView
  /** The tightest spend limit. Not every surface shows it. */
  readonly spend?: (() => SpendView) | undefined
}

export interface SpendView {
  readonly period: 'daily' | 'weekly' | 'monthly'
  /** The exact length, if it is another. */
  readonly windowMinutes?: number | undefined
  /** The share of the limit that is spent, from 0. */
  readonly used: number
  /** Epoch milliseconds. */
  readonly resetsAt: number
  /** It refuses this request; absent = it does not. */
  readonly isReached?: boolean
}

/** `now` is wall time, for surfaces that report a point in time instead of a duration. */
export type LimitHeaders = (limits: LimitViews, now: number) => Record<string, string>
