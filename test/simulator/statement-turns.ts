// Lets a simulated scheduler decide when each statement of a real PostgreSQL runs. A statement that does not answer because
// it waits for a lock is left waiting, and the world goes on; whether it waits is asked of the server, not of a clock.

import type { SQL } from 'bun'

interface Flight {
  readonly pid: number
  isOver: boolean
}

/** How long a statement may take before the server's activity is queried. */
const patienceMs = 2

export class StatementTurns {
  readonly #admin: SQL
  readonly #flights = new Set<Flight>()

  constructor(admin: SQL) {
    this.#admin = admin
  }

  /** Resolves when the work on the connection is over (true) or known to wait. What it comes to is the caller's. */
  async begin(pid: number, work: Promise<unknown>): Promise<boolean> {
    const flight: Flight = { pid, isOver: false }
    this.#flights.add(flight)
    const over = work.then(
      () => this.#end(flight),
      () => this.#end(flight),
    )
    await Promise.race([over, Bun.sleep(patienceMs)])
    await this.settle()
    return flight.isOver
  }

  /** Until everything that is on its way is over or waits for a lock. */
  async settle(): Promise<void> {
    for (;;) {
      const open = [...this.#flights]
      if (open.length === 0) return
      const waiting = await this.#waiting(open.map(({ pid }) => pid))
      // A statement that ended before the query is not in the list any more.
      if ([...this.#flights].every(({ pid }) => waiting.has(pid))) return
      await Bun.sleep(1)
    }
  }

  #end(flight: Flight): void {
    flight.isOver = true
    this.#flights.delete(flight)
  }

  async #waiting(pids: readonly number[]): Promise<ReadonlySet<number>> {
    const rows: { pid: number }[] = await this.#admin.unsafe(
      `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active' AND pid IN (${pids.join(',')})`,
    )
    return new Set(rows.map(({ pid }) => Number(pid)))
  }
}
