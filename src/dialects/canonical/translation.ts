// The parts of a dialect that translate requests and replies from and to the canonical form, and the report of a
// translation: what it omitted, and how the reply must be mapped back.

import type { Failure } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { AskedTier, Usage } from '../../kernel/usage.ts'
import type { JsonNode } from '../../wire/json.ts'
import type { Conversation, RawJson } from './conversation.ts'
import type { ReplyEvent } from './reply.ts'
import type { TargetRules } from './target-rules.ts'

/** For dialects that need none. The same object each time, so that what follows from it is computed once. */
export const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

const encoder = new TextEncoder()

/** The facts of a request that routing and billing need, read before routing. The messages themselves are not read. */
export interface Envelope {
  readonly model: string
  readonly stream: boolean
  /** The caller's cap on output tokens, under whichever name it was sent. */
  readonly outputCap: number | undefined
  /** The service tier that the caller asks for; undefined = it names none. */
  readonly tier?: AskedTier | undefined
  /** The number of completions requested; each is generated and paid for. */
  readonly choices: number
  readonly offersTools: boolean
  /** The caller offers tools in the dialect's older form and expects calls in that form. */
  readonly legacyCalls?: boolean
  /** undefined = the caller did not say. */
  readonly reasoning: 'on' | 'off' | undefined
  /** Whether the caller asked for usage in the stream; if not, the extra record is withheld. */
  readonly wantsStreamUsage: boolean
  /** The body is one of another dialect that this surface takes too, so it cannot be passed on as it is. */
  readonly isForeign?: boolean
  /** The caller wants the reply inside a JSON array. */
  readonly isArrayReply?: boolean
  /** Called in place of the generation path. Only providers of the same dialect can have it, and not all do. */
  readonly upstreamPath?: string
  /** The caller wants vectors, and in which form. */
  readonly embeddings?: { readonly isBase64?: boolean; readonly isBatch?: boolean }
  /** The caller asks for the response to be stored, or not to be; absent = it did not say. */
  readonly wantsStore?: boolean
  /** The response will be stored: the caller asks for it and the operator allows it. */
  readonly isStored?: boolean
  /** Models to use if `model` fails, in order. */
  readonly fallbacks?: readonly string[] | undefined
  readonly providers?: ProviderPreferences | undefined
}

/** A request as it was sent: its envelope, and the body that it was read from. */
export interface SentRequest {
  readonly envelope: Envelope
  readonly body: Uint8Array<ArrayBuffer>
  readonly members: JsonNode
}

/** Which providers the caller wants, by their ids in lower case. */
export interface ProviderPreferences {
  /** These first. */
  readonly order?: readonly string[] | undefined
  /** Only those of `order`. */
  readonly isClosed: boolean
  readonly only?: readonly string[] | undefined
  readonly ignore?: readonly string[] | undefined
  readonly sort?: 'price' | 'throughput' | 'latency' | undefined
  /** Members without an effect here. */
  readonly dropped: readonly string[]
}

/** Something that was omitted or approximated. */
export interface Warning {
  /** Machine-readable, such as `name_dropped` or `system_inlined`. */
  readonly code: string
  /** JSON pointer into the caller's body, to the first place. */
  readonly field: string
}

/** How a call of a tool is written in the caller's dialect, where that is not a function or custom call under its name. */
export interface CallForm {
  readonly name: string
  readonly namespace?: string | undefined
  /** A `local_shell_call`, whose action is the call's arguments. */
  readonly isShell?: boolean
}

export interface ParsedRequest {
  readonly conversation: Conversation
  /** By canonical tool name. */
  readonly callForms?: ReadonlyMap<string, CallForm>
  /** Settings that replies of the dialect repeat, as members of a reply. */
  echo?(): Readonly<Record<string, RawJson>>
  readonly replyForm?: ReplyForm
  readonly warnings: readonly Warning[]
}

/** How a reply is written, where the dialect lets the caller choose. */
export interface ReplyForm {
  readonly showsThoughts: boolean
  readonly isArrayReply: boolean
}

/** The model that will receive a rendered request. */
export interface Target {
  readonly upstreamModel: string
  /** Only reasoning of this issuer is sent back to the model (see `issuerName`). */
  readonly issuer: string
  readonly rules: TargetRules
  /** Sent if the caller gave no cap and the dialect requires one. */
  readonly defaultOutputCap: number | undefined
  readonly maxOutputTokens: number | undefined
  /** The price has tiers, so the host must not choose one by itself. */
  readonly namesTier?: boolean
  /** Ask for a whole reply instead of a stream. */
  readonly wantsWhole?: boolean
}

export interface RenderedRequest {
  readonly body: Uint8Array<ArrayBuffer>
  /** Headers that the rendering needs, such as the dialect's version. */
  readonly headers: Readonly<Record<string, string>>
  readonly warnings: readonly Warning[]
  readonly mapping: ReplyMapping
}

export function renderedRequest(
  body: RawJson,
  warnings: readonly Warning[],
  mapping: ReplyMapping,
  headers: RenderedRequest['headers'] = noHeaders,
): RenderedRequest {
  return { body: encoder.encode(body), headers, warnings, mapping }
}

