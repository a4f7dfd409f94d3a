// How a provider's reply reaches the caller, whole or as a stream, in either lane. The byte lane's relays are in
// `byte-lane/relay.ts`, those of translations in `pipeline/lanes.ts`.

import type { Usage } from '../../kernel/usage.ts'
import type { ProviderFault } from '../canonical/faults.ts'
import type { Envelope, EventNumbering, ReplyFacts } from '../canonical/translation.ts'
import type { ReplyBlocks } from './blocks.ts'

export interface RelayContext extends ReplyFacts {
  readonly envelope: Pick<Envelope, 'choices'>
  /** The catalog id as JSON; replaces the provider's model name. */
  readonly modelJson: Uint8Array
}

/** One stream: provider bytes in, client bytes out, and what was learned from them. */
export interface StreamRelay {
  /** Takes a chunk from the socket and returns the bytes for the client, often the same. */
  push(chunk: Uint8Array): Uint8Array
  /** The provider closed the connection: reads a last unterminated record. */
  end(): Uint8Array
  /**
   * Something that a client would display has passed: text, reasoning, a tool call or an end. From here on the request
   * cannot move to another provider. A relay that collects a whole reply sets it only at the end.
   */
  readonly meaningful: boolean
  /**
   * The dialect's terminal marker arrived, or the provider closed after everything else, where the dialect allows that.
   */
  readonly finished: boolean
  /** The gateway ended the reply at a stop sequence; the provider may still be sending. */
  readonly isStoppedEarly?: boolean
  /** The client has received the stop reason, but the usage is still to come. */
  readonly awaitsUsage?: boolean
  /** The reply is not a stream: `terminal` is all of it. */
  readonly isWhole?: boolean
  /** The last bytes, withheld until the charge is durable: of a chat stream `[DONE]`; its stop reason and cost went before. */
  readonly terminal: Uint8Array
  /** The usage of a complete reply, or the running usage if the provider reports it continuously; undefined before. */
  readonly usage: Usage | undefined
  /** The usage reported so far: maybe only the input, or nothing. */
  readonly usageSoFar: Usage | undefined
  /** The first usage that was reported; counts in place of a later one that is implausible. */
  readonly usageAtStart: Usage | undefined
  /** `outputBytes` when the provider last reported its output count; undefined = it reported none. */
  readonly bytesAtReport: number | undefined
  /** Bytes of generated text relayed, without the surrounding JSON. */
  readonly outputBytes: number
  readonly fault: ProviderFault | undefined
  /** Its blocks, if the relay parses them and they are wanted. */
  readonly said?: ReplyBlocks | undefined
  readonly numbering?: EventNumbering | undefined
  /** Bytes that keep an idle connection alive and are legal at this point of the stream. */
  keepAlive(): Uint8Array
}

export interface RelayedReply {
  readonly body: Uint8Array
  readonly usage: Usage
}

/** Relays a whole reply; returns a fault if the body is an error sent with a success status or not a reply of the dialect. */
export type RelayReply = (
  body: Uint8Array<ArrayBuffer>,
  context: RelayContext,
) => RelayedReply | { readonly fault: ProviderFault }
