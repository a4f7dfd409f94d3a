// Wallets whose rows somebody else holds on to: a replica that froze in the middle of a transaction, or a person at the
// database. Their operations wait and are tried by themselves, so that all other wallets are served meanwhile.

import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Sql } from '../../store/sql.ts'
import type { Pace } from '../pace.ts'

/** Between two tries of a wallet that is known to be locked. */
const restMs = 500
/** As long as a try waits, everybody else's commit does; after each that met a lock they have a turn. */
const shortLockMs = 250

/** For what may be locked and can be tried again: in this transaction no row is waited for any longer. */
export async function waitLess(sql: Sql): Promise<void> {
  await sql`SELECT set_config('lock_timeout', ${String(shortLockMs)}, true)`
}

export interface BusyWallets {
  /** A batch of several met a lock, and nobody knows at which: each goes by itself until it has been committed. */
  suspect(workspaces: Iterable<WorkspaceId>): void
  /** This one met a lock by itself. */
  rest(workspaceId: WorkspaceId): void
  clear(workspaces: Iterable<WorkspaceId>): void
  isApart(workspaceId: WorkspaceId): boolean
  isResting(workspaceId: WorkspaceId): boolean
  /** It was found locked when it was last tried. */
  isLocked(workspaceId: WorkspaceId): boolean
  /** Each until one of them may be tried again. */
  resting(): Iterable<Promise<void>>
}

export function createBusyWallets(pace: Pace): BusyWallets {
  /** With whether it was found locked by itself. */
  const apart = new Map<WorkspaceId, boolean>()
  const resting = new Map<WorkspaceId, Promise<void>>()
  return {
    suspect(workspaces) {
      for (const id of workspaces) if (!apart.has(id)) apart.set(id, false)
    },
    rest(workspaceId) {
      apart.set(workspaceId, true)
      const rest = pace.wait(restMs).then(() => void resting.delete(workspaceId))
      resting.set(workspaceId, rest)
    },
    clear(workspaces) {
      if (apart.size === 0) return
      for (const id of workspaces) apart.delete(id)
    },
    isApart: (workspaceId) => apart.size > 0 && apart.has(workspaceId),
    isResting: (workspaceId) => resting.size > 0 && resting.has(workspaceId),
    isLocked: (workspaceId) => apart.get(workspaceId) === true,
    resting: () => resting.values(),
  }
}
