// Looks at holds and balances several times a second while replicas die: how long what the dead had set aside stays so,
// and whether any wallet was ever overdrawn.

import type { Database } from '../../../src/store/database.ts'

export interface HoldWatch extends AsyncDisposable {
  died(replicaId: string): void
  /** Open holds of all, at the last look. */
  openNow(): number
  /** Holds that were open when their owner died. */
  leftByDead(): number
  /** The longest that one stayed open after that. */
  slowestMs(): number
  sinceLastDeathMs(): number
  /** How often the balances were looked at. */
  looks(): number
  /** Looks now. */
  look(): Promise<void>
  faults(resolvedWithinMs: number): readonly string[]
}

interface Death {
  readonly atMs: number
  left: number
  /** When one was last seen open. */
  lastOpenMs: number
}

interface OpenRow {
  readonly owner: string
  readonly open: bigint
}

const pollMs = 100

export function watchHolds(database: Database): HoldWatch {
  const deaths = new Map<string, Death>()
  const overdrawn: string[] = []
  let open = 0
  let looks = 0
  let isClosed = false

  const look = async (): Promise<void> => {
    const rows = await database.sql<OpenRow>`SELECT owner, COUNT(*) AS open FROM holds
      WHERE state = 'open' GROUP BY owner`
    looks++
    open = rows.reduce((sum, row) => sum + Number(row.open), 0)
    for (const row of rows) {
      const death = deaths.get(row.owner)
      if (death === undefined) continue
      death.left = Math.max(death.left, Number(row.open))
      death.lastOpenMs = performance.now()
    }
    const wallets = await database.sql<{ posted: bigint; held: bigint }>`SELECT posted, held FROM balances`
    for (const { posted, held } of wallets)
      if (held < 0n || posted < held) overdrawn.push(`overdrawn: ${posted}, held ${held}`)
  }
  const watching = (async () => {
    while (!isClosed) {
      await look()
      await Bun.sleep(pollMs)
    }
  })()
  const each = () => [...deaths.values()]
  const slowestMs = () => Math.max(0, ...each().map(({ atMs, lastOpenMs }) => lastOpenMs - atMs))
  return {
    died: (replicaId) =>
      void deaths.set(replicaId, { atMs: performance.now(), left: 0, lastOpenMs: performance.now() }),
    openNow: () => open,
    leftByDead: () => each().reduce((sum, { left }) => sum + left, 0),
    slowestMs,
    look,
    looks: () => looks,
    sinceLastDeathMs: () => performance.now() - Math.max(0, ...each().map(({ atMs }) => atMs)),
    faults: (resolvedWithinMs) => [
      ...overdrawn.slice(0, 3),
      ...(slowestMs() > resolvedWithinMs ? [`a hold was open ${Math.round(slowestMs())} ms after its owner died`] : []),
      ...(open > 0 ? [`${open} holds are still open`] : []),
    ],
    async [Symbol.asyncDispose]() {
      isClosed = true
      await watching
    },
  }
}
