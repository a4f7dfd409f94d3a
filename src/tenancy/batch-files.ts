// Files of batches: uploads of callers, in parts that are compressed and encrypted as stored responses are, and the results of
// batches as files, whose lines are in `batch_lines`. A caller who asks for a file of another workspace, or for one that has
// expired, learns no more than that there is none.

import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { Clock } from '../kernel/clock.ts'
import { createId, type FileId, type WorkspaceId } from '../kernel/ids.ts'
import { count, flag, type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, textToSql, timeToSql } from '../store/sql.ts'
import { type Binding, type KeyRing, openBytes, rewrapKey, sealBytes, type WrappingKey } from './sealing.ts'

export const batchFileRow = rowFormat({
  id: text<FileId>(),
  workspaceId: text<WorkspaceId>(),
  /** `requests`: sent with the call that created a batch; callers do not see it. */
  purpose: text<'batch' | 'batch_output' | 'requests'>(),
  name: text(),
  bytes: count,
  /** Of results. */
  batchId: optional(text()),
  hasAnswers: optional(flag),
  createdAt: time,
  /** 0 = not complete yet. */
  expiresAt: time,
})

export type BatchFile = ItemIn<typeof batchFileRow>

export interface NewFile {
  readonly purpose: 'batch' | 'requests'
  readonly name: string
  readonly days: number
}

export interface FilePage {
  readonly after?: string | undefined
  readonly limit: number
  readonly purpose?: string | undefined
  readonly oldestFirst?: boolean | undefined
}

/** Of a part, before it is compressed. Reading or writing one takes the event loop less than a millisecond. */
const partBytes = 128 * 1024
export const dayMs = 24 * 60 * 60 * 1000
/** A third of the time of the default level, for a few percent in size. */
const level = 1

const envelopeRow = rowFormat({ ciphertext: text(), wrappedKey: text(), keyVersion: text() })

export interface BatchFilesOptions {
  readonly database: Database
  readonly clock: Clock
  readonly keys: KeyRing
}

export type BatchFiles = ReturnType<typeof createBatchFiles>

export function createBatchFiles({ database, clock, keys }: BatchFilesOptions) {
  const find = async (workspaceId: WorkspaceId, id: string): Promise<BatchFile | undefined> => {
    const rows = await database.sql`SELECT * FROM batch_files
      WHERE id = ${id} AND workspace_id = ${workspaceId} AND expires_at > ${timeToSql(clock.now())}`
    return batchFileRow.first(rows)
  }

  async function writePart(file: BatchFile, part: number, plain: Uint8Array): Promise<void> {
    const packed = await promisify(gzip)(plain, { level })
    const sealed = sealBytes(packed, bindingOf(file.workspaceId, file.id, part), keys.current)
    const row = { file_id: file.id, part: BigInt(part), ...envelopeRow.write(sealed) }
    await database.transaction((sql) => sql`INSERT INTO batch_file_parts ${sql([row])}`)
  }

  async function drop({ id }: BatchFile): Promise<void> {
    for (;;) {
      const rows = await database.transaction((sql) => removeParts(sql, id))
      if (rows < partsMax) break
    }
    await database.transaction((sql) => sql`DELETE FROM batch_files WHERE id = ${id}`)
  }

  return {
    find,
    /** Stores what `pieces` yields. If they fail, nothing stays. */
    async store(workspaceId: WorkspaceId, input: NewFile, pieces: AsyncIterable<Uint8Array>): Promise<BatchFile> {
      const createdAt = clock.now()
      const { purpose, name } = input
      const file: BatchFile = {
        ...{ id: createId('file'), workspaceId, purpose, name: textToSql(name) ?? '', bytes: 0 },
        ...{ batchId: undefined, hasAnswers: undefined, createdAt, expiresAt: 0 },
      }
      await database.transaction((sql) => sql`INSERT INTO batch_files ${sql([batchFileRow.write(file)])}`)
      try {
        let part = 0
        let bytes = 0
        for await (const piece of inParts(pieces)) {
          await writePart(file, part++, piece)
          bytes += piece.length
        }
        const expiresAt = createdAt + input.days * dayMs
        await database.transaction(
          (sql) => sql`UPDATE batch_files SET bytes = ${BigInt(bytes)}, expires_at = ${timeToSql(expiresAt)}
            WHERE id = ${file.id}`,
        )
        return { ...file, bytes, expiresAt }
      } catch (error) {
        // The next cleaning removes what cannot be removed now.
        await drop(file).catch(() => {})
        throw error
      }
    },
    /** Of an upload. Part by part, so that a slow reader does not keep a transaction open. */
    async *read({ id, workspaceId }: Pick<BatchFile, 'id' | 'workspaceId'>): AsyncGenerator<Buffer> {
      for (let part = 0; ; part++) {
        const rows = await database.sql`SELECT ciphertext, wrapped_key, key_version FROM batch_file_parts
          WHERE file_id = ${id} AND part = ${BigInt(part)}`
        const sealed = envelopeRow.first(rows)
        if (!sealed) return
        const packed = openBytes(sealed, bindingOf(workspaceId, id, part), keys)
        if (typeof packed === 'string') throw new Error(`part ${part} of file ${id} cannot be decrypted: ${packed}`)
        yield await promisify(gunzip)(packed)
      }
    },
    async list(
      workspaceId: WorkspaceId,
      { after, limit, purpose, oldestFirst }: FilePage,
    ): Promise<readonly BatchFile[]> {
      const { sql } = database
      const now = timeToSql(clock.now())
      const wanted = purpose ?? ''
      const rows = oldestFirst
        ? await sql`SELECT * FROM batch_files WHERE workspace_id = ${workspaceId} AND id > ${after ?? ''}
            AND expires_at > ${now} AND purpose <> 'requests' AND ${wanted} IN ('', purpose)
            ORDER BY id LIMIT ${BigInt(limit)}`
        : await sql`SELECT * FROM batch_files WHERE workspace_id = ${workspaceId} AND id < ${after ?? 'file_z'}
            AND expires_at > ${now} AND purpose <> 'requests' AND ${wanted} IN ('', purpose)
            ORDER BY id DESC LIMIT ${BigInt(limit)}`
      return batchFileRow.all(rows)
    },
    drop,
  }
}

