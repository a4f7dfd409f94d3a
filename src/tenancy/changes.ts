// What replicas tell each other: that something changed, never what it is now. Whoever hears it forgets what it
// remembers and asks the database, so that a change heard twice, late or out of order does no harm.

import type { Clock } from '../kernel/clock.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import { type Database, databaseNow } from '../store/database.ts'
import type { Redis } from '../store/redis.ts'
import type { Sql } from '../store/sql.ts'

export type Change =
  | { readonly kind: 'key'; readonly id: KeyId }
  | { readonly kind: 'project'; readonly id: ProjectId }
  | { readonly kind: 'workspace'; readonly id: WorkspaceId }
  /** Of a workspace's own credentials. */
  | { readonly kind: 'credential'; readonly id: WorkspaceId }
  /** Of a model. */
  | { readonly kind: 'price'; readonly id: string }
  | { readonly kind: 'config'; readonly id: string }

/** The number is absent where the database could not be told. */
export interface NumberedChange {
  readonly change: Change
  readonly sequence?: bigint | undefined
}

/** After a key, a project or a workspace changed: what an id names is in its prefix. */
export function changeOf(id: KeyId | ProjectId | WorkspaceId): Change {
  if (isKey(id)) return { kind: 'key', id }
  return isProject(id) ? { kind: 'project', id } : { kind: 'workspace', id: id as WorkspaceId }
}

/** undefined for what is not understood: a newer version may tell of more. */
export function readChange(kind: string, id: string): Change | undefined {
  if (kind === 'key') return isKey(id) ? { kind, id } : undefined
  if (kind === 'project') return isProject(id) ? { kind, id } : undefined
  if (kind === 'workspace' || kind === 'credential') return isWorkspace(id) ? { kind, id } : undefined
  return kind === 'price' || kind === 'config' ? { kind, id } : undefined
}

export function renderChange({ change: { kind, id }, sequence }: NumberedChange): string {
  return JSON.stringify({ kind, id, ...(sequence !== undefined && { sequence: String(sequence) }) })
}

/** undefined for what is not understood: the channel is not ours alone. */
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

const isKey = (id: string): id is KeyId => id.startsWith('key_')
const isProject = (id: string): id is ProjectId => id.startsWith('prj_')
const isWorkspace = (id: string): id is WorkspaceId => id.startsWith('ws_')

// The table through which replicas tell each other of changes. Rows are read by time and not by number alone: a
// transaction with a lower number may be committed after one with a higher, and would be passed over.

/** A row is committed within two statements of at most 2 s each, or after 5 s of silence never. */
export const overlapMs = 10_000n
const keptMs = 3_600_000n
const cleanMax = 1000n

export interface ChangesRead {
  readonly changes: readonly { readonly change: Change; readonly sequence: bigint }[]
  /** Of the database's clock. */
  readonly nowMs: bigint
}

/** To be the last before the commit: its time is that of the row, and readers look back for so long only. */
export async function writeChange(sql: Sql, { kind, id }: Change): Promise<bigint | undefined> {
  const at = await databaseNow(sql)
  const [row] = await sql<{ sequence: bigint }>`INSERT INTO changes (kind, object, at)
    VALUES (${kind}, ${id}, ${at}) RETURNING sequence`
  return row?.sequence
}

/** Those of the last seconds before `sinceMs`, too: they may have become visible since. undefined = since now. */
export async function readChanges(sql: Sql, sinceMs: bigint | undefined): Promise<ChangesRead> {
  // Asked first: what is committed after this is read the next time.
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

// Tells the other replicas of a change, and hears of theirs: through the database, looked at every second, and at once
// through Redis where there is one. What forgets after a few seconds anyway is announced after its change, so one that
// could not be told is noticed then; what is remembered for good is recorded in the transaction of the change itself.

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
