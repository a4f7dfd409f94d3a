// What is held for batches that run at their provider, and their jobs: the batches there. Who changes them has claimed the batch:
// each change names the epoch of the claim.

import type { BatchId, JobId, RequestId, WorkspaceId } from '../kernel/ids.ts'
import type { Nano } from '../kernel/money.ts'
import { type ItemIn, optional, rowFormat, text, time } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { type Sql, timeToSql } from '../store/sql.ts'

/** The batch of a process, until another one claims it. */
export interface Claim {
  readonly id: BatchId
  readonly epoch: bigint
}

/** The amount for each line, by its number. */
export type Shares = ReadonlyMap<number, Nano>

export interface WholeHold {
  /** Of all lines. */
  readonly model: string
  /** The standing hold; undefined = none was placed yet. */
  readonly holdId: RequestId | undefined
  readonly shares: Shares
}

export const batchJobRow = rowFormat({
  id: text<JobId>(),
  batchId: text<BatchId>(),
  provider: text(),
  dialect: text(),
  /** `1-500,502` */
  lines: text(),
  createdAt: time,
  /** undefined = it is not known whether the provider has it. */
  upstreamId: optional(text()),
  endedAt: optional(time),
})

export type BatchJob = ItemIn<typeof batchJobRow>

export type BatchJobStore = ReturnType<typeof createBatchJobStore>

export function createBatchJobStore(database: Database) {
  /** False = the batch is no longer ours. */
  const asOwner = ({ id, epoch }: Claim, change: (sql: Sql) => Promise<unknown>): Promise<boolean> =>
    database.transaction(async (sql) => {
      const owned =
        await sql`UPDATE batches SET epoch = epoch WHERE id = ${id} AND epoch = ${epoch} RETURNING 1 AS owned`
      if (owned.length === 1) await change(sql)
      return owned.length === 1
    })
  return {
    async wholeHold(batchId: BatchId): Promise<WholeHold | undefined> {
      const [row] =
        await database.sql<HoldRow>`SELECT model, hold_id, shares FROM batch_holds WHERE batch_id = ${batchId}`
      return row && { model: row.model, holdId: row.hold_id ?? undefined, shares: readShares(row.shares) }
    },
    /** Before it is placed, so that none is forgotten. */
    nameHold: (claim: Claim, holdId: RequestId) =>
      asOwner(claim, (sql) => sql`UPDATE batch_holds SET hold_id = ${holdId} WHERE batch_id = ${claim.id}`),
    /** Of batches that have not ended, for a process that has lost its holds. */
    async holding(): Promise<
      readonly { readonly id: BatchId; readonly epoch: bigint; readonly workspaceId: WorkspaceId }[]
    > {
      const rows = await database.sql<{ id: BatchId; epoch: bigint; workspace_id: WorkspaceId }>`
        SELECT b.id, b.epoch, b.workspace_id FROM batches b JOIN batch_holds h ON h.batch_id = b.id
        WHERE b.state = 'running' AND h.hold_id IS NOT NULL ORDER BY b.id`
      return rows.map(({ id, epoch, workspace_id: workspaceId }) => ({ id, epoch, workspaceId }))
    },
    /** In the order in which they were created. */
    async list(batchId: BatchId): Promise<readonly BatchJob[]> {
      return batchJobRow.all(await database.sql`SELECT * FROM batch_jobs WHERE batch_id = ${batchId} ORDER BY id`)
    },
    intend: (claim: Claim, job: BatchJob) =>
      asOwner(claim, (sql) => sql`INSERT INTO batch_jobs ${sql([batchJobRow.write(job)])}`),
    submitted: (claim: Claim, id: JobId, upstreamId: string) =>
      asOwner(claim, (sql) => sql`UPDATE batch_jobs SET upstream_id = ${upstreamId} WHERE id = ${id}`),
    ended: (claim: Claim, id: JobId, now: number) =>
      asOwner(claim, (sql) => sql`UPDATE batch_jobs SET ended_at = ${timeToSql(now)} WHERE id = ${id}`),
    async knows(upstreamId: string): Promise<boolean> {
      const rows = await database.sql`SELECT 1 FROM batch_jobs WHERE upstream_id = ${upstreamId} LIMIT 1`
      return rows.length > 0
    },
  }
}

interface HoldRow {
  readonly model: string
  readonly hold_id: RequestId | null
  readonly shares: string
}

/** In the commit that creates the batch. */
export async function insertWholeHold(
  sql: Sql,
  batchId: BatchId,
  { model, shares }: Pick<WholeHold, 'model' | 'shares'>,
): Promise<void> {
  const written = [...shares].map(([line, amount]) => `${line}:${amount}`).join(',')
  await sql`INSERT INTO batch_holds (batch_id, model, shares) VALUES (${batchId}, ${model}, ${written})`
}

function readShares(text: string): Shares {
  return new Map(
    text.split(',').map((share) => {
      const [line, amount = '0'] = share.split(':')
      return [Number(line), BigInt(amount) as Nano]
    }),
  )
}

// ── Numbers of lines ──

/** Of ascending numbers. */
export function writeLines(lines: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const line of lines) {
    const last = ranges.at(-1)
    if (last && last[1] === line - 1) last[1] = line
    else ranges.push([line, line])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',')
}

export function readLineNumbers(text: string): ReadonlySet<number> {
  const lines = new Set<number>()
  for (const range of text.split(',')) {
    const [from, to = from] = range.split('-').map(Number)
    for (let line = from ?? 0; line <= (to ?? 0); line++) lines.add(line)
  }
  return lines
}
