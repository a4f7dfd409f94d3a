// Batches and their lines. A batch is run by one process at a time, which claims it for some seconds and says again and again
// that it lives; each claim raises the epoch. What decides who answers a line is its row: only one answer can be kept for it,
// and only an answer that was kept is charged. So a line is charged once, also if two processes take themselves for the owner.

import { gunzipSync, gzipSync } from 'node:zlib'
import type { BatchStatus } from '../kernel/batch.ts'
import type { BatchId, FileId, KeyId, PersonId, ProjectId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { amount, count, type ItemIn, json, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'
import { type Claim, insertWholeHold, type WholeHold } from './batch-jobs.ts'
import type { Page, PageQuery } from './management.ts'
import { type Binding, type KeyRing, openBytes, rewrapKey, sealBytes, type WrappingKey } from './sealing.ts'

export type BatchSurface = 'chat' | 'messages'
export type BatchOutcome = 'completed' | 'failed' | 'cancelled' | 'expired' | 'key_refused'
export type LineOutcome = 'succeeded' | 'errored' | 'cancelled' | 'expired'

/** What is wrong with a line, or why a batch was stopped; `line` from 1. */
export interface BatchError {
  readonly code: string
  readonly message: string
  readonly line: number | null
  readonly param: string | null
}

export const batchRow = rowFormat({
  id: text<BatchId>(),
  workspaceId: text<WorkspaceId>(),
  projectId: text<ProjectId>(),
  keyId: text<KeyId>(),
  surface: text<BatchSurface>(),
  endpoint: text(),
  inputFileId: text<FileId>(),
  metadata: optional(json<Readonly<Record<string, string>>>()),
  state: text<'running' | 'ending' | 'ended'>(),
  /** undefined = it runs. */
  outcome: optional(text<BatchOutcome>()),
  errors: optional(json<readonly BatchError[]>()),
  /** Why no line is started at the moment. */
  waitsFor: optional(text<'balance' | 'limit' | 'provider'>()),
  total: count,
  succeeded: count,
  errored: count,
  cancelled: count,
  expired: count,
  cost: amount,
  estimate: amount,
  inputTokens: count,
  outputTokens: count,
  createdAt: time,
  expiresAt: time,
  cancelledAt: optional(time),
  endingAt: optional(time),
  endedAt: optional(time),
  eraseAt: optional(time),
  outputDays: count,
  outputFileId: optional(text<FileId>()),
  errorFileId: optional(text<FileId>()),
  /** The provider in whose batches its lines run; undefined = they are called one by one. */
  provider: optional(text()),
})

export type Batch = ItemIn<typeof batchRow>

/** OpenAI's `validating` is not among them: every line is checked before the answer to the call that creates a batch. */
export function statusOf({ state, outcome = 'completed', cancelledAt }: Batch): BatchStatus {
  if (state === 'running') return cancelledAt === undefined ? 'in_progress' : 'cancelling'
  const shown = outcome === 'key_refused' ? 'cancelled' : outcome
  if (state === 'ended') return shown
  return shown === 'cancelled' ? 'cancelling' : 'finalizing'
}

/** The answer to a line, as it is stored. */
export interface LineResult {
  readonly customId: string
  /** The HTTP status; undefined = it was not run. */
  readonly status?: number | undefined
  /** JSON: the answer, or the error in the words of the surface. */
  readonly body: string
}

/** A line that is to be written. */
export interface NewLine {
  readonly line: number
  readonly outcome: LineOutcome
  readonly requestId: RequestId | undefined
  readonly result: LineResult
  /** Of the line as callers read it. */
  readonly bytes: number
}

export interface LineRow {
  readonly line: number
  readonly outcome: LineOutcome
  readonly requestId: RequestId | undefined
  readonly result: LineResult
}

export interface LineWrites {
  readonly kept: readonly NewLine[]
  readonly charged: readonly (LineFigures & { readonly line: number })[]
  readonly uncharged: readonly NewLine[]
}

/** What lines that are final add to their batch. */
export interface LineFigures {
  readonly outcome: LineOutcome
  readonly cost: Nano
  readonly inputTokens: number
  readonly outputTokens: number
}

const envelopeRow = rowFormat({ ciphertext: text(), wrappedKey: text(), keyVersion: text() })
/** A third of the time of the default level, for a few percent in size. */
const level = 1

export interface BatchStoreOptions {
  readonly database: Database
  readonly keys: KeyRing
}

export type BatchStore = ReturnType<typeof createBatchStore>

export function createBatchStore({ database, keys }: BatchStoreOptions) {
  const find = async (workspaceId: WorkspaceId, id: string): Promise<Batch | undefined> =>
    batchRow.first(await database.sql`SELECT * FROM batches WHERE id = ${id} AND workspace_id = ${workspaceId}`)

  const lineRow = (batchId: BatchId, { line, outcome, requestId, result, bytes }: NewLine, state: 'kept' | 'done') => {
    const sealed = sealBytes(gzipSync(JSON.stringify(result), { level }), bindingOf(batchId, line), keys.current)
    const facts = { line: BigInt(line), state, outcome, request_id: requestId ?? null, bytes: BigInt(bytes) }
    return { batch_id: batchId, ...facts, ...envelopeRow.write(sealed) }
  }

  return {
    find,
    /** Of any workspace. */
    async findAny(id: BatchId): Promise<Batch | undefined> {
      return batchRow.first(await database.sql`SELECT * FROM batches WHERE id = ${id}`)
    },
    /** `whole`: what its provider is to run. */
    async create(batch: Batch, whole?: Pick<WholeHold, 'model' | 'shares'>): Promise<void> {
      await database.transaction(async (sql) => {
        await sql`INSERT INTO batches ${sql([batchRow.write(batch)])}`
        if (whole) await insertWholeHold(sql, batch.id, whole)
      })
    },
    /** Newest first; `after` and `before` are ids of batches. */
    async list(
      workspaceId: WorkspaceId,
      surface: BatchSurface,
      { after, before, limit }: { after?: string | undefined; before?: string | undefined; limit: number },
    ): Promise<readonly Batch[]> {
      const { sql } = database
      const most = BigInt(limit)
      if (before === undefined)
        return batchRow.all(
          await sql`SELECT * FROM batches WHERE workspace_id = ${workspaceId}
          AND surface = ${surface} AND id < ${after ?? 'z'} ORDER BY id DESC LIMIT ${most}`,
        )
      const rows = await sql`SELECT * FROM batches WHERE workspace_id = ${workspaceId} AND surface = ${surface}
        AND id > ${before} ORDER BY id LIMIT ${most}`
      return batchRow.all(rows).reverse()
    },
    /** Of any workspace, newest first. */
    async page({ workspaceId, ownerId, state, limit, cursor = '' }: BatchQuery): Promise<Page<Batch>> {
      const [workspace, owner] = [workspaceId ?? '', ownerId ?? '']
      const [, at = '9'.repeat(15), id = 'z'] = /^(\d{1,15})\.(\w{1,64})$/.exec(cursor) ?? []
      const ended = state === undefined ? 2n : state === 'ended' ? 1n : 0n
      const rows = await database.sql`SELECT b.* FROM batches b LEFT JOIN api_keys k ON k.id = b.key_id
        WHERE ${workspace} IN ('', b.workspace_id) AND ${owner} IN ('', k.owner_id)
          AND ${ended} IN (2, CASE WHEN b.state = 'ended' THEN 1 ELSE 0 END) AND (b.created_at, b.id) < (${BigInt(at)}, ${id})
        ORDER BY b.created_at DESC, b.id DESC LIMIT ${BigInt(limit + 1)}`
      const items = batchRow.all(rows.slice(0, limit))
      const last = rows.length > limit ? items.at(-1) : undefined
      return { items, nextCursor: last && `${timeToSql(last.createdAt)}.${last.id}` }
    },
    /** No further line is started. Does nothing to one that is stopped already. */
    async cancel(workspaceId: WorkspaceId, id: string, now: number): Promise<void> {
      await database.transaction(
        (sql) => sql`UPDATE batches SET outcome = 'cancelled', cancelled_at = ${timeToSql(now)}
          WHERE id = ${id} AND workspace_id = ${workspaceId} AND outcome IS NULL`,
      )
    },
    /** Of one that has ended. */
    async remove(batchId: BatchId): Promise<void> {
      while ((await database.transaction((sql) => removeLines(sql, batchId))) === linesMax);
      await database.transaction(async (sql) => {
        await sql`DELETE FROM batch_files WHERE batch_id = ${batchId}`
        await sql`DELETE FROM batches WHERE id = ${batchId}`
      })
    },
    /** Whether a batch that has not ended reads the file. */
    async isInUse(fileId: string): Promise<boolean> {
      const rows =
        await database.sql`SELECT 1 FROM batches WHERE input_file_id = ${fileId} AND state <> 'ended' LIMIT 1`
      return rows.length > 0
    },

    // ── Running ──

    /** Those that nobody runs, oldest first. `alone`: no other process uses the database. */
    async unclaimed(
      owner: string,
      { now, limit, alone }: { readonly now: number; readonly limit: number; readonly alone: boolean },
    ): Promise<readonly BatchId[]> {
      const rows = await database.sql<{ id: BatchId }>`SELECT id FROM batches WHERE state <> 'ended'
        AND (owner IS NULL OR claimed_until < ${timeToSql(now)} OR (owner <> ${owner} AND ${alone ? 1n : 0n} = 1))
        ORDER BY id LIMIT ${BigInt(limit)}`
      return rows.map(({ id }) => id)
    },
    /** undefined = another process was faster. */
    async claim(
      id: BatchId,
      owner: string,
      { now, until, alone }: { readonly now: number; readonly until: number; readonly alone: boolean },
    ): Promise<{ readonly batch: Batch; readonly epoch: bigint } | undefined> {
      const rows = await database.transaction(
        (sql) => sql<{ epoch: bigint }>`UPDATE batches SET owner = ${owner}, epoch = epoch + 1,
            claimed_until = ${timeToSql(until)}
          WHERE id = ${id} AND state <> 'ended' AND (owner IS NULL OR claimed_until < ${timeToSql(now)}
            OR (owner <> ${owner} AND ${alone ? 1n : 0n} = 1)) RETURNING *`,
      )
      const batch = batchRow.first(rows)
      return batch && { batch, epoch: rows[0]?.epoch ?? 0n }
    },
    /** Says that its process lives. undefined = it is no longer ours, or has been erased. */
    async renew(
      { id, epoch }: Claim,
      { until, waitsFor }: { readonly until: number; readonly waitsFor: Batch['waitsFor'] },
    ): Promise<Batch | undefined> {
      const rows = await database.transaction(
        (sql) => sql`UPDATE batches SET claimed_until = ${timeToSql(until)}, waits_for = ${waitsFor ?? null}
          WHERE id = ${id} AND epoch = ${epoch} RETURNING *`,
      )
      return batchRow.first(rows)
    },
    /** For another process to go on with it. */
    async giveUp({ id, epoch }: Claim): Promise<void> {
      await database.transaction(
        (sql) => sql`UPDATE batches SET owner = NULL WHERE id = ${id} AND epoch = ${epoch} AND state <> 'ended'`,
      )
    },
    /** The lines that have a row, and those whose charge is not certain. */
    async answered(batchId: BatchId): Promise<{ readonly lines: Set<number>; readonly kept: readonly KeptLine[] }> {
      const rows = await database.sql<{ line: bigint }>`SELECT line FROM batch_lines WHERE batch_id = ${batchId}`
      const kept = await database.sql<{ line: bigint; request_id: RequestId }>`SELECT line, request_id FROM batch_lines
        WHERE batch_id = ${batchId} AND state = 'kept' ORDER BY line`
      return {
        lines: new Set(rows.map(({ line }) => Number(line))),
        kept: kept.map(({ line, request_id }) => ({ line: Number(line), requestId: request_id })),
      }
    },
    /**
     * Keeps answers, and makes lines final: those that were kept before and are charged now, and those that cost nothing. Each
     * counts once. Returns which answers were kept: for the others there is one already.
     */
    async write(batchId: BatchId, { kept, charged, uncharged }: LineWrites): Promise<ReadonlySet<number>> {
      return await database.transaction(async (sql) => {
        const sum = new FigureSum()
        // Sent together: charges wait on the embedded engine while each statement goes to the thread that writes and back.
        const [inserted, ...changed] = await Promise.all([
          insertLines(sql, [
            ...kept.map((line) => lineRow(batchId, line, 'kept')),
            ...uncharged.map((line) => lineRow(batchId, line, 'done')),
          ]),
          ...charged.map(
            ({ line }) => sql`UPDATE batch_lines SET state = 'done'
              WHERE batch_id = ${batchId} AND line = ${BigInt(line)} AND state = 'kept' RETURNING 1 AS changed`,
          ),
        ])
        for (const [at, figures] of charged.entries()) if (changed[at]?.length === 1) sum.add(figures)
        for (const { line, outcome } of uncharged) {
          if (inserted.has(line)) sum.add({ outcome, cost: 0n as Nano, inputTokens: 0, outputTokens: 0 })
        }
        if (charged.length + uncharged.length > 0) await sum.write(sql, batchId)
        return inserted
      }, 'beside_charges')
    },
    /** The answer was not charged: the line has not run. */
    async forget(batchId: BatchId, { line, requestId }: KeptLine): Promise<void> {
      await database.transaction(
        (sql) => sql`DELETE FROM batch_lines WHERE batch_id = ${batchId} AND line = ${BigInt(line)}
          AND request_id = ${requestId} AND state = 'kept'`,
      )
    },
    /** Whether the request can still be charged by a process. The embedded engine has no such rows. */
    async isHeld(requestId: RequestId): Promise<boolean> {
      const rows = await database.sql`SELECT 1 FROM holds WHERE request_id = ${requestId} AND state = 'open'`
      return rows.length > 0
    },
    /** undefined = the request was not charged. */
    async chargeOf(requestId: RequestId): Promise<Omit<LineFigures, 'outcome'> | undefined> {
      const rows = await database.sql<{ charge: Nano; input_tokens: bigint | null; output_tokens: bigint | null }>`
        SELECT charge, input_tokens, output_tokens FROM requests WHERE id = ${requestId} AND charge IS NOT NULL`
      const [row] = rows
      const { charge: cost, input_tokens: input, output_tokens: output } = row ?? {}
      if (cost === undefined) return undefined
      return { cost, inputTokens: Number(input ?? 0n), outputTokens: Number(output ?? 0n) }
    },
    /** No further line is started from now on. Keeps the reason that was there first. */
    async beginEnd({ id, epoch }: Claim, outcome: BatchOutcome, errors: readonly BatchError[], now: number) {
      const found = errors.length > 0 ? JSON.stringify(errors) : null
      const rows = await database.transaction(
        (sql) => sql`UPDATE batches SET state = 'ending', ending_at = ${timeToSql(now)}, waits_for = NULL,
            outcome = COALESCE(outcome, ${outcome}), errors = COALESCE(errors, ${found})
          WHERE id = ${id} AND epoch = ${epoch} AND state = 'running' RETURNING *`,
      )
      return batchRow.first(rows)
    },
    /** Bytes of the results by kind, for the files. */
    async sizes(batchId: BatchId): Promise<{ readonly answers: number; readonly errors: number }> {
      const rows = await database.sql<{ outcome: LineOutcome; bytes: bigint }>`SELECT outcome,
        CAST(SUM(bytes) AS BIGINT) AS bytes FROM batch_lines WHERE batch_id = ${batchId} GROUP BY outcome`
      const sizeOf = (isAnswer: boolean) =>
        rows.reduce((sum, row) => ((row.outcome === 'succeeded') === isAnswer ? sum + Number(row.bytes) : sum), 0)
      return { answers: sizeOf(true), errors: sizeOf(false) }
    },
    /** The last step, with whatever else belongs in its commit. */
    async end({ id, epoch }: Claim, end: BatchEnd, also: (sql: Sql, batch: Batch) => Promise<void>): Promise<boolean> {
      return await database.transaction(async (sql) => {
        const rows = await sql`UPDATE batches SET state = 'ended', ended_at = ${timeToSql(end.now)},
            erase_at = ${timeToSql(end.eraseAt)}, output_file_id = ${end.outputFileId ?? null},
            error_file_id = ${end.errorFileId ?? null}, owner = NULL
          WHERE id = ${id} AND epoch = ${epoch} AND state = 'ending' RETURNING *`
        const batch = batchRow.first(rows)
        if (batch) await also(sql, batch)
        return batch !== undefined
      })
    },

    // ── Results ──

    /** In the order of the input. `isAnswer`: only answers, or only the others. */
    async *results(batchId: BatchId, isAnswer?: boolean): AsyncGenerator<LineRow> {
      for (let after = 0n; ; ) {
        const rows =
          await database.sql<StoredLine>`SELECT line, outcome, request_id, ciphertext, wrapped_key, key_version
          FROM batch_lines WHERE batch_id = ${batchId} AND line > ${after} AND state = 'done'
          ORDER BY line LIMIT ${BigInt(readMax)}`
        for (const row of rows) {
          after = row.line
          if (isAnswer !== undefined && (row.outcome === 'succeeded') !== isAnswer) continue
          const plain = openBytes(envelopeRow.read(row), bindingOf(batchId, row.line), keys)
          if (typeof plain === 'string') throw new Error(`line ${row.line} of ${batchId} cannot be decrypted: ${plain}`)
          const result = JSON.parse(gunzipSync(plain).toString()) as LineResult
          const { outcome, request_id: requestId } = row
          yield { line: Number(row.line), outcome, requestId: requestId ?? undefined, result }
        }
        if (rows.length < readMax) return
      }
    },
    /** Takes the results of one kind away; the counts stay. */
    async removeResults(batchId: BatchId, isAnswer: boolean): Promise<void> {
      while ((await database.transaction((sql) => removeLines(sql, batchId, isAnswer))) === linesMax);
    },
  }
}

interface StoredLine {
  readonly line: bigint
  readonly outcome: LineOutcome
  readonly request_id: RequestId | null
}

export interface BatchQuery extends PageQuery {
  readonly workspaceId?: WorkspaceId | undefined
  /** Only those that were created with keys of this person. */
  readonly ownerId?: PersonId | undefined
  readonly state?: 'running' | 'ended' | undefined
}

export interface KeptLine {
  readonly line: number
  readonly requestId: RequestId
}

export interface BatchEnd {
  readonly now: number
  readonly eraseAt: number
  readonly outputFileId: FileId | undefined
  readonly errorFileId: FileId | undefined
}

class FigureSum {
  #succeeded = 0n
  #errored = 0n
  #cancelled = 0n
  #expired = 0n
  #cost = 0n
  #inputTokens = 0n
  #outputTokens = 0n

  add({ outcome, cost, inputTokens, outputTokens }: LineFigures): void {
    if (outcome === 'succeeded') this.#succeeded++
    else if (outcome === 'errored') this.#errored++
    else if (outcome === 'cancelled') this.#cancelled++
    else this.#expired++
    this.#cost += cost
    this.#inputTokens += BigInt(inputTokens)
    this.#outputTokens += BigInt(outputTokens)
  }

  async write(sql: Sql, batchId: BatchId): Promise<void> {
    await sql`UPDATE batches SET succeeded = succeeded + ${this.#succeeded}, errored = errored + ${this.#errored},
      cancelled = cancelled + ${this.#cancelled}, expired = expired + ${this.#expired}, cost = cost + ${this.#cost},
      input_tokens = input_tokens + ${this.#inputTokens}, output_tokens = output_tokens + ${this.#outputTokens}
      WHERE id = ${batchId}`
  }
}

/** Rows read at a time: a millisecond or two of work. */
const readMax = 50
/** Rows removed in one transaction: charges wait behind it on the embedded engine. */
const linesMax = 200

/** The lines that were inserted; the others have a row already. */
async function insertLines(
  sql: Sql,
  rows: readonly Readonly<Record<string, string | bigint | null>>[],
): Promise<ReadonlySet<number>> {
  if (rows.length === 0) return new Set()
  const inserted = await sql<{ line: bigint }>`INSERT INTO batch_lines ${sql(rows)}
    ON CONFLICT (batch_id, line) DO NOTHING RETURNING line`
  return new Set(inserted.map(({ line }) => Number(line)))
}

async function removeLines(sql: Sql, batchId: string, isAnswer?: boolean): Promise<number> {
  const wanted = isAnswer === undefined ? 2n : isAnswer ? 1n : 0n
  const rows = await sql`DELETE FROM batch_lines WHERE (batch_id, line) IN (SELECT batch_id, line FROM batch_lines
    WHERE batch_id = ${batchId} AND ${wanted} IN (2, CASE WHEN outcome = 'succeeded' THEN 1 ELSE 0 END)
    LIMIT ${BigInt(linesMax)}) RETURNING 1 AS removed`
  return rows.length
}

/** A row copied to another batch or line does not open. */
function bindingOf(batchId: string, line: number | bigint): Binding {
  return (purpose) => JSON.stringify(['tollgate-batch-line-1', purpose, batchId, Number(line)])
}

/** Deletes all batches and their files of a workspace, inside the caller's transaction. Returns how many batches. */
export async function deleteBatches(sql: Sql, workspaceId: WorkspaceId): Promise<number> {
  await sql`DELETE FROM batch_files WHERE workspace_id = ${workspaceId}`
  const rows = await sql`DELETE FROM batches WHERE workspace_id = ${workspaceId} RETURNING 1 AS removed`
  return rows.length
}

const rewrapMax = 50

/** Moves the keys of lines to another master secret. Rows that no secret opens are deleted. */
export async function rewrapLines(database: Database, keys: { from: WrappingKey; to: WrappingKey }): Promise<void> {
  const { from, to } = keys
  for (;;) {
    const rows = await database.sql<{ batch_id: string; line: bigint; wrapped_key: string }>`
      SELECT batch_id, line, wrapped_key FROM batch_lines WHERE key_version = ${from.version} LIMIT ${BigInt(rewrapMax)}`
    if (rows.length === 0) return
    await database.transaction(async (sql) => {
      for (const { batch_id, line, wrapped_key: wrapped } of rows) {
        const moved = rewrapKey(wrapped, bindingOf(batch_id, line), keys)
        if (moved === 'altered') await sql`DELETE FROM batch_lines WHERE batch_id = ${batch_id} AND line = ${line}`
        else {
          await sql`UPDATE batch_lines SET wrapped_key = ${moved}, key_version = ${to.version}
            WHERE batch_id = ${batch_id} AND line = ${line}`
        }
      }
    })
  }
}
