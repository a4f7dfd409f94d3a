// The audit log: who changed what, written in the transaction of the change. Rows are only added, each with the hash of
// the previous one. They contain ids, settings and reasons, never a secret or a name that may have to be erased.

import { createHash } from 'node:crypto'
import { assert } from '../kernel/failure.ts'
import { count, type ItemIn, json, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { templateOf } from '../store/insert-rows.ts'
import { type Sql, type SqlValue, textToSql, timeToSql } from '../store/sql.ts'
import type { Act, Page, PageQuery } from './management.ts'

export interface AuditEntry extends Act {
  /** Object type and action: `key.revoke`. */
  readonly action: `${string}.${string}`
  /** The id of what was changed. */
  readonly object: string
  /** Written as JSON. */
  readonly details?: Readonly<Record<string, unknown>>
}

const auditRow = rowFormat({
  sequence: count,
  at: time,
  actor: text(),
  action: text(),
  object: text(),
  details: json<Readonly<Record<string, unknown>>>(),
  requestId: optional(text()),
  hash: text(),
})

export type AuditRow = ItemIn<typeof auditRow>

/** As stored; the hash covers all other columns. */
export interface StoredAudit {
  readonly sequence: bigint
  readonly at: bigint
  readonly actor: string
  readonly action: string
  readonly object: string
  readonly details: string
  readonly request_id: string | null
  readonly previous_hash: string
  readonly hash: string
}

/**
 * Call last in the transaction of the change: the head of the chain is one row for all replicas, and its lock makes the
 * others wait until the commit.
 */
export async function appendAudit(sql: Sql, entry: AuditEntry): Promise<void> {
  // Locked before it is read, so that a concurrent append continues from this one.
  const [head] = await sql<{ sequence: bigint; hash: string }>`UPDATE audit_head SET sequence = sequence + 1
    WHERE id = 1 RETURNING sequence, hash`
  assert(head, 'the audit log has a head')
  const row = {
    sequence: head.sequence,
    at: timeToSql(entry.at),
    actor: entry.actor,
    action: entry.action,
    object: entry.object,
    details: JSON.stringify({ ...entry.details, ...(entry.managedBy && { managed_by: entry.managedBy }) }),
    request_id: entry.requestId ?? null,
    previous_hash: head.hash,
  }
  const hash = auditHash(row)
  await sql`INSERT INTO audit ${sql([{ ...row, hash }])}`
  await sql`UPDATE audit_head SET hash = ${hash} WHERE id = 1`
}

/**
 * For a change that has its own commit: the entry follows it, from the call that made the change or, if that was
 * interrupted, from its retry. `mark`: the member of the details that identifies the entry, such as an id.
 */
export async function appendAuditOnce(sql: Sql, entry: AuditEntry, mark: string): Promise<void> {
  const marked = JSON.stringify({ [mark]: entry.details?.[mark] }).slice(1, -1)
  assert(marked !== '', 'the mark of an entry is in its details')
  // Locked before the check, so that the second of two concurrent calls finds the entry of the first.
  await lockAudit(sql)
  const [noted] = await sql`SELECT 1 AS noted FROM audit WHERE object = ${entry.object} AND action = ${entry.action}
    AND replace(details, ${marked}, '') <> details LIMIT 1`
  if (!noted) await appendAudit(sql, entry)
}

/** Other transactions that append to the audit log wait for the end of this one. */
export async function lockAudit(sql: Sql): Promise<void> {
  await sql`SELECT id FROM audit_head WHERE id = 1 FOR NO KEY UPDATE`
}

/** SHA-256 of the columns in order, as a JSON array, which is unambiguous about where each ends. */
export function auditHash(row: Omit<StoredAudit, 'hash'>): string {
  const { sequence, at, actor, action, object, details, request_id, previous_hash } = row
  return createHash('sha256')
    .update(JSON.stringify([String(sequence), String(at), actor, action, object, details, request_id, previous_hash]))
    .digest('hex')
}

const sequenceMax = 9_000_000_000_000_000_000n

export interface AuditFilters {
  /** A person includes the tokens of the person. */
  readonly actor?: string
  /** `key.revoke`, or `key` for everything that was done to keys. */
  readonly action?: string
  readonly object?: string
  /** Epoch milliseconds; `to` is exclusive. */
  readonly from?: number
  readonly to?: number
}

/** Newest first. */
export async function listAudit(sql: Sql, query: PageQuery & AuditFilters): Promise<Page<AuditRow>> {
  const { limit, cursor, actor, action, object, from, to } = query
  // An invalid cursor is before the first entry, so the page is empty.
  const before = cursor === undefined ? sequenceMax : /^[0-9]{1,18}$/.test(cursor) ? BigInt(cursor) : 0n
  // All actions of a kind begin with its name and a point.
  const kind = action?.includes('.') === false && `${action}.`
  const by = textToSql(actor)
  const conditions: readonly (false | readonly [text: string, ...values: SqlValue[]])[] = [
    ['sequence < ?', before],
    by !== null && ['(actor = ? OR actor IN (SELECT id FROM management_tokens WHERE person_id = ?))', by, by],
    object !== undefined && ['object = ?', textToSql(object)],
    action !== undefined && [kind ? `SUBSTR(action, 1, ${kind.length}) = ?` : 'action = ?', textToSql(kind || action)],
    from !== undefined && ['at >= ?', timeToSql(from)],
    to !== undefined && ['at < ?', timeToSql(to)],
  ]
  const given = conditions.filter((each) => each !== false)
  const where = given.map(([text]) => text).join(' AND ')
  const text = `SELECT * FROM audit WHERE ${where} ORDER BY sequence DESC LIMIT ?`
  const values = given.flatMap(([, ...each]) => each)
  const rows = await sql(templateOf(text.split('?')), ...values, BigInt(limit + 1))
  const items = auditRow.all(rows.slice(0, limit))
  return { items, nextCursor: rows.length > limit ? String(items.at(-1)?.sequence) : undefined }
}

/** The entries of one object, oldest first. */
export async function listAuditOf(sql: Sql, object: string): Promise<readonly AuditRow[]> {
  return auditRow.all(await sql`SELECT * FROM audit WHERE object = ${object} ORDER BY sequence`)
}

export interface AuditFinding {
  readonly sequence: number
  readonly detail: string
}

export interface AuditVerification {
  /** Empty = the chain is intact. The first ones, if there are many. */
  readonly findings: readonly AuditFinding[]
  readonly rows: number
  readonly head: AuditHead
}

/**
 * The number and the hash of an entry. A head that was noted elsewhere proves later that the whole chain was not rewritten:
 * someone who can change every row can also recompute every hash.
 */
export interface AuditHead {
  readonly sequence: number
  readonly hash: string
}

export interface VerifyAuditOptions {
  /** An earlier head that must still be in the chain. */
  readonly noted?: AuditHead | undefined
  onProgress?(done: number, total: number): void
}

const portion = 1000n
const findingsMax = 20

/** Checks the chain from its first row to its head. Reads one snapshot, so it may run beside a serving gateway. */
export function verifyAudit(database: Database, options: VerifyAuditOptions = {}): Promise<AuditVerification> {
  const { noted, onProgress } = options
  return database.snapshot(async (sql) => {
    const findings: AuditFinding[] = []
    const head = await readHead(sql)
    let isNotedThere = noted === undefined
    let last = { sequence: 0n, hash: '' }
    let rows = 0
    for (;;) {
      const next = await sql<StoredAudit>`SELECT * FROM audit WHERE sequence > ${last.sequence}
        ORDER BY sequence LIMIT ${portion}`
      if (next.length === 0) break
      for (const row of next) {
        if (findings.length < findingsMax) findings.push(...faultsOf(row, last))
        // Continues with the stored hash, so that one changed row is one finding and not all that follow.
        last = row
        rows++
        isNotedThere ||= row.sequence === BigInt(noted?.sequence ?? 0) && row.hash === noted?.hash
      }
      onProgress?.(rows, Number(head.sequence))
    }
    if (head.sequence !== last.sequence || head.hash !== last.hash) {
      const detail = `the head of the log names entry ${head.sequence}, the last one is ${last.sequence}: entries at the end were removed, added or changed`
      findings.push({ sequence: Number(last.sequence), detail })
    }
    if (noted && !isNotedThere) {
      findings.push({
        sequence: noted.sequence,
        detail: 'it is not the entry that was noted: the log was rewritten',
      })
    }
    return { findings, rows, head: { sequence: Number(head.sequence), hash: head.hash } }
  })
}

function faultsOf(row: StoredAudit, last: { readonly sequence: bigint; readonly hash: string }): AuditFinding[] {
  const sequence = Number(row.sequence)
  const faults: string[] = []
  if (row.sequence !== last.sequence + 1n) faults.push(`the entry before it is ${last.sequence}: entries are missing`)
  if (row.previous_hash !== last.hash) faults.push('it does not follow the entry before it')
  if (row.hash !== auditHash(row)) faults.push('it was changed: its content does not fit its hash')
  return faults.map((detail) => ({ sequence, detail }))
}

async function readHead(sql: Sql): Promise<{ sequence: bigint; hash: string }> {
  const [head] = await sql<{ sequence: bigint; hash: string }>`SELECT sequence, hash FROM audit_head WHERE id = 1`
  return head ?? { sequence: 0n, hash: '' }
}
