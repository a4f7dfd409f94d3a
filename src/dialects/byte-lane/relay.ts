// What passes through a lane: the edits of a request, and a reply on its way from a provider to a client.

import type { Usage } from '../../kernel/usage.ts'
import type { Envelope } from '../canonical/envelope.ts'
import type { ProviderFault } from '../canonical/provider-fault.ts'
import type { TargetRules } from '../canonical/target-rules.ts'

/** The top-level members that differ between what the caller sent and what the provider gets. */
export interface RequestEdits {
  readonly upstreamModel: string
  /** Sent as the output cap when the caller gave none. */
  readonly defaultOutputCap: number | undefined
  /** A larger cap, or none, becomes this one: the wallet pays for no more. */
  readonly outputCapMost?: number | undefined
  /** A larger cap becomes this one: the model writes no more, and no more is held. */
  readonly maxOutputTokens?: number | undefined
  /** On the workspace's own credential: the provider bills the workspace, at whatever price it asks for. */
  readonly isOwn?: boolean
  readonly rules: TargetRules
}

/** Turns what a provider counted, or did not, into what is billed and shown. */
export interface UsageJudge {
  /**
   * The usage of a reply that came to its end: `reported` where that can be, else an estimate from what the provider
   * said at the start and from the bytes of output that passed.
   */
  finalUsage(reported: Usage | undefined, atStart: Usage | undefined, outputBytes: () => number): Usage
}

export interface RelayContext extends UsageJudge {
  readonly envelope: Pick<Envelope, 'choices'>
  /** The catalog id as JSON, written where the provider wrote its own name for the model. */
  readonly modelJson: Uint8Array
  readonly wantsStreamUsage: boolean
  /** Decimal USD digits to stand in the usage object as `cost`. */
  costOf(usage: Usage): string
}

/** One stream on its way through: provider bytes in, client bytes out, with what was learned beside it. */
export interface StreamRelay {
  /** Takes a chunk as it came from the socket, answers with the bytes the client gets for it (often the same). */
  push(chunk: Uint8Array): Uint8Array
  /** The provider closed: reads a last record that was never terminated. */
  end(): Uint8Array
  /** Something a client would show has passed: text, reasoning, a tool call or an ending. The provider is committed. */
  readonly meaningful: boolean
  /** The dialect's own terminal marker has arrived, or, where it can do without, the provider closed behind all the rest. */
  readonly finished: boolean
  /** We ended the answer, at a stop sequence that was ours to find: its provider may still be talking. */
  readonly isCut?: boolean
  /** The answer has told the client how it ended, and what it cost is still to come. */
  readonly isOwed?: boolean
  /** The answer is not a stream: `terminal` is all of it. */
  readonly isWhole?: boolean
  /** The terminal bytes, withheld so that the charge can be made durable before the client sees the end. */
  readonly terminal: Uint8Array
  /** Of a complete reply, or of one that is counted while it runs; undefined until then. */
  readonly usage: Usage | undefined
  /** What the provider has counted so far: it may be the input alone, or nothing. */
  readonly usageSoFar: Usage | undefined
  /** How much of `outputBytes` the last count is for; undefined = the output was not counted yet. */
  readonly countedBytes: number | undefined
  /** Bytes of generated text that have passed: what a client would show or run, without what surrounds it. */
  readonly outputBytes: number
  /** The provider reported an error inside the stream. */
  readonly fault: ProviderFault | undefined
  /** Bytes that keep a silent connection alive and are legal at this point of the stream. */
  keepAlive(): Uint8Array
}

export interface RelayedReply {
  readonly body: Uint8Array
  readonly usage: Usage
}
