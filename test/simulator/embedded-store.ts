// The database handle of one simulated process on a memory disk. Statements, transactions and batches are those of the
// real store (its template, its journal, its order of turns); what is simulated is when they happen and how they fail.

import { SQLiteError } from 'bun:sqlite'
import { SQL } from 'bun'
import type { Database } from '../../src/store/database.ts'
import { appliedTables, encodeRequests, JournalTable } from '../../src/store/journal.ts'
import type { RequestRow } from '../../src/store/request-rows.ts'
import type { Sql } from '../../src/store/sql.ts'
import { createTurns, sqlOver } from '../../src/store/sqlite.ts'
import type { MemoryDisk } from './memory-disk.ts'
import type { Scheduler, Turns } from './scheduler.ts'
import type { StoreFaults } from './store-faults.ts'

export interface EmbeddedStoreOptions {
  readonly scheduler: Scheduler
  readonly disk: MemoryDisk
  readonly faults: StoreFaults
  readonly owner: Turns
  /** A broken disk that says "written" first and writes afterwards. */
  readonly acknowledgesEarly: boolean
}

const notSynced = () => new SQL.SQLiteError('disk I/O error', { code: 'SQLITE_IOERR_FSYNC', errno: 1034 })
const fullDisk = () => new SQL.SQLiteError('database or disk is full', { code: 'SQLITE_FULL', errno: 13 })

export function openEmbeddedStore(options: EmbeddedStoreOptions): Database {
  const { scheduler, disk, owner } = options
  const takeTurn = createTurns()
  const run = (text: string, values: readonly (string | bigint | null)[]) => {
    try {
      return disk.all(text, values) as unknown[]
    } catch (thrown) {
      // As the thread that writes hands it over.
      if (thrown instanceof SQLiteError)
        throw new SQL.SQLiteError(thrown.message, { code: thrown.code ?? '', errno: thrown.errno })
      throw thrown
    }
  }
  const statement = (label: string) =>
    sqlOver(async (text, values) => {
      await scheduler.turn(owner, `${label} ${text.trim().slice(0, 40)}`)
      return run(text, values)
    })
  // There is one connection, on which a read would see what is not committed yet; so a read waits for the writer.
  const reader = sqlOver(async (text, values) => {
    const endTurn = await takeTurn()
    try {
      await scheduler.turn(owner, `reads ${text.trim().slice(0, 40)}`)
      if (appliedTables.test(text)) applyJournal(disk)
      return run(text, values)
    } finally {
      endTurn()
    }
  })
  const transaction = async <T>(work: (sql: Sql) => Promise<T>): Promise<T> => {
    const endTurn = await takeTurn()
    try {
      await scheduler.turn(owner, 'begins')
      applyJournal(disk)
      disk.run('BEGIN IMMEDIATE')
      return await untilCommit(options, work(statement('  runs')))
    } finally {
      endTurn()
    }
  }
  return {
    engine: 'sqlite',
    sql: reader,
    transaction,
    journal: {
      async append(requests) {
        const endTurn = await takeTurn()
        try {
          await append(options, requests)
          options.faults.lastCommitFailed = false
        } catch (thrown) {
          options.faults.lastCommitFailed = true
          throw thrown
        } finally {
          endTurn()
        }
      },
      async apply() {
        const endTurn = await takeTurn()
        try {
          await scheduler.turn(owner, 'applies the journal')
          applyJournal(disk)
        } finally {
          endTurn()
        }
      },
    },
    async snapshot(work) {
      applyJournal(disk)
      return await work(sqlOver(async (text, values) => run(text, values)))
    },
    schemaTransaction: async () => 'busy',
    close: async () => {},
  }
}

async function untilCommit<T>({ scheduler, disk, faults, owner }: EmbeddedStoreOptions, work: Promise<T>): Promise<T> {
  try {
    const result = await work
    await scheduler.turn(owner, 'commits')
    if (faults.commit(scheduler.now) === 'fails') throw fullDisk()
    disk.run('COMMIT')
    await scheduler.turn(owner, 'learns that it is committed')
    faults.lastCommitFailed = false
    return result
  } catch (thrown) {
    disk.rollBack()
    throw thrown
  }
}

async function append(
  { scheduler, disk, faults, owner, acknowledgesEarly }: EmbeddedStoreOptions,
  requests: readonly RequestRow[],
): Promise<void> {
  await scheduler.turn(owner, `sends a batch of ${requests.length}`)
  const delayMs = faults.delayMs()
  if (delayMs > 0) await scheduler.sleep(delayMs, owner)
  const fault = faults.isSyncOut(scheduler.now) ? 'fails though written' : faults.commit(scheduler.now)
  if (fault === 'fails') throw fullDisk()
  if (fault === 'fails though written') {
    disk.leaveInLog(encodeRequests(requests))
    throw notSynced()
  }
  const write = () => {
    new JournalTable(disk.prepare).append(encodeRequests(requests))
    disk.onCommit()
    // The thread that writes applies it after it has answered, now or with what comes later.
    if (requests.length % 2 === 0)
      scheduler.soon(owner, 'applies the journal', () => void (disk.isBusy || applyJournal(disk)))
  }
  if (acknowledgesEarly) {
    const writeAtLast = () => void (disk.isBusy ? scheduler.soon(owner, 'writes later', writeAtLast) : write())
    scheduler.soon(owner, 'writes at last', writeAtLast)
    return
  }
  write()
  await scheduler.turn(owner, 'learns the result of its batch')
}

/** A charge that the database refuses is found by `verify`. */
export function applyJournal(disk: MemoryDisk): void {
  new JournalTable(disk.prepare).apply()
  disk.onCommit()
}
