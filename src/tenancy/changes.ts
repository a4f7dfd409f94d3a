// Notifies other replicas that something changed, without the new value: each clears its cache and reads the database, so
// that a notification that arrives twice, late or out of order does no harm. Through a table that is polled twice a
// second, and at once through Redis if there is one. Cached data that expires within seconds is announced after its
// change, so a lost notification does little harm; what is cached without expiry is recorded in the change's transaction.

import type { Clock } from '../kernel/clock.ts'
import type { KeyId, PersonId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import { type Database, databaseNow } from '../store/database.ts'
import type { Redis } from '../store/redis.ts'
import type { Sql } from '../store/sql.ts'

export type Change =
  | { readonly kind: 'key'; readonly id: KeyId }
  | { readonly kind: 'project'; readonly id: ProjectId }
  | { readonly kind: 'workspace'; readonly id: WorkspaceId }
  /** The roles of a person. */
  | { readonly kind: 'person'; readonly id: PersonId }
  /** The credentials of a workspace. */
  | { readonly kind: 'credential'; readonly id: WorkspaceId }
  /** The price of a model. */
  | { readonly kind: 'price'; readonly id: string }
  | { readonly kind: 'config'; readonly id: string }

/** Without a number if it could not be written to the database. */
export interface NumberedChange {
  readonly change: Change
  readonly sequence?: bigint | undefined
}

const isKey = (id: string): id is KeyId => id.startsWith('key_')
const isProject = (id: string): id is ProjectId => id.startsWith('prj_')
const isPerson = (id: string): id is PersonId => id.startsWith('per_')
const isWorkspace = (id: string): id is WorkspaceId => id.startsWith('ws_')

export function changeOf(id: KeyId | ProjectId | WorkspaceId | PersonId): Change {
  if (isKey(id)) return { kind: 'key', id }
  if (isPerson(id)) return { kind: 'person', id }
  return isProject(id) ? { kind: 'project', id } : { kind: 'workspace', id: id as WorkspaceId }
}

/** undefined if it is not understood: a newer version may have more kinds. */
export function readChange(kind: string, id: string): Change | undefined {
  if (kind === 'key') return isKey(id) ? { kind, id } : undefined
  if (kind === 'project') return isProject(id) ? { kind, id } : undefined
  if (kind === 'person') return isPerson(id) ? { kind, id } : undefined
  if (kind === 'workspace' || kind === 'credential') return isWorkspace(id) ? { kind, id } : undefined
  return kind === 'price' || kind === 'config' ? { kind, id } : undefined
}

export function renderChange({ change: { kind, id }, sequence }: NumberedChange): string {
  return JSON.stringify({ kind, id, ...(sequence !== undefined && { sequence: String(sequence) }) })
}

/** undefined if it is not understood: others may publish on the channel too. */
export function parseChange(text: string): NumberedChange | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { kind, id, sequence } = value as Record<string, unknown>
  const change = typeof kind === 'string' && typeof id === 'string' ? readChange(kind, id) : undefined
  if (!change) return undefined
  const isNumber = typeof sequence === 'string' && /^\d{1,18}$/.test(sequence)
  return { change, ...(isNumber && { sequence: BigInt(sequence) }) }
}

// The table. It is read by time and not only by number: a transaction with a lower number may commit after one with a
// higher number, and would be skipped.

/** A row is committed within two statements of at most 2 s each, or after 5 s of silence never. */
const overlapMs = 10_000n
const keptMs = 3_600_000n
const cleanMax = 1000n

/** The last statement before the commit: readers look back only `overlapMs` from the time of the row. */
async function writeChange(sql: Sql, { kind, id }: Change): Promise<bigint | undefined> {
  const at = await databaseNow(sql)
  const [row] = await sql<{ sequence: bigint }>`INSERT INTO changes (kind, object, at)
    VALUES (${kind}, ${id}, ${at}) RETURNING sequence`
  return row?.sequence
}

/** Includes the last seconds before `sinceMs`, whose rows may have become visible since. undefined = since now. */
async function readChanges(sql: Sql, sinceMs: bigint | undefined) {
  // Read first: what is committed after this is read the next time.
  const nowMs = await databaseNow(sql)
  const rows = await sql<{ sequence: bigint; kind: string; object: string }>`SELECT sequence, kind, object
    FROM changes WHERE at >= ${(sinceMs ?? nowMs) - overlapMs} ORDER BY sequence`
  const changes = rows.flatMap(({ sequence, kind, object }) => {
    const change = readChange(kind, object)
    return change ? [{ change, sequence }] : []
  })
  return { changes, nowMs }
}

