// What a process tells the shared store in one exchange, and what it is told: what ended, then what asks, in their order
// and each in all of its scopes or in none. The same form for every store; it travels as JSON.

import type { LimitScope, Limits } from '../limit.ts'
import type { BucketState } from './bucket-state.ts'
import type { Seed } from './load-state.ts'

export interface LoadStore {
  /** One answer for each `admit`, in their order. Rejects when it cannot be known what was done. */
  exchange(batch: Batch): Promise<readonly AdmitAnswer[]>
}

export interface Batch {
  /** Who asks. */
  readonly replica: string
  /** After this long without a word from the process, what it has running counts no more. */
  readonly leaseMs: number
  /** Every scope once; operations name them by their place in this list. */
  readonly scopes: readonly BatchScope[]
  readonly operations: readonly Operation[]
}

export interface BatchScope {
  readonly id: LimitScope['id']
  /** What the process has running there before the first operation: counted, not added, so that nothing can be lost. */
  readonly running: number
  readonly seed?: Seed | undefined
}

export type Operation = AdmitOperation | EndOperation

export interface AdmitOperation {
  readonly kind: 'admit'
  readonly tokens: number
  readonly scopes: readonly { readonly at: number; readonly limits: Limits }[]
}

export interface EndOperation {
  readonly kind: 'end'
  readonly reservedTokens: number
  readonly actualTokens: number
  readonly scopes: readonly EndedScope[]
}

export interface EndedScope {
  readonly at: number
  /** Where its tokens were reserved. */
  readonly reservation?: Reserved | undefined
}

export interface Reserved {
  readonly sequence: number
  readonly tokensPerMinute: number
}

export interface AdmitAnswer {
  readonly admitted: boolean
  /** In the order of the operation's scopes, with the request if it was admitted. */
  readonly loads: readonly LoadReading[]
}

export interface LoadReading {
  readonly requests?: BucketState | undefined
  readonly tokens?: BucketState | undefined
  readonly running: number
  /** Of the reservation that was made. */
  readonly sequence?: number | undefined
}
