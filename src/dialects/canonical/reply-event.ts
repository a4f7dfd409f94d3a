// The canonical reply: a stream of events, and a whole reply is the same events collected. Blocks follow one another;
// a delta always belongs to the block that is open.

import type { Usage } from '../../kernel/usage.ts'
import type { ProviderFault } from './provider-fault.ts'

export type ReplyBlock =
  /** `apart`: something that is not passed on stood between this and the text before. */
  | { readonly kind: 'text'; readonly apart?: boolean }
  | { readonly kind: 'refusal' }
  | { readonly kind: 'thinking' }
  /** Whole from the start: it has no deltas. */
  | { readonly kind: 'sealed-thinking'; readonly data: string }
  | { readonly kind: 'tool-call'; readonly id: string; readonly name: string; readonly custom: boolean }

export type StopReason = 'end' | 'length' | 'stop-sequence' | 'tool-calls' | 'refusal' | 'pause'

export interface Stop {
  readonly unified: StopReason
  /** The provider's own word; '' if it gave none. */
  readonly raw: string
  /** Its dialect does not have that word; it was read as an ordinary end. */
  readonly isOdd?: true
  /** The sequence that matched, where the provider says so. */
  readonly sequence?: string
  /** Why it refused, where the provider says so. */
  readonly explanation?: string
}

export type ReplyEvent =
  /** `id` is the provider's; usage is what it reported up front, if anything. */
  | { readonly type: 'reply-start'; readonly id: string | undefined; readonly usage: Usage | undefined }
  | { readonly type: 'block-start'; readonly block: ReplyBlock }
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'thinking-delta'; readonly text: string }
  /** Fragments of the argument text, or of a custom tool's input. */
  | { readonly type: 'arguments-delta'; readonly text: string }
  /** The signature of the open thinking block; replaces an earlier one. */
  | { readonly type: 'signature'; readonly signature: string }
  | { readonly type: 'block-end' }
  /** usage undefined = the provider did not report any. */
  | { readonly type: 'reply-end'; readonly stop: Stop; readonly usage: Usage | undefined }
  | { readonly type: 'keep-alive' }
  /** The reply is over and not complete. */
  | { readonly type: 'reply-failure'; readonly fault: ProviderFault }