/** How a reply must be mapped back, because the rendering of its request changed names or emulated features. */
export interface ReplyMapping {
  /** Upstream tool name → the caller's, where they differ. */
  readonly toolNames: ReadonlyMap<string, string>
  /** Upstream tool name → upstream argument name → the caller's, where they differ; absent if none do. */
  readonly argumentNames?: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The caller's names of custom tools that were sent as functions with one string argument, `input`. */
  readonly customTools: ReadonlySet<string>
  /** Upstream name of the hidden tool that emulates a JSON output format. */
  readonly jsonTool?: string | undefined
  /** Stop sequences that the target cannot match itself. */
  readonly stop: readonly string[]
  /** Pass on only the first tool call of the reply. */
  readonly singleToolCall?: boolean
}

/**
 * Parses a provider's stream: chunks cut anywhere in, canonical events out. A reply-start comes first, except before an
 * immediate failure. One block is open at a time, and every block is ended, except one cut off by a failure.
 */
export interface StreamParser {
  push(chunk: Uint8Array): readonly ReplyEvent[]
  /** The provider closed the stream. Yields a reply-failure if the dialect's terminal marker is missing. */
  end(): readonly ReplyEvent[]
  /** Reads a whole reply, instead of `push` and `end`. Its last event is a reply-end or a reply-failure. */
  whole(body: Uint8Array): readonly ReplyEvent[]
  /** The number of unreadable records that were skipped. */
  readonly skipped: number
  /** Usage reported between the start and the end, if the dialect does that. */
  readonly usageSoFar?: Usage | undefined
  /** The first usage that was reported. */
  readonly usageAtStart?: Usage | undefined
  /** The provider has reported only input usage so far; its output count is an initial value. */
  readonly isOutputUncounted?: boolean
}

/** Works out the usage of a complete reply, and quotes what it costs the caller. */
export interface ChargeQuoter {
  /**
   * Returns the usage that a complete reply is charged for, and quotes its charge. The usage is `reported` if that is
   * plausible, otherwise an estimate from the provider's initial usage and the bytes of output relayed.
   */
  quoteUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage
}

/** Recognises content that was issued to the caller's workspace when it comes back. */
export interface ContentTags {
  tag(content: string): string
  isValid(content: string, tag: string): boolean
}

/** The members of a response about its storage; absent = the caller did not ask for either. */
export interface StateEcho {
  /** Our id of a stored response, because providers may repeat theirs. */
  readonly id?: string
  readonly store: boolean
  readonly previous_response_id: string | null
}

/** Facts about a request that both lanes need to write its reply. */
export interface ReplyFacts extends ChargeQuoter {
  readonly wantsStreamUsage: boolean
  /** The output cap is lower than the caller's, because the wallet or a spend limit covers no more. */
  readonly isCapLowered?: boolean
  readonly stateEcho?: StateEcho | undefined
  /** The caller may refer to the items of the reply. */
  readonly keepsItems?: boolean
  /** Decimal USD digits for the usage object. */
  quotedUsd(usage: Usage): string
}

export interface RenderContext extends ReplyFacts {
  /** The catalog id. */
  readonly model: string
  readonly requestId: RequestId
  /** Epoch seconds, for dialects with timestamps in replies. */
  readonly createdSeconds: number
  /** The time now, in the same unit. */
  nowSeconds(): number
  /** The caller offered its tools in the dialect's older form and expects the single call of a reply in that form. */
  readonly legacyCalls?: boolean
  /** Estimated before the call; shown until the provider reports usage. */
  readonly estimatedInputTokens: number
  readonly callForms?: ReadonlyMap<string, CallForm> | undefined
  readonly echo?: ParsedRequest['echo'] | undefined
  readonly replyForm?: ReplyForm | undefined
  /** The reply is a summary of the conversation, in place of it. */
  readonly isCompaction?: boolean
  /** For reasoning of other dialects. */
  readonly contentTags?: ContentTags | undefined
}

/** In dialects that number the events of a stream. */
export interface EventNumbering {
  /** The id of the response; '' before it has started. */
  readonly responseId: string
  /** The number of the next event. */
  readonly next: number
  /** The members of the response that repeat the request, if they are known. */
  readonly echo?: Readonly<Record<string, RawJson | undefined>>
}

/** For a failure, which may come before there is a reply. */
export type ReplyNames = Pick<RenderContext, 'model' | 'createdSeconds'>

/** Writes canonical events in the caller's dialect. Returns '' for an event without bytes. */
export interface StreamRenderer {
  render(event: ReplyEvent): string
  /** The bytes that end a complete reply, withheld until the charge is durable. '' until reply-end is rendered. */
  readonly terminal: string
  readonly numbering?: EventNumbering
}

/** Needed to call a provider in a dialect. */
export interface UpstreamTranslation {
  renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure
  /** Calls without an id get one made from `requestId`. */
  parseStream(target: Target, requestId: RequestId): StreamParser
}

/** Also needed to serve callers in it. */
export interface Translation extends UpstreamTranslation {
  parseRequest(sent: SentRequest, contentTags?: ContentTags): ParsedRequest | Failure
  renderStream(context: RenderContext): StreamRenderer
  /** Renders a whole reply from its events, which end with reply-end; '' if they make none. */
  renderReply(events: readonly ReplyEvent[], context: RenderContext): string
}
