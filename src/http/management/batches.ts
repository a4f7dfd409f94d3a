// Handlers of batches, for those who manage a workspace. Callers have the APIs in src/http/batches.

import { batchSchema } from '../../api/batches.ts'
import { fileTypeOf } from '../../api/fields.ts'
import { renderLine } from '../../batches/render-line.ts'
import { invalidRequest } from '../../kernel/failure.ts'
import type { BatchId } from '../../kernel/ids.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import { type Batch, statusOf } from '../../tenancy/batches.ts'
import { notFound } from '../../tenancy/management.ts'
import { answerAs, pageAnswer, pageOf } from './answers.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Handlers } from './route.ts'

export function batchHandlers({ batches, database }: RouteDependencies) {
  const get = async (id: BatchId): Promise<Batch> => {
    const batch = await batches.findAny(id)
    if (!batch) throw notFound('batch', id)
    return batch
  }
  return {
    async listBatches({ query, reach }) {
      const workspaceId = reach.workspaceId ?? query.workspace_id
      const { ownerId } = reach
      return pageAnswer(await batches.page({ ...pageOf(query), workspaceId, ownerId, state: query.state }), batchAnswer)
    },
    async getBatch({ id }) {
      return batchAnswer(await get(id))
    },
    async cancelBatch({ id, act }) {
      const batch = await get(id)
      if (batch.state === 'ended')
        throw invalidRequest(`The batch has ended (${statusOf(batch)}) and cannot be cancelled.`)
      const cancelled = await batches.cancel(batch)
      await database.transaction((sql) => appendAudit(sql, { ...act, action: 'batch.cancel', object: id }))
      return batchAnswer(cancelled)
    },
    exportBatch: {
      async download({ id }) {
        const batch = await get(id)
        return { type: fileTypeOf.jsonl, name: `${id}.jsonl`, pieces: resultLines(batches, batch) }
      },
    },
  } satisfies Partial<Handlers>
}

async function* resultLines({ results }: RouteDependencies['batches'], batch: Batch): AsyncGenerator<string> {
  for await (const row of results(batch.id)) yield renderLine(batch, row)
}

const batchFrom = answerAs(batchSchema)

export function batchAnswer(batch: Batch) {
  return batchFrom({ ...batch, status: statusOf(batch) })
}
