// This process among the others on the database: a row with an epoch and a heartbeat. If the heartbeats stop,
// another replica raises the epoch and reaps the holds of the old one, even if this process comes back.

import type { Clock } from '../../kernel/clock.ts'
import { createId, type ReplicaId } from '../../kernel/ids.ts'
import { type Database, databaseNow } from '../../store/database.ts'
import type { ReplicaView } from '../ledger.ts'
import type { WriteHealth } from '../settlement.ts'

export const heartbeatMs = 5000
/** A replica without a heartbeat for this long is declared dead: four heartbeats. */
export const silenceOfDeathMs = 20_000n
/** Without a heartbeat for so long others may think this process dead any moment, so it admits nothing more. */
const silenceMaxMs = 15_000
/** If our own heartbeats failed for longer than this, the database was away, and the others' failed too. */
const outageMs = 10_000
/** By then every live replica has had time for a heartbeat. */
const steadyMs = 7500
/** Charts miss requests of a replica whose clock is 40 s behind, so the operator is warned well before. */
const skewWarnedFromMs = 10_000

/** The owner of a hold. */
export interface Owner {
  readonly id: ReplicaId
  readonly epoch: bigint
  /** The time by the database's clock, extrapolated from the last heartbeat. */
  readonly now: bigint
}

export interface Replica extends ReplicaView {
  owner(): Owner
  /** Whether the last heartbeat is young enough to admit requests. */
  mayAdmit(): boolean
  /**
   * Whether the silence of another means that it is dead. Not right after an outage of the database: all were silent then,
   * and the first to return would reap what the others hold for running requests.
   */
  mayJudge(): boolean
  /** How far this machine's clock is from the database's, as of the last heartbeat. */
  clockSkewMs(): number
  /** Never throws. A heartbeat that fails stops new holds; one that succeeds admits them again. */
  beat(): Promise<void>
  /** Takes the row away: whatever is still held may be reaped at once. */
  leave(): Promise<void>
}

export interface ReplicaOptions {
  readonly database: Database
  readonly clock: Clock
  readonly writeHealth: WriteHealth
  /** This machine's clock is too far from the database's; more than 0 = it is ahead. */
  onSkew(skewMs: number): void
}

export async function joinReplicas({ database, clock, writeHealth, onSkew }: ReplicaOptions): Promise<Replica> {
  const id = createId('rep')
  let epoch = 1n
  /** When the last heartbeat was written: here, and there. From its start: what others see may be as old as that. */
  let last = { monotonicMs: clock.monotonicMs(), databaseMs: 0n }
  let steadySinceMs = last.monotonicMs
  const skew = createSkewWatch(clock, onSkew)

  const register = () =>
    database.transaction(async (sql) => {
      const now = await databaseNow(sql)
      await sql`INSERT INTO replicas (id, epoch, heartbeat_at) VALUES (${id}, ${epoch}, ${now})`
      return now
    })
  const writeHeartbeat = async (): Promise<bigint> => {
    const row = await database.transaction(async (sql) => {
      const now = await databaseNow(sql)
      const [updated] = await sql<{ epoch: bigint }>`UPDATE replicas SET heartbeat_at = ${now}
        WHERE id = ${id} RETURNING epoch`
      return updated && { now, epoch: updated.epoch }
    })
    // No row: thought dead for so long that even that was cleared away.
    epoch = row ? row.epoch : epoch + 1n
    return row ? row.now : await register()
  }
  const silentMs = () => clock.monotonicMs() - last.monotonicMs
  const joinedAt = clock.now()
  last = { ...last, databaseMs: await register() }
  skew.note(joinedAt, last.databaseMs)

  const mayJudge = () => silentMs() <= outageMs && clock.monotonicMs() - steadySinceMs >= steadyMs

  return {
    id,
    owner: () => ({ id, epoch, now: last.databaseMs + BigInt(Math.round(silentMs())) }),
    mayAdmit: () => silentMs() <= silenceMaxMs,
    mayJudge,
    async isReplicaLive(other) {
      if (!mayJudge()) return true
      const deadSince = (await databaseNow(database.sql)) - silenceOfDeathMs
      // A replica that was only suspended may charge its holds until the reaper has ended them.
      const [row] = await database.sql`SELECT 1 FROM replicas WHERE id = ${other} AND heartbeat_at >= ${deadSince}
        UNION ALL SELECT 1 FROM holds WHERE owner = ${other} AND state = 'open' LIMIT 1`
      return row !== undefined
    },
    clockSkewMs: skew.skewMs,
    async beat() {
      const monotonicMs = clock.monotonicMs()
      const begunAt = clock.now()
      const end = writeHealth.begin()
      try {
        const databaseMs = await writeHeartbeat()
        if (silentMs() > outageMs) steadySinceMs = clock.monotonicMs()
        last = { monotonicMs, databaseMs }
        skew.note(begunAt, databaseMs)
        end('committed')
      } catch (thrown) {
        end('failed', thrown)
      }
    },
    async leave() {
      await database.transaction((sql) => sql`DELETE FROM replicas WHERE id = ${id}`)
    },
  }
}

export interface SkewWatch {
  /** The database read its clock between `begunAt`, by this machine's clock, and now. */
  note(begunAt: number, databaseMs: bigint): void
  /** More than 0 = this machine is ahead. A difference that a slow answer may explain counts as 0. */
  skewMs(): number
}

/**
 * How far this machine's clock is from the database's. Money does not depend on it; the ids and times of requests do.
 * `onSkew` is called once when the difference becomes too large, and again only after it was small.
 */
export function createSkewWatch(clock: Clock, onSkew: (skewMs: number) => void): SkewWatch {
  let skewMs = 0
  let isWarned = false
  return {
    note(begunAt, databaseMs) {
      const databaseTime = Number(databaseMs)
      skewMs = databaseTime < begunAt ? begunAt - databaseTime : Math.min(0, clock.now() - databaseTime)
      const isLarge = Math.abs(skewMs) > skewWarnedFromMs
      if (isLarge && !isWarned) onSkew(skewMs)
      isWarned = isLarge
    },
    skewMs: () => skewMs,
  }
}

export function describeSkew(skewMs: number): Error {
  const seconds = Math.round(Math.abs(skewMs) / 1000)
  const where = skewMs > 0 ? 'ahead of' : 'behind'
  return new Error(`it is ${seconds} s ${where} the database's; set it right, or charts and lists miss requests`)
}
