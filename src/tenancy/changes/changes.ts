// Tells the other replicas of a change, and hears of theirs: through the database, looked at every second, and at once
// through Redis where there is one. What forgets after a few seconds anyway is announced after its change, so one that
// could not be told is noticed then; what is remembered for good is recorded in the transaction of the change itself.

import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../../store/database.ts'
import type { Redis } from '../../store/redis.ts'
import type { Sql } from '../../store/sql.ts'
import { type Change, type NumberedChange, parseChange, renderChange } from './change.ts'
import { clearOldChanges, overlapMs, readChanges, writeChange } from './change-rows.ts'

export interface Changes {
  /**
   * Inside the transaction of the change, as the last of it: with the commit the others know, whatever becomes of this
   * process. To be handed to `tell` afterwards.
   */
  record(sql: Sql, change: Change): Promise<NumberedChange>
  /** What was recorded is committed, and this process has acted on it itself: the others need not wait. Never throws. */
  tell(recorded: NumberedChange): Promise<void>
  /** After the change is committed, and after this process has acted on it itself. Never throws. */
  announce(change: Change): Promise<void>
  /** Looks now instead of within a second. */
  poll(): Promise<void>
  close(): void
}

export interface ChangesOptions {
  readonly database: Database
  readonly redis?: Pick<Redis, 'publish' | 'subscribe'> | undefined
  readonly clock: Clock
  /** Of another replica; may come twice, and after what it tells of was read already. */
  onChange(change: Change): void
  /** Changes may have been missed: everything that is remembered is to be forgotten. */
  onGap(): void
  /** A change could not be told to others; they notice it when what they remember is too old. */
  onFault?(error: unknown): void
  /** 0 = only when asked to, for tests. */
  readonly pollMs?: number
}

const channel = 'tollgate:changes'
const defaultPollMs = 1000
const cleanEveryMs = 600_000

/** On the embedded engine there is nobody to tell. */
export const noChanges: Changes = {
  record: async (_, change) => ({ change }),
  tell: async () => {},
  announce: async () => {},
  poll: async () => {},
  close: () => {},
}

export function createChanges(options: ChangesOptions): Changes {
  const { database, redis, onFault = () => {}, pollMs = defaultPollMs } = options
  if (database.engine === 'sqlite') return noChanges
  const heard = createHearing(options)
  const reader = createReader(options, heard)

  const subscription = redis?.subscribe(channel, {
    onMessage(message) {
      const change = parseChange(message)
      if (change) heard.hear(change)
    },
    // What was published while nobody listened stands in the table.
    onBegin: () => void reader.poll(),
  })
  const polling = pollMs > 0 ? setInterval(() => void reader.poll(), pollMs) : undefined
  const cleaning = setInterval(() => void clearOldChanges(database).catch(() => {}), cleanEveryMs)
  polling?.unref()
  cleaning.unref()
  void reader.poll()

  const record = async (sql: Sql, change: Change) => ({ change, sequence: await writeChange(sql, change) })
  const tell = async (recorded: NumberedChange) => {
    if (recorded.sequence !== undefined) heard.note(recorded.sequence)
    // The table tells it too, only later.
    await redis?.publish(channel, renderChange(recorded)).catch(() => {})
  }
  return {
    record,
    tell,
    async announce(change) {
      try {
        await tell(await database.transaction((sql) => record(sql, change)))
      } catch (thrown) {
        onFault(thrown)
        await tell({ change })
      }
    },
    poll: reader.poll,
    close() {
      subscription?.close()
      clearInterval(polling)
      clearInterval(cleaning)
    },
  }
}

interface Hearing {
  /** Passes on what was not heard yet. */
  hear(change: NumberedChange): void
  /** This process knows it: it is its own. */
  note(sequence: bigint): void
  /** All that is read now: older numbers do not come again. */
  keep(sequences: readonly bigint[]): void
}

function createHearing({ onChange }: ChangesOptions): Hearing {
  let known = new Set<bigint>()
  return {
    hear({ change, sequence }) {
      if (sequence !== undefined) {
        if (known.has(sequence)) return
        known.add(sequence)
      }
      onChange(change)
    },
    note: (sequence) => void known.add(sequence),
    keep(sequences) {
      const last = sequences.at(-1) ?? 0n
      const read = new Set(sequences)
      known = new Set([...known].filter((sequence) => read.has(sequence) || sequence > last))
    },
  }
}

function createReader({ database, clock, onGap }: ChangesOptions, heard: Hearing) {
  /** When the table was last read: by its clock, and by ours. */
  let last: { readonly databaseMs: bigint; readonly hereMs: number } | undefined
  let running: Promise<void> | undefined

  const read = async (): Promise<void> => {
    const hereMs = clock.monotonicMs()
    const before = last
    try {
      const { changes, nowMs } = await readChanges(database.sql, before?.databaseMs)
      for (const change of changes) {
        if (before) heard.hear(change)
        else heard.note(change.sequence)
      }
      heard.keep(changes.map(({ sequence }) => sequence))
      last = { databaseMs: nowMs, hereMs }
      // From the first look on all is heard, but not what came before it. And after a long silence nobody knows: rows
      // that were committed late may have been passed over, and those of an hour ago are gone.
      if (!before || hereMs - before.hereMs > Number(overlapMs)) onGap()
    } catch {
      // The next look reads from where the last one was.
    }
  }
  return {
    poll(): Promise<void> {
      running ??= read().finally(() => {
        running = undefined
      })
      return running
    },
  }
}
