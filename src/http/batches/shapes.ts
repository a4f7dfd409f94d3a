// Batches and their files in the words of the API that they were created with.

import { isoTime } from '../../kernel/clock.ts'
import type { BatchFile } from '../../tenancy/batch-files.ts'
import { type Batch, statusOf } from '../../tenancy/batches.ts'

const seconds = (epochMs: number | undefined) => (epochMs === undefined ? null : Math.floor(epochMs / 1000))

export function openaiFile({ id, bytes, createdAt, expiresAt, name, purpose }: BatchFile): object {
  return {
    ...{ id, object: 'file', bytes, created_at: seconds(createdAt), expires_at: seconds(expiresAt) },
    ...{ filename: name, purpose, status: 'processed' },
  }
}

export function openaiBatch(batch: Batch): object {
  const { errors, createdAt, expiresAt, endingAt, endedAt, cancelledAt, inputTokens, outputTokens } = batch
  const status = statusOf(batch)
  const at = (wanted: string) => (status === wanted ? seconds(endedAt) : null)
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: errors ? { object: 'list', data: errors } : null,
    input_file_id: batch.inputFileId,
    completion_window: '24h',
    status,
    output_file_id: batch.outputFileId ?? null,
    error_file_id: batch.errorFileId ?? null,
    created_at: seconds(createdAt),
    in_progress_at: batch.outcome === 'failed' ? null : seconds(createdAt),
    expires_at: seconds(expiresAt),
    finalizing_at: seconds(endingAt),
    completed_at: at('completed'),
    failed_at: at('failed'),
    expired_at: at('expired'),
    cancelling_at: seconds(cancelledAt),
    cancelled_at: at('cancelled'),
    request_counts: { total: batch.total, completed: batch.succeeded, failed: batch.errored },
    usage: {
      ...{ input_tokens: inputTokens, input_tokens_details: { cached_tokens: 0 } },
      ...{ output_tokens: outputTokens, output_tokens_details: { reasoning_tokens: 0 } },
      total_tokens: inputTokens + outputTokens,
    },
    metadata: batch.metadata ?? null,
  }
}

/** Counts are 0 until the end, but for those that are processed. */
export function anthropicBatch(batch: Batch, resultsUrl: string): object {
  const { state, outcome, total, succeeded, errored, cancelled, expired } = batch
  const hasEnded = state === 'ended'
  const counts = { succeeded, errored, canceled: cancelled, expired }
  const none = { succeeded: 0, errored: 0, canceled: 0, expired: 0 }
  const time = (epochMs: number | undefined) => (epochMs === undefined ? null : isoTime(epochMs))
  return {
    id: batch.id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : outcome === undefined ? 'in_progress' : 'canceling',
    request_counts: { processing: hasEnded ? 0 : total, ...(hasEnded ? counts : none) },
    ended_at: time(batch.endedAt),
    created_at: time(batch.createdAt),
    expires_at: time(batch.expiresAt),
    archived_at: null,
    cancel_initiated_at: time(batch.cancelledAt),
    results_url: hasEnded ? resultsUrl : null,
  }
}
