// How the embedded engine makes charges durable. A commit appends the rows of its requests to the table `journal`, as one
// text: one or two pages are written and synced. The rows themselves with their indexes, the balances, budgets and sums
// would be eight. The thread that writes applies the journal afterwards, many requests in one transaction: if it is lost, so
// is the deletion from the journal, and it is done again. Requests without a charge take the same way into the request log,
// because charges would wait for a transaction that applies the journal and writes their rows.

import { SQLiteError } from 'bun:sqlite'
import { keptUntil, splitMinute } from '../kernel/spend-limit.ts'
import {
  type AddedTable,
  correctedColumns,
  HourSums,
  hourTable,
  type RequestRow,
  type RequestValues,
  requestColumns,
  requestValues,
  sumTable,
} from './request-rows.ts'

export interface Journal {
  /**
   * Appends requests in one commit, durable when it resolves. Throws when the commit was not confirmed: hardly ever, but
   * possibly, it was written all the same. A request that is appended twice is charged once. One without a charge corrects
   * the row that there is: see `writeRequests`.
   */
  append(requests: readonly RequestRow[]): Promise<void>
  /** Resolves when the tables have everything that was appended before. */
  apply(): Promise<void>
}

export function encodeRequests(requests: readonly RequestRow[]): string {
  return JSON.stringify(requests.map(requestValues))
}

/** What the database did not accept, because of a defect in Tollgate. A charge stays in the journal, and `verify` reports it. */
export interface RefusedRequest {
  readonly requestId: string
  readonly isCharged: boolean
  readonly message: string
}

/** Matches statements that read a table which `apply` writes to, or a view of it: the journal has to be applied before they run. */
export const appliedTables =
  /\b(requests|charges|transfers|balances|budgets|budget_minutes|request_hours|request_sums|credits|credit_uses)\b/

type BoundValue = string | number | bigint | null

/** The part of a prepared statement that is used here. */
export interface JournalStatement {
  run(...values: BoundValue[]): { readonly changes: number; readonly lastInsertRowid: number | bigint }
  get(...values: BoundValue[]): unknown
  finalize(): void
}

const marks = (count: number) => Array(count).fill('?').join(', ')
const addTo = ({ table, columns, onConflict }: AddedTable) =>
  `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${marks(columns.length)})${onConflict}`
const indexOf = (name: keyof RequestRow) => requestColumns.indexOf(name)
const [idAt, workspaceAt, chargeAt] = [indexOf('id'), indexOf('workspace_id'), indexOf('charge')]
const budgetsAt = indexOf('budgets')
const correctedAt = correctedColumns.map(indexOf)

const texts = {
  append: 'INSERT INTO journal (requests) VALUES (?)',
  next: 'SELECT sequence, requests FROM journal WHERE refusal IS NULL AND sequence > ? ORDER BY sequence LIMIT 1',
  remove: 'DELETE FROM journal WHERE refusal IS NULL AND sequence <= ?',
  keepRefused: 'INSERT INTO journal (requests, refusal) VALUES (?, ?)',
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',
  rollBack: 'ROLLBACK',
  beginRequest: 'SAVEPOINT request',
  endRequest: 'RELEASE request',
  undoRequest: 'ROLLBACK TO request',
  addRequest: `INSERT INTO requests (${requestColumns.join(', ')}) VALUES (${marks(requestColumns.length)})
    ON CONFLICT (id) DO NOTHING`,
  findRequest: 'SELECT * FROM requests WHERE id = ?',
  correctRequest: `UPDATE requests SET ${correctedColumns.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`,
  pay: 'UPDATE balances SET posted = posted - ? WHERE account_id = ? RETURNING credit',
  nextCredit: `SELECT id, remaining FROM credits WHERE workspace_id = ? AND remaining > 0
    ORDER BY expires_at, id LIMIT 1`,
  useCredit: 'UPDATE credits SET remaining = remaining - ? WHERE id = ?',
  noteUse: 'INSERT INTO credit_uses (credit_id, transfer_id, amount) VALUES (?, ?, ?)',
  lessCredit: 'UPDATE balances SET credit = credit - ? WHERE account_id = ?',
  spend: `INSERT INTO budgets (spent, scope_id, time_window, held) VALUES (?, ?, ?, 0)
    ON CONFLICT (scope_id, time_window) DO UPDATE SET spent = budgets.spent + excluded.spent`,
  spendInMinute: `INSERT INTO budget_minutes (spent, scope_id, time_window, minute, kept_until) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (scope_id, time_window, minute) DO UPDATE SET spent = budget_minutes.spent + excluded.spent`,
  addHour: addTo(hourTable),
  addSession: addTo(sumTable),
}
type Statements = Readonly<Record<keyof typeof texts, JournalStatement>>

