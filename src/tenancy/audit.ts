// The audit log: who changed what, written in the transaction of the change itself. Rows are only ever added, each with
// the hash of the one before; they hold ids, settings and reasons, never a secret or a name that may have to be erased.

import { createHash } from 'node:crypto'
import { assert } from '../kernel/assert.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeFromSql, timeToSql } from '../store/sql.ts'
import type { Act, Page, PageQuery } from './management.ts'

export interface AuditEntry extends Act {
  /** What kind of thing, and what was done to it: `key.revoke`. */
  readonly action: `${string}.${string}`
  /** The id of what was changed. */
  readonly object: string
  /** Written as JSON. */
  readonly details?: Readonly<Record<string, unknown>>
}

/** An entry in its place in the chain. */
export interface AuditRow {
  readonly sequence: number
  readonly at: number
  readonly actor: string
  readonly action: string
  readonly object: string
  readonly details: Readonly<Record<string, unknown>>
  readonly requestId: string | undefined
  readonly hash: string
}

/** As it is in the database; the hash is made of all the rest. */
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
 * Inside the transaction of the change, as its last statements: the head of the chain is one row for all replicas, and
 * whoever has it lets the others wait until the commit.
 */
export async function appendAudit(sql: Sql, entry: AuditEntry): Promise<void> {
  // Taken before it is read: a twin on another replica reads what this one leaves behind.
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
 * For a change that commits by itself: its entry comes behind it, from the call that made it or, where that one was cut
 * off, from one that was sent again. `mark`: the member of the details by which the entry is known, such as an id.
 */
export async function appendAuditOnce(sql: Sql, entry: AuditEntry, mark: string): Promise<void> {
  const marked = JSON.stringify({ [mark]: entry.details?.[mark] }).slice(1, -1)
  assert(marked !== '', 'what an entry is known by is in its details')
  // Taken before the look: of two that look at once the second finds what the first has written.
  await sql`UPDATE audit_head SET sequence = sequence WHERE id = 1`
  const [noted] = await sql`SELECT 1 AS noted FROM audit WHERE object = ${entry.object} AND action = ${entry.action}
    AND replace(details, ${marked}, '') <> details LIMIT 1`
  if (!noted) await appendAudit(sql, entry)
}

/** SHA-256 over the row as JSON, in the order of its columns; a JSON array leaves no doubt where one ends. */
export function auditHash(row: Omit<StoredAudit, 'hash'>): string {
  const { sequence, at, actor, action, object, details, request_id, previous_hash } = row
  return createHash('sha256')
    .update(JSON.stringify([String(sequence), String(at), actor, action, object, details, request_id, previous_hash]))
    .digest('hex')
}

/** After every sequence there will ever be. */
const sequenceMax = 9_000_000_000_000_000_000n

/** Newest first. */
export async function listAudit(sql: Sql, page: PageQuery): Promise<Page<AuditRow>> {
  const { limit, cursor } = page
  // What is no number comes before the first entry, so that nothing follows.
  const before = cursor === undefined ? sequenceMax : /^[0-9]{1,18}$/.test(cursor) ? BigInt(cursor) : 0n
  const rows = await sql<StoredAudit>`SELECT * FROM audit WHERE sequence < ${before}
    ORDER BY sequence DESC LIMIT ${BigInt(limit + 1)}`
  const items = rows.slice(0, limit).map(auditFromRow)
  return { items, nextCursor: rows.length > limit ? String(items.at(-1)?.sequence) : undefined }
}

/** What was done to one thing, oldest first. */
export async function listAuditOf(sql: Sql, object: string): Promise<readonly AuditRow[]> {
  const rows = await sql<StoredAudit>`SELECT * FROM audit WHERE object = ${object} ORDER BY sequence`
  return rows.map(auditFromRow)
}

function auditFromRow(row: StoredAudit): AuditRow {
  return {
    sequence: Number(row.sequence),
    at: timeFromSql(row.at),
    actor: row.actor,
    action: row.action,
    object: row.object,
    details: JSON.parse(row.details),
    requestId: row.request_id ?? undefined,
    hash: row.hash,
  }
}

// Follows the chain of the audit log from its first row to its head and names every row that does not fit. It only
// reads, in one snapshot, so it may run beside a serving gateway.

export interface AuditFinding {
  readonly sequence: number
  readonly detail: string
}

export interface AuditVerification {
  /** Empty = the chain is whole. The first ones, if there are many. */
  readonly findings: readonly AuditFinding[]
  readonly rows: number
  /** Where the chain ends. */
  readonly head: AuditHead
}

/**
 * An entry by its number and its hash. That of a head, noted somewhere else, proves later that nobody wrote the whole
 * chain anew: who can change every row can make every hash fit.
 */
export interface AuditHead {
  readonly sequence: number
  readonly hash: string
}

export interface VerifyAuditOptions {
  /** A head from before that must still be in the chain. */
  readonly noted?: AuditHead | undefined
  onProgress?(done: number, total: number): void
}

const portion = 1000n
const findingsMax = 20

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
        // On with the hash it carries, so that one changed row is one finding and not all that follow.
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
        detail: 'it is not the entry that was noted: the log was written anew',
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
