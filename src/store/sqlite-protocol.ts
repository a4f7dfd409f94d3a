// What the thread that writes to SQLite is asked, and what it answers. One question at a time: an answer belongs to
// the last question.

import type { SqlValue } from './sql.ts'
import type { OperationRefusal, WriteOperation } from './write-batch.ts'

export type WriterQuestion =
  | { readonly kind: 'open'; readonly file: string; readonly settings: string }
  | { readonly kind: 'run'; readonly text: string; readonly values: readonly SqlValue[] }
  | { readonly kind: 'script'; readonly text: string }
  | { readonly kind: 'batch'; readonly operations: readonly WriteOperation[] }
  | { readonly kind: 'close' }

export type WriterAnswer =
  | { readonly kind: 'rows'; readonly rows: unknown[] }
  | { readonly kind: 'batch'; readonly refusals: readonly (OperationRefusal | undefined)[] }
  | { readonly kind: 'done' }
  | { readonly kind: 'fault'; readonly fault: WriterFault }

/** An error as far as it crosses threads. */
export interface WriterFault {
  readonly message: string
  readonly code: string
  /** SQLite's extended result code; 0 for anything else. */
  readonly errno: number
}
