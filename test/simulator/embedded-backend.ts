// The store of an embedded world: one memory disk, on which the balances are recomputed after every single commit.

import { type Backend, type BookRows, bookQueries, givenPlan } from './backend.ts'
import { applyJournal, openEmbeddedStore } from './embedded-store.ts'
import type { LedgerParts } from './ledger-parts.ts'
import { MemoryDisk } from './memory-disk.ts'
import type { Scheduler } from './scheduler.ts'

const wrongBalances = `SELECT account_id, posted, held, expected FROM (SELECT account_id, posted, held,
    (SELECT COALESCE(SUM(amount), 0) FROM transfers WHERE credit_account = account_id)
    - (SELECT COALESCE(SUM(amount), 0) FROM transfers WHERE debit_account = account_id) AS expected FROM balances)
  WHERE posted <> expected OR posted < 0 OR held <> 0`

export function embeddedBackend(scheduler: Scheduler, { acknowledgesEarly }: LedgerParts): Backend {
  const disk = new MemoryDisk()
  const backend: Backend = {
    openStore: (owner, faults) => openEmbeddedStore({ scheduler, disk, faults, owner, acknowledgesEarly }),
    cut: async () => disk.crash(),
    async readBooks() {
      applyJournal(disk)
      const rows = Object.entries(bookQueries).map(([name, text]) => [name, disk.all(text)])
      return Object.fromEntries(rows) as BookRows
    },
    async addWorkspaces(ids) {
      for (const id of ids) disk.all(`INSERT INTO workspaces (id, name, created_at) VALUES (?, 'simulated', 0)`, [id])
    },
    async givePlan(ids, credit) {
      for (const text of [givenPlan.offer(credit), ...ids.map(givenPlan.give)]) disk.all(text)
    },
    isDurable: (transferId) =>
      disk.all(
        `SELECT 1 FROM transfers WHERE id = ?1 UNION SELECT 1 FROM journal WHERE instr(requests, substr(?1, 4)) > 0`,
        [transferId],
      ).length === 1,
    onCommit: () => {},
    close: async () => disk.close(),
  }
  disk.onCommit = () => {
    const [wrong] = disk.all<{ account_id: string; posted: bigint; held: bigint; expected: bigint }>(wrongBalances)
    backend.onCommit(
      wrong &&
        `M1: ${wrong.account_id} has posted ${wrong.posted} (held ${wrong.held}), its transfers say ${wrong.expected}`,
    )
  }
  return backend
}
