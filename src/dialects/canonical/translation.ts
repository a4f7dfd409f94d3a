// What a dialect adds to carry conversations from and to the canonical form, and what a rendering tells about itself:
// what it had to leave out, and what must be undone in the reply.

import type { Failure } from '../../kernel/failure.ts'
import type { RequestId } from '../../kernel/ids.ts'
import type { Usage } from '../../kernel/usage.ts'
import type { UsageJudge } from '../byte-lane/relay.ts'
import type { Conversation } from './conversation.ts'
import type { Envelope } from './envelope.ts'
import type { ReplyEvent } from './reply-event.ts'
import type { TargetRules } from './target-rules.ts'

/** Something that was dropped or approximated. */
export interface Warning {
  /** One word for programs: `name_dropped`, `system_inlined`. */
  readonly code: string
  /** JSON pointer into the caller's body, of the first place. */
  readonly field: string
}

export interface ParsedRequest {
  readonly conversation: Conversation
  readonly warnings: readonly Warning[]
}

/** Who will read a rendered request. */
export interface Target {
  readonly upstreamModel: string
  /** Whose signatures and sealed blocks may be sent back to it (`issuerName`). */
  readonly issuer: string
  readonly rules: TargetRules
  /** Sent when the caller gave no cap and the dialect requires one. */
  readonly defaultOutputCap: number | undefined
  readonly maxOutputTokens: number | undefined
}

export interface RenderedRequest {
  readonly body: Uint8Array<ArrayBuffer>
  /** Headers of the dialect that the rendering needs, such as its version. */
  readonly headers: Readonly<Record<string, string>>
  readonly warnings: readonly Warning[]
  readonly undo: ReplyUndo
}

/** What a rendering changed in the request and the reply must be read with. */
export interface ReplyUndo {
  /** Upstream tool name → the caller's, where they differ. */
  readonly toolNames: ReadonlyMap<string, string>
  /** Upstream tool name → upstream name of an argument → the caller's, where they differ; absent = nowhere. */
  readonly argumentNames?: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The caller's names of custom tools that went out as functions with one string argument, `input`. */
  readonly customTools: ReadonlySet<string>
  /** Upstream name of the hidden tool that stands for a JSON output format. */
  readonly jsonTool: string | undefined
  /** Stop sequences the target cannot match itself. */
  readonly stop: readonly string[]
  /** Only the first tool call of the reply is passed on. */
  readonly singleToolCall: boolean
}

/**
 * Reads a provider's stream: bytes in any cut, canonical events out. A reply-start comes first, but for a failure with
 * nothing before it; one block is open at a time, and every block is ended, but for the one a failure cuts off.
 */
export interface StreamParser {
  push(chunk: Uint8Array): readonly ReplyEvent[]
  /** The provider closed. Without the dialect's own end this yields a reply-failure. */
  end(): readonly ReplyEvent[]
  /** Records that could not be read and were left out. */
  readonly skipped: number
  /** What the provider has counted so far, where its dialect counts behind the start and before the end. */
  readonly usageSoFar?: Usage | undefined
  /** So far it has counted the input alone: what is said of the output is a beginning. */
  readonly isOutputUncounted?: boolean
}

export interface RenderContext extends UsageJudge {
  /** The catalog id. */
  readonly model: string
  readonly requestId: RequestId
  /** Epoch seconds, for dialects whose replies carry a time. */
  readonly createdSeconds: number
  readonly wantsStreamUsage: boolean
  /** The caller offered its tools in the older form that its dialect has, and reads the one call of an answer there. */
  readonly legacyCalls?: boolean
  /** Input tokens as estimated before the call; shown until the provider reports. */
  readonly estimatedInputTokens: number
  /** Decimal USD digits for the usage object. */
  costOf(usage: Usage): string
}

/** Writes canonical events as the caller's dialect has them. Answers '' for an event that has no bytes of its own. */
export interface StreamRenderer {
  render(event: ReplyEvent): string
  /** The bytes that end a complete reply; withheld until the charge is durable. '' until reply-end was rendered. */
  readonly terminal: string
}

/** What it takes to call a provider in a dialect. */
export interface UpstreamTranslation {
  renderRequest(conversation: Conversation, target: Target): RenderedRequest | Failure
  parseStream(target: Target): StreamParser
}

/** And what it takes to serve a caller in it. */
export interface Translation extends UpstreamTranslation {
  parseRequest(envelope: Envelope): ParsedRequest | Failure
  renderStream(context: RenderContext): StreamRenderer
  /** A whole reply from all its events; the last one is a reply-end. */
  renderReply(events: readonly ReplyEvent[], context: RenderContext): string
}