/** One commit of the journal. */
interface Entry {
  readonly sequence: bigint
  readonly requests: string
}

/** Where applying fails for long, they are read from the table later. */
const keptMax = 1000

/** How many requests are applied in one transaction, at least, if there are so many. A commit waits a millisecond or two for it. */
export const applyMin = 128

/** The journal on one connection. Lives in the thread that writes. */
export class JournalTable {
  #prepared: Statements | undefined
  /**
   * What the table has, so that it need not be read again; undefined = not known. At the start it may have requests of a
   * process that was killed, after a failure those whose commit was reported as failed, and a transaction may write anything.
   */
  #unapplied: Entry[] | undefined
  /** Only one connection appends to the table. Others, such as that of a backup, always read it. */
  #isWriter = false

  constructor(private readonly prepare: (text: string) => JournalStatement) {}

  /** One statement without a transaction: it is committed and synced when it returns. */
  append(text: string): void {
    const known = this.#unapplied
    this.#isWriter = true
    // Not known if the statement throws: the row may be there all the same.
    this.#unapplied = undefined
    const { lastInsertRowid } = this.#statements().append.run(text)
    if (!known || known.length === keptMax) return
    known.push({ sequence: BigInt(lastInsertRowid), requests: text })
    this.#unapplied = known
  }

  /** Applies everything. Returns what the database refused. */
  apply(): readonly RefusedRequest[] {
    const refused: RefusedRequest[] = []
    for (;;) {
      const { requests, last, count } = this.#nextPortion()
      if (requests.length === 0) {
        if (this.#isWriter) this.#unapplied ??= []
        return refused
      }
      refused.push(...this.#applyPortion(requests, last))
      this.#unapplied?.splice(0, count)
    }
  }

  /** The table is read again. */
  forget(): void {
    this.#unapplied = undefined
  }

  finalize(): void {
    for (const statement of Object.values(this.#prepared ?? {})) statement.finalize()
    this.#prepared = undefined
  }

  #nextPortion(): { readonly requests: readonly RequestValues[]; readonly last: bigint; readonly count: number } {
    const requests: RequestValues[] = []
    let last = 0n
    let count = 0
    while (requests.length < applyMin) {
      const entry = this.#unapplied ? this.#unapplied[count] : this.#readAfter(last)
      if (!entry) break
      requests.push(...(JSON.parse(entry.requests) as RequestValues[]).map(withAllColumns))
      last = entry.sequence
      count++
    }
    return { requests, last, count }
  }

  #readAfter(sequence: bigint): Entry | undefined {
    const row = this.#statements().next.get(sequence) as { readonly sequence: bigint; readonly requests: string } | null
    return row ? { sequence: BigInt(row.sequence), requests: row.requests } : undefined
  }

  /**
   * A request that is refused must not spoil the others. A savepoint for each costs more than the rest, so that is done
   * only once something was refused, in a second run.
   */
  #applyPortion(requests: readonly RequestValues[], last: bigint): readonly RefusedRequest[] {
    try {
      return this.#transact((statements) => {
        applyTogether(statements, requests)
        statements.remove.run(last)
        return []
      })
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown
      return this.#transact((statements) => {
        const refused = requests.flatMap((request) => applyAlone(statements, request) ?? [])
        statements.remove.run(last)
        return refused
      })
    }
  }

  #transact<T>(work: (statements: Statements) => T): T {
    const statements = this.#statements()
    statements.begin.run()
    try {
      const result = work(statements)
      statements.commit.run()
      return result
    } catch (thrown) {
      // After some errors (disk full, I/O) SQLite has ended the transaction already, and there is nothing to roll back.
      try {
        statements.rollBack.run()
      } catch {}
      throw thrown
    }
  }

  /** Not before they are needed: the tables are made after the connection. */
  #statements(): Statements {
    this.#prepared ??= Object.fromEntries(
      Object.entries(texts).map(([name, text]) => [name, this.prepare(text)]),
    ) as Statements
    return this.#prepared
  }
}

