// The thread that owns the one connection which writes to the embedded database, so that the event loop never waits for
// the disk. It does what it is told, one question after the other, and decides nothing.

import { Database, SQLiteError, type Statement } from 'bun:sqlite'
import { BatchDecoder } from './batch-message.ts'
import { BatchStatements } from './batch-statements.ts'
import { runApart, runTogether } from './sqlite-batch.ts'
import type { WriterAnswer, WriterFault, WriterQuestion } from './sqlite-protocol.ts'

declare const self: Worker

const sqliteBusy = 5
const openTriesMax = 100
const openPauseMs = 10

let connection: Database | undefined
/** The statements of transactions are prepared each time. */
const statements = new BatchStatements((text): Statement => opened().prepare(text))
const decoder = new BatchDecoder()

function opened(): Database {
  if (connection) return connection
  throw Object.assign(new Error('The database is closed'), { code: 'ERR_SQLITE_CONNECTION_CLOSED' })
}

/** Two that open a new file at once can meet while it is switched to the write-ahead log; SQLite does not wait there. */
function insist(work: () => void): void {
  for (let tries = 1; ; tries++) {
    try {
      return work()
    } catch (thrown) {
      if (tries === openTriesMax || !(thrown instanceof SQLiteError) || (thrown.errno & 0xff) !== sqliteBusy)
        throw thrown
      Bun.sleepSync(openPauseMs)
    }
  }
}

function answer(question: WriterQuestion): WriterAnswer {
  switch (question.kind) {
    case 'open':
      connection = new Database(question.file, { readwrite: true, safeIntegers: true })
      insist(() => connection?.run(question.settings))
      return { kind: 'done' }
    case 'run': {
      using once = opened().prepare(question.text)
      return { kind: 'rows', rows: once.all(...question.values) }
    }
    case 'script':
      opened().run(question.text)
      return { kind: 'done' }
    case 'batch':
      return { kind: 'batch', isCommitted: runTogether(statements, decoder.decode(question)) }
    case 'operations':
      return { kind: 'operations', refusals: runApart(statements, question.operations) }
    case 'close':
      statements.finalize()
      connection?.close()
      connection = undefined
      return { kind: 'done' }
  }
}

function toFault(thrown: unknown): WriterFault {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  if (thrown instanceof SQLiteError) return { message, code: thrown.code ?? 'SQLITE_ERROR', errno: thrown.errno }
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'ERR_SQLITE_WRITER'
  return { message, code, errno: 0 }
}

self.onmessage = ({ data }: MessageEvent<WriterQuestion>) => {
  try {
    self.postMessage(answer(data))
  } catch (thrown) {
    self.postMessage({ kind: 'fault', fault: toFault(thrown) } satisfies WriterAnswer)
  }
}
