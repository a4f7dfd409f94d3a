// Follows the chain of the audit log from its first row to its head and names every row that does not fit. It only
// reads, in one snapshot, so it may run beside a serving gateway.

import type { Database } from '../store/database.ts'
import type { Sql } from '../store/sql.ts'
import { auditHash, type StoredAudit } from './audit.ts'

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
