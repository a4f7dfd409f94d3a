// The canonical reply: a stream of events. A whole reply is the same events. Blocks follow one another, and
// a delta belongs to the open block.

import type { Usage } from '../../kernel/usage.ts'
import type { ProviderFault } from './faults.ts'

export type ReplyBlock =
  /** `apart`: an omitted block stood between this text and the previous one. */
  | { readonly kind: 'text'; readonly apart?: boolean }
  | { readonly kind: 'refusal' }
  | { readonly kind: 'thinking' }
  /** Complete at the start; has no deltas. */
  | { readonly kind: 'sealed-thinking'; readonly data: string }
  | { readonly kind: 'tool-call'; readonly id: string; readonly name: string; readonly custom: boolean }

export type StopReason = 'end' | 'length' | 'stop-sequence' | 'tool-calls' | 'refusal' | 'pause'

export interface Stop {
  readonly unified: StopReason
  /** The provider's stop reason; '' if it gave none. */
  readonly raw: string
  /** The dialect does not define this stop reason, so it was read as an ordinary end. */
  readonly isUnknown?: true
  /** The matched sequence, if the provider reports it. */
  readonly sequence?: string
  /** The reason for a refusal, if the provider reports it. */
  readonly explanation?: string
  /** A policy of the operator refused, not the provider. */
  readonly byPolicy?: true
}

export type ReplyEvent =
  /** `id` is the provider's; `usage` is what it reported up front, if anything. */
  | { readonly type: 'reply-start'; readonly id: string | undefined; readonly usage: Usage | undefined }
  | { readonly type: 'block-start'; readonly block: ReplyBlock }
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'thinking-delta'; readonly text: string }
  /** A piece of the argument text, or of a custom tool's input. */
  | { readonly type: 'arguments-delta'; readonly text: string }
  /** The signature of the open thinking block; replaces an earlier one. */
  | { readonly type: 'signature'; readonly signature: string }
  | { readonly type: 'block-end' }
  /** usage is undefined if the provider reported none. */
  | { readonly type: 'reply-end'; readonly stop: Stop; readonly usage: Usage | undefined }
  | { readonly type: 'keep-alive' }
  /** The reply ended incomplete. */
  | { readonly type: 'reply-failure'; readonly fault: ProviderFault }
