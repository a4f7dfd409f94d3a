// The disk of a simulated embedded gateway: a real SQLite engine in memory, with the real schema, that outlives the
// processes which write to it. A commit is durable the moment it is executed; what was begun and not committed is lost.

import { Database, type Statement } from 'bun:sqlite'
import { textForEngine } from '../../src/store/migrate.ts'
import { allMigrations } from '../../src/store/migrations/registry.ts'
import type { SqlValue } from '../../src/store/sql.ts'

let template: Uint8Array | undefined

/** Made once; a copy of the pages is a hundred times faster than the migrations. */
function migratedPages(): Uint8Array {
  if (template) return template
  const database = new Database(':memory:')
  for (const { text } of allMigrations) database.run(textForEngine(text, 'sqlite'))
  template = database.serialize()
  database.close()
  return template
}

export class MemoryDisk {
  /** After every commit, with what it was called. */
  onCommit: () => void = () => {}
  readonly #database = Database.deserialize(migratedPages(), { safeIntegers: true } as never)
  readonly #prepared = new Map<string, Statement>()
  #leftInLog: { readonly requests: string; changes: bigint } | undefined
  #changesAtBegin = 0n

  constructor() {
    this.#database.run('PRAGMA foreign_keys = ON')
  }

  /** Whether a transaction is open. */
  get isBusy(): boolean {
    return this.#database.inTransaction
  }

  prepare = (text: string): Statement => {
    const known = this.#prepared.get(text)
    if (known) return known
    const fresh = this.#database.prepare(text)
    this.#prepared.set(text, fresh)
    return fresh
  }

  all<Row>(text: string, values: readonly SqlValue[] = []): Row[] {
    return this.prepare(text).all(...values) as Row[]
  }

  run(text: string): void {
    if (text.startsWith('BEGIN')) this.#changesAtBegin = this.#changes()
    this.#database.run(text)
    if (text === 'COMMIT') this.onCommit()
  }

  rollBack(): void {
    if (!this.#database.inTransaction) return
    this.#database.run('ROLLBACK')
    // SQLite counts the changes of the transaction all the same.
    const left = this.#leftInLog
    if (left?.changes === this.#changesAtBegin) left.changes = this.#changes()
  }

  /** A commit to the journal that was written, but could not be synced: the process does not see it. */
  leaveInLog(requests: string): void {
    this.#leftInLog = { requests, changes: this.#changes() }
  }

  /** The process ends: a transaction that was not committed never was, and one that was left in the log is found there. */
  crash(): void {
    this.rollBack()
    const left = this.#leftInLog
    this.#leftInLog = undefined
    // Any later write has overwritten it.
    if (left?.changes === this.#changes()) this.all('INSERT INTO journal (requests) VALUES (?)', [left.requests])
  }

  #changes(): bigint {
    return this.all<{ count: bigint }>('SELECT total_changes() AS count')[0]?.count ?? 0n
  }

  close(): void {
    for (const statement of this.#prepared.values()) statement.finalize()
    this.#database.close()
  }
}