export async function clearOldChanges(database: Database): Promise<number> {
  const rows = await database.transaction(async (sql) => {
    const hourAgo = (await databaseNow(sql)) - keptMs
    return await sql`DELETE FROM changes WHERE sequence IN (
      SELECT sequence FROM changes WHERE at < ${hourAgo} ORDER BY sequence LIMIT ${cleanMax}) RETURNING 1 AS removed`
  })
  return rows.length
}

export interface Changes {
  /** Call last in the transaction of the change: with its commit the others know. Pass the result to `tell` afterwards. */
  record(sql: Sql, change: Change): Promise<NumberedChange>
  /** Call after the commit, once this process has applied the change: the others need not wait. Never throws. */
  tell(recorded: NumberedChange): Promise<void>
  /** `record` and `tell` in one, after the change is committed and applied here. Never throws. */
  announce(change: Change): Promise<void>
  /** Polls now. */
  poll(): Promise<void>
  close(): void
}

export interface ChangesOptions {
  readonly database: Database
  readonly redis?: Pick<Redis, 'publish' | 'subscribe'> | undefined
  readonly clock: Clock
  /** A change by another replica; may be called twice, and after its effect was already read. */
  onChange(change: Change): void
  /** Changes may have been missed: clear every cache. */
  onGap(): void
  /** A change could not be recorded; the others notice it when their caches expire. */
  onFault?(error: unknown): void
  /** 0 = never, for tests. */
  readonly pollMs?: number
}

const channel = 'tollgate:changes'
/** A removed person's keys must end within a second on every replica. */
const defaultPollMs = 500
const cleanEveryMs = 600_000

/** For the embedded engine, which has one process. */
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
  const inbox = new Inbox(options)

  const subscription = redis?.subscribe(channel, {
    onMessage(message) {
      const change = parseChange(message)
      if (change) inbox.receive(change)
    },
    // The table has what was published before.
    onBegin: () => void inbox.poll(),
  })
  const polling = pollMs > 0 ? setInterval(() => void inbox.poll(), pollMs) : undefined
  const cleaning = setInterval(() => void clearOldChanges(database).catch(() => {}), cleanEveryMs)
  polling?.unref()
  cleaning.unref()
  void inbox.poll()

  const record = async (sql: Sql, change: Change) => ({ change, sequence: await writeChange(sql, change) })
  const tell = async (recorded: NumberedChange) => {
    if (recorded.sequence !== undefined) inbox.markKnown(recorded.sequence)
    // If this fails, the others read it from the table.
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
    poll: () => inbox.poll(),
    close() {
      subscription?.close()
      clearInterval(polling)
      clearInterval(cleaning)
    },
  }
}

/** Passes each change of another replica on once, from the table or from Redis. */
class Inbox {
  readonly #options: ChangesOptions
  #known = new Set<bigint>()
  /** When the table was last read, by its clock and by ours. */
  #last: { readonly databaseMs: bigint; readonly hereMs: number } | undefined
  #polling: Promise<void> | undefined

  constructor(options: ChangesOptions) {
    this.#options = options
  }

  receive({ change, sequence }: NumberedChange): void {
    if (sequence !== undefined) {
      if (this.#known.has(sequence)) return
      this.#known.add(sequence)
    }
    this.#options.onChange(change)
  }

  markKnown(sequence: bigint): void {
    this.#known.add(sequence)
  }

  poll(): Promise<void> {
    this.#polling ??= this.#read().finally(() => {
      this.#polling = undefined
    })
    return this.#polling
  }

  async #read(): Promise<void> {
    const { database, clock, onGap } = this.#options
    const hereMs = clock.monotonicMs()
    const before = this.#last
    try {
      const { changes, nowMs } = await readChanges(database.sql, before?.databaseMs)
      for (const change of changes) {
        if (before) this.receive(change)
        else this.markKnown(change.sequence)
      }
      // Numbers that were not read and are lower do not come again.
      const last = changes.at(-1)?.sequence ?? 0n
      const read = new Set(changes.map(({ sequence }) => sequence))
      this.#known = new Set([...this.#known].filter((sequence) => read.has(sequence) || sequence > last))
      this.#last = { databaseMs: nowMs, hereMs }
      // The first read does not cover what came before it. After a long pause, rows that were committed late may have
      // been skipped, and those of an hour ago are gone.
      if (!before || hereMs - before.hereMs > Number(overlapMs)) onGap()
    } catch {
      // The next poll continues from the last one.
    }
  }
}
