// The database handle of one simulated replica: the real handle on a real PostgreSQL, with every statement and every commit
// a turn of the scheduler, the server's clock replaced by the world's, and faults where a connection may break.

import { SQL } from 'bun'
import type { Database } from '../../src/store/database.ts'
import type { Sql } from '../../src/store/sql.ts'
import { CommitUnknown } from '../../src/store/sql-error.ts'
import type { Scheduler, Turns } from './scheduler.ts'
import type { StatementTurns } from './statement-turns.ts'
import type { StoreFaults } from './store-faults.ts'

export interface SharedStoreOptions {
  readonly scheduler: Scheduler
  readonly real: Database
  readonly turns: StatementTurns
  readonly faults: StoreFaults
  readonly owner: Turns
  onCommit(): Promise<void>
  /** Rejects when the process dies. */
  readonly death: Promise<never>
}

const closed = () =>
  new SQL.PostgresError('the connection was closed', { code: 'ERR_POSTGRES_CONNECTION_CLOSED' } as never)

export function openSharedStore(options: SharedStoreOptions): Database {
  const { scheduler, real, owner, faults } = options
  const read: Sql = timedSql(
    scheduler,
    real.sql,
    (label, run) =>
      // Waited for in real time: a read waits for no lock.
      new Promise((resolve, reject) => {
        scheduler.soon(owner, label, () =>
          faults.isOut(scheduler.now) ? reject(closed()) : run().then(resolve, reject),
        )
      }),
  )
  return {
    engine: 'postgres',
    sql: read,
    journal: undefined,
    transaction: (work) => transact(options, work),
    snapshot: (work) => real.snapshot((sql) => work(timedSql(scheduler, sql, (_label, run) => run()))),
    schemaTransaction: async () => 'busy',
    close: () => real.close(),
  }
}

/** As the tagged template, but the server's clock is the world's, and `turn` decides when a statement runs. */
function timedSql(
  scheduler: Scheduler,
  sql: Sql,
  turn: (label: string, run: () => Promise<unknown[]>) => Promise<unknown[]>,
): Sql {
  const tag = (first: TemplateStringsArray | string | readonly object[], ...values: unknown[]) => {
    const call = sql as unknown as (...args: unknown[]) => Promise<unknown[]>
    if (typeof first === 'string' || !('raw' in first)) return call(first)
    const text = first.join('?').trim()
    // The real time that a lock or a process takes is the machine's, not the world's.
    if (text.includes("set_config('lock_timeout'")) return Promise.resolve([])
    if (/(clock|transaction)_timestamp\(\)/.test(text)) {
      return turn('  asks the time', async () => [{ now: BigInt(Math.floor(scheduler.now)) }])
    }
    // Bun's statements are lazy: nothing runs before it is waited for.
    return turn(`  runs ${text.slice(0, 40)}`, async () => await call(first, ...values))
  }
  return tag as unknown as Sql
}

class Broken extends Error {}

type Done<T> = { readonly value: T } | { readonly thrown: unknown }

async function transact<T>(options: SharedStoreOptions, work: (sql: Sql) => Promise<T>): Promise<T> {
  const { scheduler, faults, owner } = options
  const opened = await new Promise<OpenTransaction<T>>((resolve, reject) => {
    scheduler.soon(owner, 'begins', async () => {
      if (faults.isOut(scheduler.now)) return reject(closed())
      resolve(await openTransaction(options, work))
    })
  })
  const done = await opened.done
  return await new Promise<T>((resolve, reject) => {
    scheduler.soon(owner, 'thrown' in done ? 'rolls back' : 'commits', async () => {
      const fault = faults.commit(scheduler.now)
      await opened.end(fault === 'fails' ? 'rollback' : 'commit')
      const answer = () => {
        if ('thrown' in done) reject(done.thrown)
        else if (fault === 'none') opened.whole.then(resolve, reject)
        else reject(new CommitUnknown(closed()))
      }
      scheduler.soon(owner, 'learns its end', answer)
    })
  })
}

interface OpenTransaction<T> {
  /** The result of the work; the transaction is still open. */
  readonly done: Promise<Done<T>>
  readonly whole: Promise<T>
  end(how: 'commit' | 'rollback'): Promise<void>
}

/** Resolves when the server has begun it. */
async function openTransaction<T>(
  { scheduler, real, turns, faults, owner, death, onCommit }: SharedStoreOptions,
  work: (sql: Sql) => Promise<T>,
): Promise<OpenTransaction<T>> {
  const begun = Promise.withResolvers<number>()
  const done = Promise.withResolvers<Done<T>>()
  const decided = Promise.withResolvers<'commit' | 'rollback'>()
  const whole = real.transaction(async (sql) => {
    const [row] = await sql<{ pid: bigint | number }>`SELECT pg_backend_pid() AS pid,
      set_config('lock_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`
    const pid = Number(row?.pid)
    begun.resolve(pid)
    const inTurn = timedSql(scheduler, sql, (label, run) =>
      statement({ scheduler, turns, faults, owner }, pid, label, run),
    )
    const result = await Promise.race([death, settled(work(inTurn))])
    done.resolve(result)
    const how = await Promise.race([death, decided.promise])
    if ('thrown' in result) throw result.thrown
    if (how === 'rollback') throw new Broken('the connection broke')
    return result.value
  })
  whole.catch(begun.reject)
  const pid = await begun.promise
  // Also when its process dies: the server needs a moment to roll back.
  death.catch(() => turns.begin(pid, whole))
  return {
    done: done.promise,
    whole,
    async end(how) {
      decided.resolve(how)
      await turns.begin(pid, whole)
      if (how === 'commit') await onCommit()
    },
  }
}

function settled<T>(work: Promise<T>): Promise<Done<T>> {
  return work.then(
    (value) => ({ value }),
    (thrown) => ({ thrown }),
  )
}

function statement(
  { scheduler, turns, owner, faults }: Pick<SharedStoreOptions, 'scheduler' | 'turns' | 'owner' | 'faults'>,
  pid: number,
  label: string,
  run: () => Promise<unknown[]>,
): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    scheduler.soon(owner, label, async () => {
      if (faults.isOut(scheduler.now)) return reject(closed())
      const answer = run()
      const isOver = await turns.begin(pid, answer)
      if (isOver) return void answer.then(resolve, reject)
      const hear = (tell: () => void) => scheduler.soon(owner, `  had to wait: ${label.trim()}`, tell)
      answer.then(
        (rows) => hear(() => resolve(rows)),
        (thrown) => hear(() => reject(thrown)),
      )
    })
  })
}
