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
    this.#database.run(text)
    if (text === 'COMMIT') this.onCommit()
  }

  /** The power is gone: a transaction that was not committed never was. */
  cut(): void {
    if (this.#database.inTransaction) this.#database.run('ROLLBACK')
  }

  close(): void {
    for (const statement of this.#prepared.values()) statement.finalize()
    this.#database.close()
  }
}