export interface ResultFile {
  readonly id: FileId
  readonly hasAnswers: boolean
  readonly bytes: number
  readonly end: { readonly now: number; readonly eraseAt: number }
}

/** In the commit that ends the batch. */
export async function insertResultFile(
  sql: Sql,
  { id: batchId, workspaceId }: { readonly id: string; readonly workspaceId: WorkspaceId },
  { id, hasAnswers, bytes, end }: ResultFile,
): Promise<void> {
  const name = `${batchId}_${hasAnswers ? 'output' : 'error'}.jsonl`
  const times = { createdAt: end.now, expiresAt: end.eraseAt }
  const file: BatchFile = { id, workspaceId, purpose: 'batch_output', name, bytes, batchId, hasAnswers, ...times }
  await sql`INSERT INTO batch_files ${sql([batchFileRow.write(file)])}`
}

/** The input of a batch that has ended, unless another one still reads it. Its parts are removed by the next cleaning. */
export async function expireInput(sql: Sql, fileId: FileId, now: number): Promise<void> {
  await sql`UPDATE batch_files SET expires_at = ${timeToSql(now)} WHERE id = ${fileId} AND expires_at > ${timeToSql(now)}
    AND NOT EXISTS (SELECT 1 FROM batches WHERE input_file_id = ${fileId} AND state <> 'ended')`
}

/** A row copied to another workspace, file or place does not open. */
function bindingOf(workspaceId: string, id: string, part: number | bigint): Binding {
  return (purpose) => JSON.stringify(['tollgate-batch-file-1', purpose, workspaceId, id, Number(part)])
}

async function* inParts(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const taken = piece.subarray(at, at + partBytes - bytes)
      // The piece may be memory that its sender uses again.
      waiting.push(taken.slice())
      bytes += taken.length
      at += taken.length
      if (bytes < partBytes) continue
      yield Buffer.concat(waiting)
      waiting = []
      bytes = 0
    }
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

const partsMax = 20

async function removeParts(sql: Sql, id: string): Promise<number> {
  const rows =
    await sql`DELETE FROM batch_file_parts WHERE (file_id, part) IN (SELECT file_id, part FROM batch_file_parts
    WHERE file_id = ${id} ORDER BY part LIMIT ${BigInt(partsMax)}) RETURNING 1 AS removed`
  return rows.length
}

const portion = 20

/** Moves the keys of parts to another master secret. Rows that no secret opens are deleted. */
export async function rewrapFileParts(database: Database, keys: { from: WrappingKey; to: WrappingKey }): Promise<void> {
  const { from, to } = keys
  for (;;) {
    const rows = await database.sql<{ workspace_id: string; file_id: string; part: bigint; wrapped_key: string }>`
      SELECT f.workspace_id, p.file_id, p.part, p.wrapped_key FROM batch_file_parts p
      JOIN batch_files f ON f.id = p.file_id WHERE p.key_version = ${from.version} LIMIT ${BigInt(portion)}`
    if (rows.length === 0) return
    await database.transaction(async (sql) => {
      for (const { workspace_id, file_id, part, wrapped_key: wrapped } of rows) {
        const moved = rewrapKey(wrapped, bindingOf(workspace_id, file_id, part), keys)
        if (moved === 'altered') {
          await sql`DELETE FROM batch_file_parts WHERE file_id = ${file_id} AND part = ${part}`
        } else {
          await sql`UPDATE batch_file_parts SET wrapped_key = ${moved}, key_version = ${to.version}
            WHERE file_id = ${file_id} AND part = ${part}`
        }
      }
    })
  }
}
