// This side of the thread that writes: one question at a time, and turns, so that a transaction has the connection to
// itself until it ends. It never lets two turns overlap, and never waits for the disk on this thread.

import { SQL } from 'bun'
import { assert } from '../kernel/assert.ts'
import { BatchEncoder } from './batch-message.ts'
import type { RunScript } from './database.ts'
import type { Sql } from './sql.ts'
import type { WriterAnswer, WriterQuestion } from './sqlite-protocol.ts'
import { sqlOver } from './sqlite-statement.ts'
import { groupSteps } from './step-groups.ts'
import type { BatchWriter } from './write-batch.ts'

export interface SqliteWriter extends BatchWriter {
  /** Commits when the work resolves, rolls back when it throws. `whenBusyMs`: how long to wait for other processes. */
  transaction<T>(whenBusyMs: number, work: (sql: Sql, runScript: RunScript) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Throws what SQLite said when the file cannot be opened. */
export async function openSqliteWriter(file: string, settings: string): Promise<SqliteWriter> {
  const thread = startThread()
  try {
    await thread.ask({ kind: 'open', file, settings })
  } catch (thrown) {
    thread.end()
    throw thrown
  }
  const takeTurn = createTurns()
  const encoder = new BatchEncoder()
  let closed: Promise<void> | undefined

  return {
    async commitBatch(operations) {
      const endTurn = await takeTurn()
      try {
        const together = await thread.ask(encoder.encode(groupSteps(operations)))
        if (together.kind === 'batch' && together.isCommitted) return operations.map(() => undefined)
        const apart = await thread.ask({ kind: 'operations', operations })
        assert(apart.kind === 'operations', 'the thread answers what it was asked')
        return apart.refusals
      } finally {
        endTurn()
      }
    },
    async transaction(whenBusyMs, work) {
      const endTurn = await takeTurn()
      try {
        await thread.ask({ kind: 'script', text: `PRAGMA busy_timeout = ${whenBusyMs}; BEGIN IMMEDIATE` })
        return await untilCommit(thread, work)
      } finally {
        endTurn()
      }
    },
    close() {
      closed ??= closeThread(thread, takeTurn)
      return closed
    },
  }
}

/** After the turns that were asked for before. */
async function closeThread(thread: Thread, takeTurn: () => Promise<() => void>): Promise<void> {
  const endTurn = await takeTurn()
  try {
    await thread.ask({ kind: 'close' })
  } finally {
    thread.end()
    endTurn()
  }
}

async function untilCommit<T>(thread: Thread, work: (sql: Sql, runScript: RunScript) => Promise<T>): Promise<T> {
  let ended = false
  const sql = sqlOver(async (text, values) => {
    // A statement that was not awaited would otherwise fall into somebody else's transaction.
    if (ended) throw new Error('a statement came after the end of its transaction')
    const answer = await thread.ask({ kind: 'run', text, values })
    return answer.kind === 'rows' ? answer.rows : []
  })
  try {
    const result = await work(sql, async (text) => void (await thread.ask({ kind: 'script', text })))
    ended = true
    await thread.ask({ kind: 'script', text: 'COMMIT' })
    return result
  } catch (thrown) {
    ended = true
    // SQLite has ended the transaction by itself after some errors; what counts is the first one.
    await thread.ask({ kind: 'script', text: 'ROLLBACK' }).catch(() => {})
    throw thrown
  }
}

/** Answers with the end of the turn; turns come in the order of asking. */
function createTurns(): () => Promise<() => void> {
  let last = Promise.resolve()
  return async () => {
    const before = last
    let end = () => {}
    last = new Promise((resolve) => {
      end = resolve
    })
    await before
    return end
  }
}

interface Thread {
  ask(question: WriterQuestion): Promise<WriterAnswer>
  end(): void
}

interface Waiting {
  resolve(answer: WriterAnswer): void
  reject(thrown: unknown): void
}

function startThread(): Thread {
  const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url))
  const waiting: Waiting[] = []
  let gone: SQL.SQLiteError | undefined

  const settleOne = (settle: (one: Waiting) => void) => {
    const one = waiting.shift()
    // An idle thread must not keep the process alive, a running commit must.
    if (waiting.length === 0) worker.unref()
    if (one) settle(one)
  }
  const lose = (message: string) => {
    gone ??= new SQL.SQLiteError(message, { code: 'ERR_SQLITE_CONNECTION_CLOSED', errno: 0 })
    while (waiting.length > 0) settleOne((one) => one.reject(gone))
  }
  const receive = (answer: WriterAnswer) =>
    settleOne((one) => {
      if (answer.kind === 'fault') one.reject(new SQL.SQLiteError(answer.fault.message, answer.fault))
      else one.resolve(answer)
    })
  worker.onmessage = ({ data }: MessageEvent<WriterAnswer>) => {
    // No message is delivered while a handler runs, and `expect(…).rejects` in Bun 1.4 waits inside of whatever called
    // it; so what follows a statement runs outside the handler. Batches are the hot path, and what follows a refused one only asks again.
    if (data.kind === 'batch') receive(data)
    else setImmediate(receive, data)
  }
  worker.onerror = ({ message }) => lose(`the writing thread failed: ${message}`)
  worker.addEventListener('close', () => lose('the writing thread ended'))

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        if (gone) return reject(gone)
        waiting.push({ resolve, reject })
        worker.ref()
        worker.postMessage(question)
      }),
    end() {
      lose('the database is closed')
      worker.terminate()
    },
  }
}
