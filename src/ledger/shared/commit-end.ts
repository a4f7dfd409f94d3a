// What the failure of a commit says about the store, for the gate. Nothing, where one row was locked or two transactions
// met: others may commit at the same moment.

import { isRowLocked, isStoreUnavailable } from '../../store/sql-error.ts'
import type { CommitEnd } from '../gate.ts'

export function commitEndOf(thrown: unknown): CommitEnd {
  return isStoreUnavailable(thrown) && !isRowLocked(thrown) ? 'failed' : 'undecided'
}
