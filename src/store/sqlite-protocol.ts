// What the thread that writes to SQLite is asked, and what it answers. One question at a time: an answer belongs to
// the last question.

import type { BatchMessage } from './batch-message.ts'
import type { SqlValue } from './sql.ts'
import type { OperationRefusal, WriteOperation } from './write-batch.ts'

export type WriterQuestion =
  | { readonly kind: 'open'; readonly file: string; readonly settings: string }
  | { readonly kind: 'run'; readonly text: string; readonly values: readonly SqlValue[] }
  | { readonly kind: 'script'; readonly text: string }
  | BatchMessage
  /** A batch that was refused as a whole: each operation by itself. */
  | { readonly kind: 'operations'; readonly operations: readonly WriteOperation[] }
  | { readonly kind: 'close' }

export type WriterAnswer =
  | { readonly kind: 'rows'; readonly rows: unknown[] }
  /** Not committed: something in it was refused, and nothing of it was written. */
  | { readonly kind: 'batch'; readonly isCommitted: boolean }
  | { readonly kind: 'operations'; readonly refusals: readonly (OperationRefusal | undefined)[] }
  | { readonly kind: 'done' }
  | { readonly kind: 'fault'; readonly fault: WriterFault }

/** An error as far as it crosses threads. */
export interface WriterFault {
  readonly message: string
  readonly code: string
  /** SQLite's extended result code; 0 for anything else. */
  readonly errno: number
}