/** A journal that was written before an update has no values of the columns that the update added. */
function withAllColumns(request: RequestValues): RequestValues {
  const missing = requestColumns.length - request.length
  return missing > 0 ? [...request, ...Array<null>(missing).fill(null)] : request
}

function applyAlone(statements: Statements, request: RequestValues): RefusedRequest | undefined {
  statements.beginRequest.run()
  try {
    applyTogether(statements, [request])
    statements.endRequest.run()
    return undefined
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown
    statements.undoRequest.run()
    statements.endRequest.run()
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    const isCharged = request[chargeAt] !== null
    if (isCharged) statements.keepRefused.run(JSON.stringify([request]), message)
    return { requestId: String(request[idAt]), isCharged, message }
  }
}

/** Rows first, then one statement for each balance, budget, hour and session that several requests may change. */
function applyTogether(statements: Statements, requests: readonly RequestValues[]): void {
  const payments = new Map<string, Payment[]>()
  const spent = new Map<string, bigint>()
  const hours = new HourSums()
  for (const request of requests) {
    if (statements.addRequest.run(...request).changes === 0) {
      const before = statements.findRequest.get(request[idAt] ?? null) as RequestRow
      if (request[chargeAt] === null) {
        statements.correctRequest.run(...correctedAt.map((at) => request[at] ?? null), before.id)
        hours.correct(requestValues(before), request)
      } else if (before.charge === null) throw new Error('it is among the requests without a charge')
      // Otherwise it was appended twice: its commit was written and reported as failed, and then tried again.
      continue
    }
    hours.add(request)
    const charge = BigInt(request[chargeAt] ?? 0)
    if (charge === 0n) continue
    const workspaceId = String(request[workspaceAt])
    const own = payments.get(workspaceId) ?? []
    payments.set(workspaceId, own)
    own.push({ transferId: `tr_${String(request[idAt]).slice('req_'.length)}`, amount: charge })
    const budgets = request[budgetsAt]
    if (typeof budgets !== 'string') continue
    for (const name of budgets.split(',')) spent.set(name, (spent.get(name) ?? 0n) + charge)
  }
  for (const [workspaceId, own] of payments) pay(statements, workspaceId, own)
  for (const [name, amount] of spent) {
    const [scopeId = '', window = ''] = name.split(' ')
    const rolling = splitMinute(window)
    if (rolling === undefined) statements.spend.run(amount, scopeId, window)
    else {
      const { word, minute } = rolling
      statements.spendInMinute.run(amount, scopeId, word, minute, keptUntil(word, minute))
    }
  }
  for (const values of hours.hours()) statements.addHour.run(...values)
  for (const values of hours.sessions()) statements.addSession.run(...values)
}

interface Payment {
  readonly transferId: string
  readonly amount: bigint
}

/** Credit of plans pays first, the first to expire before the others: as `spendCredit` in the ledger does on PostgreSQL. */
function pay(statements: Statements, workspaceId: string, payments: readonly Payment[]): void {
  const wallet = `wallet:${workspaceId}`
  const total = payments.reduce((sum, { amount }) => sum + amount, 0n)
  const row = statements.pay.get(total, wallet) as { readonly credit: bigint | number } | null
  if (!row) throw new Error(`there is no balance of ${wallet}`)
  const credit = BigInt(row.credit)
  let left = credit
  for (const { transferId, amount } of payments) {
    let due = amount < left ? amount : left
    while (due > 0n) {
      const next = statements.nextCredit.get(workspaceId) as { readonly id: string; readonly remaining: bigint } | null
      if (!next) throw new Error(`the credit of ${wallet} is more than remains of its grants`)
      const used = due < BigInt(next.remaining) ? due : BigInt(next.remaining)
      statements.useCredit.run(used, next.id)
      statements.noteUse.run(next.id, transferId, used)
      due -= used
      left -= used
    }
  }
  if (left < credit) statements.lessCredit.run(credit - left, wallet)
}

/** BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB: the next request would meet them too. */
const storeFaults = new Set([5, 6, 7, 8, 10, 11, 13, 14, 26])

/** The fault of one request: a constraint, a trigger, a row that does not exist. */
function isRefusal(thrown: unknown): boolean {
  return !(thrown instanceof SQLiteError && storeFaults.has(thrown.errno & 0xff))
}
