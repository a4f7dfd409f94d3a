// The settings of each reader of alerts: which kinds they get by e-mail, and how far they have read.

import type { AlertKind } from '../kernel/alert.ts'
import type { PersonId } from '../kernel/ids.ts'
import type { Sql } from '../store/sql.ts'

/** `installation`: everyone with the management token counts as one reader, without e-mail. */
export type Reader = PersonId | 'installation'

/** undefined = as the rules say. */
export async function readKinds(sql: Sql, reader: Reader): Promise<readonly AlertKind[] | undefined> {
  const [row] = await sql<{ kinds: string | null }>`SELECT kinds FROM alert_readers WHERE reader = ${reader}`
  return row?.kinds == null ? undefined : JSON.parse(row.kinds)
}

export async function putKinds(sql: Sql, reader: Reader, kinds: readonly AlertKind[] | undefined): Promise<void> {
  const text = kinds === undefined ? null : JSON.stringify(kinds)
  await sql`INSERT INTO alert_readers (reader, kinds, read_until) VALUES (${reader}, ${text}, '')
    ON CONFLICT (reader) DO UPDATE SET kinds = excluded.kinds`
}

/** The id of the newest alert that was read; empty = none. */
export async function readUntil(sql: Sql, reader: Reader): Promise<string> {
  const [row] = await sql<{ read_until: string }>`SELECT read_until FROM alert_readers WHERE reader = ${reader}`
  return row?.read_until ?? ''
}

export async function markRead(sql: Sql, reader: Reader, until: string): Promise<void> {
  await sql`INSERT INTO alert_readers (reader, kinds, read_until) VALUES (${reader}, NULL, ${until})
    ON CONFLICT (reader) DO UPDATE SET read_until = excluded.read_until WHERE alert_readers.read_until < excluded.read_until`
}
